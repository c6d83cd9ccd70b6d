#include "ops/rules.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <set>
#include <utility>

#include "base/fork.h"
#include "taeda/warning.h"

namespace taeda::rules {

namespace {
int category(DType t) { return is_complex(t) ? 3 : is_floating(t) ? 2 : is_integral(t) ? 1 : 0; }

// `lower` matters only where its category is above that of `higher`.
DType combine(bool has_higher, DType higher, bool has_lower, DType lower) {
  if (!has_lower) return higher;
  if (!has_higher) return lower;
  if (category(higher) >= category(lower)) return higher;
  if (is_complex(lower) && is_floating(higher)) return to_complex(higher);
  return promote_types(higher, lower);
}
}  // namespace

void Promotion::add(const Tensor& t) {
  const TensorImpl& impl = *t.impl();
  DType& slot = impl.wrapped_number ? number_ : impl.ndim() == 0 ? zero_ : dims_;
  bool& present = impl.wrapped_number ? has_number_ : impl.ndim() == 0 ? has_zero_ : has_dims_;
  DType dtype = impl.dtype;
  if (impl.wrapped_number) {
    if (is_complex(dtype))
      dtype = to_complex(default_dtype());
    else if (is_floating(dtype))
      dtype = default_dtype();
  }
  slot = present ? promote_types(slot, dtype) : dtype;
  present = true;
}

DType Promotion::result() const {
  const DType ranked = combine(has_dims_, dims_, has_zero_, zero_);
  return combine(has_dims_ || has_zero_, ranked, has_number_, number_);
}

DType result_type(const Tensor& a, const Tensor& b) {
  Promotion promotion;
  promotion.add(a);
  promotion.add(b);
  return promotion.result();
}

bool is_batched(const Tensor& t) { return t.impl()->keys.has(Key::kBatched); }

bool is_number(const Tensor& t) { return t.impl()->wrapped_number; }
double real_number(const Tensor& t) { return t.item_scalar().to_double(); }
bool is_seen() { return thread_modes.included.has(Key::kPython); }

bool is_negative_integer(const Tensor& t) {
  return is_number(t) && t.dtype() == DType::kInt64 && t.item_scalar().to_int() < 0;
}

bool is_stored(const Tensor& t) { return is_storage_type(t.dtype()); }

namespace {

bool is_signed_float8(DType t) {
  return is_floating(t) && item_size(t) == 1 && t != DType::kFloat8E8M0FNU &&
         t != DType::kFloat4E2M1FNx2;
}
bool is_number_type(DType t) { return t != DType::kBool && !is_storage_type(t); }

}  // namespace

bool has_absolute(const Tensor& t) {
  const DType type = t.dtype();
  TD_CHECK_IMPLEMENTED(is_number_type(type) || is_complex(type) || is_signed_float8(type),
                       "\"abs\" not implemented for '{}'", scalar_type_name(type));
  return true;
}

bool has_products(const Tensor& t) {
  TD_CHECK_IMPLEMENTED(is_number_type(t.dtype()) || is_signed_float8(t.dtype()),
                       "\"mm\" not implemented for '{}'", scalar_type_name(t.dtype()));
  return true;
}

bool deprecated(std::string_view what, std::string_view instead) {
  struct Given {
    Given() { protect_over_fork(mutex); }
    std::mutex mutex;
    std::set<std::string_view> texts;  // of the table, which outlive everything
  };
  static Given& given = *new Given;
  {
    const std::lock_guard<std::mutex> lock(given.mutex);
    if (!given.texts.insert(what).second && !warn_always) return true;
  }
  warn(format("{} is deprecated: use {}", what, instead));
  return true;
}

DimVector reduced(IntSpan sizes, OptInts dims, bool keepdim) {
  DimVector out;
  const bool all = !dims || dims->empty();
  for (size_t i = 0; i < sizes.size(); i++) {
    const bool gone =
        all || std::find(dims->begin(), dims->end(), static_cast<int64_t>(i)) != dims->end();
    if (!gone)
      out.push_back(sizes[i]);
    else if (keepdim)
      out.push_back(1);
  }
  return out;
}

bool fits(const OptScalar& value, DType dtype) {
  if (!value || !value->is_integral() || !is_integral(dtype)) return true;
  if (value->is_huge()) return dtype == DType::kUInt64;
  const int64_t v = value->to_int(), digits = 8 * item_size(dtype) - is_signed(dtype);
  // Negative numbers wrap around in an unsigned dtype.
  return digits >= 63 || (v < 0 ? -(v + 1) : v) >> digits == 0;
}

bool number_fits(const Tensor& value, DType dtype) {
  return !is_number(value) || !is_integral(value.dtype()) || fits(value.item_scalar(), dtype);
}

bool takes_no_gradient(const Tensor& t) { return !thread_modes.grad_enabled || !t.requires_grad(); }

double largest(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 65504;
    case DType::kBFloat16:
      return 0x1.fep127;
    case DType::kFloat64:
      return std::numeric_limits<double>::max();
    default:
      return std::numeric_limits<float>::max();
  }
}

std::string c_name(DType dtype) {
  return taeda::format("{}int{}_t", is_signed(dtype) ? "" : "u", 8 * item_size(dtype));
}

}  // namespace taeda::rules
