#include "io/safetensors_types.h"

#include "taeda/error.h"

namespace taeda::io {

std::string_view safetensors_name(DType dtype) {
  const std::string_view name = dtype_info(dtype).safetensors;
  TD_CHECK(!name.empty(), "safetensors: the format has no type for torch.{}", to_text(dtype));
  return name;
}

DType safetensors_dtype(std::string_view name) {
  for (int i = 0; i < kNumDTypes && !name.empty(); i++)
    if (kDTypes[i].safetensors == name) return static_cast<DType>(i);
  fail(ErrorKind::kRuntime, "safetensors: unknown dtype {}", name.substr(0, 40));
}

}  // namespace taeda::io
