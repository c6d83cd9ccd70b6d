// Node: one step of the backward pass; Edge: where a gradient flows next.
//
// An operator that must be differentiated makes a Node that knows its inputs' edges and keeps what
// its formulas need; the operator's results point at it (AutogradMeta::grad_fn). A node is shared
// by its results and by the nodes that consumed them, and goes with the last of these; destruction
// of a graph is iterative, so its depth is no limit. Nodes come from thread-local free lists. A
// node's edges and saved values are written only while its operator records it; several threads may
// then run it at once.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "taeda/tensor.h"

namespace taeda::autograd {

class Node;
class SavedVisitor;

// The gradient of result `input_nr` of the operator that made `node`. Empty where nothing wants a
// gradient.
struct Edge {
  Ref<Node> node;
  uint32_t input_nr = 0;
  explicit operator bool() const { return static_cast<bool>(node); }
};

// A vector of edges whose first three live inside. Destroying and moving are out of line: every
// generated layer would do so.
class EdgeList {
 public:
  EdgeList() = default;
  EdgeList(EdgeList&& other) noexcept;
  ~EdgeList();
  EdgeList& operator=(EdgeList&& other) noexcept;
  // Appends an empty edge; the reference is valid until the next one.
  Edge& emplace_back() { return size_ < kInline ? inline_[size_++] : emplace_outside(); }
  void push_back(Edge edge) { emplace_back() = std::move(edge); }
  size_t size() const { return size_; }
  const Edge& operator[](size_t i) const {
    return i < kInline ? inline_[i] : (*more_)[i - kInline];
  }
  Edge& operator[](size_t i) { return i < kInline ? inline_[i] : (*more_)[i - kInline]; }

 private:
  static constexpr size_t kInline = 3;
  Edge& emplace_outside();
  Edge inline_[kInline];
  std::unique_ptr<std::vector<Edge>> more_;
  size_t size_ = 0;
};

// What is known of a result without keeping it: enough to make its gradient of zeros, and to check
// a gradient.
struct ResultMetadata {
  DimVector sizes;
  DType dtype = DType::kFloat32;
  Device device;
  bool known = false;

  ResultMetadata() = default;
  explicit ResultMetadata(const Tensor& result)
      : sizes(result.sizes()), dtype(result.dtype()), device(result.device()), known(true) {}
  Tensor zeros() const;
};

// Sees, and may replace, the gradients that arrive at a node.
class PreHook : public RefCounted {
 public:
  virtual void run(TensorList& grads) = 0;
};
// Sees, and may replace, the gradients that a node hands on; `incoming` are those it received.
class PostHook : public RefCounted {
 public:
  virtual void run(TensorList& outgoing, const TensorList& incoming) = 0;
};
// Called after a leaf's grad was accumulated.
class AccumulateHook : public RefCounted {
 public:
  virtual void run(const Tensor& leaf) = 0;
};

// A Python stack, captured cheaply and turned into text only when an error needs it.
class Traceback : public RefCounted {
 public:
  virtual std::string text() const = 0;
};

// What few nodes have.
struct NodeExtras {
  std::vector<Ref<PreHook>> tensor_pre_hooks;                  // of results of this node
  std::vector<std::pair<uint32_t, Ref<PreHook>>> retain_grad;  // result number and its hook
  std::vector<Ref<PreHook>> pre_hooks;
  std::vector<Ref<PostHook>> post_hooks;
  Ref<Traceback> forward_traceback;    // anomaly mode: where the forward call stood
  Ref<Node> parent;                    // anomaly mode: the node whose backward made this one
  Ref<RefCounted> metadata;            // grad_fn.metadata, a Python dictionary
  Ref<Node> steps;                     // what runs and is shown instead of the node (steps.h)
  std::atomic<void*> python{nullptr};  // the node's Python object, borrowed
  int64_t stream = 0;                  // of its device, on which the forward ran (0: the default)
};

class Node : public RefCounted {
 public:
  Node();
  ~Node() override;

  // Gradients of the operator's results (undefined: zero) to gradients of its inputs, one an edge
  // (undefined: zero).
  virtual TensorList apply(TensorList&& grads) = 0;
  // "MulBackward0"
  virtual const char* name() const = 0;
  // Drops what was saved; a later apply() raises "Trying to backward through the graph a second
  // time".
  virtual void release_saved() {}
  // Shows what was saved, each under the name of its argument or result.
  virtual void visit_saved(SavedVisitor&) {}
  // For a node that is one step here and several in PyTorch's graph (steps.h): the last of those,
  // which takes over what this one keeps; null for others.
  virtual Ref<Node> make_steps() { return {}; }
  // Whether apply() runs Python code.
  virtual bool is_python() const { return false; }
  // The leaf whose grad this node accumulates, for the nodes that end a graph.
  virtual TensorImpl* leaf() const { return nullptr; }

  // What runs and is shown for this node: itself, or its steps.
  Node& shown() {
    const NodeExtras* extras = this->extras();
    return extras && extras->steps ? *extras->steps : *this;
  }
  const EdgeList& next_edges() const { return const_cast<Node*>(this)->shown().next_edges_; }
  // For who records the operator.
  EdgeList& edges_to_fill() { return next_edges_; }
  void set_next_edges(EdgeList&& edges) { next_edges_ = std::move(edges); }
  const Edge& next_edge(size_t i) const { return next_edges_[i]; }

  bool has_edge(size_t i) const { return static_cast<bool>(next_edges_[i]); }
  // Whether anyone wants the gradient of input i (the i-th edge).
  bool should_compute(size_t i) const {
    return i < next_edges_.size() && next_edges_[i] && (!filtered_ || task_wants(next_edges_[i]));
  }
  bool should_compute_any(size_t first, size_t count) const {
    for (size_t i = first; i < first + count; i++)
      if (should_compute(i)) return true;
    return false;
  }

  // Results of the operator = gradients that apply() receives.
  uint32_t num_inputs() const { return num_inputs_; }
  const ResultMetadata& input_metadata(uint32_t i) const {
    return i == 0 ? metadata_ : (*more_metadata_)[i - 1];
  }
  // Notes result number i, and on which stream a device computes it. `result` may be undefined.
  void set_input_metadata(uint32_t i, const Tensor& result);
  // Of the only result.
  void set_input_metadata(ResultMetadata metadata) {
    num_inputs_ = 1;
    metadata_ = std::move(metadata);
  }

  // Later operators have higher numbers (by thread); the engine runs the highest ready one first.
  uint64_t sequence() const { return sequence_; }
  void set_sequence(uint64_t sequence) { sequence_ = sequence; }

  // Null until something is put there.
  NodeExtras* extras() const { return extras_.load(std::memory_order_acquire); }
  NodeExtras& make_extras();

  // The node that applies this one to part of a tensor (an in-place operator on a view), if any; it
  // owns this node.
  Node* owner() const { return owner_; }
  void set_owner(Node* owner) { owner_ = owner; }

  // Guards saved tensors against a release by another thread. Held for a few instructions.
  void lock() const {
    while (lock_.test_and_set(std::memory_order_acquire)) {
    }
  }
  void unlock() const { lock_.clear(std::memory_order_release); }

  static void* operator new(size_t size);
  static void operator delete(void* object, size_t size);

  // Nodes alive in the process: for tests of leaks.
  static int64_t live_count();

 protected:
  // Destroys nodes one after another, not one inside another.
  void last_release() const override;

 private:
  friend class Engine;
  static bool task_wants(const Edge& edge);
  // True while the running backward on this thread wants the gradients of some inputs only.
  static constinit thread_local bool filtered_ __attribute__((tls_model("initial-exec")));

  uint32_t num_inputs_ = 0;
  mutable std::atomic_flag lock_;
  uint64_t sequence_;
  EdgeList next_edges_;
  ResultMetadata metadata_;
  std::unique_ptr<std::vector<ResultMetadata>> more_metadata_;
  std::atomic<NodeExtras*> extras_{nullptr};
  Node* owner_ = nullptr;
  mutable const Node* next_dying_ = nullptr;
};

}  // namespace taeda::autograd
