#include "taeda/tensor.h"

#include "core/device_memory.h"
#include "core/element.h"
#include "core/host_copy.h"
#include "core/layout.h"

namespace taeda {
namespace {

// A number keeps its full precision; `wrapped_number` tells type promotion that only its category
// counts.
DType storage_dtype(const Scalar& number) {
  switch (number.kind()) {
    case Scalar::Kind::kBool:
      return DType::kBool;
    case Scalar::Kind::kInt:
      return number.is_huge() ? DType::kUInt64 : DType::kInt64;
    case Scalar::Kind::kFloat:
      return DType::kFloat64;
    case Scalar::Kind::kComplex:
      return DType::kComplex128;
  }
  return DType::kFloat64;
}

// The value of what is not simply in the host's memory, or is asked for where a mode may know it.
[[gnu::noinline]] Scalar item_elsewhere(const Tensor& x) {
  const TensorImpl& impl = *x.impl();
  const KeySet keys = (impl.keys | thread_modes.included) - thread_modes.excluded;
  if (keys.has(Key::kPython) && !impl.wrapped_number) return dispatched_item(x);
  TD_CHECK(has_memory(x.device()), "Tensor.item() cannot be called on meta tensors");
  if (impl.keys.has(Key::kBatched)) fail_value_of_samples();
  if (impl.keys.has(Key::kFunctionalize)) return functional_value(x).item_scalar();
  if (!(impl.keys & kMathBits).empty()) return resolved_value(x).item_scalar();
  TD_CHECK_IMPLEMENTED(
      !x.is_sparse(),
      "Could not run 'aten::_local_scalar_dense' with arguments from the 'SparseCPU' "
      "backend: convert the sparse tensor with to_dense()");
  const void* data = impl.data();
  alignas(16) char on_host[16];
  if (!x.device().is_cpu()) {
    count_host_read(x.device());
    copy_memory(on_host, DeviceType::kCPU, data, x.device(), x.itemsize());
    data = on_host;
  }
  return read_element(x.dtype(), data);
}

}  // namespace

Tensor::Tensor(const Scalar& number) {
  const DType dtype = storage_dtype(number);
  impl_ = Ref<TensorImpl>(new TensorImpl(Storage::allocate(item_size(dtype), DeviceType::kCPU),
                                         dtype, DeviceType::kCPU));
  impl_->wrapped_number = true;
  impl_->numel = 1;
  write_element(dtype, impl_->storage->data(), number);
}

int64_t Tensor::size(int64_t dim) const {
  TD_CHECK_INDEX(impl_->ndim() > 0, "Dimension specified as {} but tensor has no dimensions", dim);
  return impl_->sizes[wrap_dim(dim, impl_->ndim())];
}

int64_t Tensor::stride(int64_t dim) const {
  TD_CHECK_INDEX(impl_->ndim() > 0, "Dimension specified as {} but tensor has no dimensions", dim);
  return impl_->strides[wrap_dim(dim, impl_->ndim())];
}

bool Tensor::is_contiguous(MemoryFormat format) const {
  switch (format) {
    case MemoryFormat::kContiguous:
      return impl_->contiguous;
    case MemoryFormat::kChannelsLast:
      return dim() == 4 && is_channels_last_layout(sizes(), strides());
    case MemoryFormat::kChannelsLast3d:
      return dim() == 5 && is_channels_last_layout(sizes(), strides());
    case MemoryFormat::kPreserve:
      break;
  }
  fail(ErrorKind::kRuntime, "is_contiguous: preserve_format names no layout to compare with");
}

Scalar Tensor::item_scalar() const {
  TD_CHECK(defined(), "item(): the tensor is undefined");
  TD_CHECK(numel() == 1, "a Tensor with {} elements cannot be converted to Scalar", numel());
  constexpr KeySet kElsewhere = KeySet(Key::kMeta) | Key::kCUDA | Key::kSparse | Key::kPython |
                                Key::kFunctionalize | Key::kBatched | kMathBits;
  if (!((impl_->keys | thread_modes.included) & kElsewhere).empty()) [[unlikely]]
    return item_elsewhere(*this);
  return read_element(dtype(), impl_->data());
}

}  // namespace taeda
