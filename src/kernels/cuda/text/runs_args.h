// Runs of equal keys (runs.cuh), and what indices that name an element twice do (index.cuh).
#pragma once
#include <cstdint>

namespace taeda::device {

enum class Combine : uint8_t { kSet, kSum, kProd, kMin, kMax };

inline constexpr uint64_t kPiece = 256;  // keys that one thread combines, at most: a guess

// Sorted keys, each of a row of `columns` values.
struct Runs {
  const uint64_t* keys;  // those with the top bit set count for nothing
  const int64_t* order;  // the numbers of the rows, ascending within a run
  uint64_t count, columns;
  char* partials;  // results of pieces: two for each kPiece keys, by columns
  Combine combine;
};

}  // namespace taeda::device
