// nn.functional.embedding_bag: sums, means or maxima of rows of a table, by bags of indices.
#include <algorithm>

#include "op/_bag_maxima.h"
#include "op/arange.h"
#include "op/bag_sum.h"
#include "op/bitwise_not.h"
#include "op/cat.h"
#include "op/clamp.h"
#include "op/cumsum.h"
#include "op/detach.h"
#include "op/diff.h"
#include "op/div.h"
#include "op/embedding.h"
#include "op/embedding_bag.h"
#include "op/embedding_renorm_.h"
#include "op/full.h"
#include "op/functional_embedding.h"
#include "op/index.h"
#include "op/index_add.h"
#include "op/index_fill.h"
#include "op/masked_fill.h"
#include "op/mul.h"
#include "op/narrow.h"
#include "op/ne.h"
#include "op/new_full.h"
#include "op/new_zeros.h"
#include "op/repeat_interleave.h"
#include "op/reshape.h"
#include "op/searchsorted.h"
#include "op/to_dtype.h"
#include "op/unsqueeze.h"
#include "ops/batching/level.h"
#include "ops/device_bounds.h"
#include "ops/host.h"
#include "taeda/warning.h"

namespace taeda::impl {

namespace {

// Whether values are not looked at: vmap's cannot be, for a device's the host would have to wait.
bool hides_values(const Tensor& t) {
  return batching::is_batched(t) || t.device().type == DeviceType::kCUDA;
}

Tensor wide(const Tensor& t) { return op::to_dtype(t, DType::kInt64, false, std::nullopt); }

// All indices in a row, where each bag begins and the last one ends, and the factors in a row.
struct Bags {
  Tensor indices, starts, scales;
};

constexpr std::string_view kFirstStart =
    "embedding_bag(): offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to "
    "start from position 0. However, got {}";

Tensor starts_of(const Tensor& offsets, int64_t total, bool include_last_offset) {
  const Tensor starts = wide(offsets);
  if (starts.numel() == 0) {
    TD_CHECK(!include_last_offset, "include_last_offset: number of offset should be at least 1");
    return op::new_zeros(starts, DimVector{1}, {});
  }
  // Where values are not looked at, the kernel checks them.
  const bool looked_at = batching::is_batched(starts) ||
                         on_device::checks_indices(op::narrow(starts, 0, 0, 1), 1,
                                                   {kFirstStart, {}, ErrorKind::kRuntime});
  if (!looked_at) {
    const HostElements<int64_t> values(starts);
    const int64_t first = values.size() ? values[0] : 0;
    const int64_t last = values.size() ? values[values.size() - 1] : 0;
    TD_CHECK(first == 0,
             "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
             "position 0. However, got {}",
             first);
    TD_CHECK(last <= total,
             "offsets[-1] can not be greater than input's length({}) but got offsets[-1] of {}",
             total, last);
  }
  if (include_last_offset) return starts;
  return op::cat(TensorList{starts, op::new_full(starts, DimVector{1}, Scalar(total), {})}, 0);
}

Bags bags_of(const Tensor& input, const Tensor& offsets, const Tensor& scales,
             bool include_last_offset) {
  if (input.dim() == 2) {
    TD_CHECK_VALUE(!offsets.defined(),
                   "if input is 2D, then offsets has to be None, as input is treated is a "
                   "mini-batch of fixed length sequences. However, found offsets of type Tensor");
    const int64_t length = std::max<int64_t>(input.size(1), 1);
    TensorOptions options(DType::kInt64);
    options.device = input.device();
    const Tensor starts = input.numel() == 0
                              ? op::new_zeros(wide(input), DimVector{input.size(0) + 1}, {})
                              : op::arange_start(Scalar(int64_t{0}), Scalar(input.numel() + 1),
                                                 Scalar(length), options);
    const DimVector row{-1};
    return {op::reshape(input, row), starts,
            scales.defined() ? op::reshape(scales, row) : Tensor()};
  }
  TD_CHECK_VALUE(input.dim() == 1,
                 "input has to be 1D or 2D Tensor, but got Tensor of dimension {}", input.dim());
  TD_CHECK_VALUE(offsets.defined(), "offsets has to be a 1D Tensor but got None");
  TD_CHECK_VALUE(offsets.dim() == 1, "offsets has to be a 1D Tensor");
  return {input, starts_of(offsets, input.numel(), include_last_offset), scales};
}

// Indices and starts, by a sum without columns.
void check_values(const Bags& bags, const Tensor& weight) {
  op::bag_sum(op::narrow(op::detach(weight), 1, 0, 0), wide(bags.indices), bags.starts,
              bags.scales);
}

// What does not go together.
void check_bags(const Tensor& input, const Tensor& weight, const Tensor& offsets, bool by_frequency,
                std::string_view mode, bool sparse, const Tensor& scales) {
  TD_CHECK_VALUE(mode == "sum" || mode == "mean" || mode == "max",
                 "mode has to be one of sum, mean or max");
  TD_CHECK_IMPLEMENTED(!scales.defined() || mode == "sum",
                       "embedding_bag: per_sample_weights was not None. per_sample_weights is only "
                       "supported for mode='sum' (got mode='{}'). Please open a feature request on "
                       "GitHub.",
                       mode);
  TD_CHECK_VALUE(mode != "max" || !by_frequency,
                 "max mode does not support scaling the gradient by the frequency");
  TD_CHECK_VALUE(mode != "max" || !sparse, "max mode does not support sparse weights");
  TD_CHECK_VALUE(
      !scales.defined() || scales.sizes() == input.sizes(),
      "embedding_bag: If per_sample_weights ({}) is not None, then it must have the same "
      "shape as the input ({})",
      scales.sizes(), input.sizes());
  TD_CHECK_VALUE(weight.dim() == 2, "weight has to be a 2D Tensor, but got Tensor of dimension {}",
                 weight.dim());
  for (const Tensor* given : {&input, &offsets})
    TD_CHECK(!given->defined() || !is_inexact(given->dtype()),
             "embedding_bag(): expected {} to be of int64 or int32, but got {}",
             given == &input ? "indices" : "offsets", given->dtype());
}

// The bag of each index; behind all bags the number of one for those that do not count.
Tensor bag_numbers(const Bags& bags, const Tensor& lengths, const Tensor& keep) {
  TensorOptions options(DType::kInt64);
  options.device = bags.starts.device();
  if (!hides_values(bags.starts) && !keep.defined())
    return op::repeat_interleave_self_tensor(op::arange(Scalar(lengths.numel()), options), lengths,
                                             {}, {});
  const Tensor numbers = op::arange(Scalar(bags.indices.numel()), options);
  const Tensor ends = op::narrow(bags.starts, 0, 1, bags.starts.numel() - 1);
  const Tensor bag_of = op::searchsorted(ends, numbers, false, true, {}, {});
  if (!keep.defined()) return bag_of;
  return op::masked_fill_Scalar(bag_of, op::bitwise_not(keep), Scalar(bags.starts.numel() - 1));
}

Tensor averaged(const Tensor& total, const Tensor& lengths) {
  const Tensor counts = op::clamp(lengths, Scalar(int64_t{1}), std::nullopt);
  return op::div(total, op::unsqueeze(counts, 1));
}

// Bags made from the rows of all indices: for maxima, gradients scaled by frequency, and sparse
// ones. `keep`: which indices count, all where it is not defined.
Tensor bags_of_rows(Bags bags, const Tensor& weight, const Tensor& lengths, const Tensor& keep,
                    OptDouble max_norm, double norm_type, bool by_frequency, std::string_view mode,
                    bool sparse) {
  if (!hides_values(bags.starts) && !keep.defined()) {
    const Tensor end = op::narrow(bags.starts, 0, bags.starts.numel() - 1, 1);
    const HostElements<int64_t> used(end);
    if (used.size() > 0) bags.indices = op::narrow(bags.indices, 0, 0, used[0]);
  }
  const Tensor bag_of = bag_numbers(bags, lengths, keep);
  const Tensor rows =
      op::functional_embedding(bags.indices, weight, {}, max_norm, norm_type, by_frequency, sparse);
  const int64_t count = lengths.numel(), spare = hides_values(bag_of) ? 1 : 0;
  const Tensor zeros = op::new_zeros(weight, DimVector{count + spare, weight.size(1)}, {});
  if (mode == "max") return op::narrow(op::_bag_maxima(rows, bag_of, zeros), 0, 0, count);
  Tensor scaled = rows;
  if (bags.scales.defined()) {
    const Tensor scales = op::narrow(bags.scales, 0, 0, bags.indices.numel());
    scaled = op::mul(rows, op::unsqueeze(scales, 1));
  }
  const Tensor all = op::index_add(zeros, 0, bag_of, scaled, Scalar(int64_t{1}));
  const Tensor total = op::narrow(all, 0, 0, count);
  return mode == "mean" ? averaged(total, lengths) : total;
}

}  // namespace

Tensor embedding_bag(const Tensor& input, const Tensor& weight, const Tensor& offsets,
                     OptDouble max_norm, double norm_type, bool scale_grad_by_freq,
                     std::string_view mode, bool sparse, const Tensor& per_sample_weights,
                     bool include_last_offset, OptInt padding_idx) {
  if (weight.dtype() == DType::kInt64 && is_floating(input.dtype())) {
    warn(
        "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, "
        "input, ...)` is deprecated, and should now be `embedding_bag(input, weight, ...)`.");
    return op::embedding_bag(weight, input, offsets, max_norm, norm_type, scale_grad_by_freq, mode,
                             sparse, per_sample_weights, include_last_offset, padding_idx);
  }
  check_bags(input, weight, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights);
  Bags bags = bags_of(input, offsets, per_sample_weights, include_last_offset);
  const bool by_rows = mode == "max" || scale_grad_by_freq || sparse;
  const int64_t rows = weight.size(0);
  TD_CHECK(!padding_idx || (-rows <= *padding_idx && *padding_idx < rows),
           "embedding_bag(): padding_idx must be within the number of embeddings, -{} through {}, "
           "but got {}",
           rows, rows - 1, *padding_idx);
  // Before starts are counted with, or weight is scaled in place.
  if (padding_idx || max_norm || by_rows) check_values(bags, weight);
  Tensor table = weight, lengths = op::diff(bags.starts, 1, -1, {}, {}), keep;
  if (padding_idx) {
    const int64_t padding = *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
    keep = op::ne(bags.indices, Tensor(padding));
    const Tensor none = op::new_zeros(bags.starts, DimVector{1}, {});
    const Tensor kept = op::cat(TensorList{none, op::cumsum(keep, 0, {})}, 0);
    const Tensor starts = op::index(kept, TensorList{bags.starts});
    lengths = op::diff(starts, 1, -1, {}, {});
    if (!hides_values(bags.indices)) {
      if (bags.scales.defined()) bags.scales = op::index(bags.scales, TensorList{keep});
      bags.indices = op::index(bags.indices, TensorList{keep});
      bags.starts = starts;
      keep = {};
    } else if (!by_rows) {  // padding counts as a row of zeros
      TensorOptions options(DType::kInt64);
      options.device = weight.device();
      const Tensor row = op::full(DimVector{1}, Scalar(padding), options);
      table = op::index_fill_number(weight, 0, row, Scalar(int64_t{0}));
    }
  }
  if (by_rows)
    return bags_of_rows(bags, weight, lengths, keep, max_norm, norm_type, scale_grad_by_freq, mode,
                        sparse);
  if (max_norm) op::embedding_renorm_(op::detach(weight), bags.indices, *max_norm, norm_type);
  const Tensor total = op::bag_sum(table, wide(bags.indices), bags.starts, bags.scales);
  return mode == "mean" ? averaged(total, lengths) : total;
}

}  // namespace taeda::impl
