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

// Whether an operator writes its numbers in row-major order into an out= of any shape that has
// their number of elements.
bool keeps_shape_of_out(std::string_view op) {
  return op == "arange" || op == "linspace" || op == "logspace" || op == "range";
}

// Whether an operator leaves its out= alone where it has nothing to write there: there are no
// statistics of a batch without training.
bool leaves_out(std::string_view op, const Tensor& result) {
  return op.ends_with("native_batch_norm") && result.dim() == 1 && result.numel() == 0;
}

// Lays an out= that was just resized out as a dense result is, such as the column-major matrices of
// LAPACK, as if it had been computed there. One that another dtype may be converted to is copied
// into and row-major.
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

bool is_nan_sum(std::string_view op) { return op == "nansum" || op == "nanmean"; }
bool is_spread(std::string_view op) { return op == "std" || op == "var"; }

// The class of PyTorch's exception where the result cannot become `out`: a TypeError of those that
// concatenate, and where it computes in the dtype of out=, that it has no kernel for it.
ErrorKind kind_of_refusal(std::string_view op, DType out) {
  if (op == "cat" || op == "_chunk_cat" || op.ends_with("stack")) return ErrorKind::kType;
  const bool computed =
      is_nan_sum(op) || (is_complex(out) && is_spread(op)) || (!is_inexact(out) && op == "normal");
  return computed ? ErrorKind::kNotImplemented : ErrorKind::kRuntime;
}

// Whether a result that can be cast to the dtype of out= may be: real numbers of a transform, a sum
// without NaN or a deviation do not become complex; sums of integers become anything.
bool may_be_cast(std::string_view op, DType result, DType out) {
  if (is_nan_sum(op) && is_integral(result)) return true;
  const bool real = is_nan_sum(op) || is_spread(op) || op.starts_with("fft_");
  return can_cast(result, out) && !(real && is_floating(result) && is_complex(out));
}

}  // namespace

void check_out_dtype(std::string_view op, OutDtype allowed, DType result, DType out) {
  if (op == "any" || op == "all") {
    TD_CHECK(out == DType::kBool || out == DType::kUInt8,
             "{} only supports bool tensor for result, got: {}", op, scalar_type_name(out));
    return;
  }
  if (allowed == OutDtype::kAny) {
    TD_CHECK_AS(ErrorKind::kNotImplemented, op != "bernoulli" || !is_complex(out),
                "\"bernoulli\" not implemented for '{}'", scalar_type_name(out));
    return;
  }
  if (allowed == OutDtype::kSame && result != out) {
    const bool scans = op == "cummax" || op == "cummin" || op == "logcumsumexp";
    TD_CHECK(!scans, "{}: out= expected scalar_type {} but found {}", op, scalar_type_name(result),
             scalar_type_name(out));
    fail(kind_of_refusal(op, out), "{}: Expected out tensor to have dtype {}, but got {} instead",
         op, scalar_type_name(result), scalar_type_name(out));
  }
  TD_CHECK_AS(kind_of_refusal(op, out), may_be_cast(op, result, out),
              "{}: result type {} can't be cast to the desired output type {}", op,
              scalar_type_name(result), scalar_type_name(out));
}

Tensor write_inplace(std::string_view op, const Tensor& self, const Tensor& result) {
  check_out_dtype(op, OutDtype::kCastable, result.dtype(), self.dtype());
  return op::copy_(self, result, false);
}

void write_out(std::string_view op, const Tensor& out, const Tensor& result, OutPolicy policy) {
  TD_CHECK(out.device() == result.device(), "{}: expected out= on {}, got {}", op, result.device(),
           out.device());
  if (result.dim() > 0 || !is_spread(op))  // PyTorch computes that of all elements by itself
    check_out_dtype(op, policy.dtype, result.dtype(), out.dtype());
  else
    TD_CHECK(can_cast(result.dtype(), out.dtype()), "{}: {} cannot be cast to {}", op,
             scalar_type_name(result.dtype()), scalar_type_name(out.dtype()));
  if (leaves_out(op, result)) return;
  // PyTorch multiplies a matrix of one row, to whose shape it resizes a vector with gaps.
  if (op == "linear" && result.dim() == 1 && !out.is_contiguous()) {
    resize_out(op, out, {1, result.numel()});
    op::resize_(out, result.sizes(), std::nullopt);
  }
  if (keeps_shape_of_out(op) && out.numel() == result.numel()) {
    op::copy_(out, op::view(result, out.sizes()), false);
    return;
  }
  if (out.sizes() != result.sizes()) {
    const bool had_elements = out.numel() > 0;
    resize_out(op, out, result.sizes(), (policy.quietly && op != "arange") || op == "addbmm");
    if ((policy.dtype != OutDtype::kCastable || op == "fft_ifft") &&
        !(op == "ormqr" && had_elements))
      take_order_of(result, out);
  }
  op::copy_(out, result, false);
}

}  // namespace taeda
