#include "taeda/tensor_impl.h"

#include "base/block_list.h"
#include "base/handover.h"
#include "taeda/error.h"

namespace taeda {
namespace {

constexpr size_t kBlockBytes = (sizeof(TensorImpl) + 63) / 64 * 64;
using Blocks = BlockList<detail::BlockClass::kTensor, kBlockBytes>;

KeySet device_key(Device device) {
  switch (device.type) {
    case DeviceType::kCPU:
      return Key::kCPU;
    case DeviceType::kMeta:
      return Key::kMeta;
    case DeviceType::kCUDA:
      return Key::kCUDA;
  }
  return {};
}

void ignore(void*) {}

}  // namespace

thread_local ThreadModes thread_modes;
namespace {
ThreadModes get_modes() { return thread_modes; }
void set_modes(ThreadModes modes) { thread_modes = modes; }
const CarriedValue<get_modes, set_modes> carried_modes;
}  // namespace
PythonHooks python_hooks{ignore, ignore};

TensorImpl::TensorImpl(Ref<Storage> storage, DType dtype, Device device)
    : storage(std::move(storage)), keys(device_key(device)), dtype(dtype), device(device) {
  if (thread_modes.inference) [[unlikely]] {
    inference = true;
    keys = keys | Key::kAutograd;  // what may not be done to it later is checked there
  }
}

TensorImpl::~TensorImpl() = default;

void* TensorImpl::operator new(size_t) { return Blocks::take(); }
void TensorImpl::operator delete(void* object) { Blocks::give(object); }

void* TensorImpl::without_memory() const {
  TD_CHECK(device.is_meta(), "Cannot access data pointer of Tensor that doesn't have storage");
  return nullptr;
}

void TensorImpl::set_layout(IntSpan new_sizes, IntSpan new_strides, int64_t new_offset) {
  sizes = new_sizes;
  strides = new_strides;
  offset = new_offset;
  int64_t expected = 1;
  contiguous = true;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != expected) contiguous = false;
    static_cast<void>(__builtin_mul_overflow(expected, sizes[i], &expected));  // 0 in the end
  }
  numel = expected;
  if (numel == 0) contiguous = true;
}

void TensorImpl::set_contiguous_layout(IntSpan new_sizes) {
  sizes = new_sizes;
  strides.resize(sizes.size());
  int64_t elements = 1, stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    // Empty tensors may have sizes whose product is beyond any number; PyTorch's strides of empty
    // tensors are positive.
    static_cast<void>(__builtin_mul_overflow(elements, sizes[i], &elements));
    const int64_t length = sizes[i] > 1 ? sizes[i] : 1;
    TD_CHECK(!__builtin_mul_overflow(stride, length, &stride) || i == 0,
             "Stride calculation overflowed with sizes={}", sizes);
  }
  numel = elements;
  offset = 0;
  contiguous = true;
}

void TensorImpl::attach_python(void* object) {
  python_ = object;
  const uint32_t old = refs_.fetch_or(kHasPython, std::memory_order_acq_rel);
  if (old > 1) python_hooks.incref(object);
}

void TensorImpl::detach_python() {
  refs_.fetch_and(~kHasPython, std::memory_order_acq_rel);
  python_ = nullptr;
}

}  // namespace taeda
