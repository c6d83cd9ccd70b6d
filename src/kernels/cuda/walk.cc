#include "kernels/cuda/walk.h"

#include <algorithm>

#include "taeda/error.h"

namespace taeda::cuda {

template <int N>
void WalkPlan<N>::add(int64_t size, const int64_t (&strides)[N]) {
  count_ *= static_cast<uint64_t>(size);
  if (size == 1) return;
  TD_CHECK(ndim_ < kMaxDims, "a CUDA kernel takes tensors of at most {} dimensions", kMaxDims);
  Dim& dim = dims_[ndim_++];
  dim.size = size;
  std::copy_n(strides, N, dim.strides);
}

template <int N>
void WalkPlan<N>::sort_by(int k) {
  for (int d = 1; d < ndim_; d++) {  // of few dimensions, by insertion
    const Dim dim = dims_[d];
    int at = d;
    for (; at > 0 && std::abs(dims_[at - 1].strides[k]) < std::abs(dim.strides[k]); at--)
      dims_[at] = dims_[at - 1];
    dims_[at] = dim;
  }
}

template <int N>
void WalkPlan<N>::merge() {
  int last = 0;
  for (int d = 1; d < ndim_; d++) {
    bool fits = dims_[last].size * dims_[d].size < INT32_MAX;
    for (int k = 0; k < N; k++)
      fits &= dims_[last].strides[k] == dims_[d].strides[k] * dims_[d].size;
    const int64_t outer = dims_[last].size;
    if (!fits) last++;
    const bool merged = fits;
    dims_[last] = dims_[d];
    if (merged) dims_[last].size *= outer;
  }
  ndim_ = std::min(ndim_, last + 1);
}

template <int N>
device::Walk<N> WalkPlan<N>::walk() {
  if (count_ == 0) ndim_ = 0;
  merge();
  TD_CHECK(ndim_ <= device::kWalkDims,
           "a CUDA kernel takes tensors of at most {} dimensions that do not merge, got {}",
           device::kWalkDims, ndim_);
  device::Walk<N> walk{};
  walk.count = count_;
  walk.wide = count_ > INT32_MAX;
  walk.ndim = static_cast<uint8_t>(ndim_);
  for (int d = 0; d < ndim_; d++) {
    const Dim& dim = dims_[ndim_ - 1 - d];
    const bool divides = d + 1 < ndim_;  // by the outermost size nothing is divided
    TD_CHECK(!divides || dim.size <= UINT32_MAX,
             "a CUDA kernel takes inner dimensions of at most {} elements, got {}", UINT32_MAX,
             dim.size);
    walk.sizes[d] = device::divisor(divides ? static_cast<uint32_t>(dim.size) : 1);
    std::copy_n(dim.strides, N, walk.strides[d]);
  }
  return walk;
}

template class WalkPlan<1>;
template class WalkPlan<2>;
template class WalkPlan<3>;
template class WalkPlan<4>;
template class WalkPlan<5>;
template class WalkPlan<6>;

}  // namespace taeda::cuda
