#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/optim/optim.cc"
#include "kernels/cpu/optim/optim.h"
#include "kernels/cpu/simd/simd.h"

// One parameter's constants, seen by all targets.
#ifndef TAEDA_OPTIM_RULES
#define TAEDA_OPTIM_RULES
namespace taeda::cpu {

constexpr int kMaxStates = 3;

struct SgdRule {
  SgdOptions o;
  bool has_momentum;
};
struct AdamRule {
  const AdamOptions& o;
  double step_size, root_correction;  // lr / (1 - beta1^t), 1 / sqrt(1 - beta2^t)
};
struct RmspropRule {
  RmspropOptions o;
  int mean, buffer;  // which state; -1: none
};

}  // namespace taeda::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Gradient with sign, scale and L2 term.
template <class D, class V>
HWY_INLINE V prepared(D d, V g, V p, double scale, bool maximize, double weight_decay) {
  using T = hn::TFromD<D>;
  const double factor = maximize ? -scale : scale;
  if (factor != 1) g = hn::Mul(g, hn::Set(d, static_cast<T>(factor)));
  return weight_decay != 0 ? hn::MulAdd(p, hn::Set(d, static_cast<T>(weight_decay)), g) : g;
}

template <class D, class V>
HWY_INLINE void apply(D d, const SgdRule& rule, V& p, V g, V* s) {
  using T = hn::TFromD<D>;
  const SgdOptions& o = rule.o;
  g = prepared(d, g, p, o.grad_scale, o.maximize, o.weight_decay);
  if (rule.has_momentum) {
    const V momentum = hn::Set(d, static_cast<T>(o.momentum));
    s[0] = o.first_step ? g
                        : hn::MulAdd(s[0], momentum,
                                     hn::Mul(g, hn::Set(d, static_cast<T>(1 - o.dampening))));
    g = o.nesterov ? hn::MulAdd(s[0], momentum, g) : s[0];
  }
  p = hn::NegMulAdd(g, hn::Set(d, static_cast<T>(o.lr)), p);
}

template <class D, class V>
HWY_INLINE void apply(D d, const AdamRule& rule, V& p, V g, V* s) {
  using T = hn::TFromD<D>;
  const AdamOptions& o = rule.o;
  g = prepared(d, g, p, o.grad_scale, o.maximize, o.decoupled ? 0 : o.weight_decay);
  if (o.decoupled) p = hn::Mul(p, hn::Set(d, static_cast<T>(1 - o.lr * o.weight_decay)));
  s[0] = hn::MulAdd(hn::Sub(g, s[0]), hn::Set(d, static_cast<T>(1 - o.beta1)), s[0]);
  s[1] = hn::MulAdd(hn::Mul(g, g), hn::Set(d, static_cast<T>(1 - o.beta2)),
                    hn::Mul(s[1], hn::Set(d, static_cast<T>(o.beta2))));
  if (o.amsgrad) s[2] = hn::Max(s[2], s[1]);
  const V root = hn::Sqrt(o.amsgrad ? s[2] : s[1]);
  const V denominator = hn::MulAdd(root, hn::Set(d, static_cast<T>(rule.root_correction)),
                                   hn::Set(d, static_cast<T>(o.eps)));
  p = hn::NegMulAdd(hn::Div(s[0], denominator), hn::Set(d, static_cast<T>(rule.step_size)), p);
}

template <class D, class V>
HWY_INLINE void apply(D d, const RmspropRule& rule, V& p, V g, V* s) {
  using T = hn::TFromD<D>;
  const RmspropOptions& o = rule.o;
  g = prepared(d, g, p, o.grad_scale, o.maximize, o.weight_decay);
  const V rest = hn::Set(d, static_cast<T>(1 - o.alpha));
  s[0] = hn::MulAdd(hn::Mul(g, g), rest, hn::Mul(s[0], hn::Set(d, static_cast<T>(o.alpha))));
  V square = s[0];
  if (rule.mean >= 0) {
    V& mean = s[rule.mean];
    mean = hn::MulAdd(hn::Sub(g, mean), rest, mean);
    square = hn::NegMulAdd(mean, mean, square);
  }
  V step = hn::Div(g, hn::Add(hn::Sqrt(square), hn::Set(d, static_cast<T>(o.eps))));
  if (rule.buffer >= 0) {
    V& buffer = s[rule.buffer];
    buffer = hn::MulAdd(buffer, hn::Set(d, static_cast<T>(o.momentum)), step);
    step = buffer;
  }
  p = hn::NegMulAdd(step, hn::Set(d, static_cast<T>(o.lr)), p);
}

template <int kStates, class D, class T, class Rule>
HWY_INLINE void step_lanes(D d, const Rule& rule, T* p, const T* g, T* const* s, int64_t i) {
  using V = hn::Vec<D>;
  V param = hn::LoadU(d, p + i), states[kMaxStates];
  for (int k = 0; k < kStates; k++) states[k] = hn::LoadU(d, s[k] + i);
  apply(d, rule, param, V(hn::LoadU(d, g + i)), states);
  for (int k = 0; k < kStates; k++) hn::StoreU(states[k], d, s[k] + i);
  hn::StoreU(param, d, p + i);
}

template <int kStates, class T, class Rule>
void step(const Rule& shared_rule, T* p, const T* g, T* const* s, int64_t n) {
  const Rule rule = shared_rule;  // a local copy: stores cannot change it
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> d1;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) step_lanes<kStates>(d, rule, p, g, s, i);
  for (; i < n; i++) step_lanes<kStates>(d1, rule, p, g, s, i);
}

template <class T, class Rule>
void step_states(const Rule& rule, T* p, const T* g, T* const* s, int states, int64_t n) {
  switch (states) {
    case 0:
      return step<0>(rule, p, g, s, n);
    case 1:
      return step<1>(rule, p, g, s, n);
    case 2:
      return step<2>(rule, p, g, s, n);
    default:
      return step<3>(rule, p, g, s, n);
  }
}

}  // namespace

#define TD_OPTIM_STEPS(Rule, name)                                                            \
  void name##_f32(const Rule& rule, float* p, const float* g, float* const* s, int states,    \
                  int64_t n) {                                                                \
    step_states(rule, p, g, s, states, n);                                                    \
  }                                                                                           \
  void name##_f64(const Rule& rule, double* p, const double* g, double* const* s, int states, \
                  int64_t n) {                                                                \
    step_states(rule, p, g, s, states, n);                                                    \
  }
TD_OPTIM_STEPS(SgdRule, sgd)
TD_OPTIM_STEPS(AdamRule, adam)
TD_OPTIM_STEPS(RmspropRule, rmsprop)
#undef TD_OPTIM_STEPS

}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/parallel.h"
#include "core/with_dtype.h"
#include "taeda/error.h"

namespace taeda::cpu {
namespace {

HWY_EXPORT(sgd_f32);
HWY_EXPORT(sgd_f64);
HWY_EXPORT(adam_f32);
HWY_EXPORT(adam_f64);
HWY_EXPORT(rmsprop_f32);
HWY_EXPORT(rmsprop_f64);

void step(const SgdRule& r, float* p, const float* g, float* const* s, int states, int64_t n) {
  HWY_DYNAMIC_DISPATCH(sgd_f32)(r, p, g, s, states, n);
}
void step(const SgdRule& r, double* p, const double* g, double* const* s, int states, int64_t n) {
  HWY_DYNAMIC_DISPATCH(sgd_f64)(r, p, g, s, states, n);
}
void step(const AdamRule& r, float* p, const float* g, float* const* s, int states, int64_t n) {
  HWY_DYNAMIC_DISPATCH(adam_f32)(r, p, g, s, states, n);
}
void step(const AdamRule& r, double* p, const double* g, double* const* s, int states, int64_t n) {
  HWY_DYNAMIC_DISPATCH(adam_f64)(r, p, g, s, states, n);
}
void step(const RmspropRule& r, float* p, const float* g, float* const* s, int states, int64_t n) {
  HWY_DYNAMIC_DISPATCH(rmsprop_f32)(r, p, g, s, states, n);
}
void step(const RmspropRule& r, double* p, const double* g, double* const* s, int states,
          int64_t n) {
  HWY_DYNAMIC_DISPATCH(rmsprop_f64)(r, p, g, s, states, n);
}

constexpr int64_t kChunk = 16384;          // elements that a thread takes at once
constexpr int64_t kParallel = 2 * kChunk;  // below this many in all, one thread does it
constexpr int64_t kBlock = 512;

// The tensors of one parameter.
struct Entry {
  const View* param;
  const View* grad;
  const View* states[kMaxStates];
};

template <class T>
T* at(const View& v, int64_t begin) {
  return v.as<T>() + begin;
}

template <class T, class Rule>
void step_chunk(const Rule& rule, const Entry& e, int states, int64_t begin, int64_t end) {
  T* s[kMaxStates] = {};
  for (int k = 0; k < states; k++) s[k] = at<T>(*e.states[k], begin);
  step(rule, at<T>(*e.param, begin), at<T>(*e.grad, begin), s, states, end - begin);
}

// 16-bit types: blocks of floats.
template <class T, class Rule>
void step_chunk_reduced(const Rule& rule, const Entry& e, int states, int64_t begin, int64_t end) {
  float block[kMaxStates + 2][kBlock];
  float* s[kMaxStates] = {block[2], block[3], block[4]};
  for (int64_t i = begin; i < end; i += kBlock) {
    const int64_t n = std::min(kBlock, end - i);
    std::copy_n(at<T>(*e.param, i), n, block[0]);
    std::copy_n(at<T>(*e.grad, i), n, block[1]);
    for (int k = 0; k < states; k++) std::copy_n(at<T>(*e.states[k], i), n, s[k]);
    step(rule, block[0], block[1], s, states, n);
    const auto store = [&](const View& v, const float* from) {
      std::transform(from, from + n, at<T>(v, i), [](float x) { return T(x); });
    };
    store(*e.param, block[0]);
    for (int k = 0; k < states; k++) store(*e.states[k], s[k]);
  }
}

template <class Rule>
void step_entry(const Rule& rule, const Entry& e, int states, int64_t begin, int64_t end) {
  switch (e.param->dtype) {
    case DType::kFloat32:
      return step_chunk<float>(rule, e, states, begin, end);
    case DType::kFloat64:
      return step_chunk<double>(rule, e, states, begin, end);
    case DType::kFloat16:
      return step_chunk_reduced<Half>(rule, e, states, begin, end);
    case DType::kBFloat16:
      return step_chunk_reduced<BFloat16>(rule, e, states, begin, end);
    default:
      fail(ErrorKind::kRuntime, "fused optimizer step: expected floating-point parameters, got {}",
           e.param->dtype);
  }
}

// rule_of(i) gives parameter i's constants.
template <class RuleOf>
void run(Views params, Views grads, std::initializer_list<Views> state_lists,
         const RuleOf& rule_of) {
  const auto entry_of = [&](size_t i, int& states) {
    Entry e{&params[i], &grads[i], {}};
    states = 0;
    for (const Views& list : state_lists) {
      if (!list.empty()) e.states[states++] = &list[i];
    }
    return e;
  };
  int64_t total = 0;
  for (const View& p : params) total += p.numel;
  int states;
  if (total < kParallel) {
    for (size_t i = 0; i < params.size(); i++) {
      const Entry e = entry_of(i, states);
      step_entry(rule_of(i), e, states, 0, e.param->numel);
    }
    return;
  }
  struct Chunk {
    size_t param;
    int64_t begin, end;
  };
  std::vector<Chunk> chunks;
  chunks.reserve(params.size() + static_cast<size_t>(total / kChunk));
  for (size_t i = 0; i < params.size(); i++) {
    for (int64_t begin = 0; begin < params[i].numel; begin += kChunk) {
      chunks.push_back({i, begin, std::min(begin + kChunk, params[i].numel)});
    }
  }
  parallel_for(0, static_cast<int64_t>(chunks.size()), 1, [&](int64_t from, int64_t to) {
    for (int64_t k = from; k < to; k++) {
      const Chunk& chunk = chunks[static_cast<size_t>(k)];
      int count;
      const Entry e = entry_of(chunk.param, count);
      step_entry(rule_of(chunk.param), e, count, chunk.begin, chunk.end);
    }
  });
}

}  // namespace

void fused_sgd(Views params, Views grads, Views buffers, const SgdOptions& options) {
  const SgdRule rule{options, !buffers.empty()};
  run(params, grads, {buffers}, [&](size_t) -> const SgdRule& { return rule; });
}

void fused_adam(Views params, Views grads, Views averages, Views squares, Views max_squares,
                Views steps, const AdamOptions& options) {
  const auto rule_at = [&](double step) {
    const double correction1 = 1 - std::pow(options.beta1, step);
    const double correction2 = 1 - std::pow(options.beta2, step);
    return AdamRule{options, options.lr / correction1, 1 / std::sqrt(correction2)};
  };
  // Nearly always all parameters have made the same number of steps: one rule serves all.
  const double first = steps.empty() ? 1 : *steps[0].as<double>();
  const AdamRule common = rule_at(first);
  run(params, grads, {averages, squares, max_squares}, [&](size_t i) {
    const double step = *steps[i].as<double>();
    return step == first ? common : rule_at(step);
  });
}

void fused_rmsprop(Views params, Views grads, Views squares, Views means, Views buffers,
                   const RmspropOptions& options) {
  const int mean = means.empty() ? -1 : 1;
  const RmspropRule rule{options, mean, buffers.empty() ? -1 : means.empty() ? 1 : 2};
  run(params, grads, {squares, means, buffers}, [&](size_t) -> const RmspropRule& { return rule; });
}

void unscale(Views grads, const View& found_inf, const View& inverse_scale) {
  const auto factor = static_cast<double>(*inverse_scale.as<float>());
  for (const View& grad : grads)
    with_dtype<Floating>(grad.dtype, [&]<class T>(T) {
      bool finite = true;
      for (int64_t i = 0; i < grad.numel; i++) {
        const auto x = static_cast<Wide<T>>(grad.as<T>()[i]);
        finite &= std::isfinite(x);
        grad.as<T>()[i] = static_cast<T>(x * static_cast<Wide<T>>(factor));
      }
      if (!finite) *found_inf.as<float>() = 1;
    });
}

// What its caller wants of numbers on the CPU it has looked at: found_inf is not present.
void add_one(Views counters, const View&) {
  for (const View& counter : counters)
    with_dtype<Floating>(counter.dtype, [&]<class T>(T) {
      T& count = *counter.as<T>();
      count = static_cast<T>(static_cast<Wide<T>>(count) + 1);
    });
}

}  // namespace taeda::cpu
#endif
