// vmap of what selects by tensors of indices: the number of the sample becomes one more index.
#include "op/add.h"
#include "op/arange.h"
#include "op/copy_.h"
#include "op/expand.h"
#include "op/index.h"
#include "op/index_put_.h"
#include "op/mul.h"
#include "op/ne.h"
#include "op/nonzero.h"
#include "op/permute.h"
#include "op/reshape.h"
#include "op/to_dtype.h"
#include "op/unbind.h"
#include "op/unsqueeze.h"
#include "op/view.h"
#include "ops/batching/rules.h"

namespace taeda::batching {
namespace {

// 0, 1, ..., of `ndim` dimensions, the first of which they lie along.
Tensor sample_numbers(const Call& call, int64_t ndim, Device device) {
  TensorOptions options(DType::kInt64);
  options.device = device;
  const Tensor numbers = op::arange(Scalar(call.size()), options);
  DimVector sizes(static_cast<size_t>(ndim), 1);
  sizes[0] = call.size();
  return op::view(numbers, sizes);
}

// x[indices] of one sample: where indices lie, and what they make of the dimensions.
struct Selection {
  TensorList indices;    // one a dimension of a sample, undefined for a whole one; no masks
  bool batched = false;  // one of them has a batch
  int64_t ndim = 0;      // of the broadcast indices
  size_t place = 0;      // the dimension of the result where theirs begin
  int64_t dims = 0;      // of a sample's result

  Selection(const Call& call, const TensorList& given, int64_t self_dims);
};

// A mask as the indices of its elements.
void append_mask(const Tensor& mask, TensorList& indices) {
  for (Tensor& along : op::unbind(op::nonzero(mask), 1)) indices.push_back(std::move(along));
}

Selection::Selection(const Call& call, const TensorList& given, int64_t self_dims) {
  for (const Tensor& index : given) {
    const bool mask =
        index.defined() && (index.dtype() == DType::kBool || index.dtype() == DType::kUInt8);
    if (mask && is_at(index, call.level)) refuse(const_cast<Call&>(call));
    if (mask)
      append_mask(index, indices);
    else
      indices.push_back(index);
  }
  size_t first = indices.size(), last = 0, count = 0;
  for (size_t i = 0; i < indices.size(); i++) {
    if (!indices[i].defined()) continue;
    batched |= is_at(indices[i], call.level);
    ndim = std::max(ndim, indices[i].dim());
    first = std::min(first, i);
    last = i;
    count++;
  }
  const bool adjacent = count > 0 && last - first + 1 == count;
  place = adjacent ? first : 0;
  dims = self_dims - static_cast<int64_t>(count) + ndim;
}

// The indices of the whole batch, the number of the sample in front; `numbered`: with the samples'
// numbers, else with all of dimension 0.
TensorList batch_indices(const Call& call, const Selection& chosen, bool numbered) {
  TensorList all;
  for (const Tensor& index : chosen.indices) {
    const Tensor value = value_at(index, call.level);
    all.push_back(value.defined() ? pad_dims(value, chosen.ndim) : index);
  }
  Tensor numbers;
  if (numbered) numbers = sample_numbers(call, chosen.ndim + 1, call.tensor(0).device());
  all.insert(all.begin(), numbers);
  return all;
}

// Dimensions `from` to `from + count` of t, moved to begin at `to`.
Tensor move_dims(const Tensor& t, int64_t from, int64_t count, int64_t to) {
  DimVector rest, order;
  for (int64_t d = 0; d < t.dim(); d++)
    if (d < from || d >= from + count) rest.push_back(d);
  for (int64_t d = 0; d <= static_cast<int64_t>(rest.size()); d++) {
    for (int64_t i = 0; d == to && i < count; i++) order.push_back(from + i);
    if (d < static_cast<int64_t>(rest.size())) order.push_back(rest[static_cast<size_t>(d)]);
  }
  return op::permute(t, order);
}

// Where x[None, indices] puts the batch: in front, unless indices that do not lie side by side put
// their dimensions there.
bool separated(const Selection& chosen) {
  size_t first = 0;
  while (first < chosen.indices.size() && !chosen.indices[first].defined()) first++;
  return first != chosen.place;
}

}  // namespace

void index(Call& call) {
  const Selection chosen(call, call.stack[1].tensors(), call.tensor(0).dim());
  const auto place = static_cast<int64_t>(chosen.place);
  Tensor result;
  {
    const Outside outside(call.level);
    if (call.has_batch(0) && chosen.batched) {
      // [B, indices, others]: the number of the sample stands in front unless place is 0.
      result = op::index(call.value(0), batch_indices(call, chosen, true));
      result = move_dims(result, 1, chosen.ndim, place + 1);
    } else if (call.has_batch(0)) {
      result = op::index(call.value(0), batch_indices(call, chosen, false));
      if (separated(chosen)) result = move_dims(result, chosen.ndim, 1, 0);
    } else {
      TensorList all = batch_indices(call, chosen, false);
      all.erase(all.begin());
      result = op::index(call.tensor(0), all);
      result = move_dims(result, place, 1, 0);
    }
  }
  call.give(result);
}

// (self, dim, index): x[:, ..., index] where the samples' indices differ.
void index_select(Call& call) {
  if (!call.has_batch(2) || call.tensor(0).dim() == 0) return along(call);
  const ExcludeKeys below(kDifferentiationKeys);
  const Tensor& index = call.tensor(2);
  TensorList indices(static_cast<size_t>(call.stack[1].integer()));
  indices.push_back(index.dim() == 0 ? op::unsqueeze(index, 0) : index);
  call.stack = {op::index(call.tensor(0), indices)};
}

// (self, indices, values, accumulate)
void index_put_(Call& call) {
  const Selection chosen(call, call.stack[1].tensors(), call.tensor(0).dim());
  Stack args = call.stack;
  {
    const Outside outside(call.level);
    // All indices are tensors or begin behind the numbers: their dimensions lie in front.
    args[0] = call.value(0);
    args[1] = batch_indices(call, chosen, true);
    Tensor values = call.value_or_plain(2);
    if (chosen.place > 0) {  // [B, before, indices, after] as [B, indices, before, after]
      const int64_t missing = chosen.dims - call.tensor(2).dim();
      values = call.with_batch(2);
      if (missing > 0) values = pad_dims(values, chosen.dims);
      values = move_dims(values, 1 + static_cast<int64_t>(chosen.place), chosen.ndim, 1);
    } else if (call.has_batch(2)) {
      values = pad_dims(values, chosen.dims);
    }
    args[2] = values;
    op::index_put_(args[0].tensor(), args[1].tensors(), values, args[3].boolean());
    args = {args[0]};
  }
  finish(call, args);
}

// (weight, indices, padding_idx, scale_grad_by_freq, sparse): tables one below the other; a
// sample's rows begin at its number times theirs.
void embedding(Call& call) {
  const bool plain = call.stack[2].integer() < 0 && !call.stack[3].boolean();
  if (call.has_batch(0) && !plain) return by_samples(call);  // the gradient looks at each table
  Stack args = call.stack;
  {
    const Outside outside(call.level);
    if (call.has_batch(0)) {
      const Tensor tables = call.value(0), rows = call.with_batch(1);
      const Tensor starts =
          op::mul(sample_numbers(call, rows.dim(), rows.device()), Tensor(Scalar(tables.size(1))));
      args[0] = fold(tables);
      args[1] = op::add(rows, starts, Scalar(int64_t{1}));
    } else {
      args[1] = call.value(1);
    }
    run(call, args);
  }
  finish(call, args);
}

// (gy, indices, num_weights, padding_idx, scale_grad_by_freq): tables as above.
void embedding_dense_backward(Call& call) {
  Stack args = call.stack;
  {
    const Outside outside(call.level);
    const int64_t rows = args[2].integer(), padding = args[3].integer();
    Tensor gy = call.with_batch(0);
    const Tensor indices = call.with_batch(1);
    if (padding >= 0)
      gy = op::mul(gy, op::unsqueeze(op::to_dtype(op::ne(indices, Tensor(Scalar(padding))),
                                                  gy.dtype(), false, std::nullopt),
                                     -1));
    const Tensor starts =
        op::mul(sample_numbers(call, indices.dim(), indices.device()), Tensor(Scalar(rows)));
    args[0] = gy;
    args[1] = op::add(indices, starts, Scalar(int64_t{1}));
    args[2] = rows * call.size();
    args[3] = int64_t{-1};
    run(call, args);
    args[0] = unfold(args[0].tensor(), call.size());
  }
  finish(call, args);
}

}  // namespace taeda::batching
