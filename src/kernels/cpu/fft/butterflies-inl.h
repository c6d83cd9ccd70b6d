// Transforms of a few elements, each of which is a vector of complex numbers.
#if defined(TAEDA_KERNELS_CPU_FFT_BUTTERFLIES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TAEDA_KERNELS_CPU_FFT_BUTTERFLIES_INL_H_
#undef TAEDA_KERNELS_CPU_FFT_BUTTERFLIES_INL_H_
#else
#define TAEDA_KERNELS_CPU_FFT_BUTTERFLIES_INL_H_
#endif

#include "kernels/cpu/fft/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

// a b - c and c - a b, rounded once.
template <class T>
TD_FN Vec<T> fms(Vec<T> a, Vec<T> b, Vec<T> c) {
  return hn::MulSub(a.raw, b.raw, c.raw);
}
template <class T>
TD_FN Vec<T> fnma(Vec<T> a, Vec<T> b, Vec<T> c) {
  return hn::NegMulAdd(a.raw, b.raw, c.raw);
}

template <class T>
struct Value {
  Vec<T> re, im;
  friend TD_FN Value operator+(Value a, Value b) { return {a.re + b.re, a.im + b.im}; }
  friend TD_FN Value operator-(Value a, Value b) { return {a.re - b.re, a.im - b.im}; }
  friend TD_FN Value operator*(Value a, Value b) {
    return {fms(a.re, b.re, a.im * b.im), fma(a.re, b.im, a.im * b.re)};
  }
  TD_FN Value times(Vec<T> scale) const { return {re * scale, im * scale}; }
  // this + scale a, this - scale a
  TD_FN Value plus(Vec<T> scale, Value a) const {
    return {fma(scale, a.re, re), fma(scale, a.im, im)};
  }
  TD_FN Value minus(Vec<T> scale, Value a) const {
    return {fnma(scale, a.re, re), fnma(scale, a.im, im)};
  }
};
// a - i b, a + i b
template <class T>
TD_FN Value<T> minus_i(Value<T> a, Value<T> b) {
  return {a.re + b.im, a.im - b.re};
}
template <class T>
TD_FN Value<T> plus_i(Value<T> a, Value<T> b) {
  return {a.re - b.im, a.im + b.re};
}
// a - i s b, a + i s b
template <class T>
TD_FN Value<T> minus_i(Value<T> a, Vec<T> s, Value<T> b) {
  return {fma(s, b.im, a.re), fnma(s, b.re, a.im)};
}
template <class T>
TD_FN Value<T> plus_i(Value<T> a, Vec<T> s, Value<T> b) {
  return {fnma(s, b.im, a.re), fma(s, b.re, a.im)};
}

template <class T>
TD_FN void butterfly2(Value<T>* a) {
  const Value<T> sum = a[0] + a[1];
  a[1] = a[0] - a[1];
  a[0] = sum;
}

template <class T>
TD_FN void butterfly3(Value<T>* a) {
  const Vec<T> height(0.86602540378443864676), half(0.5);  // height: sin(2 pi / 3)
  const Value<T> sum = a[1] + a[2], difference = a[1] - a[2], middle = a[0].minus(half, sum);
  a[0] = a[0] + sum;
  a[1] = minus_i(middle, height, difference);
  a[2] = plus_i(middle, height, difference);
}

template <class T>
TD_FN void butterfly4(Value<T>* a) {
  const Value<T> even = a[0] + a[2], even_difference = a[0] - a[2], odd = a[1] + a[3],
                 odd_difference = a[1] - a[3];
  a[0] = even + odd;
  a[1] = minus_i(even_difference, odd_difference);
  a[2] = even - odd;
  a[3] = plus_i(even_difference, odd_difference);
}

template <class T>
TD_FN void butterfly5(Value<T>* a) {
  // cos and sin of 2 pi / 5 and 4 pi / 5
  const Vec<T> c1(0.30901699437494742410), c2(-0.80901699437494742410), s1(0.95105651629515357212),
      s2(0.58778525229247312917);
  const Value<T> outer = a[1] + a[4], inner = a[2] + a[3], outer_difference = a[1] - a[4],
                 inner_difference = a[2] - a[3];
  const Value<T> first = a[0].plus(c1, outer).plus(c2, inner),
                 second = a[0].plus(c2, outer).plus(c1, inner);
  const Value<T> first_across = outer_difference.times(s1).plus(s2, inner_difference),
                 second_across = outer_difference.times(s2).minus(s1, inner_difference);
  a[0] = a[0] + outer + inner;
  a[1] = minus_i(first, first_across);
  a[2] = minus_i(second, second_across);
  a[3] = plus_i(second, second_across);
  a[4] = plus_i(first, first_across);
}

// Two of four: sums of elements k and k + 4 give the even results, differences times exp(-2 pi i k
// / 8) the odd ones.
template <class T>
TD_FN void butterfly8(Value<T>* a) {
  const Vec<T> s(0.70710678118654752440);
  Value<T> even[4] = {a[0] + a[4], a[1] + a[5], a[2] + a[6], a[3] + a[7]};
  const Value<T> d0 = a[0] - a[4], d1 = a[1] - a[5], d2 = a[2] - a[6], d3 = a[3] - a[7];
  butterfly4(even);
  // exp(-2 pi i / 8) d1 = s u and exp(-6 pi i / 8) d3 = s conj(v)
  const Value<T> u{d1.re + d1.im, d1.im - d1.re}, v{d3.im - d3.re, d3.re + d3.im};
  const Value<T> sum = minus_i(d0, d2), difference = plus_i(d0, d2);
  const Value<T> odd{u.re + v.re, u.im - v.im}, odd_difference{u.re - v.re, u.im + v.im};
  a[0] = even[0];
  a[1] = sum.plus(s, odd);
  a[2] = even[1];
  a[3] = minus_i(difference, s, odd_difference);
  a[4] = even[2];
  a[5] = sum.minus(s, odd);
  a[6] = even[3];
  a[7] = plus_i(difference, s, odd_difference);
}

// The definition, for odd radices: elements k and r - k share their products.
template <class T, int kMost>
TD_FN void butterfly_odd(Value<T>* a, int r, const T* roots) {
  Value<T> sum[kMost / 2 + 1], difference[kMost / 2 + 1];
  const int half = r / 2;
  const Value<T> first = a[0];
#pragma GCC unroll 3
  for (int k = 1; k <= half; k++) {
    sum[k] = a[k] + a[r - k];
    difference[k] = a[k] - a[r - k];
    a[0] = a[0] + sum[k];
  }
#pragma GCC unroll 3
  for (int j = 1; j <= half; j++) {
    Value<T> along = first, across{Vec<T>(0), Vec<T>(0)};
#pragma GCC unroll 3
    for (int k = 1, jk = j; k <= half; k++, jk = jk + j >= r ? jk + j - r : jk + j) {
      along = along.plus(Vec<T>(roots[2 * jk]), sum[k]);
      across = across.minus(Vec<T>(roots[2 * jk + 1]), difference[k]);
    }
    a[j] = minus_i(along, across);
    a[r - j] = plus_i(along, across);
  }
}

}  // namespace
}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // TAEDA_KERNELS_CPU_FFT_BUTTERFLIES_INL_H_
