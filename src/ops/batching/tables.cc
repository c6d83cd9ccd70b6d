// vmap of what reads rows of tables by indices, and of bags of them: the samples' tables lie one
// below the other, and the indices of each begin where its table does.
#include "op/add.h"
#include "op/cat.h"
#include "op/constant_pad_nd.h"
#include "op/ge.h"
#include "op/lt.h"
#include "op/mul.h"
#include "op/ne.h"
#include "op/reshape.h"
#include "op/slice.h"
#include "op/to_dtype.h"
#include "op/unsqueeze.h"
#include "op/where.h"
#include "ops/batching/rules.h"

namespace taeda::batching {
namespace {

Tensor number(int64_t value) { return Tensor(Scalar(value)); }

// Indices [B, ...] below `end` of each sample's `size` rows as those of B * size rows. One that is
// out of range for its sample is out of range for all.
Tensor among_all(const Call& call, const Tensor& indices, int64_t size, int64_t end) {
  const Tensor starts =
      op::mul(sample_numbers(call, indices.dim(), indices.device()), number(size));
  const Tensor behind = number(call.size() * size + 1);
  const Tensor shift = op::where(op::ge(indices, number(end)), behind, starts);
  return op::add(indices, op::where(op::lt(indices, number(0)), number(0), shift),
                 Scalar(int64_t{1}));
}
Tensor among_all(const Call& call, const Tensor& indices, int64_t size) {
  return among_all(call, indices, size, size);
}

// The starts [m + 1] of the samples' bags as one list. Between two samples lies a bag of indices
// that belong to none, so that each has m + 1 bags.
Tensor bag_starts(const Call& call, size_t starts, size_t indices) {
  const int64_t count = call.tensor(indices).numel();
  const Tensor all = fold(among_all(call, call.with_batch(starts), count, count + 1));
  return op::cat({{all, op::slice(all, 0, -1, {}, 1)}}, 0);
}
// What bags gave, [B * (m + 1), d], without those that belong to no sample; and the reverse, with
// zeros for them.
Tensor without_gaps(const Call& call, const Tensor& rows) {
  return op::slice(unfold(rows, call.size()), 1, 0, -1, 1);
}
Tensor with_gaps(const Tensor& value) {
  return fold(op::constant_pad_nd(value, {0, 0, 0, 1}, Scalar(int64_t{0})));
}
// A table [n, d] and its indices [k] for the whole batch: where it has none, all read the same.
void join_tables(const Call& call, Stack& args, size_t table, size_t indices) {
  const Tensor rows = call.with_batch(indices);
  const bool several = call.has_batch(table);
  args[indices] = fold(several ? among_all(call, rows, call.tensor(table).size(0)) : rows);
  if (several) args[table] = fold(call.value(table));
}
void fold_scales(const Call& call, Stack& args, size_t scales) {
  if (call.tensor(scales).defined()) args[scales] = fold(call.with_batch(scales));
}

}  // namespace

// (weight, indices, padding_idx, scale_grad_by_freq, sparse): tables one below the other; a
// sample's rows begin at its number times theirs.
void embedding(Call& call) {
  const bool plain = call.stack[2].integer() < 0 && !call.stack[3].boolean();
  if (call.has_batch(0) && !plain) return by_samples(call);  // the gradient looks at each table
  Stack args = call.stack;
  {
    const Outside outside(call.level);
    if (call.has_batch(0)) {
      args[0] = fold(call.value(0));
      args[1] = among_all(call, call.with_batch(1), call.tensor(0).size(0));
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
      gy = op::mul(gy, op::unsqueeze(op::to_dtype(op::ne(indices, number(padding)), gy.dtype(),
                                                  false, std::nullopt),
                                     -1));
    args[0] = gy;
    args[1] = among_all(call, indices, rows);
    args[2] = rows * call.size();
    args[3] = int64_t{-1};
    run(call, args);
    args[0] = unfold(args[0].tensor(), call.size());
  }
  finish(call, args);
}

// (weight, indices, starts, scales)
void bag_sum(Call& call) {
  Stack args = call.stack;
  {
    const Outside outside(call.level);
    join_tables(call, args, 0, 1);
    args[2] = bag_starts(call, 2, 1);
    fold_scales(call, args, 3);
    run(call, args);
    args[0] = without_gaps(call, args[0].tensor());
  }
  finish(call, args);
}

// (x, indices, starts, scales, num_weights)
void bag_sum_backward(Call& call) {
  Stack args = call.stack;
  {
    const Outside outside(call.level);
    const int64_t rows = args[4].integer();
    args[0] = with_gaps(call.with_batch(0));
    args[1] = fold(among_all(call, call.with_batch(1), rows));
    args[2] = bag_starts(call, 2, 1);
    fold_scales(call, args, 3);
    args[4] = rows * call.size();
    run(call, args);
    args[0] = unfold(args[0].tensor(), call.size());
  }
  finish(call, args);
}

// (x, weight, indices, starts)
void bag_dots(Call& call) {
  Stack args = call.stack;
  {
    const Outside outside(call.level);
    args[0] = with_gaps(call.with_batch(0));
    join_tables(call, args, 1, 2);
    args[3] = bag_starts(call, 3, 2);
    run(call, args);
    args[0] = unfold(args[0].tensor(), call.size());
  }
  finish(call, args);
}

}  // namespace taeda::batching
