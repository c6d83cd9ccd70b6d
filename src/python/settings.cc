// Process-wide settings and random numbers: default dtype, threads, Generator, manual_seed.
#include "base/cpus.h"
#include "base/implementations.h"
#include "base/parallel.h"
#include "device/deterministic.h"
#include "device/device.h"
#include "ops/allocate.h"
#include "ops/autocast.h"
#include "ops/rules.h"
#include "python/arguments.h"
#include "python/construction.h"
#include "python/module.h"
#include "python/wrap.h"
#include "taeda/generator.h"
#include "taeda/warning.h"

namespace taeda::python {

PyTypeObject* generator_type = nullptr;

namespace {

GeneratorObject* cast(PyObject* object) { return reinterpret_cast<GeneratorObject*>(object); }
PyObject* default_generator_object = nullptr;

// --- Generator ---

PyObject* new_generator(Ref<Generator> generator) {
  PyObject* self = generator_type->tp_alloc(generator_type, 0);
  if (!self) throw PythonError();
  cast(self)->generator = generator.detach();
  cast(self)->owned = true;
  return self;
}

Ref<Generator> make_generator(Device device) {
  if (device.is_cpu()) return make_ref<Mt19937>();
  if (device.type != DeviceType::kCUDA || cuda::device_count() == 0)
    raise_python(PyExc_RuntimeError, "Generator: no generator for device '{}'", device);
  if (device.index < 0) device.index = static_cast<int8_t>(cuda::current_device());
  cuda::check_device(device.index);
  return make_ref<Philox>(device);
}

PyObject* generator_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  TD_PYTHON_TRY
  static const char* names[] = {"device", nullptr};
  PyObject* device = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(names),
                                   &device))
    return nullptr;
  return new_generator(make_generator(device && device != Py_None ? to_device(device) : Device()));
  TD_PYTHON_CATCH(nullptr)
}

void generator_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (cast(self)->owned) Ref<Generator>::adopt(cast(self)->generator);
  type->tp_free(self);
  Py_DECREF(type);
}

// Any Python int; negative seeds wrap, as in PyTorch.
uint64_t to_seed(PyObject* object) {
  PyRef number = PyRef::check(PyNumber_Long(object));
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
  if (!overflow) return static_cast<uint64_t>(value);
  const unsigned long long large = PyLong_AsUnsignedLongLong(number.get());
  if (large == static_cast<unsigned long long>(-1) && PyErr_Occurred()) {
    PyErr_Clear();
    raise_python(PyExc_ValueError,
                 "Overflow when unpacking long long: the seed must lie in [-2^63, 2^64)");
  }
  return large;
}

PyObject* generator_manual_seed(PyObject* self, PyObject* seed) {
  TD_PYTHON_TRY
  Generator& generator = *cast(self)->generator;
  const uint64_t value = to_seed(seed);
  std::lock_guard lock(generator.mutex());
  generator.manual_seed(value);
  return new_ref(self);
  TD_PYTHON_CATCH(nullptr)
}
PyObject* generator_seed(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  Generator& generator = *cast(self)->generator;
  std::lock_guard lock(generator.mutex());
  return PyLong_FromUnsignedLongLong(generator.seed());
  TD_PYTHON_CATCH(nullptr)
}
PyObject* generator_initial_seed(PyObject* self, PyObject*) {
  return PyLong_FromUnsignedLongLong(cast(self)->generator->initial_seed());
}
PyObject* generator_get_state(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  Generator& generator = *cast(self)->generator;
  return wrap(generator.get_state());
  TD_PYTHON_CATCH(nullptr)
}
PyObject* generator_set_state(PyObject* self, PyObject* state) {
  TD_PYTHON_TRY
  if (!is_tensor(state))
    raise_python(PyExc_TypeError, "expected a torch.ByteTensor, but got {}", type_name(state));
  Generator& generator = *cast(self)->generator;
  generator.set_state(tensor_of(state));
  return new_ref(self);
  TD_PYTHON_CATCH(nullptr)
}
PyObject* generator_clone(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  Generator& generator = *cast(self)->generator;
  return new_generator(generator.clone());
  TD_PYTHON_CATCH(nullptr)
}
PyObject* generator_reduce(PyObject* self, PyObject*) {
  PyRef state = PyRef::adopt(generator_get_state(self, nullptr));
  PyRef rebuild = PyRef::adopt(
      PyObject_GetAttrString(reinterpret_cast<PyObject*>(generator_type), "_from_state"));
  if (!state || !rebuild) return nullptr;
  const std::string device = to_text(cast(self)->generator->device());
  return Py_BuildValue("N(Ns)", rebuild.release(), state.release(), device.c_str());
}
// _from_state(state, device="cpu")
PyObject* generator_from_state(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  PyObject* state = nullptr;
  const char* device = "cpu";
  if (!PyArg_ParseTuple(args, "O|s:_from_state", &state, &device)) return nullptr;
  PyRef made = PyRef::check(new_generator(make_generator(Device::parse(device))));
  return PyRef::check(generator_set_state(made.get(), state)).release();
  TD_PYTHON_CATCH(nullptr)
}
PyObject* generator_get_offset(PyObject* self, PyObject*) {
  TD_PYTHON_TRY
  return PyLong_FromUnsignedLongLong(cast(self)->generator->offset());
  TD_PYTHON_CATCH(nullptr)
}
PyObject* generator_set_offset(PyObject* self, PyObject* offset) {
  TD_PYTHON_TRY
  const uint64_t value = to_seed(offset);
  Generator& generator = *cast(self)->generator;
  const std::lock_guard lock(generator.mutex());
  generator.set_offset(value);
  return new_ref(self);
  TD_PYTHON_CATCH(nullptr)
}
PyObject* generator_device(PyObject* self, void*) {
  TD_PYTHON_TRY
  return wrap(cast(self)->generator->device());
  TD_PYTHON_CATCH(nullptr)
}
PyObject* generator_repr(PyObject* self) {
  const Generator& generator = *cast(self)->generator;
  return PyUnicode_FromFormat("<torch.Generator device='%s' seed=%llu>",
                              to_text(generator.device()).c_str(),
                              static_cast<unsigned long long>(generator.initial_seed()));
}

PyMethodDef generator_methods[] = {
    {"manual_seed", generator_manual_seed, METH_O,
     "manual_seed($self, seed, /)\n--\n\nmanual_seed(seed) -> Generator\n\nStarts over from a "
     "seed."},
    {"seed", generator_seed, METH_NOARGS,
     "seed($self, /)\n--\n\nseed() -> int\n\nSeeds from the system's entropy."},
    {"initial_seed", generator_initial_seed, METH_NOARGS,
     "initial_seed($self, /)\n--\n\ninitial_seed() -> int\n\nThe seed that it started from."},
    {"get_state", generator_get_state, METH_NOARGS,
     "get_state($self, /)\n--\n\nget_state() -> Tensor\n\nThe state as bytes."},
    {"set_state", generator_set_state, METH_O,
     "set_state($self, new_state, /)\n--\n\nset_state(new_state) -> None\n\nGoes on from a state "
     "that get_state gave."},
    {"clone_state", generator_clone, METH_NOARGS,
     "clone_state($self, /)\n--\n\nclone_state() -> Generator\n\nA generator that goes on "
     "independently from the same state."},
    {"__reduce__", generator_reduce, METH_NOARGS, nullptr},
    {"get_offset", generator_get_offset, METH_NOARGS,
     "get_offset($self, /)\n--\n\nget_offset() -> int\n\nHow far the counter of a device's "
     "generator is."},
    {"set_offset", generator_set_offset, METH_O,
     "set_offset($self, offset, /)\n--\n\nset_offset(offset) -> None\n\nMoves the counter of a "
     "device's generator: a multiple of 4."},
    {"_from_state", generator_from_state, METH_VARARGS | METH_STATIC, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef generator_getset[] = {{"device", generator_device, nullptr, nullptr, nullptr},
                                  {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot generator_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(generator_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(generator_dealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(generator_repr)},
    {Py_tp_methods, generator_methods},
    {Py_tp_doc,
     const_cast<char*>("Generator(device='cpu')\n--\n\nGenerator(device='cpu')\n\nA stream of "
                       "random numbers of its own, for the "
                       "argument `generator` of operators: on the CPU the\nMersenne twister, with "
                       "PyTorch's numbers for each seed, on a CUDA device Philox.")},
    {Py_tp_getset, generator_getset},
    {0, nullptr},
};
PyType_Spec generator_spec = {"taeda.Generator", sizeof(GeneratorObject), 0, Py_TPFLAGS_DEFAULT,
                              generator_slots};

// --- functions of the module ---

// The one argument of a function, by position or by name. Null, with TypeError set, for others.
PyObject* only_argument(const char* function, const char* name, PyObject* const* args,
                        Py_ssize_t nargs, PyObject* kwnames) {
  const Py_ssize_t given = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
  if (given == 1 &&
      (nargs == 1 || PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), name) == 0))
    return args[0];
  PyErr_Format(PyExc_TypeError, "%s() takes one argument, '%s'", function, name);
  return nullptr;
}

PyObject* manual_seed_function(PyObject*, PyObject* const* args, Py_ssize_t nargs,
                               PyObject* kwnames) {
  PyObject* seed = only_argument("manual_seed", "seed", args, nargs, kwnames);
  if (!seed) return nullptr;
  TD_PYTHON_TRY
  manual_seed(to_seed(seed));
  return new_ref(default_generator_object);
  TD_PYTHON_CATCH(nullptr)
}
PyObject* seed_function(PyObject*, PyObject*) {
  return generator_seed(default_generator_object, nullptr);
}
PyObject* initial_seed(PyObject*, PyObject*) {
  return generator_initial_seed(default_generator_object, nullptr);
}
PyObject* get_rng_state(PyObject*, PyObject*) {
  return generator_get_state(default_generator_object, nullptr);
}
PyObject* set_rng_state(PyObject*, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  PyObject* state = only_argument("set_rng_state", "new_state", args, nargs, kwnames);
  if (!state) return nullptr;
  PyRef done = PyRef::adopt(generator_set_state(default_generator_object, state));
  if (!done) return nullptr;
  Py_RETURN_NONE;
}

// _cuda_default_generator(device): the generator of operators that are given none.
PyObject* cuda_default_generator(PyObject*, PyObject* index) {
  TD_PYTHON_TRY
  const int64_t device = to_int(index);
  cuda::check_device(static_cast<int>(device));
  return new_generator(
      Ref<Generator>(&default_generator(Device(DeviceType::kCUDA, static_cast<int8_t>(device)))));
  TD_PYTHON_CATCH(nullptr)
}

PyObject* get_default_dtype(PyObject*, PyObject*) { return wrap(default_dtype()); }
PyObject* set_default_dtype_function(PyObject*, PyObject* dtype) {
  TD_PYTHON_TRY
  if (!is_dtype(dtype)) {
    raise_python(
        PyExc_TypeError,
        "invalid dtype object: only floating-point types are supported as the default type");
  }
  const DType value = to_dtype(dtype);
  if (!is_floating(value)) {
    raise_python(PyExc_TypeError, "only floating-point types are supported as the default type");
  }
  if (is_storage_type(value)) {
    raise_python(PyExc_TypeError, "couldn't find storage object {}Storage",
                 scalar_type_name(value));
  }
  set_default_dtype(value);
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyObject* implementations(PyObject*, PyObject*) {
  TD_PYTHON_TRY
  PyRef dict = PyRef::check(PyDict_New());
  for (const auto& [name, count] : implementation_counts()) {
    PyRef number = PyRef::check(PyLong_FromLongLong(count));
    check_status(PyDict_SetItemString(dict.get(), name.c_str(), number.get()));
  }
  return dict.release();
  TD_PYTHON_CATCH(nullptr)
}
PyObject* get_threads(PyObject*, PyObject*) { return PyLong_FromLong(get_num_threads()); }
PyObject* set_threads(PyObject*, PyObject* count) {
  TD_PYTHON_TRY
  if (!can_be_int(count)) {
    raise_python(PyExc_RuntimeError, "set_num_threads expects an int, but got {}",
                 type_name(count));
  }
  const int64_t value = to_int(count);
  if (value < 1 || value > 4096)
    raise_python(PyExc_RuntimeError, "set_num_threads expects a positive integer, got {}", value);
  set_num_threads(static_cast<int>(value));
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyObject* result_type(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  PyObject* objects[2];
  if (!PyArg_ParseTuple(args, "OO:result_type", &objects[0], &objects[1])) return nullptr;
  rules::Promotion promotion;
  for (PyObject* object : objects) {
    if (is_tensor(object))
      promotion.add(tensor_of(object));
    else if (can_be_scalar(object))
      promotion.add(Tensor(to_scalar(object)));
    else
      raise_python(PyExc_TypeError, "result_type(): arguments must be Tensors or Numbers, not {}",
                   type_name(object));
  }
  return wrap(promotion.result());
  TD_PYTHON_CATCH(nullptr)
}
PyObject* promote(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  PyObject *a, *b;
  if (!PyArg_ParseTuple(args, "O!O!:promote_types", dtype_type, &a, dtype_type, &b)) return nullptr;
  return wrap(promote_types(to_dtype(a), to_dtype(b)));
  TD_PYTHON_CATCH(nullptr)
}
PyObject* can_cast_function(PyObject*, PyObject* args, PyObject* kwargs) {
  TD_PYTHON_TRY
  static const char* names[] = {"from_", "to", nullptr};
  PyObject *from, *to;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!:can_cast", const_cast<char**>(names),
                                   dtype_type, &from, dtype_type, &to)) {
    return nullptr;
  }
  return wrap(can_cast(to_dtype(from), to_dtype(to)));
  TD_PYTHON_CATCH(nullptr)
}

PyObject* set_warn_always(PyObject*, PyObject* always) {
  TD_PYTHON_TRY
  if (!PyBool_Check(always))
    raise_python(PyExc_TypeError, "set_warn_always expects a bool, but got {}", type_name(always));
  warn_always = always == Py_True;
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}
PyObject* is_warn_always_enabled(PyObject*, PyObject*) { return PyBool_FromLong(warn_always); }

PyObject* set_deterministic(PyObject*, PyObject* mode) {
  cuda::deterministic = mode == Py_True;
  Py_RETURN_NONE;
}
PyObject* set_fill_uninitialized(PyObject*, PyObject* mode) {
  fill_uninitialized = mode == Py_True;
  Py_RETURN_NONE;
}

// --- autocast ---

DeviceType autocast_device(const char* name) { return Device::parse(name).type; }

// (device_type) -> (enabled, dtype, cache enabled)
PyObject* autocast_state(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  const char* device;
  if (!PyArg_ParseTuple(args, "s:_autocast_state", &device)) return nullptr;
  const DeviceType type = autocast_device(device);
  PyRef dtype = PyRef::check(wrap(autocast::lower_dtype(type)));
  return Py_BuildValue("(OOO)", autocast::enabled(type) ? Py_True : Py_False, dtype.get(),
                       autocast::cache_enabled() ? Py_True : Py_False);
  TD_PYTHON_CATCH(nullptr)
}
// (device_type, enabled, dtype, cache enabled)
PyObject* set_autocast_state(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  const char* device;
  int enabled, cache;
  PyObject* dtype;
  if (!PyArg_ParseTuple(args, "spO!p:_set_autocast_state", &device, &enabled, dtype_type, &dtype,
                        &cache))
    return nullptr;
  const DeviceType type = autocast_device(device);
  autocast::set_enabled(type, enabled != 0);
  autocast::set_lower_dtype(type, to_dtype(dtype));
  autocast::set_cache_enabled(cache != 0);
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}
PyObject* clear_autocast_cache(PyObject*, PyObject*) {
  TD_PYTHON_TRY
  autocast::clear_cache();
  Py_RETURN_NONE;
  TD_PYTHON_CATCH(nullptr)
}

PyMethodDef functions[] = {
    {"manual_seed", as_function(manual_seed_function), METH_FASTCALL | METH_KEYWORDS,
     "manual_seed(seed) -> Generator\n\nSeeds the default generator of each device, so that what "
     "follows draws the same numbers each time.\n\nArgs:\n    seed: an int of at most 64 bits; "
     "negative ones count from 2**64 down.\n\nReturns:\n    Generator: that of the CPU.\n\n"
     ">>> _ = torch.manual_seed(0)\n>>> torch.rand(2)\ntensor([0.4963, 0.7682])"},
    {"seed", seed_function, METH_NOARGS,
     "seed() -> int\n\nSeeds the default generator from the system's entropy."},
    {"initial_seed", initial_seed, METH_NOARGS,
     "initial_seed() -> int\n\nThe seed that the default generator started from."},
    {"get_rng_state", get_rng_state, METH_NOARGS,
     "get_rng_state() -> Tensor\n\nThe state of the CPU's default generator, as bytes.\n\n"
     ">>> state = torch.get_rng_state()\n>>> first = torch.rand(3)\n"
     ">>> torch.set_rng_state(state)\n>>> torch.equal(torch.rand(3), first)\nTrue"},
    {"set_rng_state", as_function(set_rng_state), METH_FASTCALL | METH_KEYWORDS,
     "set_rng_state(new_state) -> None\n\nPuts the CPU's default generator into a state.\n\nArgs:"
     "\n    new_state: the bytes that `get_rng_state` gave, there or in PyTorch.\n\nRaises:\n"
     "    RuntimeError: they are none."},
    {"_cuda_default_generator", cuda_default_generator, METH_O, nullptr},
    {"get_default_dtype", get_default_dtype, METH_NOARGS,
     "get_default_dtype() -> dtype\n\nThe dtype of tensors that are made from Python floats, or "
     "by functions such as `ones` without a dtype; of complex ones, that of the parts.\n\n"
     ">>> torch.get_default_dtype()\ntorch.float32"},
    {"set_default_dtype", set_default_dtype_function, METH_O,
     "set_default_dtype(d) -> None\n\nMakes `d`, a floating dtype, that of tensors made from "
     "Python floats. TypeError for others."},
    {"_implementations", implementations, METH_NOARGS, nullptr},
    {"get_num_threads", get_threads, METH_NOARGS,
     "get_num_threads() -> int\n\nThe number of threads that an operator may use: at first, of the "
     "CPUs that the process may run on.\n\n>>> torch.get_num_threads() >= 1\nTrue"},
    {"set_num_threads", set_threads, METH_O,
     "set_num_threads(n) -> None\n\nLets an operator use up to `n` threads; results do not depend "
     "on it."},
    {"_result_type", result_type, METH_VARARGS,
     "The dtype of an arithmetic operation on two tensors or numbers."},
    {"promote_types", promote, METH_VARARGS,
     "promote_types(type1, type2) -> dtype\n\nThe smallest dtype that holds the values of both: "
     "what arithmetic on tensors of the two gives."},
    {"can_cast", as_function(can_cast_function), METH_VARARGS | METH_KEYWORDS,
     "can_cast(from_, to) -> bool\n\nWhether a result of dtype `from_` may be written into a "
     "tensor of dtype `to`: not from complex\nto real, floating to integer, or any to bool."},
    {"set_warn_always", set_warn_always, METH_O,
     "set_warn_always(b) -> None\n\nWhether warnings that are given once a process are given every "
     "time."},
    {"is_warn_always_enabled", is_warn_always_enabled, METH_NOARGS,
     "is_warn_always_enabled() -> bool\n\nWhat set_warn_always was last given; False at first."},
    {"_set_deterministic", set_deterministic, METH_O, nullptr},
    {"_set_fill_uninitialized", set_fill_uninitialized, METH_O, nullptr},
    {"_autocast_state", autocast_state, METH_VARARGS, nullptr},
    {"_set_autocast_state", set_autocast_state, METH_VARARGS, nullptr},
    {"clear_autocast_cache", clear_autocast_cache, METH_NOARGS,
     "clear_autocast_cache() -> None\n\nForgets the parameters that autocast has converted."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_settings(PyObject* module) {
  generator_type = add_type(module, "Generator", &generator_spec);
  default_generator_object = generator_type->tp_alloc(generator_type, 0);
  if (!default_generator_object) throw PythonError();
  cast(default_generator_object)->generator = &default_generator();
  cast(default_generator_object)->owned = false;
  check_status(PyModule_AddObjectRef(module, "default_generator", default_generator_object));
  add_signatures(functions, false);
  check_status(PyModule_AddFunctions(module, functions));
}

}  // namespace taeda::python
