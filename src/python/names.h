// Names of the package's modules as they are now: `taeda.nn`, or `torch.nn` in a process where
// `import torch` gives taeda (taeda/_hook.py). Under the GIL; costs an import's lookup.
#pragma once

#include "python/common.h"

namespace taeda::python {

// "taeda.return_types" for "return_types".
PyRef name_in_package(const char* module);

}  // namespace taeda::python
