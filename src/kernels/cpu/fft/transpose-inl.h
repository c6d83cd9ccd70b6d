// Blocks of 128 bits as matrices: how lines become lanes, and lanes lines.
#if defined(TAEDA_KERNELS_CPU_FFT_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TAEDA_KERNELS_CPU_FFT_TRANSPOSE_INL_H_
#undef TAEDA_KERNELS_CPU_FFT_TRANSPOSE_INL_H_
#else
#define TAEDA_KERNELS_CPU_FFT_TRANSPOSE_INL_H_
#endif

#include "kernels/cpu/fft/passes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

template <class T>
inline constexpr int64_t kBlock = HWY_TARGET == HWY_SCALAR ? 1 : 16 / sizeof(T);  // elements

#if HWY_TARGET == HWY_SCALAR
template <class T>
TD_FN void transpose_blocks(Vec<T>*) {}
template <int64_t kFirst, class D, class Raw, class Store>
TD_FN void for_blocks(D d, Raw raw, const Store& store) {
  store(kFirst, d, raw);
}
#else
// Element i of each block of v[j] and element j of that of v[i] change places.
TD_FN void transpose_blocks(Vec<double>* v) {
  const Vec<double> first = hn::InterleaveLower(v[0].raw, v[1].raw);
  v[1] = hn::InterleaveUpper(Vec<double>::Tag(), v[0].raw, v[1].raw);
  v[0] = first;
}
TD_FN void transpose_blocks(Vec<float>* v) {
  const Vec<float>::Tag d;
  const hn::RepartitionToWide<decltype(d)> wide;
  const auto a = hn::BitCast(wide, hn::InterleaveLower(d, v[0].raw, v[1].raw)),
             b = hn::BitCast(wide, hn::InterleaveUpper(d, v[0].raw, v[1].raw)),
             c = hn::BitCast(wide, hn::InterleaveLower(d, v[2].raw, v[3].raw)),
             e = hn::BitCast(wide, hn::InterleaveUpper(d, v[2].raw, v[3].raw));
  v[0] = hn::BitCast(d, hn::InterleaveLower(wide, a, c));
  v[1] = hn::BitCast(d, hn::InterleaveUpper(wide, a, c));
  v[2] = hn::BitCast(d, hn::InterleaveLower(wide, b, e));
  v[3] = hn::BitCast(d, hn::InterleaveUpper(wide, b, e));
}

// store(i, block i) for each block of a vector.
template <int64_t kFirst, class D, class Raw, class Store>
TD_FN void for_blocks(D d, Raw raw, const Store& store) {
  constexpr int64_t kBlocks = static_cast<int64_t>(hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) / 16);
  if constexpr (kBlocks == 1) {
    store(kFirst, d, raw);
  } else {
    const hn::Half<D> half;
    for_blocks<kFirst>(half, hn::LowerHalf(half, raw), store);
    for_blocks<kFirst + kBlocks / 2>(half, hn::UpperHalf(half, raw), store);
  }
}
// The vector whose block i is load(i).
template <int64_t kFirst, class D, class Load>
TD_FN hn::Vec<D> of_blocks(D d, const Load& load) {
  constexpr int64_t kBlocks = static_cast<int64_t>(hn::MaxLanes(D()) * sizeof(hn::TFromD<D>) / 16);
  if constexpr (kBlocks == 1) {
    return load(kFirst, d);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, of_blocks<kFirst + kBlocks / 2>(half, load),
                       of_blocks<kFirst>(half, load));
  }
}
#endif

// kBlock rows of W = Vec<T>::size() real or imaginary parts in the order of fft_lane() become W
// rows of kBlock: the one of element l goes to p + stride l.
template <class T>
TD_FN void store_columns(Vec<T>* rows, T* p, int64_t stride) {
  constexpr int64_t kLanes = Vec<T>::size();
  transpose_blocks(rows);
#pragma GCC unroll 4
  for (int64_t j = 0; j < kBlock<T>; j++)
    for_blocks<0>(typename Vec<T>::Tag(), rows[j].raw,
                  [&](int64_t block, auto d, auto raw) HWY_ATTR {
                    hn::StoreU(raw, d, p + fft_lane(block * kBlock<T> + j, kLanes) * stride);
                  });
}

}  // namespace
}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // TAEDA_KERNELS_CPU_FFT_TRANSPOSE_INL_H_
