#include "core/layout.h"

#include <algorithm>
#include <numeric>

#include "core/device_memory.h"
#include "core/dim_fix.h"
#include "core/element_order.h"
#include "taeda/error.h"

namespace taeda {

int64_t checked_mul(int64_t a, int64_t b, std::string_view what) {
  int64_t result;
  TD_CHECK(!__builtin_mul_overflow(a, b, &result), "{}: {} * {} overflows 64 bits", what, a, b);
  return result;
}

int64_t checked_add(int64_t a, int64_t b, std::string_view what) {
  int64_t result;
  TD_CHECK(!__builtin_add_overflow(a, b, &result), "{}: {} + {} overflows 64 bits", what, a, b);
  return result;
}

namespace {

// Of sizes that are negative, or whose product is beyond int64: a zero anywhere makes the tensor
// empty, however large the rest.
[[gnu::cold, gnu::noinline]] int64_t odd_numel(IntSpan sizes) {
  bool empty = false;
  for (const int64_t size : sizes) {
    TD_CHECK(size >= 0, "Trying to create tensor with negative dimension {}: {}", size, sizes);
    empty |= size == 0;
  }
  TD_CHECK(empty, "numel: integer multiplication overflow for sizes {}", sizes);
  return 0;
}

}  // namespace

int64_t checked_numel(IntSpan sizes) {
  int64_t numel = 1;
  for (const int64_t size : sizes)
    if (size < 0 || __builtin_mul_overflow(numel, size, &numel)) [[unlikely]]
      return odd_numel(sizes);
  return numel;
}

int64_t checked_nbytes(IntSpan sizes, DType dtype) {
  const int64_t numel = checked_numel(sizes), bytes = item_size(dtype);
  int64_t nbytes;
  if (__builtin_mul_overflow(numel, bytes, &nbytes)) [[unlikely]]
    return checked_mul(numel, bytes, "Storage size calculation overflowed");
  return nbytes;
}

DimVector contiguous_strides(IntSpan sizes) {
  DimVector strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    TD_CHECK(sizes[i] >= 0, "Trying to create tensor with negative dimension {}: {}", sizes[i],
             sizes);
    strides[i] = stride;
    TD_CHECK(!__builtin_mul_overflow(stride, std::max<int64_t>(sizes[i], 1), &stride) || i == 0,
             "Stride calculation overflowed with sizes={}", sizes);
  }
  return strides;
}

namespace {

// Dimension order from the innermost outwards: channels, then width, height (, depth), then batch.
constexpr int kChannelsLast2d[] = {1, 3, 2, 0};
constexpr int kChannelsLast3d[] = {1, 4, 3, 2, 0};

Span<const int> channels_last_order(size_t ndim) {
  if (ndim == 4) return Span<const int>(kChannelsLast2d, 4);
  if (ndim == 5) return Span<const int>(kChannelsLast3d, 5);
  return {};
}

}  // namespace

DimVector channels_last_strides(IntSpan sizes) {
  const Span<const int> order = channels_last_order(sizes.size());
  TD_CHECK(!order.empty(), "channels_last strides need 4 or 5 dimensions, got sizes {}", sizes);
  DimVector strides(sizes.size());
  int64_t stride = 1;
  for (int d : order) {
    strides[d] = stride;
    stride = checked_mul(stride, std::max<int64_t>(sizes[d], 1), "channels_last strides");
  }
  return strides;
}

bool is_contiguous_layout(IntSpan sizes, IntSpan strides) {
  int64_t expected = 1;
  bool contiguous = true;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 0) return true;
    if (sizes[i] == 1) continue;
    contiguous &= strides[i] == expected;
    if (__builtin_mul_overflow(expected, sizes[i], &expected)) contiguous = false;
  }
  return contiguous;
}

bool is_channels_last_layout(IntSpan sizes, IntSpan strides) {
  const Span<const int> order = channels_last_order(sizes.size());
  if (order.empty()) return false;
  int64_t expected = 1;
  for (int d : order) {
    if (sizes[d] == 1) continue;
    if (strides[d] != expected) return false;
    if (__builtin_mul_overflow(expected, sizes[d], &expected)) return false;
  }
  return true;
}

bool resembles_channels_last(IntSpan sizes, IntSpan strides) {
  const Span<const int> order = channels_last_order(sizes.size());
  if (order.empty() || strides[1] == 0) return false;
  int64_t least = 0;
  for (int d : order) {
    if (sizes[d] == 0 || strides[d] < least) return false;
    if (d == 0 && least == strides[1]) return false;  // one channel and one pixel: row-major
    least = strides[d];
    if (sizes[d] > 1 && __builtin_mul_overflow(least, sizes[d], &least)) return false;
  }
  return true;
}

bool is_dense_layout(IntSpan sizes, IntSpan strides) {
  SmallVector<int, 5> order;
  for (size_t i = 0; i < sizes.size(); i++) {
    if (sizes[i] == 0) return true;
    if (sizes[i] != 1) order.push_back(static_cast<int>(i));
  }
  std::sort(order.begin(), order.end(), [&](int a, int b) { return strides[a] < strides[b]; });
  int64_t expected = 1;
  for (int d : order) {
    if (strides[d] != expected) return false;
    if (__builtin_mul_overflow(expected, sizes[d], &expected)) return false;
  }
  return true;
}

DimVector elementwise_strides(IntSpan sizes, Span<const DimVector> operands) {
  // Insertion sort from the innermost dimension. Dimensions compare equal where one of them is
  // broadcast, so they stay where they are; equal strides put the larger size outside.
  SmallVector<int, 5> order;
  for (size_t i = sizes.size(); i-- > 0;) order.push_back(static_cast<int>(i));
  const auto outside = [&](int a, int b) {  // 1: a belongs outside b, -1: inside, 0: either
    for (const DimVector& strides : operands) {
      if (strides[a] == 0 || strides[b] == 0) continue;
      if (strides[a] != strides[b]) return strides[a] < strides[b] ? -1 : 1;
      if (sizes[a] > sizes[b]) return 1;
    }
    return 0;
  };
  for (size_t i = 1; i < order.size(); i++) {
    size_t at = i;
    for (size_t j = i; j-- > 0;) {
      const int compare = outside(order[j], order[at]);
      if (compare > 0) {
        std::swap(order[j], order[at]);
        at = j;
      } else if (compare < 0) {
        break;
      }
    }
  }
  DimVector result(sizes.size());
  int64_t stride = 1;
  for (int d : order) {
    result[d] = stride;
    stride = checked_mul(stride, std::max<int64_t>(sizes[d], 1), "strides");
  }
  return result;
}

DimVector preserved_strides(IntSpan sizes, IntSpan strides) {
  DimVector own(strides);
  return is_dense_layout(sizes, strides)
             ? own
             : elementwise_strides(sizes, Span<const DimVector>(&own, 1));
}

DimVector broadcast_shapes(IntSpan a, IntSpan b) {
  const size_t ndim = std::max(a.size(), b.size());
  DimVector result(ndim);
  for (size_t i = 0; i < ndim; i++) {  // i counts from the last dimension
    const int64_t size_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t size_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    TD_CHECK(size_a == size_b || size_a == 1 || size_b == 1,
             "The size of tensor a ({}) must match the size of tensor b ({}) at non-singleton "
             "dimension {}\nFix: sizes must be equal or 1, counted from the last dimension: add a "
             "dimension of size 1 by unsqueeze or [:, None], or transpose one",
             size_a, size_b, ndim - 1 - i);
    result[ndim - 1 - i] = size_a == 1 ? size_b : size_a;
  }
  return result;
}

bool is_expandable_to(IntSpan sizes, IntSpan target) {
  if (sizes.size() > target.size()) return false;
  for (size_t i = 0; i < sizes.size(); i++) {
    const int64_t size = sizes[sizes.size() - 1 - i];
    if (size != 1 && size != target[target.size() - 1 - i]) return false;
  }
  return true;
}

int64_t storage_bytes_needed(IntSpan sizes, IntSpan strides, int64_t offset, DType dtype) {
  TD_CHECK(sizes.size() == strides.size(), "mismatch in length of strides and shape: {} and {}",
           strides, sizes);
  TD_CHECK(offset >= 0, "Tensor: invalid storage offset {}", offset);
  const int64_t numel = checked_numel(sizes);
  for (int64_t stride : strides) {
    TD_CHECK(stride >= 0, "Negative strides are not supported: got strides {}", strides);
  }
  if (numel == 0) return 0;
  constexpr std::string_view kWhat = "Storage size calculation overflowed";
  int64_t last = offset;
  for (size_t i = 0; i < sizes.size(); i++) {
    last = checked_add(last, checked_mul(sizes[i] - 1, strides[i], kWhat), kWhat);
  }
  return checked_mul(checked_add(last, 1, kWhat), item_size(dtype), kWhat);
}

std::string dim_fix(int64_t ndim) {
  if (ndim == 0) return "Fix: the tensor has no dimensions: 0 and -1 are all that fit";
  return format("Fix: give one from 0 to {}, or count from the end, where -1 is the last one",
                ndim - 1);
}

int64_t wrap_dim(int64_t dim, int64_t ndim) {
  const int64_t range = std::max<int64_t>(ndim, 1);
  TD_CHECK_INDEX(dim >= -range && dim < range,
                 "Dimension out of range (expected to be in range of [{}, {}], but got {})\n{}",
                 -range, range - 1, dim, dim_fix(ndim));
  return dim < 0 ? dim + range : dim;
}

Overlap internal_overlap(IntSpan sizes, IntSpan strides) {
  SmallVector<int, 5> order;
  for (size_t i = 0; i < sizes.size(); i++) {
    if (sizes[i] == 0) return Overlap::kNo;
    if (sizes[i] == 1) continue;
    if (strides[i] == 0) return Overlap::kYes;
    order.push_back(static_cast<int>(i));
  }
  // Without overlap if every stride steps over all that the smaller ones reach.
  std::sort(order.begin(), order.end(), [&](int a, int b) { return strides[a] < strides[b]; });
  int64_t reach = 0;
  for (int d : order) {
    if (strides[d] <= reach) return Overlap::kUnknown;
    reach += (sizes[d] - 1) * strides[d];
  }
  return Overlap::kNo;
}

namespace {

// First byte and one past the last byte that a tensor touches.
struct Range {
  const char* begin;
  const char* end;
};
Range memory_range(const Tensor& t) {
  const char* begin = static_cast<const char*>(t.data_ptr());
  int64_t last = 0;
  for (int64_t d = 0; d < t.dim(); d++) last += (t.sizes()[d] - 1) * t.strides()[d];
  return {begin, begin + (last + 1) * t.itemsize()};
}

}  // namespace

MemoryOverlap memory_overlap(const Tensor& a, const Tensor& b) {
  if (a.numel() == 0 || b.numel() == 0 || !a.data_ptr() || !b.data_ptr()) return MemoryOverlap::kNo;
  const bool same_layout =
      a.sizes() == b.sizes() && a.strides() == b.strides() && a.itemsize() == b.itemsize();
  if (a.data_ptr() == b.data_ptr() && same_layout) return MemoryOverlap::kFull;
  const Range range_a = memory_range(a), range_b = memory_range(b);
  if (range_a.end <= range_b.begin || range_b.end <= range_a.begin) return MemoryOverlap::kNo;
  const bool dense_a = is_dense_layout(a.sizes(), a.strides()),
             dense_b = is_dense_layout(b.sizes(), b.strides());
  if (dense_a && dense_b) {
    // The same elements in another order (x and its transpose) still differ element by element.
    return MemoryOverlap::kPartial;
  }
  if (a.itemsize() != b.itemsize()) return MemoryOverlap::kUnknown;
  // Interleaved views (even and odd columns) are apart when the distance is no multiple of the
  // strides' common divisor.
  int64_t divisor = 0;
  for (const Tensor* t : {&a, &b}) {
    for (int64_t d = 0; d < t->dim(); d++) {
      if (t->sizes()[d] > 1) divisor = std::gcd(divisor, t->strides()[d]);
    }
  }
  const int64_t distance = (range_a.begin - range_b.begin) / a.itemsize();
  if (divisor > 1 && distance % divisor != 0) return MemoryOverlap::kNo;
  return MemoryOverlap::kUnknown;
}

void check_no_internal_overlap(const Tensor& written) {
  if (written.impl()->contiguous || !has_memory(written.device())) return;
  TD_CHECK(internal_overlap(written.sizes(), written.strides()) != Overlap::kYes,
           "unsupported operation: more than one element of the written-to tensor refers to a "
           "single memory location. "
           "Please clone() the tensor before performing the operation.");
}

namespace {
void check_overlap_is_not(MemoryOverlap found, MemoryOverlap refused) {
  TD_CHECK(found != refused,
           "unsupported operation: some elements of the input tensor and the written-to tensor "
           "refer to a single memory location. Please clone() the tensor before performing the "
           "operation.");
}
}  // namespace

void check_no_partial_overlap(const Tensor& written, const Tensor& read) {
  if (written.storage().get() != read.storage().get() || written.is_same(read)) return;
  check_overlap_is_not(memory_overlap(written, read), MemoryOverlap::kPartial);
}

void check_no_overlap(const Tensor& written, const Tensor& read) {
  if (written.storage().get() != read.storage().get()) return;
  const MemoryOverlap found = memory_overlap(written, read);
  check_overlap_is_not(found, MemoryOverlap::kPartial);
  check_overlap_is_not(found, MemoryOverlap::kFull);
}

}  // namespace taeda
