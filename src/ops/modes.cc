#include "ops/modes.h"

#include <algorithm>
#include <cstring>

#include "ops/autocast.h"
#include "ops/autocast_rules.h"
#include "ops/batching/rules.h"
#include "ops/boxing.h"
#include "ops/functionalize/memory.h"
#include "ops/math_bits.h"
#include "ops/overrides.h"
#include "ops/profile_handler.h"
#include "ops/sparse/call.h"

namespace taeda::dispatch {
namespace {

std::atomic<BoxedHandler> handlers[kNumKeys];
std::atomic<ProfileHandler> profile_handler{nullptr};

// Which form of an operator with one function for all three this call is. out= with the first
// argument as the output is written like the in-place form.
Operator::Form form_of(const OperatorRecord& record, const void* const* args) {
  if (!record.has(OperatorRecord::kInto)) return Operator::Form::kPlain;
  const Tensor& into = *static_cast<const Tensor*>(args[0]);
  if (!into.defined()) return Operator::Form::kPlain;
  const bool first = into.is_same(*static_cast<const Tensor*>(args[1]));
  return first && record.has(OperatorRecord::kHasInplace) ? Operator::Form::kInplace
                                                          : Operator::Form::kOut;
}

bool is_seen_whole(const OperatorRecord& record, const void* const* args) {
  for (const char* letter = boxing::letters(record); *letter; letter++, args++) {
    if (*letter == 'T' &&
        !dispatch::is_seen_whole(TensorSpan(static_cast<const Tensor*>(*args), 1)))
      return false;
    if ((*letter == 'L' || *letter == 'l') &&
        !dispatch::is_seen_whole(*static_cast<const TensorSpan*>(*args)))
      return false;
  }
  return true;
}

// Whether the handler of this key has something to do for the operator; the others pass by it.
bool has_rule(const OperatorRecord& record, Key key, Operator::Form form, const void* const* args) {
  if (!handler(key)) return false;
  if (key == Key::kBatched)
    return batching::concerns(record, args + record.has(OperatorRecord::kInto));
  if (key == Key::kAutocast) return form == Operator::Form::kPlain && autocast::has_rule(record);
  if (key == Key::kPython && record.has(OperatorRecord::kWhole)) return is_seen_whole(record, args);
  return true;
}

// Whether a call stops for this key: for its handler, or a program's kernel.
bool stops(const OperatorRecord& record, Key key, Operator::Form form, const void* const* args) {
  return (overrides::any() && overrides::has(record.form(form), key)) ||
         has_rule(record, key, form, args);
}

// A factory's requires_grad, which no schema has: it is applied to whatever the handler made.
bool wants_grad(const OperatorRecord& record, const void* const* args) {
  const char* letters = boxing::letters(record);
  const char* options = std::strchr(letters, 'o');
  return options && static_cast<const TensorOptions*>(args[options - letters])->requires_grad;
}

// Calls the layer below without boxing. A null pointer stands behind the arguments.
void pass(const OperatorRecord& record, KeySet keys, const void* const* args,
          void* const* results) {
  if (!record.has(OperatorRecord::kDispatched)) return record.invoke(record.below, args, results);
  const void* all[32] = {&keys};
  for (const void** to = all + 1; *args;) *to++ = *args++;
  record.invoke(record.below, all, results);
}

}  // namespace

constinit std::atomic<KeySet> replaced_composites{KeySet()};

bool is_seen_whole(TensorSpan arguments) {
  const KeySet here = thread_modes.included - thread_modes.excluded;
  const KeySet levels = KeySet(Key::kBatched) | Key::kFunctionalize | Key::kForward;
  if (!(here & levels).empty()) return false;
  const bool records = thread_modes.grad_enabled && !thread_modes.excluded.has(Key::kAutograd);
  for (const Tensor& t : arguments)
    if (t.defined() && (!(t.impl()->keys & levels).empty() || (records && t.requires_grad())))
      return false;
  return true;
}

void set_handler(Key key, BoxedHandler handler) { handlers[static_cast<int>(key)] = handler; }

void set_profile_handler(ProfileHandler handler) { profile_handler = handler; }

BoxedHandler handler(Key key) {
  if (key == Key::kAutocast) return autocast::handle;
  if (key == Key::kBatched) return batching::handle;
  if (key == Key::kFunctionalize) return functionalize::handle;
  if (key == Key::kConjugate || key == Key::kNegative) return math_bits::handle;
  if (key == Key::kSparse) return sparse::handle;
  return handlers[static_cast<int>(key)].load(std::memory_order_acquire);
}

void run_modes(const OperatorRecord& record, KeySet keys, const void* const* args,
               void* const* results) {
  const Operator::Form form = form_of(record, args);
  if (keys.has(Key::kProfile))
    return profile_handler.load(std::memory_order_acquire)(record, form, keys, args, results);
  const auto is_mode = [&] { return kModeKeys.has(static_cast<Key>(keys.highest())); };
  while (!keys.empty() && is_mode() && !stops(record, static_cast<Key>(keys.highest()), form, args))
    keys = keys - static_cast<Key>(keys.highest());
  if (keys.empty() || !is_mode()) {
    if (overrides::any() && overrides::run(record, form, keys, args, results)) return;
    return pass(record, keys.empty() && record.has(OperatorRecord::kDispatched) ? Key::kCPU : keys,
                args, results);
  }
  const Operator& op = record.form(form);
  const bool into = record.has(OperatorRecord::kInto);
  Stack stack;
  boxing::box(record, args + into, stack);
  if (form == Operator::Form::kOut) stack.emplace_back(*static_cast<const Tensor*>(args[0]));
  const Key key = static_cast<Key>(keys.highest());
  if (const overrides::Found found = overrides::find(op, key, stack); found.kernel)
    (*found.kernel)(*found.op, keys, stack);
  else if (!overrides::any() || has_rule(record, key, form, args))
    handler(key)(op, keys, stack);
  else  // the kernel is another overload's
    op.redispatch(keys - key, stack);
  if (form != Operator::Form::kPlain || record.has(OperatorRecord::kWrites)) {
    *static_cast<Tensor*>(results[0]) = *static_cast<const Tensor*>(args[0]);
    return;
  }
  boxing::unbox_results(op, stack, results);
  if (wants_grad(record, args)) static_cast<Tensor*>(results[0])->requires_grad_();
}

}  // namespace taeda::dispatch
