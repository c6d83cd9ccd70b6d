// What a sparse tensor is made of. Such a tensor has the key kSparse, sizes and no memory of its
// own: its elements are those of `values`, all others are 0.
#pragma once

#include "taeda/error.h"
#include "taeda/tensor.h"

namespace taeda {

// Never changed: a tensor that is written gets other parts, or other elements in its values.
struct SparseParts final : RefCounted {
  Layout layout;
  // kSparseCoo: the coordinates, int64 [sparse dimensions, n]. Compressed layouts: where each row
  // (or column) begins in `plain`, [..., rows + 1].
  Tensor indices;
  Tensor plain;   // compressed layouts: the column (or row) of each value, [..., n]
  Tensor values;  // [n, dense dimensions...], behind batch dimensions of compressed layouts
  bool coalesced = false;  // kSparseCoo: coordinates are sorted and differ

  bool is_coo() const { return layout == Layout::kSparseCoo; }
};

// RuntimeError for a tensor without the key kSparse.
inline const SparseParts& sparse_parts(const Tensor& t) {
  TD_CHECK(t.defined() && t.is_sparse(), "expected a sparse tensor, but got a strided one");
  return static_cast<const SparseParts&>(*t.impl()->wrapped);
}

const char* layout_name(Layout layout);  // "Sparse", as PyTorch's messages have it

}  // namespace taeda
