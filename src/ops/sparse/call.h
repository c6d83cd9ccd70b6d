// How operators run on sparse tensors: the handler of Key::kSparse, one for all. Which way an
// operator goes stands in its record (OperatorRecord::Sparse, the table's `sparse:`):
//
//   values  on the values of the coalesced argument, with the elements of others there
//   linear  on the values as they are
//   own     by a Rule: a function sparse::NAME in this folder
//   body    by its body, which knows sparse tensors
//
// and where nothing is said it raises NotImplementedError: nothing reads a sparse tensor's memory,
// for there is none.
#pragma once

#include "ops/modes.h"
#include "ops/sparse/parts.h"

namespace taeda::sparse {

// A call below autograd. Forms that write run as the plain one; the handler then writes the result,
// unless the rule has done it and returns `into` itself.
struct Call {
  const Operator& op;
  Stack& stack;  // the arguments, and after the rule the results
  Tensor into;   // what is written; undefined in the plain form

  const Tensor& tensor(size_t i) const { return stack[i].tensor(); }
  void give(const Tensor& result) const { stack = {result}; }
};

void handle(const Operator& op, KeySet keys, Stack& stack);
// NotImplementedError: the operator cannot take these arguments.
[[noreturn]] void unable(const Call& call);
// The operator, in its plain form, on other arguments: values, mostly.
Tensor run_plain(const Call& call, Stack args);

}  // namespace taeda::sparse
