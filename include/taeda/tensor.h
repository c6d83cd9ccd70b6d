// Tensor: a handle to an n-dimensional strided array with automatic differentiation.
//
// Copying a Tensor copies the handle: both name the same data, as in Python. A default-constructed
// Tensor is undefined (`defined()` is false) and stands for "None". Handles may be passed between
// threads; two threads must not change the same tensor at once. Operators are methods (generated
// from ops/) and free functions in ops.h.
//
//   taeda::Tensor x = taeda::randn({2, 3}).requires_grad_();
//   (x * x).sum().backward();
//   assert(taeda::equal(x.grad(), 2 * x));
//
// A handle is one pointer. Views (select, transpose, view, ...) share the memory of the tensor they
// came from and cost no copy; a write through either is seen by the other:
//
//   Tensor m = zeros({2, 3});
//   m[0].fill_(1);
//   m.t()[2].add_(5);
//   assert(equal(m, tensor({1.0, 1.0, 6.0, 0.0, 0.0, 5.0}, {2, 3})));
//
// Methods of a const Tensor may change the elements: const is of the handle, as of a pointer.
#pragma once

#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "taeda/device.h"
#include "taeda/dtype.h"
#include "taeda/error.h"
#include "taeda/ref.h"
#include "taeda/scalar.h"
#include "taeda/small_vector.h"
#include "taeda/tensor_impl.h"

namespace taeda {

class Tensor;
class Generator;
namespace indexing {
class TensorIndex;
}
using TensorSpan = Span<const Tensor>;
using TensorList = std::vector<Tensor>;
// Tensors as arguments (borrowed) and as results or members (owned): PyTorch's `Tensor[]` above.
//
// An optional integer list or number in operator signatures: PyTorch's `int[]?`, `float?`, ...
// std::nullopt is Python's None.
using OptInt = std::optional<int64_t>;
using OptDouble = std::optional<double>;
using OptBool = std::optional<bool>;
using OptScalar = std::optional<Scalar>;
using OptDType = std::optional<DType>;
using OptDevice = std::optional<Device>;
using OptInts = std::optional<IntSpan>;

// The order of a tensor's elements in memory: row-major; that of the argument; or channels last,
// where a pixel's channels lie side by side (4 or 5 dimensions, sizes stay n, c, h, w).
//
//   const Tensor x = zeros({2, 3, 4, 5}).contiguous(MemoryFormat::kChannelsLast);
//   assert(x.strides() == IntSpan({60, 1, 15, 3}) && x.sizes() == IntSpan({2, 3, 4, 5}));
enum class MemoryFormat : uint8_t { kContiguous, kPreserve, kChannelsLast, kChannelsLast3d };
using OptMemoryFormat = std::optional<MemoryFormat>;

// How a tensor holds its elements: at offset + i strides[0] + ...; or only those that are given,
// with their coordinates or compressed by rows, columns, or rows or columns of blocks.
enum class Layout : uint8_t {
  kStrided,
  kSparseCoo,
  kSparseCsr,
  kSparseCsc,
  kSparseBsr,
  kSparseBsc
};

// What a factory function makes: unset fields take the defaults (default dtype, cpu). A dtype or a
// device alone converts to it.
//
//   assert(zeros({2}, DType::kInt64).dtype() == DType::kInt64);
struct TensorOptions {
  OptDType dtype;
  OptDevice device;
  bool requires_grad = false;
  TensorOptions() = default;
  TensorOptions(DType dtype) : dtype(dtype) {}
  TensorOptions(Device device) : device(device) {}
};

// The handle. Everything below but defined(), is_same() and to_string() needs a defined tensor: an
// undefined one is a null pointer, and asking it is undefined behaviour. Operators check their
// arguments and raise TypeError for undefined ones.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}
  // A number as a 0-d tensor that takes part in type promotion as a number does: lets `x * 2.0`
  // compile.
  Tensor(const Scalar& number);
  template <class T>
    requires std::is_arithmetic_v<T> Tensor(T number) : Tensor(Scalar(number)) {}

    // Whether there is a tensor; everything below needs one.
    bool defined() const { return static_cast<bool>(impl_); }
    explicit operator bool() const = delete;
    TensorImpl* impl() const { return impl_.get(); }
    const Ref<TensorImpl>& ref() const { return impl_; }
    Ref<TensorImpl> take() { return std::move(impl_); }
    // Whether both handles name one tensor object.
    bool is_same(const Tensor& other) const { return impl_ == other.impl_; }

    // --- metadata ---
    // Sizes and strides (in elements) of each dimension; valid as long as the tensor and its
    // layout.
    int64_t dim() const { return impl_->ndim(); }
    IntSpan sizes() const { return impl_->sizes; }
    IntSpan strides() const { return impl_->strides; }
    int64_t size(int64_t dim) const;    // dim in [-ndim, ndim); IndexError otherwise
    int64_t stride(int64_t dim) const;  // likewise
    // The product of the sizes; where the first element lies in the storage, in elements.
    int64_t numel() const { return impl_->numel; }
    int64_t storage_offset() const { return impl_->offset; }
    DType dtype() const { return impl_->dtype; }
    Device device() const { return impl_->device; }
    int64_t itemsize() const { return item_size(impl_->dtype); }
    int64_t nbytes() const { return impl_->numel * itemsize(); }
    // Whether the elements lie without gaps in the order of `format`. contiguous() copies only
    // where they do not.
    //
    //   const Tensor m = zeros({2, 3});
    //   assert(m.is_contiguous() && !m.t().is_contiguous() && m.t().contiguous().is_contiguous());
    bool is_contiguous(MemoryFormat format = MemoryFormat::kContiguous) const;
    bool is_floating_point() const { return is_floating(impl_->dtype); }
    bool is_complex() const { return taeda::is_complex(impl_->dtype); }
    Layout layout() const {
      return impl_->keys.has(Key::kSparse) ? sparse_layout() : Layout::kStrided;
    }
    // Whether the elements are the conjugates, the negatives, of what lies in memory: views that
    // conj() and imag() make. Operators take them as they read; data_ptr() shows the memory.
    //
    //   const Tensor x = zeros({2}, DType::kComplex64), y = x.conj();
    //   assert(y.is_conj() && y.storage() == x.storage() && !y.resolve_conj().is_conj());
    bool is_conj() const { return impl_->keys.has(Key::kConjugate); }
    bool is_neg() const { return impl_->keys.has(Key::kNegative); }
    bool is_sparse() const { return impl_->keys.has(Key::kSparse); }  // of any sparse layout
    bool is_meta() const { return impl_->device.is_meta(); }
    bool is_inference() const { return impl_->inference; }
    // How often the memory was written in place; what backward saved compares it.
    uint32_t version() const { return impl_->version(); }
    const Ref<Storage>& storage() const { return impl_->storage; }
    // The first element: memory of device(), null where there is none (meta, no elements).
    void* data_ptr() const { return impl_->data(); }
    // The data as T*, by strides() unless contiguous; RuntimeError when the dtype differs. Writing
    // through it is not recorded and counts as no change of version. Valid until the storage is
    // resized; of a device's tensor, an address of that device.
    //
    //   const Tensor x = zeros({3});
    //   for (int64_t i = 0; i < x.numel(); i++) x.data<float>()[i] = static_cast<float>(i);
    //   assert(x.sum().item<float>() == 3);
    template <class T>
    T* data() const {
      TD_CHECK(impl_->dtype == kDTypeOf<T>, "data(): expected dtype {}, got {}", kDTypeOf<T>,
               impl_->dtype);
      return static_cast<T*>(impl_->data());
    }
    // The value of a one-element tensor as T; RuntimeError for more elements, and for a value that
    // T cannot hold. Waits for a device. The dtype need not be T's: a float tensor of 3.7 as
    // int64_t is 3.
    template <class T>
    T item() const {
      return item_scalar().to<T>();
    }
    Scalar item_scalar() const;

    // --- indexing (indexing.h) ---
    // x[i]: the i-th row, a view; negative i counts from the end, IndexError outside and for 0-d x.
    // Assigning to the result rebinds a handle; x[i].copy_(y) or index_put_ write.
    Tensor operator[](int64_t i) const;
    // x[indices], x[mask]: a copy of the elements that a tensor of indices or a mask names.
    //
    //   const Tensor x = tensor({1.0, -2.0, 3.0});
    //   assert(equal(x[x > 0], tensor({1.0, 3.0})));
    //   assert(equal(x[tensor({2, 0})], tensor({3.0, 1.0})));
    Tensor operator[](const Tensor& index) const;
    // x.index({0, Slice(1, None, 2), Ellipsis, mask}) is Python's x[0, 1::2, ..., mask]: a view
    // unless a tensor is among the indices.
    Tensor index(std::initializer_list<indexing::TensorIndex> indices) const;
    Tensor index(Span<const indexing::TensorIndex> indices) const;
    // x[...] = value; `value` broadcasts, and may be a number. Recorded, as every write in place.
    //
    //   Tensor x = zeros({2, 3});
    //   x.index_put_({indexing::Slice(), 1}, 5);
    //   assert(x.sum().item<float>() == 10);
    const Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices,
                             const Tensor& value) const;
    const Tensor& index_put_(Span<const indexing::TensorIndex> indices, const Tensor& value) const;

    // --- autograd (src/autograd) ---
    // Whether operators on it are recorded; whether it is no result of a recorded operator.
    bool requires_grad() const;
    bool is_leaf() const;
    // Makes a leaf record gradients; RuntimeError for integer tensors and, to switch it off, for
    // non-leaves: detach() gives a tensor on the same memory without history.
    Tensor& requires_grad_(bool value = true);
    // The accumulated gradient, of the tensor's sizes, dtype and device; undefined when there is
    // none. Backward adds to it: set_grad({}) starts over.
    Tensor grad() const;
    // Replaces it; undefined drops it. RuntimeError for other sizes or another device.
    void set_grad(const Tensor& grad);
    // d(sum(this * gradient))/d(leaves), accumulated into their grad(). `gradient` may be left out
    // for one element.
    void backward(const Tensor& gradient = {}, bool retain_graph = false,
                  bool create_graph = false) const;
    // Lets backward set grad() of a result, as it does of leaves.
    void retain_grad();
    // A tensor on the same memory with a version counter of its own and no history: PyTorch's
    // `.data`.
    Tensor variable_data() const;
    // Puts `value`'s memory, layout and dtype into this tensor object, keeping its identity:
    // PyTorch's `x.data = value`.
    void set_data(const Tensor& value);

    // As PyTorch prints it (without autograd's suffix).
    std::string to_string() const;

// Generated: every operator that has a method. Most of the library's own files call op:: functions
// and leave the declarations out, so that a new operator does not compile them again; the class has
// the same layout and the same other members either way.
#ifndef TAEDA_WITHOUT_OPERATOR_METHODS
#include "taeda/tensor_methods.inc"
#endif

   private:
    Layout sparse_layout() const;
    Ref<TensorImpl> impl_;
};

// Writes to_string().
std::ostream& operator<<(std::ostream& out, const Tensor& x);

}  // namespace taeda
