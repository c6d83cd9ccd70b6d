// vmap of searches in sorted sequences.
#include "op/reshape.h"
#include "ops/batching/rules.h"

namespace taeda::batching {

// (sorted_sequence, self, out_int32, right, side, sorter): of one vector any values are searched,
// of several each its row.
void searchsorted(Call& call) {
  const bool vector = call.tensor(0).dim() == 1;
  const bool shared = vector && !call.has_batch(0) && !call.has_batch(5);
  DimVector sizes{call.size()};
  for (const int64_t n : call.tensor(1).sizes()) sizes.push_back(n);
  Stack args = call.stack;
  {
    const Outside outside(call.level);
    args[1] = call.with_batch(1);
    if (!shared) {
      args[0] = call.with_batch(0);
      args[5] = call.with_batch(5);
      if (vector) args[1] = op::reshape(args[1].tensor(), {call.size(), call.tensor(1).numel()});
    }
    run(call, args);
    args[0] = op::reshape(args[0].tensor(), sizes);
  }
  finish(call, args);
}

}  // namespace taeda::batching
