#include "ops/allocate.h"

#include <limits>

#include "core/device_memory.h"
#include "core/layout.h"
#include "kernels/copy.h"
#include "op/copy_.h"
#include "op/resize_.h"
#include "op/view.h"
#include "ops/dispatch.h"
#include "taeda/warning.h"

namespace taeda {

std::atomic<bool> fill_uninitialized{false};

namespace {

[[gnu::cold]] void warn_of_complex_half() {
  TD_WARN_ONCE("ComplexHalf support is experimental and many operators don't support it yet.");
}

Tensor make_tensor(int64_t nbytes, DType dtype, Device device) {
  if (dtype == DType::kComplex32) [[unlikely]]
    warn_of_complex_half();
  // Tensors have the index of their device: "cuda" is the current one's here, and never later. The
  // CPU has none: "cpu:0" is "cpu".
  device = device.is_cpu() ? Device() : resolved(device);
  return Tensor(make_ref<TensorImpl>(Storage::allocate(nbytes, device), dtype, device));
}

// A number that shows where it should not be: NaN, or the largest of the dtype.
Scalar unlikely_value(DType t) {
  if (is_inexact(t)) return std::numeric_limits<double>::quiet_NaN();
  if (t == DType::kBool) return true;
  const int64_t bits = item_size(t) * 8 - (dtype_info(t).is_signed ? 1 : 0);
  return ~uint64_t{0} >> (64 - bits);
}

// Lays an out= that was just resized out as a dense result is, such as the column-major matrices of
// LAPACK, as if it had been computed there.
void take_order_of(const Tensor& result, const Tensor& out) {
  const TensorImpl& r = *result.impl();
  if (r.contiguous || !is_dense_layout(r.sizes, r.strides)) return;
  out.impl()->set_layout(DimVector(r.sizes), DimVector(r.strides), out.impl()->offset);
}

}  // namespace

Tensor empty_tensor(IntSpan sizes, DType dtype, Device device) {
  Tensor t = make_tensor(checked_nbytes(sizes, dtype), dtype, device);
  t.impl()->set_contiguous_layout(sizes);
  return t;
}

Tensor empty_strided_tensor(IntSpan sizes, IntSpan strides, DType dtype, Device device) {
  checked_nbytes(sizes, dtype);
  Tensor t = make_tensor(storage_bytes_needed(sizes, strides, 0, dtype), dtype, device);
  t.impl()->set_layout(sizes, strides, 0);
  return t;
}

Tensor empty_like_tensor(const Tensor& like, DType dtype) {
  if (like.impl()->contiguous) return empty_tensor(like.sizes(), dtype, like.device());
  return empty_strided_tensor(like.sizes(), preserved_strides(like.sizes(), like.strides()), dtype,
                              like.device());
}

Tensor alias_tensor(const Tensor& base, IntSpan sizes, IntSpan strides, int64_t offset) {
  const TensorImpl& source = *base.impl();
  auto impl = make_ref<TensorImpl>(source.storage, source.dtype, source.device);
  impl->own_version = source.own_version;
  impl->keys = impl->keys | (source.keys & kMathBits);
  impl->set_layout(sizes, strides, offset);
  return Tensor(std::move(impl));
}

void fill_unwritten(const Tensor& t) {
  if (t.numel() > 0 && has_memory(t.device())) kernels::fill(view_of(t), unlikely_value(t.dtype()));
}

void resize_out(std::string_view op, const Tensor& out, IntSpan sizes, bool quietly) {
  TD_CHECK(out.storage()->resizable(),
           "{}: out= has shape {} and memory that cannot be resized to {}", op, out.sizes(), sizes);
  if (out.numel() != 0 && !quietly) {
    warn(format(
        "An output with one or more elements was resized since it had shape {}, which does not "
        "match the required output shape {}: out= of {}. This behavior is deprecated, and in a "
        "future PyTorch release outputs will not be resized unless they have zero elements; give "
        "it the result's shape, or resize it to none (t.resize_(0)) before.",
        out.sizes(), sizes, op));
  }
  op::resize_(out, sizes, std::nullopt);
}

namespace {

// Whether a result is computed in out=, not cast to its dtype.
bool is_computed_in(OutDtype allowed) {
  return allowed == OutDtype::kSame || allowed == OutDtype::kScanned ||
         allowed == OutDtype::kDrawn || allowed == OutDtype::kArgument ||
         allowed == OutDtype::kAveraged || allowed == OutDtype::kGiven ||
         allowed == OutDtype::kAny || allowed == OutDtype::kAnyReal;
}

ErrorKind kind_of_refusal(OutDtype allowed, DType out) {
  const bool unable = allowed == OutDtype::kSummed || allowed == OutDtype::kAnyReal ||
                      (allowed == OutDtype::kDeviation && is_complex(out)) ||
                      (allowed == OutDtype::kDrawn && !is_inexact(out));
  if (unable) return ErrorKind::kNotImplemented;
  if (allowed == OutDtype::kGiven) return ErrorKind::kValue;
  return allowed == OutDtype::kJoined ? ErrorKind::kType : ErrorKind::kRuntime;
}

bool is_allowed(OutDtype allowed, DType result, DType out) {
  switch (allowed) {
    case OutDtype::kSame:
    case OutDtype::kArgument:
    case OutDtype::kAveraged:
    case OutDtype::kGiven:
    case OutDtype::kScanned:
      return result == out;
    case OutDtype::kDrawn:
      return result == out || (is_floating(result) && is_floating(out));
    case OutDtype::kAny:
      return true;
    case OutDtype::kAnyReal:
      return !is_complex(out);
    case OutDtype::kTruth:
      return out == DType::kBool || out == DType::kUInt8;
    case OutDtype::kSummed:
      if (is_integral(result)) return true;
      [[fallthrough]];
    case OutDtype::kReal:
    case OutDtype::kDeviation:
      if (is_floating(result) && is_complex(out)) return false;
      [[fallthrough]];
    default:
      return can_cast(result, out);
  }
}

}  // namespace

void check_out_dtype(std::string_view op, OutDtype allowed, DType result, DType out) {
  if (is_allowed(allowed, result, out)) return;
  const ErrorKind kind = kind_of_refusal(allowed, out);
  const std::string_view from = scalar_type_name(result), to = scalar_type_name(out);
  switch (allowed) {
    case OutDtype::kTruth:
      fail(kind, "{} only supports bool tensor for result, got: {}", op, to);
    case OutDtype::kAnyReal:
      fail(kind, "\"{}\" not implemented for '{}'", op, to);
    case OutDtype::kScanned:
      fail(kind, "{}: out= expected scalar_type {} but found {}", op, from, to);
    case OutDtype::kSame:
    case OutDtype::kArgument:
    case OutDtype::kAveraged:
    case OutDtype::kGiven:
    case OutDtype::kDrawn:
      fail(kind, "{}: Expected out tensor to have dtype {}, but got {} instead", op, from, to);
    default:
      fail(kind, "{}: result type {} can't be cast to the desired output type {}", op, from, to);
  }
}

Tensor write_inplace(std::string_view op, const Tensor& self, const Tensor& result) {
  check_out_dtype(op, OutDtype::kCastable, result.dtype(), self.dtype());
  return op::copy_(self, result, false);
}

void write_out(std::string_view op, const Tensor& out, const Tensor& result, OutPolicy policy) {
  TD_CHECK(out.device() == result.device(), "{}: expected out= on {}, got {}", op, result.device(),
           out.device());
  const bool of_all = policy.dtype == OutDtype::kDeviation && result.numel() == 1;
  const bool widened = is_reduced_floating(result.dtype()) && !is_reduced_floating(out.dtype());
  const OutDtype all = widened ? OutDtype::kSame : OutDtype::kCastable;
  check_out_dtype(op, of_all ? all : policy.dtype, result.dtype(), out.dtype());
  const OutShape shape = policy.shape;
  if (shape == OutShape::kKept && result.dim() == 1 && result.numel() == 0) return;
  const bool counted = shape == OutShape::kCount || shape == OutShape::kCountWarned;
  if (counted && out.numel() == result.numel()) {
    op::copy_(out, op::view(result, out.sizes()), false);
    return;
  }
  if (shape == OutShape::kOneRow && result.dim() == 1 && !out.is_contiguous()) {
    resize_out(op, out, {1, result.numel()});
    op::resize_(out, result.sizes(), std::nullopt);
  }
  if (out.sizes() != result.sizes()) {
    const bool copied = shape == OutShape::kCopied && out.numel() > 0;
    resize_out(op, out, result.sizes(), shape == OutShape::kQuiet || shape == OutShape::kCount);
    if (is_computed_in(policy.dtype) && !copied) take_order_of(result, out);
  }
  op::copy_(out, result, false);
}

}  // namespace taeda
