#include "core/host_copy.h"

#include "core/device_memory.h"
#include "core/layout.h"

namespace taeda {

Tensor (*functional_value)(const Tensor& t) = nullptr;
Tensor (*resolved_value)(const Tensor& t) = nullptr;
Scalar (*dispatched_item)(const Tensor& t) = nullptr;

void fail_value_of_samples() {
  fail(ErrorKind::kRuntime,
       "vmap: It looks like you're calling .item() on a Tensor, or use its value in "
       "data-dependent control flow. We don't support vmap over that: samples of one batch "
       "cannot go different ways. Please try to rewrite what you're doing with other "
       "operations (torch.where).");
}

bool is_written_number(const Tensor& t) {
  return t.impl()->wrapped_number && t.dim() == 0 && has_memory(t.device());
}

Tensor host_copy(const Tensor& t) {
  if (t.impl()->keys.has(Key::kFunctionalize)) return host_copy(functional_value(t));
  if (!(t.impl()->keys & kMathBits).empty()) return host_copy(resolved_value(t));
  if (t.device().is_cpu()) return t;
  TD_CHECK_IMPLEMENTED(has_memory(t.device()), "Cannot copy out of meta tensor; no data!");
  count_host_read(t.device());
  const int64_t bytes = storage_bytes_needed(t.sizes(), t.strides(), 0, t.dtype());
  auto host =
      make_ref<TensorImpl>(Storage::allocate(bytes, DeviceType::kCPU), t.dtype(), DeviceType::kCPU);
  copy_memory(host->storage->data(), DeviceType::kCPU, t.data_ptr(), t.device(), bytes);
  host->set_layout(t.sizes(), t.strides(), 0);
  return Tensor(std::move(host));
}

}  // namespace taeda
