#include "io/safetensors_types.h"

#include <algorithm>
#include <array>

#include "taeda/error.h"

namespace taeda::io {
namespace {

struct TypeName {
  DType dtype;
  std::string_view name;
};
constexpr std::array<TypeName, kNumDTypes> kTypeNames = {{{DType::kBool, "BOOL"},
                                                          {DType::kUInt8, "U8"},
                                                          {DType::kInt8, "I8"},
                                                          {DType::kInt16, "I16"},
                                                          {DType::kInt32, "I32"},
                                                          {DType::kInt64, "I64"},
                                                          {DType::kFloat16, "F16"},
                                                          {DType::kBFloat16, "BF16"},
                                                          {DType::kFloat32, "F32"},
                                                          {DType::kFloat64, "F64"},
                                                          {DType::kComplex64, "C64"},
                                                          {DType::kComplex128, "C128"}}};

}  // namespace

std::string_view safetensors_name(DType dtype) {
  return std::find_if(kTypeNames.begin(), kTypeNames.end(),
                      [&](const TypeName& type) { return type.dtype == dtype; })
      ->name;
}

DType safetensors_dtype(std::string_view name) {
  for (const TypeName& type : kTypeNames)
    if (type.name == name) return type.dtype;
  fail(ErrorKind::kRuntime, "safetensors: unknown dtype {}", name.substr(0, 40));
}

}  // namespace taeda::io
