// Kernels that programs give to operators of the table: torch.library.Library("aten", "IMPL").
//
// An operator's calls jump through its table of handlers, one function a key. While a program's
// kernel stands for a key, the table holds dispatch::modes there, which boxes the call, and
// run_modes asks here before it goes on; the function that was there is kept and called for what
// the kernel does not answer (other forms and overloads). So operators without such kernels pay
// nothing. Kernels for generic keys (autocast, vmap, ...) are looked up by run_modes alone.
//
// A kernel of kAutograd answers whether or not an argument requires grad, as in PyTorch, but below
// autograd. Those of kComposite and kCompositeExplicit are kept and never called for operators with
// a table, which have kernels for every key, and those come first.
//
// Composites and factories have no table. While one of them has a kernel, the entries of all stop
// (dispatch::replaced_composites) and ask here; the kernel of the highest key of the arguments
// answers, the composites' kinds at the device. What it calls is recorded.
#pragma once

#include "ops/operator.h"

namespace taeda::overrides {

// Whether kernels can be given to the operator: not to in-place and out= forms that compute the
// plain form and copy, nor to overloads that are called by name only.
bool can_have(const Operator& op);

// Some operators are computed by others of the table's own, whose calls modes are shown as theirs
// (SpellingRecord, taeda/_library/aten.py): _softmax by softmax, mm by linear. A kernel of `kind`
// for `shown` answers those calls, of `records`, from now on, or no more.
void watch(const Operator& shown, KernelKind kind, Span<const OperatorRecord* const> records,
           bool on);
// Runs the kernel of the operator that a call is shown as, if there is one: false where it is not.
// Python, a layer above, puts it in.
using AnswerAsShown = bool (*)(const Operator& op, KernelKind kind, KeySet keys, Stack& stack);
void set_answer_as_shown(AnswerAsShown answer);

// After a kernel came or went: the record's table as it is to be from now on. Not for two threads
// at once; calls on other threads see the one or the other.
void refresh(const Operator& op);

// A composite's or factory's call: runs the kernel of the highest of its keys that are among
// `keys`, if there is one; then `stack` holds the results.
bool answer(const Operator& op, KeySet keys, Stack& stack);

// A call that goes on with `keys`, as a program says (OpOverload.redispatch). Without kAutograd
// among them, it and what the table's operator calls in turn are below autograd.
void redispatch(const Operator& op, KeySet keys, Stack& stack);

// Whether any operator of the table has such kernels now.
bool any();

// A program's kernel, and the operator or overload that it was given to.
struct Found {
  OperatorRegistry::Kernels::Slot kernel;
  const Operator* op = nullptr;
};

// The kernel that answers a call for a generic key, whose arguments become those of the overload;
// null where there is none. has(): whether the operator or one of its overloads has one at all.
Found find(const Operator& op, Key key, Stack& stack);
bool has(const Operator& op, Key key);

// A call whose highest key is a device's or one of differentiation, which came by the table.
// False where the record has no kernel of a program's.
bool run(const OperatorRecord& record, Operator::Form form, KeySet keys, const void* const* args,
         void* const* results);

}  // namespace taeda::overrides
