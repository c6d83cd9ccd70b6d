// x[...] and x[...] = y in all of NumPy's and PyTorch's forms.
#pragma once

#include "python/common.h"
#include "taeda/indexing.h"

namespace taeda::python {

// A Python index expression on x, as indexing::apply does it.
indexing::Indexed apply_index(const Tensor& x, PyObject* index);

}  // namespace taeda::python
