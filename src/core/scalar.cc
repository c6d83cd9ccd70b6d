#include "taeda/scalar.h"

namespace taeda {

DType Scalar::dtype() const {
  switch (kind_) {
    case Kind::kBool:
      return DType::kBool;
    case Kind::kInt:
      return DType::kInt64;
    case Kind::kFloat:
      return default_dtype();
    case Kind::kComplex:
      return taeda::to_complex(default_dtype());
  }
  return DType::kFloat32;
}

int64_t Scalar::to_int64() const {
  // 2^63 is the first double that does not fit; NaN fails both comparisons.
  TD_CHECK(real_ >= -0x1p63 && real_ < 0x1p63,
           "value cannot be converted to type int64_t without overflow");
  return static_cast<int64_t>(real_);
}

void Scalar::fail_overflow(size_t bytes, bool is_signed) const {
  fail(ErrorKind::kRuntime, "value cannot be converted to type {}{}_t without overflow: {}",
       is_signed ? "int" : "uint", bytes * 8, *this);
}

std::string to_text(const Scalar& value) {
  switch (value.kind()) {
    case Scalar::Kind::kBool:
      return value.to_bool() ? "True" : "False";
    case Scalar::Kind::kInt:
      return value.is_huge() ? std::to_string(value.to<uint64_t>())
                             : std::to_string(value.to_int());
    case Scalar::Kind::kFloat:
      return detail::to_text(value.to_double());
    case Scalar::Kind::kComplex: {
      const std::complex<double> z = value.to_complex();
      const std::string imag = detail::to_text(z.imag());
      return "(" + detail::to_text(z.real()) + (imag[0] == '-' ? "" : "+") + imag + "j)";
    }
  }
  return {};
}

}  // namespace taeda
