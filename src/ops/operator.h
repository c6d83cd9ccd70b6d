// How calls of an Operator run; the parts that operators of the table and registered ones share.
#pragma once

#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "ops/modes.h"

namespace taeda {

inline constexpr size_t kNumKernelKinds = 12;

// A kernel of kAutograd that answers some calls only; for others the one that it covers does, or
// none. Registered as any BoxedKernel.
struct LimitedKernel {
  BoxedKernel function;
  KeySet devices = kDeviceKeys;  // of the arguments
  bool where_recorded = false;   // only calls that may be recorded, or carry tangents
  void operator()(const Operator& op, KeySet keys, Stack& stack) const {
    function(op, keys, stack);
  }
};

// What programs have registered for an operator, and PyTorch's overloads of which an entry's form
// stands for several (overloads.h).
struct Operator::Kernels {
  using Slot = std::shared_ptr<const BoxedKernel>;   // an empty function: the key is passed by
  const Operator* entry = nullptr;                   // of an overload
  bool is_seen = true;                               // OverloadRecord::is_seen
  std::vector<std::unique_ptr<Operator>> overloads;  // of an entry's form
  mutable std::shared_mutex mutex;
  Slot slots[kNumKernelKinds];
  std::vector<std::pair<KernelKind, Slot>> covered;  // by later ones, the last one first to return

  Slot get(KernelKind kind) const {
    const std::shared_lock lock(mutex);
    return slots[static_cast<size_t>(kind)];
  }
  // The one for calls with these keys.
  Slot get(KernelKind kind, KeySet keys) const;
};

inline constexpr KeySet kAllKeys = KeySet::below(static_cast<Key>(kNumKeys));

// Whether calls of this thread pass kernels of kAutograd by: below a layer, where a program has
// gone below autograd (torch._C._AutoDispatchBelowAutograd), and in inference mode.
inline bool is_below_autograd() { return thread_modes.excluded.has(Key::kAutograd); }

// For what a key's kernel is registered.
KernelKind kind_of(Key key);

// One layer of a call of a dispatched operator of the table: forward mode's or autograd's. What
// lies below it gets the other `keys`, also those of higher priority. False where the operator has
// no such layer, a gradient in one pass.
bool run_layer(const Operator& op, Key layer, KeySet keys, Stack& stack);

// A name without its namespace: "add" of "aten::add".
inline std::string_view short_name(std::string_view name) {
  return name.substr(name.find("::") + 2);
}

// Makes, finds and takes back Operator objects. One a process.
class OperatorRegistry {
 public:
  using Kernels = Operator::Kernels;
  static OperatorRegistry& get();

  static Operator* make(const OperatorRecord& record, Operator::Form form);
  static const Kernels& kernels_of(const Operator& op) { return *op.kernels_; }
  // The registered operator; null where there is none.
  Operator* find(std::string_view name, std::string_view overload) const;
  std::vector<Operator*> all() const;
  Operator& define(Schema schema);
  void undefine(const Operator& op);
  // What answers for a program's operators that have nothing for this kind, nor a composite kernel;
  // an empty function passes the kind by. Null: there is none.
  Operator::Kernels::Slot fallback(KernelKind kind) const;
  void set_fallback(KernelKind kind, Operator::Kernels::Slot kernel);
  static void set_kernel(Operator& op, KernelKind kind, Operator::Kernels::Slot kernel);
  // After kernels of an operator came or went: where it is one of the table's, calls find them.
  static void refresh(const Operator& op);
  // What it covered is back, unless a later kernel covers both.
  static void remove_kernel(Operator& op, KernelKind kind, const Operator::Kernels::Slot& kernel);

 private:
  mutable std::shared_mutex mutex_;
  std::vector<std::unique_ptr<Operator>> operators_;  // taken-back ones too: someone may hold them
  std::vector<Operator*> live_;
  Kernels::Slot fallbacks_[kNumKernelKinds];
  std::atomic<bool> any_fallback_{false};
};

}  // namespace taeda
