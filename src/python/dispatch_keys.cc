// What torch._C's functions and guards for dispatch keys need of the core.
#include "python/dispatch_keys.h"

#include "ops/operator.h"
#include "python/call.h"
#include "python/module.h"
#include "python/tensor_object.h"

namespace taeda::python {

long bits_of(KeySet keys) {
  long bits = 0;
  for (int k = 0; k < kNumKeys; k++)
    if (keys.has(static_cast<Key>(k))) bits |= 1l << k;
  return bits;
}

KeySet keys_from_bits(long bits) {
  KeySet keys;
  for (int k = 0; k < kNumKeys; k++)
    if (bits >> k & 1) keys = keys | static_cast<Key>(k);
  return keys;
}

PyRef keyset_object(KeySet keys) {
  static PyObject* const make = [] {
    const PyRef module = PyRef::check(PyImport_ImportModule("taeda._dispatch_keys"));
    return PyRef::check(PyObject_GetAttrString(module.get(), "from_bits")).release();
  }();
  const PyRef bits = PyRef::check(PyLong_FromLong(bits_of(keys)));
  return PyRef::check(call_python([&] { return PyObject_CallOneArg(make, bits.get()); }));
}

namespace {

struct KeyName {
  const char* name;
  KeySet keys;
};
// PyTorch's names, highest last.
const KeyName kNames[] = {
    {"CPU", Key::kCPU},
    {"Meta", Key::kMeta},
    {"CUDA", Key::kCUDA},
    {"Sparse", Key::kSparse},
    {"Python", Key::kPython},
    {"Functionalize", Key::kFunctionalize},
    {"Conjugate", Key::kConjugate},
    {"Negative", Key::kNegative},
    {"FuncTorchBatched", Key::kBatched},
    {"Autograd", kDifferentiationKeys},
    {"Tracer", Key::kTrace},
    {"Autocast", Key::kAutocast},
    {"Profiler", Key::kProfile},
};

// _key_bits() -> {name: bits}
PyObject* key_bits(PyObject*, PyObject*) {
  TD_PYTHON_TRY
  PyRef all = PyRef::check(PyDict_New());
  for (const KeyName& known : kNames) {
    const PyRef bits = PyRef::check(PyLong_FromLong(bits_of(known.keys)));
    check_status(PyDict_SetItemString(all.get(), known.name, bits.get()));
  }
  return all.release();
  TD_PYTHON_CATCH(nullptr)
}

// _tensor_key_bits(x) -> bits
PyObject* tensor_bits(PyObject*, PyObject* x) {
  if (!is_tensor(x)) return PyErr_Format(PyExc_TypeError, "expected a Tensor");
  return PyLong_FromLong(bits_of(tensor_of(x).impl()->keys));
}

// _thread_key_bits() -> (included, excluded)
PyObject* thread_bits(PyObject*, PyObject*) {
  return Py_BuildValue("(ll)", bits_of(thread_modes.included), bits_of(thread_modes.excluded));
}

// _set_thread_key_bits(included, excluded)
PyObject* set_thread_bits(PyObject*, PyObject* args) {
  long included, excluded;
  if (!PyArg_ParseTuple(args, "ll:_set_thread_key_bits", &included, &excluded)) return nullptr;
  thread_modes.included = keys_from_bits(included);
  thread_modes.excluded = keys_from_bits(excluded);
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"_key_bits", key_bits, METH_NOARGS, nullptr},
    {"_tensor_key_bits", tensor_bits, METH_O, nullptr},
    {"_thread_key_bits", thread_bits, METH_NOARGS, nullptr},
    {"_set_thread_key_bits", set_thread_bits, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_dispatch_keys(PyObject* module) { check_status(PyModule_AddFunctions(module, functions)); }

}  // namespace taeda::python
