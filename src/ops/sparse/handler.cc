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

// On the values of the first argument, the only tensor.
void on_values(Call& call, bool linear) {
  const Tensor x = call.tensor(0);
  for (size_t i = 1; i < call.stack.size(); i++)
    if (call.stack[i].is_tensor() || call.stack[i].is_tensors()) unable(call);
  const Tensor like = is_coo(x) && !linear ? coalesced(x) : x;
  Stack args = call.stack;
  args[0] = sparse_parts(like).values;
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
