// Row kernels of resizing, compiled for every instruction set.
#pragma once

#include <cstdint>
#include <vector>

namespace taeda::cpu {

// Weighted sums along a row, arranged for vectors: the results of a block of `lanes` positions have
// the same number of summands, of which each is a chunk.
struct RowSums {
  enum class Kind : uint8_t { kOneVector, kTwoVectors, kFarApart, kNothing };
  struct Chunk {
    int64_t base;  // the first element that is read; lanes of `index` count from here
    Kind kind;
    bool has_gaps;  // some lanes have no such summand: their weight is NaN
  };
  int64_t in = 0, out = 0, count = 0, lanes = 0;
  std::vector<Chunk> chunks;   // [block][count]
  std::vector<int32_t> index;  // [block][count][lanes]
  std::vector<float> weight;   // [block][count][lanes]
};

// Summands of result o are first[o] to first[o + 1] of `from` and `weight`.
RowSums arrange_sums(int64_t in, int64_t out, const std::vector<int64_t>& first,
                     const std::vector<int64_t>& from, const std::vector<float>& weight);

// y[o] = the sums of row x
void sum_along_row(const RowSums& sums, const float* x, float* y);
// y[i] = sum over k < count of weight[k] * rows[k][i], i < n
void sum_of_rows(const float* const* rows, const float* weight, int64_t count, float* y, int64_t n);

}  // namespace taeda::cpu
