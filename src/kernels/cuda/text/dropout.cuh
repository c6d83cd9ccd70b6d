// Dropout: out = x mask / keep, mask = 1 with probability keep; and its gradient, gx = gy mask
// scale. A byte of mask and two elements an element are moved once.
//
// As in PyTorch's kernel, a thread has elements beside each other where addresses and the number of
// elements allow it, and the words of a draw go to them in order; of pairs the other two are lost.
#pragma once
#include "kernels/cuda/text/pack.cuh"
#include "kernels/cuda/text/philox.cuh"

namespace taeda::device {

// S is in memory, T computes.
template <class S, class T>
TD_FN void dropout_kernel(const DropoutArgs& a) {
  const uint64_t thread = first_index();
  if (thread >= a.threads) return;
  const T keep = static_cast<T>(a.keep), scale = static_cast<T>(1 / static_cast<double>(keep));
  const S* const x = reinterpret_cast<const S*>(a.in);
  S* const y = reinterpret_cast<S*>(a.out);
  uint8_t* const mask = reinterpret_cast<uint8_t*>(a.mask);
  const auto [key, counter] = start(a.philox);
  const uint32_t parts = a.width == 8 ? 2 : 1, used = a.width == 2 ? 2 : 4;
  const uint64_t apart = a.width == 1 ? a.threads : 1;
  const uint64_t step = a.threads * (a.width == 1 ? 4 : a.width);
  for (uint64_t draw = 0;; draw++) {
    const uint64_t i = thread * a.width + draw / parts * step + draw % parts * 4;
    if (i >= a.n) return;
    const Uniforms<float> u(philox(counter + draw, thread, key));
    const auto kept = [&](S value, int k) {
      return convert<S>(convert<T>(value) * T(u.at[k] < keep) * scale);
    };
    if (a.width >= 4) {
      const Pack<S, 4> from = *reinterpret_cast<const Pack<S, 4>*>(x + i);
      Pack<S, 4> to;
      Pack<uint8_t, 4> bits;
#pragma unroll
      for (int k = 0; k < 4; k++) to.at[k] = kept(from.at[k], k), bits.at[k] = u.at[k] < keep;
      *reinterpret_cast<Pack<S, 4>*>(y + i) = to;
      *reinterpret_cast<Pack<uint8_t, 4>*>(mask + i) = bits;
      continue;
    }
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
      const uint64_t at = i + k * apart;
      if (k >= used || at >= a.n) break;
      y[at] = kept(x[at], static_cast<int>(k));
      mask[at] = u.at[k] < keep;
    }
  }
}

template <class S, class T>
TD_FN void dropout_backward_kernel(const DropoutArgs& a) {
  const T scale = static_cast<T>(a.scale);
  const S* const gy = reinterpret_cast<const S*>(a.in);
  S* const gx = reinterpret_cast<S*>(a.out);
  const uint8_t* const mask = reinterpret_cast<const uint8_t*>(a.mask);
  for (uint64_t i = first_index() * 4; i < a.n; i += index_step() * 4) {
    const auto left = static_cast<uint32_t>(a.n - i < 4 ? a.n - i : 4);
    const bool whole = a.width == 4 && left == 4;
    const Pack<S, 4> g = load_pack<S, 4>(gy + i, 0, left, whole);
    const Pack<uint8_t, 4> m = load_pack<uint8_t, 4>(mask + i, 0, left, whole);
    Pack<S, 4> to;
#pragma unroll
    for (int k = 0; k < 4; k++)
      to.at[k] = convert<S>(convert<T>(g.at[k]) * T(m.at[k] != 0) * scale);
    store_pack(gx + i, 0, left, whole, to);
  }
}

}  // namespace taeda::device
