#include "ops/view_rules.h"

#include "core/layout.h"
#include "ops/contract.h"

namespace taeda::rules {
namespace {

constexpr const char* kOtherSize =
    "shape '{}' is invalid for input of size {}\nFix: the sizes of a view multiply to {}; one of "
    "them may be -1, for what is left";

}  // namespace

DimVector inverse_permutation(IntSpan dims) {
  DimVector inverse(dims.size());
  const int64_t n = static_cast<int64_t>(dims.size());
  for (int64_t i = 0; i < n; i++)
    inverse[static_cast<size_t>(contract::wrap_dim(dims[static_cast<size_t>(i)], n))] = i;
  return inverse;
}

bool is_true(const Tensor& flag) { return flag.item_scalar().to_bool(); }

DimVector infer_size(IntSpan shape, int64_t numel) {
  DimVector out(shape);
  int64_t known = 1, unknown = -1;
  for (size_t i = 0; i < out.size(); i++) {
    if (out[i] == -1) {
      TD_CHECK(unknown < 0, "only one dimension can be inferred");
      unknown = static_cast<int64_t>(i);
    } else {
      TD_CHECK(out[i] >= 0, "invalid shape dimension {}", out[i]);
      known = checked_mul(known, out[i], "shape");
    }
  }
  if (unknown >= 0) {
    TD_CHECK(known != 0,
             "cannot reshape tensor of {} elements into shape {} because the unspecified dimension "
             "size -1 can be any "
             "value and is ambiguous",
             numel, shape);
    TD_CHECK(numel % known == 0, kOtherSize, shape, numel, numel);
    out[static_cast<size_t>(unknown)] = numel / known;
  } else {
    TD_CHECK(known == numel, kOtherSize, shape, numel, numel);
  }
  return out;
}

std::optional<DimVector> view_strides(IntSpan sizes, IntSpan strides, IntSpan shape) {
  DimVector out(shape.size());
  if (checked_numel(sizes) == 0) return contiguous_strides(shape);
  int64_t v = static_cast<int64_t>(shape.size()) - 1;
  int64_t run = 1, chunk_stride = strides.empty() ? 1 : strides.back();
  for (int64_t d = static_cast<int64_t>(sizes.size()) - 1; d >= 0; d--) {
    const auto i = static_cast<size_t>(d);
    run *= sizes[i];
    const bool ends = d == 0 || (sizes[i - 1] != 1 && strides[i - 1] != run * chunk_stride);
    if (!ends) continue;
    int64_t filled = 1;
    while (v >= 0 && (filled < run || shape[static_cast<size_t>(v)] == 1)) {
      out[static_cast<size_t>(v)] = filled * chunk_stride;
      filled *= shape[static_cast<size_t>(v)];
      v--;
    }
    if (filled != run) return std::nullopt;
    if (d > 0) {
      chunk_stride = strides[i - 1];
      run = 1;
    }
  }
  if (sizes.empty()) {
    for (; v >= 0; v--) out[static_cast<size_t>(v)] = 1;
  }
  return v == -1 ? std::optional(out) : std::nullopt;
}

}  // namespace taeda::rules
