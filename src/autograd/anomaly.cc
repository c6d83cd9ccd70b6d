#include "autograd/anomaly.h"

#include <map>
#include <mutex>

#include "autograd/engine.h"
#include "autograd/math.h"
#include "base/fork.h"
#include "taeda/autograd.h"
#include "taeda/warning.h"

namespace taeda::autograd {
namespace {

Ref<Traceback> capture_nothing() { return {}; }

// The last noted write into each storage. Storages are held, so that an address is not taken for a
// later one's; the table lives as long as anomaly mode does.
struct Mutation {
  Ref<Storage> storage;
  std::string op;
  Ref<Traceback> where;
};
struct Mutations {
  Mutations() { protect_over_fork(mutex); }
  std::mutex mutex;
  std::map<const Storage*, Mutation> last;
};
Mutations& mutations() {
  static Mutations& instance = *new Mutations;
  return instance;
}
// Beyond this many storages the ones that nobody else uses are forgotten.
constexpr size_t kManyMutations = 1024;

}  // namespace

PythonBridge python_bridge{capture_nothing, "AnomalyMode::set(true)"};
std::atomic<bool> anomaly_enabled{false}, anomaly_checks_nan{true};

void note_creation(Node& node) {
  NodeExtras& extras = node.make_extras();
  extras.forward_traceback = python_bridge.capture();
  if (Node* parent = Engine::current_node()) extras.parent = Ref<Node>(parent);
}

void note_mutation(std::string_view op, const Tensor& written) {
  Ref<Traceback> where = python_bridge.capture();
  std::map<const Storage*, Mutation> dropped;  // destroyed after the lock is free
  Mutations& all = mutations();
  std::lock_guard<std::mutex> lock(all.mutex);
  if (all.last.size() >= kManyMutations) {
    for (auto it = all.last.begin(); it != all.last.end();) {
      if (it->second.storage->use_count() > 1)
        ++it;
      else
        dropped.insert(all.last.extract(it++));
    }
  }
  const Ref<Storage>& storage = written.storage();
  Mutation& entry = all.last[storage.get()];
  std::swap(entry, dropped[nullptr]);
  entry = Mutation{storage, std::string(op), std::move(where)};
}

std::string mutation_text(const Tensor& tensor) {
  Mutations& all = mutations();
  std::string op;
  Ref<Traceback> where;
  {
    std::lock_guard<std::mutex> lock(all.mutex);
    const auto found = all.last.find(tensor.storage().get());
    if (found == all.last.end()) return {};
    op = found->second.op;
    where = found->second.where;
  }
  return where ? format("last written by {} here:\n{}", op, where->text())
               : format("last written by {}.", op);
}

namespace {

// Warnings may be exceptions, but the failure is what the caller must learn of.
void warn_anyway(const std::string& text) {
  try {
    warn(text);
  } catch (...) {
  }
}

}  // namespace

void warn_failure(const Node& node) {
  const NodeExtras* extras = node.extras();
  if (extras && extras->forward_traceback) {
    warn_anyway(format("Error detected in {}. Traceback of forward call that caused the error:\n{}",
                       node.name(), extras->forward_traceback->text()));
  } else {
    warn_anyway(
        format("Error detected in {}. No forward pass information available. Enable detect "
               "anomaly during forward pass for more information.",
               node.name()));
  }
  // The backward that made the node, and what made that one, a warning each.
  const Node* parent = extras ? extras->parent.get() : nullptr;
  for (int depth = 0; parent && depth < 8; depth++) {
    extras = parent->extras();
    warn_anyway(
        format("\n\nPrevious calculation was induced by {}. Traceback of forward call that "
               "induced the previous calculation:\n{}",
               parent->name(),
               extras && extras->forward_traceback
                   ? extras->forward_traceback->text()
                   : std::string("No forward pass information available.")));
    parent = extras ? extras->parent.get() : nullptr;
  }
}

void check_nan(const Node& node, const TensorList& outputs) {
  for (size_t i = 0; i < outputs.size(); i++) {
    if (!outputs[i].defined() || !math::has_nan(outputs[i])) continue;
    // The stack of the forward call is in the warning that goes with every failure.
    fail(ErrorKind::kRuntime, "Function '{}' returned nan values in its {}th output.", node.name(),
         i);
  }
}

}  // namespace taeda::autograd

namespace taeda {

bool AnomalyMode::enabled() { return autograd::anomaly_enabled; }
bool AnomalyMode::checks_nan() { return autograd::anomaly_checks_nan; }
void AnomalyMode::set(bool enabled, bool check_nan) {
  autograd::anomaly_enabled = enabled;
  autograd::anomaly_checks_nan = check_nan;
  if (enabled) return;
  std::map<const Storage*, autograd::Mutation> dropped;
  std::lock_guard<std::mutex> lock(autograd::mutations().mutex);
  dropped.swap(autograd::mutations().last);
}

}  // namespace taeda
