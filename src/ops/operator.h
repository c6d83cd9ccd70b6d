// How calls of an Operator run; the parts that operators of the table and registered ones share.
#pragma once

#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "ops/modes.h"

namespace taeda {

inline constexpr size_t kNumKernelKinds = 12;

// The kernels of a registered operator.
struct Operator::Kernels {
  using Slot = std::shared_ptr<const BoxedKernel>;
  mutable std::shared_mutex mutex;
  Slot slots[kNumKernelKinds];
  std::vector<std::pair<KernelKind, Slot>> covered;  // by later ones, the last one first to return

  Slot get(KernelKind kind) const {
    const std::shared_lock lock(mutex);
    return slots[static_cast<size_t>(kind)];
  }
};

// One layer of a call of a dispatched operator of the table: forward mode's or autograd's. What
// lies below it gets the other `keys`, also those of higher priority. False where the operator has
// no such layer, a gradient in one pass.
bool run_layer(const Operator& op, Key layer, KeySet keys, Stack& stack);

// A name without its namespace: "add" of "aten::add".
inline std::string_view short_name(std::string_view name) {
  return name.substr(name.find("::") + 2);
}

// The names of all overloads, those that one entry of the table covers among them.
std::vector<std::string> overload_names(std::string_view name);

// Makes, finds and takes back Operator objects. One a process.
class OperatorRegistry {
 public:
  static OperatorRegistry& get();

  static Operator* make(const OperatorRecord& record, Operator::Form form);
  // The registered operator; null where there is none.
  Operator* find(std::string_view name, std::string_view overload) const;
  std::vector<Operator*> all() const;
  Operator& define(Schema schema);
  void undefine(const Operator& op);
  static void set_kernel(Operator& op, KernelKind kind, Operator::Kernels::Slot kernel);
  // What it covered is back, unless a later kernel covers both.
  static void remove_kernel(Operator& op, KernelKind kind, const Operator::Kernels::Slot& kernel);

 private:
  mutable std::shared_mutex mutex_;
  std::vector<std::unique_ptr<Operator>> operators_;  // taken-back ones too: someone may hold them
  std::vector<Operator*> live_;
};

}  // namespace taeda
