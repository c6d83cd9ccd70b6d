// DLPack: tensors handed between libraries in the same process (https://dmlc.github.io/dlpack,
// versions 0.x and 1.x).
//
// A capsule holds memory and its description, and keeps the memory alive until its deleter runs
// (dlpack.cc). Around it stands a protocol of Python methods: who asks for which device, copy and
// stream (dlpack_protocol.cc).
#pragma once

#include <cstdint>

#include "python/common.h"
#include "taeda/tensor.h"

namespace taeda::python {

// A device in the words of DLPack's ABI.
struct DLDevice {
  static constexpr int32_t kCpu = 1, kCuda = 2, kCudaHost = 3;
  int32_t type;
  int32_t id;
  friend bool operator==(DLDevice, DLDevice) = default;
};
// BufferError for what the other side does not have. Pinned memory (kCudaHost) is the CPU's.
DLDevice dlpack_device(Device device);
Device device_of(DLDevice device);

// New reference to a capsule of version 1 or of the kind before it.
PyObject* make_capsule(const Tensor& x, bool versioned);
// A tensor on a capsule's memory; the capsule cannot be opened again.
Tensor open_capsule(PyObject* capsule);

// x.__dlpack__(stream=..., max_version=..., dl_device=..., copy=...). The arguments may be null for
// None, but for `stream`: it is null where it was not given, and then nothing is synchronized.
PyObject* to_dlpack(const Tensor& x, PyObject* stream, PyObject* max_version, PyObject* dl_device,
                    PyObject* copy);
// x.__dlpack_device__(): a pair of DLDeviceType and number.
PyObject* dlpack_device_pair(const Tensor& x);
// torch.from_dlpack(object, device=..., copy=...); None is null.
Tensor from_dlpack(PyObject* object, PyObject* device, PyObject* copy);

}  // namespace taeda::python
