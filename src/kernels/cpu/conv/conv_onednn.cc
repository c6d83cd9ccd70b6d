// Convolutions by oneDNN. The batch (and where it is short, the channels) is cut into parts that
// fit the second-level cache; a thread takes a part, brings it into the blocked layout that the
// compiled kernel wants, runs it and writes the result back, so that the layout changes never touch
// main memory. How it is cut depends on the sizes alone.
#include <algorithm>
#include <atomic>

#include "base/parallel.h"
#include "kernels/cpu/conv/conv_backends.h"
#include "kernels/cpu/gemm/onednn.h"

namespace taeda::cpu {

namespace {

using dnnl::memory;
using onednn::Compiled;

enum class Kind : int64_t { kForward, kInputGradient, kWeightGradient };

// One part of a convolution, compiled: the kernel and the layout changes around it. Without a
// kernel where oneDNN has none for it.
struct Plan {
  Compiled kernel;
  // The part as the caller holds it, and as the kernel wants it.
  memory::desc user_x, user_w, user_y, x, w, y, bias;
};

void append(std::vector<int64_t>& key, const ConvArray& a) {
  key.insert(key.end(), a.sizes.begin(), a.sizes.end());
  key.insert(key.end(), a.strides.begin(), a.strides.end());
}

// (o, c, kernel...) as (groups, o / groups, c, kernel...): how oneDNN describes grouped weights.
ConvArray with_groups(const ConvArray& w, int64_t groups) {
  if (groups == 1) return w;
  ConvArray out = w;
  out.sizes[0] /= groups;
  out.sizes.insert(0, groups);
  out.strides.insert(0, out.sizes[1] * w.strides[0]);
  return out;
}

bool channels_last(const ConvArray& a) { return a.sizes[1] > 1 && a.strides[1] == 1; }

memory::desc any_layout(const memory::desc& d) {
  return {d.get_dims(), d.get_data_type(), memory::format_tag::any};
}

// How the kernel sees x and y: row-major, channels-last, or in oneDNN's blocks of channels.
enum class Layout { kPlain, kChannelsLast, kBlocked };

// Which layout is fastest, layout changes included (measured on AVX-512 for f32).
Layout choose_layout(Kind kind, const ConvProblem& p) {
  if (channels_last(p.x) || channels_last(p.y)) return Layout::kChannelsLast;
  if (p.x.dtype != DType::kFloat32 || p.groups > 1) return Layout::kBlocked;
  // With a few input channels the blocked kernels waste most lanes of the gradient; the plain ones
  // do not.
  if (kind == Kind::kInputGradient && p.x.sizes[1] <= 4) return Layout::kPlain;
  bool pointwise = true;  // a 1x1 convolution is a matrix product as it stands
  for (size_t i = 0; i < p.spatial(); i++)
    pointwise = pointwise && p.w.sizes[i + 2] == 1 && p.stride[i] == 1 && p.padding[i] == 0;
  if (pointwise) return kind == Kind::kWeightGradient ? Layout::kChannelsLast : Layout::kPlain;
  // The blocked kernels run along the width.
  const bool narrow = p.y.sizes[p.y.sizes.size() - 1] <= 8;
  return narrow && p.x.sizes[1] >= 16 && p.y.sizes[1] >= 16 ? Layout::kChannelsLast
                                                            : Layout::kBlocked;
}

memory::desc in_layout(const memory::desc& user, Layout layout) {
  using tag = memory::format_tag;
  const bool image = user.get_ndims() == 4;
  const tag wanted = layout == Layout::kBlocked ? tag::any
                     : layout == Layout::kPlain ? (image ? tag::nchw : tag::ncdhw)
                                                : (image ? tag::nhwc : tag::ndhwc);
  return {user.get_dims(), user.get_data_type(), wanted};
}

// The plan with x and y in a certain layout; without a kernel where there is none for it.
std::shared_ptr<Plan> build_plan(Kind kind, const ConvProblem& p, bool has_bias, Layout layout) {
  const OneThread one_thread;
  const auto algorithm = dnnl::algorithm::convolution_direct;
  auto plan = std::make_shared<Plan>();
  plan->user_x = onednn::desc_of(p.x.view());
  plan->user_w = onednn::desc_of(with_groups(p.w, p.groups).view());
  plan->user_y = onednn::desc_of(p.y.view());
  const memory::desc x = in_layout(plan->user_x, layout), y = in_layout(plan->user_y, layout);
  memory::desc w = any_layout(plan->user_w);
  if (kind == Kind::kWeightGradient)  // parts are added up in f32
    w = memory::desc(w.get_dims(), memory::data_type::f32, memory::format_tag::any);
  memory::desc bias;
  if (has_bias) bias = {{p.y.sizes[1]}, memory::data_type::f32, memory::format_tag::a};
  memory::dims stride = onednn::dims_of(p.stride), before = onednn::dims_of(p.padding),
               after = onednn::dims_of(p.padding_after()), dilation = onednn::dims_of(p.dilation);
  for (auto& d : dilation) d -= 1;
  const dnnl::primitive_attr attributes = onednn::own_scratchpad();
  constexpr bool kAllowEmpty = true;

  const dnnl::convolution_forward::primitive_desc forward(
      onednn::engine(), dnnl::prop_kind::forward_training, algorithm, x,
      kind == Kind::kWeightGradient ? any_layout(plan->user_w) : w, bias, y, stride, dilation,
      before, after, attributes, kAllowEmpty);
  if (!forward) return plan;
  if (kind == Kind::kForward) {
    plan->x = forward.src_desc(), plan->w = forward.weights_desc(), plan->y = forward.dst_desc();
    plan->kernel = onednn::compile<dnnl::convolution_forward>(forward);
  } else if (kind == Kind::kInputGradient) {
    const dnnl::convolution_backward_data::primitive_desc backward(
        onednn::engine(), algorithm, x, w, y, stride, dilation, before, after, forward, attributes,
        kAllowEmpty);
    if (!backward) return plan;
    plan->x = backward.diff_src_desc(), plan->w = backward.weights_desc(),
    plan->y = backward.diff_dst_desc();
    plan->kernel = onednn::compile<dnnl::convolution_backward_data>(backward);
  } else {
    const dnnl::convolution_backward_weights::primitive_desc backward(
        onednn::engine(), algorithm, x, w, y, stride, dilation, before, after, forward, attributes,
        kAllowEmpty);
    if (!backward) return plan;
    plan->x = backward.src_desc(), plan->w = backward.diff_weights_desc(),
    plan->y = backward.diff_dst_desc();
    plan->kernel = onednn::compile<dnnl::convolution_backward_weights>(backward);
  }
  plan->bias = bias;
  return plan;
}

// The plan in the fastest layout for which oneDNN has a kernel.
std::shared_ptr<Plan> build_plan(Kind kind, const ConvProblem& p, bool has_bias) {
  const Layout best = choose_layout(kind, p);
  std::shared_ptr<Plan> plan = build_plan(kind, p, has_bias, best);
  for (const Layout layout : {Layout::kBlocked, Layout::kChannelsLast, Layout::kPlain}) {
    if (plan->kernel) break;
    if (layout != best) plan = build_plan(kind, p, has_bias, layout);
  }
  return plan;
}

std::shared_ptr<const Plan> find_plan(Kind kind, const ConvProblem& p, bool has_bias) {
  static auto& cache = *new onednn::Cache<Plan>(1024);
  std::vector<int64_t> key;
  key.reserve(64);
  key.insert(key.end(), {static_cast<int64_t>(kind), static_cast<int64_t>(p.x.dtype), p.groups,
                         has_bias, static_cast<int64_t>(p.spatial())});
  for (const ConvArray* a : {&p.x, &p.w, &p.y}) append(key, *a);
  for (const DimVector* v : {&p.stride, &p.padding, &p.dilation})
    key.insert(key.end(), v->begin(), v->end());
  return cache.get(key, [&] { return build_plan(kind, p, has_bias); });
}

// Memory in the kernel's layout: the caller's own where the layouts agree.
class Staged {
 public:
  Staged(const memory::desc& user, void* data, const memory::desc& wanted)
      : user_(user),
        wanted_(wanted),
        data_(data),
        same_(user == wanted),
        copy_(same_ ? 0 : static_cast<int64_t>(wanted.get_size())) {}
  void* data() const { return same_ ? data_ : copy_.data(); }
  memory get() const { return onednn::memory_at(wanted_, data()); }
  void load() const {
    if (!same_) onednn::reorder(user_, data_, wanted_, copy_.data());
  }
  void store() const {
    if (!same_) onednn::reorder(wanted_, copy_.data(), user_, data_);
  }

 private:
  memory::desc user_, wanted_;
  void* data_;
  bool same_;
  Scratch<char> copy_;
};

// How a convolution is cut: `samples` of the batch and `channels` of the cut channel dimension a
// part.
struct Parts {
  int64_t samples, batch_parts;
  int64_t channels, channel_parts;
  int64_t count() const { return batch_parts * channel_parts; }
};

constexpr double kMinPartWork = 2e6;  // multiplications that are worth a part
constexpr int64_t kPartBytes = int64_t{768}
                               << 10;  // activations of a part: about the second-level cache

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Cuts `channels`, in multiples of `unit`, into as many parts as the work is worth when the batch
// alone gives few.
void cut_channels(Parts& parts, const ConvProblem& p, int64_t channels, int64_t unit) {
  parts.channels = channels;
  parts.channel_parts = 1;
  constexpr int64_t kEnough = 8;
  const double part_work = p.work_per_sample() * static_cast<double>(parts.samples);
  if (parts.batch_parts >= kEnough) return;
  int64_t wanted = std::min<int64_t>(ceil_div(kEnough, parts.batch_parts),
                                     static_cast<int64_t>(part_work / (4 * kMinPartWork)));
  wanted = std::min(wanted, channels / unit);
  if (wanted <= 1) return;
  parts.channels = ceil_div(ceil_div(channels, wanted), unit) * unit;
  parts.channel_parts = ceil_div(channels, parts.channels);
}

Parts cut(const ConvProblem& p, int64_t channels, int64_t unit) {
  const int64_t n = p.samples();
  const int64_t bytes = std::max<int64_t>(1, (p.x.nbytes() + p.y.nbytes()) / n);
  int64_t samples = std::max<int64_t>(1, std::min(kPartBytes / bytes, ceil_div(n, 8)));
  samples = std::max(samples, static_cast<int64_t>(std::min(
                                  1e9, kMinPartWork / std::max(1.0, p.work_per_sample()))));
  samples = std::min(samples, n);
  Parts parts{samples, ceil_div(n, samples), 0, 1};
  cut_channels(parts, p, channels, unit);
  return parts;
}

// The part of `p` that takes `samples` of the batch.
ConvProblem batch_part(const ConvProblem& p, int64_t start, int64_t length) {
  ConvProblem part = p;
  part.x = p.x.slice(0, start, length);
  part.y = p.y.slice(0, start, length);
  return part;
}

// Cutting output channels, input channels (one group only), or groups with all three arrays'
// channels.
ConvProblem cut_groups(const ConvProblem& p, int64_t start, int64_t length) {
  ConvProblem part = p;
  const int64_t out = p.w.sizes[0] / p.groups, in = p.w.sizes[1];
  part.x = p.x.slice(1, start * in, length * in);
  part.y = p.y.slice(1, start * out, length * out);
  part.w = p.w.slice(0, start * out, length * out);
  part.groups = length;
  return part;
}
ConvProblem channel_part(Kind kind, const ConvProblem& p, int64_t start, int64_t length) {
  if (p.groups > 1) return cut_groups(p, start, length);
  ConvProblem part = p;
  if (kind == Kind::kInputGradient) {
    part.x = p.x.slice(1, start, length);
    part.w = p.w.slice(1, start, length);
  } else {
    part.y = p.y.slice(1, start, length);
    part.w = p.w.slice(0, start, length);
  }
  return part;
}

// f32 copy of the bias, as the kernels want it.
std::vector<float> read_bias(const View& bias) {
  std::vector<float> out(static_cast<size_t>(bias.numel));
  for (size_t i = 0; i < out.size(); i++) {
    const int64_t at = static_cast<int64_t>(i) * bias.strides[0];
    out[i] = bias.dtype == DType::kFloat32 ? bias.as<float>()[at] : float(bias.as<BFloat16>()[at]);
  }
  return out;
}

// Forward and input gradient: every part reads the same weights and writes a part of the result of
// its own. False, with nothing done, where there is no kernel for some part.
bool run_parts(Kind kind, const ConvProblem& p, const View& bias) {
  const bool by_group = p.groups > 1;
  const int64_t channels = by_group                 ? p.groups
                           : kind == Kind::kForward ? p.y.sizes[1]
                                                    : p.x.sizes[1];
  const Parts parts = cut(p, channels, by_group ? 1 : 16);
  const int64_t tail = p.samples() - (parts.batch_parts - 1) * parts.samples;
  const std::vector<float> bias_values = bias.present ? read_bias(bias) : std::vector<float>();

  // The weights of each channel part, laid out for full and for the last batch part.
  struct Weights {
    std::shared_ptr<const Plan> plan[2];
    std::unique_ptr<Staged> staged[2];
  };
  std::vector<Weights> weights(static_cast<size_t>(parts.channel_parts));
  const auto channel_range = [&](int64_t part) {
    const int64_t start = part * parts.channels;
    return std::pair(start, std::min(parts.channels, channels - start));
  };
  const bool has_tail = tail != parts.samples;
  std::atomic<bool> lacks_kernel{false};
  parallel_for(0, parts.channel_parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const auto [start, length] = channel_range(i);
      const ConvProblem part = channel_part(kind, p, start, length);
      for (int v = 0; v < 2; v++) {
        if (v == 0 ? parts.batch_parts == 1 && has_tail : !has_tail) continue;
        Weights& mine = weights[static_cast<size_t>(i)];
        mine.plan[v] =
            find_plan(kind, batch_part(part, 0, v == 0 ? parts.samples : tail), bias.present);
        if (!mine.plan[v]->kernel) {
          lacks_kernel = true;
          return;
        }
        mine.staged[v] =
            std::make_unique<Staged>(mine.plan[v]->user_w, part.w.data, mine.plan[v]->w);
        mine.staged[v]->load();
      }
    }
  });
  if (lacks_kernel) return false;

  parallel_for(0, parts.count(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const int64_t c = i % parts.channel_parts, n = i / parts.channel_parts;
      const auto [start, length] = channel_range(c);
      const bool last = has_tail && n == parts.batch_parts - 1;
      const ConvProblem part = batch_part(channel_part(kind, p, start, length), n * parts.samples,
                                          last ? tail : parts.samples);
      const Plan& plan = *weights[static_cast<size_t>(c)].plan[last];
      const memory w = weights[static_cast<size_t>(c)].staged[last]->get();
      const Staged x(plan.user_x, part.x.data, plan.x), y(plan.user_y, part.y.data, plan.y);
      if (kind == Kind::kForward) {
        x.load();
        std::unordered_map<int, memory> arguments{
            {DNNL_ARG_SRC, x.get()}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DST, y.get()}};
        const int64_t first = by_group ? start * (p.w.sizes[0] / p.groups) : start;
        if (bias.present)
          arguments.emplace(
              DNNL_ARG_BIAS,
              onednn::memory_at(plan.bias, const_cast<float*>(bias_values.data() + first)));
        plan.kernel.run(std::move(arguments));
        y.store();
      } else {
        y.load();
        plan.kernel.run(
            {{DNNL_ARG_DIFF_DST, y.get()}, {DNNL_ARG_WEIGHTS, w}, {DNNL_ARG_DIFF_SRC, x.get()}});
        x.store();
      }
    }
  });
  return true;
}

constexpr int64_t kWeightBytes = int64_t{32}
                                 << 20;  // what partial weight gradients may take together

// The weight gradient: every part gives a partial sum over its samples; they are added in the order
// of the batch.
class WeightGradient {
 public:
  WeightGradient(const ConvProblem& p, const ConvArray& out)
      : p_(p), out_(p), by_group_(p.groups > 1), channels_(by_group_ ? p.groups : p.y.sizes[1]) {
    out_.w = out;
    const int64_t n = p.samples();
    const int64_t most =
        std::clamp<int64_t>(kWeightBytes / std::max<int64_t>(1, p.w.numel() * 4), 1, 16);
    const double worth = p.work_per_sample() * static_cast<double>(n) / kMinPartWork;
    parts_.samples = ceil_div(
        n, std::clamp<int64_t>(static_cast<int64_t>(std::min(worth, 1e9)), 1, std::min(n, most)));
    parts_.batch_parts = ceil_div(n, parts_.samples);
    cut_channels(parts_, p, channels_, by_group_ ? 1 : 16);
    for (int64_t c = 0; c < parts_.channel_parts; c++) {
      plans_.push_back(find_plan(Kind::kWeightGradient, part(c, 0), false));
      if (!plans_.back()->kernel || !tail_plan(c)->kernel) {
        has_kernels_ = false;
        return;
      }
      floats_ =
          std::max(floats_, static_cast<int64_t>(plans_.back()->w.get_size() / sizeof(float)));
    }
  }

  // False, with nothing done, where there is no kernel for some part.
  bool run() const {
    if (!has_kernels_) return false;
    const Scratch<float> partial(floats_ * parts_.count());
    parallel_for(0, parts_.count(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) run_part(i, partial.data() + i * floats_);
    });
    for (int64_t c = 0; c < parts_.channel_parts; c++)
      add_weights(c, partial.data() + c * parts_.batch_parts * floats_);
    return true;
  }

 private:
  ConvProblem channels_of(const ConvProblem& p, int64_t c) const {
    const int64_t start = c * parts_.channels;
    return channel_part(Kind::kWeightGradient, p, start,
                        std::min(parts_.channels, channels_ - start));
  }
  ConvProblem part(int64_t c, int64_t b) const {
    const int64_t first = b * parts_.samples;
    return batch_part(channels_of(p_, c), first, std::min(parts_.samples, p_.samples() - first));
  }

  // Of the last part of the batch, which may be shorter.
  std::shared_ptr<const Plan> tail_plan(int64_t c) const {
    const ConvProblem last = part(c, parts_.batch_parts - 1);
    return last.samples() == parts_.samples ? plans_[static_cast<size_t>(c)]
                                            : find_plan(Kind::kWeightGradient, last, false);
  }

  void run_part(int64_t i, float* weights) const {
    const int64_t c = i / parts_.batch_parts, b = i % parts_.batch_parts;
    const ConvProblem mine = part(c, b);
    const Plan& usual = *plans_[static_cast<size_t>(c)];
    const auto plan =
        mine.samples() == parts_.samples ? plans_[static_cast<size_t>(c)] : tail_plan(c);
    const Staged x(plan->user_x, mine.x.data, plan->x), y(plan->user_y, mine.y.data, plan->y);
    // A shorter last part may compute in another layout: it is stored in the usual one.
    const Staged w(usual.w, weights, plan->w);
    x.load();
    y.load();
    plan->kernel.run(
        {{DNNL_ARG_SRC, x.get()}, {DNNL_ARG_DIFF_DST, y.get()}, {DNNL_ARG_DIFF_WEIGHTS, w.get()}});
    w.store();
  }

  void add_weights(int64_t c, float* sum) const {
    parallel_for(0, floats_, int64_t{1} << 14, [&](int64_t begin, int64_t end) {
      for (int64_t b = 1; b < parts_.batch_parts; b++) {
        const float* other = sum + b * floats_;
        for (int64_t i = begin; i < end; i++) sum[i] += other[i];
      }
    });
    const ConvProblem mine = channels_of(out_, c);
    onednn::reorder(plans_[static_cast<size_t>(c)]->w, sum,
                    onednn::desc_of(with_groups(mine.w, mine.groups).view()), mine.w.data);
  }

  const ConvProblem& p_;
  ConvProblem out_;  // p_ with the result in place of w
  bool by_group_;
  int64_t channels_;
  Parts parts_;
  std::vector<std::shared_ptr<const Plan>> plans_;  // of a full part, by channel part
  int64_t floats_ = 0;
  bool has_kernels_ = true;
};

}  // namespace

bool onednn_convolves(DType dtype) {
  return dtype == DType::kFloat32 || (dtype == DType::kBFloat16 && onednn::multiplies_bf16());
}

bool onednn_conv_forward(const ConvProblem& p, const View& bias) {
  return run_parts(Kind::kForward, p, bias);
}
bool onednn_conv_input_gradient(const ConvProblem& p) {
  return run_parts(Kind::kInputGradient, p, {});
}
bool onednn_conv_weight_gradient(const ConvProblem& p, const ConvArray& out) {
  return WeightGradient(p, out).run();
}

}  // namespace taeda::cpu
