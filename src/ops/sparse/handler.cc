#include <algorithm>

#include "op/expand.h"
#include "op/sparse_mask.h"
#include "ops/sparse/call.h"
#include "ops/tensors_of.h"

namespace taeda::sparse {
namespace {

std::string backend_of(const Stack& stack) {
  std::string name;
  each_tensor(stack, [&](const Tensor& t) {
    if (!t.is_sparse() || !name.empty()) return;
    name = std::string(is_coo(t) ? "Sparse" : "SparseCsr") + (t.device().is_cpu() ? "CPU" : "Meta");
  });
  return name;
}

// The elements of a tensor where `like` has values.
Tensor elements_at(const Tensor& t, const Tensor& like) {
  const Tensor all = t.is_sparse() ? t : op::expand(t, like.sizes(), false);
  return sparse_parts(op::sparse_mask(all, like)).values;
}

// On the values of the first sparse tensor, with the elements of the others where it has values.
void on_values(Call& call, bool linear) {
  Stack args = call.stack;
  const auto first = std::find_if(args.begin(), args.end(), [](const Value& value) {
    return value.is_tensor() && value.tensor().is_sparse();
  });
  if (first == args.end()) unable(call);
  const Tensor x = first->tensor(), like = is_coo(x) && !linear ? coalesced(x) : x;
  for (Value& value : args) {
    if (value.is_tensors()) unable(call);
    if (!value.is_tensor()) continue;
    const Tensor t = value.tensor();
    if (t.is_same(x))
      value = sparse_parts(like).values;
    else if (t.is_sparse() || t.dim() > 0)
      value = elements_at(t, like);
  }
  call.give(with_values(like, run_plain(call, std::move(args))));
}

void run_rule(Call& call) {
  const OperatorRecord& record = *call.op.record();
  switch (record.sparse) {
    case OperatorRecord::Sparse::kValues:
      return on_values(call, false);
    case OperatorRecord::Sparse::kLinear:
      return on_values(call, true);
    case OperatorRecord::Sparse::kOwn:
      return record.sparse_rule(call);
    default:
      unable(call);
  }
}

void run_by_rule(const Operator& op, Stack& stack) {
  Call call{op, stack, {}};
  if (op.form() == Operator::Form::kInplace) call.into = stack[0].tensor();
  if (op.form() == Operator::Form::kOut) {
    call.into = stack.back().tensor();
    stack.pop_back();
  }
  run_rule(call);
  if (!call.into.defined() || stack[0].tensor().is_same(call.into)) return;
  write(call.into, stack[0].tensor());
  stack = {call.into};
}

}  // namespace

void unable(const Call& call) {
  fail(
      ErrorKind::kNotImplemented,
      "Could not run '{}' with arguments from the '{}' backend. This could be because the operator "
      "doesn't exist for this backend: convert the sparse tensor with to_dense(), or work on its "
      "values().",
      call.op.qualified_name(), backend_of(call.stack));
}

Tensor run_plain(const Call& call, Stack args) {
  call.op.record()->form(Operator::Form::kPlain).call(args);
  return args[0].tensor();
}

void handle(const Operator& op, KeySet keys, Stack& stack) {
  const KeySet below = keys - KeySet(Key::kSparse);
  if (!op.record()) return op.redispatch(below, stack);
  const ExcludeKeys above((kModeKeys | kDifferentiationKeys) - Key::kSparse);
  if (op.record()->sparse == OperatorRecord::Sparse::kBody) return op.redispatch(below, stack);
  run_by_rule(op, stack);
}

}  // namespace taeda::sparse
