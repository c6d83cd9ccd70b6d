// What Python asks of sparse tensors beside their parts.
#include "ops/sparse/parts.h"
#include "python/arguments.h"
#include "python/module.h"
#include "python/tensor_object.h"

namespace taeda::python {
namespace {

// _sparse_metadata(tensor) -> (sparse_dim, dense_dim, nnz, is_coalesced) of a sparse tensor
PyObject* metadata(PyObject*, PyObject* object) {
  TD_PYTHON_TRY
  if (!is_tensor(object) || !tensor_of(object).is_sparse())
    raise_python(PyExc_TypeError, "_sparse_metadata: expected a sparse tensor");
  const Tensor& t = tensor_of(object);
  return Py_BuildValue("(LLLN)", static_cast<long long>(sparse::sparse_dim(t)),
                       static_cast<long long>(sparse::dense_dim(t)),
                       static_cast<long long>(sparse::nnz(t)),
                       PyBool_FromLong(sparse_parts(t).coalesced));
  TD_PYTHON_CATCH(nullptr)
}

PyMethodDef functions[] = {
    {"_sparse_metadata", metadata, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_sparse(PyObject* module) { check_status(PyModule_AddFunctions(module, functions)); }

}  // namespace taeda::python
