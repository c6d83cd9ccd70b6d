// The names of kernels, which end in the type that they compute in.
#pragma once

#include <string>
#include <string_view>

#include "kernels/cuda/text/element_type.h"
#include "taeda/dtype.h"

namespace taeda::cuda {

// add_f32, sum_f32_any
std::string kernel_name(std::string_view loop, DType type, std::string_view form = "");
// NotImplementedError for a type that kernels do not know.
device::ElementType element_type(DType type);

}  // namespace taeda::cuda
