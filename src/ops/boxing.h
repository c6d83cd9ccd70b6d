// Boxing: an operator's C++ arguments as Values, and back.
//
// Which C++ types an operator takes is written in one letter an argument behind its record's schema
// text; gen/records.py writes them, and these functions read them.
#pragma once

#include "ops/modes.h"

namespace taeda::boxing {

// The letters of a record's C++ arguments.
const char* letters(const OperatorRecord& record);

// Appends the arguments that `args` point at.
void box(const OperatorRecord& record, const void* const* args, Stack& stack);

// The arguments on a stack as their C++ types. Borrows from the stack.
class Unboxed {
 public:
  Unboxed(const OperatorRecord& record, const Stack& stack);
  // Pointers to the arguments; two pointers before them are free for keys and `into`.
  const void** args() { return pointers_ + kBefore; }

 private:
  static constexpr int kBefore = 2, kMost = 24;
  const void* pointers_[kBefore + kMost];
  alignas(16) std::byte slots_[kMost][48];
};

// The results of a schema, as C++ functions return them.
class Results {
 public:
  explicit Results(const Schema& schema);
  void* const* pointers() { return pointers_; }
  // Replaces what is on the stack by the results.
  void push(Stack& stack);

 private:
  static constexpr size_t kMost = 10;
  const Schema& schema_;
  Tensor tensors_[kMost];
  std::tuple<TensorList, bool, int64_t, double, Scalar> others_;  // at most one of each
  void* pointers_[kMost];
};

// The results on a stack, where a C++ caller wants them; `op` and its schema are for the messages.
void unbox_results(const Operator& op, Stack& stack, void* const* results);

// What the entry function of a dispatched operator does first: required tensors are defined,
// int[N] has N elements, dimensions count from the front.
void wrap_arguments(const OperatorRecord& record, const Schema& schema, Stack& stack);

}  // namespace taeda::boxing
