// A number as an element of a dtype in the host's memory, which launchers pass by value.
#pragma once

#include "kernels/cpu/pointwise/loop.h"
#include "taeda/scalar.h"

namespace taeda::cuda {

struct Number {
  Number(DType type, const Scalar& value) : view{bytes, type, {}, {}, 1, true, DeviceType::kCPU} {
    cpu::fill(view, value);
  }
  Number(const Number&) = delete;
  Number& operator=(const Number&) = delete;

  alignas(16) char bytes[16];
  View view;  // without dimensions
};

}  // namespace taeda::cuda
