#include "ops/autocast.h"

#include <unordered_map>

#include "base/handover.h"
#include "op/to_dtype.h"
#include "ops/modes.h"
#include "ops/tensors_of.h"

namespace taeda::autocast {
namespace {

// A conversion that later operators of the block may use again: of the same contents, recorded by
// autograd or not as now. Holding the source keeps its address from being used for another tensor.
struct Cached {
  Tensor source, result;
  uint32_t version;
  bool recorded;
};

struct State {
  DType lower = DType::kBFloat16;
  bool cache_enabled = true;
  std::unordered_map<const TensorImpl*, Cached> cache;
};
thread_local State state;

std::pair<DType, bool> get_settings() { return {state.lower, state.cache_enabled}; }
void set_settings(std::pair<DType, bool> settings) {
  state.lower = settings.first;
  state.cache_enabled = settings.second;
}
const CarriedValue<get_settings, set_settings> carried_settings;

bool eligible(const Tensor& x) {
  return x.defined() && x.device().is_cpu() && x.is_floating_point() &&
         x.dtype() != DType::kFloat64;
}

Tensor convert(const Tensor& x, DType to) {
  const Pause outside;
  return op::to_dtype(x, to, false, std::nullopt);
}

}  // namespace

DType lower_dtype() { return state.lower; }
void set_lower_dtype(DType dtype) { state.lower = dtype; }
bool cache_enabled() { return state.cache_enabled; }
void set_cache_enabled(bool enabled) { state.cache_enabled = enabled; }
void clear_cache() { state.cache.clear(); }

Tensor cast(const Tensor& x, DType to) {
  if (!eligible(x) || x.dtype() == to) return x;
  const bool kept = state.cache_enabled && to == state.lower && x.dtype() == DType::kFloat32 &&
                    x.requires_grad() && x.is_leaf() && !x.impl()->view_base;
  if (!kept) return convert(x, to);
  const bool recorded = thread_modes.grad_enabled;
  Cached& entry = state.cache[x.impl()];
  if (!entry.result.defined() || entry.version != x.version() || entry.recorded != recorded ||
      entry.result.dtype() != to) {
    entry = {x, convert(x, to), x.version(), recorded};
  }
  return entry.result;
}

namespace {

// float32 if one of the tensors that cast() converts has it, else lower_dtype().
DType widest(const Stack& stack) {
  DType result = state.lower;
  each_tensor(stack, [&](const Tensor& x) {
    if (!eligible(x)) return;
    if (x.dtype() == DType::kFloat32)
      result = DType::kFloat32;
    else
      TD_CHECK(result == DType::kFloat32 || x.dtype() == state.lower,
               "Unexpected floating ScalarType in at::autocast::prioritize");
  });
  return result;
}

}  // namespace

void handle(const Operator& op, KeySet, Stack& stack) {
  const OperatorRecord::Autocast rule = op.record()->autocast;
  if (rule != OperatorRecord::kOutside) {
    const DType to = rule == OperatorRecord::kLower     ? state.lower
                     : rule == OperatorRecord::kFloat32 ? DType::kFloat32
                                                        : widest(stack);
    change_tensors(stack, [&](const Tensor& x) { return cast(x, to); });
  }
  const Pause outside;
  op.redispatch(op.keys_of(stack) & KeySet::below(Key::kAutocast), stack);
}

}  // namespace taeda::autocast
