#include "ops/autocast.h"

#include <algorithm>
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

struct OfDevice {
  bool enabled = false;
  DType lower = DType::kBFloat16;
};
struct Settings {
  OfDevice devices[3] = {{}, {}, {false, DType::kFloat16}};  // CPU, meta, CUDA
  bool cache_enabled = true;
};
thread_local Settings settings;
thread_local std::unordered_map<const TensorImpl*, Cached> cache;

Settings get_settings() { return settings; }
void set_settings(Settings carried) { settings = carried; }
const CarriedValue<get_settings, set_settings> carried_settings;

OfDevice& of(DeviceType device) { return settings.devices[static_cast<size_t>(device)]; }
const OfDevice& of(const Tensor& x) { return of(x.device().type); }

bool eligible(const Tensor& x) {
  return x.defined() && of(x).enabled && x.is_floating_point() && x.dtype() != DType::kFloat64;
}

Tensor convert(const Tensor& x, DType to) {
  const Pause outside;
  return op::to_dtype(x, to, false, std::nullopt);
}

// A tensor that a block is for in dtype `to`; any other as it is.
Tensor cast(const Tensor& x, DType to) {
  if (!eligible(x) || x.dtype() == to) return x;
  const bool kept = settings.cache_enabled && to == of(x).lower && x.dtype() == DType::kFloat32 &&
                    x.requires_grad() && x.is_leaf() && !x.impl()->view_base;
  if (!kept) return convert(x, to);
  const bool recorded = thread_modes.grad_enabled;
  Cached& entry = cache[x.impl()];
  if (!entry.result.defined() || entry.version != x.version() || entry.recorded != recorded ||
      entry.result.dtype() != to) {
    entry = {x, convert(x, to), x.version(), recorded};
  }
  return entry.result;
}

// float32 if one of the tensors that cast() converts has it, else what they have: the lower dtype.
DType widest(const Stack& stack) {
  DType result = DType::kBFloat16;
  bool wide = false;
  each_tensor(stack, [&](const Tensor& x) {
    if (!eligible(x)) return;
    wide |= x.dtype() == DType::kFloat32;
    result = of(x).lower;
    TD_CHECK(wide || x.dtype() == result,
             "Unexpected floating ScalarType in at::autocast::prioritize");
  });
  return wide ? DType::kFloat32 : result;
}

}  // namespace

bool enabled(DeviceType device) { return of(device).enabled; }
void set_enabled(DeviceType device, bool value) {
  of(device).enabled = value;
  const bool any = std::any_of(std::begin(settings.devices), std::end(settings.devices),
                               [](const OfDevice& d) { return d.enabled; });
  thread_modes.included =
      any ? thread_modes.included | Key::kAutocast : thread_modes.included - Key::kAutocast;
}
DType lower_dtype(DeviceType device) { return of(device).lower; }
void set_lower_dtype(DeviceType device, DType dtype) { of(device).lower = dtype; }
bool cache_enabled() { return settings.cache_enabled; }
void set_cache_enabled(bool enabled) { settings.cache_enabled = enabled; }
void clear_cache() { cache.clear(); }

bool concerns(const Stack& stack) {
  bool any = false;
  each_tensor(stack, [&](const Tensor& x) { any |= of(x).enabled; });
  return any;
}

void handle(const Operator& op, KeySet, Stack& stack) {
  const OperatorRecord::Autocast rule = op.record()->autocast;
  if (rule != OperatorRecord::kNone) {
    const DType wide = rule == OperatorRecord::kWidest ? widest(stack) : DType::kFloat32;
    const bool lower = rule == OperatorRecord::kLower;
    change_tensors(stack, [&](const Tensor& x) { return cast(x, lower ? of(x).lower : wide); });
  }
  const Pause outside;
  op.redispatch(op.keys_of(stack) & KeySet::below(Key::kAutocast), stack);
}

}  // namespace taeda::autocast
