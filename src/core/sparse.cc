#include "core/sparse.h"

namespace taeda {

Layout Tensor::sparse_layout() const { return sparse_parts(*this).layout; }

const char* layout_name(Layout layout) {
  switch (layout) {
    case Layout::kStrided:
      return "Strided";
    case Layout::kSparseCoo:
      return "Sparse";
    case Layout::kSparseCsr:
      return "SparseCsr";
    case Layout::kSparseCsc:
      return "SparseCsc";
    case Layout::kSparseBsr:
      return "SparseBsr";
    case Layout::kSparseBsc:
      return "SparseBsc";
  }
  return "Strided";
}

}  // namespace taeda
