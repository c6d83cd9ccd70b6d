// Elements of several arrays in turn, or of one several times, by item size alone.
#pragma once

#include <cstdint>

namespace taeda::cpu {

// out[i * count + k] = in[k][i] for i < n, in parallel and past the cache where that pays.
void interleave(void* out, const void* const* in, int64_t count, int64_t itemsize, int64_t n);

// out[i * times + k] = in[i] for i < n and k < times; past the cache if `streamed`, which the
// caller follows by a StreamFence.
void repeat_items(void* out, const void* in, int64_t times, int64_t itemsize, int64_t n,
                  bool streamed);

}  // namespace taeda::cpu
