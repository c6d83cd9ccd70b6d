// Connectionist temporal classification [Graves et al. 2006]: the forward recursion over frames.
#include <algorithm>
#include <vector>

#include "op/_ctc_end.h"
#include "op/_ctc_frame.h"
#include "op/_ctc_losses.h"
#include "op/apply_reduction.h"
#include "op/bitwise_and.h"
#include "op/cat.h"
#include "op/clamp.h"
#include "op/constant_pad_nd.h"
#include "op/ctc_loss.h"
#include "op/div.h"
#include "op/narrow.h"
#include "op/ne.h"
#include "op/new_full.h"
#include "op/new_zeros.h"
#include "op/reshape.h"
#include "op/slice.h"
#include "op/squeeze.h"
#include "op/stack.h"
#include "op/to_device.h"
#include "op/to_dtype.h"
#include "op/unsqueeze.h"
#include "ops/batching/level.h"
#include "ops/device_bounds.h"
#include "ops/expr.h"
#include "ops/host.h"
#include "taeda/values.h"

namespace taeda::impl {

namespace {

constexpr double kNone = -1e30;  // the logarithm of no probability, of which differences are finite

Tensor as_integers(const Tensor& t, Device device) {
  const Tensor there = t.device() == device ? t : op::to_device(t, device, false);
  return op::to_dtype(there, DType::kInt64, false, std::nullopt);
}

using Counts = std::vector<int64_t>;

Counts read(const Tensor& lengths) {
  const HostElements<int64_t> values(as_integers(lengths, lengths.device()));
  return {values.begin(), values.end()};
}

// The lengths of inputs and labels, for which the host waits once if they lie on one device. None
// of samples of vmap, whose lengths must not decide what runs, and none where nothing has values.
struct Lengths {
  Lengths(const Tensor& input_lengths, const Tensor& target_lengths) {
    if (batching::is_batched(input_lengths) || batching::is_batched(target_lengths)) return;
    if (input_lengths.device() == target_lengths.device()) {
      inputs = read(op::cat(TensorList{input_lengths, target_lengths}, 0));
      if (inputs.empty()) return;
      const auto middle = inputs.begin() + static_cast<ptrdiff_t>(input_lengths.numel());
      targets.assign(middle, inputs.end());
      inputs.erase(middle, inputs.end());
    } else {
      inputs = read(input_lengths);
      targets = read(target_lengths);
    }
  }
  Counts inputs, targets;
};

// Labels as one row a sequence, padded with 0; from rows or from one concatenation.
Tensor label_rows(const Tensor& targets, const Tensor& lengths, const Counts& known) {
  if (targets.dim() == 2) return targets;
  check_has_elements("ctc_loss", lengths);
  const Counts counts = known.empty() ? read(lengths) : known;
  int64_t total = 0;
  for (const int64_t count : counts) total = expr::add(total, count);
  TD_CHECK(targets.size(0) == total,
           "ctc_loss: expected targets to have size {} at dimension 0, the sum of target_lengths, "
           "but got size {}",
           total, targets.size(0));
  int64_t most = 1, start = 0;
  for (const int64_t count : counts) most = std::max(most, count);
  TensorList rows;
  for (const int64_t count : counts) {
    const Tensor row = op::narrow(targets, 0, start, count);
    rows.push_back(op::constant_pad_nd(row, DimVector{0, most - count}, Scalar(int64_t{0})));
    start += count;
  }
  return rows.empty() ? op::new_zeros(targets, DimVector{0, most}, {}) : op::stack(rows, 0);
}

void check_lengths(const Tensor& log_probs, const Tensor& labels, const Lengths& known) {
  const int64_t frames = log_probs.size(0);
  for (const int64_t length : known.inputs)
    TD_CHECK(0 <= length && length <= frames,
             "Expected input_lengths to have value at most {}, but got value {}", frames, length);
  for (const int64_t length : known.targets)
    TD_CHECK(0 <= length && length <= labels.size(1),
             "Expected tensor to have size at least {} at dimension 1, but got size {} for targets",
             length, labels.sizes());
}

// Labels with blanks between and around them.
Tensor states_of(const Tensor& labels, int64_t blank) {
  const Tensor blanks = op::new_full(labels, labels.sizes(), Scalar(blank), {});
  const Tensor pairs = op::stack(TensorList{blanks, labels}, 2);
  const Tensor end = op::new_full(labels, DimVector{labels.size(0), 1}, Scalar(blank), {});
  const DimVector flat{labels.size(0), 2 * labels.size(1)};
  return op::cat(TensorList{op::reshape(pairs, flat), end}, 1);
}

}  // namespace

std::tuple<Tensor, Tensor> _ctc_losses(const Tensor& log_probs, const Tensor& targets,
                                       const Tensor& input_lengths, const Tensor& target_lengths,
                                       int64_t blank, bool zero_infinity) {
  TD_CHECK_IMPLEMENTED(log_probs.dtype() == DType::kFloat32 || log_probs.dtype() == DType::kFloat64,
                       "\"ctc_loss\" not implemented for '{}'",
                       scalar_type_name(log_probs.dtype()));
  TD_CHECK(log_probs.dim() == 3, "ctc_loss: log_probs must have 2 or 3 dimensions, got {}",
           log_probs.dim());
  const int64_t frames = log_probs.size(0), batch = log_probs.size(1), classes = log_probs.size(2);
  TD_CHECK(batch > 0, "ctc_loss: expected a sequence at least, got log_probs of size {}",
           log_probs.sizes());
  const auto flat = [](const Tensor& t) { return op::reshape(t, DimVector{-1}); };
  const Lengths known(flat(input_lengths), flat(target_lengths));
  const Tensor inputs = as_integers(flat(input_lengths), log_probs.device()),
               lengths = as_integers(flat(target_lengths), log_probs.device()),
               labels =
                   as_integers(label_rows(targets, lengths, known.targets), log_probs.device());
  TD_CHECK(0 <= blank && blank < classes, "blank must be in label range");
  TD_CHECK(inputs.numel() == batch && lengths.numel() == batch,
           "input_lengths and target_lengths must be of size {}, the batch's, got {} and {}", batch,
           inputs.numel(), lengths.numel());
  check_lengths(log_probs, labels, known);
  const Tensor states = states_of(labels, blank);
  on_device::checks_indices(
      states, classes,
      {"ctc_loss(): target {} is out of range: there are {} classes", {}, ErrorKind::kRuntime});
  // A label may follow another one without the blank between them.
  const Tensor later = op::slice(states, 1, 2, std::nullopt, 1);
  const Tensor may_skip =
      op::bitwise_and(op::ne(later, Tensor(blank)), op::ne(later, op::slice(states, 1, 0, -2, 1)));
  const DimVector first{batch, 1}, others{batch, states.size(1) - 1};
  Tensor reached = op::cat(TensorList{op::new_zeros(log_probs, first, {}),
                                      op::new_full(log_probs, others, Scalar(kNone), {})},
                           1);
  for (int64_t frame = 0; frame < frames; frame++)
    reached = op::_ctc_frame(reached, log_probs, states, may_skip, inputs, frame);
  return {op::_ctc_end(reached, log_probs, inputs, lengths, zero_infinity), labels};
}

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                const Tensor& target_lengths, int64_t blank, std::string_view reduction,
                bool zero_infinity) {
  if (log_probs.dim() == 0 || targets.dim() == 0)
    fail(log_probs.dim() == 0 ? ErrorKind::kIndex : ErrorKind::kRuntime,
         "ctc_loss: expected log_probs of 2 or 3 dimensions and targets of 1 or 2, got {} and {}",
         log_probs.dim(), targets.dim());
  const bool single = log_probs.dim() == 2;
  const Tensor x = single ? op::unsqueeze(log_probs, 1) : log_probs,
               y = single && targets.dim() == 1 ? op::unsqueeze(targets, 0) : targets;
  const Tensor losses =
      std::get<0>(op::_ctc_losses(x, y, input_lengths, target_lengths, blank, zero_infinity));
  if (reduction == "none") return single ? op::squeeze_dim(losses, DimVector{0}) : losses;
  if (reduction == "sum") return op::apply_reduction(losses, reduction);
  const Tensor lengths = as_integers(op::reshape(target_lengths, DimVector{-1}), losses.device());
  const Tensor counts = op::to_dtype(op::clamp(lengths, Scalar(int64_t{1}), std::nullopt),
                                     losses.dtype(), false, std::nullopt);
  return op::apply_reduction(op::div(losses, counts), reduction);
}

Tensor ctc_loss_of_ints(const Tensor& log_probs, const Tensor& targets, IntSpan input_lengths,
                        IntSpan target_lengths, int64_t blank, std::string_view reduction,
                        bool zero_infinity) {
  const auto lengths = [](IntSpan values) {
    return detail::tensor_from(values.data(), values.size(), {static_cast<int64_t>(values.size())});
  };
  return op::ctc_loss(log_probs, targets, lengths(input_lengths), lengths(target_lengths), blank,
                      reduction, zero_infinity);
}

}  // namespace taeda::impl
