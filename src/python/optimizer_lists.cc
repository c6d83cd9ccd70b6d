// What an optimizer asks of each parameter of a group, asked of all in one call.
#include "python/module.h"
#include "python/tensor_object.h"
#include "python/torch_function.h"
#include "python/wrap.h"

namespace taeda::python {
namespace {

// Whether operators that step whole lists take x.
bool takes_steps(const Tensor& x) {
  return x.defined() && x.layout() == Layout::kStrided && is_floating(x.dtype()) &&
         !is_narrow_floating(x.dtype()) &&
         (x.device().is_cpu() || x.device().type == DeviceType::kCUDA);
}

// _gradients_to_step(parameters): a list of their gradients, where operators may step all at once:
// floating-point numbers of one dtype on one device. None where not, and where a class of their own
// or a mode may have a say.
PyObject* gradients_to_step(PyObject*, PyObject* params) {
  TD_PYTHON_TRY
  if (!PyList_Check(params) || (modes_of_all_threads > 0 && mode_is_active())) Py_RETURN_NONE;
  const Py_ssize_t count = PyList_GET_SIZE(params);
  PyRef grads = PyRef::check(PyList_New(count));
  const Tensor* first = nullptr;
  for (Py_ssize_t i = 0; i < count; i++) {
    if (!is_plain_tensor(PyList_GET_ITEM(params, i))) Py_RETURN_NONE;
    const Tensor& p = tensor_of(PyList_GET_ITEM(params, i));
    Tensor gx = p.grad();
    if (!first) first = &p;
    if (!takes_steps(p) || !takes_steps(gx) || p.dtype() != first->dtype() ||
        gx.dtype() != first->dtype() || p.device() != first->device())
      Py_RETURN_NONE;
    PyList_SET_ITEM(grads.get(), i, wrap(std::move(gx)));
  }
  return grads.release();
  TD_PYTHON_CATCH(nullptr)
}

PyMethodDef functions[] = {
    {"_gradients_to_step", gradients_to_step, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_optimizer_lists(PyObject* module) {
  check_status(PyModule_AddFunctions(module, functions));
}

}  // namespace taeda::python
