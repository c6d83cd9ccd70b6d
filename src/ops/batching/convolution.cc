// vmap of convolutions: images of all samples are more images where the weight is one; a weight a
// sample makes groups of channels.
#include "op/convolution.h"

#include "op/reshape.h"
#include "ops/batching/rules.h"

namespace taeda::batching {
namespace {

// A batch of `input` with one weight: argument 0 is merged into the images.
void as_images(Call& call) {
  Stack args = call.stack;
  {
    const Outside outside(call.level);
    args[0] = fold(call.value(0));
    if (args[2].holds<Value::Ints>()) {  // the sizes of the result, in convolution_backward_input
      Value::Ints sizes = args[2].ints();
      sizes.at(0) *= call.size();
      args[2] = std::move(sizes);
    }
    call.op.redispatch(call.op.keys_of(args), args);
    args[0] = unfold(args[0].tensor(), call.size());
  }
  finish(call, args);
}

int64_t multiplied(Value& value, int64_t factor) {
  value = value.integer() * factor;
  return value.integer();
}
void multiply_at(Value& sizes, size_t i, int64_t factor) {
  Value::Ints changed = sizes.ints();
  changed.at(i) *= factor;
  sizes = std::move(changed);
}
size_t groups_of(const Call& call) { return static_cast<size_t>(call.op.schema().find("groups")); }

}  // namespace

// (input, weight, bias, ..., groups)
void convolution(Call& call) {
  if (!call.has_batch(1) && !call.has_batch(2)) return as_images(call);
  Stack args = call.stack;
  {
    const Outside outside(call.level);
    args[0] = fold_channels(call.with_batch(0));
    args[1] = fold(call.with_batch(1));
    if (call.tensor(2).defined()) args[2] = fold(call.with_batch(2));
    multiplied(args[groups_of(call)], call.size());
    call.op.redispatch(call.op.keys_of(args), args);
    args[0] = unfold_channels(args[0].tensor(), call.size());
  }
  finish(call, args);
}

// (grad_output, weight, input_size, ..., groups)
void convolution_backward_input(Call& call) {
  if (!call.has_batch(1)) return as_images(call);
  Stack args = call.stack;
  {
    const Outside outside(call.level);
    args[0] = fold_channels(call.with_batch(0));
    args[1] = fold(call.value(1));
    multiply_at(args[2], 1, call.size());
    multiplied(args[groups_of(call)], call.size());
    call.op.redispatch(call.op.keys_of(args), args);
    args[0] = unfold_channels(args[0].tensor(), call.size());
  }
  finish(call, args);
}

// (grad_output, input, weight_size, ..., groups, with_bias) -> (weight, bias): a gradient a sample.
void convolution_backward_weight(Call& call) {
  Stack args = call.stack;
  {
    const Outside outside(call.level);
    args[0] = fold_channels(call.with_batch(0));
    args[1] = fold_channels(call.with_batch(1));
    multiply_at(args[2], 0, call.size());
    multiplied(args[groups_of(call)], call.size());
    call.op.redispatch(call.op.keys_of(args), args);
    for (Value& result : args)
      change_tensors(result, [&](const Tensor& t) { return unfold(t, call.size()); });
  }
  finish(call, args);
}

}  // namespace taeda::batching
