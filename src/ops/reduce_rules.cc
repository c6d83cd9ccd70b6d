#include "ops/reduce_rules.h"

#include <limits>

#include "ops/host.h"
#include "ops/rules.h"
#include "taeda/warning.h"

namespace taeda::rules {

DType sum_dtype(DType self, OptDType dtype) {
  if (dtype) return *dtype;
  return is_inexact(self) ? self : DType::kInt64;
}
bool inexact_or_given(DType self, OptDType dtype) { return is_inexact(dtype.value_or(self)); }
DType statistics_dtype(DType t) { return is_reduced_floating(t) ? DType::kFloat32 : t; }
double epsilon(DType t) {
  switch (to_real(t)) {
    case DType::kFloat16:
      return 0x1p-10;
    case DType::kBFloat16:
      return 0x1p-7;
    case DType::kFloat64:
      return std::numeric_limits<double>::epsilon();
    default:
      return std::numeric_limits<float>::epsilon();
  }
}
std::string type_name(DType t) { return std::string(scalar_type_name(t)); }
bool adds_up(std::string_view kernel, DType t) {
  TD_CHECK_IMPLEMENTED(!is_storage_type(t) || is_complex(t), "\"{}\" not implemented for '{}'",
                       kernel, scalar_type_name(t));
  return true;
}
std::string cxx_type_name(DType t) {
  switch (t) {
    case DType::kFloat32:
      return "float";
    case DType::kFloat64:
      return "double";
    case DType::kFloat16:
      return "c10::Half";
    case DType::kBFloat16:
      return "c10::BFloat16";
    case DType::kBool:
      return "bool";
    case DType::kUInt8:
      return "unsigned char";
    case DType::kInt8:
      return "signed char";
    case DType::kInt16:
      return "short int";
    case DType::kInt32:
      return "int";
    case DType::kInt64:
      return "long int";
    case DType::kComplex64:
      return "c10::complex<float>";
    case DType::kComplex128:
      return "c10::complex<double>";
    default:
      return std::string(to_text(t));
  }
}

DimVector reduced_dim(IntSpan sizes, OptInt dim, bool keepdim) {
  DimVector out;
  for (size_t i = 0; i < sizes.size(); i++) {
    const bool gone = !dim || static_cast<size_t>(*dim) == i;
    if (!gone)
      out.push_back(sizes[i]);
    else if (keepdim)
      out.push_back(1);
  }
  return out;
}
DimVector row_sizes(IntSpan sizes, int64_t trailing) {
  DimVector out = sizes;
  const int64_t n = static_cast<int64_t>(sizes.size());
  for (int64_t i = std::max<int64_t>(0, n - trailing); i < n; i++) out[static_cast<size_t>(i)] = 1;
  return out;
}
bool ends_with(IntSpan sizes, IntSpan tail) {
  return tail.size() <= sizes.size() &&
         sizes.slice(sizes.size() - tail.size(), tail.size()) == tail;
}
DimVector trailing_dims(int64_t count) {
  DimVector out;
  for (int64_t i = -count; i < 0; i++) out.push_back(i);
  return out;
}
DimVector all_but_channel(int64_t ndim) {
  DimVector out{0};
  for (int64_t i = 2; i < ndim; i++) out.push_back(i);
  return out;
}
DimVector channel_shape(int64_t ndim, int64_t channels) {
  DimVector out(static_cast<size_t>(ndim), 1);
  if (ndim > 1) out[1] = channels;
  return out;
}
int64_t softmax_dim(int64_t ndim, OptInt dim) {
  if (dim) return *dim;
  return ndim == 0 || ndim == 1 || ndim == 3 ? 0 : 1;
}
std::string join(IntSpan sizes) {
  std::string out;
  for (int64_t s : sizes) out += (out.empty() ? "" : ", ") + std::to_string(s);
  return out;
}
int64_t spatial_numel(IntSpan sizes) {
  int64_t n = 1;
  for (size_t d = 2; d < sizes.size(); d++) n *= sizes[d];
  return n;
}
std::string size_text(IntSpan sizes) { return "torch.Size([" + join(sizes) + "])"; }

bool are_parts_of_complex(DType a, DType b) {
  for (DType t : {a, b})
    TD_CHECK(t == DType::kFloat16 || t == DType::kFloat32 || t == DType::kFloat64,
             "Expected both inputs to be Half, Float or Double tensors but got {} and {}",
             scalar_type_name(a), scalar_type_name(b));
  TD_CHECK(a == b, "Expected object of scalar type {} but got scalar type {} for second argument",
           scalar_type_name(a), scalar_type_name(b));
  return true;
}
bool reduces_all(std::string_view op, int64_t numel) {
  TD_CHECK(numel > 0,
           "{}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
           "reduction dim with the "
           "'dim' argument.",
           op);
  return true;
}
bool reduces_something(std::string_view op, IntSpan sizes, IntSpan dims) {
  int64_t numel = 1;
  for (int64_t s : sizes) numel *= s != 0;
  if (numel) return true;
  if (dims.empty()) return reduces_all(op, 0);
  for (int64_t d : dims) {
    TD_CHECK_INDEX(sizes[static_cast<size_t>(d)] != 0,
                   "{}(): Expected reduction dim {} to have non-zero size.", op, d);
  }
  return true;
}
bool has_extreme(std::string_view op, IntSpan sizes, OptInt dim) {
  if (dim) return reduces_something(op, sizes, {*dim});
  for (int64_t s : sizes) {
    TD_CHECK_INDEX(s != 0, "{}(): Expected reduction dim to be specified for input.numel() == 0.",
                   op);
  }
  return true;
}
bool has_degrees_of_freedom(std::string_view op, const Tensor& self, OptInts dims,
                            const OptScalar& correction) {
  if (!has_values(self)) return true;
  int64_t results = 1;
  for (int64_t s : reduced(self.sizes(), dims, false)) results *= s;
  const double count = results == 0 ? 0 : static_cast<double>(self.numel() / results);
  if (count <= (correction ? correction->to_double() : 1.0)) [[unlikely]] {
    warn(
        format("{}(): degrees of freedom is <= 0: each result is of {} elements, which must be "
               "more than the correction",
               op, count));
  }
  return true;
}
bool norm_defined(double ord, IntSpan sizes, OptInts dims) {
  if (!(ord < 0) && ord != std::numeric_limits<double>::infinity()) return true;
  bool empty = false;
  if (!dims || dims->empty()) {
    for (int64_t s : sizes) empty = empty || s == 0;
  } else {
    for (int64_t d : *dims) empty = empty || (!sizes.empty() && sizes[static_cast<size_t>(d)] == 0);
  }
  TD_CHECK(!empty,
           "linalg.vector_norm cannot compute the {} norm on an empty tensor because the operation "
           "does not have an "
           "identity",
           ord);
  return true;
}
bool norm_dtype_fits(std::string_view op, const Tensor& self, OptDType dtype) {
  const DType given = self.dtype();
  TD_CHECK(is_inexact(given), "{}: Expected a floating point or complex tensor as input. Got {}",
           op, scalar_type_name(given));
  if (!dtype) return true;
  TD_CHECK(is_inexact(*dtype), "{}: dtype should be floating point or complex, but got {}", op,
           scalar_type_name(*dtype));
  const char* kind = is_complex(given) ? "complex" : "real";
  TD_CHECK(is_complex(given) == is_complex(*dtype),
           "{}: dtype should be {} for {} inputs, but got {}", op, kind, kind,
           scalar_type_name(*dtype));
  TD_CHECK(
      promote_types(given, *dtype) == *dtype,
      "{}: the dtype of the input ({}) should be convertible without narrowing to the specified "
      "dtype ({})",
      op, scalar_type_name(given), scalar_type_name(*dtype));
  return true;
}

}  // namespace taeda::rules
