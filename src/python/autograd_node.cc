// taeda.autograd.graph.Node: what x.grad_fn shows. Each kind of node has a type of its own, named
// like it.
#include <map>

#include "autograd/custom.h"
#include "autograd/record.h"
#include "autograd/steps.h"
#include "python/autograd.h"
#include "python/autograd_hooks.h"
#include "python/call.h"
#include "python/module.h"
#include "python/names.h"
#include "python/tensor_object.h"
#include "python/wrap.h"

#include <structmember.h>

namespace taeda::python {
namespace {

using autograd::Node;

struct NodeObject {
  PyObject_HEAD Ref<Node> node;
  PyObject* weakrefs;
};

PyTypeObject* node_type = nullptr;

NodeObject* cast(PyObject* object) { return reinterpret_cast<NodeObject*>(object); }
Node& node_of(PyObject* object) { return *cast(object)->node; }

void node_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (cast(self)->weakrefs) PyObject_ClearWeakRefs(self);
  Ref<Node> node = std::move(cast(self)->node);
  if (node && node->extras()) node->extras()->python.store(nullptr);
  cast(self)->node.~Ref<Node>();
  type->tp_free(self);
  Py_DECREF(type);
}

int node_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  const Ref<Node>& node = cast(self)->node;
  return node && node->use_count() == 1 ? traverse_node(*node, visit, arg) : 0;
}

int node_clear(PyObject* self) {
  const Ref<Node>& node = cast(self)->node;
  if (node && node->use_count() == 1) clear_node(*node);
  return 0;
}

// What the node has saved is seen as _saved_NAME, attributes of a custom function's context are
// seen on its node too.
PyObject* node_getattro(PyObject* self, PyObject* name) {
  TD_PYTHON_TRY
  const std::string_view text = utf8(name);
  if (text.starts_with("_saved_") || text.starts_with("_raw_saved_")) {
    if (PyObject* saved = saved_attribute(node_of(self), text)) return saved;
  }
  if (text == "__class__") {
    if (PyObject* context = context_of(node_of(self)))
      return new_ref(reinterpret_cast<PyObject*>(Py_TYPE(context)));
  }
  TD_PYTHON_CATCH(nullptr)
  PyObject* value = PyObject_GenericGetAttr(self, name);
  if (value || !PyErr_ExceptionMatches(PyExc_AttributeError)) return value;
  PyObject* context = context_of(node_of(self));
  if (!context) return nullptr;
  PyErr_Clear();
  return PyObject_GetAttr(context, name);
}

// The attributes of the type, and _saved_NAME for what this node keeps.
PyObject* node_dir(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  const PyRef inherited = PyRef::check(
      PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyBaseObject_Type), "__dir__", "O", self));
  PyRef names = PyRef::check(PySequence_List(inherited.get()));
  append_saved_names(node_of(self), names.get());
  return names.release();
  TD_PYTHON_CATCH(nullptr)
}

// grad_fn(gradients) -> gradients of its inputs, recorded where gradients are.
PyObject* node_call(PyObject* self, PyObject* args, PyObject* kwargs) {
  TD_PYTHON_TRY
  Node& node = node_of(self);
  if (kwargs && PyDict_GET_SIZE(kwargs))
    raise_python(PyExc_TypeError, "{}() takes no keyword arguments", node.name());
  const Py_ssize_t given = PyTuple_GET_SIZE(args);
  if (given != static_cast<Py_ssize_t>(node.num_inputs()))
    raise_python(PyExc_TypeError, "{}(): expected {} arguments, got {} instead", node.name(),
                 static_cast<int64_t>(node.num_inputs()), static_cast<int64_t>(given));
  TensorList grads(node.num_inputs());
  for (Py_ssize_t i = 0; i < given; i++) {
    PyObject* item = PyTuple_GET_ITEM(args, i);
    if (item == Py_None) continue;
    if (!is_tensor(item))
      raise_python(PyExc_TypeError, "{}(): argument {} must be Tensor or None, not {}", node.name(),
                   static_cast<int64_t>(i + 1), type_name(item));
    grads[static_cast<size_t>(i)] = tensor_of(item);
  }
  const TensorList results =
      unlocked_if(true, [&] { return node.shown().apply(std::move(grads)); });
  PyRef tuple = PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(results.size())));
  for (size_t i = 0; i < results.size(); i++)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                     PyRef::check(wrap(results[i])).release());
  return results.size() == 1 ? new_ref(PyTuple_GET_ITEM(tuple.get(), 0)) : tuple.release();
  TD_PYTHON_CATCH(nullptr)
}

// As PyTorch prints it: with its namespace where that is no operator's.
PyObject* node_name(PyObject* self, PyObject*) {
  const Node& node = node_of(self);
  return PyUnicode_FromFormat("%s%s", node.leaf() ? "torch::autograd::" : "", node.name());
}

PyObject* next_functions(PyObject* self, void*) {
  TD_PYTHON_TRY
  const auto& edges = node_of(self).next_edges();
  PyRef tuple = PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(edges.size())));
  for (size_t i = 0; i < edges.size(); i++) {
    PyRef node = PyRef::check(wrap_node(edges[i].node));
    PyRef number = PyRef::check(PyLong_FromUnsignedLong(edges[i].input_nr));
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                     PyRef::check(PyTuple_Pack(2, node.get(), number.get())).release());
  }
  return tuple.release();
  TD_PYTHON_CATCH(nullptr)
}

PyObject* metadata(PyObject* self, void*) {
  TD_PYTHON_TRY
  auto& extras = node_of(self).make_extras();
  if (!extras.metadata) extras.metadata = make_ref<PythonHolder>(PyRef::check(PyDict_New()).get());
  PyObject* dict = static_cast<PythonHolder&>(*extras.metadata).get();
  if (extras.forward_traceback && !PyDict_GetItemString(dict, "traceback_")) {
    PyRef text = PyRef::check(wrap(extras.forward_traceback->text()));
    check_status(PyDict_SetItemString(dict, "traceback_", text.get()));
  }
  return new_ref(dict);
  TD_PYTHON_CATCH(nullptr)
}

PyObject* sequence_number(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(node_of(self).sequence());
}

PyObject* leaf_variable(PyObject* self, void*) {
  TD_PYTHON_TRY
  TensorImpl* leaf = node_of(self).leaf();
  if (!leaf) {
    PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute 'variable'",
                 node_of(self).name());
    return nullptr;
  }
  return wrap(Tensor(Ref<TensorImpl>(leaf)));
  TD_PYTHON_CATCH(nullptr)
}

PyObject* input_metadata(PyObject* self, void*) {
  TD_PYTHON_TRY
  const Node& node = node_of(self);
  PyRef list = PyRef::check(PyList_New(0));
  PyRef namespace_type = PyRef::check(PyObject_GetAttrString(
      PyRef::check(PyImport_ImportModule("types")).get(), "SimpleNamespace"));
  for (uint32_t i = 0; i < node.num_inputs(); i++) {
    const autograd::ResultMetadata& metadata = node.input_metadata(i);
    PyRef kwargs = PyRef::check(PyDict_New());
    check_status(PyDict_SetItemString(kwargs.get(), "shape",
                                      PyRef::check(wrap(IntSpan(metadata.sizes))).get()));
    check_status(
        PyDict_SetItemString(kwargs.get(), "dtype", PyRef::check(wrap(metadata.dtype)).get()));
    check_status(
        PyDict_SetItemString(kwargs.get(), "device", PyRef::check(wrap(metadata.device)).get()));
    PyRef none = PyRef::check(PyTuple_New(0));
    check_status(PyList_Append(list.get(), PyRef::check(call_python([&] {
                                             return PyObject_Call(namespace_type.get(), none.get(),
                                                                  kwargs.get());
                                           })).get()));
  }
  return PyList_AsTuple(list.get());
  TD_PYTHON_CATCH(nullptr)
}

PyObject* register_hook(PyObject* self, PyObject* hook) {
  TD_PYTHON_TRY
  auto& extras = node_of(self).make_extras();
  if (auto* existing = find_hook<PythonPostHook>(extras.post_hooks))
    return add_to_hook_dict(existing->dict(), hook);
  PyRef dict = new_hook_dict();
  extras.post_hooks.push_back(make_ref<PythonPostHook>(dict.get()));
  return add_to_hook_dict(dict.get(), hook);
  TD_PYTHON_CATCH(nullptr)
}

PyObject* register_prehook(PyObject* self, PyObject* hook) {
  TD_PYTHON_TRY
  auto& extras = node_of(self).make_extras();
  if (auto* existing = find_hook<PythonPreHook>(extras.pre_hooks))
    return add_to_hook_dict(existing->dict(), hook);
  PyRef dict = new_hook_dict();
  extras.pre_hooks.push_back(make_ref<PythonPreHook>(dict.get()));
  return add_to_hook_dict(dict.get(), hook);
  TD_PYTHON_CATCH(nullptr)
}

PyMethodDef node_methods[] = {
    {"name", node_name, METH_NOARGS,
     "name() -> str\n\nThe name of the backward step, \"MulBackward0\"."},
    {"register_hook", register_hook, METH_O,
     "register_hook(fn) -> handle\n\nCalls fn(grad_inputs, grad_outputs) after this step; a result "
     "replaces grad_inputs."},
    {"register_prehook", register_prehook, METH_O,
     "register_prehook(fn) -> handle\n\nCalls fn(grad_outputs) before this step; a result replaces "
     "them."},
    {"__dir__", node_dir, METH_NOARGS, nullptr},
    {"_sequence_nr", sequence_number, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef node_properties[] = {
    {"next_functions", next_functions, nullptr,
     "The steps that receive this one's results, with the number of their input.", nullptr},
    {"metadata", metadata, nullptr, "A dictionary for anything that belongs to this step.",
     nullptr},
    {"variable", leaf_variable, nullptr, "The leaf whose gradient is accumulated here.", nullptr},
    {"_input_metadata", input_metadata, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMemberDef node_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(NodeObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

// The type of nodes of this name. Those of operators print without a module, as PyTorch's do.
PyTypeObject* type_named(const char* name, bool custom) {
  static auto& types = *new std::map<std::string, PyTypeObject*>;
  PyTypeObject*& type = types[name];
  if (!type) {
    PyRef dict = PyRef::check(PyDict_New());
    const PyRef owner = custom ? name_in_package("autograd.function")
                               : PyRef::check(PyUnicode_FromString("builtins"));
    check_status(PyDict_SetItemString(dict.get(), "__module__", owner.get()));
    check_status(PyDict_SetItemString(dict.get(), "__slots__", PyRef::check(PyTuple_New(0)).get()));
    type = reinterpret_cast<PyTypeObject*>(PyRef::check(call_python([&] {
                                             return PyObject_CallFunction(
                                                 reinterpret_cast<PyObject*>(&PyType_Type), "s(O)O",
                                                 name, node_type, dict.get());
                                           })).release());
  }
  return type;
}

PyTypeObject* type_of(const Node& node) {
  return type_named(node.name(), dynamic_cast<const autograd::CustomNode*>(&node) != nullptr);
}

// _node_type(name) -> the type of the operators' nodes of that name
PyObject* node_type_named(PyObject*, PyObject* name) {
  TD_PYTHON_TRY
  const std::string text(utf8(name));
  return new_ref(reinterpret_cast<PyObject*>(type_named(text.c_str(), false)));
  TD_PYTHON_CATCH(nullptr)
}

PyMethodDef functions[] = {
    {"_node_type", node_type_named, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyObject* wrap_node(Ref<Node> node) {
  if (!node) Py_RETURN_NONE;
  auto& extras = node->make_extras();
  if (void* existing = extras.python.load()) return new_ref(static_cast<PyObject*>(existing));
  autograd::show_steps(*node);
  PyTypeObject* type = type_of(*node);
  PyObject* self = type->tp_alloc(type, 0);
  if (!self) throw PythonError();
  new (&cast(self)->node) Ref<Node>(std::move(node));
  extras.python.store(self);
  return self;
}

bool is_node(PyObject* object) { return PyObject_TypeCheck(object, node_type); }

Ref<Node> to_node(PyObject* object) {
  if (object == Py_None) return {};
  if (!PyObject_TypeCheck(object, node_type))
    raise_python(PyExc_TypeError, "expected an autograd Node, but got {}", type_name(object));
  return cast(object)->node;
}

int traverse_node(const Node& node, visitproc visit, void* arg) {
  Py_VISIT(context_of(node));
  const autograd::NodeExtras* extras = node.extras();
  if (!extras) return 0;
  for (const auto& hook : extras->tensor_pre_hooks)
    if (auto* h = dynamic_cast<const PythonTensorHook*>(hook.get())) Py_VISIT(h->dict());
  for (const auto& hook : extras->pre_hooks)
    if (auto* h = dynamic_cast<const PythonPreHook*>(hook.get())) Py_VISIT(h->dict());
  for (const auto& hook : extras->post_hooks)
    if (auto* h = dynamic_cast<const PythonPostHook*>(hook.get())) Py_VISIT(h->dict());
  if (extras->metadata) Py_VISIT(static_cast<const PythonHolder&>(*extras->metadata).get());
  return 0;
}

void clear_node(Node& node) {
  autograd::NodeExtras* extras = node.extras();
  if (!extras) return;
  const auto tensor_hooks = std::move(extras->tensor_pre_hooks);
  const auto pre_hooks = std::move(extras->pre_hooks);
  const auto post_hooks = std::move(extras->post_hooks);
  const auto data = std::move(extras->metadata);
}

PyObject* grad_fn_object(const Tensor& tensor) { return wrap_node(autograd::grad_fn(tensor)); }

int64_t output_number(const Tensor& tensor) {
  autograd::grad_fn(tensor);  // a view's may have to be made anew
  const autograd::AutogradMeta* meta = autograd::meta_of(tensor);
  return meta ? meta->output_nr : 0;
}

bool retains_grad(const Tensor& tensor) {
  const autograd::AutogradMeta* meta = autograd::meta_of(tensor);
  return meta && meta->retained;
}

int traverse_autograd(const Tensor& tensor, visitproc visit, void* arg) {
  const autograd::AutogradMeta* meta = autograd::meta_of(tensor);
  if (!meta) return 0;
  if (meta->hooks) {
    for (const auto& hook : meta->hooks->pre_hooks)
      if (auto* h = dynamic_cast<const PythonTensorHook*>(hook.get())) Py_VISIT(h->dict());
    for (const auto& hook : meta->hooks->post_accumulate)
      if (auto* h = dynamic_cast<const PythonAccumulateHook*>(hook.get())) Py_VISIT(h->dict());
  }
  if (meta->grad_fn && meta->grad_fn->use_count() == 1)
    return traverse_node(*meta->grad_fn, visit, arg);
  return 0;
}

void clear_autograd(const Tensor& tensor) {
  autograd::AutogradMeta* meta = autograd::meta_of(tensor);
  if (!meta || tensor.impl()->use_count() != 1) return;
  const std::unique_ptr<autograd::TensorHooks> hooks = std::move(meta->hooks);
  if (meta->grad_fn && meta->grad_fn->use_count() == 1) {
    const Ref<Node> node = std::move(meta->grad_fn);
    clear_node(*node);
  }
}

void add_node_type(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(node_clear)},
      {Py_tp_getattro, reinterpret_cast<void*>(node_getattro)},
      {Py_tp_call, reinterpret_cast<void*>(node_call)},
      {Py_tp_methods, node_methods},
      {Py_tp_getset, node_properties},
      {Py_tp_members, node_members},
      {0, nullptr},
  };
  PyType_Spec spec = {"taeda.autograd.graph.Node", sizeof(NodeObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
                          Py_TPFLAGS_DISALLOW_INSTANTIATION,
                      slots};
  node_type = add_type(module, "_Node", &spec);
  check_status(PyModule_AddFunctions(module, functions));
  add_saved_tensor_type(module);
}

}  // namespace taeda::python
