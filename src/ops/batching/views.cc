// vmap of views whose integers are not dimensions by type, and of what fills a tensor.
#include "op/as_strided.h"
#include "op/copy_.h"
#include "op/expand.h"
#include "op/fill_.h"
#include "op/permute.h"
#include "op/squeeze.h"
#include "op/transpose.h"
#include "ops/batching/rules.h"
#include "ops/contract.h"

namespace taeda::batching {
namespace {

DimVector with_front(int64_t first, const Value::Ints& rest) {
  DimVector all{first};
  for (const int64_t n : rest) all.push_back(n);
  return all;
}

}  // namespace

void permute(Call& call) {
  const int64_t ndim = call.tensor(0).dim();
  DimVector order{0};
  for (const int64_t dim : call.stack[1].ints()) order.push_back(contract::wrap_dim(dim, ndim) + 1);
  Tensor result;
  {
    const Outside outside(call.level);
    result = op::permute(call.value(0), order);
  }
  call.give(result);
}

void t(Call& call) {
  const bool matrix = call.tensor(0).dim() == 2;
  Tensor result;
  {
    const Outside outside(call.level);
    result = op::transpose(call.value(0), matrix ? 1 : 0, matrix ? 2 : 0);
  }
  call.give(result);
}

void squeeze(Call& call) {
  DimVector dims;
  for (int64_t d = 1; d <= call.tensor(0).dim(); d++) dims.push_back(d);
  Tensor result;
  {
    const Outside outside(call.level);
    result = op::squeeze_dim(call.value(0), dims);
  }
  call.give(result);
}

void expand(Call& call) {
  const Value::Ints& sizes = call.stack[1].ints();
  TD_CHECK(static_cast<int64_t>(sizes.size()) >= call.tensor(0).dim(),
           "expand: the number of sizes provided ({}) must be greater or equal to the number of "
           "dimensions in the tensor ({})",
           sizes.size(), call.tensor(0).dim());
  Tensor result;
  {
    const Outside outside(call.level);
    result = op::expand(pad_dims(call.value(0), static_cast<int64_t>(sizes.size())),
                        with_front(call.size(), sizes), call.stack[2].boolean());
  }
  call.give(result);
}

// The last element that a layout reaches, from the start of its memory; -1 where it has none.
int64_t last_element(IntSpan sizes, IntSpan strides, int64_t offset) {
  int64_t last = offset;
  for (size_t i = 0; i < sizes.size(); i++) {
    if (sizes[i] == 0) return -1;
    last += (sizes[i] - 1) * strides[i];
  }
  return last;
}

// A batched tensor has the strides and the offset of its value's first sample, and no memory but
// its samples' own.
void as_strided(Call& call) {
  Tensor result;
  {
    const Outside outside(call.level);
    const Tensor value = call.value(0);
    const OptInt offset =
        call.stack[3].is_none() ? value.storage_offset() : call.stack[3].integer();
    const IntSpan sizes(call.stack[1].ints()), strides(call.stack[2].ints());
    const size_t dims = value.sizes().size() - 1;
    const IntSpan own_sizes = value.sizes().slice(1, dims);
    const IntSpan own_strides = value.strides().slice(1, dims);
    if (sizes.size() == strides.size()) {
      const int64_t last = last_element(sizes, strides, *offset);
      const int64_t own = last_element(own_sizes, own_strides, value.storage_offset());
      TD_CHECK(last <= own && (last < 0 || *offset >= value.storage_offset()),
               "vmap: as_strided(sizes = {}, strides = {}, storage offset = {}) can access memory "
               "outside of `tensor`, whose samples have sizes {}, strides {} and storage offset {}",
               sizes, strides, *offset, own_sizes, own_strides, value.storage_offset());
    }
    result = op::as_strided(value, with_front(call.size(), call.stack[1].ints()),
                            with_front(value.stride(0), call.stack[2].ints()), offset);
  }
  call.give(result);
}

void fill_(Call& call) {
  Tensor target = call.value(0);
  {
    const Outside outside(call.level);
    if (call.has_batch(1))
      op::copy_(target, pad_dims(call.value(1), call.tensor(0).dim()), false);
    else
      op::fill_(target, call.tensor(1));
  }
  call.give(target);
}

}  // namespace taeda::batching
