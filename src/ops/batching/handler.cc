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

bool is_random(const Operator& op) { return op.record() && op.record()->draws(); }

// What is written must have a batch of its own where anything that is read has one.
void check_written(const Call& call) {
  const Schema& schema = call.op.schema();
  const bool any = any_batched(call.stack, call.level);
  for (size_t i = 0; any && i < schema.arguments.size(); i++) {
    if (!schema.arguments[i].alias.written || !call.stack[i].is_tensor()) continue;
    const bool own = call.has_batch(i) && !shared_at(call.tensor(i), call.level).defined();
    if (own || take_on_batch(call.tensor(i), call.level)) continue;
    TD_CHECK(
        schema.name != "taeda::_move_running_",
        "Batch norm got a batched tensor as input while the running_mean or running_var, which "
        "will be updated in place, were not batched.\nIf you do not need running statistics, "
        "set `track_running_stats` to be False, or patch the module with "
        "torch.func.replace_all_batch_norm_modules_.");
    TD_CHECK(false,
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
    case OperatorRecord::kNoise:
      return randomly(call);
    case OperatorRecord::kDefinition:
      return by_definition(call);
    case OperatorRecord::kOwn:
      return reinterpret_cast<Rule*>(record->batch_rule)(call);
    case OperatorRecord::kRefuse:
      refuse(call);
  }
}

// Keys that operators pass by inside of vmap on tensors of the code outside, which differentiates
// them: such an operator runs outside.
KeySet hidden_keys() {
  const Level* level = current();
  if (!level) return {};
  return level->records ? KeySet(Key::kForward) : kDifferentiationKeys;
}

// An operator none of whose arguments belongs to the innermost level. Where a transform inside is
// at work, the autograd layer has recorded it on the way here, for results whose history it sets
// anew in the end; what is recorded outside counts for their tangents. A write would count twice.
void run_outside(const Operator& op, Stack& stack) {
  const bool recorded = current()->records && op.schema().is_mutable();
  const Outside outside(*current());
  if (recorded) thread_modes.excluded = thread_modes.excluded | Key::kAutograd;
  op.redispatch(op.keys_of(stack), stack);
}

}  // namespace

bool concerns(const OperatorRecord& record, const void* const* args) {
  if (record.draws() && current()) return true;
  const KeySet stops = KeySet(Key::kBatched) | hidden_keys();
  for (const char* letter = boxing::letters(record); *letter; letter++, args++) {
    KeySet keys;
    if (*letter == 'T') keys = dispatch::keys(*static_cast<const Tensor*>(*args));
    if (*letter == 'L' || *letter == 'l')
      keys = dispatch::keys(*static_cast<const TensorSpan*>(*args));
    if (!(keys & stops).empty()) return true;
  }
  return false;
}

void run(const Call& call, Stack& args) { call.op.redispatch(call.op.keys_of(args), args); }

namespace {

// Gives a result the storage of the argument that it is a view of.
void share_storage(const Call& call, const Tensor& result, const Tensor& batched) {
  const Schema& schema = call.op.schema();
  const SchemaAlias& alias = schema.arguments[0].alias;
  const bool cuts = call.op.record() && call.op.record()->has(OperatorRecord::kNoHistory);
  const bool is_view = !alias.set.empty() && !alias.written && !cuts;
  each_tensor(call.stack, [&](const Tensor& t) {
    if (!is_at(t, call.level) || content_of(t).storage() != result.storage()) return;
    batched.impl()->storage = t.storage();
    batched.impl()->own_version = t.impl()->own_version;
    if (is_view) differentiation().track_view(batched, t, schema.results[0].type.is_tensors());
  });
}

// The argument that the operator writes and returns as this result; -1: the result is another.
int written_argument(const Schema& schema, size_t result) {
  return schema.results[result].alias.written ? aliased_argument(schema, result) : -1;
}

void count_write(const Tensor& written) {
  refresh_layout(written);
  written.impl()->bump_version();
}

// What the operator made for all samples at once.
void finish_shared(Call& call, Stack& results) {
  const Schema& schema = call.op.schema();
  for (size_t i = 0; i < schema.arguments.size(); i++)
    if (schema.arguments[i].alias.written && call.stack[i].is_tensor() && call.has_batch(i))
      count_write(call.tensor(i));
  for (size_t i = 0; i < results.size(); i++) {
    if (const int written = written_argument(schema, i); written >= 0)
      results[i] = call.stack[static_cast<size_t>(written)];
    else
      change_tensors(results[i], [&](const Tensor& t) {
        const Tensor batched = wrap_shared(t, call.level);
        share_storage(call, t, batched);
        return batched;
      });
  }
  call.stack = std::move(results);
}

// `result` as the function sees it, sharing what the value of an argument shares.
Tensor wrap_result(const Call& call, const Tensor& result) {
  if (!result.defined()) return result;
  // What was not asked for: the matrices of a decomposition that computes values only.
  if (result.dim() == 1 && result.numel() == 0 && call.size() != 0) return result;
  Tensor batched = wrap(result, call.level);
  share_storage(call, result, batched);
  return batched;
}

// Arguments that all samples share, as the code outside sees them. Where no other argument is
// batched, the operator runs once for all samples.
bool run_shared(Call& call) {
  bool any_shared = false, any_batched = is_random(call.op);
  each_tensor(call.stack, [&](const Tensor& t) {
    const bool shared = shared_at(t, call.level).defined();
    any_shared |= shared;
    any_batched |= !shared && is_at(t, call.level);
  });
  if (!any_shared) return false;
  const auto plain = [&](const Tensor& t) {
    const Tensor shared = shared_at(t, call.level);
    return shared.defined() ? shared : t;
  };
  if (any_batched) {
    for (size_t i = 0; i < call.stack.size(); i++)
      if (!call.op.schema().arguments[i].alias.written) change_tensors(call.stack[i], plain);
    return false;
  }
  Stack args = call.stack;
  change_tensors(args, plain);
  {
    const Outside outside(call.level);
    run(call, args);
  }
  finish_shared(call, args);
  return true;
}

}  // namespace

void finish(Call& call, Stack& results) {
  const Schema& schema = call.op.schema();
  for (size_t i = 0; i < schema.arguments.size(); i++) {
    if (!schema.arguments[i].alias.written || !call.stack[i].is_tensor()) continue;
    if (!call.has_batch(i)) continue;
    count_write(call.tensor(i));
  }
  for (size_t i = 0; i < results.size(); i++) {
    Value& result = results[i];
    if (const int written = written_argument(schema, i); written >= 0) {
      result = call.stack[static_cast<size_t>(written)];
      continue;
    }
    change_tensors(result, [&](const Tensor& t) { return wrap_result(call, t); });
  }
  call.stack = std::move(results);
}

void handle(const Operator& op, KeySet keys, Stack& stack) {
  Level* level = is_random(op) ? current() : nullptr;
  if (!level) level = level_among(stack);
  if (current() && level != current()) return run_outside(op, stack);
  if (!level) return op.redispatch(keys - KeySet(Key::kBatched), stack);
  const Ref<Level> kept(level);
  Call call{op, *level, stack};
  TD_CHECK(op.form() != Operator::Form::kOut,
           "vmap: {}: functions with out=... arguments are not supported inside vmap; use the "
           "result instead",
           op.name());
  if (run_shared(call)) return;
  check_written(call);
  by_record(call);
}

}  // namespace taeda::batching
