// DLPack: tensors handed between libraries in the same process (https://dmlc.github.io/dlpack,
// versions 0.x and 1.x).
#pragma once

#include <cstdint>

#include "python/common.h"
#include "taeda/tensor.h"

namespace taeda::python {

// x.__dlpack__(max_version=..., copy=...): a capsule that keeps the memory alive until its deleter
// runs.
PyObject* to_dlpack(const Tensor& x, bool versioned);
// x.__dlpack_device__(): (1, 0) for the cpu.
PyObject* dlpack_device(const Tensor& x);

}  // namespace taeda::python
