// Stable sorting along one dimension by merging: pass by pass, runs of `width` elements become runs
// of twice as many. An element's place is its place in its own run and the number of those in front
// of it in the other one, which a binary search finds; equal ones of the left run come first.
//
// Elements are compared by keys of 64 bits in the order of the values, NaN being the largest.
#pragma once
#include "kernels/cuda/text/convert.cuh"
#include "kernels/cuda/text/sort_args.h"
#include "kernels/cuda/text/walk.cuh"

namespace taeda::device {

inline constexpr uint64_t kSignBit = uint64_t{1} << 63;
TD_FN uint64_t key_of(int64_t x) { return static_cast<uint64_t>(x) ^ kSignBit; }
TD_FN uint64_t key_of(double x) {
  if (x != x) return ~uint64_t{0};
  const uint64_t bits = std::bit_cast<uint64_t>(x == 0 ? 0.0 : x);
  return bits & kSignBit ? ~bits : bits | kSignBit;
}

template <class T>
TD_FN void sort_load_kernel(const SortArgs& a) {
  for (uint64_t i = first_index(); i < a.rows.count * a.n; i += index_step()) {
    const uint64_t row = i / a.n, at = i % a.n;
    const char* const x =
        a.data[0] + offsets(a.rows, row)[0] + static_cast<int64_t>(at) * a.strides[0];
    const uint64_t key = key_of(load<T>(x, a.type));
    a.keys[0][i] = a.descending ? ~key : key;
    a.order[0][i] = static_cast<int64_t>(at);
  }
}

// How many of the sorted keys [begin, end) are less than `key`, or not larger.
TD_FN uint64_t count_before(const uint64_t* keys, uint64_t begin, uint64_t end, uint64_t key,
                            bool or_equal) {
  const uint64_t first = begin;
  while (begin < end) {
    const uint64_t middle = begin + (end - begin) / 2;
    if (keys[middle] < key || (or_equal && keys[middle] == key))
      begin = middle + 1;
    else
      end = middle;
  }
  return begin - first;
}

TD_FN void sort_merge_kernel(const SortArgs& a) {
  for (uint64_t i = first_index(); i < a.rows.count * a.n; i += index_step()) {
    const uint64_t at = i % a.n, row = i - at, run = at / a.width * a.width;
    const bool right = at / a.width % 2;
    const uint64_t start = right ? run - a.width : run;
    uint64_t other = right ? start : run + a.width, end = other + a.width;
    if (other > a.n) other = a.n;
    if (end > a.n) end = a.n;
    const uint64_t key = a.keys[0][i];
    const uint64_t before = count_before(a.keys[0], row + other, row + end, key, right);
    const uint64_t to = row + start + (at - run) + before;
    a.keys[1][to] = key;
    a.order[1][to] = a.order[0][i];
  }
}

template <class S>
TD_FN void sort_store_kernel(const SortArgs& a) {
  for (uint64_t i = first_index(); i < a.rows.count * a.kept; i += index_step()) {
    const uint64_t row = i / a.kept, at = i % a.kept;
    const int64_t k = a.order[0][row * a.n + at];
    const Offsets<3> by = offsets(a.rows, row);
    const auto place = static_cast<int64_t>(at);
    *reinterpret_cast<S*>(a.data[1] + by[1] + place * a.strides[1]) =
        *reinterpret_cast<const S*>(a.data[0] + by[0] + k * a.strides[0]);
    *reinterpret_cast<int64_t*>(a.data[2] + by[2] + place * a.strides[2]) = k;
  }
}

}  // namespace taeda::device
