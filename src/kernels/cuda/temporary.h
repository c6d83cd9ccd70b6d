// Dense tensors of a device for as long as launches need them.
#pragma once

#include <algorithm>
#include <optional>

#include "kernels/copy.h"
#include "kernels/cuda/workspace.h"
#include "kernels/product.h"
#include "kernels/view.h"

namespace taeda::cuda {

// Row-major, of nothing yet.
struct DenseTensor {
  DenseTensor(Device device, DType type, IntSpan shape)
      : sizes(shape),
        strides(shape),
        memory(device, std::max<int64_t>(1, kernels::product(shape)) * item_size(type)) {
    int64_t stride = 1;
    for (size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) strides[d] = stride;
    view = {memory.data(), type, sizes, strides, kernels::product(shape), true, device};
  }
  DenseTensor(const DenseTensor&) = delete;
  DenseTensor& operator=(const DenseTensor&) = delete;

  DimVector sizes, strides;
  Workspace memory;
  View view;
};

inline bool is_row_major(const View& v) {
  int64_t stride = 1;
  for (size_t d = v.sizes.size(); d-- > 0; stride *= v.sizes[d])
    if (v.sizes[d] != 1 && v.strides[d] != stride) return false;
  return true;
}

// A View's elements in row-major order and other sizes: its own memory, or a copy of it.
class Reshaped {
 public:
  Reshaped(const View& v, IntSpan sizes) : sizes_(sizes), strides_(sizes) {
    if (!is_row_major(v)) kernels::copy(copy_.emplace(v.device, v.dtype, v.sizes).view, v);
    int64_t stride = 1;
    for (size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) strides_[d] = stride;
    view = {copy_ ? copy_->view.data : v.data, v.dtype, sizes_, strides_, v.numel, true, v.device};
  }
  Reshaped(const Reshaped&) = delete;
  Reshaped& operator=(const Reshaped&) = delete;

  View view;

 private:
  DimVector sizes_, strides_;
  std::optional<DenseTensor> copy_;
};

}  // namespace taeda::cuda
