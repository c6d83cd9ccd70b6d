// grad_fn._saved_NAME and grad_fn._raw_saved_NAME: what a node of the graph keeps, under the names
// of its operator's arguments and results.
#include <string_view>

#include "autograd/saved.h"
#include "python/autograd_support.h"
#include "python/call.h"
#include "python/module.h"
#include "python/tensor_object.h"
#include "python/wrap.h"

namespace taeda::python {
namespace {

using autograd::Node;
using autograd::SavedField;
using autograd::SavedTensor;

constexpr std::string_view kPlain = "_saved_", kRaw = "_raw_saved_";

// A saved tensor of a node, which it keeps alive.
struct RawObject {
  PyObject_HEAD Ref<Node> node;
  SavedTensor* saved;
};
PyTypeObject* raw_type = nullptr;

RawObject* cast(PyObject* object) { return reinterpret_cast<RawObject*>(object); }

void raw_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  cast(self)->node.~Ref<Node>();
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* register_hooks(PyObject* self, PyObject* args) {
  TD_PYTHON_TRY
  constexpr const char* kWrong =
      "register_hooks(): incompatible function arguments: expected two functions, pack_hook and "
      "unpack_hook, got";
  const Py_ssize_t count = PyTuple_GET_SIZE(args);
  if (count != 2)
    raise_python(PyExc_TypeError, "{} {} argument{}", kWrong, static_cast<int64_t>(count),
                 count == 1 ? "" : "s");
  PyObject *const pack = PyTuple_GET_ITEM(args, 0), *const unpack = PyTuple_GET_ITEM(args, 1);
  if (!PyCallable_Check(pack) || !PyCallable_Check(unpack)) {
    raise_python(PyExc_TypeError, "{} {} and {}", kWrong, type_name(pack), type_name(unpack));
  }
  RawObject* const raw = cast(self);
  raw->saved->register_hooks(*raw->node, make_saved_hooks(pack, unpack));
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyObject* raw_new(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_RuntimeError,
                  "Trying to create a SavedTensor object from Python is forbidden: backward steps "
                  "make them, grad_fn._raw_saved_NAME shows them");
  return nullptr;
}

PyMethodDef raw_methods[] = {
    {"register_hooks", register_hooks, METH_VARARGS,
     "register_hooks(pack_hook, unpack_hook)\n\nKeeps pack_hook(tensor) instead of the tensor; "
     "backward gets what unpack_hook makes of it."},
    {nullptr, nullptr, 0, nullptr},
};

// A field's value as a Python object.
struct Wrapped {
  Node& node;
  const bool raw;

  PyObject* operator()(std::monostate) const { Py_RETURN_NONE; }
  PyObject* operator()(SavedTensor* saved) const {
    if (!raw) {
      const Tensor tensor = saved->unpack_recorded(node);
      if (!tensor.defined()) Py_RETURN_NONE;
      return wrap(tensor);
    }
    PyObject* self = raw_type->tp_alloc(raw_type, 0);
    if (!self) throw PythonError();
    new (&cast(self)->node) Ref<Node>(&node);
    cast(self)->saved = saved;
    return self;
  }
  PyObject* operator()(const autograd::SavedView& field) const {
    if (raw) return (*this)(field.saved);
    const Tensor tensor = field.saved->unpack_recorded(node);
    if (!tensor.defined()) Py_RETURN_NONE;
    return wrap(field.view(tensor));
  }
  PyObject* operator()(std::vector<SavedTensor>* list) const {
    PyRef tuple = PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(list->size())));
    for (size_t i = 0; i < list->size(); i++)
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                       PyRef::check((*this)(&(*list)[i])).release());
    return tuple.release();
  }
  PyObject* operator()(const Scalar* value) const { return wrap(*value); }
  PyObject* operator()(Span<const double> values) const {
    PyRef tuple = PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
    for (size_t i = 0; i < values.size(); i++)
      PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                       PyRef::check(wrap(values[i])).release());
    return tuple.release();
  }
  template <class T>
  PyObject* operator()(const T& value) const {
    return wrap(value);
  }
};

bool is_tensor_field(const SavedField& value) {
  return std::holds_alternative<SavedTensor*>(value) ||
         std::holds_alternative<autograd::SavedView>(value) ||
         std::holds_alternative<std::vector<SavedTensor>*>(value);
}

class Finder final : public autograd::SavedVisitor {
 public:
  Finder(Node& node, std::string_view name)
      : node_(node),
        raw_(name.starts_with(kRaw)),
        name_(name.substr(raw_ ? kRaw.size() : kPlain.size())) {}
  void field(const char* name, const SavedField& value) override {
    if (name_ != name || (raw_ && !is_tensor_field(value))) return;
    found_ = PyRef::check(std::visit(Wrapped{node_, raw_}, value));
  }
  PyObject* release() { return found_.release(); }

 private:
  Node& node_;
  const bool raw_;
  const std::string_view name_;
  PyRef found_;
};

class Lister final : public autograd::SavedVisitor {
 public:
  explicit Lister(PyObject* list) : list_(list) {}
  void field(const char* name, const SavedField& value) override {
    append(kPlain, name);
    if (is_tensor_field(value)) append(kRaw, name);
  }

 private:
  void append(std::string_view prefix, const char* name) {
    const PyRef text = PyRef::check(wrap(std::string(prefix) + name));
    check_status(PyList_Append(list_, text.get()));
  }
  PyObject* const list_;
};

}  // namespace

PyObject* saved_attribute(Node& node, std::string_view name) {
  Finder finder(node, name);
  node.shown().visit_saved(finder);
  return finder.release();
}

void append_saved_names(Node& node, PyObject* list) {
  Lister lister(list);
  node.shown().visit_saved(lister);
}

void add_saved_tensor_type(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(raw_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(raw_dealloc)},
      {Py_tp_methods, raw_methods},
      {Py_tp_doc, const_cast<char*>("A tensor that a step of the graph keeps, unpacked by nobody "
                                    "yet: grad_fn._raw_saved_NAME.")},
      {0, nullptr},
  };
  PyType_Spec spec = {"taeda._C._autograd.SavedTensor", sizeof(RawObject), 0, Py_TPFLAGS_DEFAULT,
                      slots};
  raw_type = add_type(module, "_SavedTensor", &spec);
}

}  // namespace taeda::python
