#include "ops/batching/level.h"

#include "base/handover.h"
#include "op/clone.h"
#include "op/expand.h"
#include "op/unsqueeze.h"

namespace taeda::batching {
namespace {

thread_local Level* innermost =
    nullptr;  // owned by the batched tensors and by enter() till leave()

void set_innermost(Level* level) { innermost = level; }
const CarriedValue<current, set_innermost> carried_level;

TangentLimit tangent_limit{[] { return uint64_t{0}; }, [](uint64_t) {}};

const Wrapped& wrapped(const Tensor& t) { return static_cast<Wrapped&>(*t.impl()->wrapped); }

void hold(const Tensor& batched, const Tensor& value, Level& level) {
  auto held = make_ref<Wrapped>();
  held->value = value;
  held->level = Ref<Level>(&level);
  TensorImpl& impl = *batched.impl();
  impl.keys = impl.keys | Key::kBatched;
  impl.wrapped = std::move(held);
  refresh_layout(batched);
}

Ref<Storage> no_memory(Device device) {
  return Storage::wrap(nullptr, 0, device, nullptr, nullptr);
}

Tensor with_storage(const Tensor& value, Level& level, Ref<Storage> storage) {
  const Tensor batched(make_ref<TensorImpl>(std::move(storage), value.dtype(), value.device()));
  hold(batched, value, level);
  return batched;
}

}  // namespace

void set_tangent_limit(TangentLimit limit) { tangent_limit = limit; }

Level* current() { return innermost; }

Level& enter(int64_t size, Randomness randomness) {
  auto level = make_ref<Level>();
  level->size = size;
  level->depth = innermost ? innermost->depth + 1 : 1;
  level->outer = Ref<Level>(innermost);
  level->outside = thread_modes;
  level->randomness = randomness;
  level->tangents = tangent_limit.get();
  thread_modes.excluded = (thread_modes.excluded | Key::kAutograd) - Key::kBatched;
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

const Tensor& value_of(const Tensor& t) {
  static_cast<void>(level_of(t));
  return wrapped(t).value;
}

Tensor value_at(const Tensor& t, const Level& level) {
  return is_batched(t) && wrapped(t).level.get() == &level ? wrapped(t).value : Tensor();
}

Tensor wrap(const Tensor& value, Level& level) {
  TD_CHECK(value.dim() > 0 && value.size(0) == level.size,
           "vmap: expected a batch of {} in front, got sizes {}", level.size, value.sizes());
  return with_storage(value, level, no_memory(value.device()));
}

Tensor expand_batch(const Tensor& plain, int64_t size) {
  DimVector sizes{size};
  for (const int64_t n : plain.sizes()) sizes.push_back(n);
  return op::expand(op::unsqueeze(plain, 0), sizes, false);
}

bool take_on_batch(const Tensor& t, Level& level) {
  TensorImpl& impl = *t.impl();
  if (impl.python_object() || impl.autograd || impl.view_base || impl.storage->use_count() != 1)
    return false;
  Tensor value;
  {
    const Outside outside(level);
    value = op::clone(expand_batch(t, level.size), std::nullopt);
  }
  impl.storage = no_memory(t.device());
  impl.own_version = nullptr;
  hold(t, value, level);
  return true;
}

Tensor all_samples(const Tensor& t) {
  Tensor plain = t;
  while (is_batched(plain)) plain = value_of(plain);
  return plain;
}

void refresh_layout(const Tensor& batched) {
  const TensorImpl& value = *wrapped(batched).value.impl();
  const size_t ndim = value.sizes.size() - 1;
  batched.impl()->set_layout(IntSpan(value.sizes).slice(1, ndim),
                             IntSpan(value.strides).slice(1, ndim), value.offset);
}

Tensor alias(const Tensor& batched) {
  Tensor other = with_storage(wrapped(batched).value, *wrapped(batched).level, batched.storage());
  other.impl()->own_version = batched.impl()->own_version;
  return other;
}

Outside::Outside(const Level& level)
    : modes_(thread_modes), tangents_(tangent_limit.get()), current_(innermost) {
  tangent_limit.set(level.tangents);
  // Conversions and tracing have seen the call as the function made it.
  const KeySet handled = KeySet(Key::kTrace) | Key::kAutocast;
  thread_modes.excluded = level.outside.excluded | handled;
  thread_modes.included = level.outside.included - handled;
  thread_modes.grad_enabled = modes_.grad_enabled && level.outside.grad_enabled;
  innermost = level.outer.get();
}
Outside::~Outside() {
  thread_modes = modes_;
  tangent_limit.set(tangents_);
  innermost = current_;
}

}  // namespace taeda::batching
