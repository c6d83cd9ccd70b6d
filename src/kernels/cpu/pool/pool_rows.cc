#include "base/interrupt.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pool/pool_rows.cc"
#include "kernels/cpu/simd/simd.h"

#include "kernels/cpu/pool/pool_rows.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

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
TD_FN void pairs_gradient_block(const uint8_t* argmax, const T* gy, T* g_upper, T* g_lower) {
  using Unsigned = hn::RebindToUnsigned<typename Vec<T>::Tag>;
  const typename Vec<T>::Tag d;
  const Unsigned words;
  const auto bytes = hn::LoadU(hn::Rebind<uint8_t, Unsigned>(), argmax);
  const auto at = [&]() HWY_ATTR {
    if constexpr (sizeof(T) == 4)
      return hn::PromoteTo(words, bytes);
    else
      return hn::PromoteTo(words, hn::PromoteTo(hn::Rebind<uint32_t, Unsigned>(), bytes));
  }();
  const auto part = [&](int which) HWY_ATTR {
    return hn::IfThenElseZero(hn::RebindMask(d, hn::Eq(at, hn::Set(words, which))), load(gy).raw);
  };
  hn::StoreInterleaved2(part(0), part(1), d, g_upper);
  hn::StoreInterleaved2(part(2), part(3), d, g_lower);
}

template <class T>
void pairs_gradient(const uint8_t* argmax, const T* gy, T* g_upper, T* g_lower, int64_t n) {
  constexpr int64_t kLanes = Vec<T>::size();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    pairs_gradient_block(argmax + i, gy + i, g_upper + 2 * i, g_lower + 2 * i);
  if (i == n) return;
  if (n >= kLanes) {
    i = n - kLanes;
    return pairs_gradient_block(argmax + i, gy + i, g_upper + 2 * i, g_lower + 2 * i);
  }
  uint8_t at[kLanes] = {};
  T g[kLanes] = {}, upper[2 * kLanes], lower[2 * kLanes];
  const size_t bytes = static_cast<size_t>(n) * sizeof(T);
  std::memcpy(at, argmax, static_cast<size_t>(n));
  std::memcpy(g, gy, bytes);
  pairs_gradient_block(at, g, upper, lower);
  std::memcpy(g_upper, upper, 2 * bytes);
  std::memcpy(g_lower, lower, 2 * bytes);
}

// The elements of x and y, one after the other, as pairs.
template <class T>
TD_FN Pairs<T> separate(Vec<T> x, Vec<T> y) {
#if HWY_TARGET == HWY_SCALAR
  return {x, y};
#else
  const typename Vec<T>::Tag d;
  return {hn::ConcatEven(d, y.raw, x.raw), hn::ConcatOdd(d, y.raw, x.raw)};
#endif
}

// The first n lanes of p, minus infinity in the others.
template <class T>
TD_FN Vec<T> load_padded(const T* p, int64_t n) {
  if (n >= Vec<T>::size()) return load(p);
  const Vec<T> lowest(-std::numeric_limits<T>::infinity());
  if (n <= 0) return lowest;
  const Mask<T> inside{hn::FirstN(typename Vec<T>::Tag(), static_cast<size_t>(n))};
  return select(inside, load_n(p, n), lowest);
}

template <class T>
bool split(const Phases& p, const T* row, T* phases) {
  constexpr int64_t kLanes = Vec<T>::size();
  const int64_t n = p.w.in, stride = p.w.stride;
  T* const even = phases + p.w.padding % stride * p.pitch + p.w.padding / stride;
  T* const odd = phases + (p.w.padding + 1) % stride * p.pitch + (p.w.padding + 1) / stride;
  Mask<T> nan = Vec<T>(0) != Vec<T>(0);
  if (stride == 1) {
    for (int64_t i = 0; i < n; i += kLanes) {
      const Vec<T> x = load_padded(row + i, n - i);
      nan = nan | isnan(x);
      store(even + i, x);
    }
    return any(nan);
  }
  if (stride == 2) {
    for (int64_t i = 0; i < n; i += 2 * kLanes) {
      const Vec<T> x = load_padded(row + i, n - i),
                   y = load_padded(row + i + kLanes, n - i - kLanes);
      nan = nan | isnan(x) | isnan(y);
      const Pairs<T> pairs = separate(x, y);
      store(even + i / 2, pairs.even);
      store(odd + i / 2, pairs.odd);
    }
    return any(nan);
  }
  bool found = false;
  for (int64_t i = 0, j = p.w.padding % stride, to = p.w.padding / stride; i < n; i++) {
    found |= row[i] != row[i];
    phases[j * p.pitch + to] = row[i];
    if (++j == stride) j = 0, to++;
  }
  return found;
}

template <class T>
TD_FN Vec<T> max_at(const T* const* taps, int64_t count, int64_t i, int64_t n) {
  const bool whole = n - i >= Vec<T>::size();
  Vec<T> most = whole ? load(taps[0] + i) : load_n(taps[0] + i, n - i);
  for (int64_t t = 1; t < count; t++)
    most = max(most, whole ? load(taps[t] + i) : load_n(taps[t] + i, n - i));
  return most;
}

template <class T>
void taps_max(const T* const* taps, int64_t count, T* y, int64_t n) {
  constexpr int64_t kLanes = Vec<T>::size();
  Looks looks;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    store(y + i, max_at(taps, count, i, n));
    looks.after(count * kLanes);
  }
  if (i < n) store_n(y + i, max_at(taps, count, i, n), n - i);
}

template <bool kNaN, class T>
bool taps_find(const T* from, const int64_t* taps, int64_t count, T* y, uint32_t* where,
               int64_t n) {
  constexpr int64_t kLanes = Vec<T>::size();
  using Unsigned = hn::RebindToUnsigned<typename Vec<T>::Tag>;
  using Word = hn::TFromD<Unsigned>;
  const Unsigned words;
  const hn::Rebind<uint32_t, Unsigned> narrow;
  const auto none = hn::Set(words, static_cast<Word>(kNoTap));
  bool some_none = false;
  Looks looks;
  for (int64_t i = 0; i < n; i += kLanes) {
    looks.after(count * kLanes);
    Vec<T> most(-std::numeric_limits<T>::infinity());
    auto best = none;
    for (int64_t t = 0; t < count; t++) {
      const Vec<T> value = load(from + taps[t] + i);
      Mask<T> better = value > most;
      if constexpr (kNaN) better = better | isnan(value);
      most = select(better, value, most);
      best = hn::IfThenElse(hn::RebindMask(words, better.raw), hn::Set(words, static_cast<Word>(t)),
                            best);
    }
    if constexpr (sizeof(T) == 4)
      hn::StoreU(best, narrow, where + i);
    else
      hn::StoreU(hn::TruncateTo(narrow, best), narrow, where + i);
    if (n - i >= kLanes)
      store(y + i, most);
    else
      store_n(y + i, most, n - i);
    some_none |= !hn::AllFalse(words, hn::Eq(best, none));
  }
  return some_none;
}
template <class T>
bool find(const T* from, const int64_t* taps, int64_t count, bool has_nan, T* y, uint32_t* where,
          int64_t n) {
  return has_nan ? taps_find<true>(from, taps, count, y, where, n)
                 : taps_find<false>(from, taps, count, y, where, n);
}

bool split_f32(const Phases& p, const float* row, float* phases) { return split(p, row, phases); }
bool split_f64(const Phases& p, const double* row, double* phases) { return split(p, row, phases); }
void taps_max_f32(const float* const* taps, int64_t count, float* y, int64_t n) {
  taps_max(taps, count, y, n);
}
void taps_max_f64(const double* const* taps, int64_t count, double* y, int64_t n) {
  taps_max(taps, count, y, n);
}
bool find_f32(const float* from, const int64_t* taps, int64_t count, bool nan, float* y,
              uint32_t* where, int64_t n) {
  return find(from, taps, count, nan, y, where, n);
}
bool find_f64(const double* from, const int64_t* taps, int64_t count, bool nan, double* y,
              uint32_t* where, int64_t n) {
  return find(from, taps, count, nan, y, where, n);
}
void pairs_max_f32(const float* a, const float* b, float* y, int64_t n) { pairs_max(a, b, y, n); }
void pairs_max_f64(const double* a, const double* b, double* y, int64_t n) {
  pairs_max(a, b, y, n);
}
void pairs_gradient_f32(const uint8_t* argmax, const float* gy, float* ga, float* gb, int64_t n) {
  pairs_gradient(argmax, gy, ga, gb, n);
}
void pairs_gradient_f64(const uint8_t* argmax, const double* gy, double* ga, double* gb,
                        int64_t n) {
  pairs_gradient(argmax, gy, ga, gb, n);
}

}  // namespace
}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {

Phases::Phases(const Windows& w) : w(w) {
  constexpr int64_t kWhole = 16;  // lanes of the widest vector
  const int64_t windows = (w.out + kWhole - 1) / kWhole * kWhole,
                row = (w.padding + w.in) / w.stride + kWhole;
  pitch = std::max(windows + (w.kernel - 1) * w.dilation / w.stride, row) + 1;
}

HWY_EXPORT(split_f32);
HWY_EXPORT(split_f64);
HWY_EXPORT(taps_max_f32);
HWY_EXPORT(taps_max_f64);
HWY_EXPORT(find_f32);
HWY_EXPORT(find_f64);
HWY_EXPORT(pairs_max_f32);
HWY_EXPORT(pairs_max_f64);
HWY_EXPORT(pairs_gradient_f32);
HWY_EXPORT(pairs_gradient_f64);

bool split_phases(const Phases& p, const float* row, float* phases) {
  return HWY_DYNAMIC_DISPATCH(split_f32)(p, row, phases);
}
bool split_phases(const Phases& p, const double* row, double* phases) {
  return HWY_DYNAMIC_DISPATCH(split_f64)(p, row, phases);
}
void max_of_taps(const float* const* taps, int64_t count, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(taps_max_f32)(taps, count, y, n);
}
void max_of_taps(const double* const* taps, int64_t count, double* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(taps_max_f64)(taps, count, y, n);
}
bool find_max_of_taps(const float* from, const int64_t* taps, int64_t count, bool has_nan, float* y,
                      uint32_t* where, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(find_f32)(from, taps, count, has_nan, y, where, n);
}
bool find_max_of_taps(const double* from, const int64_t* taps, int64_t count, bool has_nan,
                      double* y, uint32_t* where, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(find_f64)(from, taps, count, has_nan, y, where, n);
}
void max_of_pairs(const float* a, const float* b, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(pairs_max_f32)(a, b, y, n);
}
void max_of_pairs(const double* a, const double* b, double* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(pairs_max_f64)(a, b, y, n);
}
void max_of_pairs_gradient(const uint8_t* argmax, const float* gy, float* g_upper, float* g_lower,
                           int64_t n) {
  HWY_DYNAMIC_DISPATCH(pairs_gradient_f32)(argmax, gy, g_upper, g_lower, n);
}
void max_of_pairs_gradient(const uint8_t* argmax, const double* gy, double* g_upper,
                           double* g_lower, int64_t n) {
  HWY_DYNAMIC_DISPATCH(pairs_gradient_f64)(argmax, gy, g_upper, g_lower, n);
}

}  // namespace taeda::cpu
#endif
