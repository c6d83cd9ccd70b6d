// The part of the matrix product kernels that operators call beside the table's own kernels.
#pragma once

#include "kernels/launch.h"

namespace taeda::cpu {

// result = input weight^T + bias. input: (rows, in_features); weight: (out_features, in_features);
// bias, when present, broadcasts to (rows, out_features).
void linear_rows(const View& result, const View& input, const View& weight, const View& bias);

}  // namespace taeda::cpu

namespace taeda {
TD_KERNEL(linear_rows);
}  // namespace taeda
