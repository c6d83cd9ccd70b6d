// Padding: by a constant, or by elements of the tensor itself (reflect, replicate, circular). `pad`
// holds the counts before and after, the last dimension's first; negative counts crop.
#include <algorithm>
#include <complex>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/pointwise/loop.h"
#include "kernels/cpu/pool/pool.h"
#include "kernels/optional.h"
#include "kernels/view.h"

namespace taeda::cpu {

namespace {

// For every output position of one dimension the input position that it copies. What circular mode
// crops is gone before the rest is repeated.
std::vector<int64_t> source_positions(int64_t in, int64_t out, int64_t before, int64_t after,
                                      std::string_view mode) {
  std::vector<int64_t> from;
  from.reserve(static_cast<size_t>(out));
  const int64_t cropped = std::max<int64_t>(-before, 0),
                kept = in - cropped - std::max<int64_t>(-after, 0);
  Looks looks;
  for (int64_t o = 0; o < out; o++) {
    looks.after(1);
    int64_t i = o - before;
    if (mode == "reflect") {
      if (i < 0) i = -i;
      if (i >= in) i = 2 * (in - 1) - i;
    } else if (mode == "replicate") {
      i = std::clamp<int64_t>(i, 0, in - 1);
    } else {
      i = cropped + ((i - cropped) % kept + kept) % kept;
    }
    from.push_back(i);
  }
  return from;
}

// Up to three padded dimensions, the others joined.
struct Padding {
  int64_t planes = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  std::vector<int64_t> from[3];

  Padding(IntSpan in_sizes, IntSpan out_sizes, IntSpan pad, std::string_view mode) {
    const size_t n = in_sizes.size(), padded = pad.size() / 2;
    for (size_t i = 0; i < n - padded; i++) planes *= in_sizes[i];
    for (size_t i = 0; i < padded; i++)
      in[2 - i] = in_sizes[n - 1 - i], out[2 - i] = out_sizes[n - 1 - i];
    for (size_t d = 0; d < 3; d++) {
      const size_t i = 2 - d;
      from[d] = source_positions(in[d], out[d], i < padded ? pad[2 * i] : 0,
                                 i < padded ? pad[2 * i + 1] : 0, mode);
    }
  }
  int64_t in_size() const { return in[0] * in[1] * in[2]; }
  int64_t out_size() const { return out[0] * out[1] * out[2]; }
  int64_t grain() const {
    return std::max<int64_t>(1, (int64_t{1} << 15) / std::max<int64_t>(1, in_size() + out_size()));
  }

  // Calls f(output offset, input offset, positions, n) for every line along the last dimension, a
  // long one in slices: the element k < n of the output copies that at positions[k] of the input.
  template <class F>
  void for_each_line(const F& f) const {
    constexpr int64_t kSlice = 1 << 18;
    Looks looks;
    for (int64_t i = 0; i < out[0]; i++)
      for (int64_t j = 0; j < out[1]; j++) {
        const int64_t to = (i * out[1] + j) * out[2];
        const int64_t line =
            (from[0][static_cast<size_t>(i)] * in[1] + from[1][static_cast<size_t>(j)]) * in[2];
        for (int64_t k = 0; k < out[2]; k += kSlice) {
          const int64_t n = std::min(kSlice, out[2] - k);
          f(to + k, line, from[2].data() + k, n);
          looks.after(n);
        }
      }
  }
};

template <class T>
void copy_planes(const View& result, const View& self, const Padding& p) {
  parallel_for(0, p.planes, p.grain(), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; plane++) {
      const T* x = self.as<T>() + plane * p.in_size();
      T* y = result.as<T>() + plane * p.out_size();
      p.for_each_line([&](int64_t to, int64_t line, const int64_t* from, int64_t n) {
        for (int64_t k = 0; k < n; k++) y[to + k] = x[line + from[k]];
      });
    }
  });
}

template <class T>
void add_planes(const View& result, const View& grad_output, const Padding& p) {
  in_slices(result.numel, [&](int64_t begin, int64_t end) {
    std::fill(result.as<T>() + begin, result.as<T>() + end, T(0));
  });
  parallel_for(0, p.planes, p.grain(), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; plane++) {
      T* gx = result.as<T>() + plane * p.in_size();
      const T* gy = grad_output.as<T>() + plane * p.out_size();
      p.for_each_line([&](int64_t to, int64_t line, const int64_t* from, int64_t n) {
        for (int64_t k = 0; k < n; k++) {
          T& target = gx[line + from[k]];
          target = T(target + gy[to + k]);
        }
      });
    }
  });
}

}  // namespace

void constant_pad_nd(const View& result, const View& self, IntSpan pad, const Scalar& value) {
  if (result.numel == 0) return;
  fill(result, value);
  // The part of the result that shows the input, and the part of the input that is shown.
  View inner = result, shown = self;
  DimVector sizes(self.sizes);
  char *to = static_cast<char*>(result.data), *from = static_cast<char*>(self.data);
  const int64_t size = item_size(self.dtype);
  for (size_t i = 0; i < pad.size() / 2; i++) {
    const size_t d = sizes.size() - 1 - i;
    const int64_t before = pad[2 * i], after = pad[2 * i + 1];
    sizes[d] =
        std::max<int64_t>(0, sizes[d] + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0));
    to += std::max<int64_t>(before, 0) * result.strides[d] * size;
    from -= std::min<int64_t>(before, 0) * self.strides[d] * size;
  }
  inner.sizes = shown.sizes = sizes;
  inner.numel = 1;
  for (const int64_t s : sizes) inner.numel *= s;
  shown.numel = inner.numel;
  inner.data = to, shown.data = from;
  if (inner.numel > 0) copy(inner, shown);
}

void pad_by_index(const View& result, const View& self, IntSpan pad, std::string_view mode) {
  if (result.numel == 0) return;
  const Padding p(self.sizes, result.sizes, pad, mode);
  switch (item_size(self.dtype)) {
    case 1:
      return copy_planes<uint8_t>(result, self, p);
    case 2:
      return copy_planes<uint16_t>(result, self, p);
    case 4:
      return copy_planes<uint32_t>(result, self, p);
    case 8:
      return copy_planes<uint64_t>(result, self, p);
    default:
      return copy_planes<std::complex<double>>(result, self, p);
  }
}

void pad_by_index_backward(const View& result, const View& grad_output, IntSpan, IntSpan pad,
                           std::string_view mode) {
  if (result.numel == 0) return;
  const Padding p(result.sizes, grad_output.sizes, pad, mode);
  if (result.dtype == DType::kComplex64)
    return add_planes<std::complex<float>>(result, grad_output, p);
  if (result.dtype == DType::kComplex128)
    return add_planes<std::complex<double>>(result, grad_output, p);
  with_dtype<Floating>(result.dtype, [&]<class T>(T) { add_planes<T>(result, grad_output, p); });
}

}  // namespace taeda::cpu
