#include "ops/autocast.h"

#include <algorithm>
#include <unordered_map>

#include "base/handover.h"
#include "op/to_dtype.h"
#include "ops/autocast_rules.h"
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

// An eligible tensor in dtype `to`.
Tensor cast(const Tensor& x, DType to) {
  if (x.dtype() == to) return x;
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

// What a rule does with the tensors on one type of device.
class Conversion {
 public:
  Conversion(DeviceType device, AutocastRule rule) : device_(device), rule_(rule) {}

  void apply(const Operator& op, Stack& stack) const {
    switch (rule_) {
      case AutocastRule::kBanned:
        return check_allowed(op, stack);
      case AutocastRule::kResult32:
        return choose_dtype(op, stack);
      case AutocastRule::kLower:
        return cast_all(stack, of(device_).lower);
      case AutocastRule::kFloat32:
        return cast_all(stack, DType::kFloat32);
      case AutocastRule::kWidest:
        return cast_all(stack, widest(stack));
      case AutocastRule::kNoRule:
      case AutocastRule::kNone:
        return;
    }
  }

 private:
  bool concerns(const Tensor& x) const { return x.device().type == device_ && eligible(x); }

  void cast_all(Stack& stack, DType to) const {
    change_tensors(stack, [&](const Tensor& x) { return concerns(x) ? cast(x, to) : x; });
  }

  // float32 if one of the tensors has it, else what they have: the lower dtype.
  DType widest(const Stack& stack) const {
    bool wide = false;
    each_tensor(stack, [&](const Tensor& x) {
      if (!concerns(x)) return;
      wide |= x.dtype() == DType::kFloat32;
      TD_CHECK(wide || x.dtype() == of(device_).lower,
               "Unexpected floating ScalarType in at::autocast::prioritize");
    });
    return wide ? DType::kFloat32 : of(device_).lower;
  }

  void choose_dtype(const Operator& op, Stack& stack) const {
    const int dtype = op.schema().find("dtype");
    if (dtype < 0 || !stack[0].is_tensor() || !concerns(stack[0].tensor())) return;
    Value& value = stack[static_cast<size_t>(dtype)];
    if (value.is_none()) value = Value(DType::kFloat32);
  }

  void check_allowed(const Operator& op, const Stack& stack) const {
    const std::string_view name = op.name().substr(op.name().find_last_of(':') + 1);
    each_tensor(stack, [&](const Tensor& x) {
      TD_CHECK(x.device().type != device_,
               "torch.nn.functional.{} and torch.nn.BCELoss are unsafe to autocast: logarithms of "
               "probabilities near 0 and 1 overflow in half precision. Leave out the sigmoid in "
               "front and use torch.nn.functional.{}_with_logits or torch.nn.BCEWithLogitsLoss, "
               "which are safe to autocast.",
               name, name);
    });
  }

  DeviceType device_;
  AutocastRule rule_;
};

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

AutocastRule rule_of(const OperatorRecord& record, DeviceType device) {
  if (device != DeviceType::kCUDA) return static_cast<AutocastRule>(record.autocast);
  static const auto& rules = *new auto([] {
    std::unordered_map<const OperatorRecord*, AutocastRule> known;
    for (size_t i = 0; i < kNumAutocastCuda; i++)
      known.emplace(kAutocastCuda[i].record, kAutocastCuda[i].rule);
    return known;
  }());
  const auto found = rules.find(&record);
  return found == rules.end() ? AutocastRule::kNoRule : found->second;
}

bool has_rule(const OperatorRecord& record) {
  const auto has = [&](DeviceType device) {
    return enabled(device) && rule_of(record, device) != AutocastRule::kNoRule;
  };
  return has(DeviceType::kCPU) || has(DeviceType::kCUDA);
}

void handle(const Operator& op, KeySet, Stack& stack) {
  const OperatorRecord& record = *op.record();
  for (const DeviceType device : {DeviceType::kCPU, DeviceType::kCUDA})
    if (enabled(device)) Conversion(device, rule_of(record, device)).apply(op, stack);
  const Pause outside;
  op.redispatch(op.keys_of(stack) & KeySet::below(Key::kAutocast), stack);
}

}  // namespace taeda::autocast
