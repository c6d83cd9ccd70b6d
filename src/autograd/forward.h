// Forward mode: a dual tensor carries its tangent, the derivative along one direction.
//
// There is one level at a time, entered by enter_dual_level(); leaving it drops every tangent. The
// tangent of a view is the same view of its base's tangent, so writes in place are seen through
// both. Generated code computes a result's tangent beside it, under ExcludeKeys(kForward), and
// calls set_tangent.
#pragma once

#include "autograd/record.h"

namespace taeda::autograd {

// RuntimeError when a level is active already: "Nested forward mode AD is not supported at the
// moment".
uint64_t enter_dual_level();
void exit_dual_level(uint64_t level);
// The active level; 0 where there is none.
uint64_t dual_level();

// The tangent of `t`; undefined when it (or t) has none.
Tensor tangent(const Tensor& t);
inline bool has_tangent(const Tensor& t) {
  return t.defined() && t.impl()->keys.has(Key::kForward);
}
inline bool any_tangent(TensorSpan list) {
  for (const Tensor& t : list)
    if (has_tangent(t)) return true;
  return false;
}
// Whether what is computed from these tensors is differentiated: recorded, or given a tangent.
template <class... Tensors>
bool differentiated(const Tensors&... tensors) {
  return needs_grad(tensors...) || (has_tangent(tensors) || ...);
}
// Tangents of a list, zeros where a tensor has none.
TensorList tangents_or_zeros(TensorSpan list);
// `t` where formulas need its value; they run under ExcludeKeys(kForward), which makes it one.
inline const Tensor& primal(const Tensor& t) { return t; }
inline TensorList primals(TensorSpan list) { return TensorList(list.begin(), list.end()); }

// Gives `result` (fresh, or just written in place) its tangent. Undefined: zero.
void set_tangent(const Tensor& result, const Tensor& tangent);
void set_tangent(const TensorList& results, const TensorList& tangents);

// make_dual: a view of `t` that carries `tangent`. unpack_dual: its two parts.
Tensor make_dual(const Tensor& t, const Tensor& tangent);
std::pair<Tensor, Tensor> unpack_dual(const Tensor& t);

// t for real tensors.
Tensor conjugate(const Tensor& t);
// a + b where undefined is zero.
Tensor sum_tangents(const Tensor& a, const Tensor& b);

// A saved alias keeps the tangent of the tensor it stands for, also when that is set later.
void share_tangent(const Tensor& alias, const Tensor& original);
void refresh_tangent_key(const Tensor& t);

[[noreturn]] void fail_no_forward_rule(std::string_view op);
template <class R>
R no_forward_rule(std::string_view op, R) {
  fail_no_forward_rule(op);
}

}  // namespace taeda::autograd
