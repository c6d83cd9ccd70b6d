#include "ops/operator.h"

#include <algorithm>
#include <cstring>

#include "ops/autocast.h"
#include "ops/autocast_rules.h"
#include "ops/boxing.h"
#include "ops/dispatch.h"
#include "ops/forms.h"
#include "ops/math_bits.h"
#include "ops/overloads.h"
#include "ops/overrides.h"
#include "ops/tensors_of.h"

namespace taeda {

namespace {
KernelKind kind_of_device(Key key) {
  return key == Key::kMeta   ? KernelKind::kMeta
         : key == Key::kCUDA ? KernelKind::kCUDA
                             : KernelKind::kCPU;
}
}  // namespace

KernelKind kind_of(Key key) {
  switch (key) {
    case Key::kPython:
      return KernelKind::kPython;
    case Key::kFunctionalize:
      return KernelKind::kFunctionalize;
    case Key::kAutograd:
    case Key::kForward:
      return KernelKind::kAutograd;
    case Key::kTrace:
      return KernelKind::kTrace;
    case Key::kAutocast:
      return KernelKind::kAutocast;
    case Key::kBatched:
      return KernelKind::kBatched;
    case Key::kProfile:
      return KernelKind::kProfile;
    default:
      return kind_of_device(key);
  }
}

namespace {

using Form = Operator::Form;
using Flags = OperatorRecord::Flags;

// The aliases of a name: its overloads, each as kOverloads has them.
Span<const OverloadRecord> aliases_of(std::string_view name) {
  const std::string first = std::string(name) + ".";
  const auto* const end = kOverloads + kNumOverloads;
  const auto* const begin =
      std::lower_bound(kOverloads, end, first,
                       [](const OverloadRecord& a, const std::string& n) { return a.name < n; });
  const auto* last = begin;
  while (last != end && std::string_view(last->name).starts_with(first)) last++;
  return {begin, static_cast<size_t>(last - begin)};
}
std::string_view overload_of(const OverloadRecord& alias) {
  const std::string_view name = alias.name;
  return name.substr(name.rfind('.') + 1);
}
// The names that a record has for a form, where they do not follow from those of its plain form.
std::vector<const OverloadRecord*> names_of(const OperatorRecord& record, Form form) {
  const std::string name = std::string(record.name()) + (form == Form::kInplace ? "_" : "");
  std::vector<const OverloadRecord*> found;
  for (const OverloadRecord& alias : aliases_of(name))
    if (alias.record == &record && alias.form == form) found.push_back(&alias);
  return found;
}
// The name that stands for the form itself: the one with the entry's arguments.
const OverloadRecord* own_name(Span<const OverloadRecord* const> names) {
  for (const OverloadRecord* alias : names)
    if (!*alias->arguments) return alias;
  return nullptr;
}

// The schema of the plain form: the entry's, or with the arguments of an overload.
Schema plain_schema(const OperatorRecord& record, const OverloadRecord* overload) {
  std::string text = record.text;
  if (overload && *overload->arguments)
    text = std::string(record.name()) + overload->arguments + text.substr(text.rfind(" -> "));
  Schema schema = parse_table_schema(text);
  if (overload) schema.overload = overload_of(*overload);
  if (schema.results.size() == 1) schema.results[0].name.clear();
  const bool view = record.inverse != OperatorRecord::Inverse::kNone;
  if (view || record.has(Flags::kWrites))
    for (SchemaArgument& result : schema.results) result.alias = {"a", !view, false};
  // Composites that give views say so on both sides; their overloads in the result alone.
  const bool views = !schema.results.empty() && !schema.results[0].alias.set.empty();
  if (views)
    schema.arguments[0].alias = {"a", record.has(Flags::kWrites),
                                 schema.results[0].type.is_tensors()};
  return schema;
}

// The schema of a form, from that of the plain one.
Schema schema_of(const OperatorRecord& record, Form form, const OverloadRecord* overload) {
  Schema schema = plain_schema(record, overload);
  const std::vector<const OverloadRecord*> names = names_of(record, form);
  const OverloadRecord* const own = own_name(names);
  if (form == Form::kInplace) {
    schema.name += "_";
    if (own && !overload) schema.overload = overload_of(*own);
    schema.arguments[0].alias = {"a", true, false};
    schema.results[0].alias = {"a", true, false};
    schema.results[0].name.clear();
  }
  if (form == Form::kOut) {
    for (SchemaArgument& argument : schema.arguments) argument.alias = {};
    schema.overload = own                       ? std::string(overload_of(*own))
                      : schema.overload.empty() ? "out"
                                                : schema.overload + "_out";
    for (size_t i = 0; i < schema.results.size(); i++) {
      SchemaArgument& result = schema.results[i];
      result.alias = {std::string(1, static_cast<char>('a' + i)), true, false};
      SchemaArgument out = result;
      if (out.name.empty()) out.name = schema.results.size() == 1 ? "out" : format("out{}", i);
      if (schema.find(out.name) >= 0) out.name += "_out";
      out.keyword_only = true;
      schema.arguments.push_back(std::move(out));
    }
  }
  return schema;
}

// The overloads of a form beside its own. An in-place form without names of its own has those of
// the plain one.
std::vector<const OverloadRecord*> overloads_of(const OperatorRecord& record, Form form) {
  std::vector<const OverloadRecord*> found = names_of(record, form);
  if (form == Form::kInplace && found.empty()) found = names_of(record, Form::kPlain);
  if (form != Form::kPlain)
    std::erase_if(found, [](const OverloadRecord* alias) { return !*alias->arguments; });
  return found;
}

[[noreturn]] void fail_value(const Schema& schema, const SchemaArgument& argument,
                             const Value& got) {
  fail(ErrorKind::kRuntime,
       "{}() Expected a value of type '{}' for argument '{}' but instead found type '{}'.\n"
       "Declaration: {}",
       schema.name, argument.type.text(), argument.name, got.type_name(), schema.text());
}

// Makes `value` what the argument's type says, where it can stand for it.
bool conform(const SchemaType& type, Value& value) {
  if (value.is_none()) {
    if (type.list && !type.optional && type.base != ValueType::kTensor && type.size == 0)
      value = type.base == ValueType::kFloat ? Value(Value::Floats()) : Value(Value::Ints());
    return type.optional || type.base == ValueType::kGenerator || !value.is_none();
  }
  if (type.list) {
    const auto count = static_cast<size_t>(std::max<int64_t>(type.size, 1));
    switch (type.base) {
      case ValueType::kTensor: {
        if (!value.is_tensors()) return false;
        const TensorList& list = value.tensors();
        return type.optional_elements ||
               std::all_of(list.begin(), list.end(), [](const Tensor& t) { return t.defined(); });
      }
      case ValueType::kInt:
        if (type.size && value.holds<int64_t>()) value = Value::Ints(count, value.integer());
        return value.holds<Value::Ints>();
      case ValueType::kFloat:
        if (type.size && value.is_number()) value = Value::Floats(count, value.real());
        if (value.holds<Value::Ints>())
          value = Value::Floats(value.ints().begin(), value.ints().end());
        return value.holds<Value::Floats>();
      case ValueType::kScalar:
        return value.holds<Value::Ints>() || value.holds<Value::Floats>() ||
               value.holds<Value::Bools>();
      default:
        return value.holds<Value::Bools>();
    }
  }
  switch (type.base) {
    case ValueType::kTensor:
      if (value.is_number()) value = Tensor(value.scalar());
      return value.is_tensor();
    case ValueType::kScalar:
      return value.is_number();
    case ValueType::kInt:
      if (value.holds<bool>()) value = value.integer();
      return value.holds<int64_t>();
    case ValueType::kFloat:
      if (value.holds<bool>() || value.holds<int64_t>()) value = value.real();
      return value.holds<double>();
    case ValueType::kBool:
      return value.holds<bool>();
    case ValueType::kString:
      return value.holds<std::string>();
    case ValueType::kDType:
      return value.holds<DType>();
    case ValueType::kLayout:
      return value.holds<Layout>();
    case ValueType::kDevice:
      return value.holds<Device>();
    case ValueType::kMemoryFormat:
      return value.holds<MemoryFormat>();
    case ValueType::kGenerator:
      return value.holds<Generator*>();
  }
  return false;
}

const char* device_name(Key key) {
  return key == Key::kMeta ? "Meta" : key == Key::kCUDA ? "CUDA" : "CPU";
}

// Of a form without a function of its own: the plain one, then a copy into the output.
std::vector<const Tensor*> pointers(const Stack& tensors) {
  std::vector<const Tensor*> result;
  for (const Value& value : tensors) result.push_back(&value.tensor());
  return result;
}

void compute_then_write(const Operator& op, const OperatorRecord& record, Stack& stack) {
  const size_t first = stack.size() - op.schema().results.size();
  const Stack outs(stack.begin() + static_cast<ptrdiff_t>(first), stack.end());
  stack.resize(first);
  TensorList inputs;
  each_tensor(stack, [&](const Tensor& t) { inputs.push_back(t); });
  const std::vector<const Tensor*> targets = pointers(outs);
  const TensorSpan lists[] = {inputs};
  const int dims = op.schema().find("dim");
  const bool of_all = dims >= 0 && stack[static_cast<size_t>(dims)].is_none();
  const OutPolicy policy = forms::check_outs(record, targets, lists, of_all);
  const ExcludeKeys alone(forms::excluded(record));
  // Factories and sums compute in the dtype of out=.
  const int dtype = op.schema().find("dtype");
  if (record.has(Flags::kOutGivesDtype) && dtype >= 0 &&
      stack[static_cast<size_t>(dtype)].is_none())
    stack[static_cast<size_t>(dtype)] = targets[0]->dtype();
  record.form(Form::kPlain).call(stack);
  forms::write_outs(record, targets, pointers(stack), policy);
  stack = outs;
}

}  // namespace

// --- the table's operators ---

const Operator& OperatorRecord::form(Operator::Form form) const {
  std::atomic<const Operator*>& slot = forms[static_cast<int>(form)];
  if (const Operator* op = slot.load(std::memory_order_acquire)) return *op;
  const Operator* made = OperatorRegistry::make(*this, form);
  const Operator* expected = nullptr;
  if (slot.compare_exchange_strong(expected, made, std::memory_order_acq_rel)) return *made;
  delete made;  // another thread was faster
  return *expected;
}

Operator::Operator(Schema schema, const OperatorRecord* record, Form form)
    : schema_(std::move(schema)),
      record_(record),
      form_(form),
      kernels_(std::make_unique<Kernels>()) {}
Operator::~Operator() = default;

std::string Operator::qualified_name() const {
  return schema_.overload.empty() ? schema_.name : schema_.name + "." + schema_.overload;
}

bool Operator::is_dispatched() const {
  return !record_ || (record_->has(Flags::kDispatched) &&
                      (form_ == Form::kPlain || record_->has(Flags::kInto)));
}

bool Operator::has_kernel_for(KernelKind kind) const {
  if (!record_ || kernels_->get(kind)) return kernels_->get(kind) != nullptr;
  if (!is_dispatched())
    return kind ==
           (record_->has(Flags::kLeaf) ? KernelKind::kCompositeExplicit : KernelKind::kComposite);
  return kind == KernelKind::kCPU || kind == KernelKind::kMeta || kind == KernelKind::kAutograd ||
         (kind == KernelKind::kAutocast && record_->autocast != OperatorRecord::kNoRule);
}

void Operator::fill_defaults(Stack& stack) const {
  while (stack.size() < schema_.arguments.size()) {
    const SchemaArgument& argument = schema_.arguments[stack.size()];
    TD_CHECK(argument.has_default, "{}() is missing value for argument '{}'. Declaration: {}",
             schema_.name, argument.name, schema_.text());
    stack.push_back(argument.default_value);
  }
}

void Operator::check(const Stack& stack) const {
  TD_CHECK(stack.size() == schema_.arguments.size(), "{}() takes {} arguments but got {}",
           schema_.name, schema_.arguments.size(), stack.size());
}

Operator::Kernels::Slot Operator::Kernels::get(KernelKind kind, KeySet keys) const {
  const auto fits = [&](const Slot& slot) {
    const auto* const limits = slot ? slot->target<LimitedKernel>() : nullptr;
    const bool recorded =
        keys.has(Key::kForward) || (keys.has(Key::kAutograd) && thread_modes.grad_enabled);
    return slot && (!limits ||
                    (!(limits->devices & keys).empty() && (!limits->where_recorded || recorded)));
  };
  const std::shared_lock lock(mutex);
  const Slot& newest = slots[static_cast<size_t>(kind)];
  if (!newest || kind != KernelKind::kAutograd || fits(newest)) return newest;
  for (auto it = covered.rbegin(); it != covered.rend(); ++it)
    if (it->first == kind && fits(it->second)) return it->second;
  return nullptr;
}

namespace {

// Those of a call of a program's operator: with kAutograd where a kernel for that answers, whatever
// the arguments; without it where all arguments are inference tensors.
KeySet with_autograd(const OperatorRegistry::Kernels& kernels, const Stack& stack, KeySet keys) {
  if (!kernels.get(KernelKind::kAutograd, keys) || is_below_autograd()) return keys;
  bool any = false;
  each_tensor(stack, [&](const Tensor& t) { any = any || !t.is_inference(); });
  return any ? keys | Key::kAutograd : keys - Key::kAutograd;
}

}  // namespace

KeySet Operator::keys_of(const Stack& stack) const {
  KeySet keys;
  for (const Value& value : stack) {
    if (value.is_tensor()) keys = keys | dispatch::keys(value.tensor());
    if (value.is_tensors()) keys = keys | dispatch::keys(value.tensors());
  }
  if ((keys & kDeviceKeys).empty()) keys = keys | Key::kCPU;
  keys = (keys | thread_modes.included) - thread_modes.excluded;
  if (!record_) return with_autograd(*kernels_, stack, keys);
  if (record_->has(Flags::kDispatched)) return keys;
  const KeySet seen = record_->has(Flags::kLeaf)    ? kLeafKeys
                      : record_->has(Flags::kWhole) ? kCompositeKeys | Key::kPython
                                                    : kCompositeKeys;
  return (keys & seen) | dispatch::replaced();
}

void Operator::call(Stack& stack) const {
  check(stack);
  for (size_t i = 0; i < stack.size(); i++)
    if (!conform(schema_.arguments[i].type, stack[i]))
      fail_value(schema_, schema_.arguments[i], stack[i]);
  if (kernels_->entry) {
    overloads::to_entry(*this, stack);
    return kernels_->entry->call(stack);
  }
  if (is_dispatched() && record_) boxing::wrap_arguments(*record_, schema_, stack);
  KeySet keys = keys_of(stack);
  if (record_ && form_ == Form::kOut) keys = keys - kDifferentiationKeys;
  redispatch(keys, stack);
}

namespace {

// Whether a generic key's handler has something to do for an operator of the table.
bool has_rule_for(const Operator& op, Key key, const Stack& stack) {
  const OperatorRecord& record = *op.record();
  if (key == Key::kAutocast) return op.form() == Form::kPlain && autocast::has_rule(record);
  if (key != Key::kPython || !record.has(Flags::kWhole)) return true;
  bool whole = true;
  each_tensor(
      stack, [&](const Tensor& t) { whole = whole && dispatch::is_seen_whole(TensorSpan(&t, 1)); });
  return whole;
}

}  // namespace

void Operator::redispatch(KeySet keys, Stack& stack) const {
  if (!record_) return call_kernel(keys, stack);
  if (const Operator* const entry = kernels_->entry) {
    overloads::to_entry(*this, stack);
    for (size_t i = 0; i < stack.size(); i++) conform(entry->schema_.arguments[i].type, stack[i]);
    return entry->redispatch(keys, stack);
  }
  // Forms that compute and then copy stop for nothing: what they call does.
  const bool stops = form_ == Form::kPlain || record_->has(Flags::kInto);
  while (!keys.empty() && kModeKeys.has(static_cast<Key>(keys.highest()))) {
    const Key key = static_cast<Key>(keys.highest());
    const bool has_rule = has_rule_for(*this, key, stack);
    const BoxedHandler handler = dispatch::handler(key);
    if (const auto found = stops ? overrides::find(*this, key, stack) : overrides::Found();
        found.kernel)
      return (*found.kernel)(*found.op, keys, stack);
    if (stops && has_rule && handler) return handler(*this, keys, stack);
    keys = keys - key;
  }
  const bool composite = !record_->has(Flags::kDispatched);
  if (composite && stops && keys.has(Key::kCPU) && overrides::answer(*this, kAllKeys, stack))
    return;
  run_native(keys.empty() ? Key::kCPU : keys, stack);
}

namespace {

// A function of the type of `below`, on what is on the stack.
void run_function(const Operator& op, OperatorRecord::Function function, KeySet keys,
                  Stack& stack) {
  const OperatorRecord& record = *op.record();
  const Tensor into = op.form() == Form::kOut       ? stack.back().tensor()
                      : op.form() == Form::kInplace ? stack[0].tensor()
                                                    : Tensor();
  boxing::Unboxed unboxed(record, stack);
  boxing::Results results(op.schema());
  const void** args = unboxed.args();
  if (op.form() == Form::kInplace && !record.has(Flags::kInto)) {
    record.invoke_inplace(record.inplace, args, results.pointers());
  } else {
    if (record.has(Flags::kInto)) *--args = &into;
    if (record.has(Flags::kDispatched)) *--args = &keys;
    record.invoke(function, args, results.pointers());
  }
  results.push(stack);
}

}  // namespace

void Operator::run_native(KeySet keys, Stack& stack) const {
  if (form_ == Form::kOut && !record_->has(Flags::kInto))
    return compute_then_write(*this, *record_, stack);
  run_function(*this, record_->below, keys, stack);
}

bool run_layer(const Operator& op, Key layer, KeySet keys, Stack& stack) {
  const auto* const table = static_cast<const OperatorRecord::Function*>(op.record()->handlers);
  const OperatorRecord::Function function = table[static_cast<int>(layer)];
  if (function) run_function(op, function, keys, stack);
  return function != nullptr;
}

// --- registered operators ---

void Operator::call_kernel(KeySet keys, Stack& stack) const {
  const Kernels::Slot composite = kernels_->get(KernelKind::kComposite);
  while (!(keys - kDeviceKeys).empty()) {
    const Key key = static_cast<Key>(keys.highest());
    if (key == Key::kAutocast && !autocast::concerns(stack)) {
      keys = keys - key;
      continue;
    }
    if (!composite && kMathBits.has(key)) return math_bits::handle(*this, keys, stack);
    Kernels::Slot kernel = kernels_->get(kind_of(key), keys);
    if (!kernel && !composite) kernel = OperatorRegistry::get().fallback(kind_of(key));
    if (kernel) {
      if (*kernel) return (*kernel)(*this, keys, stack);
    } else if (const BoxedHandler handler = dispatch::handler(key);
               handler && key != Key::kAutocast && !(composite && !kCompositeKeys.has(key))) {
      return handler(*this, keys, stack);
    }
    keys = keys - key;
  }
  const Key device = keys.empty() ? Key::kCPU : static_cast<Key>(keys.highest());
  Kernels::Slot kernel = kernels_->get(kind_of_device(device));
  if (!kernel || !*kernel) kernel = kernels_->get(KernelKind::kCompositeExplicit);
  if (!kernel || !*kernel) kernel = composite;
  if (!kernel) kernel = OperatorRegistry::get().fallback(kind_of_device(device));
  TD_CHECK_IMPLEMENTED(
      kernel && *kernel,
      "Could not run '{}' with arguments from the '{}' backend: no kernel was registered for it.{}",
      qualified_name(), device_name(device),
      device == Key::kMeta ? " Register what computes the shapes with torch.library.register_fake."
                           : "");
  // What the schema says is written counts as changed, whatever the kernel did.
  std::vector<std::pair<Tensor, uint32_t>> written;
  for (size_t i = 0; i < schema_.arguments.size(); i++) {
    if (!schema_.arguments[i].alias.written) continue;
    if (stack[i].is_tensor() && stack[i].tensor().defined())
      written.emplace_back(stack[i].tensor(), stack[i].tensor().version());
    if (stack[i].is_tensors())
      for (const Tensor& t : stack[i].tensors()) written.emplace_back(t, t.version());
  }
  (*kernel)(*this, keys, stack);
  for (const auto& [tensor, version] : written)
    if (tensor.version() == version) tensor.impl()->bump_version();
  TD_CHECK(stack.size() == schema_.results.size(), "{}: the kernel returned {} results, not {}",
           qualified_name(), stack.size(), schema_.results.size());
  for (size_t i = 0; i < stack.size(); i++) {
    const SchemaType& type = schema_.results[i].type;
    const bool stands_for_tensor = type.is_tensor() && stack[i].is_number();
    TD_CHECK(!stands_for_tensor && conform(type, stack[i]),
             "{}: the kernel returned a value of type '{}' instead of '{}'", qualified_name(),
             stack[i].type_name(), type.text());
  }
}

OperatorRegistry& OperatorRegistry::get() {
  static auto& registry = *new OperatorRegistry;  // kernels may be called while the process ends
  return registry;
}

Operator* OperatorRegistry::make(const OperatorRecord& record, Form form) {
  auto* const entry = new Operator(schema_of(record, form, nullptr), &record, form);
  for (const OverloadRecord* alias : overloads_of(record, form)) {
    auto* const overload = new Operator(schema_of(record, form, alias), &record, form);
    overload->kernels_->entry = entry;
    overload->kernels_->is_seen = alias->is_seen && *alias->arguments;
    entry->kernels_->overloads.emplace_back(overload);
  }
  return entry;
}

Operator* OperatorRegistry::find(std::string_view name, std::string_view overload) const {
  const std::shared_lock lock(mutex_);
  for (Operator* op : live_)
    if (op->name() == name && op->overload() == overload) return op;
  return nullptr;
}

std::vector<Operator*> OperatorRegistry::all() const {
  const std::shared_lock lock(mutex_);
  return live_;
}

Operator& OperatorRegistry::define(Schema schema) {
  const std::unique_lock lock(mutex_);
  for (const Operator* op : live_)
    TD_CHECK(op->name() != schema.name || op->overload() != schema.overload,
             "Tried to register an operator ({}) with the same name and overload name multiple "
             "times.",
             schema.text());
  operators_.emplace_back(new Operator(std::move(schema), nullptr, Form::kPlain));
  live_.push_back(operators_.back().get());
  return *live_.back();
}

void OperatorRegistry::undefine(const Operator& op) {
  const std::unique_lock lock(mutex_);
  std::erase(live_, &op);
}

Operator::Kernels::Slot OperatorRegistry::fallback(KernelKind kind) const {
  if (!any_fallback_.load(std::memory_order_acquire)) return nullptr;
  const std::shared_lock lock(mutex_);
  return fallbacks_[static_cast<size_t>(kind)];
}

void OperatorRegistry::set_fallback(KernelKind kind, Operator::Kernels::Slot kernel) {
  const std::unique_lock lock(mutex_);
  fallbacks_[static_cast<size_t>(kind)] = std::move(kernel);
  any_fallback_ = true;
}

void OperatorRegistry::set_kernel(Operator& op, KernelKind kind, Operator::Kernels::Slot kernel) {
  const std::unique_lock lock(op.kernels_->mutex);
  Operator::Kernels::Slot& slot = op.kernels_->slots[static_cast<size_t>(kind)];
  if (slot) op.kernels_->covered.emplace_back(kind, std::move(slot));
  slot = std::move(kernel);
}

void OperatorRegistry::refresh(const Operator& op) {
  static auto& one_at_a_time = *new std::mutex;
  const std::lock_guard lock(one_at_a_time);
  if (op.record()) overrides::refresh(op);
}

void OperatorRegistry::remove_kernel(Operator& op, KernelKind kind,
                                     const Operator::Kernels::Slot& kernel) {
  const std::unique_lock lock(op.kernels_->mutex);
  Operator::Kernels::Slot& slot = op.kernels_->slots[static_cast<size_t>(kind)];
  auto& covered = op.kernels_->covered;
  const bool current = slot == kernel;
  const auto found = std::find_if(covered.rbegin(), covered.rend(), [&](const auto& entry) {
    return entry.first == kind && (current || entry.second == kernel);
  });
  if (current) slot = found == covered.rend() ? nullptr : found->second;
  if (found != covered.rend()) covered.erase(std::next(found).base());
}

// --- look-up ---

namespace {

// "aten::add" and "Tensor" against a record.
int compare(const OperatorRecord& record, std::string_view name, std::string_view overload) {
  const int names = record.name().compare(name);
  return names ? names : record.overload().compare(overload);
}

// The first record that does not stand before that name.
const OperatorRecord* const* lower_bound(std::string_view name, std::string_view overload) {
  return std::lower_bound(
      kOperatorRecords, kOperatorRecords + kNumOperatorRecords, 0,
      [&](const OperatorRecord* r, int) { return compare(*r, name, overload) < 0; });
}

bool is_end(const OperatorRecord* const* found) {
  return found == kOperatorRecords + kNumOperatorRecords;
}

const OperatorRecord* first_record(std::string_view name) {
  const auto* const found = lower_bound(name, "");
  return !is_end(found) && (*found)->name() == name ? *found : nullptr;
}

const OperatorRecord* find_record(std::string_view name, std::string_view overload) {
  const auto* const found = lower_bound(name, overload);
  return !is_end(found) && compare(**found, name, overload) == 0 ? *found : nullptr;
}

const OverloadRecord* find_alias(std::string_view name, std::string_view overload) {
  for (const OverloadRecord& alias : aliases_of(name))
    if (overload_of(alias) == overload) return &alias;
  return nullptr;
}

// An operator or one of its overloads, by the overload's name.
const Operator* named(const Operator& op, std::string_view overload) {
  if (op.overload() == overload) return &op;
  for (const auto& other : overloads::of(op))
    if (other->overload() == overload) return other.get();
  return nullptr;
}

// The record of that name, its own or that of an overload for which it stands.
const OperatorRecord* record_for(std::string_view name, std::string_view overload) {
  if (const OperatorRecord* record = find_record(name, overload)) return record;
  const OverloadRecord* const alias = find_alias(name, overload);
  return alias ? alias->record : nullptr;
}

bool is_out(std::string_view overload) { return overload == "out" || overload.ends_with("_out"); }

const Operator* find_form(std::string_view name, std::string_view overload) {
  if (const OverloadRecord* alias = find_alias(name, overload))
    return named(alias->record->form(alias->form), overload);
  if (const OperatorRecord* record = find_record(name, overload))
    return &record->form(Form::kPlain);
  if (name.ends_with("_")) {
    const OperatorRecord* record = record_for(name.substr(0, name.size() - 1), overload);
    if (record && record->has(Flags::kHasInplace))
      return named(record->form(Form::kInplace), overload);
  }
  if (!is_out(overload)) return nullptr;
  const size_t cut = overload == "out" ? 0 : overload.size() - 4;
  const OperatorRecord* record = record_for(name, overload.substr(0, cut));
  if (!record && overload == "out") record = first_record(name);
  return record && record->has(Flags::kHasOut) ? &record->form(Form::kOut) : nullptr;
}

template <class Visit>
void each_form(const OperatorRecord& record, const Visit& visit) {
  const auto with_overloads = [&](const Operator& op) {
    visit(op);
    for (const auto& overload : overloads::of(op)) visit(*overload);
  };
  with_overloads(record.form(Form::kPlain));
  if (record.has(Flags::kHasInplace)) with_overloads(record.form(Form::kInplace));
  if (record.has(Flags::kHasOut)) with_overloads(record.form(Form::kOut));
}

}  // namespace

const Operator* find_operator(std::string_view name, std::string_view overload) {
  if (overload == "default") overload = "";
  if (const Operator* op = find_form(name, overload)) return op;
  return OperatorRegistry::get().find(name, overload);
}

std::vector<const Operator*> find_overloads(std::string_view name) {
  std::vector<const Operator*> found;
  const std::string_view plain = name.ends_with("_") ? name.substr(0, name.size() - 1) : name;
  for (const std::string_view one : {name, plain}) {
    for (const auto* r = lower_bound(one, ""); !is_end(r) && (*r)->name() == one; r++)
      each_form(**r, [&](const Operator& op) {
        if (op.name() == name) found.push_back(&op);
      });
    if (name == plain) break;
  }
  for (const Operator* op : OperatorRegistry::get().all())
    if (op->name() == name) found.push_back(op);
  return found;
}

std::vector<const Operator*> all_operators() {
  std::vector<const Operator*> found;
  for (size_t i = 0; i < kNumOperatorRecords; i++)
    each_form(*kOperatorRecords[i], [&](const Operator& op) { found.push_back(&op); });
  for (const Operator* op : OperatorRegistry::get().all()) found.push_back(op);
  return found;
}

}  // namespace taeda
