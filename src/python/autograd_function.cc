// Custom functions: the node that calls a Python class's backward, and what autograd.Function.apply
// does.
//
// The node owns the context object (ctx); the context knows its node without owning it, so that a
// function's results, node and context go together.
#include "autograd/custom.h"
#include "autograd/forward.h"
#include "autograd/math.h"
#include "python/autograd_support.h"
#include "python/call.h"
#include "python/module.h"
#include "python/tensor_object.h"
#include "python/wrap.h"
#include "taeda/autograd.h"

#include <structmember.h>

namespace taeda::python {
namespace {

class PythonFunctionNode;

struct ContextObject {
  PyObject_HEAD PyObject* dict;
  PyObject* weakrefs;
  PyObject* to_save;  // what save_for_backward was given
  PyObject* saved_for_forward;
  PyObject* non_differentiable;
  PyObject* dirty;
  PyObject* needs_input_grad;
  bool materialize_grads;
  PythonFunctionNode* node;  // null before the call is recorded, and once the node has gone
};

PyTypeObject* context_type = nullptr;

ContextObject* cast(PyObject* object) { return reinterpret_cast<ContextObject*>(object); }

class PythonFunctionNode final : public autograd::CustomNode {
 public:
  PythonFunctionNode(PyObject* context, std::string name)
      : name_(std::move(name)), context_(new_ref(context)) {
    cast(context)->node = this;
  }
  ~PythonFunctionNode() override {
    if (!Py_IsInitialized()) return;
    const EnsureGil gil;
    cast(context_)->node = nullptr;
    Py_DECREF(context_);
  }
  const char* name() const override { return name_.c_str(); }
  bool is_python() const override { return true; }
  void release_saved() override {
    for (autograd::SavedTensor& t : saved) t.reset();
  }
  void visit_saved(autograd::SavedVisitor& show) override { show.show("tensors", saved); }
  TensorList apply(TensorList&& grads) override;

  PyObject* context() const { return context_; }
  std::vector<autograd::SavedTensor> saved;
  std::vector<bool> argument_is_tensor;  // of forward's arguments

 private:
  const std::string name_;
  PyObject* const context_;
};

TensorList PythonFunctionNode::apply(TensorList&& grads) {
  return with_python([&] {
    materialize(grads);
    PyRef arguments = PyRef::check(PyTuple_New(static_cast<Py_ssize_t>(grads.size()) + 1));
    PyTuple_SET_ITEM(arguments.get(), 0, new_ref(context_));
    for (size_t i = 0; i < grads.size(); i++)
      PyTuple_SET_ITEM(arguments.get(), static_cast<Py_ssize_t>(i) + 1,
                       PyRef::check(wrap(std::move(grads[i]))).release());
    PyRef backward = PyRef::check(PyObject_GetAttrString(context_, "_backward"));
    PyRef result = PyRef::check(
        call_python([&] { return PyObject_CallObject(backward.get(), arguments.get()); }));
    if (!PyTuple_Check(result.get()) && !PyList_Check(result.get()))
      result = PyRef::check(PyTuple_Pack(1, result.get()));
    PyRef items = PyRef::check(PySequence_Fast(result.get(), "backward"));
    Py_ssize_t count = PySequence_Fast_GET_SIZE(items.get());
    const Py_ssize_t expected = static_cast<Py_ssize_t>(argument_is_tensor.size());
    // Surplus Nones at the end are fine.
    while (count > expected && PySequence_Fast_GET_ITEM(items.get(), count - 1) == Py_None) count--;
    if (count != expected)
      raise_python(PyExc_RuntimeError,
                   "function {} returned an incorrect number of gradients (expected {}, got {})",
                   name_, static_cast<int64_t>(expected), static_cast<int64_t>(count));
    TensorList out;
    for (Py_ssize_t i = 0; i < count; i++) {
      PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
      if (!argument_is_tensor[static_cast<size_t>(i)]) {
        if (item != Py_None)
          raise_python(PyExc_RuntimeError,
                       "function {} returned a gradient different than None at position {}, but "
                       "the corresponding forward "
                       "input was not a Variable",
                       name_, static_cast<int64_t>(i + 1));
        continue;
      }
      if (item != Py_None && !is_tensor(item))
        raise_python(PyExc_RuntimeError, "expected Variable or None (got {})", type_name(item));
      out.push_back(item == Py_None ? Tensor() : tensor_of(item));
    }
    return out;
  });
}

// --- the context object ---

PyObject* context_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self) cast(self)->materialize_grads = true;
  return self;
}

int context_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  const ContextObject* c = cast(self);
  Py_VISIT(c->dict);
  Py_VISIT(c->to_save);
  Py_VISIT(c->saved_for_forward);
  Py_VISIT(c->non_differentiable);
  Py_VISIT(c->dirty);
  Py_VISIT(c->needs_input_grad);
  return 0;
}

int context_clear(PyObject* self) {
  ContextObject* c = cast(self);
  Py_CLEAR(c->dict);
  Py_CLEAR(c->to_save);
  Py_CLEAR(c->saved_for_forward);
  Py_CLEAR(c->non_differentiable);
  Py_CLEAR(c->dirty);
  Py_CLEAR(c->needs_input_grad);
  return 0;
}

void context_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (cast(self)->weakrefs) PyObject_ClearWeakRefs(self);
  context_clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// A tuple of what one of the ctx.mark methods was given.
template <PyObject* ContextObject::*field>
PyObject* store(PyObject* self, PyObject* args) {
  Py_INCREF(args);
  Py_XSETREF(cast(self)->*field, args);
  Py_RETURN_NONE;
}

PyObject* set_materialize_grads(PyObject* self, PyObject* value) {
  const int truth = PyObject_IsTrue(value);
  if (truth < 0) return nullptr;
  cast(self)->materialize_grads = truth;
  if (cast(self)->node) cast(self)->node->materialize_grads = truth;
  Py_RETURN_NONE;
}

PyObject* saved_tensors(PyObject* self, void*) {
  TD_PYTHON_TRY
  ContextObject* c = cast(self);
  if (c->saved_for_forward) return new_ref(c->saved_for_forward);  // until jvp has run
  if (c->node && !c->to_save) {
    PythonFunctionNode& node = *c->node;
    const Ref<autograd::Node> alive(&node);
    return tuple_of(autograd::unpack_all_recorded(node.saved, node)).release();
  }
  // Before the call is recorded, or where nothing requires grad: what was given.
  return c->to_save ? new_ref(c->to_save) : PyTuple_New(0);
  TD_PYTHON_CATCH(nullptr)
}

PyMethodDef context_methods[] = {
    {"save_for_backward", store<&ContextObject::to_save>, METH_VARARGS,
     "save_for_backward(*tensors)\n\nKeeps arguments and results of forward for ctx.saved_tensors "
     "in backward."},
    {"save_for_forward", store<&ContextObject::saved_for_forward>, METH_VARARGS,
     "save_for_forward(*tensors)\n\nKeeps tensors for ctx.saved_tensors in jvp."},
    {"mark_dirty", store<&ContextObject::dirty>, METH_VARARGS,
     "mark_dirty(*tensors)\n\nNames the arguments that forward changed in place."},
    {"mark_non_differentiable", store<&ContextObject::non_differentiable>, METH_VARARGS,
     "mark_non_differentiable(*tensors)\n\nNames the results that have no gradient."},
    {"set_materialize_grads", set_materialize_grads, METH_O,
     "set_materialize_grads(value)\n\nWhether backward sees zeros instead of None (default: "
     "True)."},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef context_properties[] = {
    {"saved_tensors", saved_tensors, nullptr,
     "What save_for_backward kept; in jvp, what save_for_forward did.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMemberDef context_members[] = {
    {"needs_input_grad", T_OBJECT, offsetof(ContextObject, needs_input_grad), 0,
     "For each argument of forward: does it require grad?"},
    {"to_save", T_OBJECT, offsetof(ContextObject, to_save), 0, nullptr},
    {"non_differentiable", T_OBJECT, offsetof(ContextObject, non_differentiable), 0, nullptr},
    {"dirty_tensors", T_OBJECT, offsetof(ContextObject, dirty), 0, nullptr},
    {"materialize_grads", T_BOOL, offsetof(ContextObject, materialize_grads), 0, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(ContextObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ContextObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

// --- apply ---

TensorList tensors_in(PyObject* tuple, const char* what) {
  TensorList out;
  if (tuple && !PyTuple_Check(tuple))  // the attributes of ctx are anybody's to set
    raise_python(PyExc_TypeError, "expected a tuple of Tensors for {}, but got {}", what,
                 type_name(tuple));
  for (Py_ssize_t i = 0; tuple && i < PyTuple_GET_SIZE(tuple); i++)
    out.push_back(tensor_or_none(PyTuple_GET_ITEM(tuple, i), what));
  return out;
}

bool is_result(const TensorList& results, const Tensor& t) {
  for (const Tensor& r : results)
    if (t.defined() && r.defined() && r.is_same(t)) return true;
  return false;
}

struct Call {
  PyObject* function_class;
  PyObject* context;
  PyObject* args;
  TensorList inputs;                // the tensors among the arguments
  std::vector<bool> is_tensor_arg;  // of each argument
};

// forward's raw result, computed without recording and without tangents.
PyRef run_forward(const Call& call) {
  const NoGrad no_grad;
  const ExcludeKeys no_tangents((KeySet(Key::kForward)));
  PyRef forward = PyRef::check(PyObject_GetAttrString(call.function_class, "forward"));
  PyRef separate = PyRef::check(PyObject_GetAttrString(call.function_class, "_has_setup_context"));
  const Py_ssize_t count = PyTuple_GET_SIZE(call.args);
  if (separate.get() == Py_True) {
    PyRef result =
        PyRef::check(call_python([&] { return PyObject_CallObject(forward.get(), call.args); }));
    PyRef setup = PyRef::check(PyObject_GetAttrString(call.function_class, "setup_context"));
    PyRef::check(call_python([&] {
      return PyObject_CallFunctionObjArgs(setup.get(), call.context, call.args, result.get(),
                                          nullptr);
    }));
    return result;
  }
  PyRef arguments = PyRef::check(PyTuple_New(count + 1));
  PyTuple_SET_ITEM(arguments.get(), 0, new_ref(call.context));
  for (Py_ssize_t i = 0; i < count; i++)
    PyTuple_SET_ITEM(arguments.get(), i + 1, new_ref(PyTuple_GET_ITEM(call.args, i)));
  return PyRef::check(
      call_python([&] { return PyObject_CallObject(forward.get(), arguments.get()); }));
}

// The tangents of the results at one level by the class's jvp, one a result.
void run_jvp(const Call& call, const TensorList& results, uint64_t level) {
  const autograd::BelowLevel values_only(level);
  PyRef jvp = PyRef::check(PyObject_GetAttrString(call.function_class, "jvp"));
  const Py_ssize_t count = PyTuple_GET_SIZE(call.args);
  PyRef arguments = PyRef::check(PyTuple_New(count + 1));
  PyTuple_SET_ITEM(arguments.get(), 0, new_ref(call.context));
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject* given = PyTuple_GET_ITEM(call.args, i);
    PyRef tangent = PyRef::share(Py_None);
    if (is_tensor(given)) {
      Tensor t = autograd::tangent(tensor_of(given), level);
      const Tensor& primal = tensor_of(given);
      if (!t.defined() && cast(call.context)->materialize_grads && is_inexact(primal.dtype()))
        t = autograd::math::zeros(primal.sizes(), primal.dtype(), primal.device());
      tangent = PyRef::check(wrap(std::move(t)));
    }
    PyTuple_SET_ITEM(arguments.get(), i + 1, tangent.release());
  }
  PyRef out =
      PyRef::check(call_python([&] { return PyObject_CallObject(jvp.get(), arguments.get()); }));
  if (!PyTuple_Check(out.get())) out = PyRef::check(PyTuple_Pack(1, out.get()));
  if (PyTuple_GET_SIZE(out.get()) != static_cast<Py_ssize_t>(results.size()))
    raise_python(PyExc_RuntimeError,
                 "{}.jvp returned an incorrect number of forward gradients (expected {}, got {})",
                 utf8(PyRef::check(PyObject_GetAttrString(call.function_class, "__name__")).get()),
                 results.size(), static_cast<int64_t>(PyTuple_GET_SIZE(out.get())));
  for (size_t i = 0; i < results.size(); i++) {
    const Tensor tangent = tensor_or_none(PyTuple_GET_ITEM(out.get(), static_cast<Py_ssize_t>(i)),
                                          "the result of jvp");
    if (tangent.defined()) autograd::set_tangent(results[i], tangent, level);
  }
}

// The same at all levels seen at which some argument has a tangent, the lowest first: what jvp
// reads has the tangents of the levels below.
void run_jvp(const Call& call, const TensorList& results) {
  const uint64_t level = autograd::level_of(call.inputs);
  if (level == 0) return;
  {
    const autograd::BelowLevel values_only(level);
    run_jvp(call, results);
  }
  run_jvp(call, results, level);
}

// _apply_function(cls, ctx, args): runs forward and records it.
PyObject* apply_function(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  TD_PYTHON_TRY
  if (nargs != 3 || !PyTuple_Check(args[2]) || !PyObject_TypeCheck(args[1], context_type))
    raise_python(PyExc_TypeError, "_apply_function(cls, ctx, args)");
  Call call{args[0], args[1], args[2], {}, {}};
  ContextObject* context = cast(call.context);
  const Py_ssize_t count = PyTuple_GET_SIZE(call.args);
  PyRef needs = PyRef::check(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject* argument = PyTuple_GET_ITEM(call.args, i);
    const bool tensor = is_tensor(argument);
    call.is_tensor_arg.push_back(tensor);
    if (tensor) call.inputs.push_back(tensor_of(argument));
    PyTuple_SET_ITEM(needs.get(), i,
                     PyBool_FromLong(tensor && tensor_of(argument).requires_grad()));
  }
  Py_XSETREF(context->needs_input_grad, needs.release());

  Ref<PythonFunctionNode> node;
  if (autograd::needs_grad(call.inputs)) {
    node = make_ref<PythonFunctionNode>(call.context, std::string(Py_TYPE(call.context)->tp_name));
    autograd::set_edges(*node, call.inputs);
    node->argument_is_tensor = call.is_tensor_arg;
  }
  PyRef raw = run_forward(call);
  const bool one = !PyTuple_Check(raw.get());
  PyRef outputs = one ? PyRef::check(PyTuple_Pack(1, raw.get())) : raw;
  const Py_ssize_t output_count = PyTuple_GET_SIZE(outputs.get());

  // Results that are no tensors pass through; the others are numbered among all results, as
  // backward receives them.
  TensorList results;
  for (Py_ssize_t i = 0; i < output_count; i++) {
    PyObject* output = PyTuple_GET_ITEM(outputs.get(), i);
    if (one && !is_tensor(output))
      raise_python(
          PyExc_TypeError,
          "{}.forward: expected to return a Tensor or tuple of Tensors, but returned {}",
          utf8(PyRef::check(PyObject_GetAttrString(call.function_class, "__name__")).get()),
          type_name(output));
    results.push_back(is_tensor(output) ? tensor_of(output) : Tensor());
  }
  if (node) node->materialize_grads = context->materialize_grads;
  results = autograd::wrap_results(
      node, call.inputs, std::move(results), tensors_in(context->dirty, "mark_dirty"),
      tensors_in(context->non_differentiable, "mark_non_differentiable"));
  if (node) {
    const TensorList to_save = tensors_in(context->to_save, "save_for_backward");
    for (const Tensor& t : to_save)
      node->saved.push_back(is_result(results, t) ? autograd::SavedTensor::output(t, node)
                                                  : autograd::SavedTensor::input(t));
    Py_CLEAR(context->to_save);
    Py_CLEAR(context->non_differentiable);
    Py_CLEAR(context->dirty);
  }
  run_jvp(call, results);
  Py_CLEAR(context->saved_for_forward);
  // Through the node and what the context keeps, a result may lead back to itself.
  const auto tracked = [](Tensor& t) {
    PyRef object = PyRef::check(wrap(std::move(t)));
    track_tensor(object.get());
    return object.release();
  };
  if (one) return results[0].defined() ? tracked(results[0]) : new_ref(Py_None);
  PyRef tuple = PyRef::check(PyTuple_New(output_count));
  for (Py_ssize_t i = 0; i < output_count; i++) {
    Tensor& t = results[static_cast<size_t>(i)];
    PyTuple_SET_ITEM(tuple.get(), i,
                     t.defined() ? tracked(t) : new_ref(PyTuple_GET_ITEM(outputs.get(), i)));
  }
  return tuple.release();
  TD_PYTHON_CATCH(nullptr)
}

PyMethodDef functions[] = {
    {"_apply_function", as_function(apply_function), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyObject* context_of(const autograd::Node& node) {
  const auto* python = dynamic_cast<const PythonFunctionNode*>(&node);
  return python ? python->context() : nullptr;
}

void add_function_type(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(context_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(context_dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(context_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(context_clear)},
      {Py_tp_methods, context_methods},
      {Py_tp_getset, context_properties},
      {Py_tp_members, context_members},
      {0, nullptr},
  };
  PyType_Spec spec = {"taeda.autograd.function._ContextBase", sizeof(ContextObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
  context_type = add_type(module, "_ContextBase", &spec);
  check_status(PyModule_AddFunctions(module, functions));
}

}  // namespace taeda::python
