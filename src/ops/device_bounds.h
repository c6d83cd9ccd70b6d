// Indices on CUDA devices that operators check which are made of others: by a kernel, for the host
// does not wait for their values. What is wrong raises where it next does (device/fault.h).
#pragma once

#include <string_view>

#include "taeda/error.h"
#include "taeda/tensor.h"

namespace taeda::on_device {

// What an index outside [0, size) raises. Messages have holes for the index and the size, and one
// for the dimension between them where that is given.
struct Outside {
  std::string_view message;
  std::string_view below = {};  // for indices below 0; else the same
  ErrorKind error = ErrorKind::kIndex;
  OptInt dim = {};
  OptInt except = {};  // an index that may be anywhere
};
// Whether the indices are a device's, and so looked at by it.
bool checks_indices(const Tensor& index, int64_t size, const Outside& outside);

}  // namespace taeda::on_device

// What the table asks for, as rules.NAME(...).
namespace taeda::rules {

// checks_indices, with what RuntimeErrors say.
bool in_range_by_device(const Tensor& index, int64_t size, std::string_view found,
                        std::string_view below = {});
// The same of classes, and of indices along a dimension, for an operator by name: IndexErrors. True
// on all devices.
bool targets_by_device(std::string_view op, const Tensor& target, int64_t classes,
                       int64_t ignore_index);
bool indices_by_device(std::string_view op, const Tensor& index, int64_t dim, int64_t size);

}  // namespace taeda::rules
