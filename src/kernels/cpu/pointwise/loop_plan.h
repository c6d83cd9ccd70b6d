// The geometry of a loop over several strided operands: dimensions merged, ordered and cut into
// runs.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/parallel.h"
#include "kernels/view.h"

namespace taeda::cpu {

inline constexpr int64_t kCacheLine = 64;  // bytes

// Operand 0 is written. Dimension 0 is the innermost; strides are in bytes.
template <int kMaxOperands>
struct LoopPlan {
  static constexpr int kMaxDims = 64;  // more dimensions of size > 1 than 2^63 elements can have
  int operands = 0;
  int ndim = 0;
  int64_t numel = 0;
  char* data[kMaxOperands];
  int64_t sizes[kMaxDims];
  int64_t strides[kMaxDims][kMaxOperands];

  // All views have the same sizes; at least one element.
  void build(const View* const* views, int count) {
    operands = count;
    numel = views[0]->numel;
    for (int k = 0; k < count; k++) data[k] = static_cast<char*>(views[k]->data);
    const IntSpan shape = views[0]->sizes;
    for (size_t d = shape.size(); d-- > 0;) {
      if (shape[d] == 1) continue;
      sizes[ndim] = shape[d];
      for (int k = 0; k < count; k++)
        strides[ndim][k] = views[k]->strides[d] * item_size(views[k]->dtype);
      ndim++;
    }
    sort();
    merge();
    if (ndim == 0) {
      sizes[0] = 1;
      for (int k = 0; k < count; k++) strides[0][k] = item_size(views[k]->dtype);
      ndim = 1;
    }
  }

  // Whether operand k's elements lie one after the other in the loop's order.
  bool is_linear(int k, int64_t itemsize) const {
    int64_t expected = itemsize;
    for (int d = 0; d < ndim; d++) {
      if (strides[d][k] != expected) return false;
      expected *= sizes[d];
    }
    return true;
  }

  // Leaves one element of dimension 0; there are others.
  void drop_innermost() {
    numel /= sizes[0];
    ndim--;
    for (int d = 0; d < ndim; d++) {
      sizes[d] = sizes[d + 1];
      std::copy_n(strides[d + 1], operands, strides[d]);
    }
  }

  // Bytes that operand k's elements fill, those that are repeated counted once.
  int64_t footprint(int k, int64_t itemsize) const {
    for (int d = 0; d < ndim; d++) itemsize *= strides[d][k] == 0 ? 1 : sizes[d];
    return itemsize;
  }

  // Whether some operand would be read across its memory order: its elements lie one after the
  // other along dimension 1, while the loop runs along dimension 0.
  bool crosses_memory_order() const {
    for (int k = 1; k < operands; k++) {
      if (crosses(k)) return true;
    }
    return false;
  }
  bool crosses(int k) const {
    if (ndim < 2) return false;
    const int64_t inner = std::abs(strides[0][k]), outer = std::abs(strides[1][k]);
    return outer != 0 && outer < inner && outer < kCacheLine;
  }

 private:
  // Innermost is the dimension along which the output moves least.
  void sort() {
    for (int i = 1; i < ndim; i++) {
      for (int j = i; j > 0 && std::abs(strides[j][0]) < std::abs(strides[j - 1][0]); j--)
        swap_dims(j, j - 1);
    }
  }
  void swap_dims(int a, int b) {
    std::swap(sizes[a], sizes[b]);
    for (int k = 0; k < operands; k++) std::swap(strides[a][k], strides[b][k]);
  }
  void merge() {
    int last = 0;
    for (int d = 1; d < ndim; d++) {
      bool fits = true;
      for (int k = 0; k < operands; k++) fits &= strides[d][k] == strides[last][k] * sizes[last];
      if (fits) {
        sizes[last] *= sizes[d];
      } else if (++last != d) {
        sizes[last] = sizes[d];
        std::copy_n(strides[d], operands, strides[last]);
      }
    }
    if (ndim > 0) ndim = last + 1;
  }
};

// Elements that one thread handles before another is asked to help.
inline constexpr int64_t kLoopGrain = 32768;

// Cuts the plan into runs of at most `block` elements along dimension 0 and calls run(scratch,
// pointers, n, rows) for each, in parallel over large plans; where memory order is crossed, this
// run and the rows - 1 that follow step along dimension 1. Each chunk of work has a `Scratch` of
// its own, default-constructed.
template <class Scratch, int N, class Run>
void for_each_run(const LoopPlan<N>& plan, int64_t block, const Run& run) {
  struct Dim {
    int64_t size;
    int64_t strides[N];
  };
  const int64_t inner = plan.sizes[0];
  block = std::min(block, inner);
  const int64_t blocks = (inner + block - 1) / block;
  // Dimensions of the walk from run to run, fastest first. Where memory order is crossed, runs that
  // share cache lines follow each other.
  Dim dims[LoopPlan<N>::kMaxDims + 1];
  int ndim = 0;
  const bool crosses = plan.crosses_memory_order();
  const auto add = [&](int64_t size, const int64_t* strides, int64_t factor) {
    dims[ndim].size = size;
    for (int k = 0; k < plan.operands; k++) dims[ndim].strides[k] = strides[k] * factor;
    ndim++;
  };
  if (crosses) add(plan.sizes[1], plan.strides[1], 1);
  const int block_dim = ndim;
  add(blocks, plan.strides[0], block);
  for (int d = crosses ? 2 : 1; d < plan.ndim; d++) add(plan.sizes[d], plan.strides[d], 1);

  const int64_t runs = plan.numel / inner * blocks;
  const int64_t grain = std::max<int64_t>(1, kLoopGrain / block);
  parallel_for(0, runs, grain, [&](int64_t begin, int64_t end) {
    int64_t index[LoopPlan<N>::kMaxDims + 1];
    char* at[N];
    for (int k = 0; k < plan.operands; k++) at[k] = plan.data[k];
    int64_t rest = begin;
    for (int d = 0; d < ndim; d++) {
      index[d] = rest % dims[d].size;
      rest /= dims[d].size;
      for (int k = 0; k < plan.operands; k++) at[k] += index[d] * dims[d].strides[k];
    }
    Scratch scratch;
    for (int64_t i = begin; i < end; i++) {
      const int64_t n = index[block_dim] == blocks - 1 ? inner - (blocks - 1) * block : block;
      run(scratch, static_cast<char* const*>(at), n, std::min(dims[0].size - index[0], end - i));
      for (int d = 0; d < ndim; d++) {
        for (int k = 0; k < plan.operands; k++) at[k] += dims[d].strides[k];
        if (++index[d] < dims[d].size) break;
        for (int k = 0; k < plan.operands; k++) at[k] -= dims[d].strides[k] * dims[d].size;
        index[d] = 0;
      }
    }
  });
}

}  // namespace taeda::cpu
