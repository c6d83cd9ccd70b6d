#include "autograd/engine.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include "autograd/accumulate.h"
#include "autograd/anomaly.h"
#include "autograd/math.h"
#include "autograd/record.h"
#include "autograd/steps.h"
#include "base/fix_line.h"
#include "base/handover.h"
#include "base/interrupt.h"
#include "core/layout.h"
#include "device/device.h"
#include "device/event_pool.h"
#include "device/memory.h"
#include "taeda/autograd.h"
#include "taeda/warning.h"

namespace taeda::autograd {
namespace {

struct Capture {
  uint32_t input_nr;
  size_t index;  // in the results
};

struct NodeState {
  Node* node;
  uint32_t dependencies = 0;  // edges from nodes that have not run yet
  bool wanted = true;         // lies on a way to what was asked for
  bool runs = true;           // wanted for more than its captures
  bool queued = false;
  bool discovered = false;
  TensorList grads;
  std::vector<Capture> captures;
};

// Node* -> index of its state. Open addressing; grows at half full.
class NodeIndex {
 public:
  NodeIndex() : slots_(64) {}
  // The index of `node`, or `fresh` after storing that.
  uint32_t find_or_add(const Node* node, uint32_t fresh) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    Slot& slot = slot_of(node);
    if (!slot.node) {
      slot = {node, fresh};
      count_++;
    }
    return slot.state;
  }
  static constexpr uint32_t kNone = ~0u;
  uint32_t find(const Node* node) {
    const Slot& slot = slot_of(node);
    return slot.node ? slot.state : kNone;
  }

 private:
  struct Slot {
    const Node* node = nullptr;
    uint32_t state = 0;
  };
  Slot& slot_of(const Node* node) {
    const size_t mask = slots_.size() - 1;
    size_t i = (reinterpret_cast<uintptr_t>(node) >> 6) * 0x9e3779b97f4a7c15ull >> 20 & mask;
    while (slots_[i].node && slots_[i].node != node) i = (i + 1) & mask;
    return slots_[i];
  }
  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    Looks looks;
    for (const Slot& slot : old) {
      looks.after(1);
      if (slot.node) slot_of(slot.node) = slot;
    }
  }
  std::vector<Slot> slots_;
  size_t count_ = 0;
};

std::string invalid(const Node& node, std::string_view text) {
  return format("Function {} returned an {}", node.name(), text);
}

// Brings a gradient into the shape and dtype of what it is the gradient of, and one of a number to
// its device: numbers of the CPU stand beside tensors of any.
void validate(const Node& source, size_t i, const ResultMetadata& metadata, Tensor& gradient) {
  if (!metadata.known) return;
  if (gradient.sizes() != IntSpan(metadata.sizes)) {
    if (!is_expandable_to(metadata.sizes, gradient.sizes())) {
      fail(ErrorKind::kRuntime, "{}",
           invalid(
               source,
               format("invalid gradient at index {} - got {} but expected shape compatible with {}",
                      i, gradient.sizes(), IntSpan(metadata.sizes))));
    }
    gradient = math::sum_to_size(gradient, metadata.sizes);
  }
  if (gradient.dtype() != metadata.dtype) {
    TD_CHECK(is_inexact(metadata.dtype), "{}",
             invalid(source, format("invalid gradient at index {} - the input of dtype {} has none",
                                    i, metadata.dtype)));
    gradient = math::cast(gradient, metadata.dtype);
  }
  if (gradient.device() != metadata.device) {
    if (gradient.dim() == 0) return void(gradient = math::to_device(gradient, metadata.device));
    fail(ErrorKind::kRuntime, "{}",
         invalid(source, format("invalid gradient at index {} - expected device {} but got {}", i,
                                metadata.device, gradient.device())));
  }
}

// What batched tensors stand for may be shared.
bool owned_alone(const Tensor& t) {
  return !t.impl()->keys.has(Key::kBatched) && t.impl()->use_count() == 1 &&
         t.storage()->use_count() == 1 && !t.impl()->python_object();
}

// --- streams: a node runs on the stream of its forward, and what it receives from nodes of other
// streams waits for those ---

using cuda::Stream;

// The stream of a node whose results are on a device that has streams.
std::optional<Stream> stream_of(const Node& node) {
  if (!cuda::is_initialized()) [[likely]]
    return {};
  for (uint32_t i = 0; i < node.num_inputs(); i++) {
    const Device device = node.input_metadata(i).device;
    if (device.type == DeviceType::kCUDA)
      return Stream{device.index, node.extras() ? node.extras()->stream : 0};
  }
  return {};
}

// What `t` holds has been queued on `producer`; `consumer` uses it next.
void hand_over(const Tensor& t, Stream producer, Stream consumer) {
  if (producer == consumer || !t.defined()) return;
  consumer.wait(cuda::PooledEvent(producer).event());
  if (t.storage() && t.storage()->data() && t.device().index == consumer.device)
    cuda::record_stream(t.storage()->data(), consumer.device, consumer);
}

std::atomic<int64_t> next_task{0};

// One backward pass.
class Task {
 public:
  Task(const RunOptions& options, bool filtered) : options_(options), filtered_(filtered) {}

  const int64_t id = next_task.fetch_add(1, std::memory_order_relaxed);
  // The state of a node of the graph that it walks; null for others.
  const NodeState* find(const Node& node) {
    const uint32_t s = index_.find(&node);
    return s != NodeIndex::kNone && states_[s].discovered ? &states_[s] : nullptr;
  }
  std::vector<Node*> order();

  void discover(const std::vector<Edge>& roots, const std::vector<Edge>& inputs);
  void seed(const std::vector<Edge>& roots, TensorList& grads);
  void execute();
  bool wants(const Edge& edge) {
    const uint32_t s = index_.find(edge.node.get());
    if (s == NodeIndex::kNone) return false;
    const NodeState& state = states_[s];
    if (state.runs) return true;
    for (const Capture& c : state.captures)
      if (c.input_nr == edge.input_nr) return true;
    return false;
  }

  TensorList results;
  Node* current = nullptr;
  std::vector<std::function<void()>> callbacks;
  Task* outer = nullptr;

 private:
  uint32_t state_of(Node* node) {
    const uint32_t fresh = static_cast<uint32_t>(states_.size());
    const uint32_t found = index_.find_or_add(node, fresh);
    if (found == fresh) states_.push_back(NodeState{node, 0, true, true, false, false, {}, {}});
    return found;
  }
  void add(NodeState& state, uint32_t input_nr, Tensor gradient);
  void accumulate(NodeState& state, uint32_t input_nr, Tensor gradient);
  void note_leaf_stream(Stream stream) {
    if (std::find(leaf_streams_.begin(), leaf_streams_.end(), stream) == leaf_streams_.end())
      leaf_streams_.push_back(stream);
  }
  void wait_for_leaves();
  void enqueue(uint32_t s) {
    states_[s].queued = true;
    ready_.emplace_back(states_[s].node->sequence(), s);
    std::push_heap(ready_.begin(), ready_.end());
  }
  void run_node(uint32_t s);
  TensorList call(Node& node, TensorList grads);
  void route(const Node& node, TensorList& outgoing);

  const RunOptions& options_;
  const bool filtered_;
  NodeIndex index_;
  std::vector<NodeState> states_;
  std::vector<std::pair<uint64_t, uint32_t>> ready_;  // a heap: sequence number, state
  std::vector<Stream> leaf_streams_;                  // on which results of this pass were computed
  const std::vector<Edge>* roots_ = nullptr;
};

thread_local Task* current_task = nullptr;

// Backward passes that run inside one another on this thread. Each takes a few kilobytes of its
// stack, and of Python's depth, so beyond this many a fresh thread goes on, as in PyTorch.
thread_local int nested_runs = 0;
constexpr int kMostNestedRuns = 60;

constexpr size_t kSmallGraph = 16;  // nodes that fit what is allocated at the start of a pass

// Depth first with a stack of our own: states of successors are complete before their
// predecessors'.
void Task::discover(const std::vector<Edge>& roots, const std::vector<Edge>& inputs) {
  for (size_t i = 0; i < inputs.size(); i++) {
    if (!inputs[i]) continue;
    states_[state_of(inputs[i].node.get())].captures.push_back({inputs[i].input_nr, i});
  }
  struct Frame {
    uint32_t state;
    uint32_t next;
  };
  std::vector<Frame> stack;
  roots_ = &roots;
  states_.reserve(kSmallGraph);
  stack.reserve(kSmallGraph);
  ready_.reserve(kSmallGraph);
  Looks looks;
  const auto visit = [&](Node* node) {
    const uint32_t s = state_of(node);
    NodeState& state = states_[s];
    if (state.discovered) return s;
    state.discovered = true;
    // What is accumulated into runs, so that its hooks do; other inputs are only looked at, unless
    // something lies behind them.
    state.runs = filtered_ ? options_.accumulate && !state.captures.empty() : true;
    stack.push_back({s, 0});
    return s;
  };
  for (const Edge& root : roots) {
    if (!root) continue;
    visit(root.node.get());
    while (!stack.empty()) {
      const uint32_t s = stack.back().state;
      const EdgeList& edges = states_[s].node->next_edges();
      if (stack.back().next < edges.size()) {
        const Edge& edge = edges[stack.back().next++];
        looks.after(1);
        if (edge) states_[visit(edge.node.get())].dependencies++;
        continue;
      }
      stack.pop_back();
      if (!filtered_) continue;
      NodeState& state = states_[s];
      for (size_t i = 0; i < edges.size() && !state.runs; i++)
        if (edges[i]) state.runs = states_[index_.find(edges[i].node.get())].wanted;
      state.wanted = state.runs || !state.captures.empty();
    }
  }
}

void Task::seed(const std::vector<Edge>& roots, TensorList& grads) {
  for (size_t i = 0; i < roots.size(); i++) {
    if (roots[i])
      add(states_[state_of(roots[i].node.get())], roots[i].input_nr, std::move(grads[i]));
  }
  for (const Edge& root : roots) {
    if (!root) continue;
    const uint32_t s = state_of(root.node.get());
    if (states_[s].dependencies == 0 && !states_[s].queued && states_[s].wanted) enqueue(s);
  }
}

// The gradient was computed on the current stream of its device, and is added up on its receiver's.
void Task::add(NodeState& state, uint32_t input_nr, Tensor gradient) {
  const std::optional<Stream> stream = stream_of(*state.node);
  if (!stream || !gradient.defined() || gradient.device().type != DeviceType::kCUDA)
    return accumulate(state, input_nr, std::move(gradient));
  hand_over(gradient, Stream::current(gradient.device().index), *stream);
  const cuda::StreamGuard guard(*stream);
  accumulate(state, input_nr, std::move(gradient));
}

void Task::accumulate(NodeState& state, uint32_t input_nr, Tensor gradient) {
  if (state.grads.size() <= input_nr)
    state.grads.resize(std::max(state.node->num_inputs(), input_nr + 1));
  Tensor& sum = state.grads[input_nr];
  if (!sum.defined()) {
    sum = std::move(gradient);
  } else if (sum.is_sparse() || gradient.is_sparse()) [[unlikely]] {
    sum = sum.is_sparse() ? math::add(gradient, sum) : math::add(sum, gradient);
  } else if (!thread_modes.grad_enabled && sum.dtype() == gradient.dtype() &&
             sum.sizes() == gradient.sizes() && owned_alone(sum) &&
             is_dense_layout(sum.sizes(), sum.strides())) {
    math::accumulate(sum, gradient);
  } else {
    sum = math::add(sum, gradient);
  }
}

// The pass as it will be, or was, without its gradients.
std::vector<Node*> Task::order() {
  std::vector<uint32_t> dependencies(states_.size());
  const auto each_wanted_edge = [&](uint32_t s, const auto& use) {
    const EdgeList& edges = states_[s].node->next_edges();
    for (size_t i = 0; i < edges.size(); i++) {
      const uint32_t to = edges[i] ? index_.find(edges[i].node.get()) : NodeIndex::kNone;
      if (to != NodeIndex::kNone && states_[to].wanted) use(to);
    }
  };
  for (uint32_t s = 0; s < states_.size(); s++)
    if (states_[s].discovered && states_[s].wanted)
      each_wanted_edge(s, [&](uint32_t to) { dependencies[to]++; });
  std::vector<std::pair<uint64_t, uint32_t>> ready;
  std::vector<bool> queued(states_.size());
  const auto push = [&](uint32_t s) {
    if (dependencies[s] != 0 || queued[s] || !states_[s].wanted) return;
    queued[s] = true;
    ready.emplace_back(states_[s].node->sequence(), s);
    std::push_heap(ready.begin(), ready.end());
  };
  for (const Edge& root : *roots_)
    if (root) push(index_.find(root.node.get()));
  std::vector<Node*> nodes;
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end());
    const uint32_t s = ready.back().second;
    ready.pop_back();
    nodes.push_back(states_[s].node);
    each_wanted_edge(s, [&](uint32_t to) {
      dependencies[to]--;
      push(to);
    });
  }
  return nodes;
}

void Task::execute() {
  while (!ready_.empty()) {
    std::pop_heap(ready_.begin(), ready_.end());
    const uint32_t s = ready_.back().second;
    ready_.pop_back();
    check_interrupt();
    run_node(s);
  }
  wait_for_leaves();
}

// The calling thread's streams wait for what was computed on others.
void Task::wait_for_leaves() {
  for (const Stream stream : leaf_streams_) {
    const Stream caller = Stream::current(stream.device);
    if (caller != stream) caller.wait(cuda::PooledEvent(stream).event());
  }
}

void run_tensor_hooks(Node& node, TensorList& grads) {
  if (const TensorImpl* leaf = node.leaf()) {
    const AutogradMeta* meta = meta_of(leaf);
    if (!meta || !meta->hooks) return;
    const auto hooks = meta->hooks->pre_hooks;
    for (const Ref<PreHook>& hook : hooks) hook->run(grads);
    return;
  }
  NodeExtras* extras = node.extras();
  if (!extras) return;
  const auto hooks = extras->tensor_pre_hooks;  // copies: a hook may remove itself
  for (const Ref<PreHook>& hook : hooks) hook->run(grads);
  const auto retained = extras->retain_grad;
  for (const auto& [nr, hook] : retained) hook->run(grads);
}

void Task::run_node(uint32_t s) {
  Node& node = *states_[s].node;
  TensorList grads = std::move(states_[s].grads);
  if (grads.size() < node.num_inputs()) grads.resize(node.num_inputs());
  current = &node;
  const std::optional<Stream> stream = stream_of(node);
  std::optional<cuda::StreamGuard> guard;
  if (stream) {
    guard.emplace(*stream);
    if (node.leaf() || !states_[s].captures.empty()) note_leaf_stream(*stream);
  }
  if (node.extras() || node.leaf()) run_tensor_hooks(node, grads);
  for (const Capture& c : states_[s].captures) results[c.index] = grads[c.input_nr];
  if (!states_[s].runs) return;
  TensorList outgoing = call(node, std::move(grads));
  if (!options_.keep_graph) {
    const ReleaseScope scope(node);
    node.shown().release_saved();
  }
  route(node, outgoing);
}

TensorList Task::call(Node& node, TensorList grads) {
  try {
    if (!node.extras()) [[likely]] {
      TensorList outgoing = node.apply(std::move(grads));
      if (anomaly_enabled.load(std::memory_order_relaxed) && anomaly_checks_nan)
        check_nan(node, outgoing);
      return outgoing;
    }
    const auto pre_hooks = node.extras()->pre_hooks;
    for (const Ref<PreHook>& hook : pre_hooks) hook->run(grads);
    const auto post_hooks = node.extras()->post_hooks;
    TensorList incoming = post_hooks.empty() ? TensorList() : grads;
    TensorList outgoing = node.shown().apply(std::move(grads));
    for (const Ref<PostHook>& hook : post_hooks) hook->run(outgoing, incoming);
    if (anomaly_enabled.load(std::memory_order_relaxed) && anomaly_checks_nan)
      check_nan(node, outgoing);
    return outgoing;
  } catch (Error& error) {
    if (anomaly_enabled) warn_failure(node);
    std::string text = error.what();
    if (text.find(node.name()) != std::string::npos) throw;
    throw Error(error.kind(), before_fix(text, format(" [while running {}]", node.name())));
  } catch (...) {
    if (anomaly_enabled) warn_failure(node);
    throw;
  }
}

// Sends each gradient along its edge and queues the nodes that have all of theirs.
void Task::route(const Node& node, TensorList& outgoing) {
  const EdgeList& edges = node.next_edges();
  if (outgoing.size() > edges.size()) {
    bool surplus = false;
    for (size_t i = edges.size(); i < outgoing.size(); i++) surplus |= outgoing[i].defined();
    TD_CHECK(!surplus, "{}",
             invalid(node, format("invalid number of gradients - expected {}, but got {}",
                                  edges.size(), outgoing.size())));
  }
  for (size_t i = 0; i < edges.size(); i++) {
    const Edge& edge = edges[i];
    if (!edge) continue;
    const uint32_t s = index_.find(edge.node.get());
    if (s == NodeIndex::kNone) continue;
    NodeState& state = states_[s];
    state.dependencies--;
    if (!state.wanted) continue;
    if (i < outgoing.size() && outgoing[i].defined()) {
      validate(node, i, edge.node->input_metadata(edge.input_nr), outgoing[i]);
      add(state, edge.input_nr, std::move(outgoing[i]));
    }
    if (state.dependencies == 0) enqueue(s);
  }
}

}  // namespace

bool Node::task_wants(const Edge& edge) { return current_task && current_task->wants(edge); }

TensorList Engine::run(const std::vector<Edge>& roots, TensorList grads,
                       const std::vector<Edge>& inputs, const RunOptions& options) {
  if (nested_runs < kMostNestedRuns) return run_here(roots, std::move(grads), inputs, options);
  TensorList results;
  Task* const outer = current_task;
  const bool outer_filtered = Node::filtered_;
  run_on_fresh_thread([&] {
    current_task = outer;
    Node::filtered_ = outer_filtered;
    results = run_here(roots, std::move(grads), inputs, options);
  });
  return results;
}

TensorList Engine::run_here(const std::vector<Edge>& roots, TensorList grads,
                            const std::vector<Edge>& inputs, const RunOptions& options) {
  if (options.create_graph && options.accumulate) {
    TD_WARN_ONCE(
        "Using backward() with create_graph=True will create a reference cycle between the "
        "parameter and its gradient, which can cause a memory leak. Use autograd.grad to create "
        "the graph, or set the .grad of the parameters to None after use to break the cycle.");
  }
  const bool filtered = !inputs.empty();
  Task task(options, filtered);
  task.results.resize(inputs.size());
  const GradMode mode(options.create_graph);

  struct Enter {
    Task* outer = current_task;
    bool outer_filtered = Node::filtered_;
    Enter(Task* task, bool filtered) {
      task->outer = outer;
      current_task = task;
      Node::filtered_ = filtered;
      nested_runs++;
    }
    ~Enter() {
      current_task = outer;
      Node::filtered_ = outer_filtered;
      nested_runs--;
    }
  } enter(&task, filtered);

  const PassScope pass;
  task.discover(roots, inputs);
  task.seed(roots, grads);
  grads.clear();
  task.execute();
  for (size_t i = 0; i < task.callbacks.size(); i++) task.callbacks[i]();
  return std::move(task.results);
}

Node* Engine::current_node() { return current_task ? current_task->current : nullptr; }
bool Engine::running() { return current_task != nullptr; }
bool Engine::filtered() { return Node::filtered_; }
int64_t Engine::task_id() { return current_task ? current_task->id : -1; }
bool Engine::reaches(const Node& node) {
  const NodeState* state = current_task ? current_task->find(node) : nullptr;
  return state && state->wanted;
}
bool Engine::reaches(uintptr_t address, uint64_t sequence) {
  // The states' nodes are alive: only their addresses are compared until one is found.
  const NodeState* state =
      current_task ? current_task->find(*reinterpret_cast<const Node*>(address)) : nullptr;
  return state && state->wanted && state->node->sequence() == sequence;
}
std::vector<int64_t> Engine::task_ids() {
  std::vector<int64_t> ids;
  for (const Task* task = current_task; task; task = task->outer) ids.push_back(task->id);
  return ids;
}
bool Engine::only_captures(const Node& node) {
  return reaches(node) && !current_task->find(node)->runs;
}
std::vector<Node*> Engine::execution_order() {
  return current_task ? current_task->order() : std::vector<Node*>();
}
void Engine::queue_callback(std::function<void()> callback) {
  TD_CHECK(current_task, "Final callbacks can only be installed during backward pass.");
  current_task->callbacks.push_back(std::move(callback));
}

}  // namespace taeda::autograd
