// im2col and col2im: the windows of images as columns, and the sum of overlapping windows.
#include <algorithm>

#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/conv/window_matrix.h"
#include "kernels/cpu/pool/pool.h"
#include "kernels/cpu/simd/scratch.h"
#include "kernels/view.h"

namespace taeda::cpu {

namespace {

WindowMatrix windows_of(int64_t channels, IntSpan image, IntSpan kernel, IntSpan dilation,
                        IntSpan padding, IntSpan stride) {
  const auto item = [](IntSpan values, size_t i) {
    return values.size() == 1 ? values[0] : values[i];
  };
  WindowMatrix m;
  m.channels = channels;
  for (size_t i = 0; i < 2; i++) {
    m.in[i + 1] = image[i];
    m.kernel[i + 1] = item(kernel, i), m.dilation[i + 1] = item(dilation, i);
    m.padding[i + 1] = item(padding, i), m.stride[i + 1] = item(stride, i);
    const int64_t span = m.dilation[i + 1] * (m.kernel[i + 1] - 1) + 1;
    m.out[i + 1] = (m.in[i + 1] + 2 * m.padding[i + 1] - span) / m.stride[i + 1] + 1;
  }
  m.in_strides[1] = m.in[2];
  m.in_strides[2] = 1;
  m.channel_stride = m.in[1] * m.in[2];
  return m;
}

using Elements = Join<Types<Bool>, Join<Floating, ComplexTypes>>;

}  // namespace

void im2col(const View& result, const View& self, IntSpan kernel_size, IntSpan dilation,
            IntSpan padding, IntSpan stride) {
  const size_t n = self.sizes.size();
  const WindowMatrix m =
      windows_of(1, self.sizes.slice(n - 2, 2), kernel_size, dilation, padding, stride);
  const int64_t size = m.rows() * m.positions(),
                planes = self.numel / std::max<int64_t>(1, m.channel_stride);
  with_dtype<Elements>(self.dtype, [&]<class T>(T) {
    parallel_for(0, planes, std::max<int64_t>(1, (int64_t{1} << 14) / std::max<int64_t>(1, size)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t p = begin; p < end; p++)
                     m.unfold(self.as<T>() + p * m.channel_stride, result.as<T>() + p * size);
                 });
  });
}

void col2im(const View& result, const View& self, IntSpan output_size, IntSpan kernel_size,
            IntSpan dilation, IntSpan padding, IntSpan stride) {
  const size_t n = result.sizes.size();
  const WindowMatrix m =
      windows_of(1, result.sizes.slice(n - 2, 2), kernel_size, dilation, padding, stride);
  (void)output_size;
  const int64_t size = m.rows() * m.positions(),
                planes = result.numel / std::max<int64_t>(1, m.channel_stride);
  with_dtype<Elements>(self.dtype, [&]<class T>(T) {
    parallel_for(0, planes, std::max<int64_t>(1, (int64_t{1} << 14) / std::max<int64_t>(1, size)),
                 [&](int64_t begin, int64_t end) {
                   const Scratch<Sum<T>> image(m.channel_stride);
                   for (int64_t p = begin; p < end; p++) {
                     in_slices(m.channel_stride, [&](int64_t i, int64_t last) {
                       std::fill(image.data() + i, image.data() + last, Sum<T>(0));
                     });
                     m.fold(self.as<T>() + p * size, image.data());
                     in_slices(m.channel_stride, [&](int64_t i, int64_t last) {
                       for (; i < last; i++) result.as<T>()[p * m.channel_stride + i] = T(image[i]);
                     });
                   }
                 });
  });
}

}  // namespace taeda::cpu
