// Custom functions: the node that calls a Python class's backward, and what autograd.Function.apply
// does.
//
// The node owns the context object (ctx); the context knows its node without owning it, so that a
// function's results, node and context go together.
#include <algorithm>

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
  bool in_jvp;
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

  // With the GIL.
  TensorList call_backward(TensorList&& grads);
  PyObject* context() const { return context_; }
  std::vector<autograd::SavedTensor> saved;
  std::vector<bool> argument_is_tensor;  // of forward's arguments

 private:
  const std::string name_;
  PyObject* const context_;
};

// Whether nobody but C++ keeps the Python object of a gradient, which says nothing of its own.
bool keeps_object_for_nothing(const Tensor& t) {
  auto* object = static_cast<PyObject*>(t.impl()->python_object());
  if (!object || !is_exact_tensor(object) || Py_REFCNT(object) != 1) return false;
  const auto* held = reinterpret_cast<TensorObject*>(object);
  return !held->dict && !held->weakrefs && !t.requires_grad() &&
         !t.impl()->keys.has(Key::kBatched) && !autograd::has_tangent(t);
}

// The gradients by tensors of their own where Python has dropped its objects: what nobody else uses
// may become a leaf's grad without a copy.
TensorList without_objects(const TensorList& gradients) {
  TensorList out(gradients.size());
  for (size_t i = 0; i < gradients.size(); i++) {
    const Tensor& t = gradients[i];
    if (!t.defined()) continue;
    size_t first = 0;
    while (first < i && !gradients[first].is_same(t)) first++;
    if (first < i)
      out[i] = out[first];
    else
      out[i] = keeps_object_for_nothing(t) ? autograd::math::alias(t) : t;
  }
  return out;
}

TensorList PythonFunctionNode::apply(TensorList&& grads) {
  return with_python([&] { return without_objects(call_backward(std::move(grads))); });
}

TensorList PythonFunctionNode::call_backward(TensorList&& grads) {
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
  if (c->in_jvp) return c->saved_for_forward ? new_ref(c->saved_for_forward) : PyTuple_New(0);
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

// While jvp runs, ctx.saved_tensors is what was saved for it.
class InJvp {
 public:
  explicit InJvp(PyObject* context) : context_(cast(context)) { context_->in_jvp = true; }
  ~InJvp() { context_->in_jvp = false; }
  InJvp(const InJvp&) = delete;
  InJvp& operator=(const InJvp&) = delete;

 private:
  ContextObject* const context_;
};

// What jvp was given for the tensors among the arguments, and their versions before.
struct GivenTangents {
  TensorList tangents;
  std::vector<uint32_t> versions;
};

// The number of the argument that `result` is, or that it is a view of; -1 where there is none.
int64_t argument_behind(const TensorList& inputs, const Tensor& result) {
  for (size_t i = 0; i < inputs.size(); i++)
    if (inputs[i].is_same(result)) return static_cast<int64_t>(i);
  const Ref<TensorImpl>& base = result.impl()->view_base;
  for (size_t i = 0; base && i < inputs.size(); i++) {
    const Tensor& x = inputs[i];
    if (x.impl() == base.get() || x.impl()->view_base.get() == base.get())
      return static_cast<int64_t>(i);
  }
  return -1;
}

// A result that is an argument, or a view of one, shares its memory: so must their tangents.
// RuntimeError where a write into one would not be seen in the other.
void check_shares_tangent(const Call& call, const Tensor& raw, const Tensor& tangent,
                          const GivenTangents& given, bool dirty) {
  const int64_t nr = argument_behind(call.inputs, raw);
  if (nr < 0) return;
  const size_t i = static_cast<size_t>(nr);
  const Tensor& of = given.tangents[i];
  if (!of.defined()) return;
  if (dirty) {
    TD_CHECK(tangent.is_same(of) && of.version() != given.versions[i],
             "An inplace custom Function is not modifying the forward mode gradients inplace. If "
             "the forward is modifying an input inplace, then the jvp function must modify the "
             "corresponding gradient inplace.");
    return;
  }
  constexpr const char* kWhere =
      "A custom Function's forward is returning a view (or an input as-is) but the jvp is not "
      "returning a view";
  const Ref<TensorImpl>& base = tangent.impl()->view_base;
  TD_CHECK(base, "{}.", kWhere);
  if (of.impl()->view_base) {
    TD_CHECK(base.get() == of.impl()->view_base.get(),
             "{} of the same base as the given grad input", kWhere);
  } else {
    TD_CHECK(base.get() == of.impl(), "{} of the given grad input", kWhere);
  }
}

// What forward returned, and what it has become.
struct Results {
  TensorList raw, wrapped;
  TensorList dirty, non_differentiable;  // what ctx.mark_... was given

  static bool contains(const TensorList& list, const Tensor& t) {
    return std::any_of(list.begin(), list.end(), [&](const Tensor& o) { return o.is_same(t); });
  }
  bool is_dirty(size_t i) const { return contains(dirty, raw[i]); }
  bool is_differentiable(size_t i) const {
    return raw[i].defined() && is_inexact(raw[i].dtype()) && !contains(non_differentiable, raw[i]);
  }
};

// The tangents of the results at one level by the class's jvp, one a result.
void run_jvp(const Call& call, const Results& results, uint64_t level) {
  const autograd::BelowLevel values_only(level);
  PyRef jvp = PyRef::check(PyObject_GetAttrString(call.function_class, "jvp"));
  const Py_ssize_t count = PyTuple_GET_SIZE(call.args);
  PyRef arguments = PyRef::check(PyTuple_New(count + 1));
  PyTuple_SET_ITEM(arguments.get(), 0, new_ref(call.context));
  GivenTangents tangents;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject* given = PyTuple_GET_ITEM(call.args, i);
    PyRef tangent = PyRef::share(Py_None);
    if (is_tensor(given)) {
      Tensor t = autograd::tangent(tensor_of(given), level);
      const Tensor& primal = tensor_of(given);
      if (!t.defined() && cast(call.context)->materialize_grads && is_inexact(primal.dtype()))
        t = autograd::math::zeros(primal.sizes(), primal.dtype(), primal.device());
      tangents.tangents.push_back(t);
      tangents.versions.push_back(t.defined() ? t.version() : 0);
      tangent = PyRef::check(wrap(std::move(t)));
    }
    PyTuple_SET_ITEM(arguments.get(), i + 1, tangent.release());
  }
  const InJvp in_jvp(call.context);
  PyRef out =
      PyRef::check(call_python([&] { return PyObject_CallObject(jvp.get(), arguments.get()); }));
  if (!PyTuple_Check(out.get())) out = PyRef::check(PyTuple_Pack(1, out.get()));
  if (PyTuple_GET_SIZE(out.get()) != static_cast<Py_ssize_t>(results.raw.size()))
    raise_python(PyExc_RuntimeError,
                 "{}.jvp returned an incorrect number of forward gradients (expected {}, got {})",
                 utf8(PyRef::check(PyObject_GetAttrString(call.function_class, "__name__")).get()),
                 results.raw.size(), static_cast<int64_t>(PyTuple_GET_SIZE(out.get())));
  for (size_t i = 0; i < results.raw.size(); i++) {
    const Tensor tangent = tensor_or_none(PyTuple_GET_ITEM(out.get(), static_cast<Py_ssize_t>(i)),
                                          "the result of jvp");
    if (!tangent.defined()) continue;
    TD_CHECK(results.is_differentiable(i),
             "{}.jvp returned a gradient at position {}, but the corresponding forward output is "
             "not a differentiable Tensor. You should return None at that position instead.",
             utf8(PyRef::check(PyObject_GetAttrString(call.function_class, "__name__")).get()), i);
    check_shares_tangent(call, results.raw[i], tangent, tangents, results.is_dirty(i));
    const Tensor& y = results.wrapped[i];
    if (!(results.is_dirty(i) && tangent.is_same(autograd::tangent(y, level))))
      autograd::set_tangent(y, tangent, level);
  }
}

// The same at all levels seen at which some argument has a tangent, the lowest first: what jvp
// reads has the tangents of the levels below.
void run_jvp(const Call& call, const Results& results) {
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
  Results of_forward{autograd::any_dual_level() ? results : TensorList(),
                     {},
                     tensors_in(context->dirty, "mark_dirty"),
                     tensors_in(context->non_differentiable, "mark_non_differentiable")};
  results = autograd::wrap_results(node, call.inputs, std::move(results), of_forward.dirty,
                                   of_forward.non_differentiable);
  if (node) {
    const TensorList to_save = tensors_in(context->to_save, "save_for_backward");
    for (const Tensor& t : to_save)
      node->saved.push_back(is_result(results, t) ? autograd::SavedTensor::output(t, node)
                                                  : autograd::SavedTensor::input(t));
    Py_CLEAR(context->to_save);
    Py_CLEAR(context->non_differentiable);
    Py_CLEAR(context->dirty);
  }
  if (autograd::any_dual_level()) {
    of_forward.wrapped = results;
    run_jvp(call, of_forward);
  }
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
