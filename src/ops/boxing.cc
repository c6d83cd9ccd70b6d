#include "ops/boxing.h"

#include <cstring>
#include <new>

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
Value optional_value(const void* argument) {
  const auto& value = at<std::optional<T>>(argument);
  return value ? Value(*value) : Value();
}
Value floats(Span<const double> values) { return Value(values.vec()); }

Value box_one(char letter, const void* argument) {
  switch (letter) {
    case 'T':
      return at<Tensor>(argument);
    case 'L':
    case 'l':
      return at<TensorSpan>(argument).vec();
    case 's':
      return at<Scalar>(argument);
    case 'S':
      return optional_value<Scalar>(argument);
    case 'i':
    case 'u':
    case 'x':
      return at<int64_t>(argument);
    case 'I':
    case 'X':
      return optional_value<int64_t>(argument);
    case 'v':
    case 'e':
    case 'n':
    case 'z':
      return at<IntSpan>(argument);
    case 'V':
    case 'Z':
      return optional_value<IntSpan>(argument);
    case 'd':
      return at<double>(argument);
    case 'D':
      return optional_value<double>(argument);
    case 'w':
      return floats(at<Span<const double>>(argument));
    case 'W': {
      const auto& values = at<std::optional<Span<const double>>>(argument);
      return values ? floats(*values) : Value();
    }
    case 'b':
      return at<bool>(argument);
    case 'B':
      return optional_value<bool>(argument);
    case 't':
      return at<std::string_view>(argument);
    case 'U':
      return optional_value<std::string_view>(argument);
    case 'y':
      return at<DType>(argument);
    case 'Y':
      return optional_value<DType>(argument);
    case 'c':
      return at<Device>(argument);
    case 'C':
      return optional_value<Device>(argument);
    case 'm':
      return at<MemoryFormat>(argument);
    case 'M':
      return optional_value<MemoryFormat>(argument);
    case 'g':
      return at<Generator*>(argument);
    default:
      fail(ErrorKind::kRuntime, "an operator's record has the unknown type '{}'", letter);
  }
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

template <class T, class V>
const void* put(std::byte* slot, V&& value) {
  static_assert(sizeof(T) <= 48 && std::is_trivially_destructible_v<T>);
  return new (slot) T(std::forward<V>(value));
}
template <class T, class Get>
const void* put_optional(std::byte* slot, const Value& value, Get get) {
  return put<std::optional<T>>(slot,
                               value.is_none() ? std::optional<T>() : std::optional<T>(get(value)));
}

const void* unbox_one(char letter, const Value& v, std::byte* slot) {
  const auto real = [](const Value& x) { return x.real(); };
  const auto integer = [](const Value& x) { return x.integer(); };
  const auto ints = [](const Value& x) { return IntSpan(x.ints()); };
  const auto reals = [](const Value& x) { return Span<const double>(x.floats()); };
  switch (letter) {
    case 'T':
      return &v.tensor();
    case 'L':
    case 'l':
      return put<TensorSpan>(slot, v.tensors());
    case 's':
      return put<Scalar>(slot, v.scalar());
    case 'S':
      return put_optional<Scalar>(slot, v, [](const Value& x) { return x.scalar(); });
    case 'i':
    case 'u':
    case 'x':
      return put<int64_t>(slot, v.integer());
    case 'I':
    case 'X':
      return put_optional<int64_t>(slot, v, integer);
    case 'v':
    case 'e':
    case 'n':
    case 'z':
      return put<IntSpan>(slot, ints(v));
    case 'V':
    case 'Z':
      return put_optional<IntSpan>(slot, v, ints);
    case 'd':
      return put<double>(slot, v.real());
    case 'D':
      return put_optional<double>(slot, v, real);
    case 'w':
      return put<Span<const double>>(slot, reals(v));
    case 'W':
      return put_optional<Span<const double>>(slot, v, reals);
    case 'b':
      return put<bool>(slot, v.boolean());
    case 'B':
      return put_optional<bool>(slot, v, [](const Value& x) { return x.boolean(); });
    case 't':
      return put<std::string_view>(slot, v.text());
    case 'U':
      return put_optional<std::string_view>(
          slot, v, [](const Value& x) { return std::string_view(x.text()); });
    case 'y':
      return put<DType>(slot, v.dtype());
    case 'Y':
      return put_optional<DType>(slot, v, [](const Value& x) { return x.dtype(); });
    case 'c':
      return put<Device>(slot, v.device());
    case 'C':
      return put_optional<Device>(slot, v, [](const Value& x) { return x.device(); });
    case 'm':
      return put<MemoryFormat>(slot, v.memory_format());
    case 'M':
      return put_optional<MemoryFormat>(slot, v, [](const Value& x) { return x.memory_format(); });
    case 'g':
      return put<Generator*>(slot, v.generator());
    default:
      fail(ErrorKind::kRuntime, "an operator's record has the unknown type '{}'", letter);
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
      stack.push_back(box_one(*letter, *args));
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
      pointers_[kBefore + i] = unbox_one(*letter, *value++, slots_[i]);
    }
  }
}

Results::Results(const Schema& schema) : schema_(schema) {
  for (size_t i = 0; i < schema.results.size(); i++) {
    const SchemaType& type = schema.results[i].type;
    pointers_[i] = type.is_tensors()                 ? static_cast<void*>(&list_)
                   : type.base == ValueType::kBool   ? static_cast<void*>(&boolean_)
                   : type.base == ValueType::kInt    ? static_cast<void*>(&integer_)
                   : type.base == ValueType::kFloat  ? static_cast<void*>(&real_)
                   : type.base == ValueType::kScalar ? static_cast<void*>(&number_)
                                                     : static_cast<void*>(&tensors_[i]);
  }
}

void Results::push(Stack& stack) {
  stack.clear();
  for (size_t i = 0; i < schema_.results.size(); i++) {
    const SchemaType& type = schema_.results[i].type;
    if (type.is_tensors())
      stack.emplace_back(std::move(list_));
    else if (type.base == ValueType::kBool)
      stack.emplace_back(boolean_);
    else if (type.base == ValueType::kInt)
      stack.emplace_back(integer_);
    else if (type.base == ValueType::kFloat)
      stack.emplace_back(real_);
    else if (type.base == ValueType::kScalar)
      stack.emplace_back(number_);
    else
      stack.emplace_back(std::move(tensors_[i]));
  }
}

void unbox_results(const Operator& op, Stack& stack, void* const* results) {
  const auto& expected = op.schema().results;
  TD_CHECK(stack.size() == expected.size(), "{}: a handler returned {} results instead of {}",
           op.qualified_name(), stack.size(), expected.size());
  for (size_t i = 0; i < expected.size(); i++) {
    const SchemaType& type = expected[i].type;
    if (type.is_tensors())
      *static_cast<TensorList*>(results[i]) = std::move(stack[i].tensors());
    else if (type.base == ValueType::kBool)
      *static_cast<bool*>(results[i]) = stack[i].boolean();
    else if (type.base == ValueType::kInt)
      *static_cast<int64_t*>(results[i]) = stack[i].integer();
    else if (type.base == ValueType::kFloat)
      *static_cast<double*>(results[i]) = stack[i].real();
    else if (type.base == ValueType::kScalar)
      *static_cast<Scalar*>(results[i]) = stack[i].scalar();
    else
      *static_cast<Tensor*>(results[i]) = stack[i].tensor();
  }
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
        value = IntSpan(contract::wrap_dims(schema.name, IntSpan(value.ints()), ndim));
    }
  }
}

}  // namespace taeda::boxing
