#include "python/pickle/pickler.h"

#include "core/device_memory.h"
#include "python/objects.h"
#include "python/storage_object.h"
#include "python/wrap.h"

namespace taeda::python {
namespace {

constexpr int64_t kSignalPeriod = 1 << 16;
constexpr Py_ssize_t kBatch = 1000;  // values that a reader holds on its stack at most

// The opcodes of the pickletools module.
constexpr unsigned char kMark = '(', kPop = '0', kPopMark = '1', kNone = 'N', kTuple = 't';
constexpr unsigned char kEmptyList = ']', kList = 'l', kAppend = 'a', kAppends = 'e';
constexpr unsigned char kEmptyDict = '}', kDict = 'd', kSetItem = 's', kSetItems = 'u';
constexpr unsigned char kEmptySet = 0x8F, kAddItems = 0x90, kFrozenSet = 0x91, kTuple1 = 0x85;
constexpr unsigned char kReduce = 'R', kBuild = 'b', kPersistentId = 'Q', kStackGlobal = 0x93;
constexpr unsigned char kProtocol = 0x80, kStop = '.';

// RecursionError instead of the end of the stack.
class PickledDepth {
 public:
  PickledDepth() {
    if (Py_EnterRecursiveCall(" while pickling an object")) throw PythonError();
  }
  ~PickledDepth() { Py_LeaveRecursiveCall(); }
  PickledDepth(const PickledDepth&) = delete;
  PickledDepth& operator=(const PickledDepth&) = delete;
};

PyRef attribute(PyObject* object, const char* name) {
  return PyRef::check(PyObject_GetAttrString(object, name));
}
bool has_type(PyObject* object, const PyRef& type) {
  return reinterpret_cast<PyObject*>(Py_TYPE(object)) == type.get();
}

// Whether the elements of a tensor lie in its storage.
bool is_inside_storage(const Tensor& x) {
  int64_t last = x.storage_offset();
  bool overflow = last < 0;
  for (size_t i = 0; i < x.sizes().size(); i++) {
    if (x.sizes()[i] == 0) return false;  // any sizes may stand beside it
    int64_t extent;
    overflow |= __builtin_mul_overflow(x.sizes()[i] - 1, x.strides()[i], &extent);
    overflow |= x.strides()[i] < 0 || __builtin_add_overflow(last, extent, &last);
  }
  return !overflow && last < x.storage()->nbytes() / item_size(x.dtype());
}

}  // namespace

PickleRules::PickleRules(PyObject* rules)
    : describe(attribute(rules, "describe")),
      name(attribute(rules, "name")),
      storage(attribute(rules, "storage")),
      rebuild_tensor(attribute(rules, "rebuild_tensor")),
      ordered_dict(attribute(rules, "ordered_dict")),
      storage_names(attribute(rules, "storage_names")) {}

void Pickler::dump(PyObject* object) {
  if (writer_.protocol() >= 2) {
    writer_.opcode(kProtocol);
    writer_.opcode(static_cast<unsigned char>(writer_.protocol()));
  }
  save(object);
  writer_.opcode(kStop);
}

void Pickler::save(PyObject* object) {
  if (++count_ % kSignalPeriod == 0) check_status(PyErr_CheckSignals());
  if (save_plain(object) || recall(object)) return;
  if (PyUnicode_CheckExact(object)) {
    writer_.text(object);
    return memoize(object);
  }
  const PickledDepth depth;
  if (!save_recursive(object)) save_described(object);
}

// What is written anew each time.
bool Pickler::save_plain(PyObject* object) {
  if (object == Py_None)
    writer_.opcode(kNone);
  else if (PyBool_Check(object))
    writer_.boolean(object == Py_True);
  else if (PyLong_CheckExact(object))
    writer_.integer(object);
  else if (PyFloat_CheckExact(object))
    writer_.real(PyFloat_AS_DOUBLE(object));
  else if (is_storage(object))
    save_storage(object, Py_None);
  else
    return false;
  return true;
}

// Old protocols have no opcodes for some types, which are described then, as all the others are.
bool Pickler::save_recursive(PyObject* object) {
  const int protocol = writer_.protocol();
  if (PyTuple_CheckExact(object)) {
    save_tuple(object);
  } else if (PyList_CheckExact(object)) {
    save_list(object);
  } else if (PyDict_CheckExact(object)) {
    save_dict(object);
  } else if (is_exact_tensor(object)) {
    return save_tensor(object);
  } else if (has_type(object, rules_.name)) {
    save_name(object);
    memoize(object);
  } else if (PyBytes_CheckExact(object) && protocol >= 3) {
    writer_.byte_string(object);
    memoize(object);
  } else if (PyByteArray_CheckExact(object) && protocol >= 5) {
    writer_.byte_array(object);
    memoize(object);
  } else if (Py_IS_TYPE(object, &PySet_Type) && protocol >= 4) {
    save_set(object);
  } else if (PyFrozenSet_CheckExact(object) && protocol >= 4) {
    save_frozenset(object);
  } else {
    return false;
  }
  return true;
}

// --- the memo ---

bool Pickler::recall(PyObject* object) {
  const size_t number = memo_.find(object);
  if (number == PickledObjects::kNone) return false;
  writer_.get(number);
  return true;
}

bool Pickler::recall_recursive(PyObject* object, size_t values, bool marked) {
  if (memo_.find(object) == PickledObjects::kNone) return false;
  if (marked && writer_.is_binary()) {
    writer_.opcode(kPopMark);
  } else {
    for (size_t i = 0; i < values + marked; i++) writer_.opcode(kPop);
  }
  return recall(object);
}

// --- containers ---

void Pickler::save_tuple(PyObject* tuple) {
  const size_t size = static_cast<size_t>(PyTuple_GET_SIZE(tuple));
  if (size == 0) return writer_.empty_tuple();
  const bool marked = size > 3 || writer_.protocol() < 2;
  if (marked) writer_.opcode(kMark);
  for (size_t i = 0; i < size; i++) save(PyTuple_GET_ITEM(tuple, static_cast<Py_ssize_t>(i)));
  if (recall_recursive(tuple, size, marked)) return;
  writer_.opcode(marked ? kTuple : static_cast<unsigned char>(kTuple1 + size - 1));
  memoize(tuple);
}

// At most `size` values, in batches; `save_next` saves one, and gives false where there is none any
// more.
template <class SaveNext>
void Pickler::save_batches(Py_ssize_t size, unsigned char one, unsigned char many,
                           SaveNext save_next) {
  Py_ssize_t done = 0;
  if (!writer_.is_binary() || size == 1) {
    for (; done < size && save_next(); done++) writer_.opcode(one);
    return;
  }
  while (done < size) {
    const Py_ssize_t end = std::min(size, done + kBatch);
    writer_.opcode(kMark);
    while (done < end && save_next()) done++;
    if (done < end) size = done;
    writer_.opcode(many);
  }
}

// The list may change while its items are saved.
void Pickler::append_items(PyObject* list) {
  Py_ssize_t i = 0;
  save_batches(PyList_GET_SIZE(list), kAppend, kAppends, [&] {
    if (i >= PyList_GET_SIZE(list)) return false;
    const PyRef item = PyRef::share(PyList_GET_ITEM(list, i++));
    save(item.get());
    return true;
  });
}

void Pickler::save_list(PyObject* list) {
  writer_.is_binary() ? writer_.opcode(kEmptyList) : writer_.opcodes("(l");
  memoize(list);
  append_items(list);
}

void Pickler::set_dict_items(PyObject* dict) {
  const Py_ssize_t size = PyDict_GET_SIZE(dict);
  Py_ssize_t at = 0;
  save_batches(size, kSetItem, kSetItems, [&] {
    PyObject *key, *value;
    if (!PyDict_Next(dict, &at, &key, &value)) return false;
    const PyRef owners[] = {PyRef::share(key), PyRef::share(value)};
    save(key);
    save(value);
    if (PyDict_GET_SIZE(dict) != size)
      raise_python(PyExc_RuntimeError, "dictionary changed size during iteration");
    return true;
  });
}

void Pickler::save_dict(PyObject* dict) {
  writer_.is_binary() ? writer_.opcode(kEmptyDict) : writer_.opcodes("(d");
  memoize(dict);
  set_dict_items(dict);
}

void Pickler::save_set(PyObject* set) {
  writer_.opcode(kEmptySet);
  memoize(set);
  const PyRef items = PyRef::check(PySequence_List(set));
  Py_ssize_t i = 0;
  const Py_ssize_t size = PyList_GET_SIZE(items.get());
  for (Py_ssize_t done = 0; done < size; done += kBatch) {
    writer_.opcode(kMark);
    for (; i < std::min(size, done + kBatch); i++) save(PyList_GET_ITEM(items.get(), i));
    writer_.opcode(kAddItems);
  }
}

void Pickler::save_frozenset(PyObject* set) {
  const PyRef items = PyRef::check(PySequence_List(set));
  writer_.opcode(kMark);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); i++)
    save(PyList_GET_ITEM(items.get(), i));
  if (recall_recursive(set, 0, /*marked=*/true)) return;
  writer_.opcode(kFrozenSet);
  memoize(set);
}

// --- tensors ---

// A plain tensor as PyTorch's _rebuild_tensor_v2(storage, offset, size, stride, requires_grad,
// hooks); false where the rules must describe it.
bool Pickler::save_tensor(PyObject* object) {
  const Tensor& x = tensor_of(object);
  PyObject* const attributes = tensor_dict(object);
  if (attributes && PyDict_GET_SIZE(attributes) > 0) return false;
  if (!x.defined() || x.is_sparse() || x.is_conj() || x.is_neg() || !has_memory(x.device()) ||
      !is_inside_storage(x))
    return false;
  if (is_storage_type(x.dtype())) return false;  // no storage class is named after it
  save(rules_.rebuild_tensor.get());
  writer_.opcode(kMark);
  save_storage(PyRef::check(wrap(x.storage())).get(), dtype_objects[static_cast<int>(x.dtype())]);
  writer_.integer(x.storage_offset());
  save_integers(x.sizes());
  save_integers(x.strides());
  writer_.boolean(x.requires_grad());
  save(rules_.ordered_dict.get());
  writer_.empty_tuple();
  writer_.opcode(kReduce);
  writer_.opcode(kTuple);
  writer_.opcode(kReduce);
  memoize(object);
  return true;
}

void Pickler::save_integers(IntSpan values) {
  if (values.size() == 0) return writer_.empty_tuple();
  const bool marked = values.size() > 3 || writer_.protocol() < 2;
  if (marked) writer_.opcode(kMark);
  for (const int64_t value : values) writer_.integer(value);
  writer_.opcode(marked ? kTuple : static_cast<unsigned char>(kTuple1 + values.size() - 1));
}

PyObject* Pickler::location(Device device) {
  for (const auto& [known, text] : locations_)
    if (known == device) return text.get();
  const PyRef object = PyRef::check(wrap(device));
  locations_.emplace_back(device, PyRef::check(PyObject_Str(object.get())));
  return locations_.back().second.get();
}

// ("storage", type, number, location, elements); as a tuple in protocol 0, too, where Python would
// write its repr, which nobody reads.
void Pickler::save_storage(PyObject* storage, PyObject* dtype) {
  static PyObject* const kind = interned("storage");
  const bool typed = dtype != Py_None;
  const size_t number =
      storages_.number(storage, typed ? std::optional(to_dtype(dtype)) : std::nullopt);
  PyObject* const name = PyDict_GetItemWithError(rules_.storage_names.get(), dtype);
  if (!name) raise_python(PyExc_RuntimeError, "save: no file has storages of this dtype");
  const Storage& bytes = *storage_of(storage);
  writer_.opcode(kMark);
  save(kind);
  save(name);
  writer_.ascii(std::to_string(number));
  save(location(bytes.device()));
  writer_.integer(bytes.nbytes() / (typed ? item_size(to_dtype(dtype)) : 1));
  writer_.opcode(kTuple);
  writer_.opcode(kPersistentId);
}

// --- all other objects ---

void Pickler::save_name(PyObject* name) {
  PyObject *const module = PyTuple_GET_ITEM(name, 0), *const text = PyTuple_GET_ITEM(name, 1);
  if (writer_.protocol() < 4) return writer_.global(utf8(module), utf8(text));
  save(module);
  save(text);
  writer_.opcode(kStackGlobal);
}

void Pickler::save_described(PyObject* object) {
  const PyRef value = PyRef::check(PyObject_CallOneArg(rules_.describe.get(), object));
  if (has_type(value.get(), rules_.storage))
    return save_storage(PyTuple_GET_ITEM(value.get(), 0), PyTuple_GET_ITEM(value.get(), 1));
  if (!has_type(value.get(), rules_.name)) return save_reduction(value.get(), object);
  save_name(value.get());
  memoize(object);
}

// (parts, opcodes, state, items, pairs, setter): what to save, what makes the object of it, and
// what it is filled with then; all but the first two may be None.
void Pickler::save_reduction(PyObject* reduction, PyObject* object) {
  PyObject *parts, *codes, *state, *items, *pairs, *setter;
  if (!PyArg_ParseTuple(reduction, "O!SOOOO:describe", &PyTuple_Type, &parts, &codes, &state,
                        &items, &pairs, &setter))
    throw PythonError();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parts); i++) save(PyTuple_GET_ITEM(parts, i));
  writer_.opcodes({PyBytes_AS_STRING(codes), static_cast<size_t>(PyBytes_GET_SIZE(codes))});
  // Parts that refer to the object have saved it in full.
  if (recall_recursive(object, 1, /*marked=*/false)) return;
  memoize(object);
  if (items != Py_None) append_items(PyRef::check(PySequence_List(items)).get());
  if (pairs != Py_None) set_items(PyRef::check(PySequence_List(pairs)).get());
  if (state != Py_None) save_state(state, setter, object);
}

void Pickler::set_items(PyObject* pairs) {
  Py_ssize_t i = 0;
  save_batches(PyList_GET_SIZE(pairs), kSetItem, kSetItems, [&] {
    if (i >= PyList_GET_SIZE(pairs)) return false;
    PyObject* const pair = PyList_GET_ITEM(pairs, i++);
    if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2)
      raise_python(PyExc_ValueError, "dict items iterator must return 2-tuples");
    save(PyTuple_GET_ITEM(pair, 0));
    save(PyTuple_GET_ITEM(pair, 1));
    return true;
  });
}

void Pickler::save_state(PyObject* state, PyObject* setter, PyObject* object) {
  if (setter == Py_None) {
    save(state);
    return writer_.opcode(kBuild);
  }
  const PyRef args = PyRef::check(PyTuple_Pack(2, object, state));
  save(setter);
  save(args.get());
  writer_.opcode(kReduce);
  writer_.opcode(kPop);  // what it returns
}

}  // namespace taeda::python
