// Elements of tensors without strides, of any dtype: get(array, i) and set(array, i, value).
#pragma once
#include "kernels/cuda/text/array_args.h"
#include "kernels/cuda/text/convert.cuh"

namespace taeda::device {

TD_FN int64_t item_size(ElementType type) {
  switch (type) {
    case ElementType::kBool:
    case ElementType::kUInt8:
    case ElementType::kInt8:
      return 1;
    case ElementType::kInt16:
    case ElementType::kFloat16:
    case ElementType::kBFloat16:
      return 2;
    case ElementType::kInt32:
    case ElementType::kFloat32:
      return 4;
    case ElementType::kComplex128:
      return 16;
    default:
      return 8;
  }
}
template <class T>
TD_FN T get(const Array& a, uint64_t i, T otherwise = T(0)) {
  if (!a.data) return otherwise;
  return load<T>(a.data + static_cast<int64_t>(i) * item_size(a.type), a.type);
}
template <class T>
TD_FN void set(const Array& a, uint64_t i, T value) {
  if (a.data) store(a.data + static_cast<int64_t>(i) * item_size(a.type), a.type, value);
}

}  // namespace taeda::device
