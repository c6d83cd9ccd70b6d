#include "autograd/forward.h"

#include <mutex>
#include <unordered_set>

#include "autograd/math.h"
#include "autograd/view.h"
#include "base/fork.h"
#include "core/layout.h"

namespace taeda::autograd {
namespace {

// All tangents of the process, so that leaving the level can drop them.
struct Level {
  Level() { protect_over_fork(mutex); }
  std::mutex mutex;
  std::unordered_set<TangentSlot*> slots;
  std::atomic<uint64_t> active{0};
  uint64_t entered = 0;
};
Level& level() {
  static Level& instance = *new Level;
  return instance;
}

TangentSlot& slot_of(const Tensor& t) {
  AutogradMeta& meta = make_meta(t.impl());
  if (!meta.forward) meta.forward = make_ref<TangentSlot>();
  return *meta.forward;
}

// The part of a base's tangent that a view of the base covers.
Tensor part_of(const Tensor& base_tangent, const Tensor& base, const Tensor& view) {
  TD_CHECK_IMPLEMENTED(base.dtype() == view.dtype(),
                       "forward mode: in-place change of a {} view of a {} tensor", view.dtype(),
                       base.dtype());
  return math::as_strided(
      base_tangent, view.sizes(), view.strides(),
      view.storage_offset() - base.storage_offset() + base_tangent.storage_offset());
}

// A tangent with the same strides as its primal, so that views of both correspond.
Tensor with_layout_of(const Tensor& tangent, const Tensor& primal) {
  if (tangent.strides() == primal.strides()) return tangent;
  return math::clone_with_strides(tangent, primal.strides());
}

void put(const Tensor& t, const Tensor& tangent) {
  slot_of(t).tangent = tangent;
  t.impl()->keys = t.impl()->keys | Key::kForward;
}

}  // namespace

TangentSlot::TangentSlot() {
  std::lock_guard<std::mutex> lock(level().mutex);
  level().slots.insert(this);
}
TangentSlot::~TangentSlot() {
  std::lock_guard<std::mutex> lock(level().mutex);
  level().slots.erase(this);
}

uint64_t dual_level() { return level().active.load(std::memory_order_relaxed); }

uint64_t enter_dual_level() {
  Level& l = level();
  std::lock_guard<std::mutex> lock(l.mutex);
  TD_CHECK(l.active == 0,
           "Nested forward mode AD is not supported at the moment. If you need this feature, "
           "please open an issue.");
  l.active = ++l.entered;
  return l.entered;
}

void exit_dual_level(uint64_t which) {
  Level& l = level();
  std::vector<Tensor>
      dropped;  // destroyed after the lock is free: tangents may carry tangents' slots along
  {
    std::lock_guard<std::mutex> lock(l.mutex);
    TD_CHECK(l.active == which && which != 0,
             "Trying to exit a forward AD level that was not the last one that was created. This "
             "is not supported.");
    l.active = 0;
    for (TangentSlot* slot : l.slots) dropped.push_back(std::move(slot->tangent));
  }
}

Tensor tangent(const Tensor& t) {
  if (!has_tangent(t)) return {};
  const AutogradMeta* meta = meta_of(t);
  if (!meta || !meta->forward || !meta->forward->tangent.defined()) {
    t.impl()->keys = t.impl()->keys - Key::kForward;  // its level has ended
    return {};
  }
  return meta->forward->tangent;
}

TensorList tangents_or_zeros(TensorSpan list) {
  TensorList out;
  for (const Tensor& t : list) {
    Tensor found = tangent(t);
    if (!found.defined() && t.defined()) found = math::zeros(t.sizes(), t.dtype(), t.device());
    out.push_back(std::move(found));
  }
  return out;
}

void set_tangent(const Tensor& result, const Tensor& given) {
  if (!result.defined() || !is_inexact(result.dtype())) return;
  const ExcludeKeys values_only((KeySet(Key::kForward)));
  const Tensor before = tangent(result);
  if (!given.defined()) {
    // Written without a tangent: what was there becomes zero, for views of it too.
    if (before.defined())
      math::copy_(before, math::zeros(before.sizes(), before.dtype(), before.device()));
    return;
  }
  TD_CHECK(given.sizes() == result.sizes() || is_expandable_to(given.sizes(), result.sizes()),
           "forward mode: the tangent of a tensor of size {} has size {}", result.sizes(),
           given.sizes());
  Tensor fitted = given.dtype() == result.dtype() ? given : math::cast(given, result.dtype());
  if (before.defined()) return math::copy_(before, fitted);
  if (result.impl()->view_base) {
    const Tensor base(result.impl()->view_base);
    Tensor base_tangent = tangent(base);
    // A view just made, not one just written: its tangent is that view of the tangent it was made
    // from.
    if (result.version() == result.impl()->view_version) return put(result, fitted);
    if (!base_tangent.defined()) {
      base_tangent = with_layout_of(math::zeros(base.sizes(), base.dtype(), base.device()), base);
      put(base, base_tangent);
    }
    const Tensor part = part_of(base_tangent, base, result);
    math::copy_(part, fitted);
    return put(result, part);
  }
  if (fitted.sizes() != result.sizes()) {
    Tensor full = math::zeros(result.sizes(), result.dtype(), result.device());
    math::copy_(full, fitted);
    fitted = full;
  }
  put(result, fitted);
}

void set_tangent(const TensorList& results, const TensorList& tangents) {
  for (size_t i = 0; i < results.size() && i < tangents.size(); i++)
    set_tangent(results[i], tangents[i]);
}

Tensor make_dual(const Tensor& t, const Tensor& given) {
  TD_CHECK(dual_level() != 0,
           "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
           "enter_dual_level() first.");
  TD_CHECK_VALUE(is_inexact(t.dtype()),
                 "Expected primal to be floating point or complex, but got: {}", t.dtype());
  TD_CHECK_VALUE(is_inexact(given.dtype()),
                 "Expected tangent to be floating point or complex, but got: {}", given.dtype());
  TD_CHECK(!has_tangent(t) || !tangent(t).defined(),
           "Making a dual Tensor based on a Tensor that already has a forward gradient at the same "
           "level is not supported.");
  TD_CHECK(t.sizes() == given.sizes(),
           "Expected tangent to have the same shape as primal, but got tangent of size {} for a "
           "primal of size {}",
           given.sizes(), t.sizes());
  TD_CHECK(t.dtype() == given.dtype(),
           "Expected tangent to have the same dtype as primal, but got {} and {}", given.dtype(),
           t.dtype());
  const ExcludeKeys values_only((KeySet(Key::kForward)));
  Tensor dual = math::view(t);
  put(dual, with_layout_of(given, t));
  return dual;
}

std::pair<Tensor, Tensor> unpack_dual(const Tensor& t) {
  Tensor found = tangent(t);
  const ExcludeKeys values_only((KeySet(Key::kForward)));
  return {math::view(t), found};
}

void share_tangent(const Tensor& alias, const Tensor& original) {
  if (dual_level() == 0 || !is_inexact(original.dtype())) return;
  slot_of(original);
  make_meta(alias.impl()).forward = meta_of(original)->forward;
  refresh_tangent_key(alias);
}

void refresh_tangent_key(const Tensor& t) {
  const AutogradMeta* meta = meta_of(t);
  if (meta && meta->forward && meta->forward->tangent.defined())
    t.impl()->keys = t.impl()->keys | Key::kForward;
}

Tensor conjugate(const Tensor& t) { return t.defined() && t.is_complex() ? math::conjugate(t) : t; }

Tensor sum_tangents(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  if (!b.defined()) return a;
  return math::add(a, b);
}

void fail_no_forward_rule(std::string_view op) {
  fail(ErrorKind::kNotImplemented,
       "Trying to use forward AD with {} that does not support it because it has not been "
       "implemented yet.",
       op);
}

}  // namespace taeda::autograd
