// Whether a number can become an element of another dtype.
#include "ops/element_fits.h"

#include <cmath>
#include <complex>
#include <string>

#include "core/device_memory.h"
#include "ops/batching/level.h"
#include "ops/host.h"
#include "ops/linalg_rules.h"
#include "ops/rules.h"

namespace taeda {
namespace {

// Whether nobody here can look at the elements of `t`.
bool is_opaque(const Tensor& t) {
  const KeySet modes = KeySet(Key::kPython) | Key::kFunctionalize | Key::kSparse;
  return batching::is_batched(t) || !has_memory(t.device()) || !(t.impl()->keys & modes).empty();
}

// Whether a number can become an element of `dtype`: not one with an imaginary part where there is
// none, nor one out of range, but for infinities of floating dtypes. Negative integers wrap around
// in an unsigned dtype.
bool element_fits(const Scalar& number, DType dtype) {
  if (dtype == DType::kBool) return true;
  const std::complex<double> z = number.to_complex();
  if (!is_complex(dtype) && z.imag() != 0) return false;
  if (is_inexact(dtype)) {
    const double most = rules::largest(to_real(dtype));
    const auto fits = [=](double v) { return !std::isfinite(v) || std::abs(v) <= most; };
    return fits(z.real()) && fits(z.imag());
  }
  if (number.is_integral()) return rules::fits(number, dtype);
  const double end = std::ldexp(1.0, static_cast<int>(8 * item_size(dtype)) - is_signed(dtype));
  return z.real() < end && z.real() >= (is_signed(dtype) ? -end : 0);  // not NaN
}

std::string c_name(DType dtype) {
  if (is_integral(dtype)) return rules::c_name(dtype);
  if (dtype == DType::kFloat32) return "float";
  return dtype == DType::kFloat64 ? "double" : format("c10::{}", scalar_type_name(dtype));
}

}  // namespace

void check_element_fits(const Tensor& value, DType dtype) {
  TD_CHECK(value.dtype() == dtype || is_opaque(value) || element_fits(value.item_scalar(), dtype),
           "value cannot be converted to type {} without overflow", c_name(dtype));
}

}  // namespace taeda
