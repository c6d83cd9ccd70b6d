// Calls of factories for a sparse layout, which bindings do not read.
#pragma once

namespace taeda::python {

// What tensor_options throws where a factory is asked for a sparse layout, or a strided tensor like
// a sparse one: taeda.sparse._factories answers the call (fail_call).
struct SparseFactoryCall {};

}  // namespace taeda::python
