// TensorImpl: the object behind a Tensor: storage, layout, dtype, device, keys, and its ties to
// autograd and Python.
//
// Not for user code: programs hold Tensors. Fields are public because operators and bindings are
// the class's implementation; everything else goes through Tensor's methods. PyTorch's class of the
// same name is the model.
//
// Counts and version counters are atomic. All other fields are read without locks: threads may use
// one tensor at once as long as none changes its layout, history or Python object.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "taeda/device.h"
#include "taeda/dtype.h"
#include "taeda/keys.h"
#include "taeda/ref.h"
#include "taeda/small_vector.h"
#include "taeda/storage.h"

namespace taeda {

class TensorImpl;

// What autograd hangs on a tensor; defined in src/autograd. Made when there is something to
// know, so that a tensor without history allocates nothing for it.
struct AutogradMetaBase {
  virtual ~AutogradMetaBase() = default;
};

// A version counter apart from the storage's, for tensors that share memory but not history
// (Tensor::variable_data). A write through one is then not seen by what the other saved.
class VersionCounter final : public RefCounted {
 public:
  std::atomic<uint32_t> value{0};
};

// How the binding layer keeps a tensor's Python object alive while C++ shares the tensor, so that
// attributes and the subclass of a tensor that backward saved are there when it comes back. Set
// once by the bindings; programs in C++ never need it.
struct PythonHooks {
  void (*incref)(void* object);
  void (*decref)(void* object);  // may be called without the GIL
};
extern PythonHooks python_hooks;

// Counted by overloads of retain and release below, because the Python object has to know. Fields
// describe one another: change layouts by the functions for it. Objects come from thread-local free
// lists: making a small tensor is one of them and its storage.
//
// Element (i, j, ...) lies at storage->data() + (offset + i strides[0] + j strides[1] + ...) *
// item_size(dtype). Strides may be 0 (expanded) but not negative. A transpose exchanges strides,
// a row is an offset:
//
//   const Tensor m = arange(6).view({2, 3}), column = m.t()[1];
//   assert(column.impl()->storage == m.impl()->storage && column.impl()->offset == 1);
//   assert(IntSpan(m.t().impl()->strides) == IntSpan({1, 3}));
//   assert(column.strides() == IntSpan({3}) && !column.impl()->contiguous);
class TensorImpl {
 public:
  // Of sizes [], with the key of the device; the caller sets the layout. Under inference_mode it is
  // an inference tensor. numel stays 0 until a layout is set.
  TensorImpl(Ref<Storage> storage, DType dtype, Device device);
  ~TensorImpl();
  TensorImpl(const TensorImpl&) = delete;
  TensorImpl& operator=(const TensorImpl&) = delete;

  // The bytes, shared with views.
  Ref<Storage> storage;
  // The layout. numel and contiguous follow from sizes and strides; strides count elements, and
  // that of a dimension of size 1 means nothing.
  int64_t offset = 0;  // in elements
  int64_t numel = 0;
  DimVector sizes;
  DimVector strides;
  // What an operator on this tensor must pass through: its device, and kAutograd and the like while
  // there is a reason (keys.h).
  KeySet keys;
  DType dtype;
  Device device;
  bool contiguous = true;       // row-major dense
  bool wrapped_number = false;  // made from a Python number: takes part in type promotion as one
  bool inference =
      false;  // made under inference_mode: no version counter, not savable for backward

  Ref<VersionCounter> own_version;             // null: the storage's counter
  std::unique_ptr<AutogradMetaBase> autograd;  // null until needed
  Ref<TensorImpl> view_base;  // for differentiable views: the tensor that owns the history
  uint32_t view_flags = 0;    // autograd/meta.h
  uint32_t view_version = 0;  // the version that a view's history stands for
  Ref<RefCounted> wrapped;    // what a tensor of a transform stands for (kBatched: ops/batching),
                              // or is made of (kSparse: core/sparse.h)

  // The first element; null for meta and empty tensors, RuntimeError for one that only stands for
  // another (_make_wrapper_subclass). Valid until the storage is resized.
  void* data() const {
    if (!storage || numel == 0) return nullptr;
    char* base = static_cast<char*>(storage->data());
    if (!base) [[unlikely]]
      return without_memory();
    return base + offset * item_size(dtype);
  }
  // Number of dimensions, 0 for a number.
  int64_t ndim() const { return static_cast<int64_t>(sizes.size()); }
  // How often the elements were written in place, wrapping at 2^32: what backward saved is compared
  // with it. Whoever writes elements from outside of an operator bumps it.
  uint32_t version() const {
    return own_version ? own_version->value.load(std::memory_order_relaxed) : storage->version();
  }
  void bump_version() {
    if (own_version)
      own_version->value.fetch_add(1, std::memory_order_relaxed);
    else
      storage->bump_version();
  }
  // Sets sizes, strides, offset and what follows from them (numel, contiguous). The caller
  // has checked that they stay inside the storage. An empty tensor counts as contiguous. The second
  // takes row-major strides and offset 0; RuntimeError where a stride is beyond int64.
  void set_layout(IntSpan sizes, IntSpan strides, int64_t offset);
  void set_contiguous_layout(IntSpan sizes);

  uint32_t use_count() const { return refs_.load(std::memory_order_relaxed) & ~kHasPython; }

  // The Python object of this tensor, if one exists (borrowed).
  void* python_object() const { return python_; }
  // Ties `object` to this tensor. The caller's C++ reference now belongs to the Python object.
  // Called with the GIL.
  void attach_python(void* object);
  // Unties the Python object. Called by its deallocator, which owns the last reference and must
  // still release it.
  void detach_python();

  static void* operator new(size_t size);
  static void operator delete(void* object);

 private:
  void* without_memory() const;
  friend void retain(const TensorImpl* impl);
  friend void retain_new(const TensorImpl* impl);
  friend void release(const TensorImpl* impl);
  // A count fell from `old`: the tensor's last, or the last but its Python object's.
  void released(uint32_t old) const;
  // A tensor with a Python object is owned by it; while C++ holds further references, the tensor
  // holds one reference to the Python object, so that identity, attributes and subclass survive.
  // The flag sits in the counter so that "became shared" and "became unshared" are seen exactly
  // once, whatever threads do.
  static constexpr uint32_t kHasPython = 1u << 31;
  mutable std::atomic<uint32_t> refs_{0};
  void* python_ = nullptr;
};

inline void retain(const TensorImpl* impl) {
  const uint32_t old = impl->refs_.fetch_add(1, std::memory_order_relaxed);
  if (old == (TensorImpl::kHasPython | 1u)) [[unlikely]]
    python_hooks.incref(impl->python_);
}
inline void retain_new(const TensorImpl* impl) { impl->refs_.store(1, std::memory_order_relaxed); }
inline void release(const TensorImpl* impl) {
  // An only owner is alone with the count: no other thread can take a reference from nowhere.
  uint32_t old = impl->refs_.load(std::memory_order_acquire);
  if (old != 1u) old = impl->refs_.fetch_sub(1, std::memory_order_acq_rel);
  if (old == 1u || old == (TensorImpl::kHasPython | 2u)) impl->released(old);
}

}  // namespace taeda
