// What operators become while a level is active: views, writes, and all others.
#include <map>
#include <string>

#include "core/layout.h"
#include "ops/functionalize/memory.h"
#include "ops/modes.h"
#include "ops/operator.h"
#include "ops/tensors_of.h"

namespace taeda::functionalize {
namespace {

bool any_functional(const Stack& stack) {
  bool any = false;
  each_tensor(stack, [&](const Tensor& t) { any |= functional(t) != nullptr; });
  return any;
}

// --- views ---

bool is_view(const Schema& schema) {
  return !schema.arguments.empty() && schema.arguments[0].type.is_tensor() &&
         !schema.arguments[0].alias.set.empty() && !schema.arguments[0].alias.written;
}

Tensor detached(const Tensor& t, Context& c) {
  Tensor out = wrap(t);
  TensorImpl& impl = *out.impl();
  impl.storage = storage_for(t, c.memory, true);
  impl.set_layout(t.sizes(), t.strides(), t.storage_offset());
  return out;
}

// The chunks of a view in several are known as the slices that they are, or the selected ones where
// a dimension is gone.
void add_chunk(Memory& memory, const Tensor& chunk, int parent, const Stack& arguments, bool slices,
               int64_t k, int64_t& start) {
  static const Operator* const slice = find_operator("aten::slice", "Tensor");
  static const Operator* const select = find_operator("aten::select", "int");
  const int64_t dim = arguments.back().integer();
  if (!slices) return memory.add(chunk, parent, *select, {Value(), dim, k});
  const int64_t end = start + chunk.size(dim);
  memory.add(chunk, parent, *slice, {Value(), dim, start, end, 1});
  start = end;
}

// The view of layouts alone: what it stands for is worked out when it is read.
void make_view(const Operator& op, Stack& stack) {
  const Tensor self = stack[0].tensor();
  Context& c = *functional(self);
  const int parent = c.memory->find(self);
  Stack arguments = stack;
  arguments[0] = Value();
  {
    const ExcludeKeys layouts_only(kModeKeys | kDifferentiationKeys);
    op.redispatch(self.impl()->keys & kDeviceKeys, stack);
  }
  if (op.record() && op.record()->has(OperatorRecord::kNoHistory)) {
    stack[0] = detached(self, c);
  } else if (stack[0].is_tensors()) {
    int64_t k = 0, start = 0;
    for (const Tensor& chunk : stack[0].tensors()) {
      chunk.impl()->keys = chunk.impl()->keys | Key::kFunctionalize;
      add_chunk(*c.memory, chunk, parent, arguments, chunk.dim() == self.dim(), k++, start);
    }
  } else {
    const Tensor& view = stack[0].tensor();
    view.impl()->keys = view.impl()->keys | Key::kFunctionalize;
    // What is given an offset is a view of the whole memory, whatever it is called on.
    const bool of_whole = op.schema().find("storage_offset") >= 0;
    c.memory->add(view, of_whole ? kWhole : parent, op, of_whole ? Stack() : arguments);
  }
}

// --- writes ---

// The operator that computes what `op`, an in-place or out= form, writes; null where there is none
// with the same arguments.
const Operator* functional_form(const Operator& op) {
  if (op.form() != Operator::Form::kPlain) return &op.record()->form(Operator::Form::kPlain);
  const std::string_view name = op.name();
  if (!op.record() || !name.ends_with("_") || op.schema().find("generator") >= 0) return nullptr;
  const Operator* twin = find_operator(name.substr(0, name.size() - 1), op.overload());
  return twin && twin->schema().arguments.size() == op.schema().arguments.size() ? twin : nullptr;
}

// `value` with the dtype and the sizes of the tensor it is written to.
Tensor fitted(const Operator& op, const Tensor& value, const Tensor& to) {
  const std::string_view name = short_name(op.name());
  check_out_dtype(name, OutDtype::kCastable, value.dtype(), to.dtype());
  TD_CHECK(value.sizes() == to.sizes() || is_expandable_to(value.sizes(), to.sizes()),
           "{}: output with shape {} doesn't match the broadcast shape {}", name, to.sizes(),
           value.sizes());
  Tensor out = value;
  if (out.dtype() != to.dtype())
    out = call("taeda::to_dtype", "", {out, to.dtype(), false, Value()});
  if (out.sizes() != to.sizes()) out = call("aten::expand_copy", "", {out, to.sizes(), false});
  return out;
}

void write(const Tensor& t, const Tensor& value) {
  Memory& memory = *functional(t)->memory;
  memory.write(memory.find(t), value);
}

// out= of another size: the tensor takes the result's layout.
void write_out(const Operator& op, const Tensor& out, const Tensor& value) {
  if (out.sizes() == value.sizes()) return write(out, fitted(op, value, out));
  out.impl()->set_contiguous_layout(value.sizes());
  const Tensor fresh = fitted(op, value, out);
  functional(out)->memory->replace(out, fresh);
}

// What operators without a functional form write, by others.
using Rewrite = Tensor (*)(const Tensor& self, const Stack& stack);
const std::map<std::string_view, Rewrite>& rewrites() {
  static const std::map<std::string_view, Rewrite> table = {
      {"aten::copy_",
       [](const Tensor& self, const Stack& a) {
         const Tensor& source = a[1].tensor();
         if (source.sizes() != self.sizes() || source.dtype() != self.dtype()) return source;
         return call("aten::clone", "", {source, Value()});
       }},
      {"aten::fill_", [](const Tensor&, const Stack& a) { return a[1].tensor(); }},
      {"aten::zero_",
       [](const Tensor& self, const Stack&) {
         return call("aten::zeros", "",
                     {self.sizes(), self.dtype(), Value(), self.device(), Value()});
       }},
      {"taeda::_move_running_",
       [](const Tensor&, const Stack& a) {
         const double momentum = a[2].real();
         const Tensor kept = call("aten::mul", "Tensor", {a[0], Tensor(Scalar(1 - momentum))});
         const Tensor moved =
             call("aten::mul", "Tensor", {a[1].tensor(), Tensor(Scalar(momentum * a[3].real()))});
         return call("aten::add", "Tensor", {kept, moved, 1});
       }},
  };
  return table;
}

void set_layout(const Operator& op, Stack& stack) {
  const Tensor self = stack[0].tensor();
  functional(self)->memory->find(self);  // what it shows now is known
  const ExcludeKeys layouts_only(kModeKeys | kDifferentiationKeys);
  op.redispatch(self.impl()->keys & kDeviceKeys, stack);
}

void resize(Stack& stack) {
  const Tensor self = stack[0].tensor();
  Memory& memory = *functional(self)->memory;
  const DimVector sizes(IntSpan(stack[1].ints()));
  const int64_t numel = checked_numel(sizes);
  const bool copies_views = current_level()->copies_views;
  Tensor flat = viewed(memory.value(memory.find(self)), IntSpan({self.numel()}), copies_views);
  if (numel > self.numel()) {
    const Tensor more = call(
        "aten::empty", "memory_format",
        {IntSpan({numel - self.numel()}), self.dtype(), Value(), self.device(), Value(), Value()});
    flat = call("aten::cat", "", {TensorList{flat, more}, 0});
  } else if (numel < self.numel()) {
    flat = call("aten::slice", "Tensor", {flat, 0, 0, numel, 1});
  }
  self.impl()->set_contiguous_layout(sizes);
  memory.replace(self, viewed(flat, sizes, copies_views));
}

// An operator that can only write: it does so in a copy that nobody else has.
void write_in_copies(const Operator& op, Stack& stack) {
  const Schema& schema = op.schema();
  const Stack given = stack;
  for (size_t i = 0; i < stack.size(); i++) {
    change_tensors(stack[i], unwrap);
    if (schema.arguments[i].alias.written)
      change_tensors(stack[i], [](const Tensor& t) {
        return call("aten::clone", "", {t, Value()});
      });
  }
  const Stack copies = stack;
  {
    const Outside outside;
    op.call(stack);
  }
  const auto store = [](const Tensor& to, const Tensor& from) {
    if (functional(to)) write(to, from);
  };
  for (size_t i = 0; i < given.size(); i++) {
    if (!schema.arguments[i].alias.written) continue;
    if (given[i].is_tensor()) store(given[i].tensor(), copies[i].tensor());
    if (given[i].is_tensors())
      for (size_t k = 0; k < given[i].tensors().size(); k++)
        store(given[i].tensors()[k], copies[i].tensors()[k]);
  }
  for (size_t r = 0; r < stack.size(); r++) {
    const int i = aliased_argument(schema, r);
    if (i >= 0)
      stack[r] = given[static_cast<size_t>(i)];
    else
      change_tensors(stack[r], wrap);
  }
}

void check_written(const Operator& op, const Stack& stack) {
  for (size_t i = 0; i < stack.size(); i++) {
    if (!op.schema().arguments[i].alias.written) continue;
    each_tensor(stack[i], [&](const Tensor& t) {
      TD_CHECK(
          functional(t),
          "{}: mutating a non-functional tensor with a functional tensor is not allowed. Please "
          "ensure that all of your inputs are wrapped inside of a functionalize() call.",
          op.qualified_name());
      check_no_internal_overlap(t);
    });
  }
}

// out=: what the plain form gives, written to the tensors at the end of the arguments.
void mutate_outs(const Operator& op, Stack& stack) {
  const auto first = stack.end() - static_cast<std::ptrdiff_t>(op.schema().results.size());
  const Stack outs(first, stack.end());
  stack.erase(first, stack.end());
  const Operator& plain = *functional_form(op);
  if (plain.is_dispatched()) {
    change_tensors(stack, unwrap);
    const Outside outside;
    plain.call(stack);
  } else {  // its parts come here one by one
    plain.call(stack);
    change_tensors(stack, unwrap);
  }
  for (size_t i = 0; i < outs.size(); i++) write_out(op, outs[i].tensor(), stack[i].tensor());
  stack = outs;
}

void mutate(const Operator& op, Stack& stack) {
  check_written(op, stack);
  if (op.name() == "taeda::set_layout_") return set_layout(op, stack);
  if (op.name() == "aten::resize_") return resize(stack);
  if (op.form() == Operator::Form::kOut) return mutate_outs(op, stack);
  const Tensor target = stack[0].tensor();
  const auto rewrite = rewrites().find(op.name());
  const Operator* plain = functional_form(op);
  if (rewrite == rewrites().end() && !plain) return write_in_copies(op, stack);
  change_tensors(stack, unwrap);
  Tensor value;
  if (rewrite != rewrites().end()) {
    value = rewrite->second(target, stack);
    if (value.dtype() != target.dtype())  // copy_ and fill_ convert to any dtype
      value = call("taeda::to_dtype", "", {value, target.dtype(), false, Value()});
  } else {
    const Outside outside;
    plain->call(stack);
    value = stack[0].tensor();
  }
  write(target, fitted(op, value, target));
  stack.assign(1, target);
}

}  // namespace

void handle(const Operator& op, KeySet keys, Stack& stack) {
  if (!current_level()) {   // of a level that has ended, or of another thread
    any_functional(stack);  // raises
    return op.redispatch(keys - KeySet(Key::kFunctionalize), stack);
  }
  const Schema& schema = op.schema();
  const bool any = any_functional(stack);
  const bool mutates = schema.is_mutable();
  if (any && mutates) return mutate(op, stack);
  if (any && is_view(schema) && functional(stack[0].tensor())) return make_view(op, stack);
  change_tensors(stack, unwrap);
  {
    const Outside outside;
    // The autograd layer has recorded a write on the way here; it must not count twice.
    const ExcludeKeys recorded(mutates ? KeySet(Key::kAutograd) : KeySet());
    op.redispatch(op.keys_of(stack), stack);
  }
  if (mutates || is_view(schema)) return;  // of tensors from outside
  change_tensors(stack, wrap);
}
}  // namespace taeda::functionalize
