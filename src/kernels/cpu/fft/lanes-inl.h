// Up to a vector's lanes of transforms at once, one in each lane (FftLanes).
#if defined(TAEDA_KERNELS_CPU_FFT_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TAEDA_KERNELS_CPU_FFT_LANES_INL_H_
#undef TAEDA_KERNELS_CPU_FFT_LANES_INL_H_
#else
#define TAEDA_KERNELS_CPU_FFT_LANES_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/fft/transpose-inl.h"
#include "kernels/cpu/simd/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

template <class T>
class LanesRun {
 public:
  LanesRun(const FftLanes<T>& work, T* panel) : w_(work), z_(panel) {}

  void run() {
    const FftColumns<T>& columns = *w_.columns;
    if (w_.from_neighbours && w_.kind == FftKind::kComplex && !columns.passes.empty()) {
      if (!w_.to_neighbours) return run_from_neighbours();
      is_plain() ? run_neighbours<kHasPlain>() : run_neighbours<false>();
      return;
    }
    if constexpr (kPairs > 0)
      if (has_lines() && run_lines()) return;
    load_all();
    if (w_.kind == FftKind::kToReal) paired() ? mix_inputs() : mirror();
    const PanelRows<T> rows(z_, w_.backward);
    if (!columns.passes.empty()) run_passes(columns, rows, rows, rows);
    if (w_.kind == FftKind::kFromReal && paired()) mix_results();
    store_all();
  }

 private:
  static constexpr int64_t kLanes = Vec<T>::size(), kRow = 2 * kLanes, kGroup = kBlock<T>;
  static constexpr int64_t kPairs = kGroup / 2;  // complex numbers of a block; 0 without vectors

  template <bool kPlain>
  void run_neighbours() {
    run_passes(*w_.columns, SourceRows<T, kPlain>(w_.from[0], w_.from_stride, w_.backward),
               PanelRows<T>(z_, false),
               ResultRows<T, kPlain>(w_.to[0], w_.to_stride, w_.backward, w_.scale));
  }

  void run_from_neighbours() {
    run_passes(*w_.columns, SourceRows<T, false>(w_.from[0], w_.from_stride, w_.backward),
               PanelRows<T>(z_, false), PanelRows<T>(z_, w_.backward));
    store_all();
  }

  bool is_plain() const { return !w_.backward && w_.scale == 1; }
  bool paired() const { return w_.half_roots; }
  // Asks for `count` rows' share of what the next lanes read or write, in the order of memory, in
  // which passes do neither.
  static TD_FN void fetch(const T* next, int64_t row, int64_t count) {
    if (next) prefetch_block(next + kRow * row, kRow * count * int64_t{sizeof(T)});
  }
  T* row(int64_t k) const { return z_ + kRow * k; }
  // Results in order; those of pairs have one more, behind the panel's others.
  T* result(int64_t k) const {
    return row(k < w_.columns->n ? w_.columns->row[static_cast<size_t>(k)] : k);
  }

  // --- memory to panel -------------------------------------------------------------------------

  void load_all() {
    const bool real = w_.kind == FftKind::kFromReal;
    const int64_t rows = w_.kind == FftKind::kToReal ? w_.n / 2 + 1 : w_.columns->n;
    // Where the real and the imaginary part of element k are.
    const int64_t next = real && paired() ? 2 * w_.from_stride : w_.from_stride;
    const int64_t imaginary = !real ? 1 : paired() ? w_.from_stride : -1;
    if (w_.from_neighbours) return load_neighbours(rows, next, imaginary);
    if constexpr (kPairs > 0) {
      if (next == 2 && imaginary == 1 && rows >= kPairs) return load_lines(rows);
      if (next == 1 && imaginary < 0 && rows >= kGroup) return load_real_lines(rows);
    }
    for (int64_t l = 0; l < kLanes; l++)
      for (int64_t k = 0; k < rows; k++) {
        const T* p = w_.from[l] + k * next;
        row(k)[l] = *p;
        row(k)[l + kLanes] = imaginary < 0 ? T(0) : p[imaginary];
      }
  }
  void load_neighbours(int64_t rows, int64_t next, int64_t imaginary) {
    for (int64_t k = 0; k < rows; k++) {
      const T* p = w_.from[0] + k * next;
      Vec<T> re(0), im(0);
      if (w_.kind == FftKind::kFromReal) {
        re = load(p);
        if (imaginary >= 0) im = load(p + imaginary);
      } else {
        hn::LoadInterleaved2(typename Vec<T>::Tag(), p, re.raw, im.raw);
      }
      store(row(k), re);
      store(row(k) + kLanes, im);
    }
  }
  // Lanes' addresses in registers: what is stored might, for the compiler, be those of `w_`.
  template <class P>
  struct Addresses {
    std::remove_const_t<P> p[kLanes];
    explicit Addresses(P* from) {
#pragma GCC unroll 16
      for (int64_t l = 0; l < kLanes; l++) p[l] = from[l];
    }
  };
  // Lines without gaps: a block of each of kGroup lines, transposed, is the numbers first, first +
  // 1, ... of all; of complex lines the real and imaginary parts of kPairs rows.
  static TD_FN void load_block(const Addresses<const T* const>& from, int64_t first, Vec<T>* v) {
#pragma GCC unroll 4
    for (int64_t t = 0; t < kGroup; t++)
      v[t] = of_blocks<0>(typename Vec<T>::Tag(), [&](int64_t block, auto d) HWY_ATTR {
        return hn::LoadU(d, from.p[kGroup * block + t] + first);
      });
    transpose_blocks(v);
  }
  void load_lines(int64_t rows) {
    const Addresses<const T* const> from(w_.from);
    T* const z = z_;
    const T* const next = w_.next_from;
    for (int64_t k = 0; k < rows; k += kPairs) {
      fetch(next, k, kPairs);
      const int64_t first = std::min(k, rows - kPairs);
      Vec<T> v[kGroup];
      load_block(from, 2 * first, v);
#pragma GCC unroll 2
      for (int64_t j = 0; j < kPairs; j++) put(z + kRow * (first + j), {v[2 * j], v[2 * j + 1]});
    }
  }
  void load_real_lines(int64_t rows) {
    const Addresses<const T* const> from(w_.from);
    T* const z = z_;
    for (int64_t k = 0; k < rows; k += kGroup) {
      const int64_t first = std::min(k, rows - kGroup);
      Vec<T> v[kGroup];
      load_block(from, first, v);
#pragma GCC unroll 4
      for (int64_t j = 0; j < kGroup; j++) put(z + kRow * (first + j), {v[j], Vec<T>(0)});
    }
  }

  // --- panel to memory -------------------------------------------------------------------------

  void store_all() {
    const bool real = w_.kind == FftKind::kToReal;
    const T scale = w_.kind == FftKind::kFromReal && paired() ? T(1) : w_.scale;
    const int64_t rows = real && paired() ? w_.n / 2 : w_.outputs;
    const int64_t next = real && paired() ? 2 * w_.to_stride : w_.to_stride;
    const int64_t imaginary = !real ? 1 : paired() ? w_.to_stride : -1;
    if (w_.to_neighbours) return store_neighbours(rows, scale, next, imaginary);
    if constexpr (kPairs > 0)
      if (next == 2 && imaginary == 1 && rows >= kPairs) return store_lines(rows, scale);
    for (int64_t k = 0; k < rows; k++) {
      const T* from = result(k);
      for (int64_t l = 0; l < kLanes; l++) {
        T* p = w_.to[l] + k * next;
        *p = scale * from[l];
        if (imaginary >= 0) p[imaginary] = scale * from[l + kLanes];
      }
    }
  }
  void store_neighbours(int64_t rows, T scale, int64_t next, int64_t imaginary) {
    for (int64_t k = 0; k < rows; k++) {
      const Value<T> a = get(result(k)).times(Vec<T>(scale));
      T* p = w_.to[0] + k * next;
      if (w_.kind == FftKind::kToReal) {
        store(p, a.re);
        if (imaginary >= 0) store(p + imaginary, a.im);
      } else {
        hn::StoreInterleaved2(a.re.raw, a.im.raw, typename Vec<T>::Tag(), p);
      }
    }
  }
  static TD_FN void store_block(const Addresses<T* const>& to, int64_t first, Vec<T>* v) {
    transpose_blocks(v);
#pragma GCC unroll 4
    for (int64_t t = 0; t < kGroup; t++)
      for_blocks<0>(typename Vec<T>::Tag(), v[t].raw,
                    [&](int64_t block, auto d, auto part)
                        HWY_ATTR { hn::StoreU(part, d, to.p[kGroup * block + t] + 2 * first); });
  }
  void store_lines(int64_t rows, T scale) {
    const Addresses<T* const> to(w_.to);
    const int32_t* const row = w_.columns->row.data();
    const int64_t results = w_.columns->n;
    const T* const z = z_;
    const Vec<T> by(scale);
    const T* const next = w_.next_to;
    const auto some = [&](int64_t first, const auto& row_of) HWY_ATTR {
      fetch(next, first, kPairs);
      Vec<T> v[kGroup];
#pragma GCC unroll 2
      for (int64_t j = 0; j < kPairs; j++) {
        const Value<T> a = get(z + kRow * row_of(first + j)).times(by);
        v[2 * j] = a.re;
        v[2 * j + 1] = a.im;
      }
      store_block(to, first, v);
    };
    int64_t k = 0;
    for (; k + kPairs <= std::min(rows, results); k += kPairs)
      some(k, [&](int64_t at) { return row[at]; });
    for (; k < rows; k += kPairs)
      some(std::min(k, rows - kPairs),
           [&](int64_t at) { return at < results ? row[at] : static_cast<int32_t>(at); });
  }

  // --- lines to lines, of complex numbers or from pairs of real ones -----------------------------

  bool has_lines() const {
    if (w_.from_neighbours || w_.to_neighbours || w_.to_stride != 2) return false;
    return w_.kind == FftKind::kComplex
               ? w_.from_stride == 2
               : w_.kind == FftKind::kFromReal && paired() && w_.from_stride == 1;
  }
  // Whether a pass that has `beside` butterflies of this radix side by side loads or stores lines.
  static bool takes_lines(int radix, int64_t beside) {
    return beside % kPairs == 0 &&
           (radix == 4 || radix == 8 || (kPairs == 1 && (radix == 3 || radix == 5)));
  }

  // The first pass loads blocks of the lines, the last one or the mixing of pairs stores them. The
  // inverse transform is the conjugate of the conjugate's.
  bool run_lines() {
    const std::vector<FftPass<T>>& passes = w_.columns->passes;
    const bool complex = w_.kind == FftKind::kComplex;
    if (complex && passes.size() == 1) return run_one_pass(passes[0].radix);
    if (passes.empty() || !takes_lines(passes.front().radix, passes.front().m)) return false;
    const FftPass<T>& last = passes.back();
    if (complex && !takes_lines(last.radix, last.blocks)) return false;
    first_lines(passes.front());
    const PanelRows<T> rows(z_, false);
    for (size_t i = 1; i + complex < passes.size(); i++)
      run_pass(passes[i], w_.columns->first.data(), rows, rows);
    complex ? last_lines(last) : mix_to_lines();
    return true;
  }

  // All of a line in registers.
  bool run_one_pass(int radix) {
    switch (radix) {
      case 4:
        return one_pass<4>();
      case 5:
        return one_pass<5>();
      case 8:
        return one_pass<8>();
      default:
        return false;
    }
  }
  template <int kRadix>
  HWY_NOINLINE bool one_pass() {
    if constexpr (kRadix % kPairs != 0) return false;
    const Addresses<const T* const> from(w_.from);
    const Addresses<T* const> to(w_.to);
    const Vec<T> sign(w_.backward ? -1 : 1), scale(w_.scale);
    const Vec<T> imaginary_scale(w_.backward ? -w_.scale : w_.scale);
    fetch(w_.next_from, 0, kRadix);
    fetch(w_.next_to, 0, kRadix);
    Value<T> a[kRadix];
    Vec<T> v[kGroup];
#pragma GCC unroll 8
    for (int64_t k = 0; k < kRadix; k += kPairs) {
      load_block(from, 2 * k, v);
#pragma GCC unroll 2
      for (int64_t j = 0; j < kPairs; j++) a[k + j] = {v[2 * j], v[2 * j + 1] * sign};
    }
    butterfly<T, kRadix>(a, kRadix, nullptr);
#pragma GCC unroll 8
    for (int64_t k = 0; k < kRadix; k += kPairs) {
#pragma GCC unroll 2
      for (int64_t j = 0; j < kPairs; j++) {
        v[2 * j] = a[k + j].re * scale;
        v[2 * j + 1] = a[k + j].im * imaginary_scale;
      }
      store_block(to, k, v);
    }
    return true;
  }

  void first_lines(const FftPass<T>& pass) {
    if (pass.radix == 4) return first_pass<4>(pass);
    if (pass.radix == 8) return first_pass<8>(pass);
    if constexpr (kPairs == 1) pass.radix == 3 ? first_pass<3>(pass) : first_pass<5>(pass);
  }
  void last_lines(const FftPass<T>& pass) {
    if constexpr (kPairs == 1) {
      if (pass.radix == 3) return last_pass<3, false>(pass);
      if (pass.radix == 5) return last_pass<5, false>(pass);
    }
    if (is_plain())
      pass.radix == 4 ? last_pass<4, true>(pass) : last_pass<8, true>(pass);
    else
      pass.radix == 4 ? last_pass<4, false>(pass) : last_pass<8, false>(pass);
  }
  template <int kRadix>
  HWY_NOINLINE void first_pass(const FftPass<T>& pass) {
    const Addresses<const T* const> from(w_.from);
    const int64_t m = pass.m;
    const T* const twiddles = pass.twiddles.data();
    T* const z = z_;
    const Vec<T> sign(w_.backward ? -1 : 1);
    const T* const next = w_.next_from;
    for (int64_t p = 0; p < m; p += kPairs) {
      fetch(next, kRadix * p, kRadix * kPairs);
      Value<T> a[kPairs][kRadix];
#pragma GCC unroll 8
      for (int64_t k = 0; k < kRadix; k++) {
        Vec<T> v[kGroup];
        load_block(from, 2 * (p + m * k), v);
#pragma GCC unroll 2
        for (int64_t j = 0; j < kPairs; j++) a[j][k] = {v[2 * j], v[2 * j + 1] * sign};
      }
#pragma GCC unroll 2
      for (int64_t j = 0; j < kPairs; j++) {
        butterfly<T, kRadix>(a[j], kRadix, nullptr);
        const T* const w = twiddles + 2 * (kRadix - 1) * (p + j);
        put(z + kRow * (p + j), a[j][0]);
#pragma GCC unroll 8
        for (int64_t k = 1; k < kRadix; k++)
          put(z + kRow * (p + j + m * k),
              a[j][k] * Value<T>{Vec<T>(w[2 * k - 2]), Vec<T>(w[2 * k - 1])});
      }
    }
  }
  template <int kRadix, bool kPlain>
  HWY_NOINLINE void last_pass(const FftPass<T>& pass) {
    const Addresses<T* const> to(w_.to);
    const int64_t blocks = pass.blocks;
    const int32_t* const row = w_.columns->row.data();
    const T* const z = z_;
    const Vec<T> scale(w_.scale), imaginary_scale(w_.backward ? -w_.scale : w_.scale);
    const T* const next = w_.next_to;
    for (int64_t p = 0; p < blocks; p += kPairs) {
      fetch(next, kRadix * p, kRadix * kPairs);
      Value<T> a[kPairs][kRadix];
#pragma GCC unroll 2
      for (int64_t j = 0; j < kPairs; j++) {
#pragma GCC unroll 8
        for (int64_t k = 0; k < kRadix; k++) a[j][k] = get(z + kRow * (row[p + j] + k));
        butterfly<T, kRadix>(a[j], kRadix, nullptr);
      }
#pragma GCC unroll 8
      for (int64_t k = 0; k < kRadix; k++) {
        Vec<T> v[kGroup];
#pragma GCC unroll 2
        for (int64_t j = 0; j < kPairs; j++) {
          v[2 * j] = kPlain ? a[j][k].re : a[j][k].re * scale;
          v[2 * j + 1] = kPlain ? a[j][k].im : a[j][k].im * imaginary_scale;
        }
        store_block(to, p + blocks * k, v);
      }
    }
  }

  // --- transforms of n real numbers by n / 2 pairs (Press et al., "Numerical Recipes", 12.3) -----

  static TD_FN Value<T> get(const T* row) { return {load(row), load(row + kLanes)}; }
  static TD_FN void put(T* row, Value<T> a) {
    store(row, a.re);
    store(row + kLanes, a.im);
  }
  // mix_pairs() of kernels.h, of two values.
  static TD_FN void mix(Value<T>& a, Value<T>& b, Value<T> root, Vec<T> scale) {
    const Value<T> even = Value<T>{a.re + b.re, a.im - b.im}.times(scale);
    const Value<T> odd = Value<T>{a.re - b.re, a.im + b.im}.times(scale) * root;
    a = even + odd;
    b = {even.re - odd.re, odd.im - even.im};
  }
  static void mix(T* a_row, T* b_row, Value<T> root, T s) {
    Value<T> a = get(a_row), b = get(b_row);
    mix(a, b, root, Vec<T>(s));
    put(a_row, a);
    put(b_row, b);
  }
  void mix_results() {
    const int64_t half = w_.n / 2;
    const Value<T> first = get(row(0));
    const Vec<T> scale(w_.scale);
    put(row(half), {(first.re - first.im) * scale, Vec<T>(0)});
    put(row(0), {(first.re + first.im) * scale, Vec<T>(0)});
    for (int64_t k = 1; 2 * k <= half; k++)
      mix(result(k), result(half - k),
          {Vec<T>(w_.half_roots[2 * k]), Vec<T>(w_.half_roots[2 * k + 1])}, T(0.5) * w_.scale);
  }
  // The same, results k and half - k to lines as soon as they are there.
  HWY_NOINLINE void mix_to_lines() {
    const Addresses<T* const> to(w_.to);
    const int32_t* const row = w_.columns->row.data();
    const T *const z = z_, *const roots = w_.half_roots, *const next = w_.next_to;
    const int64_t half = w_.n / 2, last = half / 2;
    const Vec<T> scale(w_.scale), half_scale(T(0.5) * w_.scale);
    for (int64_t k = 0; k <= last; k += kPairs) {
      const int64_t low = std::min(k, last + 1 - kPairs), high = half - low - (kPairs - 1);
      fetch(next, low, kPairs);
      fetch(next, high, kPairs);
      Vec<T> lower[kGroup], upper[kGroup];
#pragma GCC unroll 2
      for (int64_t j = 0; j < kPairs; j++) {
        const int64_t at = low + j;
        Value<T> a = get(z + kRow * row[at]), b = get(z + kRow * row[at ? half - at : 0]);
        if (at == 0) {
          a = {(b.re + b.im) * scale, Vec<T>(0)};
          b = {(b.re - b.im) * scale, Vec<T>(0)};
        } else {
          mix(a, b, {Vec<T>(roots[2 * at]), Vec<T>(roots[2 * at + 1])}, half_scale);
        }
        lower[2 * j] = a.re;
        lower[2 * j + 1] = a.im;
        upper[kGroup - 2 * j - 2] = b.re;
        upper[kGroup - 2 * j - 1] = b.im;
      }
      store_block(to, low, lower);
      store_block(to, high, upper);
    }
  }
  void mix_inputs() {
    const int64_t half = w_.n / 2;
    const Vec<T> a = load(row(0)), b = load(row(half));
    put(row(0), {a + b, a - b});
    for (int64_t k = 1; 2 * k <= half; k++)
      mix(row(k), row(half - k), {Vec<T>(w_.half_roots[2 * k]), Vec<T>(-w_.half_roots[2 * k + 1])},
          T(1));
  }
  // The other half of a spectrum of real numbers, of an odd length.
  void mirror() {
    store(row(0) + kLanes, Vec<T>(0));
    for (int64_t k = 1; 2 * k < w_.n; k++) {
      const Value<T> a = get(row(k));
      put(row(w_.n - k), {a.re, -a.im});
    }
  }

  const FftLanes<T>& w_;
  T* const z_;
};

}  // namespace
}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // TAEDA_KERNELS_CPU_FFT_LANES_INL_H_
