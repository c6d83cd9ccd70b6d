// Where a backward pass starts: the edges of the outputs, and a gradient for each.
#pragma once

#include "autograd/node.h"

namespace taeda::autograd {

// An output, or the edge of one, with what is known of it.
struct Root {
  Edge edge;  // empty where it has no history
  ResultMetadata output;
  Tensor tensor = {};  // where it is known and Python code answers for it, or watches
};

Root root_of(const Tensor& tensor, Edge edge);

// The gradients that the roots start with: those given, checked and in the outputs' dtypes; ones
// for scalars where none is given (undefined, or no list at all). RuntimeError as PyTorch's where
// one does not fit or a root has no history.
TensorList start_gradients(const std::vector<Root>& roots, const TensorList* given);

std::vector<Edge> edges_of(const std::vector<Root>& roots);

}  // namespace taeda::autograd
