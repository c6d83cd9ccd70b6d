// Random numbers by Philox, dealt to threads as by PyTorch's CUDA kernels (text/random.cuh).
#include <algorithm>
#include <mutex>

#include "device/device.h"
#include "device/launch.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/text/random_args.h"
#include "kernels/cuda/walk.h"
#include "kernels/view.h"
#include "taeda/error.h"
#include "taeda/generator.h"

namespace taeda::cuda {
namespace {

// As PyTorch's, blocks have 256 threads, and a device's multiprocessors as many as fit.
constexpr int64_t kThreads = 256;
constexpr uint64_t kWords = 4;  // of a draw

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
  const Properties& card = properties(out.device.index);
  const int64_t most = int64_t{card.multiprocessors} * (card.threads_per_multiprocessor / kThreads);
  const int64_t blocks = std::min(most, (out.numel + kThreads - 1) / kThreads);
  const int64_t threads = blocks * kThreads;
  const auto draws = static_cast<uint64_t>((out.numel - 1) / (threads * what.per_draw) + 1);
  device::RandomArgs args{};
  {
    const std::scoped_lock lock(generator.mutex());
    auto& philox = static_cast<Philox&>(generator);
    args.seed = philox.initial_seed();
    args.offset = philox.take(draws * kWords);
  }
  WalkPlan<1> walk;
  for (size_t d = 0; d < out.sizes.size(); d++)
    walk.add(out.sizes[d], {out.strides[d] * item_size(out.dtype)});
  walk.sort_by(0);
  args.walk = walk.walk();
  args.out = static_cast<char*>(out.data);
  args.threads = static_cast<uint64_t>(threads);
  args.a = what.a, args.b = what.b, args.range = what.range, args.base = what.base;
  args.type = element_type(out.dtype);
  const Access touched[] = {access(out, true)};
  launch(out.device.index, kernel_name(what.name, what.compute, "_any"), threads, &args, touched);
}

// Numbers of a dtype are computed in float, or in double.
void draw_floating(std::string_view name, const View& out, double a, double b, Generator& g) {
  const bool wide = out.dtype == DType::kFloat64;
  draw({name, wide ? DType::kFloat64 : DType::kFloat32, wide ? 2 : 4, a, b}, out, g);
}

}  // namespace

void random_uniform(const View& out, double from, double to, Generator& generator) {
  draw_floating("random_uniform", out, from, to, generator);
}
void random_normal(const View& out, double mean, double std, Generator& generator) {
  draw_floating("random_normal", out, mean, std, generator);
}
void random_exponential(const View& out, double rate, Generator& generator) {
  draw_floating("random_exponential", out, rate, 0, generator);
}
void random_bernoulli(const View& out, double p, Generator& generator) {
  draw_floating("random_bernoulli", out, p, 0, generator);
}
void random_integers(const View& out, uint64_t range, int64_t base, Generator& generator) {
  const bool wide = range == 0 || range >> 32 != 0;
  draw({"random_words", wide ? DType::kInt64 : DType::kInt32, wide ? 2 : 4, 0, 0, range, base}, out,
       generator);
}

}  // namespace taeda::cuda
