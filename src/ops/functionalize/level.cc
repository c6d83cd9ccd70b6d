// Levels, the tensors of a level, and calls of operators outside of it.
#include <string>

#include "base/handover.h"
#include "core/host_copy.h"
#include "core/layout.h"
#include "ops/batching/level.h"
#include "ops/functionalize/memory.h"
#include "ops/view_rules.h"

namespace taeda::functionalize {
namespace {

thread_local Level* current = nullptr;
void set_current(Level* level) { current = level; }
const CarriedValue<current_level, set_current> carried_level;

// A storage without memory goes.
void drop(void* context) {
  Context* c = static_cast<Context*>(context);
  (c->detached ? c->memory->detached : c->memory->plain) = nullptr;
  delete c;
}

Context* context_of(const Tensor& t) {
  if (!t.defined() || !t.impl()->keys.has(Key::kFunctionalize) || !t.storage()) return nullptr;
  return static_cast<Context*>(t.storage()->context_of(drop));
}

bool has_history(const Tensor& t) {
  const KeySet above = KeySet::below(Key::kProfile) - KeySet::below(Key::kFunctionalize);
  return !(t.impl()->keys & above).empty();
}

// One store while the library is loaded: core, a layer below, cannot name this file.
const bool known_to_core = (functional_value = readable, true);

}  // namespace

Level* current_level() { return current; }

Outside::Outside()
    : level_(current),
      modes_(thread_modes),
      tangents_(batching::differentiation().tangents()),
      batch_(batching::exchange_current(level_->batch)) {
  batching::differentiation().set_tangents(
      batching::tangents_outside(level_->tangents, level_->forward_floor));
  thread_modes.excluded = level_->modes.excluded;
  thread_modes.included = batching::included_outside(level_->modes);
  current = level_->outer;
}
Outside::~Outside() {
  thread_modes.excluded = modes_.excluded;
  thread_modes.included = modes_.included;
  batching::differentiation().set_tangents(tangents_);
  batching::exchange_current(batch_);
  current = level_;
}

Tensor call(const char* name, const char* overload, Stack stack) {
  const Operator* op = find_operator(name, overload);
  TD_CHECK(op, "functionalize: no operator {}", name);
  const Outside outside;
  op->fill_defaults(stack);
  op->call(stack);
  return stack[0].tensor();
}

Tensor show(const Operator& op, Stack stack, bool copies_views) {
  const Operator* twin = nullptr;
  if (copies_views) twin = find_operator(std::string(op.name()) + "_copy", op.overload());
  const Outside outside;
  (twin ? *twin : op).call(stack);
  return stack[0].tensor();
}
Tensor show(const char* name, const char* overload, Stack stack, bool copies_views) {
  const Operator* op = find_operator(name, overload);
  TD_CHECK(op, "functionalize: no operator {}", name);
  op->fill_defaults(stack);
  return show(*op, std::move(stack), copies_views);
}

Tensor viewed(const Tensor& t, IntSpan sizes, bool copies_views) {
  if (t.sizes() == sizes) return t;
  const bool possible = rules::view_strides(t.sizes(), t.strides(), sizes).has_value();
  const Tensor dense =
      possible || copies_views ? t : call("aten::clone", "", {t, MemoryFormat::kContiguous});
  return show("aten::view", "", {dense, sizes}, copies_views);
}

Context* functional(const Tensor& t) {
  Context* c = context_of(t);
  if (!c) return nullptr;
  TD_CHECK(current && c->memory->depth <= current->depth,
           "functionalize: a tensor of a function that has returned, or of an inner one, is used");
  return c->memory->depth == current->depth ? c : nullptr;
}

Ref<Storage> storage_for(const Tensor& shown, std::shared_ptr<Memory> memory, bool detached) {
  Storage*& slot = detached ? memory->detached : memory->plain;
  if (slot) return Ref<Storage>(slot);
  auto* const context = new Context{memory, detached};
  Ref<Storage> made =
      Storage::wrap(nullptr, storage_bytes_needed(shown.sizes(), shown.strides(), 0, shown.dtype()),
                    shown.device(), drop, context);
  made->set_movable();
  slot = made.get();
  return made;
}

void enter(Remove remove) {
  current = new Level{current,
                      thread_modes,
                      remove == Remove::kMutationsAndViews,
                      current ? current->depth + 1 : 1,
                      batching::differentiation().tangents(),
                      batching::differentiation().newest_forward_level(),
                      batching::current()};
  // What watches the program sees what it becomes.
  thread_modes.excluded = thread_modes.excluded | Key::kProfile |
                          (thread_modes.included & (KeySet(Key::kBatched) | Key::kTrace));
  thread_modes.included = thread_modes.included | Key::kFunctionalize;
}

void exit() {
  TD_CHECK(current, "functionalize: no level is active");
  Level* const ended = current;
  current = ended->outer;
  thread_modes.excluded = ended->modes.excluded;
  thread_modes.included = ended->modes.included;
  delete ended;
}

Tensor wrap(const Tensor& t) {
  const TensorImpl& from = *t.impl();
  auto impl = make_ref<TensorImpl>(Ref<Storage>(), from.dtype, from.device);
  impl->set_layout(from.sizes, from.strides, 0);
  const Tensor out(impl);
  impl->storage = storage_for(out, std::make_shared<Memory>(t, out, current->depth), false);
  impl->keys = impl->keys | Key::kFunctionalize;
  impl->wrapped_number = from.wrapped_number;
  return out;
}

Tensor lift(const Tensor& t) { return functional(t) ? t : wrap(t); }

uint64_t forward_floor() { return current ? current->forward_floor : 0; }

Tensor unwrap(const Tensor& t) {
  Context* c = functional(t);
  if (!c) return t;
  const Tensor value = c->memory->value(c->memory->find(t));
  return c->detached && has_history(value) ? call("aten::detach", "", {value}) : value;
}

Tensor readable(const Tensor& t) {
  if (!context_of(t)) return t;
  const Tensor value = functional(t) ? unwrap(t) : t;
  const Outside outside;
  return readable(value);
}

bool is_written(const Tensor& t) {
  const Context* c = functional(t);
  return c && c->memory->written;
}

}  // namespace taeda::functionalize
