// Orthogonal polynomials (kernels/orthogonal_polynomials.h) by their names in torch.special, for
// contiguous float and double tensors x and n; vectorized where neighbours have one degree.
#include <algorithm>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/special_function_names.h"
#include "kernels/view.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pointwise/orthogonal_polynomial.cc"
#include "kernels/cpu/simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

// As polynomials::recur(), operation for operation.
template <class T, class Next>
TD_FN Vec<T> recur(int64_t n, Vec<T> first, const Next& next) {
  if (n == 0) return Vec<T>(1);
  Vec<T> before(1), p = first;
  for (int64_t k = 1; k < n && !all(isnan(p)); k++) {
    const Vec<T> following = next(static_cast<T>(k), p, before);
    before = p;
    p = following;
  }
  return p;
}

// A Chebyshev polynomial's trigonometric form.
HWY_NOINLINE Vec<double> chebyshev_of_cosine(Polynomial kind, Vec<double> x, double n) {
  using V = Vec<double>;
  using enum Polynomial;
  const bool even = kind == kT || kind == kV;
  const auto wave = [even](V angle) HWY_ATTR { return even ? cos(angle) : sin(angle); };
  const V t = acos(x);
  if (kind == kT) return wave(t * V(n));
  return wave(t * V(kind == kU ? n + 1 : n + 0.5)) / wave(kind == kU ? t : t * V(0.5));
}

template <class T>
TD_FN Vec<T> chebyshev(Polynomial kind, Vec<T> x, int64_t n) {
  using V = Vec<T>;
  using enum Polynomial;
  const T m = static_cast<T>(n), most = kind == kU ? m + 1 : m + m + 1;
  const Mask<T> inside = abs(x) < 1;
  V y(0);
  if (n > 6 && any(inside)) {
    const double degree = static_cast<double>(n);
    if constexpr (sizeof(T) == 8)
      y = chebyshev_of_cosine(kind, x, degree);
    else
      y = through_double(
          [=](Vec<double> v) HWY_ATTR { return chebyshev_of_cosine(kind, v, degree); }, x);
  }
  if (n <= 6 || !all(inside)) {
    const V twice = x + x, first = kind == kT   ? x
                                   : kind == kU ? twice
                                   : kind == kV ? twice - 1
                                                : twice + 1;
    const V sum = recur<T>(n, first, [=](T, V p, V before) HWY_ATTR { return twice * p - before; });
    y = n > 6 ? select(inside, y, sum) : sum;
  }
  const T sign = n % 2 == 0 ? T(1) : T(-1);
  y = select(x == 1, V(kind == kT || kind == kV ? T(1) : most), y);
  return select(x == -1, V(sign * (kind == kT || kind == kW ? T(1) : most)), y);
}

template <class T>
TD_FN Vec<T> polynomial_of(Polynomial which, Vec<T> x, int64_t n) {
  using V = Vec<T>;
  using enum Polynomial;
  if (which == kHermiteH || which == kHermiteHe) {
    if (n > polynomials::kHermiteLimit<T>) return V(std::numeric_limits<T>::quiet_NaN());
    const T scale = which == kHermiteH ? T(2) : T(1);
    const V factor = V(scale) * x;
    return recur<T>(
        n, factor, [=](T k, V p, V before) HWY_ATTR { return factor * p - V(scale * k) * before; });
  }
  if (which == kLaguerre) {
    const V y = recur<T>(n, V(1) - x, [=](T k, V p, V before) HWY_ATTR {
      return ((V(k + k + 1) - x) * p - V(k) * before) / V(k + 1);
    });
    return select(x == 0, V(1), y);
  }
  if (which == kLegendre) {
    const V y = recur<T>(n, x, [=](T k, V p, V before) HWY_ATTR {
      return (V(k + k + 1) * x * p - V(k) * before) / V(k + 1);
    });
    const Mask<T> end = abs(x) == 1;
    return select(end, select(x > 0, V(1), V(n % 2 == 0 ? T(1) : T(-1))), y);
  }
  constexpr auto kShift = static_cast<uint8_t>(kShiftedT);
  const auto kind = static_cast<uint8_t>(which);
  if (kind < kShift) return chebyshev<T>(which, x, n);
  return chebyshev<T>(static_cast<Polynomial>(kind - kShift), x + x - 1, n);
}

// size() elements.
template <class T>
void run_vector(Polynomial which, const T* x, const T* n, T* out) {
  if constexpr (Vec<T>::size() > 1) {
    const int64_t degree = polynomials::degree(n[0]);
    if (degree >= 0 && all(load(n) == Vec<T>(n[0])))
      return store(out, polynomial_of<T>(which, load(x), degree));
  }
  for (int64_t i = 0; i < Vec<T>::size(); i++)
    out[i] = taeda::orthogonal_polynomial(which, x[i], n[i]);
}

template <class T>
void run(Polynomial which, const T* x, const T* n, T* out, int64_t count) {
  constexpr int64_t kLanes = Vec<T>::size();
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    check_interrupt();
    run_vector(which, x + i, n + i, out + i);
  }
  if (i == count) return;
  T some_x[kLanes], some_n[kLanes], some_out[kLanes];  // the last elements, the last one repeated
  for (int64_t l = 0; l < kLanes; l++) {
    const int64_t at = std::min(i + l, count - 1);
    some_x[l] = x[at];
    some_n[l] = n[at];
  }
  run_vector(which, some_x, some_n, some_out);
  std::copy_n(some_out, count - i, out + i);
}

void run_float(Polynomial which, const float* x, const float* n, float* out, int64_t count) {
  run(which, x, n, out, count);
}
void run_double(Polynomial which, const double* x, const double* n, double* out, int64_t count) {
  run(which, x, n, out, count);
}

}  // namespace
}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {
HWY_EXPORT(run_float);
HWY_EXPORT(run_double);

void orthogonal_polynomial(const View& result, const View& x, const View& n,
                           std::string_view name) {
  const Polynomial which = kernels::polynomial_named(name);
  with_dtype<WideFloating>(x.dtype, [&]<class T>(T) {
    parallel_for(0, x.numel, 256, [&](int64_t begin, int64_t end) {
      const T *const from = x.as<T>() + begin, *const degrees = n.as<T>() + begin;
      T* const to = result.as<T>() + begin;
      if constexpr (sizeof(T) == 4)
        HWY_DYNAMIC_DISPATCH(run_float)(which, from, degrees, to, end - begin);
      else
        HWY_DYNAMIC_DISPATCH(run_double)(which, from, degrees, to, end - begin);
    });
  });
}

}  // namespace taeda::cpu
#endif
