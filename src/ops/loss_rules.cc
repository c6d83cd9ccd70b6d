#include "ops/loss_rules.h"

#include "core/layout.h"
#include "op/amin.h"
#include "op/lt.h"
#include "op/to_dtype.h"
#include "ops/batching/level.h"
#include "ops/host.h"
#include "ops/reduce_rules.h"

namespace taeda::rules {

std::string_view reduction(std::string_view reduction, OptBool size_average, OptBool reduce) {
  if (size_average || reduce) {
    if (!reduce.value_or(true)) return "none";
    return size_average.value_or(true) ? "mean" : "sum";
  }
  TD_CHECK_VALUE(reduction == "none" || reduction == "mean" || reduction == "sum",
                 "{} is not a valid value for reduction", reduction);
  return reduction;
}

bool loss_sizes_match(std::string_view, const Tensor& input, const Tensor& target) {
  broadcast_shapes(input.sizes(), target.sizes());
  return true;
}

namespace {
// The first element outside [0, size) other than `except`; -1 for none is told by `found`.
bool outside(const Tensor& index, int64_t size, OptInt except, int64_t* found) {
  const ExcludeKeys plain(KeySet(Key::kAutograd) | Key::kForward);
  const Tensor all = batching::all_samples(op::to_dtype(index, DType::kInt64, false, {}));
  for (int64_t i : HostElements<int64_t>(all)) {
    if ((i < 0 || i >= size) && !(except && i == *except)) {
      *found = i;
      return true;
    }
  }
  return false;
}
constexpr const char* kBatchSizes =
    "Expected input batch_size ({}) to match target batch_size ({}).\nFix: each sample needs one "
    "target: look at how the input is flattened and at the last batch";

}  // namespace

bool check_class_target(const Tensor& input, const Tensor& target, int64_t ignore_index) {
  const int64_t ndim = input.dim();
  if (ndim <= 2) {
    const int64_t given = target.dim() ? target.size(0) : 0;
    TD_CHECK_VALUE(ndim == 1 || input.size(0) == given, kBatchSizes, input.size(0), given);
    TD_CHECK(target.dim() <= 1, "0D or 1D target tensor expected, multi-target not supported");
    TD_CHECK_VALUE(ndim != 1 || target.dim() == 0 || given == 1,
                   "For 1D input, 1D target must have size 1, but got target size: {}\nFix: one "
                   "sample has one class; a batch's scores are (batch, classes)",
                   given);
  } else {
    TD_CHECK_VALUE(target.dim() > 0 && input.size(0) == target.size(0), kBatchSizes, input.size(0),
                   target.dim() ? target.size(0) : 1);
    DimVector expected(input.sizes());
    expected.erase(1);
    TD_CHECK(target.sizes() == IntSpan(expected), "Expected target size {}, got {}", expected,
             target.sizes());
  }
  TD_CHECK(target.dtype() == DType::kInt64 || target.dtype() == DType::kUInt8,
           "expected target dtype to be Long or Byte, but got {}\nFix: classes are integers: "
           "target.long(); probabilities of classes have the input's shape and floating dtype",
           scalar_type_name(target.dtype()));
  if (target.device().type == DeviceType::kCUDA)
    return true;  // kernels look (ops/device_bounds.h), and raise when the host waits
  int64_t bad = 0;
  const int64_t classes = input.size(ndim == 1 ? 0 : 1);
  TD_CHECK_INDEX(!outside(target, classes, ignore_index, &bad),
                 "Target {} is out of bounds. A target is the index of one of the input's {} "
                 "classes, from 0 to {}, or ignore_index, {}.",
                 bad, classes, classes - 1, ignore_index);
  return true;
}

bool in_range(const Tensor& index, int64_t size) {
  int64_t bad = 0;
  return !outside(index, size, std::nullopt, &bad);
}

bool not_negative(const Tensor& t) {
  if (t.numel() == 0 || is_complex(t.dtype())) return true;
  const ExcludeKeys plain(KeySet(Key::kAutograd) | Key::kForward);
  return !known_true(op::lt(op::amin(t, {}, false), Tensor(0)));
}

bool variance_sizes_match(const Tensor& input, const Tensor& var) {
  const IntSpan a = input.sizes(), b = var.sizes();
  if (a == b) return true;
  if (b.size() + 1 == a.size()) return a.slice(0, b.size()) == b;
  if (b.size() != a.size()) return false;
  int64_t differing = 0;  // the sum of sizes that differ: one dimension is broadcast
  for (size_t i = 0; i < a.size(); i++) differing += a[i] == b[i] ? 0 : b[i];
  return differing == 1;
}

}  // namespace taeda::rules
