// The functions behind taeda.autograd: backward, grad, modes, forward mode, saved-tensor hooks,
// anomaly mode.
#include "autograd/anomaly.h"
#include "autograd/engine.h"
#include "autograd/forward.h"
#include "autograd/forward_switch.h"
#include "autograd/math.h"
#include "autograd/record.h"
#include "autograd/roots.h"
#include "autograd/saved.h"
#include "python/autograd.h"
#include "python/autograd_support.h"
#include "python/call.h"
#include "python/module.h"
#include "python/tensor_object.h"
#include "python/torch_function.h"
#include "python/wrap.h"
#include "taeda/autograd.h"
#include "taeda/warning.h"

#include <frameobject.h>

namespace taeda::python {
namespace {

// --- backward and grad ---

// A tensor, or a GradientEdge (node, output_nr) with the metadata of that result.
struct Target {
  Tensor tensor;
  autograd::Edge edge;
  std::string where;  // for messages
};

std::vector<Target> to_targets(PyObject* sequence, const char* what) {
  PyRef items = PyRef::check(PySequence_Tuple(sequence));  // __index__ may change a list
  std::vector<Target> out;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items.get()); i++) {
    PyObject* item = PyTuple_GET_ITEM(items.get(), i);
    if (is_tensor(item)) {
      out.push_back({tensor_of(item), autograd::gradient_edge(tensor_of(item)), {}});
    } else if (PyTuple_Check(item) && PyTuple_GET_SIZE(item) >= 2) {
      const long number = PyLong_AsLong(PyTuple_GET_ITEM(item, 1));
      if (number == -1 && PyErr_Occurred()) throw PythonError();
      Ref<autograd::Node> node = to_node(PyTuple_GET_ITEM(item, 0));
      if (!node || number < 0 || number >= static_cast<long>(node->num_inputs()))
        raise_python(PyExc_RuntimeError, "{}: element {} is no valid GradientEdge", what,
                     static_cast<int64_t>(i));
      out.push_back({Tensor(), {std::move(node), static_cast<uint32_t>(number)}, {}});
    } else {
      raise_python(PyExc_TypeError, "{}: expected Tensors or GradientEdges, but element {} is a {}",
                   what, static_cast<int64_t>(i), type_name(item));
    }
  }
  return out;
}

autograd::Root root_of(const Target& target) {
  if (target.tensor.defined()) return autograd::root_of(target.tensor, target.edge);
  return {target.edge, target.edge.node->input_metadata(target.edge.input_nr)};
}

std::vector<autograd::Root> roots_of(const std::vector<Target>& outputs) {
  std::vector<autograd::Root> roots;
  roots.reserve(outputs.size());
  for (const Target& output : outputs) roots.push_back(root_of(output));
  return roots;
}

// The gradients to start from; `given` is a sequence of tensors and None, or None.
TensorList read_gradients(const std::vector<autograd::Root>& roots, PyObject* given) {
  if (given == Py_None) return autograd::start_gradients(roots, nullptr);
  TensorList grads;
  const PyRef items = PyRef::check(PySequence_Fast(given, "grad_outputs"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); i++) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    if (item != Py_None && !is_tensor(item))
      raise_python(PyExc_TypeError, "gradients can be either Tensors or None, but got {}",
                   type_name(item));
    grads.push_back(item == Py_None ? Tensor() : tensor_of(item));
  }
  return autograd::start_gradients(roots, &grads);
}

TensorList run(const std::vector<autograd::Root>& roots, TensorList grads,
               const std::vector<autograd::Edge>& inputs, const autograd::RunOptions& options) {
  const GilRelease release;
  return autograd::Engine::run(edges_of(roots), std::move(grads), inputs, options);
}

// _backward(tensors, grads or None, retain_graph, create_graph, inputs or None)
PyObject* backward(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  TD_PYTHON_TRY
  if (nargs != 5) raise_python(PyExc_TypeError, "_backward() takes 5 arguments");
  const std::vector<Target> outputs = to_targets(args[0], "tensors");
  const std::vector<autograd::Root> roots = roots_of(outputs);
  TensorList grads = read_gradients(roots, args[1]);
  autograd::RunOptions options;
  options.create_graph = args[3] == Py_True;
  options.keep_graph = args[2] == Py_True || options.create_graph;
  std::vector<autograd::Edge> edges;
  if (args[4] != Py_None) {
    for (Target& input : to_targets(args[4], "inputs")) {
      TD_CHECK(input.edge, "One of the differentiated Tensors does not require grad");
      if (input.tensor.defined()) input.tensor.retain_grad();
      edges.push_back(input.edge);
    }
    TD_CHECK(!edges.empty(), "`inputs` argument to `backward()` cannot be empty.");
  }
  run(roots, std::move(grads), edges, options);
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

// _grad(outputs, inputs, grad_outputs or None, retain_graph, create_graph, allow_unused,
// materialize_grads)
PyObject* grad(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  TD_PYTHON_TRY
  if (nargs != 7) raise_python(PyExc_TypeError, "_grad() takes 7 arguments");
  const std::vector<Target> outputs = to_targets(args[0], "outputs"),
                            inputs = to_targets(args[1], "inputs");
  TD_CHECK(!inputs.empty(), "`inputs` argument to `grad()` cannot be empty.");
  const std::vector<autograd::Root> roots = roots_of(outputs);
  TensorList grads = read_gradients(roots, args[2]);
  std::vector<autograd::Edge> edges;
  for (const Target& input : inputs) {
    TD_CHECK(input.edge, "One of the differentiated Tensors does not require grad");
    edges.push_back(input.edge);
  }
  autograd::RunOptions options;
  options.create_graph = args[4] == Py_True;
  options.keep_graph = args[3] == Py_True || options.create_graph;
  options.accumulate = false;
  TensorList results = run(roots, std::move(grads), edges, options);
  for (size_t i = 0; i < results.size(); i++) {
    if (results[i].defined()) continue;
    TD_CHECK(args[5] == Py_True,
             "The differentiated Tensor at index {} appears to not have been used in the graph. "
             "Set allow_unused=True if this "
             "is the desired behavior.",
             i);
    if (args[6] == Py_True) results[i] = root_of(inputs[i]).output.zeros();
  }
  return tuple_of(results).release();
  TD_PYTHON_CATCH(nullptr)
}

// _gradient_edge(tensor) -> (node, output_nr)
PyObject* gradient_edge(PyObject*, PyObject* object) {
  TD_PYTHON_TRY
  const Tensor tensor = tensor_or_none(object, "get_gradient_edge");
  TD_CHECK(
      tensor.defined() && tensor.requires_grad(),
      "It is not possible to get the gradient edge for a Tensor that does not require gradients");
  const autograd::Edge edge = autograd::gradient_edge(tensor);
  PyRef node = PyRef::check(wrap_node(edge.node));
  return Py_BuildValue("(Oi)", node.get(), static_cast<int>(edge.input_nr));
  TD_PYTHON_CATCH(nullptr)
}

PyObject* queue_callback(PyObject*, PyObject* callback) {
  TD_PYTHON_TRY
  auto holder = make_ref<PythonHolder>(callback);
  autograd::Engine::queue_callback([holder] {
    with_python(
        [&] { PyRef::check(call_python([&] { return PyObject_CallNoArgs(holder->get()); })); });
  });
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyObject* current_node(PyObject*, PyObject*) {
  TD_PYTHON_TRY
  return wrap_node(Ref<autograd::Node>(autograd::Engine::current_node()));
  TD_PYTHON_CATCH(nullptr)
}

PyObject* task_id(PyObject*, PyObject*) { return PyLong_FromLongLong(autograd::Engine::task_id()); }

// _graph_task_ids() -> the numbers of the backward passes that run on this thread
PyObject* task_ids(PyObject*, PyObject*) {
  TD_PYTHON_TRY
  PyRef set = PyRef::check(PySet_New(nullptr));
  for (const int64_t id : autograd::Engine::task_ids())
    check_status(PySet_Add(set.get(), PyRef::check(PyLong_FromLongLong(id)).get()));
  return set.release();
  TD_PYTHON_CATCH(nullptr)
}

// _node_identity(node) -> (address, sequence number): tells it from others without keeping it
PyObject* node_identity(PyObject*, PyObject* object) {
  TD_PYTHON_TRY
  const Ref<autograd::Node> node = to_node(object);
  if (!node) Py_RETURN_NONE;
  return Py_BuildValue("(KK)",
                       static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(node.get())),
                       static_cast<unsigned long long>(node->sequence()));
  TD_PYTHON_CATCH(nullptr)
}

// _task_reaches(node or its identity): whether the running backward calls it, or returns its
// gradient
PyObject* task_reaches(PyObject*, PyObject* object) {
  TD_PYTHON_TRY
  if (PyTuple_Check(object)) {
    unsigned long long address, sequence;
    if (!PyArg_ParseTuple(object, "KK", &address, &sequence)) return nullptr;
    return PyBool_FromLong(autograd::Engine::reaches(address, sequence));
  }
  const Ref<autograd::Node> node = to_node(object);
  return PyBool_FromLong(node && autograd::Engine::reaches(*node));
  TD_PYTHON_CATCH(nullptr)
}

PyObject* will_execute(PyObject*, PyObject* object) {
  TD_PYTHON_TRY
  TD_CHECK(is_node(object), "_will_engine_execute_node expects an grad_fn, but got {}",
           type_name(object));
  TD_CHECK(autograd::Engine::running(),
           "_will_engine_execute_node should only be called during the backward pass");
  const Ref<autograd::Node> node = to_node(object);
  TD_CHECK(!(node->leaf() && autograd::Engine::only_captures(*node)),
           "A leaf node was passed to _will_engine_execute_node but we are currently running "
           "autograd.grad(), which returns the gradients of leaves without calling their nodes");
  return PyBool_FromLong(autograd::Engine::reaches(*node));
  TD_PYTHON_CATCH(nullptr)
}

// Programs may ask: it changes nothing here, where the calling thread does all the work.
thread_local bool multithreading = true;
PyObject* is_multithreading(PyObject*, PyObject*) { return PyBool_FromLong(multithreading); }
PyObject* set_multithreading(PyObject*, PyObject* value) {
  const int truth = PyObject_IsTrue(value);
  if (truth < 0) return nullptr;
  multithreading = truth;
  Py_RETURN_NONE;
}

PyObject* execution_order(PyObject*, PyObject*) {
  TD_PYTHON_TRY
  TD_CHECK(autograd::Engine::running(),
           "_current_graph_task_execution_order should only be called during the backward pass");
  TD_CHECK(!multithreading,
           "_current_graph_task_execution_order expects the current backward to be executed with "
           "multithreading disabled, e.g. by running:\n\n"
           "with torch.autograd.set_multithreading_enabled(False):\n    ...");
  PyRef list = PyRef::check(PyList_New(0));
  for (autograd::Node* node : autograd::Engine::execution_order())
    check_status(
        PyList_Append(list.get(), PyRef::check(wrap_node(Ref<autograd::Node>(node))).get()));
  return list.release();
  TD_PYTHON_CATCH(nullptr)
}

// The number that the thread's next step of the graph gets.
PyObject* next_sequence_number(PyObject*, PyObject*) {
  return PyLong_FromUnsignedLongLong(autograd::next_sequence());
}

PyObject* is_checkpoint_valid(PyObject*, PyObject*) {
  return PyBool_FromLong(!autograd::Engine::filtered());
}

// --- modes ---

PyObject* is_grad_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong(thread_modes.grad_enabled);
}
PyObject* set_grad_enabled(PyObject*, PyObject* value) {
  if (!PyBool_Check(value)) {
    PyErr_Format(PyExc_TypeError, "set_grad_enabled(): argument 'mode' must be bool, not %s",
                 type_name(value));
    return nullptr;
  }
  thread_modes.grad_enabled = value == Py_True;
  Py_RETURN_NONE;
}
PyObject* is_inference(PyObject*, PyObject*) { return PyBool_FromLong(thread_modes.inference); }

// _enter_inference_mode(enabled) -> what _exit_inference_mode needs to put the modes back.
PyObject* enter_inference(PyObject*, PyObject* enabled) {
  const long state = (thread_modes.inference ? 1 : 0) | (thread_modes.grad_enabled ? 2 : 0) |
                     (thread_modes.excluded.has(Key::kAutograd) ? 4 : 0);
  const bool on = enabled == Py_True;
  thread_modes.inference = on;
  thread_modes.grad_enabled = !on;
  thread_modes.excluded =
      on ? thread_modes.excluded | Key::kAutograd : thread_modes.excluded - Key::kAutograd;
  return PyLong_FromLong(state);
}
PyObject* exit_inference(PyObject*, PyObject* saved) {
  const long state = PyLong_AsLong(saved);
  if (state == -1 && PyErr_Occurred()) return nullptr;
  thread_modes.inference = state & 1;
  thread_modes.grad_enabled = (state & 2) != 0;
  thread_modes.excluded =
      state & 4 ? thread_modes.excluded | Key::kAutograd : thread_modes.excluded - Key::kAutograd;
  Py_RETURN_NONE;
}

PyObject* is_anomaly_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong(AnomalyMode::enabled());
}
PyObject* is_anomaly_check_nan_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong(AnomalyMode::checks_nan());
}
PyObject* set_anomaly_enabled(PyObject*, PyObject* args) {
  int enabled = 0, check_nan = 1;
  if (!PyArg_ParseTuple(args, "p|p", &enabled, &check_nan)) return nullptr;
  AnomalyMode::set(enabled, check_nan);
  Py_RETURN_NONE;
}

// Whether code starts the user's program: `python -m taeda`, runpy.
bool starts_programs(PyObject* code) {
  const char* file = PyUnicode_AsUTF8(reinterpret_cast<PyCodeObject*>(code)->co_filename);
  const std::string_view name = file ? file : "";
  return name == "<frozen runpy>" || name.ends_with("/runpy.py") ||
         name.ends_with("/taeda/__main__.py");
}

// Code objects and lines of the calling Python frames; formatted only when asked for.
class PythonTraceback final : public autograd::Traceback {
 public:
  static Ref<autograd::Traceback> capture() {
    if (!Py_IsInitialized()) return {};
    const EnsureGil gil;
    PyThreadState* state = PyThreadState_Get();
    PyRef frame = PyRef::adopt(reinterpret_cast<PyObject*>(PyThreadState_GetFrame(state)));
    if (!frame) return {};
    auto traceback = make_ref<PythonTraceback>();
    constexpr int kDeepest = 64;
    for (int depth = 0; frame && depth < kDeepest; depth++) {
      auto* f = reinterpret_cast<PyFrameObject*>(frame.get());
      traceback->frames_.emplace_back(reinterpret_cast<PyObject*>(PyFrame_GetCode(f)),
                                      PyFrame_GetLineNumber(f));
      frame = PyRef::adopt(reinterpret_cast<PyObject*>(PyFrame_GetBack(f)));
    }
    return traceback;
  }
  ~PythonTraceback() override {
    if (!Py_IsInitialized()) return;
    const EnsureGil gil;
    for (auto& [code, line] : frames_) Py_DECREF(code);
  }
  std::string text() const override {
    const EnsureGil gil;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    std::string out;
    PyRef linecache = PyRef::adopt(PyImport_ImportModule("linecache"));
    size_t i = frames_.size();
    while (i > 0 && starts_programs(frames_[i - 1].first)) i--;
    while (i-- > 0) {
      const auto* code = reinterpret_cast<const PyCodeObject*>(frames_[i].first);
      const char* file = PyUnicode_AsUTF8(code->co_filename);
      const char* name = PyUnicode_AsUTF8(code->co_name);
      out += taeda::format("  File \"{}\", line {}, in {}\n", file ? file : "?", frames_[i].second,
                           name ? name : "?");
      PyRef source = linecache ? PyRef::adopt(call_python([&] {
        return PyObject_CallMethod(linecache.get(), "getline", "Oi", code->co_filename,
                                   frames_[i].second);
      }))
                               : PyRef();
      PyRef stripped = source ? PyRef::adopt(call_python([&] {
        return PyObject_CallMethod(source.get(), "strip", nullptr);
      }))
                              : PyRef();
      const char* line = stripped ? PyUnicode_AsUTF8(stripped.get()) : nullptr;
      if (line && *line) out += taeda::format("    {}\n", line);
    }
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    return out;
  }

 private:
  std::vector<std::pair<PyObject*, int>> frames_;
};

void give_warning(const std::string& message) {
  if (!Py_IsInitialized()) return;
  const EnsureGil gil;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  const bool raised = PyErr_WarnEx(PyExc_UserWarning, message.c_str(), 1) < 0;
  if (raised && !type) throw PythonException();
  if (raised) PyErr_PrintEx(0);  // the exception that was there first goes on
  PyErr_Restore(type, value, traceback);
}

// --- forward mode ---

PyObject* enter_dual_level(PyObject*, PyObject*) {
  TD_PYTHON_TRY
  return PyLong_FromUnsignedLongLong(autograd::enter_dual_level());
  TD_PYTHON_CATCH(nullptr)
}
PyObject* is_forward_enabled(PyObject*, PyObject*) {
  return PyBool_FromLong(autograd::forward_enabled());
}
PyObject* set_forward_enabled(PyObject*, PyObject* value) {
  const int truth = PyObject_IsTrue(value);
  if (truth < 0) return nullptr;
  autograd::set_forward_enabled(truth);
  Py_RETURN_NONE;
}
PyObject* exit_dual_level(PyObject*, PyObject* level) {
  TD_PYTHON_TRY
  const unsigned long long which = PyLong_AsUnsignedLongLong(level);
  if (which == static_cast<unsigned long long>(-1) && PyErr_Occurred()) return nullptr;
  autograd::exit_dual_level(which);
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}
PyObject* dual_level(PyObject*, PyObject*) {
  return PyLong_FromUnsignedLongLong(autograd::dual_level());
}
// _make_dual(primal, tangent, level)
PyObject* make_dual(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  PyObject *primal, *tangent;
  unsigned long long level;
  if (!PyArg_ParseTuple(args, "OOK", &primal, &tangent, &level)) return nullptr;
  const Tensor p = tensor_or_none(primal, "primal"), t = tensor_or_none(tangent, "tangent");
  if (!p.defined() || !t.defined())
    raise_python(PyExc_TypeError, "make_dual() expects two Tensors");
  return wrap(autograd::make_dual(p, t, level));
  TD_PYTHON_CATCH(nullptr)
}
// _unpack_dual(tensor, level) -> (primal, tangent or None)
PyObject* unpack_dual(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  PyObject* object;
  unsigned long long level;
  if (!PyArg_ParseTuple(args, "OK", &object, &level)) return nullptr;
  const Tensor t = tensor_or_none(object, "unpack_dual");
  if (!t.defined()) raise_python(PyExc_TypeError, "unpack_dual() expects a Tensor");
  auto [primal, tangent] = autograd::unpack_dual(t, level);
  PyRef p = PyRef::check(wrap(std::move(primal))), d = PyRef::check(wrap(std::move(tangent)));
  return PyTuple_Pack(2, p.get(), d.get());
  TD_PYTHON_CATCH(nullptr)
}

// _tangents(tensor) -> the tangents that are seen, the highest level's first
PyObject* tangents(PyObject*, PyObject* object) {
  TD_PYTHON_TRY
  const Tensor t = tensor_or_none(object, "_tangents");
  autograd::keep_tangents_of_base(t);
  TensorList found;
  for (uint64_t level = autograd::level_of(t); level != 0;) {
    found.push_back(autograd::tangent(t, level));
    level = autograd::meta_of(t)->forward->highest_below(level);
  }
  return tuple_of(found).release();
  TD_PYTHON_CATCH(nullptr)
}
// _fresh_leaf(tensor) -> an alias that requires no grad and has the tensor's tangents; of a
// subclass that overrides operators, what its detach() gives
PyObject* fresh_leaf(PyObject*, PyObject* object) {
  TD_PYTHON_TRY
  if (overrides_torch_function(object)) return PyObject_CallMethod(object, "detach", nullptr);
  const Tensor t = tensor_or_none(object, "_fresh_leaf");
  if (!t.defined()) Py_RETURN_NONE;
  Tensor leaf = autograd::math::alias(t);
  autograd::share_tangent(leaf, t);
  return wrap(std::move(leaf));
  TD_PYTHON_CATCH(nullptr)
}
// _cut_history(tensor) -> the same, whose tangents require no grad either
PyObject* cut_history(PyObject*, PyObject* object) {
  TD_PYTHON_TRY
  if (overrides_torch_function(object)) return PyObject_CallMethod(object, "detach", nullptr);
  const Tensor t = tensor_or_none(object, "_cut_history");
  return t.defined() ? wrap(autograd::cut_history(t)) : new_ref(Py_None);
  TD_PYTHON_CATCH(nullptr)
}

// --- saved-tensor hooks ---

class PythonSavedHooks final : public autograd::SavedTensorHooks {
 public:
  PythonSavedHooks(PyObject* pack, PyObject* unpack)
      : pack_(new_ref(pack)), unpack_(new_ref(unpack)) {}
  ~PythonSavedHooks() override {
    drop_anywhere(pack_);
    drop_anywhere(unpack_);
  }
  Ref<RefCounted> pack(const Tensor& tensor) override {
    return with_python([&]() -> Ref<RefCounted> {
      PyRef object = PyRef::check(wrap(tensor));
      return make_ref<PythonHolder>(PyRef::check(call_python([&] {
                                      return PyObject_CallOneArg(pack_, object.get());
                                    })).get());
    });
  }
  Tensor unpack(RefCounted& packed) override {
    return with_python([&] {
      PyRef object = PyRef::check(call_python(
          [&] { return PyObject_CallOneArg(unpack_, static_cast<PythonHolder&>(packed).get()); }));
      if (!is_tensor(object.get()))
        raise_python(
            PyExc_TypeError,
            "Output of saved tensor unpack_hook expected to be a Tensor but got result of type {}",
            type_name(object.get()));
      return Tensor(tensor_of(object.get()));
    });
  }

 private:
  PyObject *const pack_, *const unpack_;
};

}  // namespace

Ref<autograd::SavedTensorHooks> make_saved_hooks(PyObject* pack, PyObject* unpack) {
  return make_ref<PythonSavedHooks>(pack, unpack);
}

namespace {

PyObject* push_saved_hooks(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  PyObject *pack, *unpack;
  if (!PyArg_ParseTuple(args, "OO", &pack, &unpack)) return nullptr;
  autograd::push_saved_tensor_hooks(make_saved_hooks(pack, unpack));
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}
PyObject* pop_saved_hooks(PyObject*, PyObject*) {
  autograd::pop_saved_tensor_hooks();
  Py_RETURN_NONE;
}
PyObject* disable_saved_hooks(PyObject*, PyObject* message) {
  TD_PYTHON_TRY
  autograd::disable_saved_tensor_hooks(std::string(utf8(message)));
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}
PyObject* enable_saved_hooks(PyObject*, PyObject*) {
  autograd::enable_saved_tensor_hooks();
  Py_RETURN_NONE;
}
PyObject* saved_hooks_message(PyObject*, PyObject*) {
  if (autograd::saved_tensor_hooks_enabled()) Py_RETURN_NONE;
  return wrap(autograd::saved_tensor_hooks_disabled_message());
}

// --- tensors ---

PyObject* increment_version(PyObject*, PyObject* object) {
  TD_PYTHON_TRY
  const Tensor tensor = tensor_or_none(object, "increment_version");
  if (tensor.defined()) tensor.impl()->bump_version();
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyObject* is_view(PyObject*, PyObject* object) {
  TD_PYTHON_TRY
  const Tensor tensor = tensor_or_none(object, "_is_view");
  return PyBool_FromLong(tensor.defined() && tensor.impl()->view_base);
  TD_PYTHON_CATCH(nullptr)
}

PyObject* live_nodes(PyObject*, PyObject*) {
  return PyLong_FromLongLong(autograd::Node::live_count());
}

PyMethodDef functions[] = {
    {"_backward", as_function(backward), METH_FASTCALL, nullptr},
    {"_grad", as_function(grad), METH_FASTCALL, nullptr},
    {"_gradient_edge", gradient_edge, METH_O, nullptr},
    {"_queue_callback", queue_callback, METH_O, nullptr},
    {"_current_autograd_node", current_node, METH_NOARGS, nullptr},
    {"_current_graph_task_id", task_id, METH_NOARGS, nullptr},
    {"_graph_task_ids", task_ids, METH_NOARGS, nullptr},
    {"_node_identity", node_identity, METH_O, nullptr},
    {"_task_reaches", task_reaches, METH_O, nullptr},
    {"_will_engine_execute_node", will_execute, METH_O, nullptr},
    {"_current_graph_task_execution_order", execution_order, METH_NOARGS, nullptr},
    {"_is_multithreading_enabled", is_multithreading, METH_NOARGS, nullptr},
    {"_set_multithreading_enabled", set_multithreading, METH_O, nullptr},
    {"_is_fwd_grad_enabled", is_forward_enabled, METH_NOARGS, nullptr},
    {"_set_fwd_grad_enabled", set_forward_enabled, METH_O, nullptr},
    {"_is_checkpoint_valid", is_checkpoint_valid, METH_NOARGS, nullptr},
    {"_next_sequence_number", next_sequence_number, METH_NOARGS, nullptr},
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS,
     "is_grad_enabled() -> bool\n\nWhether operators are recorded for backward on this thread: not "
     "within `no_grad` and `inference_mode`.\n\n>>> with torch.no_grad():\n...     "
     "torch.is_grad_enabled()\nFalse"},
    {"_set_grad_enabled", set_grad_enabled, METH_O, nullptr},
    {"is_inference_mode_enabled", is_inference, METH_NOARGS,
     "is_inference_mode_enabled() -> bool\n\nWhether inference_mode is on."},
    {"_enter_inference_mode", enter_inference, METH_O, nullptr},
    {"_exit_inference_mode", exit_inference, METH_O, nullptr},
    {"is_anomaly_enabled", is_anomaly_enabled, METH_NOARGS,
     "is_anomaly_enabled() -> bool\n\nWhether detect_anomaly is on."},
    {"is_anomaly_check_nan_enabled", is_anomaly_check_nan_enabled, METH_NOARGS,
     "is_anomaly_check_nan_enabled() -> bool\n\nWhether detect_anomaly looks for NaN in "
     "gradients."},
    {"_set_anomaly_enabled", set_anomaly_enabled, METH_VARARGS, nullptr},
    {"_enter_dual_level", enter_dual_level, METH_NOARGS, nullptr},
    {"_exit_dual_level", exit_dual_level, METH_O, nullptr},
    {"_dual_level", dual_level, METH_NOARGS, nullptr},
    {"_make_dual", make_dual, METH_VARARGS, nullptr},
    {"_unpack_dual", unpack_dual, METH_VARARGS, nullptr},
    {"_tangents", tangents, METH_O, nullptr},
    {"_fresh_leaf", fresh_leaf, METH_O, nullptr},
    {"_cut_history", cut_history, METH_O, nullptr},
    {"_push_saved_tensors_default_hooks", push_saved_hooks, METH_VARARGS, nullptr},
    {"_pop_saved_tensors_default_hooks", pop_saved_hooks, METH_NOARGS, nullptr},
    {"_saved_tensors_hooks_disable", disable_saved_hooks, METH_O, nullptr},
    {"_saved_tensors_hooks_enable", enable_saved_hooks, METH_NOARGS, nullptr},
    {"_saved_tensors_hooks_disabled_message", saved_hooks_message, METH_NOARGS, nullptr},
    {"_increment_version", increment_version, METH_O, nullptr},
    {"_is_view", is_view, METH_O, nullptr},
    {"_live_autograd_nodes", live_nodes, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_engine_functions(PyObject* module) {
  autograd::python_bridge = {PythonTraceback::capture,
                             "torch.autograd.set_detect_anomaly(True, check_nan=False)"};
  set_warning_handler(give_warning);
  add_signatures(functions, false);
  check_status(PyModule_AddFunctions(module, functions));
}

void add_autograd(PyObject* module) {
  add_node_type(module);
  add_function_type(module);
  add_engine_functions(module);
}

}  // namespace taeda::python
