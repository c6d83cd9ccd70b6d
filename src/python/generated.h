// What the generated bindings provide to the module: groups of functions, each for one place in
// Python.
#pragma once

#include "python/common.h"

namespace taeda::python {

struct MethodGroup {
  const char* owner;  // "Tensor", "torch", "nn.functional", "linalg", "special", "fft", "_nn" ...
  PyMethodDef* methods;  // METH_FASTCALL | METH_KEYWORDS, ended by a null name; several groups may
                         // share an owner
};

// Ended by a null owner. Groups of "Tensor" become methods (hand-written ones of the same name
// win), the others dictionaries in `_C._by_owner[owner]`.
extern const MethodGroup kMethodGroups[];

// _C._result_types() -> {"max": torch.return_types.max, ...}
PyObject* result_types(PyObject*, PyObject*);

}  // namespace taeda::python
