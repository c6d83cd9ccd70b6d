#include "ops/pointwise.h"

#include <algorithm>

#include "core/device_memory.h"
#include "core/layout.h"
#include "core/strides.h"
#include "core/with_dtype.h"
#include "device/put_off.h"
#include "kernels/copy.h"
#include "ops/allocate.h"
#include "ops/contract.h"
#include "ops/device_loops.h"
#include "ops/elementwise.h"
#include "ops/last_use.h"
#include "ops/operator.h"
#include "ops/rules.h"
#include "taeda/warning.h"

namespace taeda {

constinit thread_local const TensorImpl* LastUse::expiring_
    __attribute__((tls_model("initial-exec"))) = nullptr;

bool LastUse::owned_alone(const Tensor& t) {
  const TensorImpl* impl = t.impl();
  return !thread_modes.grad_enabled && impl->use_count() == 1 && !impl->python_object() &&
         !impl->autograd && !impl->view_base && (impl->keys - kDeviceKeys).empty() &&
         impl->storage && impl->storage->use_count() == 1 && impl->storage->writable() &&
         is_dense_layout(impl->sizes, impl->strides);
}

namespace pointwise {

namespace {

constexpr size_t kMaxInputs = 6;
constexpr int64_t kInlineElements = 16384;  // up to this one thread calls the dense kernel directly

[[gnu::noinline]] DType promoted_of_several(const Info& info, Span<const Tensor* const> inputs) {
  rules::Promotion promotion;
  for (const Tensor* t : inputs) {
    const bool chooses = info.promote == Promote::kMasked && t->dtype() == DType::kBool;
    if (!chooses) promotion.add(*t);
  }
  return promotion.result();
}

DType promoted(const Info& info, Span<const Tensor* const> inputs) {
  DType common = inputs[0]->dtype();
  bool same = inputs.size() == 1 || !inputs[0]->impl()->wrapped_number;
  for (size_t i = 1; i < inputs.size(); i++)
    same &= inputs[i]->dtype() == common && !inputs[i]->impl()->wrapped_number;
  if (!same) common = promoted_of_several(info, inputs);
  if (info.promote == Promote::kFloat && !is_inexact(common)) common = default_dtype();
  return common;
}

DType result_dtype(const Info& info, DType common) {
  if (info.promote == Promote::kBool) return DType::kBool;
  return info.promote == Promote::kReal ? to_real(common) : common;
}

// A tensor on another device, of an operator with `count` of them: argument i.
[[noreturn, gnu::cold]] void fail_device(std::string_view op, size_t i, size_t count,
                                         Device expected, Device got) {
  std::string argument = "other";
  for (size_t r = 0; r < kNumOperatorRecords; r++) {
    const OperatorRecord& record = *kOperatorRecords[r];
    std::string_view name = record.name();
    name.remove_prefix(name.find("::") + 2);
    if (name.substr(0, name.find('.')) != op) continue;
    std::vector<std::string> names;
    for (const SchemaArgument& a : record.form(Operator::Form::kPlain).schema().arguments)
      if (a.type.is_tensor()) names.push_back(a.name);
    if (names.size() == count) argument = names[i];
  }
  // where is a check of its condition before _where.
  contract::fail_device(op.substr(op.starts_with('_')), argument, expected, got);
}

// One for all but 0-d CPU tensors, which may stand beside any.
Device common_device(const Info& info, Span<const Tensor* const> inputs) {
  Device device = inputs[0]->device();
  for (const Tensor* t : inputs)
    if (!t->device().is_cpu()) device = t->device();
  for (size_t i = 0; i < inputs.size(); i++)
    if (inputs[i]->device() != device && inputs[i]->dim() > 0) [[unlikely]]
      fail_device(info.name, i, inputs.size(), device, inputs[i]->device());
  return device;
}

using ComputeTypes = Join<Types<bool>, WideNumbers>;

// kRepeatBytes of copies of the one element of `t`, converted to `dtype`. Integers wrap around, as
// they do when tensors are converted.
void repeat_element(const Tensor& t, DType dtype, void* out) {
  const Scalar value = t.item_scalar();
  with_dtype<ComputeTypes>(dtype, [&]<class T>(T) {
    T element{};
    if constexpr (std::is_integral_v<T>) {
      element = value.is_integral() ? static_cast<T>(value.wrapped_int()) : value.to<T>();
    } else {
      element = value.to<T>();
    }
    std::fill_n(static_cast<T*>(out), kRepeatBytes / sizeof(T), element);
  });
}

// Whether dimensions of size 1 have row-major strides as well, without which a result is laid out
// in an order of its own beside a number.
bool has_usual_strides(const TensorImpl& t) {
  int64_t stride = 1;
  for (size_t i = t.sizes.size(); i-- > 0; stride *= t.sizes[i])
    if (t.strides[i] != stride) return false;
  return true;
}

// The short way for small work: every input is row-major with the compute dtype and one shape, or a
// single element. Returns whether it applied. No loop engine, no threads, no
// conversion buffers.
bool run_directly(DenseFn fn, DType compute, DType result, const Tensor& into,
                  Span<const Tensor* const> inputs, const void* functor, Tensor& out) {
  const TensorImpl* shape = nullptr;  // the first input with dimensions
  for (const Tensor* t : inputs) {
    const TensorImpl* impl = t->impl();
    if (!impl->device.is_cpu() || !impl->contiguous) return false;
    if (impl->ndim() == 0 && (impl->dtype != compute || impl->wrapped_number)) continue;
    if (impl->dtype != compute) return false;
    if (!shape || (shape->ndim() == 0 && impl->ndim() > 0)) shape = impl;
  }
  if (!shape || shape->numel > kInlineElements) return false;
  for (const Tensor* t : inputs) {
    const TensorImpl* impl = t->impl();
    if (impl->sizes == shape->sizes) continue;
    if (impl->ndim() != 0 || !has_usual_strides(*shape)) return false;
  }
  if (into.defined()) {
    const TensorImpl* target = into.impl();
    if (target->dtype != result || !target->device.is_cpu() || !target->contiguous ||
        !(target->sizes == shape->sizes) || !target->storage->writable())
      return false;
    for (const Tensor* t : inputs) {
      if (!t->is_same(into) && t->storage().get() == target->storage.get()) return false;
    }
    out = into;
  } else {
    out = empty_tensor(shape->sizes, result, DeviceType::kCPU);
  }
  alignas(kRepeatBytes) char copies[kMaxInputs][kRepeatBytes];
  const void* data[kMaxInputs];
  uint32_t repeated = 0;
  for (size_t i = 0; i < inputs.size(); i++) {
    const TensorImpl* impl = inputs[i]->impl();
    data[i] = impl->data();
    if (impl->dtype == compute && impl->numel == shape->numel && !impl->wrapped_number) continue;
    repeat_element(*inputs[i], compute, copies[i]);
    data[i] = copies[i];
    repeated |= 1u << i;
  }
  fn(out.data_ptr(), data, shape->numel, functor, repeated);
  if (into.defined()) into.impl()->bump_version();
  return true;
}

// Whether the result is row-major whatever the inputs' layouts are.
bool is_row_major(const Info& info, Span<const Tensor* const> inputs) {
  return info.layout == Layout::kRowMajor ||
         (info.layout == Layout::kRowMajorOfNumber && inputs[0]->impl()->wrapped_number) ||
         (info.layout == Layout::kRowMajorOfComplex && inputs[0]->is_complex());
}

// Strides of a fresh result for inputs that are promoted to `common`.
DimVector result_strides(const Info& info, IntSpan sizes, DType common,
                         Span<const Tensor* const> inputs) {
  if (is_row_major(info, inputs)) return contiguous_strides(sizes);
  return elementwise_strides(sizes, inputs, {common, info.promote == Promote::kMasked});
}

// Whether no input says another order than the row-major one. Strides of size 1 may.
bool all_row_major(IntSpan sizes, Span<const Tensor* const> inputs) {
  return std::ranges::all_of(inputs, [](const Tensor* t) { return t->impl()->contiguous; }) &&
         std::ranges::find(sizes, 1) == sizes.end();
}

// A fresh result, or the memory of an input that is read for the last time.
Tensor allocate_result(const Info& info, IntSpan sizes, DType common, DType dtype, Device device,
                       Span<const Tensor* const> inputs) {
  const bool row_major = all_row_major(sizes, inputs);
  const DimVector strides = row_major ? DimVector() : result_strides(info, sizes, common, inputs);
  for (const Tensor* t : inputs) {
    if (LastUse::frees(*t) && t->sizes() == sizes && t->dtype() == dtype && t->device() == device &&
        (row_major || t->strides() == strides))
      return *t;
  }
  return row_major ? empty_tensor(sizes, dtype, device)
                   : empty_strided_tensor(sizes, strides, dtype, device);
}

// What writes one value in place may do so into elements that share memory: PyTorch only warns.
bool may_overlap_itself(const Info& info, const Tensor& into, Span<const Tensor* const> inputs) {
  if (info.self_overlap == SelfOverlap::kRefused || !into.is_same(*inputs[0])) return false;
  if (internal_overlap(into.sizes(), into.strides()) != Overlap::kYes) return false;
  warn(
      format("Use of {}_ on expanded tensors, of which several elements are one place in memory, "
             "is deprecated: clone() the tensor before. This is also so for x[mask] = value.",
             info.name));
  return true;
}

void check_overlap(const Info& info, const Tensor& into, Span<const Tensor* const> inputs) {
  if (!may_overlap_itself(info, into, inputs)) check_no_internal_overlap(into);
  for (const Tensor* t : inputs) check_no_partial_overlap(into, *t);
}

// A dtype without a kernel, after what `into` may overlap: the order of PyTorch's errors.
[[noreturn, gnu::cold]] void fail_types(const Info& info, DType got, const Tensor& into,
                                        Span<const Tensor* const> inputs) {
  if (into.defined()) check_overlap(info, into, inputs);
  contract::fail_types(info.name, got);
}

// The dtypes that out= may have: where it is to be the result's, a magnitude yet goes into any real
// dtype and into that of the complex numbers.
OutDtype allowed_into(const Info& info, const Tensor& into, Span<const Tensor* const> inputs,
                      DType result) {
  const DType in = inputs[0]->dtype();
  const bool is_magnitude = is_complex(in) && !is_complex(result);
  if (is_magnitude && (!is_complex(into.dtype()) || into.dtype() == in)) return OutDtype::kCastable;
  if (info.out_dtype != OutDtype::kNumber) return info.out_dtype;
  return inputs.back()->dim() == 0 ? OutDtype::kCastable : OutDtype::kSame;
}

void check_into(const Info& info, const Tensor& into, Span<const Tensor* const> inputs,
                IntSpan sizes, DType common, DType result, Device device) {
  if (into.device() != device) [[unlikely]]
    contract::fail_device(info.name, "out", device, into.device());
  const bool in_place = into.is_same(*inputs[0]);
  const bool castable = info.out_dtype == OutDtype::kCastable;
  TD_CHECK(!in_place || castable || !is_complex(into.dtype()) || is_complex(result),
           "In-place {} is not supported for complex tensors.", info.name);
  // Before out= is resized: what counts is the layout that the caller gave.
  check_overlap(info, into, inputs);
  const OutDtype allowed =
      in_place ? OutDtype::kCastable : allowed_into(info, into, inputs, result);
  check_out_dtype(info.name, allowed, result, into.dtype());
  if (in_place) {
    TD_CHECK(into.sizes() == sizes, "{}: output with shape {} doesn't match the broadcast shape {}",
             info.name, into.sizes(), sizes);
  } else if (into.sizes() != sizes) {
    resize_out(info.name, into, sizes);
    // Its memory is new: in the order of a result of its own.
    into.impl()->set_layout(sizes, result_strides(info, sizes, common, inputs),
                            into.storage_offset());
  }
  TD_CHECK(into.storage()->writable(), "{}: the memory of the written-to tensor is read-only",
           info.name);
}

// Strides of `t` seen with the broadcast sizes.
DimVector expanded_strides(const Tensor& t, IntSpan sizes) {
  const size_t n = sizes.size(), m = t.sizes().size();
  DimVector strides(n, 0);
  for (size_t i = 0; i < m; i++) {
    if (t.sizes()[m - 1 - i] != 1) strides[n - 1 - i] = t.strides()[m - 1 - i];
  }
  return strides;
}

// Whether writing `into` could change elements of `input` that are still to be read; where that is
// certain, check_into has raised.
bool needs_copy(const Tensor& into, const Tensor& input) {
  if (into.storage().get() != input.storage().get()) return false;
  return memory_overlap(into, input) == MemoryOverlap::kUnknown;
}

View view_of(const Tensor& t, IntSpan sizes, IntSpan strides, int64_t numel) {
  return {t.data_ptr(), t.dtype(), sizes, strides, numel, true, t.device()};
}

View view_of(const Tensor& t) { return view_of(t, t.sizes(), t.strides(), t.numel()); }

// A functor, the types that it computes in and gives, its fields.
struct Kernel {
  const DenseTable& table;
  DType compute, result;
  const void* functor;

  void operator()(const View& out, Span<const View> in) const {
    if (out.device.is_cpu())
      return pointwise_loop(table[compute], compute, result, out, in, functor);
    cuda::pointwise({device_loop(table), compute, result, functor}, out, in);
  }
};

void launch(const Kernel& kernel, const Tensor& out, Span<const Tensor* const> inputs) {
  if (out.numel() == 0 || !has_memory(out.device())) return;
  if (is_storage_type(out.dtype()) && !out.device().is_cpu()) [[unlikely]] {
    // Half precision beside complex numbers: devices' kernels do not know complex32.
    const Tensor wide = empty_tensor(out.sizes(), kernel.result, out.device());
    launch(kernel, wide, inputs);
    return kernels::copy(view_of(out), view_of(wide));
  }
  DimVector strides[kMaxInputs];
  View views[kMaxInputs];
  for (size_t i = 0; i < inputs.size(); i++) {
    strides[i] = expanded_strides(*inputs[i], out.sizes());
    views[i] = view_of(*inputs[i], out.sizes(), strides[i], out.numel());
  }
  kernel(view_of(out), Span<const View>(views, inputs.size()));
}

}  // namespace

Tensor run(const Info& info, const DenseTable& table, const Tensor& into,
           Span<const Tensor* const> inputs, const void* functor) {
  const DType common = promoted(info, inputs);
  if (!(info.types & dtype_bit(common))) [[unlikely]]
    fail_types(info, common, into, inputs);
  const DType compute = dtype_info(common).compute;
  const DenseFn fn = table[compute];
  if (!fn) [[unlikely]]
    fail_types(info, common, into, inputs);
  const DType result = result_dtype(info, common);
  const Kernel kernel{table, compute, result_dtype(info, compute), functor};

  if (common == compute) {
    Tensor out;
    if (run_directly(fn, compute, result, into, inputs, functor, out)) return out;
  }

  DimVector sizes = inputs[0]->impl()->sizes;
  for (size_t i = 1; i < inputs.size(); i++) {
    if (!(inputs[i]->impl()->sizes == sizes)) sizes = broadcast_shapes(sizes, inputs[i]->sizes());
  }
  const Device device = common_device(info, inputs);
  Tensor out = into;
  if (!into.defined()) {
    out = allocate_result(info, sizes, common, result, device, inputs);
  } else {
    check_into(info, into, inputs, sizes, common, result, device);
  }
  if (into.defined()) {
    // An input that may overlap the output other than element by element is read from a copy.
    Tensor copies[kMaxInputs];
    const Tensor* safe[kMaxInputs];
    bool copied = false;
    for (size_t i = 0; i < inputs.size(); i++) {
      safe[i] = inputs[i];
      if (!inputs[i]->is_same(into) && needs_copy(into, *inputs[i])) {
        copies[i] = empty_tensor(inputs[i]->sizes(), inputs[i]->dtype(), device);
        kernels::copy(view_of(copies[i]), view_of(*inputs[i]));
        safe[i] = &copies[i];
        copied = true;
      }
    }
    contract::written(into,
                      [&] { launch(kernel, out, Span<const Tensor* const>(safe, inputs.size())); });
    if (copied) cuda::launch_what_is_put_off();  // before the copies are freed
  } else {
    launch(kernel, out, inputs);
  }
  return out;
}

}  // namespace pointwise
}  // namespace taeda
