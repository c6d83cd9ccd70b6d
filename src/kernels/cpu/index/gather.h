// Moving elements between strided memory and dense buffers, by item size alone.
#pragma once

#include <cstdint>

namespace taeda::cpu {

// Buffers of this size are used to stage operands: several fit the L1 cache.
inline constexpr int64_t kBlockBytes = 8192;
// Operands read across memory order are staged in tiles of this length, as many rows as a cache
// line has elements.
inline constexpr int64_t kTileLength = kBlockBytes / 64;

// n elements of `itemsize` bytes, `stride` bytes apart, one after the other into dst.
void gather_items(void* dst, const char* src, int64_t itemsize, int64_t stride, int64_t n);
void scatter_items(char* dst, const void* src, int64_t itemsize, int64_t stride, int64_t n);

// A transposed tile: element i of row r is at src + i * stride + r * itemsize, and goes to place r
// * n + i. Each cache line of the source is read once.
void gather_tile(void* dst, const char* src, int64_t itemsize, int64_t stride, int64_t n,
                 int64_t rows);

// out[i] = a + i * d, wrapping around.
void count_up(int64_t* out, int64_t n, int64_t a, int64_t d);

// One element of each item size that dtypes have: calls body(T()) with an unsigned type or a pair.
struct ItemPair {
  uint64_t a, b;
};
template <class Body>
void with_item_type(int64_t itemsize, const Body& body) {
  switch (itemsize) {
    case 1:
      return body(uint8_t());
    case 2:
      return body(uint16_t());
    case 4:
      return body(uint32_t());
    case 8:
      return body(uint64_t());
    default:
      return body(ItemPair());
  }
}

}  // namespace taeda::cpu
