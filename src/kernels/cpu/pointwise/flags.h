// Truth values in memory: bytes, of which any but 0 is true (Bool in taeda/dtype.h).
#pragma once

#include <cstdint>

#include "taeda/dtype.h"

namespace taeda::cpu {

int64_t count_true(const Bool* flags, int64_t n);
bool any_true(const Bool* flags, int64_t n);
bool all_true(const Bool* flags, int64_t n);

}  // namespace taeda::cpu
