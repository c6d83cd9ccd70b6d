// im2col and its adjoint, col2im: the windows of one image as a matrix (channels * kernel
// positions) x (window positions).
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/interrupt.h"

namespace taeda::cpu {

// One image (or volume; images have depth one) and the windows over it.
struct WindowMatrix {
  int64_t channels = 1;
  int64_t in[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};
  int64_t in_strides[3] = {0, 0, 0}, channel_stride = 0;  // of the image, in elements

  int64_t rows() const { return channels * kernel[0] * kernel[1] * kernel[2]; }
  int64_t positions() const { return out[0] * out[1] * out[2]; }

  // Calls line(row, column, inside, offset, first, n) for runs of n window positions along the
  // width: `offset` is that of the image's line (0 where the run is not inside), `first` the
  // position along it of the first window's element.
  template <class Line>
  void for_each_line(const Line& line) const {
    constexpr int64_t kSlice = 1 << 18;
    int64_t row = 0;
    Looks looks;
    for (int64_t c = 0; c < channels; c++)
      for (int64_t kd = 0; kd < kernel[0]; kd++)
        for (int64_t kh = 0; kh < kernel[1]; kh++)
          for (int64_t kw = 0; kw < kernel[2]; kw++, row++)
            for (int64_t od = 0; od < out[0]; od++)
              for (int64_t oh = 0; oh < out[1]; oh++) {
                const int64_t d = od * stride[0] + kd * dilation[0] - padding[0];
                const int64_t h = oh * stride[1] + kh * dilation[1] - padding[1];
                const bool inside = d >= 0 && d < in[0] && h >= 0 && h < in[1];
                const int64_t offset =
                    inside ? c * channel_stride + d * in_strides[0] + h * in_strides[1] : 0;
                for (int64_t k = 0; k < out[2]; k += kSlice) {
                  const int64_t n = std::min(kSlice, out[2] - k);
                  line(row, (od * out[1] + oh) * out[2] + k, inside, offset,
                       kw * dilation[2] - padding[2] + k * stride[2], n);
                  looks.after(n);
                }
              }
  }

  template <class T>
  void unfold(const T* image, T* matrix) const {
    const int64_t columns = positions();
    for_each_line(
        [&](int64_t row, int64_t column, bool inside, int64_t offset, int64_t first, int64_t n) {
          T* to = matrix + row * columns + column;
          for (int64_t ow = 0; ow < n; ow++) {
            const int64_t w = first + ow * stride[2];
            to[ow] = inside && w >= 0 && w < in[2] ? image[offset + w * in_strides[2]] : T(0);
          }
        });
  }

  // Adds the matrix's elements to where unfold() read them; Sum is the type of the image.
  template <class Sum, class T>
  void fold(const T* matrix, Sum* image) const {
    const int64_t columns = positions();
    for_each_line(
        [&](int64_t row, int64_t column, bool inside, int64_t offset, int64_t first, int64_t n) {
          if (!inside) return;
          const T* from = matrix + row * columns + column;
          for (int64_t ow = 0; ow < n; ow++) {
            const int64_t w = first + ow * stride[2];
            if (w < 0 || w >= in[2]) continue;
            Sum& target = image[offset + w * in_strides[2]];
            target = static_cast<Sum>(target + static_cast<Sum>(from[ow]));
          }
        });
  }
};

}  // namespace taeda::cpu
