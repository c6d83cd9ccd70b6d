// The parts that the Tensor type is put together from; each file adds its slots to the type's spec.
#pragma once

#include <vector>

#include "python/common.h"

namespace taeda::python {

using TypeSlots = std::vector<PyType_Slot>;

void add_number_slots(TypeSlots& slots);        // operators.cc: + - * ... and comparison
void add_indexing_slots(TypeSlots& slots);      // indexing.cc: x[...], x[...] = y, len(x), y in x
void add_buffer_slots(TypeSlots& slots);        // interop.cc: memoryview(x)
void add_construction_slots(TypeSlots& slots);  // construction.cc: Tensor(...), Tensor(2, 3)
// properties.cc: x.shape, x.grad, ...; filled by the call.
extern PyGetSetDef tensor_properties[];
void fill_tensor_properties();

template <class F>
PyType_Slot type_slot(int id, F* function) {
  return {id, reinterpret_cast<void*>(function)};
}

}  // namespace taeda::python
