// Where hand-written code of operators touches elements on the host, and nowhere else but in those
// that the table marks `host:`, which run on CPU tensors only.
//
// On a device each read waits for it (core/host_copy.h counts them); meta tensors have no elements
// to read or to write.
#pragma once

#include "core/device_memory.h"
#include "core/host_copy.h"
#include "ops/allocate.h"
#include "ops/dispatch.h"

namespace taeda {

// Whether there are values at all: a meta tensor has none, and those of a class with a
// __torch_dispatch__ are its own.
inline bool has_values(const Tensor& t) {
  return has_memory(t.device()) && !t.impl()->keys.has(Key::kPython);
}

// The elements of a tensor of dtype T in row-major order; none of a tensor without values.
template <class T>
class HostElements {
 public:
  explicit HostElements(const Tensor& t) {
    if (!has_values(t)) return;
    kept_ = dense_input(host_copy(t));
    span_ = Span<const T>(kept_.data<T>(), static_cast<size_t>(kept_.numel()));
  }
  const T* begin() const { return span_.begin(); }
  const T* end() const { return span_.end(); }
  size_t size() const { return span_.size(); }
  const T& operator[](size_t i) const { return span_[i]; }

 private:
  Tensor kept_;
  Span<const T> span_;
};

// The value of a tensor of one element; nothing of a meta tensor.
OptScalar known_number(const Tensor& t);
// Whether a bool tensor of one element is known to be true, inside vmap for any sample; of a meta
// tensor nothing is.
bool known_true(const Tensor& condition);

// NotImplementedError on meta: the sizes of the operator's result depend on what `t` holds.
void check_has_elements(std::string_view op, const Tensor& t);

// A copy on another device with the same layout, without history.
Tensor moved_to(const Tensor& t, Device device, bool non_blocking = false);

// A row-major tensor whose elements `write(t)` puts in on the host; for meta it is not called.
template <class Write>
Tensor written_on_host(IntSpan sizes, DType dtype, Device device, const Write& write) {
  if (!has_memory(device)) return empty_tensor(sizes, dtype, device);
  Tensor t = empty_tensor(sizes, dtype, DeviceType::kCPU);
  write(t);
  return device.is_cpu() ? t : moved_to(t, device);
}

}  // namespace taeda
