// An operator's exception gets a note of the call.
//
// It is a note (PEP 678), not part of the text: programs compare and match PyTorch's texts. Tensors
// are told by sizes and dtype, other arguments by their repr where that runs no code of the
// program.
#include "python/call_note.h"

#include <algorithm>
#include <string>
#include <vector>

#include "python/autograd_support.h"
#include "python/factory_call.h"
#include "python/gil.h"

namespace taeda::python {
namespace {

constexpr Py_ssize_t kShown = 4;  // items of a list
constexpr size_t kLongest = 40;   // characters of a number or string

// Whether the exception is an operator's own: what Python code raised has a traceback.
bool is_own() noexcept {
  try {
    throw;
  } catch (const PythonError&) {
    return false;
  } catch (const PythonException&) {
    return false;
  } catch (const Error& error) {
    return error.kind() != ErrorKind::kType;  // those of the parser name function and argument
  } catch (...) {
    return false;
  }
}

std::string repr(PyObject* value) {
  const PyRef text = PyRef::check(PyObject_Repr(value));
  std::string shown(utf8(text.get()));
  return shown.size() > kLongest ? std::string(Py_TYPE(value)->tp_name) : shown;
}

std::string described(PyObject* value) {
  if (is_tensor(value)) {
    const Tensor& x = tensor_of(value);
    return x.defined() ? format("{} {}", x.sizes(), x.dtype()) : "undefined";
  }
  if (PyTuple_CheckExact(value) || PyList_CheckExact(value)) {
    const PyRef items = PyRef::check(PySequence_Fast(value, ""));
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(items.get());
    std::string text = "[";
    for (Py_ssize_t i = 0; i < std::min(count, kShown); i++)
      text += (i ? ", " : "") + described(PySequence_Fast_GET_ITEM(items.get(), i));
    return text + (count > kShown ? ", ...]" : "]");
  }
  if (PySlice_Check(value)) {
    const auto* slice = reinterpret_cast<const PySliceObject*>(value);
    const auto bound = [](PyObject* at) { return at == Py_None ? "" : described(at); };
    const std::string step = slice->step == Py_None ? "" : ":" + described(slice->step);
    return bound(slice->start) + ":" + bound(slice->stop) + step;
  }
  const bool plain = value == Py_None || value == Py_Ellipsis || is_dtype(value) ||
                     PyBool_Check(value) || PyLong_CheckExact(value) || PyFloat_CheckExact(value) ||
                     PyUnicode_CheckExact(value);
  return plain ? repr(value) : std::string(Py_TYPE(value)->tp_name);
}

// Whether a parameter may have this argument, as far as its type tells without running code.
bool may_be(Kind kind, PyObject* value) {
  if (is_dtype(value)) return kind == Kind::kDType || kind == Kind::kObject;
  if (PyUnicode_Check(value)) return kind != Kind::kInts && kind != Kind::kInt;
  return kind != Kind::kDType || value == Py_None;
}

// The overload that takes so many arguments by position, and the first of them; null: none.
const Signature* overload_of(const Function& function, PyObject* const* args, Py_ssize_t nargs) {
  const Signature* first = nullptr;
  const Py_ssize_t before = function.method ? 1 : 0;
  for (int s = 0; s < function.count; s++) {
    const Signature& signature = function.signatures[s];
    if (signature.positional < nargs + before) continue;
    bool fits = true;
    for (Py_ssize_t i = 0; i < nargs; i++)
      fits = fits && may_be(signature.params[i + before].kind, args[i]);
    if (fits) return &signature;
    if (!first) first = &signature;
  }
  return first;
}

std::string_view name_of(const Signature* overload, Py_ssize_t i) {
  if (!overload) return {};
  const std::string_view name = overload->params[i].name();
  return i == 0 && name == "self" ? "input" : name;
}

// torch.einsum for torch._einsum: what programs call, where a function in Python of the same name
// without the underscore calls the operator.
std::string shown_function(std::string_view qualified) {
  std::string name = qualified.starts_with("torch") ? "" : "torch.";
  name += qualified;
  constexpr std::string_view kPrivate = "torch._";
  if (!name.starts_with(kPrivate)) return name;
  const PyRef module = PyRef::check(PyImport_ImportModule("taeda"));
  PyObject* members = PyModule_GetDict(module.get());  // no attributes that would load modules
  const std::string shown = name.substr(kPrivate.size());
  if (members && PyDict_GetItemString(members, shown.c_str())) return "torch." + shown;
  return name;
}

std::string call_text(const Function& function, PyObject* self, PyObject* const* args,
                      Py_ssize_t nargs, PyObject* kwnames) {
  std::string text = "In " + shown_function(function.qualified) + "(";
  const Py_ssize_t before = function.method ? 1 : 0, given = nargs + before;
  const auto add = [&](std::string_view name, PyObject* value) {
    if (text.back() != '(') text += ", ";
    if (!name.empty()) text.append(name).append("=");
    text += described(value);
  };
  const Signature* overload = overload_of(function, args, nargs);
  for (Py_ssize_t i = 0; i < given; i++)
    add(name_of(overload, i), i < before ? self : args[i - before]);
  const Py_ssize_t named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t i = 0; i < named; i++) add(utf8(PyTuple_GET_ITEM(kwnames, i)), args[nargs + i]);
  return text + ")";
}

// Moves the last note before the others: what to do (fix_note.h) comes after the call.
void put_first(PyObject* error) {
  const PyRef notes = PyRef::check(PyObject_GetAttrString(error, "__notes__"));
  const Py_ssize_t last = PyList_Check(notes.get()) ? PyList_GET_SIZE(notes.get()) - 1 : 0;
  if (last < 1) return;
  const PyRef note = PyRef::share(PyList_GET_ITEM(notes.get(), last));
  check_status(PyList_SetSlice(notes.get(), last, last + 1, nullptr));
  check_status(PyList_Insert(notes.get(), 0, note.get()));
}

// The module that answers the call, if the exception that is being handled says so; else null.
const char* factory_module() noexcept {
  try {
    throw;
  } catch (const FactoryCall& call) {
    return call.module;
  } catch (...) {
    return nullptr;
  }
}

// What the module makes: make("torch.zeros", *args, **kwargs), a method's self among the arguments.
PyObject* call_factory(const char* module_name, const Function& function, PyObject* self,
                       PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) noexcept {
  try {
    const PyRef module = PyRef::check(PyImport_ImportModule(module_name));
    const PyRef make = PyRef::check(PyObject_GetAttrString(module.get(), "make"));
    const PyRef name = PyRef::check(PyUnicode_FromString(function.qualified));
    std::vector<PyObject*> given{name.get()};
    if (function.method) given.push_back(self);
    const Py_ssize_t positional = static_cast<Py_ssize_t>(given.size()) + nargs;
    given.insert(given.end(), args, args + nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0));
    return PyObject_Vectorcall(make.get(), given.data(), static_cast<size_t>(positional), kwnames);
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

// Adds the note that `text_of` makes to the exception that is set, before what to do.
template <typename TextOf>
void add_note_of(const TextOf& text_of) noexcept {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  try {
    const std::string text = text_of();
    const PyRef name = PyRef::check(PyUnicode_InternFromString("add_note"));
    const PyRef note = PyRef::check(
        PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
    PyRef::check(PyObject_CallMethodOneArg(value, name.get(), note.get()));
    put_first(value);
  } catch (...) {  // an exception without a note is better than another exception
  }
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
}

}  // namespace

PyObject* fail_call(const Function& function, PyObject* self, PyObject* const* args,
                    Py_ssize_t nargs, PyObject* kwnames) noexcept {
  park_if_ended();
  if (const char* const module = factory_module())
    return call_factory(module, function, self, args, nargs, kwnames);
  const bool own = is_own();
  set_python_error();
  if (own) add_note_of([&] { return call_text(function, self, args, nargs, kwnames); });
  return nullptr;
}

void fail_item(PyObject* self, PyObject* index, PyObject* value) noexcept {
  park_if_ended();
  const bool own = is_own();
  set_python_error();
  if (!own) return;
  add_note_of([&] {
    const std::string item = described(self) + ", " + described(index);
    return value ? "In torch.Tensor.__setitem__(" + item + ", " + described(value) + ")"
                 : "In torch.Tensor.__getitem__(" + item + ")";
  });
}

}  // namespace taeda::python
