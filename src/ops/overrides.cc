#include "ops/overrides.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "ops/boxing.h"
#include "ops/dispatch.h"
#include "ops/overloads.h"
#include "ops/tensors_of.h"

namespace taeda::overrides {
namespace {

using Kernels = OperatorRegistry::Kernels;
using Slot = Kernels::Slot;
using Form = Operator::Form;
using Function = OperatorRecord::Function;

// The tables that were ever changed, each with the functions that it had: another thread may be on
// its way to one of them.
struct Tables {
  std::shared_mutex mutex;
  std::unordered_map<const OperatorRecord*, std::vector<Function>> originals;
  std::unordered_set<const OperatorRecord*> active;  // those with kernels
  // How many kernels wait for calls of a record that are shown as another operator, by their kind.
  std::unordered_map<const OperatorRecord*, std::array<int, kNumKernelKinds>> watched;
  std::unordered_map<const Operator*, int> shown;  // those operators
  std::atomic<size_t> count{0};                    // of these
};
Tables& tables() {
  static auto& all = *new Tables;
  return all;
}

Function* handlers(const OperatorRecord& record) {
  // Records are constant, the tables that they point at are not.
  return static_cast<Function*>(const_cast<void*>(record.handlers));
}

Function original(const OperatorRecord& record, Key key) {
  const std::shared_lock lock(tables().mutex);
  const auto found = tables().originals.find(&record);
  return found == tables().originals.end() ? nullptr : found->second[static_cast<size_t>(key)];
}

// The keys at which the table must stop for a kernel.
KeySet stops_at(KernelKind kind) {
  switch (kind) {
    case KernelKind::kCPU:
      return Key::kCPU;
    case KernelKind::kMeta:
      return Key::kMeta;
    case KernelKind::kCUDA:
      return Key::kCUDA;
    case KernelKind::kAutograd:
      return kDeviceKeys | kDifferentiationKeys;
    default:
      return {};
  }
}

template <class Visit>
void each_operator(const OperatorRecord& record, const Visit& visit) {
  for (const Form form : {Form::kPlain, Form::kInplace, Form::kOut}) {
    const Operator* op = record.forms[static_cast<int>(form)].load(std::memory_order_acquire);
    if (!op) continue;  // nobody has asked for it
    visit(*op);
    for (const auto& overload : overloads::of(*op)) visit(*overload);
  }
}

// An operator that is called as itself or as an overload, with the arguments that this takes.
const Operator& called(const Operator& op, Stack& stack) {
  const Operator* const overload = overloads::of_call(op, stack);
  return overload ? *overload : op;
}

AnswerAsShown answer_as_shown = nullptr;

bool is_watched(const OperatorRecord& record, KernelKind kind) {
  const std::shared_lock lock(tables().mutex);
  const auto found = tables().watched.find(&record);
  return found != tables().watched.end() && found->second[static_cast<size_t>(kind)] != 0;
}

bool is_shown(const Operator& op) {
  const std::shared_lock lock(tables().mutex);
  return tables().shown.contains(&op);
}

// A program's kernel; one that lets the key be passed by counts as none.
Slot kernel_of(const Operator& op, KernelKind kind, KeySet keys = kAllKeys) {
  Slot kernel = OperatorRegistry::kernels_of(op).get(kind, keys);
  return kernel && *kernel ? kernel : nullptr;
}

// Inference tensors have no history, and pass kernels of kAutograd by.
bool any_recordable(const Stack& stack) {
  bool any = false;
  each_tensor(stack, [&](const Tensor& t) { any = any || !t.is_inference(); });
  return any;
}

// The kernel that answers a call which the table has brought to `key`.
Slot kernel_for(const Operator& op, Key key, KeySet& keys, const Stack& stack) {
  if (!is_below_autograd() && any_recordable(stack)) {
    if (Slot kernel = kernel_of(op, KernelKind::kAutograd, keys)) {
      keys = keys | Key::kAutograd;
      return kernel;
    }
  }
  return kDeviceKeys.has(key) ? kernel_of(op, kind_of(key)) : nullptr;
}

// A call that is shown as another operator, by that one's kernel; `stack` then has the results.
bool run_as_shown(const Operator& op, Key key, KeySet keys, Stack& stack) {
  const auto answered = [&](KernelKind kind, KeySet above) {
    if (!is_watched(*op.record(), kind)) return false;
    const ExcludeKeys excluded(above);
    return answer_as_shown(op, kind, keys, stack);
  };
  if (!is_below_autograd() && answered(KernelKind::kAutograd, {})) return true;
  return kDeviceKeys.has(key) && answered(kind_of(key), kDifferentiationKeys);
}

// The kernel's results where the C++ caller wants them.
void give(const Operator& op, Stack& stack, const void* const* args, void* const* results) {
  TD_CHECK(stack.size() == op.schema().results.size(), "{}: the kernel returned {} results, not {}",
           op.qualified_name(), stack.size(), op.schema().results.size());
  if (op.form() != Form::kPlain || op.record()->has(OperatorRecord::kWrites))
    *static_cast<Tensor*>(results[0]) = *static_cast<const Tensor*>(args[0]);
  else
    boxing::unbox_results(op, stack, results);
}

void call(const Operator& op, const BoxedKernel& kernel, Key key, KeySet keys, Stack& stack) {
  std::vector<std::pair<Tensor, uint32_t>> written;
  for (size_t i = 0; i < stack.size(); i++)
    if (op.schema().arguments[i].alias.written && stack[i].is_tensor())
      written.emplace_back(stack[i].tensor(), stack[i].tensor().version());
  {
    const ExcludeKeys above(kDeviceKeys.has(key) ? kDifferentiationKeys : KeySet());
    kernel(op, keys, stack);
  }
  for (const auto& [tensor, version] : written)
    if (tensor.version() == version) tensor.impl()->bump_version();
}

}  // namespace

namespace {

void set_composite(const OperatorRecord& record, bool has_any) {
  const std::unique_lock lock(tables().mutex);
  if (has_any)
    tables().active.insert(&record);
  else
    tables().active.erase(&record);
  tables().count = tables().active.size();
  const bool any = std::any_of(tables().active.begin(), tables().active.end(),
                               [](const OperatorRecord* r) { return !r->handlers; });
  dispatch::replaced_composites = any ? KeySet(Key::kCPU) : KeySet();
}

bool is_active(const OperatorRecord& record) {
  const std::shared_lock lock(tables().mutex);
  return tables().active.contains(&record);
}

Key key_of(Device device) {
  return device.is_cpu() ? Key::kCPU : device.type == DeviceType::kCUDA ? Key::kCUDA : Key::kMeta;
}

// The keys of tensors; where there are none, the device that a factory is given.
KeySet keys_of_arguments(const Operator& op, const Stack& stack) {
  KeySet keys;
  each_tensor(stack, [&](const Tensor& t) { keys = keys | dispatch::keys(t); });
  if (!(keys & kDeviceKeys).empty()) return keys;
  const int at = op.schema().find("device");
  const bool given = at >= 0 && stack[static_cast<size_t>(at)].holds<Device>();
  return keys | key_of(given ? stack[static_cast<size_t>(at)].device() : Device());
}

// The kernel for one key of a composite's call. As in PyTorch, one for autograd answers where one
// for the device does, since the composite stands for both; a factory is explicit.
Slot composite_kernel(const Operator& op, Key key, KeySet keys) {
  if ((kMathBits | Key::kSparse).has(key)) return nullptr;
  const bool leaf = op.record()->has(OperatorRecord::kLeaf);
  const Slot on_device = kernel_of(op, kind_of(static_cast<Key>((keys & kDeviceKeys).highest())));
  if (kDeviceKeys.has(key))
    return on_device
               ? on_device
               : kernel_of(op, leaf ? KernelKind::kCompositeExplicit : KernelKind::kComposite);
  const bool stands_for_both = kDifferentiationKeys.has(key) && !leaf && !on_device;
  return stands_for_both ? nullptr : kernel_of(op, kind_of(key), keys);
}

}  // namespace

bool answer(const Operator& op, KeySet among, Stack& stack) {
  if (!is_active(*op.record())) return false;
  Stack arguments = stack;
  const Operator& which = &overloads::entry_of(op) == &op ? called(op, arguments) : op;
  KeySet keys = (keys_of_arguments(which, arguments) | thread_modes.included) -
                thread_modes.excluded - kCompositeKeys;
  if (!is_below_autograd() && any_recordable(arguments)) keys = keys | Key::kAutograd;
  for (keys = keys & among; !keys.empty(); keys = keys - static_cast<Key>(keys.highest())) {
    const Slot kernel = composite_kernel(which, static_cast<Key>(keys.highest()), keys);
    if (!kernel) continue;
    (*kernel)(which, keys, arguments);
    TD_CHECK(arguments.size() == which.schema().results.size(),
             "{}: the kernel returned {} results, not {}", which.qualified_name(), arguments.size(),
             which.schema().results.size());
    stack = std::move(arguments);
    return true;
  }
  return false;
}

void redispatch(const Operator& op, KeySet keys, Stack& stack) {
  const KeySet natural = keys_of_arguments(op, stack) | thread_modes.included;
  if (!op.record()) return op.redispatch(keys & (natural | Key::kAutograd), stack);
  if (!op.record()->has(OperatorRecord::kDispatched)) {
    if (answer(op, keys, stack)) return;
    return op.redispatch(keys & natural & kLeafKeys, stack);
  }
  const ExcludeKeys below(keys.has(Key::kAutograd) ? KeySet() : kDifferentiationKeys);
  op.redispatch(keys & natural, stack);
}

bool can_have(const Operator& op) {
  if (!op.record()) return false;
  const bool computes_and_copies = op.form() != Form::kPlain && !op.is_dispatched();
  return (overloads::is_seen(op) && !computes_and_copies) || is_shown(op);
}

void set_answer_as_shown(AnswerAsShown answer) { answer_as_shown = answer; }

void watch(const Operator& shown, KernelKind kind, Span<const OperatorRecord* const> records,
           bool on) {
  {
    const std::unique_lock lock(tables().mutex);
    int& count = tables().shown[&shown];
    count += on ? 1 : -1;
    if (count == 0) tables().shown.erase(&shown);
    for (const OperatorRecord* record : records)
      tables().watched[record][static_cast<size_t>(kind)] += on ? 1 : -1;
  }
  for (const OperatorRecord* record : records)
    OperatorRegistry::refresh(record->form(Form::kPlain));
}

void refresh(const Operator& op) {
  const OperatorRecord& record = *op.record();
  KeySet keys;
  bool has_any = false;
  each_operator(record, [&](const Operator& one) {
    for (size_t kind = 0; kind < kNumKernelKinds; kind++) {
      if (!OperatorRegistry::kernels_of(one).get(static_cast<KernelKind>(kind))) continue;
      has_any = true;
      keys = keys | stops_at(static_cast<KernelKind>(kind));
    }
  });
  Function* const table = handlers(record);
  if (!table) return set_composite(record, has_any);  // its parts are watched
  for (size_t kind = 0; kind < kNumKernelKinds; kind++) {
    if (!is_watched(record, static_cast<KernelKind>(kind))) continue;
    has_any = true;
    keys = keys | stops_at(static_cast<KernelKind>(kind));
  }
  const std::unique_lock lock(tables().mutex);
  auto& originals = tables().originals;
  if (!originals.contains(&record))
    originals.emplace(&record, std::vector(table, table + kNumKeys));
  const std::vector<Function> kept = originals.at(&record);
  for (int k = 0; k < kNumKeys; k++) {
    const bool stops = keys.has(static_cast<Key>(k)) && kept[static_cast<size_t>(k)];
    const Function wanted = kept[static_cast<size_t>(stops ? static_cast<int>(Key::kProfile) : k)];
    std::atomic_ref<Function>(table[k]).store(wanted, std::memory_order_release);
  }
  if (has_any)
    tables().active.insert(&record);
  else
    tables().active.erase(&record);
  tables().count = tables().active.size();
}

bool any() { return tables().count.load(std::memory_order_relaxed) != 0; }

Found find(const Operator& op, Key key, Stack& stack) {
  if ((kMathBits | Key::kSparse).has(key)) return {};  // those that follow get plain tensors
  if (!any() || !op.record()) return {};
  Stack arguments = stack;
  const Operator& which = called(op, arguments);
  Slot kernel = kernel_of(which, kind_of(key));
  if (!kernel) return {};
  stack = std::move(arguments);
  return {std::move(kernel), &which};
}

bool has(const Operator& op, Key key) {
  bool found = kernel_of(op, kind_of(key)) != nullptr;
  for (const auto& overload : overloads::of(op))
    found = found || kernel_of(*overload, kind_of(key));
  return found;
}

namespace {

bool run_composite(const OperatorRecord& record, KeySet keys, const void* const* args,
                   void* const* results) {
  if (!keys.has(Key::kCPU) || !is_active(record)) return false;
  const Operator& op = record.form(Form::kPlain);
  Stack stack;
  boxing::box(record, args, stack);
  if (!answer(op, kAllKeys, stack)) return false;
  give(op, stack, args, results);
  return true;
}

}  // namespace

bool run(const OperatorRecord& record, Form form, KeySet keys, const void* const* args,
         void* const* results) {
  if (!record.handlers) return run_composite(record, keys, args, results);
  if (keys.empty()) return false;
  const Key key = static_cast<Key>(keys.highest());
  const Function below = original(record, key);
  if (!below) return false;
  const KeySet below_keys = keys;
  const bool into = record.has(OperatorRecord::kInto);
  Stack stack;
  boxing::box(record, args + into, stack);
  if (form == Form::kOut) stack.emplace_back(*static_cast<const Tensor*>(args[0]));
  Stack plain = stack;
  const Operator& op = called(record.form(form), stack);
  if (const Slot kernel = kernel_for(op, key, keys, stack)) {
    call(op, *kernel, key, keys, stack);
    give(op, stack, args, results);
    return true;
  }
  if (form == Form::kPlain && run_as_shown(record.form(form), key, keys, plain)) {
    give(record.form(form), plain, args, results);
    return true;
  }
  const void* all[32] = {&below_keys};
  for (const void** to = all + 1; *args;) *to++ = *args++;
  record.invoke(below, all, results);
  return true;
}

}  // namespace taeda::overrides
