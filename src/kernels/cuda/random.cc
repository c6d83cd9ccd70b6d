// Random numbers by Philox, dealt to threads as by PyTorch's CUDA kernels (text/random.cuh).
#include <cmath>

#include "device/launch.h"
#include "kernels/cpu/random/random.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/philox.h"
#include "kernels/cuda/shuffle_ties.h"
#include "kernels/cuda/walk.h"

namespace taeda::cuda {
namespace {

struct Distribution {
  std::string_view name;
  DType compute;
  int64_t per_draw;  // elements of a draw
  double a = 0, b = 0;
  uint64_t range = 0;
  int64_t base = 0;
};

void draw(const Distribution& what, const View& out, Generator& generator) {
  if (out.numel == 0) return;
  const Deal dealt = deal(out.device.index, out.numel, what.per_draw);
  device::RandomArgs args{};
  args.philox = take(generator, out, dealt.draws * 4);
  WalkPlan<1> walk;
  for (size_t d = 0; d < out.sizes.size(); d++)
    walk.add(out.sizes[d], {out.strides[d] * item_size(out.dtype)});
  walk.sort_by(0);
  args.walk = walk.walk();
  args.out = static_cast<char*>(out.data);
  args.threads = static_cast<uint64_t>(dealt.threads);
  args.a = what.a, args.b = what.b, args.range = what.range, args.base = what.base;
  args.type = element_type(out.dtype);
  const Access touched[] = {access(out, true), access(args.philox)};
  launch(out.device.index, kernel_name(what.name, what.compute, "_any"), dealt.threads, &args,
         touched);
}

void draw_floating(std::string_view name, const View& out, double a, double b, Generator& g) {
  const bool wide = out.dtype == DType::kFloat64;
  draw({name, wide ? DType::kFloat64 : DType::kFloat32, wide ? 2 : 4, a, b}, out, g);
}
void draw_integers(const View& out, uint64_t range, int64_t base, bool wide, Generator& g) {
  draw({"random_words", wide ? DType::kInt64 : DType::kInt32, wide ? 2 : 4, 0, 0, range, base}, out,
       g);
}

}  // namespace

void random_uniform(const View& out, double from, double to, Generator& generator) {
  draw_floating("random_uniform", out, from, to, generator);
}
void random_normal(const View& out, double mean, double std, Generator& generator) {
  draw_floating("random_normal", out, mean, std, generator);
}
void random_log_normal(const View& out, double mean, double std, Generator& generator) {
  draw_floating("random_log_normal", out, mean, std, generator);
}
void random_exponential(const View& out, double rate, Generator& generator) {
  draw_floating("random_exponential", out, rate, 0, generator);
}
void random_cauchy(const View& out, double median, double sigma, Generator& generator) {
  draw_floating("random_cauchy", out, median, sigma, generator);
}
void random_geometric(const View& out, double p, Generator& generator) {
  draw_floating("random_geometric", out, p, std::log1p(-p), generator);
}
void random_bernoulli(const View& out, double p, Generator& generator) {
  draw_floating("random_bernoulli", out, p, 0, generator);
}
void random_integers(const View& out, uint64_t range, int64_t base, Generator& generator) {
  draw_integers(out, range, base, range == 0 || range >> 28 != 0, generator);
}
void random_all_integers(const View& out, Generator& generator) {
  draw_integers(out, cpu::countable(out.dtype), 0, item_size(out.dtype) == 8, generator);
}

void shuffle_ties(const View& order, const View& keys, Generator& generator) {
  device::TiesArgs args{};
  args.keys = keys.as<int64_t>();
  args.order = order.as<int64_t>();
  args.n = static_cast<uint64_t>(order.numel);
  args.philox = take(generator, order, args.n);
  const Access touched[] = {access(order, true), access(keys, false), access(args.philox)};
  launch(order.device.index, "shuffle_ties_i64_any", order.numel, &args, touched);
}

}  // namespace taeda::cuda
