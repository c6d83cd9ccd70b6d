// vmap of what selects by tensors of indices: the number of the sample becomes one more index.
#include "core/strides.h"
#include "op/copy_.h"
#include "op/cumsum.h"
#include "op/expand.h"
#include "op/index.h"
#include "op/index_put_.h"
#include "op/nonzero.h"
#include "op/permute.h"
#include "op/relu.h"
#include "op/reshape.h"
#include "op/sub.h"
#include "op/take.h"
#include "op/unbind.h"
#include "op/unsqueeze.h"
#include "op/view.h"
#include "op/where.h"
#include "ops/batching/rules.h"

namespace taeda::batching {
namespace {

// x[indices] of one sample: where indices lie, and what they make of the dimensions.
struct Selection {
  TensorList indices;     // one a dimension of a sample, undefined for a whole one; no masks
  bool batched = false;   // one of them has a batch
  bool adjacent = false;  // they lie side by side
  int64_t ndim = 0;       // of the broadcast indices
  size_t place = 0;       // the dimension of the result where theirs begin
  int64_t dims = 0;       // of a sample's result

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
  adjacent = count > 0 && last - first + 1 == count;
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
      // Indices that do not lie side by side put their dimensions in front of the batch.
      if (!chosen.adjacent) result = move_dims(result, chosen.ndim, 1, 0);
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
  const BelowDifferentiation below(call.level);
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

// (self, mask): of a mask that all samples share.
void masked_select(Call& call) {
  if (call.has_batch(1)) refuse(call);
  const BelowDifferentiation below(call.level);
  const Tensor &self = call.tensor(0), &mask = call.tensor(1);
  const DimVector sizes = broadcast_shapes(self.sizes(), mask.sizes());
  const Tensor all = op::expand(self, sizes, false);
  call.stack = {op::index(all, {op::expand(mask, sizes, false)})};
}

// (self, index): elements of all samples by their row-major indices.
void take(Call& call) {
  const BelowDifferentiation below(call.level);
  call.stack = {op::index(op::reshape(call.tensor(0), {-1}), {call.tensor(1)})};
}

// (self, index, source, accumulate): x.view(-1)[index] = source, on a copy where there is no such
// view.
void put_(Call& call) {
  const BelowDifferentiation below(call.level);
  const Tensor self = call.tensor(0), flat = op::reshape(self, {-1});
  op::index_put_(flat, {op::reshape(call.tensor(1), {-1})}, op::reshape(call.tensor(2), {-1}),
                 call.stack[3].boolean());
  if (flat.storage() != self.storage()) op::copy_(self, op::view(flat, self.sizes()), false);
  call.stack = {self};
}

// (self, mask, source): what is hit n-th takes the n-th element of the source.
void masked_scatter_(Call& call) {
  const Tensor self = call.tensor(0), &source = call.tensor(2);
  if (source.numel() == 0) return by_samples(call);
  const BelowDifferentiation below(call.level);
  const Tensor hit = op::expand(call.tensor(1), self.sizes(), false);
  const Tensor count = op::cumsum(op::reshape(hit, {-1}), 0, DType::kInt64);
  // 0 in front of the first hit; too few elements are an index out of range.
  const Tensor at = op::relu(op::sub(count, Tensor(Scalar(int64_t{1})), Scalar(int64_t{1})));
  const Tensor taken = op::reshape(op::take(source, at), self.sizes());
  op::copy_(self, op::where(hit, taken, self), false);
  call.stack = {self};
}

}  // namespace taeda::batching
