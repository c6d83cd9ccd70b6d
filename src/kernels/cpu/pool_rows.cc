#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pool_rows.cc"
#include "kernels/cpu/simd.h"

#include <cmath>

#include "kernels/cpu/pool_rows.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

template <class T>
TD_FN T larger(T a, T b) {
  return b > a || std::isnan(b) ? b : a;
}

// The even and the odd elements of 2 n values.
template <class T>
struct Pairs {
  Vec<T> even, odd;
};
template <class T>
TD_FN Pairs<T> load_pairs(const T* p) {
  Pairs<T> x;
  hn::LoadInterleaved2(typename Vec<T>::Tag(), p, x.even.raw, x.odd.raw);
  return x;
}
template <class T>
TD_FN void store_pairs(T* p, Vec<T> even, Vec<T> odd) {
  hn::StoreInterleaved2(even.raw, odd.raw, typename Vec<T>::Tag(), p);
}

template <class T>
TD_FN void pairs_max_block(const T* upper, const T* lower, T* y) {
  const Pairs<T> a = load_pairs(upper), b = load_pairs(lower);
  store(y, max(max(a.even, a.odd), max(b.even, b.odd)));
}

template <class T>
void pairs_max(const T* upper, const T* lower, T* y, int64_t n) {
  constexpr int64_t kLanes = Vec<T>::size();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) pairs_max_block(upper + 2 * i, lower + 2 * i, y + i);
  if (i == n) return;
  if (n >= kLanes) {  // the last block again, ending at the end
    i = n - kLanes;
    return pairs_max_block(upper + 2 * i, lower + 2 * i, y + i);
  }
  T a[2 * kLanes] = {}, b[2 * kLanes] = {}, out[kLanes];
  std::memcpy(a, upper, static_cast<size_t>(2 * n) * sizeof(T));
  std::memcpy(b, lower, static_cast<size_t>(2 * n) * sizeof(T));
  pairs_max_block(a, b, out);
  std::memcpy(y, out, static_cast<size_t>(n) * sizeof(T));
}

template <class T>
TD_FN void pairs_gradient_block(const T* upper, const T* lower, const T* gy, T* g_upper,
                                T* g_lower) {
  const Pairs<T> a = load_pairs(upper), b = load_pairs(lower);
  const Vec<T> most = max(max(a.even, a.odd), max(b.even, b.odd)), zero(T(0)), g = load(gy);
  auto m0 = a.even == most, m1 = a.odd == most, m2 = b.even == most, m3 = b.odd == most;
  const auto nan = isnan(most);
  if (any(nan)) [[unlikely]] {  // the last NaN first
    const auto n3 = isnan(b.odd), n2 = isnan(b.even) & !n3, n1 = isnan(a.odd) & !(n3 | n2);
    m3 = m3 | n3, m2 = m2 | n2, m1 = m1 | n1, m0 = m0 | (isnan(a.even) & !(n3 | n2 | n1));
  }
  m1 = m1 & !m0, m2 = m2 & !(m0 | m1), m3 = m3 & !(m0 | m1 | m2);
  store_pairs(g_upper, select(m0, g, zero), select(m1, g, zero));
  store_pairs(g_lower, select(m2, g, zero), select(m3, g, zero));
}

template <class T>
void pairs_gradient(const T* upper, const T* lower, const T* gy, T* g_upper, T* g_lower,
                    int64_t n) {
  constexpr int64_t kLanes = Vec<T>::size();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    pairs_gradient_block(upper + 2 * i, lower + 2 * i, gy + i, g_upper + 2 * i, g_lower + 2 * i);
  if (i == n) return;
  if (n >= kLanes) {
    i = n - kLanes;
    return pairs_gradient_block(upper + 2 * i, lower + 2 * i, gy + i, g_upper + 2 * i,
                                g_lower + 2 * i);
  }
  T a[2 * kLanes] = {}, b[2 * kLanes] = {}, g[kLanes] = {}, ga[2 * kLanes], gb[2 * kLanes];
  const size_t bytes = static_cast<size_t>(n) * sizeof(T);
  std::memcpy(a, upper, 2 * bytes);
  std::memcpy(b, lower, 2 * bytes);
  std::memcpy(g, gy, bytes);
  pairs_gradient_block(a, b, g, ga, gb);
  std::memcpy(g_upper, ga, 2 * bytes);
  std::memcpy(g_lower, gb, 2 * bytes);
}

template <class T>
void rows_max(T* row, const T* other, int64_t n) {
  constexpr int64_t kLanes = Vec<T>::size();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) store(row + i, max(load(row + i), load(other + i)));
  if (i < n) store_n(row + i, max(load_n(row + i, n - i), load_n(other + i, n - i)), n - i);
}

template <class T>
TD_FN T window_max(const Windows& w, const T* row, int64_t o) {
  const int64_t start = w.start(o), last = w.last(o);
  int64_t k = w.first(o);
  T most = row[start + k * w.dilation];
  for (k++; k < last; k++) most = larger(most, row[start + k * w.dilation]);
  return most;
}

// Calls vector(o) for windows o, o + 1, ... of a row, as many as a vector has lanes, where they are
// wholly inside and kStride elements apart, and scalar(o) for one window elsewhere. The last vector
// may come to windows again.
template <int kStride, class T, class Vector, class Scalar>
void for_each_window(const Windows& w, const Vector& vector, const Scalar& scalar) {
  constexpr int64_t kLanes = Vec<T>::size();
  const int64_t room = w.in - (w.kernel - 1) * w.dilation - kStride * kLanes + w.padding,
                first = (w.padding + kStride - 1) / kStride,
                last = std::min(w.out - kLanes, room < 0 ? -1 : room / kStride);
  int64_t o = 0;
  for (; o < std::min(first, w.out); o++) scalar(o);
  for (; o <= last; o += kLanes) vector(o);
  if (last >= first && o < w.out && o < last + kLanes) vector(last), o = last + kLanes;
  for (; o < w.out; o++) scalar(o);
}
template <class T, class Vector, class Scalar>
void for_each_window(const Windows& w, const Vector& vector, const Scalar& scalar) {
  if (w.stride == 1)
    for_each_window<1, T>(w, vector, scalar);
  else if (w.stride == 2)
    for_each_window<2, T>(w, vector, scalar);
  else
    for (int64_t o = 0; o < w.out; o++) scalar(o);
}

// Elements 0, 1, ... or, where windows are two elements apart, 0, 2, ...
template <class T>
TD_FN Vec<T> load_starts(const Windows& w, const T* p) {
  return w.stride == 1 ? load(p) : load_pairs(p).even;
}

template <class T>
void along_row(const Windows& w, const T* row, T* y) {
  for_each_window<T>(
      w,
      [&](int64_t o) HWY_ATTR {
        const T* from = row + w.start(o);
        Vec<T> most = load_starts(w, from);
        for (int64_t k = 1; k < w.kernel; k++)
          most = max(most, load_starts(w, from + k * w.dilation));
        store(y + o, most);
      },
      [&](int64_t o) { y[o] = window_max(w, row, o); });
}

template <class T>
TD_FN T find_in_window(const Windows& w, const T* const* lines, int64_t line_count, int64_t o) {
  const int64_t start = w.start(o), first = w.first(o), last = w.last(o);
  T most = lines[0][start + first * w.dilation];
  int64_t best = first;
  for (int64_t line = 0; line < line_count; line++) {
    for (int64_t k = first; k < last; k++) {
      const T value = lines[line][start + k * w.dilation];
      if (value > most || std::isnan(value)) most = value, best = line * w.kernel + k;
    }
  }
  return static_cast<T>(best);
}

template <class T>
TD_FN void find_in_windows(const Windows& w, const T* const* lines, int64_t line_count, int64_t o,
                           T* best) {
  const int64_t start = w.start(o);
  Vec<T> most = load_starts(w, lines[0] + start), where(T(0));
  for (int64_t line = 0; line < line_count; line++) {
    for (int64_t k = 0; k < w.kernel; k++) {
      const Vec<T> value = load_starts(w, lines[line] + start + k * w.dilation);
      const auto better = (value > most) | isnan(value);
      most = select(better, value, most);
      where = select(better, Vec<T>(static_cast<T>(line * w.kernel + k)), where);
    }
  }
  store(best + o, where);
}

template <class T>
void find_along_rows(const Windows& w, const T* const* lines, int64_t line_count, T* best) {
  for_each_window<T>(
      w, [&](int64_t o) HWY_ATTR { find_in_windows(w, lines, line_count, o, best); },
      [&](int64_t o) { best[o] = find_in_window(w, lines, line_count, o); });
}

void find_along_rows_f32(const Windows& w, const float* const* lines, int64_t count, float* best) {
  find_along_rows(w, lines, count, best);
}
void find_along_rows_f64(const Windows& w, const double* const* lines, int64_t count,
                         double* best) {
  find_along_rows(w, lines, count, best);
}
void pairs_max_f32(const float* a, const float* b, float* y, int64_t n) { pairs_max(a, b, y, n); }
void pairs_max_f64(const double* a, const double* b, double* y, int64_t n) {
  pairs_max(a, b, y, n);
}
void pairs_gradient_f32(const float* a, const float* b, const float* gy, float* ga, float* gb,
                        int64_t n) {
  pairs_gradient(a, b, gy, ga, gb, n);
}
void pairs_gradient_f64(const double* a, const double* b, const double* gy, double* ga, double* gb,
                        int64_t n) {
  pairs_gradient(a, b, gy, ga, gb, n);
}
void rows_max_f32(float* row, const float* other, int64_t n) { rows_max(row, other, n); }
void rows_max_f64(double* row, const double* other, int64_t n) { rows_max(row, other, n); }
void along_row_f32(const Windows& w, const float* row, float* y) { along_row(w, row, y); }
void along_row_f64(const Windows& w, const double* row, double* y) { along_row(w, row, y); }

}  // namespace
}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

HWY_EXPORT(pairs_max_f32);
HWY_EXPORT(pairs_max_f64);
HWY_EXPORT(pairs_gradient_f32);
HWY_EXPORT(pairs_gradient_f64);
HWY_EXPORT(rows_max_f32);
HWY_EXPORT(rows_max_f64);
HWY_EXPORT(along_row_f32);
HWY_EXPORT(along_row_f64);
HWY_EXPORT(find_along_rows_f32);
HWY_EXPORT(find_along_rows_f64);

void max_of_pairs(const float* a, const float* b, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(pairs_max_f32)(a, b, y, n);
}
void max_of_pairs(const double* a, const double* b, double* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(pairs_max_f64)(a, b, y, n);
}
void max_of_pairs_gradient(const float* a, const float* b, const float* gy, float* ga, float* gb,
                           int64_t n) {
  HWY_DYNAMIC_DISPATCH(pairs_gradient_f32)(a, b, gy, ga, gb, n);
}
void max_of_pairs_gradient(const double* a, const double* b, const double* gy, double* ga,
                           double* gb, int64_t n) {
  HWY_DYNAMIC_DISPATCH(pairs_gradient_f64)(a, b, gy, ga, gb, n);
}
void max_of_rows(float* row, const float* other, int64_t n) {
  HWY_DYNAMIC_DISPATCH(rows_max_f32)(row, other, n);
}
void max_of_rows(double* row, const double* other, int64_t n) {
  HWY_DYNAMIC_DISPATCH(rows_max_f64)(row, other, n);
}
void max_along_row(const Windows& w, const float* row, float* y) {
  HWY_DYNAMIC_DISPATCH(along_row_f32)(w, row, y);
}
void max_along_row(const Windows& w, const double* row, double* y) {
  HWY_DYNAMIC_DISPATCH(along_row_f64)(w, row, y);
}

void find_max_along_rows(const Windows& w, const float* const* lines, int64_t line_count,
                         float* best) {
  HWY_DYNAMIC_DISPATCH(find_along_rows_f32)(w, lines, line_count, best);
}
void find_max_along_rows(const Windows& w, const double* const* lines, int64_t line_count,
                         double* best) {
  HWY_DYNAMIC_DISPATCH(find_along_rows_f64)(w, lines, line_count, best);
}

}  // namespace taeda::cpu
#endif
