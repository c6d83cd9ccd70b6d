// SavedTensor: a tensor that a backward node keeps.
//
// Saving is a reference and a version number; unpacking checks that the tensor was not written in
// between. A result of the node's own operator is saved as an alias without history, so that the
// node does not keep itself alive, and gets the node as its history when unpacked. Hooks
// (saved_tensors_hooks) may keep something else instead, on disk say.
#pragma once

#include <variant>

#include "autograd/node.h"

namespace taeda::autograd {

// What saved_tensors_hooks(pack, unpack) installs.
class SavedTensorHooks : public RefCounted {
 public:
  virtual Ref<RefCounted> pack(const Tensor& tensor) = 0;
  virtual Tensor unpack(RefCounted& packed) = 0;
};

// The calling thread's stack of hooks; the last one applies.
void push_saved_tensor_hooks(Ref<SavedTensorHooks> hooks);
void pop_saved_tensor_hooks();
// RuntimeError with `message` when hooks are pushed or used until enabled again.
void disable_saved_tensor_hooks(std::string message);
void enable_saved_tensor_hooks();
bool saved_tensor_hooks_enabled();
std::string saved_tensor_hooks_disabled_message();

class SavedTensor {
 public:
  SavedTensor() = default;
  // Three references each: out of line, since every generated node has them several times.
  SavedTensor(SavedTensor&&) noexcept;
  SavedTensor& operator=(SavedTensor&&) noexcept;
  ~SavedTensor();

  // An argument of the operator. Undefined tensors are fine and come back undefined.
  static SavedTensor input(const Tensor& tensor) {
    SavedTensor saved;
    if (tensor.defined()) saved.save(tensor, /*is_output=*/false);
    return saved;
  }
  // A result of the operator, after set_history or rebase_history.
  template <class N>
  static SavedTensor output(const Tensor& tensor, const Ref<N>&) {
    SavedTensor saved;
    if (tensor.defined()) saved.save(tensor, /*is_output=*/true);
    return saved;
  }

  // The tensor, with its history where grad mode records what is done with it. RuntimeError when it
  // was modified since, or when it was released. `node` is the node that keeps it.
  Tensor unpack(Node& node) const { return unpack(node, thread_modes.grad_enabled); }
  // For a user's own backward, which may switch recording on, or ask requires_grad: with its
  // history whatever the mode.
  Tensor unpack_recorded(Node& node) const { return unpack(node, /*with_history=*/true); }
  // Forgets the tensor; unpack() raises from now on.
  void reset();
  // For grad_fn._raw_saved_x.register_hooks(pack, unpack).
  void register_hooks(Node& node, Ref<SavedTensorHooks> hooks);
  bool defined() const { return defined_; }
  // The tensor's strides; none where only a hook knows it, or it was released.
  DimVector strides() const { return tensor_ ? DimVector(tensor_->strides) : DimVector(); }

 private:
  struct Hooked;
  void pack(const Tensor& tensor, const Ref<Node>& history, Ref<SavedTensorHooks> hooks);
  void save(const Tensor& tensor, bool is_output);
  Tensor unpack(Node& node, bool with_history) const;
  Tensor unpack_hooked(Hooked& hooked, const Ref<Node>& history, Node& node,
                       bool with_history) const;
  Tensor attach_history(const Tensor& tensor, const Ref<Node>& history, Node& node) const;
  [[noreturn]] void fail_version(const Tensor& tensor, const Ref<Node>& history,
                                 const Node& node) const;

  Ref<TensorImpl> tensor_;  // without history, unless a leaf
  Ref<Node> grad_fn_;       // of an argument that is no leaf
  Ref<RefCounted> hooked_;  // a Hooked; then tensor_ is null
  uint32_t version_ = 0;
  uint32_t output_nr_ = 0;
  bool defined_ = false;
  bool released_ = false;   // read and written under the node's lock
  bool is_output_ = false;  // its history is the node that keeps it
  bool requires_grad_ = false;
};

// A saved tensor that is shown as a view of it.
struct SavedView {
  SavedTensor* saved;
  Tensor (*view)(const Tensor&);
};

// What a node saved under one name; std::monostate is an optional value that was not given.
using SavedField =
    std::variant<std::monostate, SavedTensor*, SavedView, std::vector<SavedTensor>*, bool, int64_t,
                 double, DType, const Scalar*, IntSpan, Span<const double>, std::string_view>;

// Looks at what a node saved, for grad_fn._saved_NAME.
class SavedVisitor {
 public:
  virtual void field(const char* name, const SavedField& value) = 0;

  void show(const char* name, SavedTensor& t);
  void show(const char* name, std::vector<SavedTensor>& list);
  void show(const char* name, bool value);
  void show(const char* name, int64_t value);
  void show(const char* name, double value);
  void show(const char* name, DType value);
  void show(const char* name, const Scalar& value);
  void show(const char* name, const DimVector& sizes);
  void show(const char* name, const std::vector<double>& values);
  void show(const char* name, const std::string& text);
  template <class T>
  void show(const char* name, const std::optional<T>& value) {
    if (value) return show(name, *value);
    field(name, {});
  }

 protected:
  ~SavedVisitor() = default;
};

// Holds a node's lock while its saved tensors are reset; what they held is destroyed after the lock
// is free.
class ReleaseScope {
 public:
  explicit ReleaseScope(const Node& node);
  ~ReleaseScope();
  ReleaseScope(const ReleaseScope&) = delete;
  ReleaseScope& operator=(const ReleaseScope&) = delete;

 private:
  const Node& node_;
  std::vector<Ref<RefCounted>>* outer_objects_;
  std::vector<Ref<TensorImpl>>* outer_tensors_;
  std::vector<Ref<RefCounted>> objects_;
  std::vector<Ref<TensorImpl>> tensors_;
};

// A tensor or list of tensors that a node keeps (record.h has `stored` for other values), and back.
inline SavedTensor stored(const Tensor& t) { return SavedTensor::input(t); }
inline std::vector<SavedTensor> stored(TensorSpan tensors) {
  std::vector<SavedTensor> saved;
  saved.reserve(tensors.size());
  for (const Tensor& t : tensors) saved.push_back(SavedTensor::input(t));
  return saved;
}
inline Tensor unpacked(const SavedTensor& saved, Node& node) { return saved.unpack(node); }
inline TensorList unpacked(const std::vector<SavedTensor>& saved, Node& node) {
  TensorList tensors;
  tensors.reserve(saved.size());
  for (const SavedTensor& s : saved) tensors.push_back(s.unpack(node));
  return tensors;
}
inline TensorList unpack_all_recorded(const std::vector<SavedTensor>& saved, Node& node) {
  TensorList tensors;
  tensors.reserve(saved.size());
  for (const SavedTensor& s : saved) tensors.push_back(s.unpack_recorded(node));
  return tensors;
}

}  // namespace taeda::autograd
