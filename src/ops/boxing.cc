#include "ops/boxing.h"

#include <array>
#include <cstring>
#include <new>
#include <type_traits>

#include "ops/contract.h"

namespace taeda::boxing {
namespace {

// One letter a C++ type; capitals are optional ones.
//   T const Tensor&     L TensorSpan    l the same, elements may be undefined
//   s S Scalar          i I int64_t     x X the same, a dimension
//   v V IntSpan         n the same of fixed length    z Z the same, dimensions
//   u int64_t, a dimension that is not wrapped        e IntSpan, sizes
//   d D double          w W Span<const double>        b B bool    t U std::string_view
//   y Y DType           c C Device      m M MemoryFormat          g Generator*
//   o TensorOptions: dtype, layout, device and pin_memory of the schema
constexpr size_t kOptionsArguments = 4;

template <class T>
const T& at(const void* argument) {
  return *static_cast<const T*>(argument);
}

template <class T>
Value value_of(const T& argument) {
  return argument;
}
Value value_of(TensorSpan tensors) { return tensors.vec(); }
Value value_of(Span<const double> numbers) { return numbers.vec(); }
template <class T>
Value value_of(const std::optional<T>& argument) {
  return argument ? value_of(*argument) : Value();
}

template <class T, class V>
const void* put(std::byte* slot, V&& value) {
  static_assert(sizeof(T) <= 48 && std::is_trivially_destructible_v<T>);
  return new (slot) T(std::forward<V>(value));
}

// How arguments of one C++ type become Values and back; `slot` is where the argument can be made.
struct Kind {
  const char* letters;
  Value (*box)(const void* argument);
  const void* (*unbox)(const Value& value, std::byte* slot);
};

template <class T>
constexpr Kind kind(const char* letters) {
  return {letters, [](const void* argument) { return value_of(at<T>(argument)); },
          [](const Value& value, std::byte* slot) -> const void* {
            if constexpr (std::is_same_v<T, Tensor>)
              return &value.tensor();
            else
              return put<T>(slot, detail::Native<T>::get(value));
          }};
}

constexpr Kind kKinds[] = {
    kind<Tensor>("T"),
    kind<TensorSpan>("Ll"),
    kind<Scalar>("s"),
    kind<std::optional<Scalar>>("S"),
    kind<int64_t>("iux"),
    kind<std::optional<int64_t>>("IX"),
    kind<IntSpan>("venz"),
    kind<std::optional<IntSpan>>("VZ"),
    kind<double>("d"),
    kind<std::optional<double>>("D"),
    kind<Span<const double>>("w"),
    kind<std::optional<Span<const double>>>("W"),
    kind<bool>("b"),
    kind<std::optional<bool>>("B"),
    kind<std::string_view>("t"),
    kind<std::optional<std::string_view>>("U"),
    kind<DType>("y"),
    kind<std::optional<DType>>("Y"),
    kind<Device>("c"),
    kind<std::optional<Device>>("C"),
    kind<MemoryFormat>("m"),
    kind<std::optional<MemoryFormat>>("M"),
    kind<Generator*>("g"),
};

// Where in kKinds the kind of a letter is; behind its end for other characters.
constexpr auto kKindIndices = [] {
  std::array<uint8_t, 128> indices{};
  indices.fill(std::size(kKinds));
  for (size_t i = 0; i < std::size(kKinds); i++)
    for (const char* letter = kKinds[i].letters; *letter; letter++)
      indices[static_cast<size_t>(*letter)] = static_cast<uint8_t>(i);
  return indices;
}();

const Kind& kind_of(char letter) {
  const auto code = static_cast<size_t>(static_cast<unsigned char>(letter));
  const size_t index = code < kKindIndices.size() ? kKindIndices[code] : std::size(kKinds);
  TD_CHECK(index < std::size(kKinds), "an operator's record has the unknown type '{}'", letter);
  return kKinds[index];
}

void box_options(const TensorOptions& options, Stack& stack) {
  stack.push_back(options.dtype ? Value(*options.dtype) : Value());
  stack.emplace_back();  // layout
  stack.push_back(options.device ? Value(*options.device) : Value());
  stack.emplace_back();  // pin_memory
}

TensorOptions unbox_options(const Value* values) {
  TensorOptions options;
  if (!values[0].is_none()) options.dtype = values[0].dtype();
  if (!values[2].is_none()) options.device = values[2].device();
  TD_CHECK(values[3].is_none() || !values[3].boolean(),
           "pin_memory: cannot access accelerator device when none is available.");
  return options;
}

// Calls visit(std::type_identity<T>()) with the C++ type that functions return for a schema's
// result.
template <class Visit>
auto visit_type(const SchemaType& type, const Visit& visit) {
  if (type.is_tensors()) return visit(std::type_identity<TensorList>());
  switch (type.base) {
    case ValueType::kBool:
      return visit(std::type_identity<bool>());
    case ValueType::kInt:
      return visit(std::type_identity<int64_t>());
    case ValueType::kFloat:
      return visit(std::type_identity<double>());
    case ValueType::kScalar:
      return visit(std::type_identity<Scalar>());
    default:
      return visit(std::type_identity<Tensor>());
  }
}

int64_t dimensions(const Schema& schema, const Stack& stack) {
  for (size_t i = 0; i < schema.arguments.size(); i++) {
    if (schema.arguments[i].type.is_tensor()) return stack[i].tensor().dim();
    if (schema.arguments[i].type.is_tensors())
      return stack[i].tensors().empty() ? 0 : stack[i].tensors()[0].dim();
  }
  return -1;
}

}  // namespace

const char* letters(const OperatorRecord& record) {
  return record.text + std::strlen(record.text) + 1;
}

void box(const OperatorRecord& record, const void* const* args, Stack& stack) {
  for (const char* letter = letters(record); *letter; letter++, args++) {
    if (*letter == 'o')
      box_options(at<TensorOptions>(*args), stack);
    else
      stack.push_back(kind_of(*letter).box(*args));
  }
}

Unboxed::Unboxed(const OperatorRecord& record, const Stack& stack) {
  const Value* value = stack.data();
  int i = 0;
  for (const char* letter = letters(record); *letter; letter++, i++) {
    if (*letter == 'o') {
      pointers_[kBefore + i] = put<TensorOptions>(slots_[i], unbox_options(value));
      value += kOptionsArguments;
    } else {
      pointers_[kBefore + i] = kind_of(*letter).unbox(*value++, slots_[i]);
    }
  }
}

Results::Results(const Schema& schema) : schema_(schema) {
  for (size_t i = 0; i < schema.results.size(); i++)
    pointers_[i] = visit_type(schema.results[i].type, [&]<class T>(std::type_identity<T>) -> void* {
      if constexpr (std::is_same_v<T, Tensor>)
        return &tensors_[i];
      else
        return &std::get<T>(others_);
    });
}

void Results::push(Stack& stack) {
  stack.clear();
  for (size_t i = 0; i < schema_.results.size(); i++)
    visit_type(schema_.results[i].type, [&]<class T>(std::type_identity<T>) {
      stack.emplace_back(std::move(*static_cast<T*>(pointers_[i])));
    });
}

void unbox_results(const Operator& op, Stack& stack, void* const* results) {
  const auto& expected = op.schema().results;
  TD_CHECK(stack.size() == expected.size(), "{}: a handler returned {} results instead of {}",
           op.qualified_name(), stack.size(), expected.size());
  for (size_t i = 0; i < expected.size(); i++)
    visit_type(expected[i].type, [&]<class T>(std::type_identity<T>) {
      *static_cast<T*>(results[i]) = detail::Native<T>::get(stack[i]);
    });
}

void wrap_arguments(const OperatorRecord& record, const Schema& schema, Stack& stack) {
  int64_t ndim = -2;  // not known yet
  size_t i = 0;
  for (const char* letter = letters(record); *letter; letter++) {
    if (*letter == 'o') {
      i += kOptionsArguments;
      continue;
    }
    Value& value = stack[i];
    const SchemaArgument& argument = schema.arguments[i++];
    if (*letter == 'T' && !argument.type.optional) {
      contract::defined(schema.name, argument.name, value.tensor());
    } else if (*letter == 'n' && value.ints().size() == 1) {
      value = Value::Ints(static_cast<size_t>(argument.type.size), value.ints()[0]);
    } else if (std::strchr("xXzZ", *letter) && !value.is_none()) {
      if (ndim == -2) ndim = dimensions(schema, stack);
      if (ndim < 0) continue;
      if (*letter == 'x' || *letter == 'X')
        value = contract::wrap_dim(value.integer(), ndim);
      else
        value = IntSpan(contract::wrap_dims(schema.name.c_str(), IntSpan(value.ints()), ndim));
    }
  }
}

}  // namespace taeda::boxing
