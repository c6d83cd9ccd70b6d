#include "python/indexing.h"

#include <vector>

#include "autograd/anomaly.h"
#include "op/alias.h"
#include "op/to_dtype.h"
#include "python/arguments.h"
#include "python/call.h"
#include "python/call_note.h"
#include "python/construction.h"
#include "python/interop.h"
#include "python/tensor_slots.h"
#include "python/torch_function.h"
#include "python/wrap.h"

namespace taeda::python {
namespace {

using namespace indexing;

// --- indices from objects ---

bool is_sequence(PyObject* object) {
  return (PyList_Check(object) || PyTuple_Check(object) || PyRange_Check(object)) &&
         !is_tensor(object);
}

// A list that holds more than numbers is read as a tuple of indices, as old NumPy did.
bool is_list_of_indices(PyObject* index) {
  if (!PyList_Check(index)) return false;
  constexpr Py_ssize_t kMaxDimensions = 32;
  const Py_ssize_t size = PyList_GET_SIZE(index);
  if (size >= kMaxDimensions) return false;
  for (Py_ssize_t i = 0; i < size; i++) {
    PyObject* item = PyList_GET_ITEM(index, i);
    if (is_tensor(item) || is_sequence(item) || PySlice_Check(item) || item == Py_Ellipsis ||
        item == Py_None || is_numpy_array(item)) {
      check_status(PyErr_WarnEx(
          PyExc_UserWarning,
          "Using a non-tuple sequence for multidimensional indexing is deprecated and will be "
          "changed in pytorch 2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will "
          "be "
          "interpreted as tensor index, x[torch.tensor(seq)], which will result either in an error "
          "or a different result",
          1));
      return true;
    }
  }
  return false;
}

[[noreturn]] void fail_index_type(PyObject* object) {
  if (PyUnicode_Check(object)) raise_python(PyExc_TypeError, "new(): invalid data type 'str'");
  raise_python(PyExc_IndexError,
               "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are "
               "valid indices (got {})",
               type_name(object));
}

Slice to_slice(PyObject* object) {
  Py_ssize_t start, stop, step;
  check_status(PySlice_Unpack(object, &start, &stop, &step));
  return Slice(OptInt(start), OptInt(stop), OptInt(step));
}

// Numbers in lists are cut to integers, as PyTorch cuts them.
Tensor index_from_sequence(PyObject* object) {
  if (PyList_Check(object) && PyList_GET_SIZE(object) > 0 &&
      PyUnicode_Check(PyList_GET_ITEM(object, 0)))
    fail_index_type(PyList_GET_ITEM(object, 0));
  const Tensor index = tensor_from_data(object, {}, {});
  if (index.numel() > 0 && is_complex(index.dtype()))
    raise_python(PyExc_TypeError, "'complex' object cannot be interpreted as an integer");
  return is_floating(index.dtype()) ? op::to_dtype(index, DType::kInt64, false, {}) : index;
}

// NumPy's arrays are read as lists of their elements are: numbers but masks' as int64.
Tensor whole_numbers(const Tensor& index) {
  const bool is_mask = index.dtype() == DType::kBool || index.dtype() == DType::kUInt8;
  return is_mask || index.dtype() == DType::kInt64 ? index
                                                   : op::to_dtype(index, DType::kInt64, false, {});
}

TensorIndex to_index(PyObject* object) {
  if (PyLong_CheckExact(object)) return to_int(object);
  if (PySlice_Check(object)) return to_slice(object);
  if (object == Py_None) return None;
  if (object == Py_Ellipsis) return Ellipsis;
  if (PyBool_Check(object)) return object == Py_True;
  if (is_tensor(object)) return tensor_of(object);
  if (is_sequence(object)) return index_from_sequence(object);
  if (is_numpy_array(object)) return whole_numbers(tensor_from_buffer(object, /*copy=*/true));
  if (can_be_int(object)) return to_int(object);
  if (PyIndex_Check(object) && !is_numpy_scalar(object))
    return to_int(PyRef::check(PyNumber_Index(object)).get());
  fail_index_type(object);
}

Indexed apply_items(const Tensor& x, PyObject* const* items, Py_ssize_t count) {
  constexpr Py_ssize_t kMaxItems = 64;
  if (count > kMaxItems)
    raise_python(PyExc_IndexError, "too many indices for tensor of dimension {}", x.dim());
  constexpr Py_ssize_t kFewItems = 4;  // whose indices need no allocation
  TensorIndex few[kFewItems];
  std::vector<TensorIndex> many;
  if (count > kFewItems) many.resize(static_cast<size_t>(count));
  TensorIndex* indices = count > kFewItems ? many.data() : few;
  for (Py_ssize_t i = 0; i < count; i++) indices[i] = to_index(items[i]);
  return indexing::apply(x, Span<const TensorIndex>(indices, static_cast<size_t>(count)));
}

// --- slots ---

PyObject* get_item(PyObject* self, PyObject* index) {
  try {
    if (hands_over(self)) [[unlikely]]
      return hand_over("__getitem__", {self, index}).release();
    const Tensor& x = tensor_of(self);
    if (PyLong_CheckExact(index)) return wrap(indexing::select_checked(x, 0, to_int(index), 0));
    if (is_overridden_by(index)) [[unlikely]]
      return hand_over("__getitem__", {self, index}).release();
    Indexed indexed = apply_index(x, index);
    if (!indexed.advanced()) return wrap(indexed.changed ? std::move(indexed.view) : op::alias(x));
    return wrap(unlocked_if(x.numel() >= kLargeElements, [&] { return indexing::get(indexed); }));
  } catch (...) {
    fail_item(self, index, nullptr);
    return nullptr;
  }
}

// The assigned value as a tensor: numbers become 0-d tensors of x's dtype.
Tensor value_tensor(const Tensor& x, PyObject* value) {
  if (is_tensor(value)) return tensor_of(value);
  if (!can_be_scalar(value)) {
    raise_python(PyExc_TypeError, "can't assign a {} to a torch.{}Tensor", type_name(value),
                 scalar_type_name(x.dtype()));
  }
  if (PyLong_Check(value) && !PyBool_Check(value)) return Tensor(Scalar(to_int(value)));
  return Tensor(to_scalar(value));
}

int set_item(PyObject* self, PyObject* index, PyObject* value) {
  try {
    if (!value) raise_python(PyExc_TypeError, "Tensor does not support deleting items");
    if (hands_over(self) || hands_over(value) || is_overridden_by(index)) [[unlikely]] {
      hand_over("__setitem__", {self, index, value});
      return 0;
    }
    const Tensor& x = tensor_of(self);
    const Tensor source = value_tensor(x, value);
    const Indexed indexed = apply_index(x, index);
    GilRelease release(x.numel() >= kLargeElements);
    indexing::set(indexed, source);
    autograd::rename_write(indexed.view, "x[...] = value");
    return 0;
  } catch (...) {
    fail_item(self, index, value);
    return -1;
  }
}

Py_ssize_t length(PyObject* self) {
  TD_PYTHON_TRY
  if (hands_over(self)) [[unlikely]] {
    const Py_ssize_t size =
        PyNumber_AsSsize_t(hand_over("__len__", {self}).get(), PyExc_OverflowError);
    if (size < 0 && !PyErr_Occurred())
      raise_python(PyExc_ValueError, "__len__() should return >= 0");
    return size;
  }
  const Tensor& x = tensor_of(self);
  if (x.dim() == 0) raise_python(PyExc_TypeError, "len() of a 0-d tensor");
  return static_cast<Py_ssize_t>(x.sizes()[0]);
  TD_PYTHON_CATCH(-1)
}

int contains(PyObject* self, PyObject* value) {
  TD_PYTHON_TRY
  if (hands_over(self)) [[unlikely]]
    return PyObject_IsTrue(hand_over("__contains__", {self, value}).get());
  if (!is_tensor(value) && !can_be_scalar(value)) {
    raise_python(
        PyExc_RuntimeError,
        "Tensor.__contains__ only supports Tensor or scalar, but you passed in a {}.",
        utf8(PyRef::check(PyObject_Str(reinterpret_cast<PyObject*>(Py_TYPE(value)))).get()));
  }
  PyRef equal = PyRef::check(PyObject_RichCompare(self, value, Py_EQ));
  PyRef any =
      PyRef::check(call_python([&] { return PyObject_CallMethod(equal.get(), "any", nullptr); }));
  return PyObject_IsTrue(any.get());
  TD_PYTHON_CATCH(-1)
}

PyObject* iterate(PyObject* self) {
  TD_PYTHON_TRY
  if (tensor_of(self).dim() == 0) raise_python(PyExc_TypeError, "iteration over a 0-d tensor");
  PyRef rows =
      PyRef::check(call_python([&] { return PyObject_CallMethod(self, "unbind", nullptr); }));
  return PyObject_GetIter(rows.get());
  TD_PYTHON_CATCH(nullptr)
}

}  // namespace

Indexed apply_index(const Tensor& x, PyObject* index) {
  PyRef owner;
  if (is_list_of_indices(index)) {
    owner = PyRef::check(PyList_AsTuple(index));  // the list may change while it is read
    index = owner.get();
  }
  if (!PyTuple_Check(index)) return apply_items(x, &index, 1);
  return apply_items(x, reinterpret_cast<PyTupleObject*>(index)->ob_item, PyTuple_GET_SIZE(index));
}

void add_indexing_slots(TypeSlots& slots) {
  slots.push_back(type_slot(Py_mp_subscript, get_item));
  slots.push_back(type_slot(Py_mp_ass_subscript, set_item));
  slots.push_back(type_slot(Py_mp_length, length));
  slots.push_back(type_slot(Py_sq_contains, contains));
  slots.push_back(type_slot(Py_tp_iter, iterate));
}

}  // namespace taeda::python
