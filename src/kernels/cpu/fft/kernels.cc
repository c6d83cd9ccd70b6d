#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/fft/kernels.cc"
#include "kernels/cpu/simd/simd.h"

#include "kernels/cpu/fft/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

template <class T>
void run_lanes(const FftLanes<T>& work, T* panel) {
  LanesRun<T>(work, panel).run();
}

// Row k1 of the twiddle factors of panel B.
template <class T, bool kWhole>
TD_FN Value<T> twiddles_of(const FftMatrix<T>& matrix, int64_t panel, int64_t k1) {
  constexpr int64_t kRow = 2 * Vec<T>::size();
  const int64_t at = panel * matrix.down.n + k1;
  const T* row = kWhole ? matrix.whole.data() + at * kRow : matrix.step.data() + k1 * kRow;
  const Value<T> w{load(row), load(row + Vec<T>::size())};
  if constexpr (kWhole) return w;
  const T* start = matrix.start.data() + 2 * at;
  return w * Value<T>{Vec<T>(start[0]), Vec<T>(start[1])};
}

// A panel of columns times twiddle factors, to columns `column` ... of the transposed panels.
template <class T, bool kWhole>
void transpose_panel(const FftMatrix<T>& matrix, const T* panel, T* transposed, int64_t index,
                     int64_t column) {
  constexpr int64_t kLanes = Vec<T>::size(), kRow = 2 * kLanes, kGroup = kBlock<T>;
  const int64_t n1 = matrix.down.n, n2 = matrix.across.n;
  const int32_t* row = matrix.down.row.data();
  for (int64_t k = 0; k < n1; k += kLanes) {
    const int64_t first = std::min(k, n1 - kLanes);
    T* to = transposed + ((k / kLanes) * n2 + column) * kRow;
    for (int64_t l = 0; l < kLanes; l += kGroup) {
      Vec<T> re[kGroup], im[kGroup];
#pragma GCC unroll 4
      for (int64_t t = 0; t < kGroup; t++) {
        const int64_t k1 = first + fft_lane(l + t, kLanes);
        const T* from = panel + kRow * row[k1];
        const Value<T> a =
            Value<T>{load(from), load(from + kLanes)} * twiddles_of<T, kWhole>(matrix, index, k1);
        re[t] = a.re;
        im[t] = a.im;
      }
      store_columns(re, to + l, kRow);
      store_columns(im, to + l + kLanes, kRow);
    }
  }
}

template <class T>
void step_down(const FftMatrix<T>& matrix, const T* in, T* panel, T* transposed, bool backward,
               int64_t begin, int64_t end) {
  constexpr int64_t kLanes = Vec<T>::size();
  const int64_t n2 = matrix.across.n;
  const PanelRows<T> rows(panel, false);
  for (int64_t b = begin; b < end; b++) {
    const int64_t column = std::min(b * kLanes, n2 - kLanes);
    const T* const first = in + 2 * column;
    if (backward)
      run_passes(matrix.down, SourceRows<T, false>(first, 2 * n2, true), rows, rows);
    else
      run_passes(matrix.down, SourceRows<T, kHasPlain>(first, 2 * n2, false), rows, rows);
    if (matrix.start.empty())
      transpose_panel<T, true>(matrix, panel, transposed, b, column);
    else
      transpose_panel<T, false>(matrix, panel, transposed, b, column);
  }
}

template <class T>
void step_across(const FftMatrix<T>& matrix, T* transposed, T* out, T scale, bool backward,
                 int64_t begin, int64_t end) {
  constexpr int64_t kLanes = Vec<T>::size(), kRow = 2 * kLanes;
  const int64_t n1 = matrix.down.n, n2 = matrix.across.n;
  for (int64_t k = begin; k < end; k++) {
    const PanelRows<T> rows(transposed + k * n2 * kRow, false);
    const int64_t first = std::min(k * kLanes, n1 - kLanes);
    T* const to = out + 2 * first;
    if (backward || scale != 1)
      run_passes(matrix.across, rows, rows, ResultRows<T, false>(to, 2 * n1, backward, scale));
    else
      run_passes(matrix.across, rows, rows, ResultRows<T, kHasPlain>(to, 2 * n1, false, scale));
  }
}

// One pair; of the first, where what is real counts, the second is element `half`.
template <class T>
void mix_pair(const T* in, T* out, int64_t half, const T* roots, T s, bool inverse, int64_t k) {
  const T *a = in + 2 * k, *b = in + 2 * (half - k);
  T *to_a = out + 2 * k, *to_b = out + 2 * (half - k);
  if (k == 0) {
    const T x = a[0], y = inverse ? b[0] : a[1];
    if (inverse) {
      to_a[0] = s * (x + y);
      to_a[1] = s * (x - y);
    } else {
      to_a[0] = 2 * s * (x + y);
      to_b[0] = 2 * s * (x - y);
      to_a[1] = to_b[1] = 0;
    }
    return;
  }
  const T er = s * (a[0] + b[0]), ei = s * (a[1] - b[1]), dr = s * (a[0] - b[0]),
          di = s * (a[1] + b[1]), wr = roots[2 * k],
          wi = inverse ? -roots[2 * k + 1] : roots[2 * k + 1];
  const T odd_r = dr * wr - di * wi, odd_i = dr * wi + di * wr;
  to_a[0] = er + odd_r;
  to_a[1] = ei + odd_i;
  to_b[0] = er - odd_r;
  to_b[1] = odd_i - ei;
}

// size() pairs from k on.
template <class T>
TD_FN void mix_vector(const T* in, T* out, int64_t half, const T* roots, Vec<T> s, Vec<T> sign,
                      int64_t k) {
  const typename Vec<T>::Tag d;
  const int64_t last = half - (k + Vec<T>::size() - 1);
  Value<T> root = load_pairs(roots + 2 * k);
  root.im = root.im * sign;
  const Value<T> a = load_pairs(in + 2 * k), reversed = load_pairs(in + 2 * last);
  const Value<T> b{hn::Reverse(d, reversed.re.raw), hn::Reverse(d, reversed.im.raw)};
  const Value<T> even = Value<T>{a.re + b.re, a.im - b.im}.times(s);
  const Value<T> odd = Value<T>{a.re - b.re, a.im + b.im}.times(s) * root;
  const Value<T> other{even.re - odd.re, odd.im - even.im};
  store_pairs(out + 2 * k, even + odd);
  store_pairs(out + 2 * last, Value<T>{hn::Reverse(d, other.re.raw), hn::Reverse(d, other.im.raw)});
}

template <class T>
void mix_pairs(const T* in, T* out, int64_t half, const T* roots, T s, bool inverse, int64_t begin,
               int64_t end) {
  constexpr int64_t kLanes = Vec<T>::size();
  const Vec<T> scale(s), sign(inverse ? -1 : 1);
  int64_t k = begin;
  if (k == 0 && k < end) mix_pair(in, out, half, roots, s, inverse, k++);
  const int64_t first = k;
  for (; k + kLanes <= end && 2 * (k + kLanes - 1) < half; k += kLanes)
    mix_vector(in, out, half, roots, scale, sign, k);
  if (k < end && in != out && end - kLanes >= first)  // some pairs a second time
    return mix_vector(in, out, half, roots, scale, sign, end - kLanes);
  for (; k < end; k++) mix_pair(in, out, half, roots, s, inverse, k);
}

template <class T>
void multiply(const T* x, const T* y, T* out, int64_t n, T s, bool conjugate) {
  constexpr int64_t kLanes = Vec<T>::size();
  const Vec<T> scale(s), sign(conjugate ? -1 : 1);
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    Value<T> by = load_pairs(y + 2 * k);
    by.im = by.im * sign;
    store_pairs(out + 2 * k, (load_pairs(x + 2 * k) * by).times(scale));
  }
  for (; k < n; k++) {
    const T a = x[2 * k], b = x[2 * k + 1], c = y[2 * k],
            e = conjugate ? -y[2 * k + 1] : y[2 * k + 1];
    out[2 * k] = s * (a * c - b * e);
    out[2 * k + 1] = s * (a * e + b * c);
  }
}

template <class T>
const FftKernels<T>& table() {
  static constexpr FftKernels<T> kTable{Vec<T>::size(), run_lanes<T>, step_down<T>,
                                        step_across<T>, mix_pairs<T>, multiply<T>};
  return kTable;
}
const FftKernels<float>& float_table() { return table<float>(); }
const FftKernels<double>& double_table() { return table<double>(); }

}  // namespace
}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {
HWY_EXPORT(float_table);
HWY_EXPORT(double_table);
template <>
const FftKernels<float>& fft_kernels() {
  return HWY_DYNAMIC_DISPATCH(float_table)();
}
template <>
const FftKernels<double>& fft_kernels() {
  return HWY_DYNAMIC_DISPATCH(double_table)();
}
}  // namespace taeda::cpu
#endif
