// Orthogonal polynomials p_n(x) by their names in torch.special: p_0 = 1, p_1 and a recurrence of
// three terms [Abramowitz & Stegun 22.7], for contiguous float and double tensors x and n.
//
// n is rounded towards zero; p_n = 0 for negative n. What overflows becomes NaN two terms later, as
// PyTorch's does. Chebyshev polynomials of more than a few terms inside of (-1, 1) are computed by
// their trigonometric forms.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/view.h"
#include "taeda/error.h"

namespace taeda::cpu {
namespace {

// p_(k+1) from p_k and p_(k-1).
template <class T>
using Next = T (*)(T x, T k, T p, T before);

template <class T>
T recur(T x, int64_t n, T first, Next<T> next) {
  if (n == 0) return 1;
  T before = 1, p = first;
  for (int64_t k = 1; k < n && !std::isnan(p); k++) {
    const T following = next(x, static_cast<T>(k), p, before);
    before = p;
    p = following;
  }
  return p;
}

template <class T>
T next_chebyshev(T x, T, T p, T before) {
  return (x + x) * p - before;
}

// Of the four kinds: p_1, values at the ends, and at x = cos(t).
enum Kind { kT, kU, kV, kW };
template <class T>
T chebyshev(Kind kind, T x, int64_t n) {
  const T sign = n % 2 == 0 ? T(1) : T(-1), m = static_cast<T>(n);
  if (x == 1) return kind == kT || kind == kV ? T(1) : kind == kU ? m + 1 : m + m + 1;
  if (x == -1) return sign * (kind == kT || kind == kW ? T(1) : kind == kU ? m + 1 : m + m + 1);
  if (n > 6 && std::abs(x) < 1) {
    const T t = std::acos(x), half = T(0.5);
    switch (kind) {
      case kT:
        return std::cos(m * t);
      case kU:
        return std::sin((m + 1) * t) / std::sin(t);
      case kV:
        return std::cos((m + half) * t) / std::cos(t * half);
      case kW:
        return std::sin((m + half) * t) / std::sin(t * half);
    }
  }
  const T first = kind == kT ? x : kind == kU ? x + x : kind == kV ? x + x - 1 : x + x + 1;
  return recur<T>(x, n, first, next_chebyshev<T>);
}

template <class T, Kind kind, bool shifted>
T chebyshev_of(T x, int64_t n) {
  return chebyshev(kind, shifted ? x + x - 1 : x, n);
}

// Beyond this degree PyTorch's Hermite polynomials are NaN.
template <class T>
constexpr int64_t kHermiteLimit = sizeof(T) == 4 ? 128 : 512;

template <class T>
T hermite_h(T x, int64_t n) {
  if (n > kHermiteLimit<T>) return std::numeric_limits<T>::quiet_NaN();
  return recur<T>(x, n, x + x,
                  [](T y, T k, T p, T before) { return (y + y) * p - (k + k) * before; });
}
template <class T>
T hermite_he(T x, int64_t n) {
  if (n > kHermiteLimit<T>) return std::numeric_limits<T>::quiet_NaN();
  return recur<T>(x, n, x, [](T y, T k, T p, T before) { return y * p - k * before; });
}
template <class T>
T laguerre(T x, int64_t n) {
  if (x == 0) return 1;
  return recur<T>(x, n, 1 - x, [](T y, T k, T p, T before) {
    return ((k + k + 1 - y) * p - k * before) / (k + 1);
  });
}
template <class T>
T legendre(T x, int64_t n) {
  if (std::abs(x) == 1) return x > 0 || n % 2 == 0 ? T(1) : T(-1);
  return recur<T>(x, n, x, [](T y, T k, T p, T before) {
    return ((k + k + 1) * y * p - k * before) / (k + 1);
  });
}

template <class T>
struct Named {
  std::string_view name;
  T (*function)(T x, int64_t n);
};
template <class T>
constexpr std::array kPolynomials = {
    Named<T>{"chebyshev_polynomial_t", chebyshev_of<T, kT, false>},
    Named<T>{"chebyshev_polynomial_u", chebyshev_of<T, kU, false>},
    Named<T>{"chebyshev_polynomial_v", chebyshev_of<T, kV, false>},
    Named<T>{"chebyshev_polynomial_w", chebyshev_of<T, kW, false>},
    Named<T>{"shifted_chebyshev_polynomial_t", chebyshev_of<T, kT, true>},
    Named<T>{"shifted_chebyshev_polynomial_u", chebyshev_of<T, kU, true>},
    Named<T>{"shifted_chebyshev_polynomial_v", chebyshev_of<T, kV, true>},
    Named<T>{"shifted_chebyshev_polynomial_w", chebyshev_of<T, kW, true>},
    Named<T>{"hermite_polynomial_h", hermite_h<T>},
    Named<T>{"hermite_polynomial_he", hermite_he<T>},
    Named<T>{"laguerre_polynomial_l", laguerre<T>},
    Named<T>{"legendre_polynomial_p", legendre<T>},
};

// The degree of an element: 0 for NaN, and what int64 holds.
template <class T>
int64_t degree(T n) {
  constexpr T kMost = T(9e18);
  return std::isnan(n) ? -1 : static_cast<int64_t>(std::clamp(n, -kMost, kMost));
}

}  // namespace

void orthogonal_polynomial(const View& result, const View& x, const View& n,
                           std::string_view name) {
  with_dtype<WideFloating>(x.dtype, [&]<class T>(T) {
    const auto& all = kPolynomials<T>;
    const auto named = std::find_if(all.begin(), all.end(),
                                    [&](const Named<T>& each) { return each.name == name; });
    TD_CHECK(named != all.end(), "there is no polynomial {}", name);
    T* const out = result.as<T>();
    parallel_for(0, x.numel, 256, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        check_interrupt();
        const int64_t k = degree(n.as<T>()[i]);
        out[i] = k < 0 ? T(0) : named->function(x.as<T>()[i], k);
      }
    });
  });
}

}  // namespace taeda::cpu
