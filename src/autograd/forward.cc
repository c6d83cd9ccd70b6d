#include "autograd/forward.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "autograd/differentiated.h"
#include "autograd/forward_switch.h"
#include "autograd/math.h"
#include "autograd/view.h"
#include "autograd/view_replay.h"
#include "base/fork.h"
#include "base/handover.h"
#include "core/layout.h"
#include "op/zeros_like.h"
#include "ops/batching/level.h"
#include "ops/dispatch.h"
#include "ops/functionalize.h"

namespace taeda::autograd {
namespace {

// The active levels of the process, each with the tensors that have a tangent there, so that
// leaving it can drop them.
struct Level {
  const void* owner;  // the thread that entered it
  std::unordered_set<TangentSlot*> slots;
};
struct Levels {
  Levels() { protect_over_fork(mutex); }
  std::mutex mutex;
  std::map<uint64_t, Level> active;
  uint64_t entered = 0;
  std::atomic<uint64_t> lowest{0};  // 0 where none is active
};
Levels& levels() {
  static Levels& instance = *new Levels;
  return instance;
}

constexpr uint64_t kAllLevels = ~uint64_t{0};

// A thread's part in forward mode.
struct Local {
  batching::TangentLevels seen = {kAllLevels};
  const void* owner = nullptr;  // null: itself
};
thread_local Local local;
const void* this_owner() { return local.owner ? local.owner : &local; }

Local get_local() { return {local.seen, this_owner()}; }
void set_local(Local of_caller) { local = of_caller; }
const CarriedValue<get_local, set_local> carried_local;

// Stored while the library is loaded: the layer below cannot name this file.
const bool known_to_vmap =
    (batching::set_differentiation(
         {[] { return local.seen; }, [](batching::TangentLevels levels) { local.seen = levels; },
          [] { return levels().entered; },
          [](const Tensor& result, const Tensor& base, bool one_of_several) {
            track_view(result, base, one_of_several ? uint32_t{kOneOfSeveral} : 0u);
          }}),
     true);

const bool known_to_out_forms =
    (dispatch::set_tangent_test([](const Tensor& t) { return level_of(t) != 0; }), true);

TangentSlot& slot_of(const Tensor& t) {
  std::lock_guard<std::mutex> lock(levels().mutex);  // two threads may save one tensor
  AutogradMeta& meta = make_meta(t.impl());
  if (!meta.forward) meta.forward = make_ref<TangentSlot>();
  return *meta.forward;
}

// The part of a base's tangent that a view of the base covers.
Tensor part_of(const Tensor& base_tangent, const Tensor& base, const Tensor& view) {
  if (const Ref<const ViewReplay> replay = replay_of(view)) return replay->run(base_tangent);
  // In elements of the view: a complex number is two real ones.
  const Tensor whole = math::with_elements_of(base_tangent, view.dtype());
  const auto in_view = [&](int64_t offset) {
    if (base.dtype() == view.dtype()) return offset;
    return is_complex(base.dtype()) ? 2 * offset : offset / 2;
  };
  const Tensor part = math::as_strided(
      whole, view.sizes(), view.strides(),
      view.storage_offset() - in_view(base.storage_offset()) + whole.storage_offset());
  return math::as_read(part, view.impl()->keys, base.impl()->keys);
}

// Whether a view's elements are a base's, or the real and imaginary parts of those, or made of
// pairs of them. Others (x.view(dtype)) are bits, which have no derivative.
bool has_part_in(const Tensor& base, const Tensor& view) {
  return base.dtype() == view.dtype() ||
         (is_complex(base.dtype()) && to_real(base.dtype()) == view.dtype()) ||
         (is_complex(view.dtype()) && to_real(view.dtype()) == base.dtype() &&
          base.storage_offset() % 2 == 0);
}

// Whether views of one tensor have a counterpart in the other, of the same sizes.
bool same_layout(const Tensor& a, const Tensor& b) {
  for (int64_t d = 0; d < a.dim(); d++) {
    if (a.size(d) > 1 && a.stride(d) != b.stride(d)) return false;
  }
  return true;
}

// A tangent with the same strides as its primal, so that views of both correspond. Elements that
// share memory may have tangents of their own: those stay as they are.
Tensor with_layout_of(const Tensor& tangent, const Tensor& primal) {
  const auto bits = [](const Tensor& t) { return t.impl()->keys & kMathBits; };
  if (same_layout(tangent, primal) && bits(tangent) == bits(primal)) return tangent;
  if (internal_overlap(primal.sizes(), primal.strides()) != Overlap::kNo) return tangent;
  return math::clone_with_strides(tangent, primal.strides());
}

// Inside of vmap: the tangent with a batch wherever the tensor has one. What is written into a part
// of the tensor then finds room for its tangent, also where all samples had the same until now.
Tensor with_batches_of(const Tensor& tangent, const Tensor& primal) {
  if (!batching::current() || batching::has_batches_of(tangent, primal)) return tangent;
  return math::add(tangent, op::zeros_like(primal, {}, std::nullopt));
}

// Whether nobody uses this memory but set_tangent and its caller.
bool is_alone(const Tensor& tangent) {
  return tangent.impl()->use_count() <= 2 && tangent.storage()->use_count() == 1;
}

void put(const Tensor& t, const Tensor& tangent, uint64_t level) {
  slot_of(t).put(level, tangent);
  t.impl()->keys = t.impl()->keys | Key::kForward;
}

}  // namespace

// Only who holds the slot puts a tangent there, so `listed_` needs no lock here. Another thread may
// be leaving a level that lists the slot.
TangentSlot::~TangentSlot() {
  if (!listed_) return;
  std::lock_guard<std::mutex> lock(levels().mutex);
  for (const auto& [number, tangent] : tangents_) {
    const auto level = levels().active.find(number);
    if (level != levels().active.end()) level->second.slots.erase(this);
  }
}

Tensor TangentSlot::at(uint64_t level) const {
  const std::lock_guard<SpinLock> lock(lock_);
  for (const auto& [number, tangent] : tangents_)
    if (number == level) return tangent;
  return {};
}

void TangentSlot::put(uint64_t level, Tensor tangent) {
  Tensor replaced;  // destroyed when the locks are free
  std::lock_guard<std::mutex> all(levels().mutex);
  const auto active = levels().active.find(level);
  if (active == levels().active.end()) return;  // another thread has just left it
  active->second.slots.insert(this);
  listed_ = true;
  const std::lock_guard<SpinLock> lock(lock_);
  const auto place = std::lower_bound(tangents_.begin(), tangents_.end(), level,
                                      [](const auto& a, uint64_t b) { return a.first < b; });
  if (place != tangents_.end() && place->first == level)
    replaced = std::exchange(place->second, std::move(tangent));
  else
    tangents_.emplace(place, level, std::move(tangent));
}

Tensor TangentSlot::take(uint64_t level) {
  const std::lock_guard<SpinLock> lock(lock_);
  for (auto i = tangents_.begin(); i != tangents_.end(); ++i) {
    if (i->first != level) continue;
    Tensor tangent = std::move(i->second);
    tangents_.erase(i);
    return tangent;
  }
  return {};
}

uint64_t TangentSlot::highest_below(uint64_t limit) const {
  const std::lock_guard<SpinLock> lock(lock_);
  for (size_t i = tangents_.size(); i-- > 0;)
    if (tangents_[i].first < limit) return tangents_[i].first;
  return 0;
}

bool TangentSlot::empty() const {
  const std::lock_guard<SpinLock> lock(lock_);
  return tangents_.empty();
}

bool is_active(uint64_t level) {
  std::lock_guard<std::mutex> lock(levels().mutex);
  return levels().active.count(level) != 0;
}

bool any_dual_level() { return levels().lowest.load(std::memory_order_relaxed) != 0; }

uint64_t dual_level() {
  if (!any_dual_level()) return 0;
  Levels& l = levels();
  std::lock_guard<std::mutex> lock(l.mutex);
  for (auto i = l.active.rbegin(); i != l.active.rend(); ++i)
    if (i->second.owner == this_owner()) return i->first;
  return l.active.empty() ? 0 : l.active.rbegin()->first;
}

uint64_t enter_dual_level() {
  Levels& l = levels();
  std::lock_guard<std::mutex> lock(l.mutex);
  l.active[++l.entered].owner = this_owner();
  l.lowest = l.active.begin()->first;
  // A view that was made before may get a tangent through its base, and has no key of its own.
  thread_modes.included = thread_modes.included | Key::kForward;
  return l.entered;
}

void exit_dual_level(uint64_t number) {
  Levels& l = levels();
  // Destroyed after the lock is free: tangents carry slots of their own.
  std::vector<Tensor> dropped;
  std::lock_guard<std::mutex> lock(l.mutex);
  const auto level = l.active.find(number);
  bool last = level != l.active.end();
  for (auto later = level; last && ++later != l.active.end();)
    last = later->second.owner != level->second.owner;
  TD_CHECK(last,
           "Trying to exit a forward AD level that was not the last one that was created. This "
           "is not supported.");
  for (TangentSlot* slot : level->second.slots) dropped.push_back(slot->take(number));
  l.active.erase(level);
  l.lowest = l.active.empty() ? 0 : l.active.begin()->first;
  for (const auto& [other, of] : l.active)
    if (of.owner == this_owner()) return;
  thread_modes.included = thread_modes.included - Key::kForward;
}

namespace {

// What the calling thread saw before it switched forward mode off.
struct Disabled {
  bool on = false;
  uint64_t limit = 0;
  bool excluded = false;
};
thread_local Disabled disabled;

}  // namespace

bool forward_enabled() { return !disabled.on; }

void set_forward_enabled(bool enabled) {
  if (enabled == forward_enabled()) return;
  if (!enabled) {
    disabled = {true, local.seen.limit, thread_modes.excluded.has(Key::kForward)};
    local.seen.limit = 0;
    thread_modes.excluded = thread_modes.excluded | Key::kForward;
    return;
  }
  local.seen.limit = disabled.limit;
  if (!disabled.excluded) thread_modes.excluded = thread_modes.excluded - Key::kForward;
  disabled = {};
}

LevelScope::LevelScope() : outer_limit_(local.seen.limit), outer_excluded_(thread_modes.excluded) {}
LevelScope::~LevelScope() {
  local.seen.limit = outer_limit_;
  thread_modes.excluded = outer_excluded_;
}

BelowLevel::BelowLevel(uint64_t level) {
  local.seen.limit = std::min(level, outer_limit_);
  const uint64_t lowest = levels().lowest.load(std::memory_order_relaxed);
  if (lowest == 0)  // another thread has left the last one
    thread_modes.included = thread_modes.included - Key::kForward;
  if (lowest == 0 || local.seen.limit <= lowest)
    thread_modes.excluded = outer_excluded_ | Key::kForward;
}

namespace {

// Every level is seen, also those that the layers above have handled.
class EveryLevel : public LevelScope {
 public:
  EveryLevel() {
    local.seen.limit = kAllLevels;
    thread_modes.excluded = outer_excluded_ - KeySet(Key::kForward);
  }
};

}  // namespace

// Backward may run where the forward layer has not stripped the tensor of its tangents.
Tensor copy_for_backward(const Tensor& t) {
  const EveryLevel seen;
  return math::clone(t);
}

namespace {

// The highest level below `limit` at which a slot has a tangent and that is seen: inside of vmap
// those that were entered there. The others are handled outside, on values; there, those entered
// inside are hidden.
uint64_t seen_level(const TangentSlot& slot, uint64_t limit) {
  uint64_t level = slot.highest_below(limit);
  if (level > local.seen.hidden && level <= local.seen.newest)
    level = slot.highest_below(local.seen.hidden + 1);
  const batching::Level* batch = batching::current();
  const uint64_t floor = std::max(batch ? batch->forward_floor : 0, functionalize::forward_floor());
  return level <= floor ? 0 : level;
}

}  // namespace

void follow_base(const Tensor& view, const Tensor& of) {
  if (!is_inexact(view.dtype())) return;
  const AutogradMeta* meta = of.impl()->view_base ? meta_of(of) : nullptr;
  if (meta && meta->follows_below != kAllLevels)
    make_meta(view.impl()).follows_below = meta->follows_below;
  view.impl()->keys = view.impl()->keys | Key::kForward;
}

namespace {

const TangentSlot* slot_if_any(const TensorImpl* t) {
  const AutogradMeta* meta = t ? meta_of(t) : nullptr;
  return meta && meta->forward && !meta->forward->empty() ? meta->forward.get() : nullptr;
}

// A view's own limit to the levels at which it follows its base.
uint64_t follows_below(const Tensor& view) {
  const AutogradMeta* meta = meta_of(view);
  return meta ? meta->follows_below : kAllLevels;
}

Tensor own_tangent(const Tensor& t, uint64_t level) {
  const TangentSlot* const slot = slot_if_any(t.impl());
  return slot ? slot->at(level) : Tensor();
}

// That of a view's base, where the view has part in its tangents.
const TangentSlot* slot_of_base(const Tensor& view) {
  const TangentSlot* const slot = slot_if_any(view.impl()->view_base.get());
  return slot && has_part_in(Tensor(view.impl()->view_base), view) ? slot : nullptr;
}

bool carries_tangent(const Tensor& t) {
  return has_tangent(t) && (slot_if_any(t.impl()) || slot_of_base(t));
}

}  // namespace

uint64_t level_of(const Tensor& t) {
  if (!has_tangent(t)) return 0;
  const TangentSlot* const own = slot_if_any(t.impl());
  const TangentSlot* const of_base = slot_of_base(t);
  if (!own && !(t.impl()->view_base && any_dual_level())) {
    t.impl()->keys = t.impl()->keys - Key::kForward;  // its level has ended
    return 0;
  }
  const uint64_t limit = local.seen.limit;
  const uint64_t level = own ? seen_level(*own, limit) : 0;
  if (!of_base) return level;
  return std::max(level, seen_level(*of_base, std::min(limit, follows_below(t))));
}

namespace {

// What a tensor of the innermost level is to the code outside; others are the same to both.
Tensor outside_of_level(const Tensor& t) {
  if (t.impl()->keys.has(Key::kFunctionalize)) return functionalize::unwrap(t);
  const batching::Level* level = batching::active();
  return level && batching::is_at(t, *level) ? batching::content_of(t) : t;
}

bool differentiated_farther_out(const Tensor& t) {
  if (requires_grad(t) || carries_tangent(t)) return true;
  if (batching::is_batched(t)) return differentiated_farther_out(batching::content_of(t));
  if (!t.impl()->keys.has(Key::kFunctionalize)) return false;
  const Tensor value = functionalize::unwrap(t);  // itself where its level is farther out: perhaps
  return value.is_same(t) || differentiated_farther_out(value);
}

}  // namespace

bool differentiated_outside_of_level(const Tensor& t) {
  if ((thread_modes.included & kLevelKeys).empty() || !t.defined()) return false;
  return differentiated_farther_out(outside_of_level(t));
}

bool differentiated_below(const Tensor& t) {
  for (Tensor below = t; batching::is_batched(below);) {
    below = batching::content_of(below);
    if (requires_grad(below) || carries_tangent(below)) return true;
  }
  return false;
}

Tensor tangent(const Tensor& t, uint64_t level) {
  if (!has_tangent(t)) return {};
  const TangentSlot* const of_base = slot_of_base(t);
  const Tensor found = own_tangent(t, level);
  if (found.defined() || !of_base || level >= follows_below(t)) return found;
  const Tensor whole = of_base->at(level);
  if (!whole.defined()) return {};
  const BelowLevel values_only(level);
  const Tensor part = part_of(whole, Tensor(t.impl()->view_base), t);
  put(t, part, level);
  return part;
}

void keep_tangents_of_base(const Tensor& view) {
  if (!has_tangent(view) || !slot_of_base(view)) return;
  for (uint64_t level = level_of(view); level != 0;) {
    tangent(view, level);
    const BelowLevel farther_out(level);
    level = level_of(view);
  }
}

bool any_tangent(TensorSpan list, uint64_t level) {
  for (const Tensor& t : list)
    if (tangent(t, level).defined()) return true;
  return false;
}

TensorList tangents_or_zeros(TensorSpan list, uint64_t level) {
  TensorList out;
  for (const Tensor& t : list) {
    Tensor found = tangent(t, level);
    if (!found.defined() && t.defined()) found = math::zeros(t.sizes(), t.dtype(), t.device());
    out.push_back(std::move(found));
  }
  return out;
}

void set_tangent(const Tensor& result, const Tensor& given, uint64_t level) {
  if (level == 0 || !result.defined() || !is_inexact(result.dtype())) return;
  const BelowLevel values_only(level);
  // A view just made, not one just written: its tangent is that view of the tangent it was made
  // from.
  const bool new_view = result.impl()->view_base && result.version() == result.impl()->view_version;
  const Tensor before = new_view ? own_tangent(result, level) : tangent(result, level);
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
    if (new_view || !has_part_in(base, result)) return put(result, fitted, level);
    Tensor base_tangent = tangent(base, level);
    if (!base_tangent.defined()) {
      base_tangent = with_layout_of(math::zeros(base.sizes(), base.dtype(), base.device()), base);
      batching::prepare_to_write(base_tangent);
      put(base, base_tangent, level);
    }
    const Tensor part = part_of(base_tangent, base, result);
    math::copy_(part, fitted);
    return put(result, part, level);
  }
  if (fitted.sizes() != result.sizes()) {
    Tensor full = math::zeros(result.sizes(), result.dtype(), result.device());
    math::copy_(full, fitted);
    fitted = full;
  } else if (same_layout(fitted, result) && !is_alone(fitted)) {
    fitted = math::clone(fitted);  // x + 1 has the tangent of x: writing one must leave the other
  }
  put(result, with_layout_of(with_batches_of(fitted, result), result), level);
}

void set_tangent(const TensorList& results, const TensorList& tangents, uint64_t level) {
  for (size_t i = 0; i < results.size() && i < tangents.size(); i++)
    set_tangent(results[i], tangents[i], level);
}

void clear_tangents(const Tensor& written) {
  for (uint64_t level = level_of(written); level != 0;) {
    set_tangent(written, Tensor(), level);
    const BelowLevel farther_out(level);
    level = level_of(written);
  }
}

Tensor lift(const Tensor& t) {
  if (batching::active()) return batching::lift(t);
  return functionalize::is_active() && t.defined() ? functionalize::lift(t) : t;
}

Tensor make_dual(const Tensor& t, const Tensor& given, uint64_t level) {
  TD_CHECK(is_active(level),
           "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
           "enter_dual_level() first.");
  TD_CHECK_VALUE(is_inexact(t.dtype()),
                 "Expected primal to be floating point or complex, but got: {}", t.dtype());
  TD_CHECK_VALUE(is_inexact(given.dtype()),
                 "Expected tangent to be floating point or complex, but got: {}", given.dtype());
  TD_CHECK(!tangent(t, level).defined(),
           "Making a dual Tensor based on a Tensor that already has a forward gradient at the same "
           "level is not supported.");
  TD_CHECK(!tangent(given, level).defined(),
           "Setting a forward grad that itself has a forward gradient at the same level is not "
           "supported: unpack_dual() has its value");
  TD_CHECK(t.sizes() == given.sizes(),
           "Trying to set a forward gradient that has a different size than that of the original "
           "Tensor, this is not supported. Expected tangent to have the same shape as primal, but "
           "got tangent of size {} for a primal of size {}",
           given.sizes(), t.sizes());
  TD_CHECK(t.dtype() == given.dtype(),
           "Expected tangent to have the same dtype as primal, but got {} and {}", given.dtype(),
           t.dtype());
  const BelowLevel values_only(level);
  Tensor dual = math::view(lift(t));
  put(dual, with_layout_of(with_batches_of(batching::lift_to_write(given), dual), t), level);
  return dual;
}

std::pair<Tensor, Tensor> unpack_dual(const Tensor& t, uint64_t level) {
  Tensor found = forward_enabled() ? tangent(t, level) : Tensor();
  const BelowLevel values_only(level);
  Tensor value = math::view(t);
  AutogradMeta& meta = make_meta(value.impl());
  meta.follows_below = std::min(meta.follows_below, level);
  return {value, found};
}

Tensor cut_history(const Tensor& original) {
  Tensor out = math::alias(original);
  for (uint64_t level = level_of(original); level != 0;) {
    const BelowLevel values_only(level);
    put(out, cut_history(tangent(original, level)), level);
    level = level_of(original);
  }
  return out;
}

void share_tangent(const Tensor& alias, const Tensor& original) {
  if (!any_dual_level() || !is_inexact(original.dtype())) return;
  keep_tangents_of_base(original);
  make_meta(alias.impl()).forward = Ref<TangentSlot>(&slot_of(original));
  refresh_tangent_key(alias);
}

void refresh_tangent_key(const Tensor& t) {
  const AutogradMeta* meta = meta_of(t);
  if (meta && meta->forward && !meta->forward->empty())
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
