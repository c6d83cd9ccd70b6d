// vmap of what makes tensors or gives them other sizes: linspace and logspace between ends of each
// sample's own, resize_, new_empty_strided.
//
// A sample's row is what the operator makes for it, so that the last bits are those of a loop; the
// ends of all samples are read at once.
#include "core/strides.h"
#include "op/linspace.h"
#include "op/logspace.h"
#include "op/stack.h"
#include "op/to_device.h"
#include "op/unbind.h"
#include "ops/batching/rules.h"
#include "ops/dispatch.h"

namespace taeda::batching {
namespace {

// An end in each sample: one for all where it has no batch.
std::vector<Scalar> ends(const Call& call, size_t i) {
  const auto size = static_cast<size_t>(call.size());
  if (!call.stack[i].is_tensor()) return std::vector(size, call.stack[i].scalar());
  if (!call.has_batch(i)) return std::vector(size, call.tensor(i).item_scalar());
  std::vector<Scalar> all;
  const ExcludeKeys one_call(kModeKeys);
  for (const Tensor& one : op::unbind(op::to_device(call.value(i), Device(), false), 0))
    all.push_back(one.item_scalar());
  return all;
}

// Whether an end's values cannot be read here: another vmap batches it, its memory is a class's
// own, or what is computed from it is written down.
bool is_opaque(const Call& call, size_t i) {
  KeySet keys = thread_modes.included & (KeySet(Key::kTrace) | Key::kFunctionalize);
  if (call.stack[i].is_tensor())
    keys = keys | (dispatch::keys(call.value_or_plain(i)) &
                   (KeySet(Key::kBatched) | Key::kPython | Key::kFunctionalize | Key::kMeta));
  return !keys.empty();
}

TensorOptions options_of(const Value* given) {
  TensorOptions options;
  if (!given[0].is_none()) options.dtype = given[0].dtype();
  if (!given[2].is_none()) options.device = given[2].device();
  return options;
}

// The rows that `make` gives for the ends of each sample; `options` are in the call from there on.
template <class Make>
void rows(Call& call, size_t options, const Make& make) {
  if (is_opaque(call, 0) || is_opaque(call, 1)) return by_samples(call);
  TensorList made;
  Tensor result;
  {
    const Outside outside(call.level);
    const std::vector<Scalar> first = ends(call, 0), last = ends(call, 1);
    const TensorOptions given = options_of(&call.stack[options]);
    {
      const ExcludeKeys one_call(kModeKeys);  // modes see the whole, not each row
      for (size_t i = 0; i < first.size(); i++) made.push_back(make(first[i], last[i], given));
    }
    result = op::stack(made, 0);
  }
  call.give(result);
}

// (start, end, steps, options)
void linspace_rows(Call& call) {
  const int64_t n = call.stack[2].integer();
  rows(call, 3, [n](const Scalar& first, const Scalar& last, const TensorOptions& options) {
    return impl::linspace(first, last, n, options);
  });
}
// (start, end, steps, base, options)
void logspace_rows(Call& call) {
  const int64_t n = call.stack[2].integer();
  const double base = call.stack[3].real();
  rows(call, 4, [n, base](const Scalar& first, const Scalar& last, const TensorOptions& options) {
    return impl::logspace(first, last, n, base, options);
  });
}

}  // namespace

// (self, size, memory_format): each sample gets the sizes; what is in them is undefined, as behind
// the end of a tensor that grows.
void resize_(Call& call) {
  TD_CHECK(call.stack[2].is_none(), "vmap: resize_: memory_format is not supported inside vmap");
  DimVector sizes{call.size()};
  for (const int64_t n : call.stack[1].ints()) sizes.push_back(n);
  Stack args = call.stack;
  {
    const Outside outside(call.level);
    args[0] = call.value(0);
    args[1] = Value::Ints(sizes.begin(), sizes.end());
    run(call, args);
  }
  finish(call, args);
}

// (self, size, stride, options): the samples follow each other, each as long as its strides reach.
void new_empty_strided(Call& call) {
  const Value::Ints size = call.stack[1].ints(), stride = call.stack[2].ints();
  const DimVector one(size), steps(stride);
  const int64_t bytes = storage_bytes_needed(one, steps, 0, DType::kUInt8);
  Value::Ints sizes{call.size()}, strides{bytes};
  sizes.insert(sizes.end(), size.begin(), size.end());
  strides.insert(strides.end(), stride.begin(), stride.end());
  Stack args = call.stack;
  {
    const Outside outside(call.level);
    args[0] = call.value(0);
    args[1] = sizes;
    args[2] = strides;
    run(call, args);
  }
  finish(call, args);
}

void linspace_tensor(Call& call) { linspace_rows(call); }
void linspace_end_tensor(Call& call) { linspace_rows(call); }
void logspace_tensor(Call& call) { logspace_rows(call); }
void logspace_end_tensor(Call& call) { logspace_rows(call); }

}  // namespace taeda::batching
