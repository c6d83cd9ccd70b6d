// indexing: what may stand between the brackets of x[...], and its meaning.
//
// TensorIndex is one of the indices: a number, a bool, a Slice, None (a new dimension of size 1),
// Ellipsis (as many whole dimensions as are left over) or a tensor (integers, or a mask). The rules
// are NumPy's and PyTorch's; the Python bindings use the same functions.
//
//   using namespace taeda::indexing;
//   Tensor x = arange(12).view({3, 4});
//   assert(equal(x.index({Ellipsis, Slice(-2, None)})[0], tensor({2, 3})));
//   x.index_put_({x > 5}, 5);                            // Python's x[x > 5] = 5
//   assert(x.index({2, 3}).item<int64_t>() == 5);
//   assert(x.index({Slice(None, None, 2), None}).sizes() == IntSpan({2, 1, 4}));
#pragma once

#include <concepts>
#include <limits>
#include <utility>

#include "taeda/tensor.h"

namespace taeda::indexing {

// A new dimension of size 1 in an index; an end that is left out in a Slice.
inline constexpr std::nullopt_t None = std::nullopt;
inline constexpr struct EllipsisType {
} Ellipsis;

// start:stop:step; None stands for the end in question. Negative numbers count from the end, and
// ends that lie outside are cut, as in Python. ValueError for steps below 1.
//
//   const Tensor x = arange(10);
//   assert(equal(x.index({indexing::Slice(-3, 100)}), tensor({7, 8, 9})));
//   assert(equal(x.index({indexing::Slice(1, 8, 3)}), tensor({1, 4, 7})));
struct Slice {
  static constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  int64_t start, stop, step;
  explicit Slice(OptInt start = None, OptInt stop = None, OptInt step = None)
      : start(start.value_or(0)), stop(stop.value_or(kEnd)), step(step.value_or(1)) {}
};

// One index; every kind converts to it, so that braces hold a mixture. A bool tensor is a mask over
// as many dimensions as it has, an integer tensor indices into one; several of them broadcast, and
// their dimensions stand where the first was, or in front where other indices lie between them.
//
//   const Tensor x = arange(24).view({2, 3, 4});
//   const Tensor rows = tensor({0, 2}), columns = tensor({3, 1});
//   assert(equal(x.index({1, rows, columns}), tensor({15, 21})));
//   assert(x.index({rows > 0, indexing::None, indexing::Ellipsis}).sizes() == IntSpan({1, 1, 3,
//   4}));
class TensorIndex {
 public:
  enum class Kind : uint8_t { kNone, kEllipsis, kInteger, kBool, kSlice, kTensor };

  TensorIndex(std::nullopt_t = None) {}
  TensorIndex(EllipsisType) : kind_(Kind::kEllipsis) {}
  TensorIndex(std::integral auto i) : kind_(Kind::kInteger), slice_(static_cast<int64_t>(i)) {}
  TensorIndex(bool value) : kind_(Kind::kBool), slice_(value ? 1 : 0) {}
  TensorIndex(Slice slice) : kind_(Kind::kSlice), slice_(slice) {}
  TensorIndex(Tensor index) : kind_(Kind::kTensor), tensor_(std::move(index)) {}

  Kind kind() const { return kind_; }
  int64_t integer() const { return slice_.start; }  // of kInteger, and 0 or 1 of kBool
  const Slice& slice() const { return slice_; }
  const Tensor& tensor() const { return tensor_; }

 private:
  Kind kind_ = Kind::kNone;
  Slice slice_;
  Tensor tensor_;
};

// An index expression applied as far as views reach: `view` has everything but the tensors, which
// wait in `indices`, one a dimension of `view`, undefined where there is none.
struct Indexed {
  Tensor view;
  TensorList indices;
  bool changed = false;  // false: `view` is the indexed tensor itself

  bool advanced() const { return !indices.empty(); }
};
Indexed apply(const Tensor& x, Span<const TensorIndex> indices);

// x[i] with Python's messages; `shown` is the dimension that they name.
Tensor select_checked(const Tensor& x, int64_t dim, int64_t i, int64_t shown);

// What x[...] reads, and writes: leading dimensions of size 1 that the target lacks do not count.
Tensor get(const Indexed& target);
void set(const Indexed& target, const Tensor& value);

}  // namespace taeda::indexing
