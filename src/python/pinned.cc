#include "python/pinned.h"

#include <optional>

#include "core/layout.h"
#include "device/device.h"
#include "device/memory.h"
#include "op/copy_.h"
#include "op/detach.h"
#include "taeda/error.h"
#include "taeda/storage.h"

namespace taeda::python {
namespace {

Tensor empty_pinned(const Tensor& like) {
  const DimVector strides = is_dense_layout(like.sizes(), like.strides())
                                ? DimVector(like.strides())
                                : contiguous_strides(like.sizes());
  const int64_t nbytes = like.numel() * item_size(like.dtype());
  void* const memory = cuda::allocate_pinned(nbytes);
  Ref<Storage> storage =
      Storage::wrap(memory, nbytes, DeviceType::kCPU, cuda::release_pinned, memory);
  storage->set_movable();
  auto impl = make_ref<TensorImpl>(std::move(storage), like.dtype(), DeviceType::kCPU);
  impl->set_layout(like.sizes(), strides, 0);
  return Tensor(std::move(impl));
}

}  // namespace

bool is_pinned(const Tensor& x) {
  return x.device().is_cpu() && cuda::is_initialized() && x.storage()->data() &&
         cuda::is_pinned(x.storage()->data());
}

Tensor pinned(const Tensor& x) {
  TD_CHECK(cuda::device_count() > 0, "Cannot access accelerator device when none is available.");
  TD_CHECK(x.device().is_cpu(), "cannot pin '{}' only dense CPU tensors can be pinned", x.device());
  if (is_pinned(x)) return x;
  return op::copy_(empty_pinned(x), op::detach(x), false);
}

}  // namespace taeda::python
