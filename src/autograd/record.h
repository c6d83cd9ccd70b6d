// What the code of an operator calls to become differentiable.
//
// A differentiable operator is a Node class and a function that fills it. By hand, for mul:
//
//   struct MulNode final : Node {
//     SavedTensor self_, other_;
//     const char* name() const override { return "MulBackward0"; }
//     void release_saved() override { self_.reset(); other_.reset(); }
//     TensorList apply(TensorList&& grads) override {
//       TensorList out(2);
//       const Tensor& gy = grads[0];
//       if (!gy.defined()) return out;
//       if (should_compute(0)) out[0] = mul(gy, other_.unpack(*this));
//       if (should_compute(1)) out[1] = mul(gy, self_.unpack(*this));
//       return out;
//     }
//   };
//   Tensor mul_with_history(const Tensor& self, const Tensor& other) {
//     if (!needs_grad(self, other)) return mul_below(self, other);
//     const Ref<MulNode> node = make_ref<MulNode>();
//     set_edges(*node, self, other);  // before the call, which may change them
//     node->self_ = SavedTensor::input(self);
//     node->other_ = SavedTensor::input(other);
//     Tensor result = mul_below(self, other);
//     set_history(result, node);
//     return result;
//   }
//
// Gradients that a node returns may still have broadcast dimensions or another dtype than the
// input: the engine sums and casts them. An in-place operator calls check_inplace first and
// rebase_history instead of set_history. A view operator calls track_view, whether or not anything
// requires grad. Results saved for backward are saved after their history is set. The order of
// calls here is the one that generated code follows.
#pragma once

#include <tuple>

#include "autograd/meta.h"
#include "autograd/saved.h"

namespace taeda::autograd {

bool requires_grad_slow(const TensorImpl* impl);

inline bool requires_grad(const TensorImpl* impl) {
  if (!impl || !impl->keys.has(Key::kAutograd)) return false;
  if (!impl->view_base && !impl->inference) return true;
  return requires_grad_slow(impl);
}
inline bool requires_grad(const Tensor& t) { return requires_grad(t.impl()); }
inline bool requires_grad(TensorSpan list) {
  for (const Tensor& t : list)
    if (requires_grad(t)) return true;
  return false;
}

// Whether a call on these tensors and tensor lists must be recorded.
template <class... Tensors>
bool needs_grad(const Tensors&... tensors) {
  return thread_modes.grad_enabled && (requires_grad(tensors) || ...);
}

// Where the gradient of `t` goes: its grad_fn, a leaf's accumulator, nowhere.
Edge gradient_edge(const Tensor& t);
// The same with the grad_fn that the tensor has now (a view's may have to be made anew).
Ref<Node> grad_fn(const Tensor& t);

namespace detail {
inline void add_edges(EdgeList& list, const Tensor& t) {
  Edge& edge = list.emplace_back();
  if (requires_grad(t)) edge = gradient_edge(t);
}
inline void add_edges(EdgeList& list, TensorSpan tensors) {
  for (const Tensor& t : tensors) add_edges(list, t);
}
inline void add_edges(EdgeList& list, const TensorList& tensors) {
  add_edges(list, TensorSpan(tensors));
}
void set_result(const Tensor& result, Node* node, uint32_t output_nr);
}  // namespace detail

// One edge a tensor, lists one an element.
template <class... Tensors>
EdgeList edges(const Tensors&... tensors) {
  EdgeList list;
  (detail::add_edges(list, tensors), ...);
  return list;
}

// The same as the edges of `node`, which has none yet.
template <class... Tensors>
void set_edges(Node& node, const Tensors&... tensors) {
  (detail::add_edges(node.edges_to_fill(), tensors), ...);
}

// Makes `node` the history of result number `output_nr`. Results that cannot require grad
// (integers, undefined) only take their number.
template <class N>
void set_history(const Tensor& result, const Ref<N>& node, uint32_t output_nr = 0) {
  detail::set_result(result, node.get(), output_nr);
}
template <class... Ts, class N>
void set_history(const std::tuple<Ts...>& results, const Ref<N>& node) {
  uint32_t output_nr = 0;
  std::apply([&](const auto&... r) { (detail::set_result(r, node.get(), output_nr++), ...); },
             results);
}
template <class N>
void set_history(const TensorList& results, const Ref<N>& node) {
  for (uint32_t i = 0; i < results.size(); i++) detail::set_result(results[i], node.get(), i);
}

// Before an in-place operator runs: RuntimeError where it may not. `needs`: it will be recorded.
void check_inplace(std::string_view op, const Tensor& self, bool needs);
// After it: `node` takes self's history through the operator. For a view, the base's history takes
// up the write, and all its views follow.
void rebase_history(const Tensor& self, const Ref<Node>& node, uint32_t output_nr = 0);

// A copy of the value that an in-place operator is about to overwrite, with its history.
Tensor copy_for_backward(const Tensor& t);
// Whether a call that writes `into` (undefined: a new result) writes `t` with it.
inline bool is_overwritten(const Tensor& t, const Tensor& into) {
  return into.defined() && t.defined() && into.storage() == t.storage();
}

// `t` as its derivative reads it later: a copy where the call overwrites it.
inline Tensor kept(const Tensor& t, bool overwritten) {
  return overwritten && t.defined() ? copy_for_backward(t) : t;
}

// Those whose levels keep apart what is differentiated inside and outside.
inline constexpr KeySet kLevelKeys = KeySet(Key::kBatched) | Key::kFunctionalize;

// Inside of a level: whether what `t` is to the code outside requires grad or carries a tangent.
bool differentiated_outside_of_level(const Tensor& t);
inline bool differentiated_outside_of_level(TensorSpan list) {
  for (const Tensor& t : list)
    if (differentiated_outside_of_level(t)) return true;
  return false;
}

// `self` as an operator reads it whose result then overwrites it: a copy where the call is recorded
// and backward may need the old values, also those of the code outside of a level.
template <class... Tensors>
Tensor read_before_write(const Tensor& self, const Tensors&... others) {
  const bool in_level = !(thread_modes.included & kLevelKeys).empty();
  const bool recorded =
      needs_grad(self, others...) || (in_level && (differentiated_outside_of_level(self) || ... ||
                                                   differentiated_outside_of_level(others)));
  return recorded ? copy_for_backward(self) : self;
}

// Notes that `result` is a view of `base`, so that an in-place write to either reaches the other's
// history.
void track_view(const Tensor& result, const Tensor& base, uint32_t flags = 0);
inline void track_view(const TensorList& results, const Tensor& base) {
  for (const Tensor& t : results) track_view(t, base, kOneOfSeveral);
}

// Gives `copy`, an alias without history, the history "equal to `original`".
void pass_through(const Tensor& copy, const Tensor& original);

// The differentiable view's base; undefined for others.
inline Tensor view_base(const Tensor& t) { return Tensor(t.impl()->view_base); }

// A value that a node keeps, owning what the argument borrows.
template <class T>
T stored(const T& value) {
  return value;
}
inline DimVector stored(IntSpan value) { return DimVector(value); }
inline std::optional<DimVector> stored(const OptInts& value) {
  return value ? std::optional<DimVector>(DimVector(*value)) : std::nullopt;
}
inline std::string stored(std::string_view value) { return std::string(value); }
inline std::optional<std::string> stored(const std::optional<std::string_view>& value) {
  return value ? std::optional<std::string>(std::string(*value)) : std::nullopt;
}
inline std::vector<double> stored(Span<const double> value) { return value.vec(); }
inline std::optional<std::vector<double>> stored(const std::optional<Span<const double>>& value) {
  return value ? std::optional<std::vector<double>>(value->vec()) : std::nullopt;
}

}  // namespace taeda::autograd
