// Sequences that factory functions make: an element as a function of its index, by one definition
// for the CPU (ops/factory.cc) and for CUDA devices (cuda/text/sequence.cuh).
//
// Both round alike but for functions of the C library (cosines, powers, exponentials), whose last
// bits are a device's own.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

namespace taeda::sequences {

inline constexpr double kTwoPi = 6.283185307179586;

// a b, rounded: what is added to it is not fused with it.
inline double product(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dmul_rn(a, b);
#else
  return a * b;
#endif
}

// start + i step, modulo 2^64.
struct Count {
  int64_t start, step;
  int64_t operator()(int64_t i) const {
    return static_cast<int64_t>(static_cast<uint64_t>(start) +
                                static_cast<uint64_t>(i) * static_cast<uint64_t>(step));
  }
};

// start + i step.
struct Steps {
  double start, step;
  double operator()(int64_t i) const { return start + product(static_cast<double>(i), step); }
};

// n numbers, evenly spaced from both ends, so that the last is exactly `last`.
struct Spaced {
  double first, last, step;
  int64_t n;
  bool is_fused;  // multiplied and added in one rounding
  double operator()(int64_t i) const {
    return i < n / 2 || n == 1 ? at(first, step, i) : at(last, -step, n - 1 - i);
  }

 private:
  double at(double from, double by, int64_t steps) const {
    const auto times = static_cast<double>(steps);
    return is_fused ? std::fma(by, times, from) : from + product(by, times);
  }
};
// With the step as a number of type S, as the ends are.
template <class S>
Spaced spaced(double first, double last, int64_t n, bool is_fused) {
  const S a = static_cast<S>(first), b = static_cast<S>(last);
  return {a, b, n > 1 ? (b - a) / static_cast<S>(n - 1) : S(0), n, is_fused};
}

inline double power(double base, double x) { return std::pow(base, x); }
inline std::complex<double> power(double base, std::complex<double> x) {
  if (!(base > 0)) return std::pow(std::complex<double>(base), x);
  const double size = std::pow(base, x.real()), angle = x.imag() * std::log(base);
  return {size * std::cos(angle), size * std::sin(angle)};
}

// base to the power of evenly spaced numbers.
struct Powers {
  Spaced exponent;
  double base;
  double operator()(int64_t i) const { return power(base, exponent(i)); }
};
// The same of complex ends; the numbers themselves where it is not of powers.
struct ComplexSpaced {
  Spaced real, imaginary;
  double base;
  bool is_of_powers;
  std::complex<double> operator()(int64_t i) const {
    const std::complex<double> x(real(i), imaginary(i));
    return is_of_powers ? power(base, x) : x;
  }
};

// --- windows ---

// cos(2 pi k / n): of many by the addition theorem, from those of k below 64 and of multiples of
// 64.
struct Cosines {
  static constexpr int64_t kStep = 64;
  struct Point {
    double cosine, sine;
  };

  double unit;       // 2 pi / n
  bool is_computed;  // each for itself

  Cosines(double n, int64_t count) : unit(kTwoPi / n), is_computed(count < 4 * kStep) {}
  double computed(int64_t k) const { return std::cos(unit * static_cast<double>(k)); }
  Point point(int64_t k) const {
    const double angle = unit * static_cast<double>(k);
    return {std::cos(angle), std::sin(angle)};
  }
  static double combined(const Point& start, const Point& step) {
    return product(start.cosine, step.cosine) - product(start.sine, step.sine);
  }
  double operator()(int64_t k) const {
    return is_computed ? computed(k) : combined(point(k - k % kStep), point(k % kStep));
  }
};

// I_0(x) e^-x for x >= 0: the power series, whose terms are positive, or from 20 on the asymptotic
// one [Abramowitz & Stegun 9.6.10, 9.7.1].
inline double scaled_i0(double x) {
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  double term = 1, sum = 1;
  if (x < 20) {
    for (double k = 1; term > sum * kEpsilon; k++) sum += term *= x * x / (4 * k * k);
    return sum * std::exp(-x);
  }
  for (double k = 1; k < 40 && term > kEpsilon; k++)
    sum += term *= (2 * k - 1) * (2 * k - 1) / (8 * x * k);
  return sum / std::sqrt(kTwoPi * x);
}

// A window's value at x from 0 to 1.
struct Window {
  enum class Kind : uint8_t { kHamming, kBlackman, kBartlett, kKaiser };

  Kind kind;
  double a = 0, b = 0;  // Hamming: alpha, beta; Kaiser: |beta|, I_0(|beta|) e^-|beta|

  bool has_cosine() const { return kind == Kind::kHamming || kind == Kind::kBlackman; }
  // `cosine` is cos(2 pi x), where that is asked for.
  double operator()(double x, double cosine) const {
    const double y = product(2, x) - 1;
    switch (kind) {
      case Kind::kHamming:
        return a - product(b, cosine);
      case Kind::kBlackman:  // cos(2a) = 2 cos(a)^2 - 1
        return 0.34 - product(0.5, cosine) + product(product(0.16, cosine), cosine);
      case Kind::kBartlett:
        return 1 - std::abs(y);
      case Kind::kKaiser:
        break;
    }
    const double square = 1 - product(y, y), inside = a * std::sqrt(square > 0 ? square : 0.0);
    return scaled_i0(inside) / b * std::exp(inside - a);
  }
};

// A window of `length` elements, of which the last is at x = 1, or would be the next one.
struct Windowed {
  Window window;
  Cosines cosines;
  double last;
  int64_t length;

  Windowed(const Window& window, int64_t length, bool periodic)
      : window(window),
        cosines(static_cast<double>(periodic ? length : length - 1), length),
        last(static_cast<double>(periodic ? length : length - 1)),
        length(length) {}
  double operator()(int64_t k) const { return at(k, window.has_cosine() ? cosines(k) : 0); }
  double at(int64_t k, double cosine) const {
    return length == 1 ? 1.0 : window(static_cast<double>(k) / last, cosine);
  }
};

// --- triangles ---

// Elements at and below the diagonal `offset` of a matrix of that many rows and columns, counted in
// type I.
template <class I>
I triangle_size(I rows, I cols, I offset) {
  const auto inside = [rows](I row) { return row < 0 ? I(0) : row < rows ? row : rows; };
  const I first = inside(-offset);       // rows before it are empty
  const I full = inside(cols - offset);  // from it on they are whole
  const I shortest = first + offset + 1, longest = full + offset;
  return (full - first) * (shortest + longest) / 2 + (rows - full) * cols;
}

// The elements on one side of a diagonal, row by row; less than 2^62 of the matrix's.
struct Triangle {
  int64_t rows, cols, offset;
  bool is_upper;

  // How many are in front of a row, and where they begin in it.
  int64_t before(int64_t row) const {
    return is_upper ? row * cols - triangle_size(row, cols, offset - 1)
                    : triangle_size(row, cols, offset);
  }
  int64_t first_column(int64_t row) const {
    return is_upper && row + offset > 0 ? row + offset : 0;
  }
  // The row of element i.
  int64_t row_of(int64_t i) const {
    int64_t begin = 0, end = rows;  // it is in [begin, end)
    while (end - begin > 1) {
      const int64_t middle = begin + (end - begin) / 2;
      if (before(middle) <= i)
        begin = middle;
      else
        end = middle;
    }
    return begin;
  }
};

}  // namespace taeda::sequences
