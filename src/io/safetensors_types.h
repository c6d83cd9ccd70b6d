// What writer and reader of safetensors files agree on.
#pragma once

#include <cstddef>
#include <string_view>

#include "taeda/dtype.h"

namespace taeda::io {

// As in the reference implementation.
inline constexpr size_t kMaxHeaderBytes = 100'000'000;

// "F32". C128 is taeda's own: the format has no name for it.
std::string_view safetensors_name(DType dtype);
// RuntimeError for an unknown name.
DType safetensors_dtype(std::string_view name);

}  // namespace taeda::io
