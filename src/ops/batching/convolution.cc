// vmap of convolutions: images of all samples are more images where the weight is one; a weight a
// sample makes groups of channels.
#include "op/convolution.h"

#include "op/reshape.h"
#include "ops/batching/rules.h"

namespace taeda::batching {
namespace {

void multiply_at(Value& sizes, size_t i, int64_t factor) {
  Value::Ints changed = sizes.ints();
  changed.at(i) *= factor;
  sizes = std::move(changed);
}
void multiply_groups(const Call& call, Stack& args) {
  Value& groups = args[static_cast<size_t>(call.op.schema().find("groups"))];
  groups = groups.integer() * call.size();
}

// A batch of `input` with one weight: argument 0 is merged into the images.
void as_images(Call& call) {
  Stack args = call.stack;
  {
    const Outside outside(call.level);
    args[0] = fold(call.value(0));
    if (args[2].holds<Value::Ints>())  // the sizes of the result, in convolution_backward_input
      multiply_at(args[2], 0, call.size());
    run(call, args);
    args[0] = unfold(args[0].tensor(), call.size());
  }
  finish(call, args);
}

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
    multiply_groups(call, args);
    run(call, args);
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
    multiply_groups(call, args);
    run(call, args);
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
    multiply_groups(call, args);
    run(call, args);
    for (Value& result : args)
      change_tensors(result, [&](const Tensor& t) { return unfold(t, call.size()); });
  }
  finish(call, args);
}

}  // namespace taeda::batching
