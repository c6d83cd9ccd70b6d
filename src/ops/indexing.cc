#include "taeda/indexing.h"

#include "op/copy_.h"
#include "op/expand.h"
#include "op/fill_.h"
#include "op/index.h"
#include "op/index_put_.h"
#include "op/select.h"
#include "op/slice.h"
#include "op/to_device.h"
#include "op/to_dtype.h"
#include "op/unsqueeze.h"
#include "op/view.h"
#include "op/zeros.h"
#include "ops/batching/level.h"
#include "ops/element_fits.h"
#include "ops/host.h"
#include "ops/linalg_rules.h"

namespace taeda::indexing {
namespace {

using Kind = TensorIndex::Kind;

bool is_mask(const Tensor& x) { return x.dtype() == DType::kBool || x.dtype() == DType::kUInt8; }
bool is_index_dtype(DType dtype) {
  return dtype == DType::kInt64 || dtype == DType::kInt32 || dtype == DType::kBool ||
         dtype == DType::kUInt8;
}

// How many dimensions an index consumes; for Ellipsis see Indexer::free_.
int64_t consumed_dims(const TensorIndex& index) {
  switch (index.kind()) {
    case Kind::kInteger:
    case Kind::kSlice:
      return 1;
    case Kind::kTensor:
      return is_mask(index.tensor()) ? index.tensor().dim() : 1;
    default:
      return 0;
  }
}

// Applies the indices from left to right.
class Indexer {
 public:
  explicit Indexer(const Tensor& x) { result_.view = x; }

  void apply(Span<const TensorIndex> indices) {
    int64_t specified = 0;
    for (const TensorIndex& index : indices) specified += consumed_dims(index);
    free_ = result_.view.dim() - specified;
    TD_CHECK_INDEX(free_ >= 0, "too many indices for tensor of dimension {}", result_.view.dim());
    for (const TensorIndex& index : indices) {
      const int64_t consumed = index.kind() == Kind::kEllipsis ? free_ : consumed_dims(index);
      apply(index);
      source_ += consumed;
    }
  }

  Indexed take() { return std::move(result_); }

 private:
  void apply(const TensorIndex& index) {
    switch (index.kind()) {
      case Kind::kNone:
        return change(op::unsqueeze(result_.view, dim_++));
      case Kind::kEllipsis:
        dim_ += std::exchange(free_, 0);
        return;
      case Kind::kInteger:
        return change(select_checked(result_.view, dim_, index.integer(), source_));
      case Kind::kBool:
        return apply_bool(index.integer() != 0);
      case Kind::kSlice:
        return apply_slice(index.slice());
      case Kind::kTensor:
        return apply_tensor(index.tensor());
    }
  }

  void change(Tensor view) {
    result_.view = std::move(view);
    result_.changed = true;
  }

  void apply_slice(const Slice& s) {
    const Tensor& view = result_.view;
    TD_CHECK_AS(ErrorKind::kValue, s.step >= 1, "step must be greater than zero");
    TD_CHECK_INDEX(view.dim() > 0, "slice() cannot be applied to a 0-dim tensor.");
    const int64_t size = view.sizes()[static_cast<size_t>(dim_)];
    if (s.start != 0 || s.step != 1 || s.stop < size)
      change(op::slice(view, dim_, OptInt(s.start), OptInt(s.stop), s.step));
    dim_++;
  }

  // True adds a dimension of size 1, False one of size 0.
  void apply_bool(bool value) {
    change(op::unsqueeze(result_.view, dim_));
    TensorOptions options(DType::kInt64);
    options.device = result_.view.device();
    record(op::zeros({value ? 1 : 0}, options));
  }

  void apply_tensor(const Tensor& index) {
    const bool differs = batching::differs_between_samples(index);
    if (index.dim() == 0 && !is_inexact(index.dtype()) && !differs) {
      if (const OptScalar value = known_number(index)) {
        if (is_mask(index)) return apply_bool(value->to_bool());
        return change(select_checked(result_.view, dim_, value->to_int(), source_));
      }
    }
    TD_CHECK_INDEX(is_index_dtype(index.dtype()),
                   "tensors used as indices must be long, int, byte or bool tensors");
    if (is_mask(index)) check_mask(index);
    record(index);
  }

  // A mask covers as many dimensions as it has, and must have their sizes.
  void check_mask(const Tensor& mask) {
    for (int64_t i = 0; i < mask.dim(); i++) {
      const int64_t at = dim_ + mask_shift_ + i;
      TD_CHECK_INDEX(
          at < result_.view.dim() &&
              mask.sizes()[static_cast<size_t>(i)] == result_.view.sizes()[static_cast<size_t>(at)],
          "The shape of the mask {} at index {} does not match the shape of the indexed tensor {} "
          "at index {}\nFix: a mask has the shape of what it masks, or of its first dimensions",
          mask.sizes(), i, result_.view.sizes(), at);
    }
  }

  void record(Tensor index) {
    if (is_mask(index)) mask_shift_ += index.dim() - 1;
    result_.indices.resize(static_cast<size_t>(dim_));
    result_.indices.push_back(std::move(index));
    dim_++;
  }

  Indexed result_;
  int64_t source_ = 0;      // dimensions of the indexed tensor used up so far
  int64_t dim_ = 0;         // of `view`, counting a mask as one
  int64_t mask_shift_ = 0;  // what masks to the left cover beyond one dimension each
  int64_t free_ = 0;        // dimensions that an Ellipsis stands for
};

Tensor strip_leading_ones(const Tensor& value, int64_t ndim) {
  int64_t extra = 0;
  while (value.dim() - extra > ndim && value.sizes()[static_cast<size_t>(extra)] == 1) extra++;
  return extra ? op::view(value, value.sizes().slice(static_cast<size_t>(extra),
                                                     static_cast<size_t>(value.dim() - extra)))
               : value;
}

}  // namespace

Tensor select_checked(const Tensor& x, int64_t dim, int64_t i, int64_t shown) {
  TD_CHECK_INDEX(x.dim() > 0,
                 "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                 "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number");
  const int64_t size = x.sizes()[static_cast<size_t>(dim)];
  TD_CHECK_INDEX(size > 0, "index {} is out of bounds for dimension {} with size 0", i, shown);
  TD_CHECK_INDEX(
      i >= -size && i < size,
      "index {} is out of bounds for dimension {} with size {}\nFix: indices run from {} to {}", i,
      shown, size, -size, size - 1);
  return op::select(x, dim, i);
}

Indexed apply(const Tensor& x, Span<const TensorIndex> indices) {
  Indexer indexer(x);
  indexer.apply(indices);
  return indexer.take();
}

Tensor get(const Indexed& place) {
  return place.advanced() ? op::index(place.view, place.indices) : place.view;
}

void set(const Indexed& place, const Tensor& value) {
  const Tensor& target = place.view;
  if (place.advanced()) {
    const bool converts =
        value.impl()->wrapped_number || value.dim() == 0 || is_mask(place.indices.back());
    // Reals out of range become infinite, as fill_ has it.
    const bool may_not_fit = !is_inexact(target.dtype()) || value.is_complex();
    if (converts && may_not_fit && value.dim() == 0 && value.device().is_cpu())
      check_element_fits(value, target.dtype());
    Tensor written = converts && value.dtype() != target.dtype()
                         ? op::to_dtype(value, target.dtype(), false, std::nullopt)
                         : value;
    if (value.dim() == 0 && value.requires_grad() && value.device().is_cpu())  // so is its gradient
      written = op::to_device(written, target.device(), false);
    op::index_put_(target, place.indices, strip_leading_ones(written, 0), /*accumulate=*/false);
  } else if (value.impl()->wrapped_number) {
    op::fill_(target, value);
  } else {
    const Tensor source = strip_leading_ones(value, target.dim());
    if (!rules::expands_to(source.sizes(), target.sizes()))
      op::expand(source, target.sizes(), false);  // fails in its words
    op::copy_(target, source, false);
  }
}

}  // namespace taeda::indexing

namespace taeda {

using indexing::TensorIndex;

Tensor Tensor::operator[](int64_t i) const { return indexing::select_checked(*this, 0, i, 0); }
Tensor Tensor::operator[](const Tensor& index) const { return this->index({TensorIndex(index)}); }

Tensor Tensor::index(Span<const TensorIndex> indices) const {
  return indexing::get(indexing::apply(*this, indices));
}
Tensor Tensor::index(std::initializer_list<TensorIndex> indices) const {
  return index(Span<const TensorIndex>(indices.begin(), indices.size()));
}

const Tensor& Tensor::index_put_(Span<const TensorIndex> indices, const Tensor& value) const {
  indexing::set(indexing::apply(*this, indices), value);
  return *this;
}
const Tensor& Tensor::index_put_(std::initializer_list<TensorIndex> indices,
                                 const Tensor& value) const {
  return index_put_(Span<const TensorIndex>(indices.begin(), indices.size()), value);
}

}  // namespace taeda
