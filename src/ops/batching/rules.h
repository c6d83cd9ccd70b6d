// How an operator runs on batched tensors. Which way it takes stands in its record
// (OperatorRecord::Batch, the table's `batch:`); all of them compute on the values of the batched
// arguments, whose dimension 0 is the batch, and wrap what comes of it.
#pragma once

#include <functional>

#include "ops/batching/level.h"
#include "ops/modes.h"
#include "ops/tensors_of.h"

namespace taeda::batching {

// A call at one level: the arguments, and after the rule the results.
struct Call {
  const Operator& op;
  Level& level;
  Stack& stack;

  int64_t size() const { return level.size; }
  const Tensor& tensor(size_t i) const { return stack[i].tensor(); }
  // The value of an argument that is batched at this level; undefined for others.
  Tensor value(size_t i) const { return value_at(tensor(i), level); }
  bool has_batch(size_t i) const { return is_at(tensor(i), level); }
  // The argument with the batch in front: where it has none, repeated without a copy.
  Tensor with_batch(size_t i) const;
  // The argument as the code outside of the level sees it.
  Tensor value_or_plain(size_t i) const { return has_batch(i) ? value(i) : tensor(i); }

  void give(const Tensor& result);  // with the batch in front
};

// Until the end of the scope, operators on batched tensors pass by the layers that differentiate,
// through which the call has come. What the code outside differentiates is computed outside.
class BelowDifferentiation {
 public:
  explicit BelowDifferentiation(Level& level) : level_(level), records_(level.records) {
    level.records = false;
  }
  ~BelowDifferentiation() { level_.records = records_; }
  BelowDifferentiation(const BelowDifferentiation&) = delete;
  BelowDifferentiation& operator=(const BelowDifferentiation&) = delete;

 private:
  const ExcludeKeys excluded_{kDifferentiationKeys};
  Level& level_;
  const bool records_;
};

// [B, 1, ..., 1, rest], so that a sample has `ndim` dimensions.
Tensor pad_dims(const Tensor& value, int64_t ndim);

// 0, 1, ..., of `ndim` dimensions, the first of which they lie along.
Tensor sample_numbers(const Call& call, int64_t ndim, Device device);

// [B, n, ...] as [B * n, ...], and back.
Tensor fold(const Tensor& value);
Tensor unfold(const Tensor& folded, int64_t size);
// [B, n, c, ...] as [n, B * c, ...] and [B, c] as [B * c], and back.
Tensor fold_channels(const Tensor& value);
Tensor unfold_channels(const Tensor& folded, int64_t size);

// The ways that records name.
void by_samples(
    Call& call, const std::function<void()>& before_each = [] {});
void pointwise(Call& call);
void leading(Call& call);
void first(Call& call);
void along(Call& call);
void folded(Call& call);
void by_channels(Call& call);
void randomly(Call& call);
void by_definition(Call& call);
[[noreturn]] void refuse(Call& call);

// Whether run_modes must stop for vmap: an argument is batched, or a random operator is called.
bool concerns(const OperatorRecord& record, const void* const* args);
// The handler of kBatched for all operators.
void handle(const Operator& op, KeySet keys, Stack& stack);

// Whether a tensor is batched, or one of a list, in an operator's arguments.
inline bool any_batched(const Stack& stack, const Level& level) {
  bool any = false;
  each_tensor(stack, [&](const Tensor& t) { any |= is_at(t, level); });
  return any;
}

// The operator on values, while outside of the level; `args` become its results.
void run(const Call& call, Stack& args);
// Makes the values in `results` what the call returns: written arguments are returned as they are,
// views share the storage of what they look into.
void finish(Call& call, Stack& results);

}  // namespace taeda::batching
