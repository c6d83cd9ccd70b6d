// Factory functions, copies and conversions: the hand-written bodies behind ops/factory.yaml.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "core/layout.h"
#include "core/strides.h"
#include "core/with_dtype.h"
#include "device/has_kernels.h"
#include "kernels/copy.h"
#include "kernels/cpu/index/gather.h"
#include "kernels/cpu/pointwise/add_steps.h"
#include "kernels/cuda/sequence.h"
#include "kernels/sequences.h"
#include "op/_cast.h"
#include "op/arange.h"
#include "op/clone.h"
#include "op/empty.h"
#include "op/expand.h"
#include "op/eye.h"
#include "op/full.h"
#include "op/linspace.h"
#include "op/ones.h"
#include "op/resize_.h"
#include "op/to_dtype.h"
#include "op/zeros.h"
#include "ops/allocate.h"
#include "ops/dispatch.h"
#include "ops/host.h"
#include "taeda/warning.h"

namespace taeda::impl {

namespace {

DType dtype_or(const TensorOptions& options, DType fallback) {
  return options.dtype.value_or(fallback);
}
Device device_or_cpu(const TensorOptions& options) { return options.device.value_or(Device()); }

Tensor finished(Tensor t, const TensorOptions& options) {
  if (options.requires_grad) t.requires_grad_();
  return t;
}

Tensor filled(Tensor t, const Scalar& value) {
  kernels::fill(view_of(t), value);
  return t;
}

// `size` of full() and friends by the kind of number, as PyTorch infers it.
DType dtype_of_value(const Scalar& value) { return value.dtype(); }

Tensor like(const Tensor& self, const TensorOptions& options, OptMemoryFormat format) {
  const DType dtype = dtype_or(options, self.dtype());
  const Device device = options.device.value_or(self.device());
  const MemoryFormat kind = format.value_or(MemoryFormat::kPreserve);
  if (kind == MemoryFormat::kContiguous) return empty_tensor(self.sizes(), dtype, device);
  const DimVector strides = kind == MemoryFormat::kPreserve
                                ? preserved_strides(self.sizes(), self.strides())
                                : channels_last_strides(self.sizes());
  return empty_strided_tensor(self.sizes(), strides, dtype, device);
}

}  // namespace

Tensor empty(IntSpan size, const TensorOptions& options, OptMemoryFormat format) {
  const DType dtype = dtype_or(options, default_dtype());
  const MemoryFormat kind = format.value_or(MemoryFormat::kContiguous);
  if (kind == MemoryFormat::kContiguous)
    return finished(filled_if_asked(empty_tensor(size, dtype, device_or_cpu(options))), options);
  TD_CHECK(kind != MemoryFormat::kPreserve, "empty: memory_format must not be preserve_format");
  return finished(filled_if_asked(empty_strided_tensor(size, channels_last_strides(size), dtype,
                                                       device_or_cpu(options))),
                  options);
}

Tensor empty_strided(IntSpan size, IntSpan stride, const TensorOptions& options) {
  TD_CHECK(size.size() == stride.size(),
           "dimensionality of sizes ({}) must match dimensionality of strides ({})", size.size(),
           stride.size());
  return finished(filled_if_asked(empty_strided_tensor(
                      size, stride, dtype_or(options, default_dtype()), device_or_cpu(options))),
                  options);
}

Tensor empty_permuted(IntSpan size, IntSpan physical_layout, const TensorOptions& options) {
  TD_CHECK(size.size() == physical_layout.size(),
           "Number of dimensions in size does not match the length of the physical_layout; i.e. "
           "len(size) = {} is not equal to len(physical_layout) = {}",
           size.size(), physical_layout.size());
  DimVector strides(size.size(), -1);
  int64_t step = 1;
  for (size_t i = size.size(); i-- > 0;) {
    const int64_t dim = physical_layout[i];
    TD_CHECK(dim >= 0 && dim < static_cast<int64_t>(size.size()),
             "Dimension out of range (expected to be between 0 and {}, but got {} at index {}). "
             "NB: negative dims not currently supported",
             size.size() - 1, dim, i);
    const size_t d = static_cast<size_t>(dim);
    TD_CHECK(strides[d] < 0, "Duplicate dim not allowed");
    strides[d] = step;
    step = checked_mul(step, std::max<int64_t>(size[d], 1), "empty_permuted strides");
  }
  return empty_strided(size, strides, options);
}

Tensor full(IntSpan size, const Scalar& value, const TensorOptions& options) {
  Tensor t = empty_tensor(size, dtype_or(options, dtype_of_value(value)), device_or_cpu(options));
  return finished(filled(std::move(t), value), options);
}
Tensor zeros(IntSpan size, const TensorOptions& options) {
  TD_CHECK(std::all_of(size.begin(), size.end(), [](int64_t n) { return n >= 0; }),
           "zeros: Dimension size must be non-negative.\nFix: the sizes given are {}", size);
  Tensor t = empty_tensor(size, dtype_or(options, default_dtype()), device_or_cpu(options));
  return finished(filled(std::move(t), int64_t{0}), options);
}
Tensor ones(IntSpan size, const TensorOptions& options) {
  Tensor t = empty_tensor(size, dtype_or(options, default_dtype()), device_or_cpu(options));
  return finished(filled(std::move(t), int64_t{1}), options);
}

Tensor empty_like(const Tensor& self, const TensorOptions& options, OptMemoryFormat format) {
  return finished(filled_if_asked(like(self, options, format)), options);
}
Tensor zeros_like(const Tensor& self, const TensorOptions& options, OptMemoryFormat format) {
  return finished(filled(like(self, options, format), int64_t{0}), options);
}
Tensor ones_like(const Tensor& self, const TensorOptions& options, OptMemoryFormat format) {
  return finished(filled(like(self, options, format), int64_t{1}), options);
}
Tensor full_like(const Tensor& self, const Scalar& value, const TensorOptions& options,
                 OptMemoryFormat format) {
  return finished(filled(like(self, options, format), value), options);
}

namespace {
TensorOptions inherited(const Tensor& self, TensorOptions options) {
  if (!options.dtype) options.dtype = self.dtype();
  if (!options.device) options.device = self.device();
  return options;
}
}  // namespace

Tensor new_empty(const Tensor& self, IntSpan size, const TensorOptions& options) {
  return impl::empty(size, inherited(self, options), std::nullopt);
}
Tensor new_empty_strided(const Tensor& self, IntSpan size, IntSpan stride,
                         const TensorOptions& options) {
  return empty_strided(size, stride, inherited(self, options));
}
Tensor new_zeros(const Tensor& self, IntSpan size, const TensorOptions& options) {
  return impl::zeros(size, inherited(self, options));
}
Tensor new_ones(const Tensor& self, IntSpan size, const TensorOptions& options) {
  return impl::ones(size, inherited(self, options));
}
Tensor new_full(const Tensor& self, IntSpan size, const Scalar& value,
                const TensorOptions& options) {
  return impl::full(size, value, inherited(self, options));
}

namespace {

constexpr double kMaxCount = 9.2e18;

// The number as an integer, fractions cut off.
int64_t truncated(const Scalar& x) { return x.to<int64_t>(); }

constexpr int64_t kSequenceGrain = 65536;

// Whether a kernel of the device fills a tensor of such elements.
bool has_kernel(Device device, DType dtype) {
  return device.type == DeviceType::kCUDA && !is_storage_type(dtype) && cuda::has_kernels();
}

// Element i is start + i * step, in integers for integer dtypes, else in double; then converted.
Tensor sequence(int64_t count, const Scalar& start, const Scalar& step, DType dtype,
                const TensorOptions& options) {
  const DType compute = is_integral(dtype) ? DType::kInt64 : DType::kFloat64;
  const Device device = device_or_cpu(options);
  if (has_kernel(device, dtype)) {
    const Tensor out = empty_tensor({count}, dtype, device);
    if (is_integral(dtype))
      cuda::fill_sequence(view_of(out), sequences::Count{truncated(start), truncated(step)});
    else
      cuda::fill_sequence(view_of(out), sequences::Steps{start.to_double(), step.to_double()});
    return finished(out, options);
  }
  const auto count_up = [&](const Tensor& wide) {
    auto* data = wide.data<int64_t>();
    const sequences::Count at{truncated(start), truncated(step)};
    parallel_for(0, count, kSequenceGrain, [&](int64_t begin, int64_t end) {
      cpu::count_up(data + begin, end - begin, at(begin), at.step);
    });
  };
  const auto step_up = [&](const Tensor& wide) {
    auto* data = wide.data<double>();
    const sequences::Steps at{start.to_double(), step.to_double()};
    parallel_for(0, count, kSequenceGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) data[i] = at(i);
    });
  };
  const Tensor out = written_on_host({count}, dtype, device, [&](const Tensor& t) {
    const Tensor wide = dtype == compute ? t : empty_tensor({count}, compute, DeviceType::kCPU);
    is_integral(dtype) ? count_up(wide) : step_up(wide);
    if (!wide.is_same(t)) kernels::copy(view_of(t), view_of(wide));
  });
  return finished(out, options);
}

DType sequence_dtype(const Scalar& start, const Scalar& end, const Scalar& step,
                     const TensorOptions& options) {
  if (options.dtype) return *options.dtype;
  const bool integral = start.is_integral() && end.is_integral() && step.is_integral();
  return integral ? DType::kInt64 : default_dtype();
}

void check_sequence_dtype(std::string_view name, DType dtype) {
  TD_CHECK_IMPLEMENTED(dtype != DType::kBool && !is_complex(dtype) && !is_storage_type(dtype),
                       "\"{}_cpu\" not implemented for '{}'", name, scalar_type_name(dtype));
}

void check_range(double start, double end, double step) {
  TD_CHECK(step != 0, "step must be nonzero");
  TD_CHECK(std::isfinite(start) && std::isfinite(end), "unsupported range: {} -> {}", start, end);
  TD_CHECK(step > 0 ? end >= start : end <= start,
           "upper bound and lower bound inconsistent with step sign");
}

}  // namespace

Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step,
              const TensorOptions& options) {
  const double a = start.to_double(), b = end.to_double(), d = step.to_double();
  check_range(a, b, d);
  const DType dtype = sequence_dtype(start, end, step, options);
  check_sequence_dtype("arange", dtype);
  double count = std::ceil((b - a) / d);
  if (dtype == DType::kInt64) {  // counted in integers, as PyTorch does for this dtype alone
    const __int128 span = static_cast<__int128>(truncated(end)) - truncated(start),
                   width = truncated(step);
    TD_CHECK_VALUE(width != 0, "step must be nonzero");
    const __int128 steps = (span + width - (width > 0 ? 1 : -1)) / width;
    count = static_cast<double>(steps);
  }
  TD_CHECK(count >= 0 && count < kMaxCount, "arange: invalid size, possible overflow");
  return sequence(static_cast<int64_t>(count), start, step, dtype, options);
}
Tensor arange_end(const Scalar& end, const TensorOptions& options) {
  return impl::arange(end.is_integral() ? Scalar(int64_t{0}) : Scalar(0.0), end, int64_t{1},
                      options);
}
Tensor range(const Scalar& start, const Scalar& end, const Scalar& step,
             const TensorOptions& options) {
  const double a = start.to_double(), b = end.to_double(), d = step.to_double();
  check_range(a, b, d);
  const double count = std::floor((b - a) / d) + 1;
  TD_CHECK(count < kMaxCount, "range: invalid size, possible overflow");
  const DType dtype = dtype_or(options, default_dtype());
  check_sequence_dtype("range", dtype);
  return sequence(static_cast<int64_t>(count), start, step, dtype, options);
}

namespace {

// Of the triangle at and below a diagonal.
int64_t checked_triangle_size(int64_t rows, int64_t cols, int64_t offset) {
  const __int128 count = sequences::triangle_size<__int128>(rows, cols, offset);
  TD_CHECK(count < std::numeric_limits<int64_t>::max() / 2,
           "the triangle of a {} x {} matrix has too many elements", rows, cols);
  return static_cast<int64_t>(count);
}

// Row and column numbers, [2, count]; `columns(row)` is the part of a row: first column and end.
template <class F>
Tensor triangle_indices(std::string_view name, const sequences::Triangle& triangle, int64_t count,
                        const TensorOptions& options, const F& columns) {
  const DType dtype = dtype_or(options, DType::kInt64);
  TD_CHECK_IMPLEMENTED(dtype == DType::kInt32 || dtype == DType::kInt64,
                       "\"{}\" not implemented for '{}'", name, scalar_type_name(dtype));
  const Device device = device_or_cpu(options);
  if (has_kernel(device, dtype)) {
    const Tensor out = empty_tensor({2, count}, dtype, device);
    cuda::fill_triangle(view_of(out), triangle);
    return finished(out, options);
  }
  const int64_t first_row = triangle.is_upper ? 0 : std::max<int64_t>(0, -triangle.offset);
  const Tensor out = written_on_host({2, count}, DType::kInt64, device, [&](const Tensor& t) {
    int64_t* rows = t.data<int64_t>();
    int64_t* numbers = rows + count;  // of columns
    Looks looks;
    for (int64_t row = first_row, at = 0; at < count; row++) {
      const auto [first, end] = columns(row);
      const int64_t n = std::max<int64_t>(0, end - first);
      std::fill_n(rows + at, n, row);
      std::iota(numbers + at, numbers + at + n, first);
      looks.after(n);
      at += n;
    }
  });
  return finished(op::to_dtype(out, dtype, false, std::nullopt), options);
}

}  // namespace

Tensor tril_indices(int64_t row, int64_t col, int64_t offset, const TensorOptions& options) {
  offset = std::clamp(offset, -row, col);
  return triangle_indices(
      "tril_indices", {row, col, offset, false}, checked_triangle_size(row, col, offset), options,
      [&](int64_t i) { return std::pair(int64_t{0}, std::min(col, i + offset + 1)); });
}
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, const TensorOptions& options) {
  offset = std::clamp(offset, -row, col);
  const __int128 all = static_cast<__int128>(row) * col;
  TD_CHECK(all < std::numeric_limits<int64_t>::max() / 2,
           "the triangle of a {} x {} matrix has too many elements", row, col);
  const int64_t below = checked_triangle_size(row, col, std::max(offset - 1, -row));
  return triangle_indices(
      "triu_indices", {row, col, offset, true}, static_cast<int64_t>(all) - below, options,
      [&](int64_t i) { return std::pair(std::max<int64_t>(0, i + offset), col); });
}

namespace {

// The cosines of a window, so many from a multiple of kStep on at once: what many are made of is
// computed once.
class CosineTable {
 public:
  static constexpr int64_t kStep = sequences::Cosines::kStep;

  explicit CosineTable(const sequences::Cosines& all) : all_(all) {
    for (int64_t k = 0; k < kStep && !all.is_computed; k++) near_[k] = all.point(k);
  }
  void read(int64_t first, int64_t n, double* to) const {
    if (all_.is_computed) {
      for (int64_t k = 0; k < n; k++) to[k] = all_.computed(first + k);
      return;
    }
    const sequences::Cosines::Point start = all_.point(first);
    for (int64_t k = 0; k < n; k++) to[k] = all_.combined(start, near_[k]);
  }

 private:
  const sequences::Cosines& all_;
  sequences::Cosines::Point near_[kStep];
};

// f(T()) with the type of `dtype`, or with double where values are converted afterwards.
template <class F>
Tensor written_as_floats(int64_t n, DType dtype, Device device, const F& f) {
  const DType made = dtype == DType::kFloat32 ? dtype : DType::kFloat64;
  const Tensor out = written_on_host({n}, made, device, [&](const Tensor& t) {
    with_dtype<WideFloating>(made, [&]<class T>(T) { f(t.data<T>()); });
  });
  return op::to_dtype(out, dtype, false, std::nullopt);
}

// A window's n values at index[k] / last. The kind is a constant, so that the loop has vectors.
template <sequences::Window::Kind kKind, class T>
[[gnu::optimize("O3")]] void write_values(T* to, int64_t n, sequences::Window window, double last,
                                          const double* index, const double* cosine) {
  window.kind = kKind;
#pragma GCC ivdep
  for (int64_t k = 0; k < n; k++) to[k] = static_cast<T>(window(index[k] / last, cosine[k]));
}

template <sequences::Window::Kind kKind, class T>
void write_window(T* to, const sequences::Windowed& at) {
  constexpr int64_t kStep = CosineTable::kStep;
  const CosineTable cosines(at.cosines);
  double index[kStep] = {}, cosine[kStep] = {};
  for (int64_t first = 0; first < at.length; first += kStep) {
    const int64_t n = std::min(kStep, at.length - first);
    if (at.window.has_cosine()) cosines.read(first, n, cosine);
    cpu::add_steps(index, n, 0, 1, first, 1, false);
    write_values<kKind>(to + first, n, at.window, at.last, index, cosine);
  }
  if (at.length == 1) to[0] = 1;
}
template <class T>
void write_window(T* to, const sequences::Windowed& at) {
  using enum sequences::Window::Kind;
  switch (at.window.kind) {
    case kHamming:
      return write_window<kHamming>(to, at);
    case kBlackman:
      return write_window<kBlackman>(to, at);
    case kBartlett:
      return write_window<kBartlett>(to, at);
    case kKaiser:
      return write_window<kKaiser>(to, at);
  }
}

Tensor window(std::string_view name, int64_t length, bool periodic, const TensorOptions& options,
              const sequences::Window& what) {
  const DType dtype = dtype_or(options, default_dtype());
  TD_CHECK(is_floating(dtype), "{} expects floating point dtypes, got: {}", name,
           scalar_type_name(dtype));
  TD_CHECK(length >= 0, "{} requires non-negative window_length, got window_length={}", name,
           length);
  const sequences::Windowed at(what, length, periodic);
  const Device device = device_or_cpu(options);
  if (has_kernel(device, dtype)) {
    const Tensor out = empty_tensor({length}, dtype, device);
    cuda::fill_sequence(view_of(out), at);
    return finished(out, options);
  }
  const auto write = [&](auto* to) { write_window(to, at); };
  return finished(written_as_floats(length, dtype, device, write), options);
}

using sequences::Window;

}  // namespace

Tensor hamming_window_alpha(int64_t length, bool periodic, double alpha, double beta,
                            const TensorOptions& options) {
  return window("hamming_window", length, periodic, options, {Window::Kind::kHamming, alpha, beta});
}
Tensor hamming_window(int64_t length, bool periodic, const TensorOptions& options) {
  return hamming_window_alpha(length, periodic, 0.54, 0.46, options);
}
Tensor hann_window(int64_t length, bool periodic, const TensorOptions& options) {
  return window("hann_window", length, periodic, options, {Window::Kind::kHamming, 0.5, 0.5});
}
Tensor blackman_window(int64_t length, bool periodic, const TensorOptions& options) {
  return window("blackman_window", length, periodic, options, {Window::Kind::kBlackman});
}
Tensor bartlett_window(int64_t length, bool periodic, const TensorOptions& options) {
  return window("bartlett_window", length, periodic, options, {Window::Kind::kBartlett});
}
Tensor kaiser_window_beta(int64_t length, bool periodic, double beta,
                          const TensorOptions& options) {
  const double size = std::abs(beta);
  return window("kaiser_window", length, periodic, options,
                {Window::Kind::kKaiser, size, sequences::scaled_i0(size)});
}
Tensor kaiser_window(int64_t length, bool periodic, const TensorOptions& options) {
  return kaiser_window_beta(length, periodic, 12, options);
}

namespace {

// `end` as an element of `dtype` holds it: integers lose the fraction before anything is spaced.
template <class T>
T end_as(const Scalar& end, DType dtype) {
  if constexpr (std::is_same_v<T, double>) {
    double value = end.to_double();
    if (is_integral(dtype))
      with_dtype<Integers>(dtype, [&]<class I>(I) { value = static_cast<double>(end.to<I>()); });
    return value;
  } else {
    return end.to<T>();
  }
}

// Not inline: of two neighbours GCC 12 leaves out the conversion to float and back.
[[gnu::noinline]] double rounded_to_float(double x) { return static_cast<float>(x); }

// Numbers from both ends as PyTorch rounds them. Of float32 the step is a float, whose product with
// the index is exact, and of float64 it is added unrounded: grids keep their spacing so.
sequences::Spaced spaced(const Scalar& start, const Scalar& end, int64_t n, DType dtype,
                         bool is_exponent) {
  const double first = end_as<double>(start, dtype), last = end_as<double>(end, dtype);
  if (!is_exponent && dtype == DType::kFloat32)
    return sequences::spaced<float>(rounded_to_float(first), rounded_to_float(last), n, false);
  return sequences::spaced<double>(first, last, n, !is_exponent && dtype == DType::kFloat64);
}
sequences::ComplexSpaced complex_spaced(const Scalar& start, const Scalar& end, int64_t n,
                                        DType dtype, OptDouble base) {
  using Complex = std::complex<double>;
  const Complex first = end_as<Complex>(start, dtype), last = end_as<Complex>(end, dtype);
  return {sequences::spaced<double>(first.real(), last.real(), n, false),
          sequences::spaced<double>(first.imag(), last.imag(), n, false), base.value_or(0),
          base.has_value()};
}

// Each half from its end.
template <class T>
void write_spaced(T* to, const sequences::Spaced& at) {
  const int64_t half = at.n == 1 ? 1 : at.n / 2;
  cpu::add_steps(to, half, at.first, at.step, 0, 1, at.is_fused);
  cpu::add_steps(to + half, at.n - half, at.last, -at.step, at.n - 1 - half, -1, at.is_fused);
}

// at(i): by a kernel, or computed in double or complex<double> and converted.
template <class F>
Tensor filled_with(const F& at, int64_t n, DType dtype, const TensorOptions& options) {
  using T = decltype(at(0));
  constexpr DType kCompute = std::is_same_v<T, double> ? DType::kFloat64 : DType::kComplex128;
  const Device device = device_or_cpu(options);
  if (has_kernel(device, dtype)) {
    const Tensor out = empty_tensor({n}, dtype, device);
    cuda::fill_sequence(view_of(out), at);
    return finished(out, options);
  }
  if constexpr (std::is_same_v<F, sequences::Spaced>) {
    const auto write = [&](auto* to) { write_spaced(to, at); };
    return finished(written_as_floats(n, dtype, device, write), options);
  }
  const Tensor wide = written_on_host({n}, kCompute, device, [&](const Tensor& t) {
    T* const to = t.data<T>();
    for (int64_t i = 0; i < n; i++) to[i] = at(i);
  });
  return finished(op::to_dtype(wide, dtype, false, std::nullopt), options);
}

// linspace, and with a base logspace.
Tensor spaced_tensor(std::string_view name, const Scalar& start, const Scalar& end, int64_t steps,
                     OptDouble base, const TensorOptions& options) {
  const bool complex = start.is_complex() || end.is_complex();
  const DType inferred = complex ? to_complex(default_dtype()) : default_dtype();
  const DType dtype = dtype_or(options, inferred);
  TD_CHECK(!complex || is_complex(dtype),
           "{}(): inferred dtype {} can't be safely cast to passed dtype {}", name, inferred,
           scalar_type_name(dtype));
  if (steps < 2 && !base && (dtype == DType::kBool || is_storage_type(dtype))) {
    TensorOptions typed = options;  // nothing is spaced, and any dtype can be filled
    typed.dtype = dtype;
    return impl::full({steps}, start, typed);
  }
  if (has_memory(device_or_cpu(options)) && (!is_complex(dtype) || is_storage_type(dtype)))
    check_sequence_dtype(name, dtype);
  if (is_complex(dtype))
    return filled_with(complex_spaced(start, end, steps, dtype, base), steps, dtype, options);
  const sequences::Spaced numbers = spaced(start, end, steps, dtype, base.has_value());
  if (base) return filled_with(sequences::Powers{numbers, *base}, steps, dtype, options);
  return filled_with(numbers, steps, dtype, options);
}

}  // namespace

Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps,
                const TensorOptions& options) {
  return spaced_tensor("linspace", start, end, steps, std::nullopt, options);
}

Tensor linspace_tensor(const Tensor& start, const Tensor& end, int64_t steps,
                       const TensorOptions& options) {
  return linspace(start.item_scalar(), end.item_scalar(), steps, options);
}
Tensor linspace_end_tensor(const Scalar& start, const Tensor& end, int64_t steps,
                           const TensorOptions& options) {
  return linspace(start, end.item_scalar(), steps, options);
}

Tensor logspace(const Scalar& start, const Scalar& end, int64_t steps, double base,
                const TensorOptions& options) {
  const bool complex = start.is_complex() || end.is_complex();
  if (steps < 2 && !complex) {  // a single exponent keeps its fraction, as in PyTorch
    const Scalar power(std::pow(base, start.to_double()));
    return spaced_tensor("logspace", power, power, steps, std::nullopt, options);
  }
  return spaced_tensor("logspace", start, end, steps, base, options);
}
Tensor logspace_tensor(const Tensor& start, const Tensor& end, int64_t steps, double base,
                       const TensorOptions& options) {
  return logspace(start.item_scalar(), end.item_scalar(), steps, base, options);
}
Tensor logspace_end_tensor(const Scalar& start, const Tensor& end, int64_t steps, double base,
                           const TensorOptions& options) {
  return logspace(start, end.item_scalar(), steps, base, options);
}

Tensor eye(int64_t n, int64_t m, const TensorOptions& options) {
  TD_CHECK(n >= 0, "n must be greater or equal to 0, got {}", n);
  TD_CHECK(m >= 0, "m must be greater or equal to 0, got {}", m);
  TensorOptions plain = options;
  plain.requires_grad = false;
  Tensor t = impl::zeros({n, m}, plain);
  if (t.numel() > 0)
    kernels::fill(view_of(alias_tensor(t, {std::min(n, m)}, {m + 1}, 0)), int64_t{1});
  return finished(t, options);
}
Tensor eye_square(int64_t n, const TensorOptions& options) { return impl::eye(n, n, options); }

Tensor scalar_tensor(const Scalar& s, const TensorOptions& options) {
  TensorOptions typed = options;
  if (!typed.dtype) typed.dtype = default_dtype();
  return impl::full({}, s, typed);
}

Tensor clone(const Tensor& self, OptMemoryFormat format) {
  Tensor out = like(self, {}, format);
  kernels::copy(view_of(out), view_of(self));
  return out;
}

Tensor contiguous(const Tensor& self, MemoryFormat format) {
  TD_CHECK(format != MemoryFormat::kPreserve,
           "preserve memory format is unsupported by the contiguous operator");
  if (self.is_contiguous(format)) return self;
  return op::clone(self, format);
}

Tensor _cast(const Tensor& self, DType dtype, OptMemoryFormat format) {
  Tensor out = like(self, TensorOptions(dtype), format);
  kernels::copy(view_of(out), view_of(self));
  return out;
}

static void warn_of_lost_part(DType from, DType to) {
  if (is_complex(from) && !is_complex(to) && to != DType::kBool) [[unlikely]]
    TD_WARN_ONCE("Casting complex values to real discards the imaginary part");
}

Tensor to_dtype(const Tensor& self, DType dtype, bool copy, OptMemoryFormat format) {
  const bool same_layout =
      !format || *format == MemoryFormat::kPreserve || self.is_contiguous(*format);
  if (self.dtype() == dtype && same_layout && !copy) return self;
  if (self.dtype() == dtype) return op::clone(self, format);
  warn_of_lost_part(self.dtype(), dtype);
  return op::_cast(self, dtype, format);
}

namespace {
// That `from` broadcasts to `to`, in the words of operators that write in place.
void check_broadcast(IntSpan to, IntSpan from) {
  if (from == to) return;
  const DimVector both = broadcast_shapes(to, from);
  TD_CHECK(IntSpan(both) == to, "output with shape {} doesn't match the broadcast shape {}", to,
           IntSpan(both));
}
}  // namespace

Tensor copy_(const Tensor& self, const Tensor& src, bool non_blocking) {
  if (self.is_same(src)) return self;
  check_no_internal_overlap(self);
  check_no_partial_overlap(self, src);
  check_broadcast(self.sizes(), src.sizes());
  Tensor source = src.sizes() == self.sizes() ? src : op::expand(src, self.sizes(), false);
  warn_of_lost_part(src.dtype(), self.dtype());
  TD_CHECK(self.storage()->writable(), "copy_: the tensor's memory is read-only");
  if (memory_overlap(self, source) == MemoryOverlap::kUnknown)
    source = impl::clone(source, std::nullopt);
  kernels::copy(view_of(self), view_of(source), non_blocking);
  return self;
}

Tensor to_device(const Tensor& self, Device device, bool non_blocking) {
  return moved_to(self, device, non_blocking);
}

// Elements that share memory may all be given one value: a number that fits, or a tensor's, which
// is converted.
Tensor fill_(const Tensor& self, const Tensor& value) {
  const bool as_it_is = value.impl()->wrapped_number || value.dtype() == self.dtype();
  if (value.device().is_cpu() || value.device() != self.device())
    kernels::fill(view_of(self), as_it_is
                                     ? value.item_scalar()
                                     : op::to_dtype(value, self.dtype(), false, {}).item_scalar());
  else
    kernels::copy(view_of(self), view_of(op::expand(value, self.sizes(), false)));
  return self;
}
Tensor zero_(const Tensor& self) {
  kernels::fill(view_of(self), int64_t{0});
  return self;
}

Tensor set_layout_(const Tensor& self, IntSpan size, IntSpan stride, int64_t offset) {
  const int64_t needed = storage_bytes_needed(size, stride, offset, self.dtype());
  TD_CHECK(
      needed <= self.storage()->nbytes(),
      "setStorage: sizes {}, strides {}, storage offset {} require {} bytes, the storage has {}",
      size, stride, offset, needed, self.storage()->nbytes());
  self.impl()->set_layout(size, stride, offset);
  return self;
}

Tensor resize_(const Tensor& self, IntSpan size, OptMemoryFormat format) {
  TD_CHECK(!self.requires_grad() || !thread_modes.grad_enabled,
           "cannot resize variables that require grad");
  TD_CHECK(!format || *format != MemoryFormat::kPreserve, "Unsupported memory format Preserve");
  if (!format && self.sizes() == size) return self;  // whatever its strides
  const DimVector strides = format && *format != MemoryFormat::kContiguous
                                ? channels_last_strides(size)
                                : contiguous_strides(size);
  const int64_t needed = storage_bytes_needed(size, strides, self.storage_offset(), self.dtype());
  const int64_t had = self.storage()->nbytes();
  if (needed > had) {
    self.storage()->resize(needed);
    const int64_t first = had / item_size(self.dtype());
    filled_if_asked(alias_tensor(self, {needed / item_size(self.dtype()) - first}, {1}, first));
  }
  self.impl()->set_layout(size, strides, self.storage_offset());
  return self;
}

Tensor resize_as_(const Tensor& self, const Tensor& the_template, OptMemoryFormat format) {
  if (format == MemoryFormat::kPreserve) {
    const bool image = the_template.dim() == 4;
    const MemoryFormat last = image ? MemoryFormat::kChannelsLast : MemoryFormat::kChannelsLast3d;
    const bool is_last = (image || the_template.dim() == 5) && the_template.is_contiguous(last);
    format = is_last ? last : MemoryFormat::kContiguous;
  }
  return op::resize_(self, the_template.sizes(), format);
}

}  // namespace taeda::impl
