// Sparse tensors copied, filled with zeros, made like others and moved.
#include "core/layout.h"
#include "op/clone.h"
#include "op/to_device.h"
#include "op/to_dtype.h"
#include "ops/sparse/call.h"
#include "ops/sparse/dense.h"

namespace taeda::sparse {
namespace {

Tensor copied(const Tensor& t) { return t.defined() ? op::clone(t, std::nullopt) : t; }

Tensor clone_of(const Tensor& t) {
  const SparseParts& parts = sparse_parts(t);
  const Tensor indices = copied(parts.indices), values = copied(parts.values);
  if (parts.is_coo()) return make_coo(indices, values, t.sizes(), parts.coalesced);
  return make_compressed(parts.layout, indices, copied(parts.plain), values, t.sizes());
}

// Without values, of the layout and the kinds of dimensions that `like` has.
Tensor empty_of(const Tensor& like, IntSpan sizes, DType dtype, Device device) {
  if (is_coo(like)) {
    const bool hybrid = static_cast<int64_t>(sizes.size()) == like.dim();
    return make_empty_coo(sizes, hybrid ? sparse_dim(like) : static_cast<int64_t>(sizes.size()),
                          dtype, device);
  }
  const SparseParts& parts = sparse_parts(like);
  const int64_t ndim = static_cast<int64_t>(sizes.size()), batch = ndim - 2 - dense_dim(like);
  TD_CHECK(batch >= 0, "a {} tensor needs at least 2 dimensions, got sizes {}",
           layout_name(parts.layout), sizes);
  const DimVector front = slice(sizes, 0, batch);
  DimVector block;
  if (is_blocked(parts.layout))
    block = slice(parts.values.sizes(), parts.plain.dim(), parts.plain.dim() + 2);
  int64_t lines = sizes[static_cast<size_t>(is_by_rows(parts.layout) ? batch : batch + 1)];
  if (!block.empty()) lines /= block[is_by_rows(parts.layout) ? 0 : 1];
  const DType index = parts.indices.dtype();
  const DimVector behind = join(block, slice(sizes, batch + 2, ndim));
  return make_compressed(parts.layout, zeros(join(front, {lines + 1}), index, device),
                         zeros(join(front, {0}), index, device),
                         zeros(join(join(front, {0}), behind), dtype, device), sizes);
}

}  // namespace

void clone(Call& call) { call.give(clone_of(call.tensor(0))); }
void alias(Call& call) { call.give(alias(call.tensor(0))); }
void detach(Call& call) { call.give(alias(call.tensor(0))); }

namespace {

// "torch.sparse.FloatTensor"
std::string type_of(const Tensor& t) {
  return format("torch.{}{}Tensor", t.is_sparse() ? "sparse." : "", scalar_type_name(t.dtype()));
}

}  // namespace

void copy_(Call& call) {
  const Tensor self = call.tensor(0), from = call.tensor(1);
  TD_CHECK(
      self.is_sparse() && from.is_sparse() && is_coo(self) == is_coo(from),
      "copy_() between dense and sparse Tensors is not implemented! Found self type = {} and src "
      "type = {}",
      type_of(self), type_of(from));
  TD_CHECK(self.layout() == from.layout() && (is_coo(self) || self.sizes() == from.sizes()),
           "copy of sparse compressed tensors having different layouts or sizes is not supported.");
  const Tensor values = op::to_dtype(sparse_parts(from).values, self.dtype(), true, std::nullopt);
  if (!self.is_same(from)) take_parts(self, with_values(clone_of(from), values));
  call.give(self);
}

void zero_(Call& call) {
  const Tensor self = call.tensor(0);
  take_parts(self, empty_of(self, self.sizes(), self.dtype(), self.device()));
  call.give(self);
}

namespace {

// *_like(self, options...) and new_*(self, size, options...): the dtype and device asked for.
Tensor made_like(const Call& call, IntSpan sizes, size_t options) {
  const Tensor self = call.tensor(0);
  const Value &dtype = call.stack[options], &device = call.stack[options + 2];
  return empty_of(self, sizes, dtype.is_none() ? self.dtype() : dtype.dtype(),
                  device.is_none() ? self.device() : device.device());
}

}  // namespace

void empty_like(Call& call) {
  TD_CHECK(call.stack.back().is_none(),
           "memory format option is only supported by strided tensors");
  call.give(made_like(call, call.tensor(0).sizes(), 1));
}
void zeros_like(Call& call) { empty_like(call); }
void new_zeros(Call& call) { call.give(made_like(call, call.stack[1].ints(), 2)); }
void new_empty(Call& call) { new_zeros(call); }

void to_device(Call& call) {
  const Tensor self = call.tensor(0);
  const Device device = call.stack[1].device();
  const auto moved = [&](const Tensor& t) {
    return t.defined() ? op::to_device(t, device, false) : t;
  };
  const SparseParts& parts = sparse_parts(self);
  const Tensor indices = moved(parts.indices), values = moved(parts.values);
  call.give(parts.is_coo()
                ? make_coo(indices, values, self.sizes(), parts.coalesced)
                : make_compressed(parts.layout, indices, moved(parts.plain), values, self.sizes()));
}

}  // namespace taeda::sparse
