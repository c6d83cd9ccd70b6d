// Contracts and choices of the losses, called from the table as rules.NAME(...).
#pragma once

#include <string_view>

#include "taeda/tensor.h"

namespace taeda::rules {

// `reduction`, or what the deprecated size_average and reduce ask for; ValueError for unknown
// names.
std::string_view reduction(std::string_view reduction, OptBool size_average, OptBool reduce);
// Sizes of input and target broadcast; a warning where they differ.
bool loss_sizes_match(std::string_view op, const Tensor& input, const Tensor& target);
// Class indices for scores [c], [n, c] or [n, c, *]: sizes, dtype, and on the CPU range apart from
// ignore_index.
bool check_class_target(const Tensor& input, const Tensor& target, int64_t ignore_index);
// Whether all elements lie in [0, size).
bool in_range(const Tensor& index, int64_t size);
bool not_negative(const Tensor& t);
// A variance of input's sizes, or with a last dimension of 1, or without one.
bool variance_sizes_match(const Tensor& input, const Tensor& var);

}  // namespace taeda::rules
