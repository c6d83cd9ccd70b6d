#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/fft/passes.cc"
#include "kernels/cpu/simd/simd.h"

#include <algorithm>

#include "kernels/cpu/fft/passes.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

template <class T>
struct Value {
  Vec<T> re, im;
  friend TD_FN Value operator+(Value a, Value b) { return {a.re + b.re, a.im + b.im}; }
  friend TD_FN Value operator-(Value a, Value b) { return {a.re - b.re, a.im - b.im}; }
  friend TD_FN Value operator*(Value a, Value b) {
    return {a.re * b.re - a.im * b.im, fma(a.re, b.im, a.im * b.re)};
  }
  TD_FN Value times(T scale) const { return {re * Vec<T>(scale), im * Vec<T>(scale)}; }
  TD_FN Value times_minus_i() const { return {im, Vec<T>(0) - re}; }
};

template <class T>
TD_FN void butterfly2(Value<T>* a) {
  const Value<T> sum = a[0] + a[1];
  a[1] = a[0] - a[1];
  a[0] = sum;
}

template <class T>
TD_FN void butterfly3(Value<T>* a) {
  const T kHeight = T(0.86602540378443864676);  // sin(2 pi / 3)
  const Value<T> sum = a[1] + a[2], middle = a[0] - sum.times(T(0.5));
  const Value<T> across = (a[1] - a[2]).times_minus_i().times(kHeight);
  a[0] = a[0] + sum;
  a[1] = middle + across;
  a[2] = middle - across;
}

template <class T>
TD_FN void butterfly4(Value<T>* a) {
  const Value<T> even = a[0] + a[2], even_difference = a[0] - a[2], odd = a[1] + a[3],
                 odd_difference = (a[1] - a[3]).times_minus_i();
  a[0] = even + odd;
  a[1] = even_difference + odd_difference;
  a[2] = even - odd;
  a[3] = even_difference - odd_difference;
}

template <class T>
TD_FN void butterfly5(Value<T>* a) {
  // cos and sin of 2 pi / 5 and 4 pi / 5
  const T c1 = T(0.30901699437494742410), c2 = T(-0.80901699437494742410),
          s1 = T(0.95105651629515357212), s2 = T(0.58778525229247312917);
  const Value<T> outer = a[1] + a[4], inner = a[2] + a[3], outer_difference = a[1] - a[4],
                 inner_difference = a[2] - a[3];
  const Value<T> first = a[0] + outer.times(c1) + inner.times(c2),
                 second = a[0] + outer.times(c2) + inner.times(c1);
  const Value<T> first_across =
      (outer_difference.times(s1) + inner_difference.times(s2)).times_minus_i();
  const Value<T> second_across =
      (outer_difference.times(s2) - inner_difference.times(s1)).times_minus_i();
  a[0] = a[0] + outer + inner;
  a[1] = first + first_across;
  a[2] = second + second_across;
  a[3] = second - second_across;
  a[4] = first - first_across;
}

// The definition, for odd radices: elements k and r - k share their products.
template <class T>
TD_FN void butterfly_odd(Value<T>* a, int r, Complexes<const T> roots) {
  Value<T> sum[kLargestRadix / 2 + 1], difference[kLargestRadix / 2 + 1];
  const int half = r / 2;
  const Value<T> first = a[0];
  for (int k = 1; k <= half; k++) {
    sum[k] = a[k] + a[r - k];
    difference[k] = (a[k] - a[r - k]).times_minus_i();
    a[0] = a[0] + sum[k];
  }
  for (int j = 1; j <= half; j++) {
    Value<T> along = first, across{Vec<T>(0), Vec<T>(0)};
    for (int k = 1; k <= half; k++) {
      const int jk = j * k % r;
      along = along + sum[k].times(roots.re[jk]);
      across = across + difference[k].times(-roots.im[jk]);
    }
    a[j] = along + across;
    a[r - j] = along - across;
  }
}

template <class T, int kRadix>
TD_FN void butterfly(Value<T>* a, [[maybe_unused]] const FftPass<T>& pass) {
  if constexpr (kRadix == 2) butterfly2(a);
  if constexpr (kRadix == 3) butterfly3(a);
  if constexpr (kRadix == 4) butterfly4(a);
  if constexpr (kRadix == 5) butterfly5(a);
  if constexpr (kRadix == 0) butterfly_odd(a, pass.radix, pass.roots);
}

// n lanes at x through the butterfly; kWhole: all of a vector.
template <class T, int kRadix, bool kWhole>
TD_FN void transform(const FftPass<T>& pass, Complexes<const T> x, int64_t n, Value<T>* a) {
  const int r = kRadix ? kRadix : pass.radix;
  for (int k = 0; k < r; k++) {
    const int64_t at = pass.s * pass.m * k;
    if constexpr (kWhole)
      a[k] = {load(x.re + at), load(x.im + at)};
    else
      a[k] = {load_n(x.re + at, n), load_n(x.im + at, n)};
  }
  butterfly<T, kRadix>(a, pass);
}

constexpr int most(int radix) { return radix ? radix : kLargestRadix; }

// Many interleaved transforms: vectors along q, one twiddle factor for all.
template <class T, int kRadix, bool kWhole>
TD_FN void along_q(const FftPass<T>& pass, Complexes<const T> x, Complexes<T> y, int64_t p,
                   int64_t n) {
  const int r = kRadix ? kRadix : pass.radix;
  Value<T> a[most(kRadix)];
  transform<T, kRadix, kWhole>(pass, x, n, a);
  for (int j = 0; j < r; j++) {
    const int64_t w = p * (r - 1) + j - 1;
    if (j > 0 && p > 0)
      a[j] = a[j] * Value<T>{Vec<T>(pass.twiddles.re[w]), Vec<T>(pass.twiddles.im[w])};
    if constexpr (kWhole) {
      store(y.re + pass.s * j, a[j].re);
      store(y.im + pass.s * j, a[j].im);
    } else {
      store_n(y.re + pass.s * j, a[j].re, n);
      store_n(y.im + pass.s * j, a[j].im, n);
    }
  }
}

// Few interleaved transforms: vectors along q + s p, which lies in order in x. The results go to
// where they belong by groups of s.
template <class T, int kRadix>
TD_FN void across_p(const FftPass<T>& pass, Complexes<const T> x, Complexes<T> y, int64_t begin,
                    int64_t n) {
  constexpr int64_t kLanes = Vec<T>::size();
  const int r = kRadix ? kRadix : pass.radix;
  Value<T> a[most(kRadix)];
  transform<T, kRadix, false>(pass, {x.re + begin, x.im + begin}, n, a);
  int64_t twiddle[kLanes], target[kLanes];
  for (int64_t i = 0; i < n; i++) {
    const int64_t p = (begin + i) / pass.s, q = (begin + i) % pass.s;
    twiddle[i] = p * (r - 1);
    target[i] = q + pass.s * r * p;
  }
  alignas(64) T re[kLanes], im[kLanes], wr[kLanes] = {}, wi[kLanes] = {};
  for (int j = 0; j < r; j++) {
    if (j > 0) {
      for (int64_t i = 0; i < n; i++) {
        wr[i] = pass.twiddles.re[twiddle[i] + j - 1];
        wi[i] = pass.twiddles.im[twiddle[i] + j - 1];
      }
      a[j] = a[j] * Value<T>{load(wr), load(wi)};
    }
    store(re, a[j].re);
    store(im, a[j].im);
    for (int64_t i = 0; i < n; i++) {
      y.re[target[i] + pass.s * j] = re[i];
      y.im[target[i] + pass.s * j] = im[i];
    }
  }
}

template <class T, int kRadix>
void run(const FftPass<T>& pass, Complexes<const T> x, Complexes<T> y) {
  constexpr int64_t kLanes = Vec<T>::size();
  const int r = kRadix ? kRadix : pass.radix;
  const int64_t s = pass.s;
  if (2 * s < kLanes) {
    for (int64_t t = s * pass.begin; t < s * pass.end; t += kLanes)
      across_p<T, kRadix>(pass, x, y, t, std::min(kLanes, s * pass.end - t));
    return;
  }
  for (int64_t p = pass.begin; p < pass.end; p++) {
    const Complexes<const T> from{x.re + s * p, x.im + s * p};
    const Complexes<T> to{y.re + s * r * p, y.im + s * r * p};
    int64_t q = 0;
    for (; q + kLanes <= s; q += kLanes)
      along_q<T, kRadix, true>(pass, {from.re + q, from.im + q}, {to.re + q, to.im + q}, p, kLanes);
    if (q < s)
      along_q<T, kRadix, false>(pass, {from.re + q, from.im + q}, {to.re + q, to.im + q}, p, s - q);
  }
}

template <class T>
void run_any(const FftPass<T>& pass, Complexes<const T> x, Complexes<T> y) {
  switch (pass.radix) {
    case 2:
      return run<T, 2>(pass, x, y);
    case 3:
      return run<T, 3>(pass, x, y);
    case 4:
      return run<T, 4>(pass, x, y);
    case 5:
      return run<T, 5>(pass, x, y);
    default:
      return run<T, 0>(pass, x, y);
  }
}

void run_float(const FftPass<float>& pass, Complexes<const float> x, Complexes<float> y) {
  run_any(pass, x, y);
}
void run_double(const FftPass<double>& pass, Complexes<const double> x, Complexes<double> y) {
  run_any(pass, x, y);
}

}  // namespace
}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {
HWY_EXPORT(run_float);
HWY_EXPORT(run_double);
void run_pass(const FftPass<float>& pass, Complexes<const float> x, Complexes<float> y) {
  HWY_DYNAMIC_DISPATCH(run_float)(pass, x, y);
}
void run_pass(const FftPass<double>& pass, Complexes<const double> x, Complexes<double> y) {
  HWY_DYNAMIC_DISPATCH(run_double)(pass, x, y);
}
}  // namespace taeda::cpu
#endif
