// Passes over a panel's rows (kernels.h), and rows of memory whose neighbours are lanes.
#if defined(TAEDA_KERNELS_CPU_FFT_PASSES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TAEDA_KERNELS_CPU_FFT_PASSES_INL_H_
#undef TAEDA_KERNELS_CPU_FFT_PASSES_INL_H_
#else
#define TAEDA_KERNELS_CPU_FFT_PASSES_INL_H_
#endif

#include "kernels/cpu/fft/butterflies-inl.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

// size() complex numbers of memory, as real and imaginary parts in the order of fft_lane().
#if HWY_TARGET == HWY_SCALAR
template <class T>
TD_FN Value<T> load_pairs(const T* p) {
  return {load(p), load(p + 1)};
}
template <class T>
TD_FN void store_pairs(T* p, Value<T> a) {
  store(p, a.re);
  store(p + 1, a.im);
}
#else
template <class T>
TD_FN Value<T> load_pairs(const T* p) {
  const auto first = load(p).raw, second = load(p + Vec<T>::size()).raw;
  return {hn::OddEven(hn::DupEven(second), first), hn::OddEven(second, hn::DupOdd(first))};
}
template <class T>
TD_FN void store_pairs(T* p, Value<T> a) {
  store(p, Vec<T>(hn::OddEven(hn::DupEven(a.im.raw), a.re.raw)));
  store(p + Vec<T>::size(), Vec<T>(hn::OddEven(a.im.raw, hn::DupOdd(a.re.raw))));
}
#endif

// Real and imaginary parts for each other: the inverse transform is the transform of such numbers.
template <class T>
TD_FN Value<T> swap_if(Mask<T> swapped, Value<T> a) {
  return {select(swapped, a.im, a.re), select(swapped, a.re, a.im)};
}

// Rows of a panel.
template <class T>
struct PanelRows {
  static constexpr bool kResults = false;
  static constexpr int64_t kRow = 2 * Vec<T>::size();
  T *re, *im;
  PanelRows(T* panel, bool backward)
      : re(panel + (backward ? Vec<T>::size() : 0)), im(panel + (backward ? 0 : Vec<T>::size())) {}
  TD_FN int64_t stride() const { return kRow; }
  TD_FN Value<T> get(int64_t at) const { return {load(re + at), load(im + at)}; }
  TD_FN void put(int64_t at, Value<T> a) const {
    store(re + at, a.re);
    store(im + at, a.im);
  }
};

// Whether kPlain rows are compiled besides the others: not for processors without vectors.
constexpr bool kHasPlain = HWY_TARGET != HWY_SCALAR;

// Rows of complex numbers in memory, `row` numbers of T apart, and rows that results go to. kPlain:
// as they are, for the forward transform without a scale.
template <class T, bool kPlain>
struct SourceRows {
  const T* p;
  int64_t row;
  Mask<T> swapped;
  SourceRows(const T* p, int64_t row, bool backward)
      : p(p), row(row), swapped{Vec<T>(backward ? 1 : 0) > Vec<T>(0)} {}
  TD_FN int64_t stride() const { return row; }
  TD_FN Value<T> get(int64_t at) const {
    const Value<T> a = load_pairs(p + at);
    return kPlain ? a : swap_if(swapped, a);
  }
};
template <class T, bool kPlain>
struct ResultRows {
  static constexpr bool kResults = true;
  T* p;
  int64_t row;
  Mask<T> swapped;
  Vec<T> scale;
  ResultRows(T* p, int64_t row, bool backward, T scale)
      : p(p), row(row), swapped{Vec<T>(backward ? 1 : 0) > Vec<T>(0)}, scale(scale) {}
  TD_FN int64_t stride() const { return row; }
  TD_FN void put(int64_t at, Value<T> a) const {
    store_pairs(p + at, kPlain ? a : swap_if(swapped, a).times(scale));
  }
};

template <class T, int kRadix>
TD_FN void butterfly(Value<T>* a, [[maybe_unused]] int radix, [[maybe_unused]] const T* roots) {
  if constexpr (kRadix == 2) butterfly2(a);
  if constexpr (kRadix == 3) butterfly3(a);
  if constexpr (kRadix == 4) butterfly4(a);
  if constexpr (kRadix == 5) butterfly5(a);
  if constexpr (kRadix == 7) butterfly_odd<T, 7>(a, 7, roots);
  if constexpr (kRadix == 8) butterfly8(a);
  if constexpr (kRadix == 0) butterfly_odd<T, kLargestRadix>(a, radix, roots);
}

// A pass's numbers in registers: what is stored to a panel might, for the compiler, be theirs.
template <class T, int kRadix, class From, class To>
struct PassRun {
  const int r;
  const int64_t m, blocks;
  const T *const twiddles, *const roots;
  const int32_t* const first;
  const From from;
  const To to;

  // Rows p + m k of all blocks, multiplied by twiddle factors unless p is 0.
  template <bool kTwiddles>
  TD_FN void rows(int64_t p) const {
    const int64_t stride = from.stride(), to_stride = to.stride();
    const int64_t step = m * stride, to_step = (To::kResults ? blocks : m) * to_stride;
    for (int64_t block = 0; block < blocks; block++) {
      const int64_t row = block * m * r + p, at = row * stride;
      Value<T> a[kRadix ? kRadix : kLargestRadix];
#pragma GCC unroll 8
      for (int k = 0; k < r; k++) a[k] = from.get(at + k * step);
      butterfly<T, kRadix>(a, r, roots);
      if constexpr (kTwiddles) {
        const T* w = twiddles + 2 * p * (r - 1);
#pragma GCC unroll 8
        for (int j = 1; j < r; j++)
          a[j] = a[j] * Value<T>{Vec<T>(w[2 * j - 2]), Vec<T>(w[2 * j - 1])};
      }
      const int64_t to_at = (To::kResults ? first[block] : row) * to_stride;
#pragma GCC unroll 8
      for (int j = 0; j < r; j++) to.put(to_at + j * to_step, a[j]);
    }
  }
};

template <class T, int kRadix, class From, class To>
HWY_NOINLINE void pass_of(const FftPass<T>& pass, const int32_t* first, const From& from,
                          const To& to) {
  const PassRun<T, kRadix, From, To> run{kRadix ? kRadix : pass.radix,
                                         pass.m,
                                         pass.blocks,
                                         pass.twiddles.data(),
                                         pass.roots.data(),
                                         first,
                                         from,
                                         to};
  run.template rows<false>(0);
  if constexpr (!To::kResults)  // else it is the last pass: m = 1
    for (int64_t p = 1; p < run.m; p++) run.template rows<true>(p);
}

template <class T, class From, class To>
void run_pass(const FftPass<T>& pass, const int32_t* first, const From& from, const To& to) {
  switch (pass.radix) {
    case 2:
      return pass_of<T, 2>(pass, first, from, to);
    case 3:
      return pass_of<T, 3>(pass, first, from, to);
    case 4:
      return pass_of<T, 4>(pass, first, from, to);
    case 5:
      return pass_of<T, 5>(pass, first, from, to);
    case 7:
      return pass_of<T, 7>(pass, first, from, to);
    case 8:
      return pass_of<T, 8>(pass, first, from, to);
    default:
      return pass_of<T, 0>(pass, first, from, to);
  }
}

// All passes in a panel; the first reads `from`, the last writes `to`, each of which may be the
// panel. Not for n = 1.
template <class T, class From, class To>
void run_passes(const FftColumns<T>& columns, const From& from, const PanelRows<T>& panel,
                const To& to) {
  const int32_t* first = columns.first.data();
  const size_t last = columns.passes.size() - 1;
  if (last == 0) return run_pass(columns.passes[0], first, from, to);
  run_pass(columns.passes[0], first, from, panel);
  for (size_t i = 1; i < last; i++) run_pass(columns.passes[i], first, panel, panel);
  run_pass(columns.passes[last], first, panel, to);
}

}  // namespace
}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // TAEDA_KERNELS_CPU_FFT_PASSES_INL_H_
