// vmap of a layer of a recurrent network: with weights that all samples share, the samples'
// sequences are more sequences of one batch.
#include "ops/batching/rules.h"

namespace taeda::batching {
namespace {

// States [B, n, h] as [B * n, h], sequences [B, t, n, h] as [t, B * n, h], and back.
Tensor join(const Tensor& value) { return value.dim() == 3 ? fold(value) : fold_channels(value); }
Tensor split(const Tensor& joined, int64_t size) {
  return joined.dim() == 2 ? unfold(joined, size) : unfold_channels(joined, size);
}

// All arguments but the weights, which begin at `weights` and are `count`.
void run_layer(Call& call, size_t weights, size_t count) {
  for (size_t i = weights; i < weights + count; i++)
    if (call.has_batch(i)) return by_samples(call);
  Stack args = call.stack;
  {
    const Outside outside(call.level);
    for (size_t i = 0; i < args.size(); i++) {
      const bool weight = i >= weights && i < weights + count;
      if (args[i].is_tensor() && !weight && call.tensor(i).defined())
        args[i] = join(call.with_batch(i));
    }
    run(call, args);
    for (Value& result : args) result = split(result.tensor(), call.size());
  }
  finish(call, args);
}

}  // namespace

// (x, h0, c0, w_hh, b_hh, mode, reverse)
void _rnn_layer(Call& call) { run_layer(call, 3, 2); }
// (gy, gh, gc, w_hh, states, cells, saved, mode, reverse)
void _rnn_layer_backward(Call& call) { run_layer(call, 3, 1); }

}  // namespace taeda::batching
