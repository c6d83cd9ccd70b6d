// torch.masked: operators of the elements that a mask lets count. The others take a value that does
// not change the result: 0 in a sum, the least number in a maximum.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/with_dtype.h"
#include "op/add.h"
#include "op/amax.h"
#include "op/amin.h"
#include "op/any.h"
#include "op/argmax.h"
#include "op/argmin.h"
#include "op/broadcast_to.h"
#include "op/clamp.h"
#include "op/conj.h"
#include "op/cumprod.h"
#include "op/cumsum.h"
#include "op/div.h"
#include "op/isnan.h"
#include "op/linalg_vector_norm.h"
#include "op/log_softmax.h"
#include "op/logaddexp.h"
#include "op/logsumexp.h"
#include "op/masked_sum.h"
#include "op/maximum.h"
#include "op/mul.h"
#include "op/nanmedian.h"
#include "op/prod.h"
#include "op/reshape.h"
#include "op/scalar_tensor.h"
#include "op/softmax.h"
#include "op/softmin.h"
#include "op/sqrt.h"
#include "op/sub.h"
#include "op/sum.h"
#include "op/to_dtype.h"
#include "op/where.h"
#include "ops/host.h"
#include "ops/reduce_rules.h"

namespace taeda::impl {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The dimensions in order; none means all.
DimVector reduced_dims(const Tensor& input, OptInts dim) {
  DimVector dims;
  if (dim && !dim->empty()) {
    dims = DimVector(*dim);
    std::sort(dims.begin(), dims.end());
  } else {
    for (int64_t d = 0; d < input.dim(); d++) dims.push_back(d);
  }
  return dims;
}

Tensor to(const Tensor& x, DType dtype) { return op::to_dtype(x, dtype, false, std::nullopt); }

// The mask as bools in the input's sizes; undefined if it is.
Tensor mask_of(const Tensor& input, const Tensor& mask) {
  if (!mask.defined()) return mask;
  TD_CHECK_INDEX(mask.dim() <= input.dim(),
                 "_input_mask expected broadcastable mask (got mask dimensionality higher than of "
                 "the input): {} and {}",
                 mask.dim(), input.dim());
  return to(op::broadcast_to(mask, input.sizes()), DType::kBool);
}

// The least or the greatest number of a dtype, infinite where there is one.
Scalar end_of(DType dtype, bool least, std::string_view name) {
  if (is_floating(dtype)) return Scalar(least ? -kInfinity : kInfinity);
  TD_CHECK_TYPE(!is_complex(dtype), "masked {}: expected a real input, got {}", name,
                scalar_type_name(dtype));
  TD_CHECK_IMPLEMENTED(dtype != DType::kBool, "identity of {} on torch.bool input", name);
  Scalar end;
  with_dtype<Join<Integers, Types<uint16_t, uint32_t, uint64_t>>>(dtype, name, [&]<class T>(T) {
    end = Scalar(least ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max());
  });
  return end;
}

// The input with identity() where the mask lets no element count.
template <class Identity>
Tensor filled(std::string_view name, const Tensor& input, const Tensor& mask,
              const Identity& identity) {
  TD_CHECK_VALUE(!input.is_sparse(), "masked {} expects strided tensor (got a sparse tensor)",
                 name);
  if (!mask.defined()) return input;
  TensorOptions options(input.dtype());
  options.device = input.device();
  return op::where(mask_of(input, mask), input, op::scalar_tensor(identity(), options));
}
Tensor filled_with(std::string_view name, const Tensor& input, const Tensor& mask, double value) {
  return filled(name, input, mask, [&] { return Scalar(value); });
}
Tensor filled_with_least(std::string_view name, const Tensor& input, const Tensor& mask) {
  return filled(name, input, mask, [&] { return end_of(input.dtype(), true, name); });
}
Tensor filled_with_greatest(std::string_view name, const Tensor& input, const Tensor& mask) {
  return filled(name, input, mask, [&] { return end_of(input.dtype(), false, name); });
}

DType dtype_or_of(OptDType dtype, const Tensor& input) { return dtype.value_or(input.dtype()); }

// How many elements count.
Tensor count(const Tensor& input, IntSpan dims, bool keepdim, const Tensor& mask) {
  TensorOptions options(DType::kBool);
  options.device = input.device();
  const Tensor counted =
      mask.defined() ? mask
                     : op::broadcast_to(op::scalar_tensor(Scalar(true), options), input.sizes());
  return op::sum(counted, OptInts(dims), keepdim, std::nullopt);
}

// The variance in the dtype that it is computed in.
Tensor variance(const Tensor& input, OptInts dim, OptBool unbiased, OptDouble correction,
                bool keepdim, OptDType given, const Tensor& mask) {
  TD_CHECK_AS(ErrorKind::kAssertion, !unbiased || !correction,
              "Only one of unbiased and correction may be given");
  const double lost = correction.value_or(unbiased.value_or(true) ? 1 : 0);
  const DType plain = given ? DType::kFloat32 : default_dtype();
  const DType wanted = dtype_or_of(given, input), dtype = is_inexact(wanted) ? wanted : plain;
  const Tensor counts = mask_of(input, mask);
  const DimVector dims = reduced_dims(input, dim);
  const Tensor n = count(input, dims, true, counts);
  const Tensor mean = op::div(masked_sum(input, dim, true, dtype, counts), n);
  const Tensor centered = op::sub(input, mean, Scalar(1));
  const Tensor squares = op::mul(centered, op::conj(centered));
  const Tensor total = masked_sum(squares, dim, keepdim, dtype, counts);
  const Tensor freedom =
      op::sub(to(op::reshape(n, total.sizes()), to_real(dtype)), Tensor(lost), Scalar(1));
  return op::div(total, op::clamp(freedom, OptScalar(Scalar(0)), std::nullopt));
}

}  // namespace

Tensor masked_sum(const Tensor& input, OptInts dim, OptBool keepdim, OptDType dtype,
                  const Tensor& mask) {
  return op::sum(filled_with("sum", input, mask, 0), OptInts(reduced_dims(input, dim)),
                 keepdim.value_or(false), rules::sum_dtype(input.dtype(), dtype));
}

Tensor masked_prod(const Tensor& input, OptInts dim, OptBool keepdim, OptDType dtype,
                   const Tensor& mask) {
  const Tensor data = filled_with("prod", input, mask, 1);
  const DType result = rules::sum_dtype(input.dtype(), dtype);
  if (input.dim() == 0) return op::to_dtype(data, result, true, std::nullopt);
  return op::prod(data, OptInts(reduced_dims(input, dim)), keepdim.value_or(false), result);
}

Tensor masked_cumsum(const Tensor& input, OptInt dim, OptDType dtype, const Tensor& mask) {
  return op::cumsum(filled_with("cumsum", input, mask, 0), dim.value_or(0),
                    dtype_or_of(dtype, input));
}
Tensor masked_cumprod(const Tensor& input, OptInt dim, OptDType dtype, const Tensor& mask) {
  return op::cumprod(filled_with("cumprod", input, mask, 1), dim.value_or(0),
                     dtype_or_of(dtype, input));
}

Tensor masked_amax(const Tensor& input, OptInts dim, OptBool keepdim, OptDType dtype,
                   const Tensor& mask) {
  const Tensor data = filled_with_least("amax", input, mask);
  return to(op::amax(data, reduced_dims(input, dim), keepdim.value_or(false)),
            dtype_or_of(dtype, input));
}
Tensor masked_amin(const Tensor& input, OptInts dim, OptBool keepdim, OptDType dtype,
                   const Tensor& mask) {
  const Tensor data = filled_with_greatest("amin", input, mask);
  return to(op::amin(data, reduced_dims(input, dim), keepdim.value_or(false)),
            dtype_or_of(dtype, input));
}
Tensor masked_argmax(const Tensor& input, OptInt dim, OptBool keepdim, OptDType dtype,
                     const Tensor& mask) {
  const Tensor data = filled_with_least("argmax", input, mask);
  return to(op::argmax(data, dim, keepdim.value_or(false)), dtype_or_of(dtype, input));
}
Tensor masked_argmin(const Tensor& input, OptInt dim, OptBool keepdim, OptDType dtype,
                     const Tensor& mask) {
  const Tensor data = filled_with_greatest("argmin", input, mask);
  return to(op::argmin(data, dim, keepdim.value_or(false)), dtype_or_of(dtype, input));
}

Tensor masked_mean(const Tensor& input, OptInts dim, OptBool keepdim, OptDType dtype,
                   const Tensor& mask) {
  const DType given = dtype_or_of(dtype, input);
  TD_CHECK_VALUE(is_inexact(given),
                 "mean(): Could not infer output dtype. {} dtype must be either a floating point "
                 "or complex dtype. Got: torch.{}",
                 dtype ? "Optional" : "Input", to_text(given));
  const Tensor counts = mask_of(input, mask);
  const Tensor n = count(input, reduced_dims(input, dim), keepdim.value_or(false), counts);
  return op::div(masked_sum(input, dim, keepdim, given, counts), n);
}

Tensor masked_median(const Tensor& input, OptInt dim, bool keepdim, OptDType dtype,
                     const Tensor& mask) {
  const bool floating = is_floating(input.dtype());
  const Tensor values = floating ? input : to(input, DType::kFloat32);
  const Tensor data = filled_with("median", values, mask, std::numeric_limits<double>::quiet_NaN());
  const Tensor result = std::get<0>(op::nanmedian_dim(data, dim.value_or(0), keepdim));
  if (floating) return result;
  TD_CHECK_VALUE(!known_true(op::any(op::isnan(result), std::nullopt, false)),
                 "masked median expects no fully masked out rows if dtype is not floating point");
  return to(result, dtype_or_of(dtype, input));
}

Tensor masked_logsumexp(const Tensor& input, OptInts dim, bool keepdim, OptDType dtype,
                        const Tensor& mask) {
  const Tensor data = is_complex(input.dtype()) ? filled_with("logsumexp", input, mask, -kInfinity)
                                                : filled_with_least("logsumexp", input, mask);
  return to(op::logsumexp(data, reduced_dims(input, dim), keepdim), dtype_or_of(dtype, input));
}

Tensor masked_logaddexp(const Tensor& input, const Tensor& other, OptDType dtype,
                        const Tensor& input_mask, const Tensor& other_mask) {
  const Tensor data = filled_with_least("logaddexp", input, input_mask);
  return to(op::logaddexp(data, filled_with_least("logaddexp", other, other_mask)),
            dtype_or_of(dtype, input));
}

Tensor masked_norm(const Tensor& input, const Scalar& ord, OptInts dim, OptBool keepdim,
                   OptDType dtype, const Tensor& mask) {
  const double identity = !ord.is_complex() && ord.to_double() == -kInfinity ? kInfinity : 0;
  return op::linalg_vector_norm(filled_with("norm", input, mask, identity), ord,
                                OptInts(reduced_dims(input, dim)), keepdim.value_or(false),
                                dtype_or_of(dtype, input));
}

Tensor masked_var(const Tensor& input, OptInts dim, OptBool unbiased, OptDouble correction,
                  OptBool keepdim, OptDType dtype, const Tensor& mask) {
  const Tensor result =
      variance(input, dim, unbiased, correction, keepdim.value_or(false), dtype, mask);
  return dtype ? to(result, *dtype) : result;
}
Tensor masked_std(const Tensor& input, OptInts dim, OptBool unbiased, OptDouble correction,
                  OptBool keepdim, OptDType dtype, const Tensor& mask) {
  return op::sqrt(masked_var(input, dim, unbiased, correction, keepdim, dtype, mask));
}

Tensor masked_softmax(const Tensor& input, OptInt dim, OptDType dtype, const Tensor& mask) {
  return op::softmax(filled_with_least("softmax", input, mask), dim.value_or(0),
                     dtype_or_of(dtype, input));
}
Tensor masked_log_softmax(const Tensor& input, OptInt dim, OptDType dtype, const Tensor& mask) {
  return op::log_softmax(filled_with_least("log_softmax", input, mask), dim.value_or(0),
                         dtype_or_of(dtype, input));
}
Tensor masked_softmin(const Tensor& input, OptInt dim, OptDType dtype, const Tensor& mask) {
  return op::softmin(filled_with_greatest("softmin", input, mask), dim.value_or(0), 3,
                     dtype_or_of(dtype, input));
}

Tensor masked_normalize(const Tensor& input, const Scalar& ord, OptInt dim, double eps,
                        OptDType dtype, const Tensor& mask) {
  const Tensor data = filled_with("normalize", input, mask, 0);
  const DimVector dims{dim.value_or(0)};
  const Tensor length = masked_norm(input, ord, OptInts(dims), true, dtype, mask);
  TensorOptions options(length.dtype());
  options.device = length.device();
  return op::div(data, op::maximum(length, op::scalar_tensor(Scalar(eps), options)));
}

}  // namespace taeda::impl
