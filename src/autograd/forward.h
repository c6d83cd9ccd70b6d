// Forward mode: a dual tensor carries its tangents, the derivatives along one direction a level.
//
// Levels nest to any depth: each has a number, those entered later higher ones, and leaving a level
// drops its tangents. A tensor may have a tangent at several levels, and the tangent at a level is
// a tensor that may itself carry tangents of the levels below. The forward layer of an operator
// handles the highest level L that it sees among its arguments: under BelowLevel(L), where no
// tangent of L or above is seen, it computes the result and then the result's tangent at L. Both
// pass through the layer again for the levels below. A tensor below L is thus the tensor itself, so
// writes in place and histories need nothing of their own.
//
// The tangent of a view is the same view of its base's tangent, so writes in place are seen through
// both. Numbers are the process's: a tensor that another thread made dual keeps its tangents.
#pragma once

#include "autograd/record.h"

namespace taeda::autograd {

// Starts a level of the calling thread and returns its number, which is not 0.
uint64_t enter_dual_level();
// Ends it. RuntimeError unless it is the last one that its thread has entered.
void exit_dual_level(uint64_t level);
// The calling thread's innermost level; where it has none, the process's; 0 where there is none.
uint64_t dual_level();
bool any_dual_level();

// Which levels the calling thread sees, until the end of the scope.
class LevelScope {
 public:
  LevelScope(const LevelScope&) = delete;
  LevelScope& operator=(const LevelScope&) = delete;

 protected:
  LevelScope();
  ~LevelScope();

  const uint64_t outer_limit_;
  const KeySet outer_excluded_;
};

// Levels from `level` on are not seen; for 0, none is. Where no level lies below, operators skip
// the forward layer.
class BelowLevel : public LevelScope {
 public:
  explicit BelowLevel(uint64_t level);
};

// `view` was just made from `of`: what gives its base a tangent later gives it one too.
void follow_base(const Tensor& view, const Tensor& of);

// Whether `t` may carry a tangent, perhaps that of its base.
inline bool has_tangent(const Tensor& t) {
  if (!t.defined()) return false;
  const TensorImpl& impl = *t.impl();
  return impl.keys.has(Key::kForward) ||
         (impl.view_base && impl.view_base->keys.has(Key::kForward));
}
// The highest level that is seen and at which `t` has a tangent; 0 where there is none.
uint64_t level_of(const Tensor& t);
inline uint64_t level_of(TensorSpan list) {
  uint64_t level = 0;
  for (const Tensor& t : list) level = std::max(level, level_of(t));
  return level;
}
inline uint64_t level_of(const TensorList& list) { return level_of(TensorSpan(list)); }
// The same among all arguments of an operator.
template <class... Tensors>
uint64_t top_level(const Tensors&... tensors) {
  uint64_t level = 0;
  ((level = std::max(level, level_of(tensors))), ...);
  return level;
}

// The tangent of `t` at a level; undefined where it (or t) has none.
Tensor tangent(const Tensor& t, uint64_t level);
// Of a view: what its base's tangents, at the levels seen, have for it is its own from now on.
void keep_tangents_of_base(const Tensor& view);
bool any_tangent(TensorSpan list, uint64_t level);
// Tangents of a list, zeros where a tensor has none.
TensorList tangents_or_zeros(TensorSpan list, uint64_t level);

// Whether what a batched tensor stands for, outside of vmap, requires grad or carries a tangent.
bool differentiated_below(const Tensor& t);
inline bool differentiated_outside(const Tensor& t) {
  return t.defined() && t.impl()->keys.has(Key::kBatched) && differentiated_below(t);
}
inline bool differentiated_outside(TensorSpan list) {
  for (const Tensor& t : list)
    if (differentiated_outside(t)) return true;
  return false;
}

// Whether what is computed from these tensors is differentiated: recorded, or given a tangent.
template <class... Tensors>
bool differentiated(const Tensors&... tensors) {
  return needs_grad(tensors...) ||
         (!thread_modes.excluded.has(Key::kForward) && top_level(tensors...) != 0) ||
         (differentiated_outside(tensors) || ...);
}

// Gives `result` (fresh, or just written in place) its tangent at a level. Undefined: zero.
void set_tangent(const Tensor& result, const Tensor& tangent, uint64_t level);
void set_tangent(const TensorList& results, const TensorList& tangents, uint64_t level);
// Just written in place with what has no derivative: its tangents at the levels seen become zero.
void clear_tangents(const Tensor& written);

// make_dual: a view of `t` that carries `tangent`. unpack_dual: its two parts.
Tensor make_dual(const Tensor& t, const Tensor& tangent, uint64_t level);
std::pair<Tensor, Tensor> unpack_dual(const Tensor& t, uint64_t level);

// t for real tensors.
Tensor conjugate(const Tensor& t);
// a + b where undefined is zero.
Tensor sum_tangents(const Tensor& a, const Tensor& b);

// An alias of `original` without history, whose tangents, at any level, have none either.
Tensor cut_history(const Tensor& original);

// A saved alias keeps the tangents of the tensor it stands for, also those that are set later.
void share_tangent(const Tensor& alias, const Tensor& original);
void refresh_tangent_key(const Tensor& t);

[[noreturn]] void fail_no_forward_rule(std::string_view op);

}  // namespace taeda::autograd
