// Attention on Views of f32, softmax(scale q k^T + mask) v, without the matrix of weights (Dao et
// al., "FlashAttention", 2022).
//
// All may have any strides: query, out and their gradients are (b, h, t, d), key (b, g, s, d) and
// value (b, g, s, e), where head i of h reads head i / (h / g) of g. out has e instead of d.
// logsumexp is (b, h, t), row-major: of each row's scores; infinity where all keys are masked, a
// row whose result and gradients are 0.
#pragma once

#include "kernels/launch.h"

namespace taeda::cpu {

struct Attention {
  View query, key, value;
  // Absent, or (b, h, t, s): f32 to be added to the scores, or bool, false where -inf is.
  View mask;
  bool causal;  // query i sees keys 0 to i
  float scale;
};

void attention(const View& out, const View& logsumexp, const Attention& a);
// The same for few queries, without packing: keys and values may be f32 or bf16, with features side
// by side in memory.
void attention_few_queries(const View& out, const View& logsumexp, const Attention& a);
// gm, the gradient of the mask (b, h, t, s), may be absent; else it is zero where no query looks.
void attention_backward(const View& gq, const View& gk, const View& gv, const View& gm,
                        const View& gy, const View& out, const View& logsumexp, const Attention& a);

}  // namespace taeda::cpu

namespace taeda {
TD_KERNEL(attention);
TD_KERNEL(attention_few_queries);
TD_KERNEL(attention_backward);
}  // namespace taeda
