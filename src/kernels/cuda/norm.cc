// layer_norm, group_norm and batch_norm with their gradients (text/norm.cuh).
#include "kernels/cuda/norm.h"

#include <algorithm>

#include "device/launch.h"
#include "kernels/copy.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/rows.h"
#include "kernels/product.h"

namespace taeda::cuda {
namespace {

constexpr int64_t kEnoughThreads = 1 << 16;
constexpr int64_t kMaxSplits = 256;

}  // namespace

Dense::Dense(const View& v) : view_(v) {
  int64_t stride = 1;
  bool dense = true;
  strides_ = DimVector(v.sizes);
  for (size_t d = v.sizes.size(); d-- > 0; stride *= v.sizes[d]) {
    strides_[d] = stride;
    dense &= v.sizes[d] == 1 || v.strides[d] == stride;
  }
  if (!v.present || dense || v.numel == 0) return;
  copy_.emplace(v.device, v.numel * item_size(v.dtype));
  view_.data = copy_->data();
  view_.strides = strides_;
  kernels::copy(view_, v);
}

device::Array array(const View& v) {
  if (!v.present) return {};
  return {static_cast<char*>(v.data), element_type(v.dtype)};
}
std::string norm_kernel_name(std::string_view kernel, const View& x) {
  return kernel_name(kernel, dtype_info(x.dtype).compute, "_any");
}

Accesses accesses(Span<const View> written, Span<const View> read) {
  Accesses all;
  for (const View& v : written)
    if (v.present) all.push_back(access(v, true));
  for (const View& v : read)
    if (v.present) all.push_back(access(v, false));
  return all;
}

void norm_sums(SumsPlan& plan, device::NormSumsArgs& args, const View& x, Accesses touched) {
  const auto count = static_cast<int64_t>(plan.kept.walk().count);
  const auto n = static_cast<int64_t>(plan.reduced.walk().count);
  plan.reduced.sort_by(0);
  args.threads = group_size(n, plan.reduced.innermost(0), plan.kept.innermost(0));
  const int64_t wanted = kEnoughThreads / (count * args.threads);
  const int64_t worth = n / (int64_t{args.threads} * 32);
  const int64_t splits = std::clamp<int64_t>(std::min(wanted, worth), 1, kMaxSplits);
  args.kept = plan.kept.walk();
  args.reduced = plan.reduced.walk();
  args.splits = static_cast<uint32_t>(splits);
  args.split = static_cast<uint64_t>((n + splits - 1) / splits);
  const Workspace states(x.device, splits > 1 ? count * splits * 16 : 1);
  args.partial = splits > 1 ? states.data() : nullptr;
  touched.push_back(states.access(true));
  launch(x.device.index, norm_kernel_name("norm_sums", x), count * splits * args.threads, &args,
         touched);
  if (splits == 1) return;
  launch(x.device.index, norm_kernel_name("norm_sums_join", x), count, &args, touched);
}

namespace {

void zero(const View& v) {
  if (v.present && v.numel) kernels::fill(v, Scalar(0.0));
}

// Rows of x: which parameter an element has.
struct RowShape {
  int64_t rows, n, groups, per_group, positions;
};
RowShape layer_shape(const View& x, IntSpan normalized) {
  const int64_t n = kernels::product(normalized);
  return {x.numel / n, n, 1, n, 1};
}
RowShape group_shape(const View& x, int64_t groups) {
  const int64_t per_group = x.sizes[1] / groups;
  const int64_t positions = x.numel / (x.sizes[0] * x.sizes[1]);
  return {x.sizes[0] * groups, per_group * positions, groups, per_group, positions};
}

device::NormArgs arguments(const RowShape& s, const View& x) {
  TD_CHECK(s.n < INT32_MAX, "a row of {} elements is too long for a CUDA kernel", s.n);
  device::NormArgs args{};
  args.x = array(x);
  args.rows = static_cast<uint64_t>(s.rows);
  args.n = static_cast<uint32_t>(s.n);
  args.groups = static_cast<uint32_t>(s.groups);
  args.per_group = static_cast<uint32_t>(s.per_group);
  args.positions = device::divisor(static_cast<uint32_t>(s.positions));
  args.threads = group_size(s.n, item_size(x.dtype), 0);
  return args;
}

void forward(const RowShape& s, const View& out, const View& mean, const View& rstd, const View& x,
             const View& weight, const View& bias, double eps) {
  device::NormArgs args = arguments(s, x);
  args.out = array(out), args.mean = array(mean), args.rstd = array(rstd);
  args.weight = array(weight), args.bias = array(bias), args.eps = eps;
  const View written[] = {out, mean, rstd}, read[] = {x, weight, bias};
  launch(x.device.index, norm_kernel_name("norm", x), s.rows * args.threads, &args,
         accesses(written, read));
}

void backward(const RowShape& s, const View& gx, const View& gw, const View& gb, const View& gy,
              const View& x, const View& mean, const View& rstd, const View& weight) {
  device::NormArgs args = arguments(s, x);
  args.out = array(gx), args.gy = array(gy), args.mean = array(mean), args.rstd = array(rstd);
  args.weight = array(weight);
  const View written[] = {gx}, read[] = {gy, x, mean, rstd, weight};
  if (gx.present)
    launch(x.device.index, norm_kernel_name("norm_backward", x), s.rows * args.threads, &args,
           accesses(written, read));
  if (!gw.present && !gb.present) return;
  device::NormSumsArgs of{};
  of.x = array(x), of.gy = array(gy), of.mean = array(mean), of.scale = array(rstd);
  of.gw = array(gw), of.gb = array(gb);
  const int64_t xs = item_size(x.dtype), gs = item_size(gy.dtype), row = s.n, p = s.positions;
  SumsPlan plan;
  plan.kept.add(s.groups, {row * xs, row * gs, 1});
  plan.kept.add(s.per_group, {p * xs, p * gs, 0});
  plan.reduced.add(s.rows / s.groups, {s.groups * row * xs, s.groups * row * gs, s.groups});
  plan.reduced.add(p, {xs, gs, 0});
  const View sums_written[] = {gw, gb}, sums_read[] = {gy, x, mean, rstd};
  norm_sums(plan, of, x, accesses(sums_written, sums_read));
}

}  // namespace

void layer_norm(const View& out, const View& mean, const View& rstd, const View& x,
                IntSpan normalized_shape, const View& weight, const View& bias, double eps) {
  if (x.numel == 0) return zero(mean), zero(rstd);
  forward(layer_shape(x, normalized_shape), out, mean, rstd, x, Dense(weight), Dense(bias), eps);
}
void layer_norm_backward(const View& gx, const View& gw, const View& gb, const View& gy,
                         const View& x, IntSpan normalized_shape, const View& mean,
                         const View& rstd, const View& weight, double) {
  if (x.numel == 0) return zero(gw), zero(gb);
  backward(layer_shape(x, normalized_shape), gx, gw, gb, gy, x, Dense(mean), Dense(rstd),
           Dense(weight));
}
void group_norm(const View& out, const View& mean, const View& rstd, const View& x, int64_t groups,
                const View& weight, const View& bias, double eps) {
  if (x.numel == 0) return zero(mean), zero(rstd);
  forward(group_shape(x, groups), out, mean, rstd, x, Dense(weight), Dense(bias), eps);
}
void group_norm_backward(const View& gx, const View& gw, const View& gb, const View& gy,
                         const View& x, int64_t groups, const View& mean, const View& rstd,
                         const View& weight, double) {
  if (x.numel == 0) return zero(gw), zero(gb);
  backward(group_shape(x, groups), gx, gw, gb, gy, x, Dense(mean), Dense(rstd), Dense(weight));
}

}  // namespace taeda::cuda
