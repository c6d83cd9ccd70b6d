// View: what a kernel sees of a tensor: memory, element type, sizes and strides. It owns nothing.
//
// Kernels live below tensors: they take Views that the caller has checked against the operator's
// contract, allocate nothing that outlives the call, and never look at autograd. `data` is an
// address of `device`; the kernels in kernels/cpu get Views of the CPU's memory only.
#pragma once

#include <type_traits>

#include "taeda/device.h"
#include "taeda/dtype.h"
#include "taeda/small_vector.h"

namespace taeda {

struct View {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  IntSpan sizes;
  IntSpan strides;  // in elements
  int64_t numel = 0;
  bool present = false;  // false: an optional argument that was not given
  Device device = DeviceType::kCPU;

  int64_t ndim() const { return static_cast<int64_t>(sizes.size()); }
  template <class T>
  T* as() const {
    static_assert(!std::is_same_v<std::remove_const_t<T>, bool>, "a bool's byte is read as Bool");
    return static_cast<T*>(data);
  }
};

}  // namespace taeda
