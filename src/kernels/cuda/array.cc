#include "kernels/cuda/array.h"

#include <algorithm>

#include "kernels/copy.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/product.h"

namespace taeda::cuda {

Dense::Dense(const View& v) : view_(v) {
  const bool dense = set_strides();
  if (!v.present || dense || v.numel == 0) return;
  memory_.emplace(v.device, v.numel * item_size(v.dtype));
  view_.data = memory_->data();
  view_.strides = strides_;
  kernels::copy(view_, v);
}

Dense::Dense(Device device, DType type, IntSpan sizes) : sizes_(sizes) {
  const int64_t numel = kernels::product(sizes);
  memory_.emplace(device, std::max<int64_t>(1, numel) * item_size(type));
  view_ = {memory_->data(), type, sizes_, sizes_, numel, true, device};
  set_strides();
  view_.strides = strides_;
}

bool Dense::set_strides() {
  int64_t stride = 1;
  bool dense = true;
  strides_ = DimVector(view_.sizes);
  for (size_t d = strides_.size(); d-- > 0; stride *= view_.sizes[d]) {
    strides_[d] = stride;
    dense &= view_.sizes[d] == 1 || view_.strides[d] == stride;
  }
  return dense;
}

Reversed::Reversed(const View& v, IntSpan dims) : view_(v), strides_(v.strides) {
  if (v.ndim() == 0 || v.numel == 0) return;
  for (const int64_t dim : dims) {
    const auto d = static_cast<size_t>(dim);
    const int64_t last = (v.sizes[d] - 1) * strides_[d];
    view_.data = static_cast<char*>(view_.data) + last * item_size(v.dtype);
    strides_[d] = -strides_[d];
  }
  view_.strides = strides_;
}

device::Array array(const View& v) {
  if (!v.present) return {};
  return {static_cast<char*>(v.data), element_type(v.dtype)};
}

Accesses accesses(Span<const View> written, Span<const View> read) {
  Accesses all;
  for (const View& v : written)
    if (v.present) all.push_back(access(v, true));
  for (const View& v : read)
    if (v.present) all.push_back(access(v, false));
  return all;
}

}  // namespace taeda::cuda
