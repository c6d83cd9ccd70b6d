// The gradients of layer_norm and group_norm (text/norm.cuh).
#include "device/launch.h"
#include "kernels/cuda/norm.h"

namespace taeda::cuda {
namespace {

void backward(const RowShape& s, const View& gx, const View& gw, const View& gb, const View& gy,
              const View& x, const View& mean, const View& rstd, const View& weight) {
  device::NormArgs args = norm_arguments(s, x);
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

void layer_norm_backward(const View& gx, const View& gw, const View& gb, const View& gy,
                         const View& x, IntSpan normalized_shape, const View& mean,
                         const View& rstd, const View& weight, double) {
  if (x.numel == 0) return fill_zero(gw), fill_zero(gb);
  backward(layer_shape(x, normalized_shape), gx, gw, gb, gy, x, Dense(mean), Dense(rstd),
           Dense(weight));
}
void group_norm_backward(const View& gx, const View& gw, const View& gb, const View& gy,
                         const View& x, int64_t groups, const View& mean, const View& rstd,
                         const View& weight, double) {
  if (x.numel == 0) return fill_zero(gw), fill_zero(gb);
  backward(group_shape(x, groups), gx, gw, gb, gy, x, Dense(mean), Dense(rstd), Dense(weight));
}

}  // namespace taeda::cuda
