#include "ops/batching/level.h"

#include <utility>

#include "base/handover.h"
#include "op/clone.h"
#include "op/expand.h"
#include "op/unsqueeze.h"
#include "ops/functionalize.h"

namespace taeda::batching {
namespace {

thread_local Level* innermost =
    nullptr;  // owned by the batched tensors and by enter() till leave()

void set_innermost(Level* level) { innermost = level; }
const CarriedValue<current, set_innermost> carried_level;

Differentiation installed;

const Wrapped& wrapped(const Tensor& t) { return static_cast<Wrapped&>(*t.impl()->wrapped); }

const Tensor& content(const Tensor& t) {
  const Wrapped& held = wrapped(t);
  return held.shared.defined() ? held.shared : held.value;
}

void hold(const Tensor& batched, const Tensor& value, Level& level, const Tensor& shared = {}) {
  auto held = make_ref<Wrapped>();
  held->value = value;
  held->shared = shared;
  held->level = Ref<Level>(&level);
  TensorImpl& impl = *batched.impl();
  const Tensor& like = shared.defined() ? shared : value;
  impl.keys = (impl.keys - kMathBits) | (like.impl()->keys & kMathBits) | Key::kBatched;
  impl.wrapped = std::move(held);
  refresh_layout(batched);
}

Ref<Storage> no_memory(Device device) {
  return Storage::wrap(nullptr, 0, device, nullptr, nullptr);
}

Tensor with_storage(const Tensor& value, const Tensor& shared, Level& level, Ref<Storage> storage) {
  const Tensor& like = shared.defined() ? shared : value;
  const Tensor batched(make_ref<TensorImpl>(std::move(storage), like.dtype(), like.device()));
  hold(batched, value, level, shared);
  return batched;
}

}  // namespace

void set_differentiation(const Differentiation& functions) { installed = functions; }
const Differentiation& differentiation() { return installed; }
TangentLevels tangents_outside(TangentLevels entered, uint64_t floor) {
  return {entered.limit, floor, installed.newest_forward_level()};
}

Level* current() { return innermost; }
Level* exchange_current(Level* level) { return std::exchange(innermost, level); }
Level* active() {
  return (thread_modes.included - thread_modes.excluded).has(Key::kBatched) ? innermost : nullptr;
}

Level& enter(int64_t size, Randomness randomness) {
  auto level = make_ref<Level>();
  level->size = size;
  level->depth = innermost ? innermost->depth + 1 : 1;
  level->outer = Ref<Level>(innermost);
  level->outside = thread_modes;
  level->randomness = randomness;
  level->tangents = installed.tangents();
  level->forward_floor = installed.newest_forward_level();
  // A trace that has begun outside of the level records what is computed there.
  const KeySet outside = KeySet(Key::kAutograd) | (thread_modes.included & Key::kTrace);
  thread_modes.excluded = (thread_modes.excluded | outside) - Key::kBatched;
  thread_modes.included = thread_modes.included | Key::kBatched;
  innermost = level.detach();
  return *innermost;
}

void leave() {
  TD_CHECK(innermost, "vmap: there is no level to leave");
  const Ref<Level> level = Ref<Level>::adopt(innermost);
  level->ended = true;
  innermost = level->outer.get();
  thread_modes.excluded = level->outside.excluded;
  thread_modes.included = level->outside.included;
}

bool has_ended(const Tensor& t) { return wrapped(t).level->ended; }

Level& level_of(const Tensor& t) {
  TD_CHECK(!has_ended(t),
           "vmap: a tensor that belongs to a call of vmap was used after that call had ended; "
           "return it from the function instead of storing it elsewhere");
  return *wrapped(t).level;
}

const Tensor& content_of(const Tensor& t) {
  static_cast<void>(level_of(t));
  return content(t);
}

bool is_at(const Tensor& t, const Level& level) {
  return is_batched(t) && wrapped(t).level.get() == &level;
}

Tensor value_at(const Tensor& t, const Level& level) {
  if (!is_at(t, level)) return {};
  const Wrapped& held = wrapped(t);
  if (!held.shared.defined()) return held.value;
  const Outside outside(level);
  return expand_batch(held.shared, level.size);
}

Tensor wrap(const Tensor& value, Level& level) {
  TD_CHECK(value.dim() > 0 && value.size(0) == level.size,
           "vmap: expected a batch of {} in front, got sizes {}", level.size, value.sizes());
  return with_storage(value, {}, level, no_memory(value.device()));
}

Tensor wrap_shared(const Tensor& plain, Level& level) {
  Tensor lifted = with_storage({}, plain, level, no_memory(plain.device()));
  lifted.impl()->wrapped_number = plain.impl()->wrapped_number;
  return lifted;
}

Tensor shared_at(const Tensor& t, const Level& level) {
  return is_at(t, level) ? wrapped(t).shared : Tensor();
}

namespace {

// Depths as bits: of all levels that a tensor belongs to, and of those at which it has a batch.
struct Depths {
  uint64_t all = 0, batches = 0;
};
Depths depths_of(Tensor t) {
  Depths found;
  for (; is_batched(t); t = content_of(t)) {
    const Level& level = level_of(t);
    const uint64_t bit = uint64_t{1} << (level.depth & 63);
    found.all |= bit;
    if (!shared_at(t, level).defined()) found.batches |= bit;
  }
  return found;
}

}  // namespace

bool differs_between_samples(const Tensor& t) { return depths_of(t).batches != 0; }

bool has_levels_of(const Tensor& t, const Tensor& other) {
  const Depths own = depths_of(t), needed = depths_of(other);
  return (needed.all & ~own.all) == 0 && (needed.batches & ~own.batches) == 0;
}

Tensor lift(const Tensor& t) {
  Level* const level = active();
  if (!level || !t.defined() || is_at(t, *level)) return t;
  return wrap_shared(t, *level);
}

namespace {

// Outside of a level: a value for it in which each sample has a copy of `t`, in all levels around
// too, since what is written may belong to any of them.
Tensor own_batch(const Tensor& t, const Level& level) {
  return lift_to_write(op::clone(expand_batch(t, level.size), std::nullopt));
}

}  // namespace

Tensor lift_to_write(const Tensor& t) {
  Level* const level = active();
  if (!level || !t.defined() || is_at(t, *level)) return t;
  const Outside outside(*level);
  return wrap(own_batch(t, *level), *level);
}

Tensor expand_batch(const Tensor& plain, int64_t size) {
  DimVector sizes{size};
  for (const int64_t n : plain.sizes()) sizes.push_back(n);
  return op::expand(op::unsqueeze(plain, 0), sizes, false);
}

bool take_on_batch(const Tensor& t, Level& level) {
  TensorImpl& impl = *t.impl();
  if (const Tensor shared = shared_at(t, level); shared.defined()) {
    // Its memory is known to `shared` alone.
    if (impl.storage->use_count() != 1 || shared.storage()->use_count() != 1) return false;
    const Outside outside(level);
    hold(t, own_batch(shared, level), level);
    return true;
  }
  if (impl.python_object() || impl.autograd || impl.view_base || impl.storage->use_count() != 1)
    return false;
  Tensor value;
  {
    const Outside outside(level);
    value = own_batch(t, level);
  }
  impl.storage = no_memory(t.device());
  impl.own_version = nullptr;
  hold(t, value, level);
  return true;
}

Tensor all_samples(const Tensor& t) {
  if (is_batched(t)) return all_samples(content_of(t));
  if (!t.defined() || !t.impl()->keys.has(Key::kFunctionalize)) return t;
  return all_samples(functionalize::readable(t));
}

void refresh_layout(const Tensor& batched) {
  const TensorImpl& from = *content(batched).impl();
  const size_t front = wrapped(batched).shared.defined() ? 0 : 1, ndim = from.sizes.size() - front;
  batched.impl()->set_layout(IntSpan(from.sizes).slice(front, ndim),
                             IntSpan(from.strides).slice(front, ndim), from.offset);
}

Tensor alias(const Tensor& batched) {
  const Wrapped& from = wrapped(batched);
  Tensor other = with_storage(from.value, from.shared, *from.level, batched.storage());
  other.impl()->own_version = batched.impl()->own_version;
  return other;
}

KeySet included_outside(const ThreadModes& entered) {
  return (entered.included - Key::kPython) | (thread_modes.included & Key::kPython);
}

Outside::Outside(const Level& level)
    : modes_(thread_modes), tangents_(installed.tangents()), current_(innermost) {
  installed.set_tangents(tangents_outside(level.tangents, level.forward_floor));
  const KeySet handled = Key::kAutocast;  // conversions have seen the call as the function made it
  thread_modes.excluded = level.outside.excluded | handled;
  thread_modes.included = included_outside(level.outside) - handled;
  thread_modes.grad_enabled = modes_.grad_enabled && level.outside.grad_enabled;
  innermost = level.outer.get();
}
Outside::~Outside() {
  thread_modes = modes_;
  installed.set_tangents(tangents_);
  innermost = current_;
}

}  // namespace taeda::batching
