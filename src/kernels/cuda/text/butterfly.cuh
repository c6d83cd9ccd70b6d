// Discrete Fourier transforms of 2, 3, 4, 5 and 7 complex numbers in registers, and roots of unity.
#pragma once
#include "kernels/cuda/text/sincospi.cuh"

namespace taeda::device {

// A complex number without a constructor, so that shared memory can hold it.
template <class T>
struct alignas(2 * sizeof(T)) Pair {
  T re, im;
  friend TD_FN Pair operator+(Pair a, Pair b) { return {a.re + b.re, a.im + b.im}; }
  friend TD_FN Pair operator-(Pair a, Pair b) { return {a.re - b.re, a.im - b.im}; }
  friend TD_FN Pair operator*(T a, Pair b) { return {a * b.re, a * b.im}; }
  friend TD_FN Pair operator*(Pair a, Pair b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
};
template <class T>
TD_FN Pair<T> over_i(Pair<T> z) {
  return {z.im, -z.re};
}
template <class T>
TD_FN Pair<T> swapped(Pair<T> z) {
  return {z.im, z.re};
}

// cos and sin of 2 pi m / R for m <= R / 2.
template <int R>
constexpr double cosine(int m) {
  if (R == 3) return -0.5;
  if (R == 5) return m == 1 ? 0.30901699437494745 : -0.8090169943749475;
  return m == 1 ? 0.6234898018587336 : m == 2 ? -0.22252093395631434 : -0.9009688679024191;
}
template <int R>
constexpr double sine(int m) {
  if (R == 3) return 0.8660254037844386;
  if (R == 5) return m == 1 ? 0.9510565162951535 : 0.5877852522924731;
  return m == 1 ? 0.7818314824680298 : m == 2 ? 0.9749279121818236 : 0.4338837391175582;
}

// v_j = sum_k v_k exp(-2 pi i j k / R). Of odd R, k and R - k go together.
template <int R, class T>
TD_FN void butterfly(Pair<T> (&v)[R]) {
  if constexpr (R == 2) {
    const Pair<T> a = v[0];
    v[0] = a + v[1], v[1] = a - v[1];
  } else if constexpr (R == 4) {
    const Pair<T> a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = over_i(v[1] - v[3]);
    v[0] = a + c, v[1] = b + d, v[2] = a - c, v[3] = b - d;
  } else {
    constexpr int kHalf = R / 2;
    Pair<T> sums[kHalf], differences[kHalf];
    const Pair<T> first = v[0];
#pragma unroll
    for (int k = 1; k <= kHalf; k++) {
      sums[k - 1] = v[k] + v[R - k], differences[k - 1] = v[k] - v[R - k];
      v[0] = v[0] + sums[k - 1];
    }
#pragma unroll
    for (int j = 1; j <= kHalf; j++) {
      Pair<T> even = first, odd{0, 0};
#pragma unroll
      for (int k = 1; k <= kHalf; k++) {
        const int m = j * k % R, at = m > kHalf ? R - m : m;
        const T s = static_cast<T>(sine<R>(at));
        even = even + static_cast<T>(cosine<R>(at)) * sums[k - 1];
        odd = odd + (m > kHalf ? -s : s) * differences[k - 1];
      }
      v[j] = even + over_i(odd), v[R - j] = even - over_i(odd);
    }
  }
}

// exp(-2 pi i k / n) to double precision, k < n.
template <class T>
TD_FN Pair<T> root(uint64_t k, uint64_t n) {
  const double part = 2 * k > n ? -static_cast<double>(n - k) : static_cast<double>(k);
  double s, c;
  sine_cosine_of_pi(2 * part / static_cast<double>(n), &s, &c);
  return {static_cast<T>(c), static_cast<T>(-s)};
}

}  // namespace taeda::device
