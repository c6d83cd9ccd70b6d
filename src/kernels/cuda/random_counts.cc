// bernoulli by elements' probabilities (text/random.cuh), poisson, binomial and gamma
// numbers (text/counts.cuh).
#include "device/launch.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/philox.h"
#include "kernels/cuda/walk.h"
#include "taeda/error.h"

namespace taeda::cuda {
namespace {

constexpr auto kRuntimeError = static_cast<int32_t>(ErrorKind::kRuntime);

// Numbers of each element's distribution, by threads with up to `words` words each.
void count(const char* kernel, DType compute, const View& out, Span<const View> in, uint64_t words,
           int64_t work, Generator& generator) {
  if (out.numel == 0) return;
  device::CountArgs args{};
  args.out = static_cast<char*>(out.data);
  SmallVector<Access, 4> touched{access(out, true)};
  for (size_t k = 0; k < in.size(); k++) {
    args.in[k] = static_cast<const char*>(in[k].data);
    touched.push_back(access(in[k], false));
  }
  args.n = static_cast<uint64_t>(out.numel);
  args.philox = take(generator, out, words);
  args.message = {"invalid Poisson rate, expected rate to be non-negative", 0, kRuntimeError};
  args.type = element_type(out.dtype);
  args.itemsize = static_cast<uint32_t>(item_size(out.dtype));
  touched.push_back(access(args.philox));
  launch(out.device.index, kernel_name(kernel, compute, "_any"), work, &args, touched);
}

}  // namespace

void random_bernoulli_each(const View& out, const View& p, Generator& generator) {
  if (out.numel == 0) return;
  device::ChanceArgs args{};
  WalkPlan<2> walk;
  for (size_t d = 0; d < out.sizes.size(); d++)
    walk.add(out.sizes[d],
             {out.strides[d] * item_size(out.dtype), p.strides[d] * item_size(p.dtype)});
  walk.sort_by(0);
  args.walk = walk.walk();
  args.out = static_cast<char*>(out.data);
  args.p = static_cast<const char*>(p.data);
  args.philox = take(generator, out, 10);
  args.message = {"bernoulli: expected probabilities in [0, 1]", 0, kRuntimeError};
  args.type = element_type(out.dtype);
  args.p_type = element_type(p.dtype);
  args.wide = out.dtype == DType::kFloat64;
  const Access touched[] = {access(out, true), access(p, false), access(args.philox)};
  launch(out.device.index, "random_bernoulli_each_f64_any", (out.numel + 3) / 4, &args, touched);
}

void random_poisson(const View& out, const View& rate, Generator& generator) {
  count("random_poisson", DType::kFloat64, out, {&rate, 1}, 20, out.numel, generator);
}

void random_gamma(const View& out, const View& shape, Generator& generator) {
  count("random_gamma", out.dtype, out, {&shape, 1}, 10, out.numel, generator);
}

void random_binomial(const View& out, const View& trials, const View& prob, Generator& generator) {
  const View in[] = {trials, prob};
  const DType compute = out.dtype == DType::kFloat64 ? out.dtype : DType::kFloat32;
  count("random_binomial", compute, out, in, 42, (out.numel + 511) / 512 * 128, generator);
}

}  // namespace taeda::cuda
