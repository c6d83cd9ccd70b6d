// Which of its implementations oneDNN chose: the tests look for slow ones.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace taeda::cpu {

// The number of primitives compiled so far, by what they compute and the implementation's name
// ("matmul brg:avx512_core_bf16"). Thread-safe.
std::map<std::string, int64_t> onednn_implementations();

}  // namespace taeda::cpu
