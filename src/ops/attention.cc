// Attention on tensors: which calls are computed by blocks, and the definition that serves the
// others.
#include "kernels/cpu/attention/attention.h"

#include <cmath>
#include <limits>

#include "core/layout.h"
#include "kernels/copy.h"
#include "op/_attention_scores.h"
#include "op/_safe_softmax.h"
#include "op/_scaled_dot_product_flash_attention_for_cpu.h"
#include "op/_scaled_dot_product_flash_attention_for_cpu_backward.h"
#include "op/add.h"
#include "op/dropout.h"
#include "op/exp.h"
#include "op/expand.h"
#include "op/full.h"
#include "op/masked_fill.h"
#include "op/matmul.h"
#include "op/mul.h"
#include "op/repeat_interleave.h"
#include "op/reshape.h"
#include "op/softmax.h"
#include "op/squeeze.h"
#include "op/sub.h"
#include "op/sum.h"
#include "op/to_dtype.h"
#include "op/transpose.h"
#include "op/triu.h"
#include "op/unsqueeze.h"
#include "op/zeros_like.h"
#include "ops/allocate.h"
#include "ops/contract.h"
#include "ops/dispatch.h"

namespace taeda::impl {
namespace {

// With fewer queries packing the keys costs more than the products: a kernel of its own reads them
// as they are, and gradients are batched products.
constexpr int64_t kFewQueries = 8;
bool few_queries(const Tensor& q, const Tensor& k, const Tensor& v) {
  return q.size(2) < kFewQueries && k.stride(3) == 1 && v.stride(3) == 1;
}

Tensor one_head(const Tensor& x) { return op::unsqueeze(x, 1); }

// `x` in f32, which the kernel reads.
Tensor widened(const Tensor& x) {
  if (!x.defined() || x.dtype() == DType::kFloat32 || x.dtype() == DType::kBool) return x;
  Tensor wide = empty_like_tensor(x, DType::kFloat32);
  kernels::copy(view_of(wide), view_of(x));
  return wide;
}
Tensor narrowed(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor narrow = empty_like_tensor(x, dtype);
  kernels::copy(view_of(narrow), view_of(x));
  return narrow;
}

// (b, h, t, e), in memory (b, t, h, e) where `like` is so: what follows attention is a Linear over
// the heads of a token.
Tensor empty_heads(const Tensor& like, int64_t features, DType dtype) {
  const int64_t b = like.size(0), h = like.size(1), t = like.size(2);
  const DimVector sizes{b, h, t, features};
  if (like.stride(1) >= like.stride(2)) return empty_tensor(sizes, dtype, like.device());
  const DimVector by_token = contiguous_strides({b, t, h, features});
  return empty_strided_tensor(sizes, {by_token[0], by_token[2], by_token[1], 1}, dtype,
                              like.device());
}

bool sizes_fit(const Tensor& q, const Tensor& k, const Tensor& v, bool enable_gqa) {
  const int64_t heads = q.size(1), groups = k.size(1);
  return k.size(0) == q.size(0) && v.size(0) == q.size(0) && v.size(1) == groups &&
         (heads == groups || (enable_gqa && groups > 0 && heads % groups == 0)) &&
         k.size(3) == q.size(3) && v.size(2) == k.size(2);
}

bool by_blocks(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
               double dropout_p, bool enable_gqa) {
  return q.dim() == 4 && k.dim() == 4 && v.dim() == 4 && q.dtype() != DType::kFloat64 &&
         dropout_p == 0 && q.size(1) > 0 && sizes_fit(q, k, v, enable_gqa) &&
         (q.size(2) >= kFewQueries || few_queries(q, k, v)) && !(mask.defined() && mask.dim() > 4);
}

// The mask as the kernel takes it; RuntimeError where it does not broadcast.
Tensor mask_of(const Tensor& mask, const Tensor& q, const Tensor& k) {
  if (!mask.defined()) return mask;
  const DimVector sizes{q.size(0), q.size(1), q.size(2), k.size(2)};
  broadcast_shapes(sizes, mask.sizes());
  const Tensor m = mask.dtype() == DType::kBool
                       ? mask
                       : op::to_dtype(mask, DType::kFloat32, false, std::nullopt);
  return op::expand(m, sizes, false);
}

Tensor minus_infinity(IntSpan sizes, const Tensor& like) {
  TensorOptions options(like.dtype());
  options.device = like.device();
  return op::full(sizes, Scalar(-std::numeric_limits<double>::infinity()), options);
}

// Adds the mask to the scores (..., t, s), -inf where a key stands behind its query if causal. In
// place: of scores that no graph sees.
Tensor masked_scores(Tensor scores, const Tensor& mask, bool is_causal, bool in_place = false) {
  const auto add = [&](const Tensor& bias) {
    const Scalar once(int64_t{1});
    scores = in_place ? op::add_inplace(scores, bias, once) : op::add(scores, bias, once);
  };
  if (mask.defined() && mask.dtype() == DType::kBool)
    add(op::masked_fill_Scalar(minus_infinity(mask.sizes(), scores), mask, Scalar(0.0)));
  else if (mask.defined())
    add(op::to_dtype(mask, scores.dtype(), false, std::nullopt));
  if (is_causal)
    add(op::triu_inplace(minus_infinity({scores.size(-2), scores.size(-1)}, scores), 1));
  return scores;
}

Tensor heads_like(const Tensor& x, const Tensor& query, bool enable_gqa) {
  if (!enable_gqa) return x;
  const int64_t heads = query.size(-3), groups = x.size(-3);
  TD_CHECK(groups > 0 && heads % groups == 0,
           "Number of heads in key and value must divide the number of heads in query, got {} and "
           "{}",
           groups, heads);
  return op::repeat_interleave_self_int(x, heads / groups, -3, std::nullopt);
}

struct Gradients {
  Tensor q, k, v, mask;
};
struct BackwardArguments {
  const Tensor &gy, &query, &key, &value, &output, &logsumexp, &mask;
  bool causal;
  double scale;
};

// (b, h, t, x) with the heads that share a head of keys as one with all their queries.
Tensor by_group(const Tensor& x, int64_t groups) {
  return op::reshape(x, {x.size(0), groups, x.size(1) / groups * x.size(2), x.size(3)});
}

// P = exp(S - logsumexp), gP = gO V^T, gS = P (gP - sum(gO O)), and gS is the mask's gradient.
Gradients few_queries_backward(const BackwardArguments& a) {
  const int64_t groups = a.key.size(1);
  const Tensor q = by_group(a.query, groups), gy = by_group(a.gy, groups);
  const DimVector sizes{a.query.size(0), a.query.size(1), a.query.size(2), a.key.size(2)};
  const Tensor products = op::matmul(op::mul(q, Scalar(a.scale)), op::transpose(a.key, -2, -1));
  const Tensor scores =
      masked_scores(op::reshape(products, sizes), a.mask, a.causal, /*in_place=*/true);
  const Tensor weights =
      op::exp_inplace(op::sub_inplace(scores, op::unsqueeze(a.logsumexp, 3), Scalar(int64_t{1})));
  const Tensor means = op::sum(op::mul(a.gy, a.output), DimVector{3}, true, std::nullopt);
  Tensor gm = op::reshape(op::matmul(gy, op::transpose(a.value, -2, -1)), sizes);
  gm = op::mul_inplace(op::sub_inplace(gm, means, Scalar(int64_t{1})), weights);
  const Tensor gs = by_group(op::mul(gm, Scalar(a.scale)), groups), p = by_group(weights, groups);
  return {op::reshape(op::matmul(gs, a.key), a.query.sizes()),
          op::matmul(op::transpose(gs, -2, -1), q), op::matmul(op::transpose(p, -2, -1), gy), gm};
}

}  // namespace

Tensor _attention_scores(const Tensor& query, const Tensor& key, const Tensor& attn_mask,
                         bool is_causal, double scale) {
  // Scaling the query costs a pass over it, scaling the scores one over something far larger.
  return masked_scores(op::matmul(op::mul(query, Scalar(scale)), op::transpose(key, -2, -1)),
                       attn_mask, is_causal);
}

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask, double dropout_p, bool is_causal,
                                    OptDouble scale, bool enable_gqa) {
  const double factor = scale ? *scale : 1 / std::sqrt(static_cast<double>(query.size(-1)));
  const auto blocks = [&](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) {
    return std::get<0>(op::_scaled_dot_product_flash_attention_for_cpu(q, k, v, mask_of(mask, q, k),
                                                                       is_causal, factor));
  };
  if (by_blocks(query, key, value, attn_mask, dropout_p, enable_gqa))
    return blocks(query, key, value, attn_mask);
  if (query.dim() == 3 && key.dim() == 3 && value.dim() == 3 && !enable_gqa) {
    const Tensor mask =
        attn_mask.defined() && attn_mask.dim() == 3 ? one_head(attn_mask) : attn_mask;
    const Tensor q = one_head(query), k = one_head(key), v = one_head(value);
    if (by_blocks(q, k, v, mask, dropout_p, false))
      return op::squeeze_dim(blocks(q, k, v, mask), DimVector{1});
  }
  TD_CHECK(!is_causal || !attn_mask.defined(),
           "_scaled_dot_product_attention: Explicit attn_mask should not be set when "
           "is_causal=True");
  // Scores rounded to 11 or 8 bits would lose more than the rest of the computation: half precision
  // is computed in f32, as by the kernel.
  const bool narrow = is_reduced_floating(query.dtype());
  const auto wide = [&](const Tensor& x) {
    return narrow ? op::to_dtype(x, DType::kFloat32, false, std::nullopt) : x;
  };
  const Tensor q = wide(query), k = wide(heads_like(key, query, enable_gqa)),
               v = wide(heads_like(value, query, enable_gqa));
  const Tensor scores = op::_attention_scores(q, k, attn_mask, is_causal, factor);
  const Tensor weights =
      attn_mask.defined() ? op::_safe_softmax(scores, -1) : op::softmax(scores, -1, std::nullopt);
  const Tensor out = op::matmul(op::dropout(weights, dropout_p, dropout_p > 0), v);
  return narrow ? op::to_dtype(out, query.dtype(), false, std::nullopt) : out;
}

std::tuple<Tensor, Tensor> _scaled_dot_product_flash_attention_for_cpu(
    const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_mask,
    bool is_causal, double scale) {
  Tensor out = empty_heads(query, value.size(3), DType::kFloat32);
  Tensor logsumexp =
      empty_tensor({query.size(0), query.size(1), query.size(2)}, DType::kFloat32, query.device());
  const bool few = few_queries(query, key, value);
  const bool as_they_are = few && key.dtype() == DType::kBFloat16;
  const Tensor q = widened(query), k = as_they_are ? key : widened(key),
               v = as_they_are ? value : widened(value);
  const auto compute = few ? kernels::attention_few_queries : kernels::attention;
  compute(view_of(out), view_of(logsumexp),
          {view_of(q), view_of(k), view_of(v), view_of(attn_mask), is_causal,
           static_cast<float>(scale)});
  return {narrowed(out, query.dtype()), logsumexp};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> _scaled_dot_product_flash_attention_for_cpu_backward(
    const Tensor& gy, const Tensor& query, const Tensor& key, const Tensor& value,
    const Tensor& output, const Tensor& logsumexp, const Tensor& attn_mask, bool is_causal,
    double scale, bool of_mask) {
  const DType dtype = DType::kFloat32, narrow = query.dtype();
  const Tensor q = widened(query), k = widened(key), v = widened(value), g = widened(gy),
               y = widened(output);
  const Tensor no_mask = empty_tensor({0}, dtype, query.device());
  if (few_queries(query, key, value)) {
    const auto [gq, gk, gv, gm] =
        few_queries_backward({g, q, k, v, y, logsumexp, attn_mask, is_causal, scale});
    return {narrowed(gq, narrow), narrowed(gk, narrow), narrowed(gv, narrow),
            of_mask ? gm : no_mask};
  }
  Tensor gq = empty_heads(query, query.size(3), dtype), gk = empty_heads(key, key.size(3), dtype),
         gv = empty_heads(value, value.size(3), dtype), gm = no_mask;
  if (of_mask) gm = op::zeros_like(attn_mask, TensorOptions(dtype), MemoryFormat::kContiguous);
  kernels::attention_backward(view_of(gq), view_of(gk), view_of(gv), of_mask ? view_of(gm) : View(),
                              view_of(g), view_of(y), view_of(logsumexp),
                              {view_of(q), view_of(k), view_of(v), view_of(attn_mask), is_causal,
                               static_cast<float>(scale)});
  return {narrowed(gq, narrow), narrowed(gk, narrow), narrowed(gv, narrow), gm};
}

}  // namespace taeda::impl
