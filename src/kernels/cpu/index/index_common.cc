#include "kernels/cpu/index/index_common.h"

#include <cstring>

#include "kernels/cpu/pointwise/loop.h"

namespace taeda::cpu {

DimVector dense_strides(IntSpan sizes) {
  DimVector strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;)
    strides[i - 1] = strides[i] * std::max<int64_t>(1, sizes[i]);
  return strides;
}

bool is_dense(const View& v) {
  int64_t expected = 1;
  for (size_t i = v.sizes.size(); i-- > 0;) {
    if (v.sizes[i] != 1 && v.strides[i] != expected) return false;
    expected *= v.sizes[i];
  }
  return true;
}

namespace {
// First and one past the last byte.
std::pair<const char*, const char*> range(const View& v) {
  const char* begin = static_cast<const char*>(v.data);
  int64_t last = 0;
  for (size_t i = 0; i < v.sizes.size(); i++) last += (v.sizes[i] - 1) * v.strides[i];
  return {begin, begin + (last + 1) * item_size(v.dtype)};
}
}  // namespace

bool may_overlap(const View& a, const View& b) {
  if (a.numel == 0 || b.numel == 0) return false;
  const auto [a0, a1] = range(a);
  const auto [b0, b1] = range(b);
  return a0 < b1 && b0 < a1;
}

void check_writable(const View& v) {
  for (size_t i = 0; i < v.sizes.size(); i++) {
    TD_CHECK(v.sizes[i] <= 1 || v.strides[i] != 0 || v.numel == 0,
             "unsupported operation: more than one element of the written-to tensor refers to a "
             "single memory location. "
             "Please clone() the tensor before performing the operation.");
  }
}

void copy_view(const View& dst, const View& src) {
  if (dst.numel) copy(dst, src);
}

IndexView::IndexView(const View& index) : view_(index) {
  if (index.dtype == DType::kInt64 || index.numel == 0) return;
  copy_.reset(new int64_t[static_cast<size_t>(index.numel)]);
  strides_ = dense_strides(index.sizes);
  view_ = {copy_.get(), DType::kInt64, index.sizes, strides_, index.numel, true};
  copy_view(view_, index);
}

DenseView::DenseView(const View& v, DType dtype) : view_(v) {
  if (v.dtype != dtype || !is_dense(v)) fill(v, dtype);
}
DenseView::DenseView(const View& v, const View& written) : view_(v) {
  if (!is_dense(v) || may_overlap(v, written)) fill(v, v.dtype);
}
void DenseView::fill(const View& v, DType dtype) {
  copy_.reset(new char[static_cast<size_t>(std::max<int64_t>(1, v.numel * item_size(dtype)))]);
  strides_ = dense_strides(v.sizes);
  view_ = {copy_.get(), dtype, v.sizes, strides_, v.numel, true};
  copy_view(view_, v);
}

}  // namespace taeda::cpu
