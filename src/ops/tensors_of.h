// The tensors among the arguments or results of a boxed call. Those that are undefined, alone or in
// a list, are left out.
#pragma once

#include "taeda/operator.h"

namespace taeda {

template <class Visit>
void each_tensor(const Value& value, const Visit& visit) {
  if (value.is_tensor()) {
    visit(value.tensor());
  } else if (value.is_tensors()) {
    for (const Tensor& t : value.tensors())
      if (t.defined()) visit(t);
  }
}
template <class Visit>
void each_tensor(const Stack& stack, const Visit& visit) {
  for (const Value& value : stack) each_tensor(value, visit);
}

// `change(tensor)` in the place of every tensor.
template <class Change>
void change_tensors(Value& value, const Change& change) {
  if (value.is_tensor()) {
    value = Value(change(value.tensor()));
  } else if (value.is_tensors()) {
    for (Tensor& t : value.tensors())
      if (t.defined()) t = change(t);
  }
}
template <class Change>
void change_tensors(Stack& stack, const Change& change) {
  for (Value& value : stack) change_tensors(value, change);
}

// The argument that a result is, or is a view of: the one with the same letter; -1: it is new.
inline int aliased_argument(const Schema& schema, size_t result) {
  const std::string& set = schema.results[result].alias.set;
  for (size_t i = 0; i < schema.arguments.size() && !set.empty(); i++)
    if (schema.arguments[i].alias.set == set) return static_cast<int>(i);
  return -1;
}

}  // namespace taeda
