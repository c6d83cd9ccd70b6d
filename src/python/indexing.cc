#include "python/indexing.h"

#include "python/arguments.h"
#include "python/construction.h"
#include "python/interop.h"
#include "python/tensor_slots.h"
#include "python/torch_function.h"
#include "python/wrap.h"
#include "taeda/ops.h"

namespace taeda::python {
namespace {

// --- what kind of index an object is ---

bool is_mask(const Tensor& x) { return x.dtype() == DType::kBool || x.dtype() == DType::kUInt8; }
bool is_index_dtype(DType dtype) {
  return dtype == DType::kInt64 || dtype == DType::kInt32 || dtype == DType::kBool ||
         dtype == DType::kUInt8;
}

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
          "Using a non-tuple sequence for multidimensional indexing is deprecated; use "
          "x[tuple(seq)] instead of x[seq]",
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

// --- views ---

// `shown` is the dimension of the indexed tensor, which messages name.
Tensor select_checked(const Tensor& x, int64_t dim, int64_t index, int64_t shown) {
  if (x.dim() == 0) {
    raise_python(PyExc_IndexError,
                 "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                 "`tensor.item<T>()` in C++ to "
                 "convert a 0-dim tensor to a number");
  }
  const int64_t size = x.sizes()[static_cast<size_t>(dim)];
  if (index < -size || index >= size) {
    raise_python(PyExc_IndexError, "index {} is out of bounds for dimension {} with size {}", index,
                 shown, size);
  }
  return select(x, dim, index);
}

Tensor apply_slice(const Tensor& x, int64_t dim, PyObject* index, bool& changed) {
  Py_ssize_t start, stop, step;
  check_status(PySlice_Unpack(index, &start, &stop, &step));
  if (step < 1) raise_python(PyExc_ValueError, "step must be greater than zero");
  if (x.dim() == 0) raise_python(PyExc_IndexError, "slice() cannot be applied to a 0-dim tensor.");
  const int64_t size = x.sizes()[static_cast<size_t>(dim)];
  if (start == 0 && step == 1 && stop >= size) return x;
  changed = true;
  return slice(x, dim, OptInt(start), OptInt(stop), step);
}

// How many dimensions an index consumes.
int64_t consumed_dims(PyObject* item) {
  if (item == Py_None || item == Py_Ellipsis || PyBool_Check(item)) return 0;
  if (is_tensor(item)) {
    const Tensor& index = tensor_of(item);
    return is_mask(index) ? index.dim() : 1;
  }
  return 1;
}

// Applies the items of an index from left to right.
class Indexer {
 public:
  explicit Indexer(const Tensor& x) { result_.view = x; }

  void apply(PyObject* const* items, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) {
      if (!is_plain_index(items[i])) return apply_converted(items, count);
    }
    apply_plain(items, count);
  }

  Indexed take() { return std::move(result_); }

 private:
  static constexpr Py_ssize_t kMaxItems = 64;

  [[noreturn]] void fail_count() {
    raise_python(PyExc_IndexError, "too many indices for tensor of dimension {}",
                 result_.view.dim());
  }

  static bool is_plain_index(PyObject* item) {
    return PyLong_CheckExact(item) || PySlice_Check(item) || item == Py_None ||
           item == Py_Ellipsis || is_tensor(item);
  }

  void apply_plain(PyObject* const* items, Py_ssize_t count) {
    int64_t specified = 0;
    for (Py_ssize_t i = 0; i < count; i++) specified += consumed_dims(items[i]);
    free_ = result_.view.dim() - specified;
    if (free_ < 0) fail_count();
    for (Py_ssize_t i = 0; i < count; i++) {
      const int64_t consumed = items[i] == Py_Ellipsis ? free_ : consumed_dims(items[i]);
      apply(items[i]);
      source_ += consumed;
    }
  }

  void apply_converted(PyObject* const* items, Py_ssize_t count) {
    if (count > kMaxItems) fail_count();
    PyRef owners[kMaxItems];
    PyObject* converted[kMaxItems];
    for (Py_ssize_t i = 0; i < count; i++) {
      owners[i] = convert(items[i]);
      converted[i] = owners[i].get();
    }
    apply_plain(converted, count);
  }

  // Sequences and arrays as tensors, so that the rest sees few types.
  PyRef convert(PyObject* item) {
    if (is_sequence(item)) {
      Tensor index = tensor_from_data(item, {}, {});
      if (index.numel() == 0 && is_inexact(index.dtype()))
        index = fresh_tensor(index.sizes(), DType::kInt64);
      return PyRef::check(wrap(std::move(index)));
    }
    if (is_numpy_array(item)) return PyRef::check(wrap(tensor_from_buffer(item, /*copy=*/true)));
    return PyRef::share(item);
  }

  void apply(PyObject* item) {
    Tensor& view = result_.view;
    if (PyLong_CheckExact(item)) {
      view = select_checked(view, dim_, to_int(item), source_);
      result_.changed = true;
    } else if (PySlice_Check(item)) {
      view = apply_slice(view, dim_, item, result_.changed);
      dim_++;
    } else if (item == Py_Ellipsis) {
      dim_ += std::exchange(free_, 0);
    } else if (item == Py_None) {
      view = unsqueeze(view, dim_++);
      result_.changed = true;
    } else if (PyBool_Check(item)) {
      apply_bool(item == Py_True);
    } else if (is_tensor(item)) {
      apply_tensor(tensor_of(item));
    } else if (can_be_int(item)) {
      view = select_checked(view, dim_, to_int(item), source_);
      result_.changed = true;
    } else if (PyIndex_Check(item) && !is_numpy_scalar(item)) {
      view = select_checked(view, dim_, to_int(PyRef::check(PyNumber_Index(item)).get()), source_);
      result_.changed = true;
    } else {
      fail_index_type(item);
    }
  }

  // True adds a dimension of size 1, False one of size 0.
  void apply_bool(bool value) {
    result_.view = unsqueeze(result_.view, dim_);
    result_.changed = true;
    Tensor index = fresh_tensor({value ? 1 : 0}, DType::kInt64);
    if (value) *index.data<int64_t>() = 0;
    record(std::move(index));
  }

  void apply_tensor(const Tensor& index) {
    if (index.dim() == 0 && !is_inexact(index.dtype()) && !index.is_meta()) {
      const Scalar value = index.item_scalar();
      if (index.dtype() == DType::kBool || index.dtype() == DType::kUInt8) {
        if (index.dtype() == DType::kBool) return apply_bool(value.to_bool());
      }
      result_.view = select_checked(result_.view, dim_, value.to_int(), source_);
      result_.changed = true;
      return;
    }
    if (!is_index_dtype(index.dtype())) {
      raise_python(PyExc_IndexError,
                   "tensors used as indices must be long, int, byte or bool tensors");
    }
    if (is_mask(index)) check_mask(index);
    record(index);
  }

  // A mask covers as many dimensions as it has, and must have their sizes.
  void check_mask(const Tensor& mask) {
    for (int64_t i = 0; i < mask.dim(); i++) {
      const int64_t at = dim_ + mask_shift_ + i;
      if (at < result_.view.dim() &&
          mask.sizes()[static_cast<size_t>(i)] == result_.view.sizes()[static_cast<size_t>(at)])
        continue;
      raise_python(PyExc_IndexError,
                   "The shape of the mask {} at index {} does not match the shape of the indexed "
                   "tensor {} at index {}",
                   mask.sizes(), i, result_.view.sizes(), at);
    }
  }

  void record(Tensor index) {
    if (is_mask(index)) mask_shift_ += index.dim() - 1;
    result_.indices.resize(static_cast<size_t>(dim_));
    result_.indices.push_back(std::move(index));
    dim_++;
  }

  Indexed result_;
  int64_t source_ = 0;      // dimensions of the indexed tensor used up so far
  int64_t dim_ = 0;         // of `view`, counting a mask as one
  int64_t mask_shift_ = 0;  // what masks to the left cover beyond one dimension each
  int64_t free_ = 0;        // dimensions that an Ellipsis stands for
};

// --- slots ---

PyObject* get_item_override(PyObject* self, PyObject* index) {
  PyRef function =
      PyRef::check(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), "__getitem__"));
  PyObject* args[] = {self, index};
  return call_torch_function(function.get(), args, 2, nullptr);
}

PyObject* get_item(PyObject* self, PyObject* index) {
  TD_PYTHON_TRY
  if (!is_exact_tensor(self) && overrides_torch_function(self)) [[unlikely]]
    return get_item_override(self, index);
  const Tensor& x = tensor_of(self);
  if (PyLong_CheckExact(index)) return wrap(select_checked(x, 0, to_int(index), 0));
  if (is_tensor(index) && overrides_torch_function(index)) [[unlikely]]
    return get_item_override(self, index);
  Indexed indexed = apply_index(x, index);
  if (!indexed.advanced()) return wrap(indexed.changed ? std::move(indexed.view) : alias(x));
  return wrap(unlocked_if(x.numel() >= kLargeElements,
                          [&] { return op::index(indexed.view, indexed.indices); }));
  TD_PYTHON_CATCH(nullptr)
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

// Leading dimensions of size 1 that the destination lacks do not count.
Tensor strip_leading_ones(const Tensor& value, int64_t ndim) {
  int64_t extra = 0;
  while (value.dim() - extra > ndim && value.sizes()[static_cast<size_t>(extra)] == 1) extra++;
  return extra ? view(value, value.sizes().slice(static_cast<size_t>(extra),
                                                 static_cast<size_t>(value.dim() - extra)))
               : value;
}

int set_item(PyObject* self, PyObject* index, PyObject* value) {
  TD_PYTHON_TRY
  if (!value) raise_python(PyExc_TypeError, "Tensor does not support deleting items");
  if ((!is_exact_tensor(self) && overrides_torch_function(self)) ||
      (!is_exact_tensor(value) && overrides_torch_function(value))) [[unlikely]] {
    PyRef function = PyRef::check(
        PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), "__setitem__"));
    PyObject* args[] = {self, index, value};
    PyRef done = PyRef::check(call_torch_function(function.get(), args, 3, nullptr));
    return 0;
  }
  const Tensor& x = tensor_of(self);
  const Tensor source = value_tensor(x, value);
  const Indexed indexed = apply_index(x, index);
  GilRelease release(x.numel() >= kLargeElements);
  if (indexed.advanced()) {
    Tensor converted = source;
    if (source.dtype() != x.dtype() &&
        (source.impl()->wrapped_number || source.dim() == 0 || is_mask(indexed.indices.back()))) {
      converted = to_dtype(source, x.dtype());
    }
    op::index_put_(indexed.view, indexed.indices, converted, /*accumulate=*/false);
  } else if (source.impl()->wrapped_number) {
    fill_(indexed.view, source);
  } else {
    copy_(indexed.view, strip_leading_ones(source, indexed.view.dim()));
  }
  return 0;
  TD_PYTHON_CATCH(-1)
}

Py_ssize_t length(PyObject* self) {
  const Tensor& x = tensor_of(self);
  if (x.dim() == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  return static_cast<Py_ssize_t>(x.sizes()[0]);
}

int contains(PyObject* self, PyObject* value) {
  TD_PYTHON_TRY
  if (!is_tensor(value) && !can_be_scalar(value)) {
    raise_python(
        PyExc_RuntimeError,
        "Tensor.__contains__ only supports Tensor or scalar, but you passed in a {}.",
        utf8(PyRef::check(PyObject_Str(reinterpret_cast<PyObject*>(Py_TYPE(value)))).get()));
  }
  PyRef equal = PyRef::check(PyObject_RichCompare(self, value, Py_EQ));
  PyRef any = PyRef::check(PyObject_CallMethod(equal.get(), "any", nullptr));
  return PyObject_IsTrue(any.get());
  TD_PYTHON_CATCH(-1)
}

PyObject* iterate(PyObject* self) {
  TD_PYTHON_TRY
  if (tensor_of(self).dim() == 0) raise_python(PyExc_TypeError, "iteration over a 0-d tensor");
  PyRef rows = PyRef::check(PyObject_CallMethod(self, "unbind", nullptr));
  return PyObject_GetIter(rows.get());
  TD_PYTHON_CATCH(nullptr)
}

}  // namespace

Indexed apply_index(const Tensor& x, PyObject* index) {
  Indexer indexer(x);
  if (PyTuple_Check(index)) {
    indexer.apply(reinterpret_cast<PyTupleObject*>(index)->ob_item, PyTuple_GET_SIZE(index));
  } else if (is_list_of_indices(index)) {
    PyRef items = PyRef::check(PyList_AsTuple(index));  // the list may change while it is read
    indexer.apply(reinterpret_cast<PyTupleObject*>(items.get())->ob_item,
                  PyTuple_GET_SIZE(items.get()));
  } else {
    indexer.apply(&index, 1);
  }
  return indexer.take();
}

void add_indexing_slots(TypeSlots& slots) {
  slots.push_back(type_slot(Py_mp_subscript, get_item));
  slots.push_back(type_slot(Py_mp_ass_subscript, set_item));
  slots.push_back(type_slot(Py_mp_length, length));
  slots.push_back(type_slot(Py_sq_contains, contains));
  slots.push_back(type_slot(Py_tp_iter, iterate));
}

}  // namespace taeda::python
