// Functionalization: a program that writes in place, run as one that does not.
//
// While a level is active on a thread, every operator of it comes to the handler of
// kFunctionalize, which lies below autograd. A functional tensor stands for another: it has a
// layout and a storage without memory, and the storage knows the value of the whole. A write makes
// a new value by the operator's functional form; views are worked out from the value, by view
// operators or by their copies (NAME_copy), when someone reads them.
//
// Levels nest, each with tensors of its own, and belong to their thread. What a level's operators
// become runs as if the level had not been entered: with the modes of its caller.
#pragma once

#include "taeda/keys.h"
#include "taeda/tensor.h"

namespace taeda::functionalize {

enum class Remove { kMutations, kMutationsAndViews };

void enter(Remove remove);
// Ends the innermost level. RuntimeError where there is none.
void exit();
// Whether operators of this thread are functionalized: false while a level's operators run outside.
inline bool is_active() {
  return (thread_modes.included - thread_modes.excluded).has(Key::kFunctionalize);
}

// A tensor of the innermost level that stands for `t`.
Tensor wrap(const Tensor& t);
// The same for what is not a tensor of that level yet.
Tensor lift(const Tensor& t);
// Levels of forward mode up to this one were entered outside of the innermost level: its tensors
// have no tangents there, the values have them. 0 where there is no level.
uint64_t forward_floor();
// What a tensor of the innermost level stands for now; other tensors as they are.
Tensor unwrap(const Tensor& t);
// What `t` stands for, through all levels: for reading its elements.
Tensor readable(const Tensor& t);
// Whether a tensor of the innermost level was written.
bool is_written(const Tensor& t);

}  // namespace taeda::functionalize
