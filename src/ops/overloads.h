// PyTorch's overloads of which one entry of the table stands for several: aten::add.Scalar is
// aten::add.Tensor with a number, aten::sum is aten::sum.dim_IntList without dimensions.
//
// The table gives each one's arguments, which are the entry's by name: of another type (a number
// for a tensor, an int for a list of one), or left out. So a call of either is a call of the other
// with its stack rearranged. The Operator of an entry's form owns those of its overloads.
#pragma once

#include <memory>

#include "ops/modes.h"

namespace taeda {

// A further name of PyTorch's for a form of an entry (generated).
struct OverloadRecord {
  const char* name;  // "aten::add.Scalar"
  const OperatorRecord* record;
  const char* arguments;  // "(Tensor self, Scalar other)"; empty: the entry's, it is but a name
  Operator::Form form;
  bool is_seen;  // whether calls may be shown as this overload; others are called by name only
};
// Sorted by name.
extern const OverloadRecord kOverloads[];
extern const size_t kNumOverloads;

// As which call of PyTorch's operator one of the table's own is shown, in Python (generated).
struct SpellingRecord {
  const OperatorRecord* record;
  // "log_sigmoid_forward(self)[0]", or lines of "condition => call"; of kTags "reduction inplace"
  const char* text;
};
extern const SpellingRecord kSpellings[];
extern const size_t kNumSpellings;
// What the table says of operators by the names of torch.Tag (generated).
extern const SpellingRecord kTags[];
extern const size_t kNumTags;

namespace overloads {

// The tags of an operator of the table, in any of its forms: "reduction inplace_view"; none of
// others.
std::string_view tags_of(const OperatorRecord* record);

// The operator that computes this one: itself, or that of the entry for an overload.
const Operator& entry_of(const Operator& op);
// The overloads of an entry's form beside its own.
Span<const std::unique_ptr<Operator>> of(const Operator& entry);
// Whether calls of the entry may be shown as this overload.
bool is_seen(const Operator& overload);

// Whether a value is the one that a call without this argument has. Tensors never are.
bool is_default(const SchemaArgument& argument, const Value& value);

// The arguments of an overload as those of its entry.
void to_entry(const Operator& overload, Stack& stack);

// The overload as which PyTorch has a call of the entry, and `stack` as its arguments; null, and
// nothing is changed, where that is the entry's own. `in_formula`: of a gradient, where PyTorch
// takes overloads that no call of a program reaches (mul.Scalar).
const Operator* of_call(const Operator& entry, Stack& stack, bool in_formula = false);

}  // namespace overloads
}  // namespace taeda
