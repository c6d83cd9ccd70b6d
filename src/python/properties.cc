// The properties of Tensor: shape, dtype, grad, data, T, ...
#include "op/imag.h"
#include "op/permute.h"
#include "op/real.h"
#include "op/transpose.h"
#include "python/arguments.h"
#include "python/autograd.h"
#include "python/module.h"
#include "python/tensor_slots.h"
#include "python/torch_function.h"
#include "python/wrap.h"
#include "taeda/warning.h"

namespace taeda::python {
namespace {

using Getter = PyObject* (*)(PyObject* self, const Tensor& x);

struct Property {
  const char* name;
  Getter get;
  const char* doc = nullptr;
  setter set = nullptr;
};

// Tensor.NAME.__get__ and the like, which __torch_function__ is given.
PyRef accessor(const Property& property, const char* kind) {
  PyRef descriptor =
      PyRef::check(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), property.name));
  return PyRef::check(PyObject_GetAttrString(descriptor.get(), kind));
}

PyObject* get(PyObject* self, void* closure) {
  TD_PYTHON_TRY
  const Property* property = static_cast<Property*>(closure);
  if (hands_over(self)) [[unlikely]] {
    return call_torch_function(accessor(*property, "__get__").get(), &self, 1, nullptr);
  }
  return property->get(self, tensor_of(self));
  TD_PYTHON_CATCH(nullptr)
}

int set(PyObject* self, PyObject* value, void* closure) {
  TD_PYTHON_TRY
  const Property* property = static_cast<Property*>(closure);
  if (hands_over(self)) [[unlikely]] {
    const PyRef function = accessor(*property, value ? "__set__" : "__delete__");
    PyObject* args[] = {self, value};
    PyRef::check(call_torch_function(function.get(), args, value ? 2 : 1, nullptr));
    return 0;
  }
  return property->set(self, value, closure);
  TD_PYTHON_CATCH(-1)
}

// The result of an operator that the table provides as a method.
PyObject* call(PyObject* self, const char* method) {
  return PyRef::check(PyObject_CallMethod(self, method, nullptr)).release();
}

template <bool value>
PyObject* constant(PyObject*, const Tensor&) {
  return PyBool_FromLong(value);
}

PyObject* get_transposed(PyObject*, const Tensor& x) {
  if (x.dim() == 0)
    TD_WARN_ONCE("Tensor.T is deprecated on 0-D tensors, where it is the tensor itself.");
  else if (x.dim() != 2)
    TD_WARN_ONCE(
        "Tensor.T on tensors of other than 2 dimensions, which reverses them all, is deprecated. "
        "Use x.mT to transpose batches of matrices, or x.permute.");
  if (x.dim() < 2) return wrap(op::permute(x, x.dim() == 1 ? IntSpan({0}) : IntSpan()));
  DimVector reversed(static_cast<size_t>(x.dim()));
  for (size_t i = 0; i < reversed.size(); i++)
    reversed[i] = static_cast<int64_t>(reversed.size() - 1 - i);
  return wrap(op::permute(x, reversed));
}

Tensor matrix_transposed(const Tensor& x, const char* name) {
  if (x.dim() == 0) {
    TD_WARN_ONCE("Tensor.{} is deprecated on 0-D tensors, where it only conjugates, if anything.",
                 name);
    return x;
  }
  TD_CHECK(x.dim() >= 2,
           "tensor.{} is only supported on matrices or batches of matrices. Got {}-D tensor.", name,
           x.dim());
  return op::transpose(x, -2, -1);
}

PyObject* get_hermitian(PyObject* self, const Tensor& x) {
  if (x.dim() == 0) {
    TD_WARN_ONCE("Tensor.H is deprecated on 0-D tensors, use x.conj().");
    return x.is_complex() ? call(self, "conj") : new_ref(self);
  }
  TD_CHECK(x.dim() == 2, "tensor.H is only supported on matrices (2-D tensors). Got {}-D tensor.{}",
           x.dim(), x.dim() > 2 ? " For batches of matrices, consider using tensor.mH" : "");
  return x.is_complex() ? call(PyRef::check(wrap(op::transpose(x, 0, 1))).get(), "conj")
                        : wrap(op::transpose(x, 0, 1));
}

PyObject* get_matrix_hermitian(PyObject*, const Tensor& x) {
  Tensor transposed = matrix_transposed(x, "mH");
  return x.is_complex() ? call(PyRef::check(wrap(std::move(transposed))).get(), "conj")
                        : wrap(std::move(transposed));
}

PyObject* get_grad(PyObject*, const Tensor& x) {
  Tensor gx = x.grad();
  if (!gx.defined() && !x.is_leaf() && !retains_grad(x)) {
    check_status(PyErr_WarnEx(
        PyExc_UserWarning,
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
        "attribute won't be populated during autograd.backward(). If you indeed want the .grad "
        "field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. "
        "If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor "
        "instead.",
        1));
  }
  return wrap(std::move(gx));
}

PyObject* get_grad_quietly(PyObject*, const Tensor& x) { return wrap(x.grad()); }

PyObject* get_real(PyObject* self, const Tensor& x) {
  return x.is_complex() ? wrap(op::real(x)) : new_ref(self);
}

PyObject* get_imag(PyObject*, const Tensor& x) { return wrap(op::imag(x)); }

int set_grad(PyObject* self, PyObject* value, void*) {
  TD_PYTHON_TRY
  const Tensor& x = tensor_of(self);
  if (!value || value == Py_None) {
    const_cast<Tensor&>(x).set_grad(Tensor());
    return 0;
  }
  if (!is_tensor(value)) {
    raise_python(PyExc_TypeError,
                 "assigned grad expected to be a Tensor or None but got grad of type {}",
                 type_name(value));
  }
  if (value == self) raise_python(PyExc_RuntimeError, "can't assign Variable as its own grad");
  const Tensor& gx = tensor_of(value);
  TD_CHECK(gx.dtype() == x.dtype(),
           "attempting to assign a gradient with dtype '{}' to a tensor with dtype '{}'. Please "
           "ensure that the "
           "gradient and the tensor have the same dtype",
           gx.dtype(), x.dtype());
  TD_CHECK(gx.device() == x.device(),
           "attempting to assign a gradient with device type '{}' to a tensor with device type "
           "'{}'. Please ensure "
           "that the gradient and the tensor are on the same device",
           gx.device(), x.device());
  TD_CHECK(gx.sizes() == x.sizes(),
           "attempting to assign a gradient of size '{}' to a tensor of size '{}'. Please ensure "
           "that the gradient and "
           "the tensor are the same size",
           gx.sizes(), x.sizes());
  const_cast<Tensor&>(x).set_grad(gx);
  return 0;
  TD_PYTHON_CATCH(-1)
}

int set_data(PyObject* self, PyObject* value, void*) {
  TD_PYTHON_TRY
  if (!value)
    raise_python(PyExc_RuntimeError, "Deleting tensor data is not allowed. Delete tensor instead!");
  if (!is_tensor(value)) {
    raise_python(PyExc_TypeError, "Variable data has to be a tensor, but got {}", type_name(value));
  }
  const_cast<Tensor&>(tensor_of(self)).set_data(tensor_of(value));
  return 0;
  TD_PYTHON_CATCH(-1)
}

int set_requires_grad(PyObject* self, PyObject* value, void*) {
  TD_PYTHON_TRY
  if (!value || !PyBool_Check(value))
    raise_python(PyExc_RuntimeError, "requires_grad must be a bool");
  Tensor& x = const_cast<Tensor&>(tensor_of(self));
  TD_CHECK(x.is_leaf() || value == Py_True,
           "you can only change requires_grad flags of leaf variables. If you want to use a "
           "computed variable in a "
           "subgraph that doesn't require differentiation use var_no_grad = var.detach().");
  if (x.is_leaf()) x.requires_grad_(value == Py_True);
  return 0;
  TD_PYTHON_CATCH(-1)
}

[[noreturn]] void fail_delete(const char* name) {
  raise_python(PyExc_RuntimeError, "Deleting tensor attribute {} is not allowed", name);
}

// None detaches, as detach_() does.
int set_grad_fn(PyObject* self, PyObject* value, void*) {
  TD_PYTHON_TRY
  if (!value) fail_delete("_grad_fn");
  if (value != Py_None) raise_python(PyExc_TypeError, "_grad_fn can be only set to None");
  PyRef::check(PyObject_CallMethod(self, "detach_", nullptr));
  return 0;
  TD_PYTHON_CATCH(-1)
}

int set_hooks(PyObject* self, PyObject* value, void*) {
  TD_PYTHON_TRY
  if (!value) fail_delete("_backward_hooks");
  set_backward_hooks(tensor_of(self), value);
  track_tensor(self);
  return 0;
  TD_PYTHON_CATCH(-1)
}

// x.real = y and x.imag = y write into the parts.
int set_part(PyObject* self, PyObject* value, void* closure) {
  TD_PYTHON_TRY
  if (!value) raise_python(PyExc_AttributeError, "cannot delete attribute");
  PyRef part = PyRef::check(PyObject_GetAttrString(self, static_cast<Property*>(closure)->name));
  PyRef done = PyRef::check(
      PyObject_CallMethod(part.get(), is_tensor(value) ? "copy_" : "fill_", "O", value));
  return 0;
  TD_PYTHON_CATCH(-1)
}

constexpr const char* kNoSuchTensor = "False: there are no such tensors.";

Property properties[] = {
    {"shape", [](PyObject*, const Tensor& x) { return wrap(x.sizes()); },
     "The sizes of the dimensions, as size() gives them."},
    {"dtype", [](PyObject*, const Tensor& x) { return wrap(x.dtype()); },
     "The type of the elements."},
    {"device", [](PyObject*, const Tensor& x) { return wrap(x.device()); },
     "Where the memory is: cpu, or meta for tensors that are only a shape."},
    {"layout", [](PyObject*, const Tensor& x) { return wrap(x.layout()); },
     "How the elements are held: torch.strided, torch.sparse_coo, torch.sparse_csr, ..."},
    {"requires_grad", [](PyObject*, const Tensor& x) { return wrap(x.requires_grad()); },
     "Whether operators on the tensor are recorded for backward; may be set on leaves."},
    {"grad", get_grad,
     "The gradient that backward has accumulated, a tensor of this shape, or None."},
    {"_grad", get_grad_quietly},
    {"data", [](PyObject*, const Tensor& x) { return wrap(x.variable_data()); },
     "The same memory without history and with a version of its own; setting it makes the tensor\n"
     "show other memory."},
    {"grad_fn", [](PyObject*, const Tensor& x) { return grad_fn_object(x); },
     "The node of the graph that made the tensor; None for leaves."},
    {"_grad_fn", [](PyObject*, const Tensor& x) { return grad_fn_object(x); }},
    {"_backward_hooks", [](PyObject*, const Tensor& x) { return backward_hooks(x); }},
    {"is_leaf", [](PyObject*, const Tensor& x) { return wrap(x.is_leaf()); },
     "Whether no recorded operator made the tensor: backward accumulates into such tensors."},
    {"retains_grad", [](PyObject*, const Tensor& x) { return wrap(retains_grad(x)); },
     "Whether backward keeps the gradient of this tensor though it is no leaf."},
    {"output_nr", [](PyObject*, const Tensor& x) { return wrap(output_number(x)); },
     "Which result of its grad_fn the tensor is, from 0."},
    {"_version",
     [](PyObject*, const Tensor& x) {
       TD_CHECK(!x.is_inference(), "Inference tensors do not track version counter.");
       return wrap(static_cast<int64_t>(x.version()));
     }},
    {"_base", [](PyObject*, const Tensor& x) { return wrap(Tensor(x.impl()->view_base)); }},
    {"_cdata",
     [](PyObject*, const Tensor& x) { return wrap(reinterpret_cast<int64_t>(x.impl())); }},
    {"ndim", [](PyObject*, const Tensor& x) { return wrap(x.dim()); }, "The number of dimensions."},
    {"itemsize", [](PyObject*, const Tensor& x) { return wrap(x.itemsize()); },
     "Bytes of one element."},
    {"nbytes", [](PyObject*, const Tensor& x) { return wrap(x.nbytes()); },
     "Bytes of all elements: numel() * itemsize."},
    {"T", get_transposed,
     "A view with the dimensions in reverse order.\n\n>>> torch.ones(2, 3).T.shape\n"
     "torch.Size([3, 2])"},
    {"mT", [](PyObject*, const Tensor& x) { return wrap(matrix_transposed(x, "mT")); },
     "A view with the last two dimensions exchanged.\n\n>>> torch.ones(4, 2, 3).mT.shape\n"
     "torch.Size([4, 3, 2])"},
    {"H", get_hermitian,
     "The conjugate transpose of a matrix.\n\n>>> torch.tensor([[1, 2j]]).H\n"
     "tensor([[1.-0.j],\n        [0.-2.j]])"},
    {"mH", get_matrix_hermitian,
     "The last two dimensions exchanged, and the complex conjugate.\n\n"
     ">>> torch.tensor([[1, 2j]]).mH\ntensor([[1.-0.j],\n        [0.-2.j]])"},
    {"real", get_real, "The real part as a view; the tensor itself where it is real."},
    {"imag", get_imag,
     "The imaginary part of a complex tensor, as a view; RuntimeError for others."},
    {"name", [](PyObject*, const Tensor&) { return new_ref(Py_None); },
     "None: tensors have no names."},
    {"is_cpu", [](PyObject*, const Tensor& x) { return wrap(x.device().is_cpu()); },
     "Whether the tensor is in main memory."},
    {"is_meta", [](PyObject*, const Tensor& x) { return wrap(x.is_meta()); },
     "Whether the tensor is only a shape, on device meta."},
    {"is_cuda",
     [](PyObject*, const Tensor& x) { return wrap(x.device().type == DeviceType::kCUDA); },
     "Whether the tensor is on a CUDA device."},
    {"is_sparse", [](PyObject*, const Tensor& x) { return wrap(x.layout() == Layout::kSparseCoo); },
     "Whether the layout is torch.sparse_coo."},
    {"is_sparse_csr",
     [](PyObject*, const Tensor& x) { return wrap(x.layout() == Layout::kSparseCsr); },
     "Whether the layout is torch.sparse_csr."},
    {"is_quantized", constant<false>, kNoSuchTensor},
    {"is_mkldnn", constant<false>, kNoSuchTensor},
    {"is_nested", constant<false>, kNoSuchTensor},
    {"is_mps", constant<false>, kNoSuchTensor},
    {"is_xpu", constant<false>, kNoSuchTensor},
    {"is_xla", constant<false>, kNoSuchTensor},
    {"is_vulkan", constant<false>, kNoSuchTensor},
    {"is_ipu", constant<false>, kNoSuchTensor},
    {"is_maia", constant<false>, kNoSuchTensor},
    {"is_mtia", constant<false>, kNoSuchTensor},
};

struct Setter {
  const char* name;
  setter set;
};
constexpr Setter kSetters[] = {{"grad", set_grad},        {"_grad", set_grad},
                               {"data", set_data},        {"requires_grad", set_requires_grad},
                               {"_grad_fn", set_grad_fn}, {"_backward_hooks", set_hooks},
                               {"real", set_part},        {"imag", set_part}};

constexpr size_t kCount = std::size(properties);

}  // namespace

PyGetSetDef tensor_properties[kCount + 1];

void fill_tensor_properties() {
  for (size_t i = 0; i < kCount; i++) {
    for (const Setter& s : kSetters) {
      if (std::string_view(s.name) == properties[i].name) properties[i].set = s.set;
    }
    tensor_properties[i] = {properties[i].name, get, properties[i].set ? set : nullptr,
                            properties[i].doc, &properties[i]};
  }
}

}  // namespace taeda::python
