// x[...] and x[...] = y in all of NumPy's and PyTorch's forms.
#pragma once

#include "python/common.h"
#include "taeda/tensor.h"

namespace taeda::python {

// One index expression applied as far as views reach: ints, slices, None, Ellipsis and bools have
// become `view`; index tensors wait in `indices`, one a dimension of `view`, undefined where there
// is none.
struct Indexed {
  Tensor view;
  TensorList indices;
  bool changed = false;  // false: `view` is the tensor itself

  bool advanced() const { return !indices.empty(); }
};

Indexed apply_index(const Tensor& x, PyObject* index);

}  // namespace taeda::python
