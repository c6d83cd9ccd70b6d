// What index kernels share: indices as checked int64, guards for tensors that are written, and
// element types by size.
//
// Another thread or process may write an index tensor while a kernel reads it. So no index is read
// twice, once to be checked and once to be used: it is checked in a copy of the kernel's own, or
// where it is used. What an earlier pass saw only decides which error is raised.
#pragma once

#include <memory>

#include "base/interrupt.h"
#include "kernels/cpu/rows/row_io.h"
#include "taeda/error.h"

namespace taeda::cpu {

// A view whose elements are int64, converted to a dense copy where they are int32. Empty tensors of
// any dtype pass.
class IndexView {
 public:
  explicit IndexView(const View& index);
  const View& view() const { return view_; }
  const int64_t* data() const { return view_.as<int64_t>(); }

 private:
  View view_;
  DimVector strides_;
  std::unique_ptr<int64_t[]> copy_;
};

// Dense row-major elements of any view: its own memory, or a copy.
class DenseView {
 public:
  explicit DenseView(const View& v) : DenseView(v, v.dtype) {}
  DenseView(const View& v, DType dtype);
  // A copy in any case where v shares memory with `written`.
  DenseView(const View& v, const View& written);
  const View& view() const { return view_; }
  template <class T>
  const T* as() const {
    return view_.as<T>();
  }

 private:
  void fill(const View& v, DType dtype);
  View view_;
  DimVector strides_;
  std::unique_ptr<char[]> copy_;
};

// Whether every one of n indices is in [0, size).
bool all_inside(const int64_t* index, int64_t n, int64_t size);
// The same of a copy in `to`, each index read once.
bool copy_if_inside(int64_t* to, const int64_t* index, int64_t n, int64_t size);
// For an index that was outside in the kernel's copy and is no longer where it came from.
inline constexpr const char* kIndicesChanged =
    "the indices were changed by another thread or process while the operator read them";

// Row-major strides.
DimVector dense_strides(IntSpan sizes);
bool is_dense(const View& v);
// Whether the memory ranges of two views overlap.
bool may_overlap(const View& a, const View& b);
// RuntimeError when several elements of a tensor about to be written share memory.
void check_writable(const View& v);

// dst = src, of equal sizes: converts between dtypes and any strides.
void copy_view(const View& dst, const View& src);

// The position of every element of a view in row-major order: f(offset) with its offset in memory.
template <class F>
void for_each_offset(const View& v, F&& f) {
  const size_t n = v.sizes.size();
  if (v.numel == 0) return;
  if (n == 0) return f(0);
  DimVector at(n, 0);
  int64_t offset = 0;
  const int64_t inner = v.sizes[n - 1], step = v.strides[n - 1];
  Looks looks;
  for (int64_t done = 0; done < v.numel; done += inner) {
    in_slices(inner, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) f(offset + i * step);
    });
    looks.after(inner);
    for (size_t d = n - 1; d-- > 0;) {
      offset += v.strides[d];
      if (++at[d] < v.sizes[d]) break;
      offset -= v.sizes[d] * v.strides[d];
      at[d] = 0;
    }
  }
}

}  // namespace taeda::cpu
