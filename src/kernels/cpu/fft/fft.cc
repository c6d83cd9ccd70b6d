// Discrete Fourier transforms of tensors, dimension by dimension (passes.h, plan.h).
//
// Lines of a dimension are gathered, several at once, into split arrays where they are interleaved,
// transformed there, and scattered. Real transforms of an even length n are complex ones of length
// n / 2, whose elements are pairs of neighbours (Press et al., "Numerical Recipes", 12.3).
#include <algorithm>
#include <cmath>
#include <complex>

#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/fft/plan.h"
#include "kernels/cpu/simd/scratch.h"
#include "kernels/view.h"
#include "taeda/error.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kCacheElements = 1 << 14;  // of the four arrays together
constexpr int64_t kMostLines = 16;           // transformed together
constexpr int64_t kChunk = 1 << 15;          // elements that a thread takes at once

// Offsets of the lines along `dim` in two views that agree in the other dimensions.
class Lines {
 public:
  Lines(const View& a, const View& b, int64_t dim) {
    for (int64_t d = 0; d < a.ndim(); d++) {
      if (d == dim) continue;
      sizes_.push_back(a.sizes[d]);
      strides_[0].push_back(a.strides[d]);
      strides_[1].push_back(b.strides[d]);
      count *= a.sizes[d];
    }
  }
  void offsets(int64_t line, int64_t& a, int64_t& b) const {
    a = b = 0;
    for (size_t d = sizes_.size(); d-- > 0;) {
      const int64_t i = line % sizes_[d];
      line /= sizes_[d];
      a += i * strides_[0][d];
      b += i * strides_[1][d];
    }
  }
  int64_t count = 1;

 private:
  DimVector sizes_, strides_[2];
};

// Working arrays of `lines` interleaved transforms.
template <class T>
struct Work {
  Work(const FftPlan<T>& plan, int64_t lines)
      : each(plan.scratch() * lines),
        memory(4 * each),
        x{memory.data(), memory.data() + each},
        y{x.re + 2 * each, x.re + 3 * each} {}
  const int64_t each;
  const Scratch<T> memory;
  const Complexes<T> x, y;
};

// For groups of lines: load(a, l, lines, x) brings the line at offset a into indices l, l + lines,
// ... of x; save(z, l, lines, b) takes it from there. `backward`: the inverse transform.
template <class T, class Load, class Save>
void for_lines(const FftPlan<T>& plan, const Lines& lines, bool backward, const Load& load,
               const Save& save) {
  const int64_t most = std::clamp<int64_t>(kCacheElements / (4 * plan.scratch()), 1, kMostLines);
  const int64_t groups = (lines.count + most - 1) / most;
  const int64_t grain = std::max<int64_t>(1, kChunk / (plan.scratch() * most));
  parallel_for(0, groups, grain, [&](int64_t begin, int64_t end) {
    const Work<T> work(plan, most);
    for (int64_t group = begin; group < end; group++) {
      const int64_t first = group * most, n = std::min(most, lines.count - first);
      int64_t a[kMostLines], b[kMostLines];
      for (int64_t l = 0; l < n; l++) {
        lines.offsets(first + l, a[l], b[l]);
        load(a[l], l, n, work.x);
      }
      const auto swapped = [](Complexes<T> z) { return Complexes<T>{z.im, z.re}; };
      const Complexes<T> z = backward ? swapped(plan.run(swapped(work.x), swapped(work.y), n))
                                      : plan.run(work.x, work.y, n);
      for (int64_t l = 0; l < n; l++) save(z, l, n, b[l]);
    }
  });
}

template <class T>
void complex_to_complex(const View& out, const View& in, int64_t dim, bool forward, T scale) {
  using C = std::complex<T>;
  const int64_t n = in.sizes[dim], from = in.strides[dim], to = out.strides[dim];
  const auto plan = FftPlan<T>::of(n);
  for_lines<T>(
      *plan, Lines(in, out, dim), !forward,
      [&](int64_t at, int64_t l, int64_t lines, Complexes<T> x) {
        const C* p = in.as<C>() + at;
        for (int64_t k = 0; k < n; k++) {
          x.re[k * lines + l] = p[k * from].real();
          x.im[k * lines + l] = p[k * from].imag();
        }
      },
      [&](Complexes<T> z, int64_t l, int64_t lines, int64_t at) {
        C* p = out.as<C>() + at;
        for (int64_t k = 0; k < n; k++)
          p[k * to] = C(scale * z.re[k * lines + l], scale * z.im[k * lines + l]);
      });
}

// The transform of real numbers: of n, the first n / 2 + 1 elements or all.
template <class T>
void real_to_complex(const View& out, const View& in, int64_t dim, T scale) {
  using C = std::complex<T>;
  const int64_t n = in.sizes[dim], from = in.strides[dim], to = out.strides[dim], half = n / 2;
  const bool even = n % 2 == 0 && out.sizes[dim] < n;  // by pairs
  const auto plan = FftPlan<T>::of(even ? half : n);
  const C* roots = even ? plan->half_roots() : nullptr;
  for_lines<T>(
      *plan, Lines(in, out, dim), false,
      [&](int64_t at, int64_t l, int64_t lines, Complexes<T> x) {
        const T* p = in.as<T>() + at;
        for (int64_t k = 0; k < plan->size(); k++) {
          x.re[k * lines + l] = p[(even ? 2 * k : k) * from];
          x.im[k * lines + l] = even ? p[(2 * k + 1) * from] : T(0);
        }
      },
      [&](Complexes<T> z, int64_t l, int64_t lines, int64_t at) {
        C* p = out.as<C>() + at;
        const auto value = [&](int64_t k) { return C(z.re[k * lines + l], z.im[k * lines + l]); };
        for (int64_t k = 0; k < out.sizes[dim]; k++) {
          if (!even) {
            p[k * to] = scale * value(k);
            continue;
          }
          const C here = value(k % half), mirrored = std::conj(value((half - k) % half));
          const C odd = (here - mirrored) * roots[k];
          p[k * to] = T(0.5) * scale * (here + mirrored + C(odd.imag(), -odd.real()));
        }
      });
}

// The real numbers whose transform begins with `in`; the imaginary parts of its element 0 and, for
// an even length, of its last are taken for 0.
template <class T>
void complex_to_real(const View& out, const View& in, int64_t dim, T scale) {
  using C = std::complex<T>;
  const int64_t n = out.sizes[dim], from = in.strides[dim], to = out.strides[dim], half = n / 2;
  const bool even = n % 2 == 0;
  const auto plan = FftPlan<T>::of(even ? half : n);
  const C* roots = even ? plan->half_roots() : nullptr;
  for_lines<T>(
      *plan, Lines(in, out, dim), true,
      [&](int64_t at, int64_t l, int64_t lines, Complexes<T> x) {
        const C* p = in.as<C>() + at;
        const auto value = [&](int64_t k) {
          const bool real = k == 0 || (even && k == half);
          return real ? C(p[k * from].real(), 0) : p[k * from];
        };
        for (int64_t k = 0; k < plan->size(); k++) {
          C z;
          if (even) {
            const C here = value(k), mirrored = std::conj(value(half - k));
            const C odd = (here - mirrored) * std::conj(roots[k]);
            z = here + mirrored + C(-odd.imag(), odd.real());
          } else {
            z = k <= half ? value(k) : std::conj(value(n - k));
          }
          x.re[k * lines + l] = z.real();
          x.im[k * lines + l] = z.imag();
        }
      },
      [&](Complexes<T> z, int64_t l, int64_t lines, int64_t at) {
        T* p = out.as<T>() + at;
        for (int64_t k = 0; k < plan->size(); k++) {
          p[(even ? 2 * k : k) * to] = scale * z.re[k * lines + l];
          if (even) p[(2 * k + 1) * to] = scale * z.im[k * lines + l];
        }
      });
}

// The factor of a normalization: 0 none, 1 the root of the number of elements, 2 the number.
double factor(int64_t normalization, int64_t elements) {
  if (normalization == 0) return 1;
  const double n = static_cast<double>(elements);
  return normalization == 1 ? 1 / std::sqrt(n) : 1 / n;
}

int64_t elements_along(const View& v, IntSpan dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= v.sizes[d];
  return n;
}

}  // namespace

void fft_c2c(const View& out, const View& self, IntSpan dim, int64_t normalization, bool forward) {
  if (out.numel == 0) return;
  with_dtype<ComplexTypes>(self.dtype, [&]<class C>(C) {
    using T = typename C::value_type;
    const T scale = static_cast<T>(factor(normalization, elements_along(out, dim)));
    for (size_t i = 0; i < dim.size(); i++)
      complex_to_complex<T>(out, i ? out : self, dim[i], forward, i ? T(1) : scale);
  });
}

void fft_r2c(const View& out, const View& self, IntSpan dim, int64_t normalization, bool) {
  if (out.numel == 0) return;
  with_dtype<WideFloating>(self.dtype, [&]<class T>(T) {
    const T scale = static_cast<T>(factor(normalization, elements_along(self, dim)));
    real_to_complex<T>(out, self, dim.back(), scale);
    for (size_t i = 0; i + 1 < dim.size(); i++) complex_to_complex<T>(out, out, dim[i], true, T(1));
  });
}

void fft_c2r(const View& out, const View& self, IntSpan dim, int64_t normalization, int64_t) {
  if (out.numel == 0) return;
  with_dtype<WideFloating>(out.dtype, [&]<class T>(T) {
    const T scale = static_cast<T>(factor(normalization, elements_along(out, dim)));
    if (dim.size() == 1) return complex_to_real<T>(out, self, dim.back(), scale);
    // A dense copy that the other dimensions are transformed in.
    const Scratch<std::complex<T>> memory(self.numel);
    DimVector strides(self.ndim(), 1);
    for (int64_t d = self.ndim() - 1; d > 0; d--) strides[d - 1] = strides[d] * self.sizes[d];
    View copy = self;
    copy.data = memory.data();
    copy.strides = strides;
    for (size_t i = 0; i + 1 < dim.size(); i++)
      complex_to_complex<T>(copy, i ? copy : self, dim[i], false, T(1));
    complex_to_real<T>(out, copy, dim.back(), scale);
  });
}

}  // namespace taeda::cpu
