#include "kernels/copy.h"

#include <optional>

#include "core/device_memory.h"
#include "core/strides.h"
#include "device/graph.h"
#include "device/has_kernels.h"
#include "device/put_off.h"
#include "kernels/cpu/pointwise/loop.h"
#include "kernels/cpu/simd/scratch.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/copy.h"
#include "kernels/launch.h"
#include "taeda/error.h"

namespace taeda::kernels {
namespace {

int64_t bytes_spanned(const View& v) {
  return storage_bytes_needed(v.sizes, v.strides, 0, v.dtype);
}

bool is_on(const View& v, Device device) { return v.device == device && !is_storage_type(v.dtype); }
// Whether kernels of the Views' device do it.
bool has_kernel(const View& dst, const View& src) {
  return dst.device.type == DeviceType::kCUDA && is_on(dst, src.device) && is_on(src, dst.device) &&
         cuda::has_kernels();
}

// What follows is done on the host.
void forbid_in_graphs(const View& v, std::string_view what) {
  if (v.device.type == DeviceType::kCUDA)
    cuda::forbid_host_work_while_capturing(v.device.index, what);
}

bool is_dense(const View& v) { return is_dense_layout(v.sizes, v.strides); }

// A View of a device's memory as one of the host's, with the same layout.
class OnHost {
 public:
  explicit OnHost(const View& view) : view_(view), host_(view), bytes_(bytes_spanned(view)) {
    if (view.device.is_cpu()) return;
    buffer_.emplace(bytes_);
    host_.data = buffer_->data();
    host_.device = DeviceType::kCPU;
  }
  const View& view() const { return host_; }
  void read() const { copy_memory(host_.data, host_.device, view_.data, view_.device, size()); }
  void write() const { copy_memory(view_.data, view_.device, host_.data, host_.device, size()); }

 private:
  int64_t size() const { return buffer_ ? bytes_ : 0; }

  View view_, host_;
  int64_t bytes_;
  std::optional<cpu::Scratch<char>> buffer_;
};

bool is_plain(const View& v, DType type) {
  return v.dtype == type && is_contiguous_layout(v.sizes, v.strides);
}
void copy_plain(const View& dst, const View& src, bool non_blocking) {
  copy_memory(dst.data, dst.device, src.data, src.device, bytes_spanned(dst), non_blocking);
}

// Between a device and the host: only the elements are carried, in row-major order, and what lies
// between them may be another stream's work. The host converts.
void copy_to_device(const View& dst, const View& src, bool non_blocking) {
  std::optional<cuda::Dense> on_host, on_device;
  if (!is_plain(src, dst.dtype)) cpu::copy(on_host.emplace(src.device, dst.dtype, dst.sizes), src);
  if (!is_plain(dst, dst.dtype)) on_device.emplace(dst.device, dst.dtype, dst.sizes);
  copy_plain(on_device ? on_device->view() : dst, on_host ? on_host->view() : src,
             non_blocking && !on_host);
  if (on_device) cuda::copy(dst, *on_device);
}
void copy_to_host(const View& dst, const View& src, bool non_blocking) {
  const cuda::Dense on_device(src);
  if (is_plain(dst, src.dtype)) return copy_plain(dst, on_device, non_blocking);
  const cuda::Dense on_host(dst.device, src.dtype, src.sizes);
  copy_plain(on_host, on_device, false);
  cpu::copy(dst, on_host);
}

}  // namespace

void fail_absent(std::string_view kernel, Device device) {
  fail(ErrorKind::kNotImplemented, "the kernel '{}' does not exist for device {}", kernel, device);
}

void copy(const View& dst, const View& src, bool non_blocking) {
  if (dst.device.is_cpu() && src.device.is_cpu()) [[likely]]
    return cpu::copy(dst, src);
  if (!has_memory(dst.device)) return;
  TD_CHECK_IMPLEMENTED(has_memory(src.device), "Cannot copy out of meta tensor; no data!");
  if (dst.numel == 0) return;
  const bool by_kernel = has_kernel(dst, src);
  const bool as_bytes = dst.dtype == src.dtype && dst.strides == src.strides && is_dense(dst);
  if (as_bytes && !(by_kernel && cuda::in_list()))  // a kernel copies for several calls
    return copy_memory(dst.data, dst.device, src.data, src.device, bytes_spanned(dst),
                       non_blocking);
  if (by_kernel) return cuda::copy(dst, src);
  if (src.device.is_cpu() && has_kernel(dst, dst)) return copy_to_device(dst, src, non_blocking);
  if (dst.device.is_cpu() && has_kernel(src, src)) return copy_to_host(dst, src, non_blocking);
  if (dst.device == src.device) forbid_in_graphs(dst, "a copy of elements of these dtypes");
  const OnHost from(src), to(dst);
  from.read();
  if (!is_dense(dst)) to.read();  // what lies between its elements is written back, too
  cpu::copy(to.view(), from.view());
  to.write();
}

void fill(const View& dst, const Scalar& value) {
  if (dst.device.is_cpu()) [[likely]]
    return cpu::fill(dst, value);
  if (dst.numel == 0 || !has_memory(dst.device)) return;
  if (has_kernel(dst, dst)) return cuda::fill(dst, value);
  forbid_in_graphs(dst, "filling with numbers of this dtype");
  const OnHost to(dst);
  if (!is_dense(dst)) to.read();
  cpu::fill(to.view(), value);
  to.write();
}

}  // namespace taeda::kernels
