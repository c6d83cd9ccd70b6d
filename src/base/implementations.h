// Which of its implementations a library chose, as far as that matters: the tests look for slow
// ones. Thread-safe; takes a lock, so not for every call.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace taeda {

// One more of this name ("matmul brg:avx512_core_bf16").
void count_implementation(const std::string& name);
std::map<std::string, int64_t> implementation_counts();

}  // namespace taeda
