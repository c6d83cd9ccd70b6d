// Calls of factories that bindings leave to Python.
#pragma once

namespace taeda::python {

// What tensor_options throws where a factory is asked for a sparse layout, a strided tensor like a
// sparse one, or pinned memory: make() of the module answers the call (fail_call).
struct FactoryCall {
  const char* module;
};

}  // namespace taeda::python
