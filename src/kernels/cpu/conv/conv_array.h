// ConvArray: a view that owns its sizes and strides, cut and reshaped by the convolution kernels.
#pragma once

#include "kernels/cpu/conv/convolution.h"
#include "kernels/view.h"

namespace taeda::cpu {

struct ConvArray {
  char* data = nullptr;
  DType dtype = DType::kFloat32;
  DimVector sizes, strides;

  ConvArray() = default;
  explicit ConvArray(const View& v)
      : data(static_cast<char*>(v.data)), dtype(v.dtype), sizes(v.sizes), strides(v.strides) {}
  int64_t numel() const {
    int64_t n = 1;
    for (const int64_t s : sizes) n *= s;
    return n;
  }
  int64_t nbytes() const { return numel() * item_size(dtype); }
  View view() const { return {data, dtype, sizes, strides, numel(), true}; }
  ConvArray slice(int64_t dim, int64_t start, int64_t length) const {
    ConvArray out = *this;
    out.data += start * strides[dim] * item_size(dtype);
    out.sizes[dim] = length;
    return out;
  }
};

// One convolution with two or three spatial dimensions, made from any of one to three.
struct ConvProblem {
  ConvArray x, w, y;
  DimVector stride, padding, dilation;
  int64_t groups = 1;

  ConvProblem(const View& x, const View& w, const View& y, const ConvGeometry& g);
  size_t spatial() const { return stride.size(); }
  int64_t samples() const { return x.sizes[0]; }
  // Multiplications for one sample.
  double work_per_sample() const;
  // The padding after the last element that makes the sizes meet exactly.
  DimVector padding_after() const;
};

}  // namespace taeda::cpu
