#include "taeda/tensor_impl.h"

#include "base/block_list.h"
#include "base/handover.h"
#include "core/device_memory.h"
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

[[noreturn, gnu::cold, gnu::noinline]] void fail_strides(IntSpan sizes) {
  fail(ErrorKind::kRuntime, "Stride calculation overflowed with sizes={}", sizes);
}

}  // namespace

constinit thread_local ThreadModes thread_modes;
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
  TD_CHECK(!has_memory(device), "Cannot access data pointer of Tensor that doesn't have storage");
  return nullptr;
}

void TensorImpl::set_layout(IntSpan new_sizes, IntSpan new_strides, int64_t new_offset) {
  sizes.assign(new_sizes.begin(), new_sizes.end());
  strides.assign(new_strides.begin(), new_strides.end());
  offset = new_offset;
  const int64_t* const lengths = sizes.data();
  const int64_t* const steps = strides.data();
  int64_t expected = 1;
  bool dense = true;
  for (size_t i = new_sizes.size(); i-- > 0;) {
    dense &= lengths[i] == 1 || steps[i] == expected;
    static_cast<void>(__builtin_mul_overflow(expected, lengths[i], &expected));  // 0 in the end
  }
  numel = expected;
  contiguous = dense || expected == 0;
}

void TensorImpl::set_contiguous_layout(IntSpan new_sizes) {
  sizes.assign(new_sizes.begin(), new_sizes.end());
  strides.assign(new_sizes.begin(), new_sizes.end());
  const int64_t* const lengths = sizes.data();
  int64_t* const steps = strides.data();
  int64_t elements = 1, stride = 1;
  for (size_t i = new_sizes.size(); i-- > 0;) {
    steps[i] = stride;
    // Empty tensors may have sizes whose product is beyond any number; PyTorch's strides of empty
    // tensors are positive.
    static_cast<void>(__builtin_mul_overflow(elements, lengths[i], &elements));
    const int64_t length = lengths[i] > 1 ? lengths[i] : 1;
    if (__builtin_mul_overflow(stride, length, &stride) && i > 0) [[unlikely]]
      fail_strides(sizes);
  }
  numel = elements;
  offset = 0;
  contiguous = true;
}

void TensorImpl::released(uint32_t old) const {
  // The reference that the tensor holds to its Python object is still there, and so is the tensor.
  if (old != 1u) return python_hooks.decref(python_);
  delete this;
}

void TensorImpl::attach_python(void* object) {
  python_ = object;
  if (refs_.load(std::memory_order_acquire) == 1u)  // a new tensor, which only the caller has
    return refs_.store(kHasPython | 1u, std::memory_order_release);
  const uint32_t old = refs_.fetch_or(kHasPython, std::memory_order_acq_rel);
  if (old > 1) python_hooks.incref(object);
}

void TensorImpl::detach_python() {
  if (refs_.load(std::memory_order_acquire) == (kHasPython | 1u))
    refs_.store(1u, std::memory_order_relaxed);
  else
    refs_.fetch_and(~kHasPython, std::memory_order_acq_rel);
  python_ = nullptr;
}

}  // namespace taeda
