#include <cstring>

#include "ops/batching/rules.h"
#include "ops/boxing.h"
#include "ops/dispatch.h"

namespace taeda::batching {
namespace {

// The innermost level among the arguments; null where none is batched.
Level* level_among(const Stack& stack) {
  Level* found = nullptr;
  each_tensor(stack, [&](const Tensor& t) {
    if (!is_batched(t)) return;
    Level& level = level_of(t);
    if (!found || level.depth > found->depth) found = &level;
  });
  return found;
}

bool is_random(const Operator& op) {
  return op.record() && op.record()->batch == OperatorRecord::kRandom;
}

// What is written must have a batch of its own where anything that is read has one.
void check_written(const Call& call) {
  const Schema& schema = call.op.schema();
  const bool any = any_batched(call.stack, call.level);
  for (size_t i = 0; any && i < schema.arguments.size(); i++) {
    if (!schema.arguments[i].alias.written || !call.stack[i].is_tensor()) continue;
    TD_CHECK(call.has_batch(i) || take_on_batch(call.tensor(i), call.level),
             "vmap: {}({}, *extra_args) is not possible because a Tensor in extra_args is vmapped "
             "over, and has more elements than `{}`, which is not vmapped over. Please use the "
             "out-of-place operator instead, or make the written Tensor from one that is vmapped "
             "over (x.new_zeros, torch.zeros_like(x)).",
             schema.name, schema.arguments[i].name, schema.arguments[i].name);
  }
}

void by_record(Call& call) {
  const OperatorRecord* record = call.op.record();
  if (!record) return by_samples(call);
  switch (record->batch) {
    case OperatorRecord::kLoop:
      return by_samples(call);
    case OperatorRecord::kPointwise:
      return pointwise(call);
    case OperatorRecord::kLeading:
      return leading(call);
    case OperatorRecord::kFirst:
      return first(call);
    case OperatorRecord::kAlong:
      return along(call);
    case OperatorRecord::kFold:
      return folded(call);
    case OperatorRecord::kChannels:
      return by_channels(call);
    case OperatorRecord::kRandom:
      return randomly(call);
    case OperatorRecord::kDefinition:
      return by_definition(call);
    case OperatorRecord::kOwn:
      return reinterpret_cast<Rule*>(record->batch_rule)(call);
    case OperatorRecord::kRefuse:
      refuse(call);
  }
}

}  // namespace

bool concerns(const OperatorRecord& record, const void* const* args) {
  if (record.batch == OperatorRecord::kRandom && current()) return true;
  for (const char* letter = boxing::letters(record); *letter; letter++, args++) {
    if (*letter == 'T' && is_batched(*static_cast<const Tensor*>(*args))) return true;
    if ((*letter == 'L' || *letter == 'l') &&
        dispatch::keys(*static_cast<const TensorSpan*>(*args)).has(Key::kBatched))
      return true;
  }
  return false;
}

void handle(const Operator& op, KeySet keys, Stack& stack) {
  Level* level = is_random(op) ? current() : nullptr;
  if (!level) level = level_among(stack);
  if (!level) return op.redispatch(keys - KeySet(Key::kBatched), stack);
  const Ref<Level> kept(level);
  Call call{op, *level, stack};
  TD_CHECK(op.form() != Operator::Form::kOut,
           "vmap: {}: functions with out=... arguments are not supported inside vmap; use the "
           "result instead",
           op.name());
  check_written(call);
  by_record(call);
}

void run(const Call& call, Stack& args) { call.op.redispatch(call.op.keys_of(args), args); }

namespace {

// `result` as the function sees it, sharing what the value of an argument shares.
Tensor wrap_result(const Call& call, const Tensor& result) {
  if (!result.defined()) return result;
  // What was not asked for: the matrices of a decomposition that computes values only.
  if (result.dim() == 1 && result.numel() == 0 && call.size() != 0) return result;
  Tensor batched = wrap(result, call.level);
  each_tensor(call.stack, [&](const Tensor& t) {
    const Tensor value = value_at(t, call.level);
    if (!value.defined() || value.storage() != result.storage()) return;
    batched.impl()->storage = t.storage();
    batched.impl()->own_version = t.impl()->own_version;
  });
  return batched;
}

}  // namespace

void finish(Call& call, Stack& results) {
  const Schema& schema = call.op.schema();
  for (size_t i = 0; i < schema.arguments.size(); i++) {
    if (!schema.arguments[i].alias.written || !call.stack[i].is_tensor()) continue;
    if (!call.has_batch(i)) continue;
    refresh_layout(call.tensor(i));
    call.tensor(i).impl()->bump_version();
  }
  for (size_t i = 0; i < results.size(); i++) {
    Value& result = results[i];
    if (result.is_tensor() && schema.results[i].alias.written) {
      result = call.stack[0];
      continue;
    }
    change_tensors(result, [&](const Tensor& t) { return wrap_result(call, t); });
  }
  call.stack = std::move(results);
}

}  // namespace taeda::batching
