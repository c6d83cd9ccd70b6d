// The Python objects of operators: torch.ops.aten.add.Tensor, an instance of taeda._ops.OpOverload.
#pragma once

#include "python/common.h"
#include "taeda/operator.h"

namespace taeda::python {

// The one Python object of an operator. Borrowed: it lives as long as the process.
PyObject* operator_object(const Operator& op);
// The operator of such an object; TypeError for others.
const Operator& to_operator(PyObject* object);

}  // namespace taeda::python
