#include "taeda/operator.h"

namespace taeda {
namespace {

constexpr const char* kTypeNames[] = {
    "NoneType", "Tensor", "Tensor[]",     "bool",      "int",    "float",
    "complex",  "str",    "int[]",        "float[]",   "bool[]", "ScalarType",
    "Layout",   "Device", "MemoryFormat", "Generator",
};
static_assert(std::size(kTypeNames) == std::variant_size_v<Value::Data>);
const Tensor kUndefined;

}  // namespace

Value::Value(const Scalar& number) {
  switch (number.kind()) {
    case Scalar::Kind::kBool:
      data_ = number.to_bool();
      break;
    case Scalar::Kind::kInt:
      data_ = number.to_int();
      break;
    case Scalar::Kind::kFloat:
      data_ = number.to_double();
      break;
    case Scalar::Kind::kComplex:
      data_ = number.to_complex();
      break;
  }
}

const char* Value::type_name() const { return kTypeNames[data_.index()]; }

void Value::fail_type(const char* wanted) const {
  fail(ErrorKind::kType, "expected a value of type '{}' but found '{}'", wanted, type_name());
}

bool Value::is_number() const {
  return holds<bool>() || holds<int64_t>() || holds<double>() || holds<std::complex<double>>();
}

const Tensor& Value::tensor() const { return is_none() ? kUndefined : get<Tensor>("Tensor"); }

Scalar Value::scalar() const {
  if (const bool* value = std::get_if<bool>(&data_)) return Scalar(*value);
  if (const int64_t* value = std::get_if<int64_t>(&data_)) return Scalar(*value);
  if (const double* value = std::get_if<double>(&data_)) return Scalar(*value);
  return Scalar(get<std::complex<double>>("Scalar"));
}

bool Value::boolean() const { return get<bool>("bool"); }

int64_t Value::integer() const {
  if (const bool* value = std::get_if<bool>(&data_)) return *value;
  return get<int64_t>("int");
}

double Value::real() const {
  if (const double* value = std::get_if<double>(&data_)) return *value;
  if (holds<bool>() || holds<int64_t>()) return static_cast<double>(integer());
  return get<double>("float");
}

}  // namespace taeda
