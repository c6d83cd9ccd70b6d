#include "ops/overloads.h"

#include "core/host_copy.h"
#include "ops/operator.h"

namespace taeda::overloads {
namespace {

bool is_wrapped_number(const Value& value) {
  if (!value.is_tensor()) return false;
  return is_written_number(value.tensor());
}

// The value as another argument's type has it, where it is one of that type.
bool convert(const SchemaArgument& argument, const Value& value, Stack& made) {
  const SchemaType& type = argument.type;
  if (value.is_none() && !type.optional && type.base != ValueType::kGenerator) return false;
  if (type.base == ValueType::kScalar && value.is_tensor()) {
    if (!is_wrapped_number(value)) return false;
    made.emplace_back(value.tensor().item_scalar());
    return true;
  }
  if (type.is_tensor() && is_wrapped_number(value)) return false;
  if (type.base == ValueType::kInt && !type.list && value.holds<Value::Ints>()) {
    if (value.ints().size() != 1) return false;
    made.emplace_back(value.ints()[0]);
    return true;
  }
  made.push_back(value);
  return true;
}

bool convert(const Operator& entry, const Operator& overload, const Stack& stack, Stack& made) {
  const std::vector<SchemaArgument>& from = entry.schema().arguments;
  for (size_t i = 0; i < from.size(); i++)
    if (overload.schema().find(from[i].name) < 0 && !is_default(from[i], stack[i])) return false;
  for (const SchemaArgument& argument : overload.schema().arguments)
    if (!convert(argument, stack[static_cast<size_t>(entry.schema().find(argument.name))], made))
      return false;
  return true;
}

}  // namespace

std::string_view tags_of(const OperatorRecord* record) {
  for (size_t i = 0; i < kNumTags; i++)
    if (kTags[i].record == record) return kTags[i].text;
  return {};
}

const Operator& entry_of(const Operator& op) {
  const Operator* const entry = OperatorRegistry::kernels_of(op).entry;
  return entry ? *entry : op;
}
Span<const std::unique_ptr<Operator>> of(const Operator& entry) {
  return OperatorRegistry::kernels_of(entry).overloads;
}
bool is_seen(const Operator& overload) { return OperatorRegistry::kernels_of(overload).is_seen; }

bool is_default(const SchemaArgument& argument, const Value& value) {
  if (!argument.has_default) return false;
  const Value::Data& expected = argument.default_value.data();
  return std::visit(
      [&]<class T>(const T& held) {
        if constexpr (std::is_same_v<T, Tensor> || std::is_same_v<T, TensorList>)
          return false;
        else
          return std::holds_alternative<T>(expected) && std::get<T>(expected) == held;
      },
      value.data());
}

void to_entry(const Operator& overload, Stack& stack) {
  Stack made;
  for (const SchemaArgument& argument : entry_of(overload).schema().arguments) {
    const int at = overload.schema().find(argument.name);
    made.push_back(at < 0 ? argument.default_value : std::move(stack[static_cast<size_t>(at)]));
  }
  stack = std::move(made);
}

const Operator* of_call(const Operator& entry, Stack& stack, bool in_formula) {
  for (const auto& overload : of(entry)) {
    if (!is_seen(*overload) && !in_formula) continue;
    Stack made;
    if (!convert(entry, *overload, stack, made)) continue;
    stack = std::move(made);
    return overload.get();
  }
  return nullptr;
}

}  // namespace taeda::overloads
