// Steps of optimizers over many tensors: a block goes over chunks, whatever tensor they are of.
// Parameters and state are read and written once, gradients read once.
//
// In the order of the lines, with g the gradient divided by grad_scale:
//
//   all      g += weight_decay p, but for adamw: p *= 1 - lr weight_decay
//   sgd      b = momentum b + (1 - dampening) g, at first b = g;
//            p -= lr b, or lr (g + momentum b) by Nesterov
//   adam     m += (1 - beta1) (g - m);  v = beta2 v + (1 - beta2) g^2
//            by amsgrad v_max = max(v_max, v), which then stands for v;
//            p -= lr / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + eps)
//   rmsprop  v = alpha v + (1 - alpha) g^2;  centered mean += (1 - alpha) (g - mean), else 0;
//            d = sqrt(v - mean^2) + eps;  b = momentum b + g / d;  p -= lr b
#pragma once
#include "kernels/cuda/text/convert.cuh"
#include "kernels/cuda/text/optim_args.h"
#include "kernels/cuda/text/pack.cuh"

namespace taeda::device {

// A rule's constants for a tensor, in the type that it is computed in. States that a rule may do
// without have has[k].
template <class T>
struct Sgd {
  T lr, momentum, rest, weight_decay;
  bool nesterov, first_step, has_buffer;

  TD_FN Sgd(const SgdRule& r, const OptimTensor& t, double, double rate)
      : lr(static_cast<T>(rate)),
        momentum(static_cast<T>(r.momentum)),
        rest(static_cast<T>(1 - r.dampening)),
        weight_decay(static_cast<T>(r.weight_decay)),
        nesterov(r.nesterov),
        first_step(r.first_step),
        has_buffer(t.states[0]) {}
  TD_FN void apply(T& p, T g, T (&s)[3]) const {
    g += weight_decay * p;
    if (has_buffer) {
      s[0] = first_step ? g : momentum * s[0] + rest * g;
      g = nesterov ? g + momentum * s[0] : s[0];
    }
    p -= lr * g;
  }
};

template <class T>
struct Adam {
  T step_size, root, one_less_beta1, beta2, one_less_beta2, eps, weight_decay, shrink;
  bool has_max;

  TD_FN Adam(const AdamRule& r, const OptimTensor& t, double step, double lr)
      : one_less_beta1(static_cast<T>(1 - r.beta1)),
        beta2(static_cast<T>(r.beta2)),
        one_less_beta2(static_cast<T>(1 - r.beta2)),
        eps(static_cast<T>(r.eps)),
        weight_decay(r.decoupled ? T(0) : static_cast<T>(r.weight_decay)),
        shrink(r.decoupled ? static_cast<T>(1 - lr * r.weight_decay) : T(1)),
        has_max(t.states[2]) {
    // 1 - beta^t
    step_size = static_cast<T>(lr) / -std::expm1(static_cast<T>(step * r.log_beta1));
    root = 1 / std::sqrt(-std::expm1(static_cast<T>(step * r.log_beta2)));
  }
  TD_FN void apply(T& p, T g, T (&s)[3]) const {
    g += weight_decay * p;
    p *= shrink;
    s[0] += (g - s[0]) * one_less_beta1;
    s[1] = beta2 * s[1] + one_less_beta2 * g * g;
    if (has_max) s[2] = s[2] < s[1] || s[1] != s[1] ? s[1] : s[2];
    p -= step_size * s[0] / (std::sqrt(has_max ? s[2] : s[1]) * root + eps);
  }
};

template <class T>
struct Rmsprop {
  T lr, alpha, rest, eps, weight_decay, momentum;
  bool has_mean, has_buffer;

  TD_FN Rmsprop(const RmspropRule& r, const OptimTensor& t, double, double rate)
      : lr(static_cast<T>(rate)),
        alpha(static_cast<T>(r.alpha)),
        rest(static_cast<T>(1 - r.alpha)),
        eps(static_cast<T>(r.eps)),
        weight_decay(static_cast<T>(r.weight_decay)),
        momentum(static_cast<T>(r.momentum)),
        has_mean(t.states[1]),
        has_buffer(t.states[2]) {}
  TD_FN void apply(T& p, T g, T (&s)[3]) const {
    g += weight_decay * p;
    s[0] = alpha * s[0] + rest * g * g;
    T square = s[0];
    if (has_mean) {
      s[1] += (g - s[1]) * rest;
      square -= s[1] * s[1];
    }
    T step = g / (std::sqrt(square) + eps);
    if (has_buffer) step = s[2] = momentum * s[2] + step;
    p -= lr * step;
  }
};

// S is in memory, T computes.
template <class S, class T, class Step, class Rule>
TD_FN void optim_chunk(const OptimArgs<Rule>& args, const OptimTensor& t, uint64_t begin,
                       T factor) {
  const double count = t.step ? load<double>(t.step, args.step_type) : t.step_value;
  const double lr = args.lr ? load<double>(args.lr, args.lr_type) : args.rule.lr;
  const Step step(args.rule, t, count, lr);
  const auto n = static_cast<uint32_t>(t.n - begin < kOptimChunk ? t.n - begin : kOptimChunk);
  const uint64_t bytes = begin * sizeof(S);
  for (uint32_t i = threadIdx.x * 4; i < n; i += blockDim.x * 4) {
    const bool whole = t.aligned && i + 4 <= n;
    Pack<S, 4> p = load_pack<S, 4>(t.param + bytes, i, n, whole), states[3] = {};
    const Pack<S, 4> g = load_pack<S, 4>(t.grad + bytes, i, n, whole);
#pragma unroll
    for (int s = 0; s < 3; s++)
      if (t.states[s]) states[s] = load_pack<S, 4>(t.states[s] + bytes, i, n, whole);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      T state[3], param = convert<T>(p.at[k]);
#pragma unroll
      for (int s = 0; s < 3; s++) state[s] = convert<T>(states[s].at[k]);
      step.apply(param, factor * convert<T>(g.at[k]), state);
      p.at[k] = convert<S>(param);
#pragma unroll
      for (int s = 0; s < 3; s++) states[s].at[k] = convert<S>(state[s]);
    }
    store_pack(t.param + bytes, i, n, whole, p);
#pragma unroll
    for (int s = 0; s < 3; s++)
      if (t.states[s]) store_pack(t.states[s] + bytes, i, n, whole, states[s]);
  }
}

// work(tensor, the first element) for each chunk of a block.
template <class Rule, class Work>
TD_FN void each_chunk(const OptimArgs<Rule>& args, Work work) {
  uint32_t at = 0;
  for (uint32_t chunk = blockIdx.x; chunk < args.chunks; chunk += gridDim.x) {
    while (at + 1 < args.count && args.tensors[at + 1].first <= chunk) at++;
    const OptimTensor& t = args.tensors[at];
    work(t, uint64_t{chunk - t.first} * kOptimChunk);
  }
}

template <class S, class T, template <class> class Step, class Rule>
TD_FN void optim_kernel(const OptimArgs<Rule>& args) {
  if (args.found_inf && load<double>(args.found_inf, args.found_type) != 0) return;
  double factor = args.factor;
  if (args.grad_scale) factor /= load<double>(args.grad_scale, args.scale_type);
  each_chunk(args, [&](const OptimTensor& t, uint64_t begin) {
    optim_chunk<S, T, Step<T>>(args, t, begin, static_cast<T>(factor));
  });
}

template <class S, class T>
TD_FN void unscale_kernel(const OptimArgs<UnscaleRule>& args) {
  const T factor = static_cast<T>(load<double>(args.grad_scale, args.scale_type));
  bool finite = true;
  each_chunk(args, [&](const OptimTensor& t, uint64_t begin) {
    char* const at = t.param + begin * sizeof(S);
    const auto n = static_cast<uint32_t>(t.n - begin < kOptimChunk ? t.n - begin : kOptimChunk);
    for (uint32_t i = threadIdx.x * 4; i < n; i += blockDim.x * 4) {
      const bool whole = t.aligned && i + 4 <= n;
      Pack<S, 4> g = load_pack<S, 4>(at, i, n, whole);
#pragma unroll
      for (int k = 0; k < 4; k++) {
        const T x = convert<T>(g.at[k]);
        finite = finite && x - x == 0;
        g.at[k] = convert<S>(x * factor);
      }
      store_pack(at, i, n, whole, g);
    }
  });
  // Threads that find one at the same time write the same.
  constexpr uint32_t kOne = 0x3f800000;
  if (!finite) atomicCAS(reinterpret_cast<uint32_t*>(args.rule.not_finite), uint32_t{0}, kOne);
}

TD_FN void add_one_kernel(const AddOneArgs& args) {
  if (args.found_inf && load<double>(args.found_inf, args.found_type) != 0) return;
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= args.count) return;
  store(args.tensors[i], args.type, load<double>(args.tensors[i], args.type) + 1);
}

}  // namespace taeda::device
