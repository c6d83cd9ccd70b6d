// Tensors from values written in the program. load() reads them from a file (serialize.h), and
// Storage::wrap makes a storage of memory that is there already (storage.h).
#pragma once

#include <initializer_list>
#include <vector>

#include "taeda/tensor.h"

namespace taeda {

namespace detail {
Tensor tensor_from(const double* values, size_t count, IntSpan sizes);  // of the default dtype
Tensor tensor_from(const float* values, size_t count, IntSpan sizes);
Tensor tensor_from(const int64_t* values, size_t count, IntSpan sizes);
Tensor tensor_from(const bool* values, size_t count, IntSpan sizes);
}  // namespace detail

// A tensor with these values, as torch.tensor makes it: decimals give the default dtype, integers
// int64. One dimension unless `sizes` are given; RuntimeError where they do not multiply to the
// number of values. The values are copied, row by row, to a tensor on the CPU that requires no
// grad. All have one type: {1, 2.5} does not compile, and floats (2.5f) give float32 whatever the
// default is. An empty tensor is zeros({0}).
//
//   assert(tensor({1.5, 2.5}).dtype() == DType::kFloat32);
//   assert(tensor({1, 2, 3, 4}, {2, 2})[1][0].item<int64_t>() == 3);
//   assert(tensor({true, false}).dtype() == DType::kBool && tensor({2.5}, {}).dim() == 0);
template <class T>
Tensor tensor(std::initializer_list<T> values, IntSpan sizes) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    const std::vector<int64_t> wide(values.begin(), values.end());
    return detail::tensor_from(wide.data(), wide.size(), sizes);
  } else {
    return detail::tensor_from(values.begin(), values.size(), sizes);
  }
}
template <class T>
Tensor tensor(std::initializer_list<T> values) {
  return tensor(values, {static_cast<int64_t>(values.size())});
}

}  // namespace taeda
