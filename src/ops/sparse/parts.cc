#include "ops/sparse/parts.h"

#include "core/layout.h"
#include "op/copy_.h"
#include "op/floor_divide.h"
#include "op/remainder.h"
#include "op/select.h"
#include "op/stack.h"
#include "op/to_dtype.h"
#include "ops/sparse/dense.h"

namespace taeda::sparse {
namespace {

// A tensor without memory. Its strides mean nothing, but none is row-major, so that nobody takes
// the elements for dense ones.
Tensor without_memory(Ref<Storage> storage, const Ref<SparseParts>& parts, IntSpan sizes) {
  const Tensor& values = parts->values;
  const Tensor t(make_ref<TensorImpl>(std::move(storage), values.dtype(), values.device()));
  t.impl()->keys = t.impl()->keys | Key::kSparse;
  t.impl()->wrapped = parts;
  t.impl()->set_layout(sizes, DimVector(sizes.size(), 0), 0);
  t.impl()->contiguous = false;
  return t;
}

Tensor fresh(const Ref<SparseParts>& parts, IntSpan sizes) {
  const Device device = parts->values.device();
  return without_memory(Storage::wrap(nullptr, 0, device, nullptr, nullptr), parts, sizes);
}

Ref<SparseParts> copy_of(const SparseParts& parts) {
  auto copy = make_ref<SparseParts>();
  copy->layout = parts.layout;
  copy->indices = parts.indices;
  copy->plain = parts.plain;
  copy->values = parts.values;
  copy->coalesced = parts.coalesced;
  return copy;
}

}  // namespace

Tensor make_coo(const Tensor& indices, const Tensor& values, IntSpan sizes, bool coalesced) {
  auto parts = make_ref<SparseParts>();
  parts->layout = Layout::kSparseCoo;
  parts->indices = indices;
  parts->values = values;
  parts->coalesced = coalesced || values.size(0) < 2;
  return fresh(parts, sizes);
}

Tensor make_compressed(Layout layout, const Tensor& compressed, const Tensor& plain,
                       const Tensor& values, IntSpan sizes) {
  auto parts = make_ref<SparseParts>();
  parts->layout = layout;
  parts->indices = compressed;
  parts->plain = plain;
  parts->values = values;
  return fresh(parts, sizes);
}

Tensor make_empty_coo(IntSpan sizes, int64_t sparse_dim, DType dtype, Device device) {
  DimVector shape{0};
  for (size_t i = static_cast<size_t>(sparse_dim); i < sizes.size(); i++) shape.push_back(sizes[i]);
  return make_coo(zeros({sparse_dim, 0}, DType::kInt64, device), zeros(shape, dtype, device), sizes,
                  true);
}

Tensor with_values(const Tensor& like, const Tensor& values) {
  const Ref<SparseParts> parts = copy_of(sparse_parts(like));
  parts->values = values;
  return fresh(parts, like.sizes());
}

Tensor with_coalesced(const Tensor& like, bool coalesced) {
  const Ref<SparseParts> parts = copy_of(sparse_parts(like));
  parts->coalesced = coalesced;
  return fresh(parts, like.sizes());
}

Tensor alias(const Tensor& t) {
  const TensorImpl& from = *t.impl();
  const Ref<SparseParts> parts(static_cast<SparseParts*>(from.wrapped.get()));
  Tensor other = without_memory(from.storage, parts, from.sizes);
  other.impl()->own_version = from.own_version;
  other.impl()->inference = false;
  other.impl()->keys = from.keys & (kDeviceKeys | Key::kSparse);
  return other;
}

void take_parts(const Tensor& to, const Tensor& from) {
  TensorImpl& impl = *to.impl();
  impl.wrapped = from.impl()->wrapped;
  impl.set_layout(from.sizes(), from.strides(), 0);
  impl.contiguous = false;
  impl.bump_version();
}

void write(const Tensor& to, const Tensor& result) {
  if (!to.is_sparse() || !result.is_sparse()) {
    op::copy_(to, result, false);
    return;
  }
  const SparseParts &old = sparse_parts(to), &made = sparse_parts(result);
  Tensor values = made.values;
  if (values.dtype() != to.dtype()) {
    TD_CHECK(can_cast(values.dtype(), to.dtype()),
             "result type {} can't be cast to the desired output type {}",
             scalar_type_name(values.dtype()), scalar_type_name(to.dtype()));
    values = op::to_dtype(values, to.dtype(), false, std::nullopt);
  }
  const bool same = old.layout == made.layout && old.indices.is_same(made.indices) &&
                    old.plain.is_same(made.plain) && old.values.sizes() == values.sizes();
  if (same && !old.values.is_same(values)) {
    op::copy_(old.values, values, false);
    to.impl()->bump_version();
  } else if (!same) {
    take_parts(to, with_values(result, values));
  }
}

int64_t nnz(const Tensor& t) {
  const SparseParts& parts = sparse_parts(t);
  return parts.is_coo() ? parts.indices.size(1) : parts.plain.size(-1);
}
int64_t batch_dim(const Tensor& t) { return sparse_parts(t).indices.dim() - 1; }
int64_t sparse_dim(const Tensor& t) { return is_coo(t) ? sparse_parts(t).indices.size(0) : 2; }
bool is_blocked(Layout layout) {
  return layout == Layout::kSparseBsr || layout == Layout::kSparseBsc;
}
bool is_by_rows(Layout layout) {
  return layout == Layout::kSparseCsr || layout == Layout::kSparseBsr;
}
int64_t dense_dim(const Tensor& t) {
  const SparseParts& parts = sparse_parts(t);
  if (parts.is_coo()) return parts.values.dim() - 1;
  return parts.values.dim() - parts.plain.dim() - (is_blocked(parts.layout) ? 2 : 0);
}

Tensor linear_indices(const Tensor& indices, IntSpan sizes) {
  if (sizes.empty()) return zeros({indices.size(1)}, DType::kInt64, indices.device());
  static_cast<void>(checked_numel(sizes));
  Tensor linear = op::select(indices, 0, 0);
  for (size_t d = 1; d < sizes.size(); d++)
    linear = add(mul(linear, sizes[d]), op::select(indices, 0, static_cast<int64_t>(d)));
  return linear;
}

Tensor unravel(const Tensor& linear, IntSpan sizes) {
  if (sizes.empty()) return zeros({0, linear.numel()}, DType::kInt64, linear.device());
  TensorList coordinates(sizes.size());
  Tensor rest = linear;
  for (size_t d = sizes.size(); d-- > 1;) {
    const Tensor n = Tensor(std::max<int64_t>(sizes[d], 1));
    coordinates[d] = op::remainder(rest, n);
    rest = op::floor_divide(rest, n);
  }
  coordinates[0] = rest;
  return op::stack(coordinates, 0);
}

}  // namespace taeda::sparse
