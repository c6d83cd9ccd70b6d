// vmap of matrix products: of two batches they are batched products, of a batch and one matrix a
// product with more rows.
#include "op/add.h"
#include "op/addmm.h"
#include "op/bmm.h"
#include "op/linear.h"
#include "op/matmul.h"
#include "op/mm.h"
#include "op/mul.h"
#include "op/mv.h"
#include "op/reshape.h"
#include "op/squeeze.h"
#include "op/sum.h"
#include "op/transpose.h"
#include "op/unsqueeze.h"
#include "ops/batching/rules.h"

namespace taeda::batching {
namespace {

// The product of two arguments as the code outside computes it: matmul knows batches in front.
void by_matmul(Call& call) {
  Tensor product;
  {
    const Outside outside(call.level);
    product = op::matmul(call.value_or_plain(0), call.value_or_plain(1));
  }
  call.give(product);
}

// beta * input + alpha * product, on batched tensors.
void add_product(Call& call, const Tensor& product) {
  const BelowDifferentiation below(call.level);
  const Scalar beta = call.stack[3].scalar(), alpha = call.stack[4].scalar();
  const Tensor scaled = alpha == Scalar(int64_t{1}) ? product : op::mul(product, Tensor(alpha));
  const Tensor input = call.tensor(0);
  // With beta = 0 the input is not read: its NaN does not count.
  Tensor result = scaled;
  if (!(beta == Scalar(int64_t{0}))) result = op::add(scaled, input, beta);
  call.stack = {result};
}

}  // namespace

void mm(Call& call) { by_matmul(call); }
void bmm(Call& call) {
  if (call.has_batch(0) && call.has_batch(1)) return folded(call);
  by_matmul(call);
}

// [B, n, k] x [B, k]: columns of a batch.
void mv(Call& call) {
  Tensor product;
  {
    const Outside outside(call.level);
    const Tensor vector = call.value_or_plain(1);
    if (!call.has_batch(1))
      product = op::matmul(call.value(0), vector);
    else if (!call.has_batch(0))
      product = op::matmul(vector, op::transpose(call.tensor(0), 0, 1));
    else
      product = op::squeeze_dim(op::bmm(call.value(0), op::unsqueeze(vector, 2)), DimVector{2});
  }
  call.give(product);
}

void dot(Call& call) {
  Tensor product;
  {
    const Outside outside(call.level);
    if (!call.has_batch(1)) {
      product = op::matmul(call.value(0), call.tensor(1));
    } else if (!call.has_batch(0)) {
      product = op::matmul(call.value(1), call.tensor(0));
    } else {
      product = op::bmm(op::unsqueeze(call.value(0), 1), op::unsqueeze(call.value(1), 2));
      product = op::reshape(product, {call.size()});
    }
  }
  call.give(product);
}

namespace {

// product(argument 1, argument 2), on batched tensors.
Tensor product_of(const Call& call, Tensor (*product)(const Tensor&, const Tensor&)) {
  const BelowDifferentiation below(call.level);
  return product(call.tensor(1), call.tensor(2));
}

}  // namespace

void addmm(Call& call) { add_product(call, product_of(call, op::mm)); }
void baddbmm(Call& call) { add_product(call, product_of(call, op::bmm)); }
void addmv(Call& call) { add_product(call, product_of(call, op::mv)); }

// One weight for all samples: more rows. A weight a sample: a batched product.
void linear(Call& call) {
  const Tensor bias = call.tensor(2);
  if (!call.has_batch(1) && !call.has_batch(2)) {
    Tensor result;
    {
      const Outside outside(call.level);
      result = op::linear(call.value(0), call.tensor(1), bias);
    }
    return call.give(result);
  }
  const BelowDifferentiation below(call.level);
  const Tensor& weight = call.tensor(1);
  const Tensor product =
      op::matmul(call.tensor(0), weight.dim() == 2 ? op::transpose(weight, 0, 1) : weight);
  call.stack = {bias.defined() ? op::add(product, bias, Scalar(int64_t{1})) : product};
}

}  // namespace taeda::batching
