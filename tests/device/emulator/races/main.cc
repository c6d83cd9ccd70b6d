// Kernels whose threads work together, under the thread sanitizer (tests/device/test_emulator.py):
// a sum by blocks in two launches, and a softmax. With the argument "broken" a sum that lacks the
// barrier before its last step.
#include <cstdio>
#include <cstring>
#include <vector>

#include "device/emulator/emulator.h"
#include "kernels/cuda/text/reduce_args.h"
#include "kernels/cuda/text/row_args.h"

using namespace taeda::device;
using taeda::emulator::Kernel;

namespace {

template <class Args>
void run(const char* name, dim3 grid, dim3 block, const Args& args) {
  const Kernel* const kernel = Kernel::find(name);
  taeda::emulator::launch(grid, block, 0, 1, [&] { kernel->run(&args); });
}

template <int N>
Walk<N> line(uint32_t n, int64_t stride) {
  Walk<N> walk{};
  walk.ndim = 1;
  walk.count = n;
  walk.sizes[0] = divisor(n);
  for (int k = 0; k < N; k++) walk.strides[0][k] = stride;
  return walk;
}

float sum(const std::vector<float>& x) {
  constexpr uint32_t kSplits = 3;
  std::vector<double> partial(kSplits);
  float result = 0;
  ReduceArgs args{};
  args.kept.count = 1;
  args.reduced = line<1>(static_cast<uint32_t>(x.size()), sizeof(float));
  args.x = reinterpret_cast<const char*>(x.data());
  args.out[0] = reinterpret_cast<char*>(&result);
  args.partial = reinterpret_cast<char*>(partial.data());
  args.splits = kSplits;
  args.split = (x.size() + kSplits - 1) / kSplits;
  args.threads = 128;
  args.x_type = args.out_types[0] = ElementType::kFloat32;
  args.parameter = 1;
  run("reduce_sum_f32_any", {kSplits}, {128}, args);
  args.threads = 1;
  run("join_sum_f32_any", {1}, {128}, args);
  return result;
}

std::vector<float> softmax(const std::vector<float>& x) {
  std::vector<float> y(x.size());
  RowArgs args{};
  args.rows.count = 1;
  args.data[0] = reinterpret_cast<char*>(y.data());
  args.data[1] = reinterpret_cast<char*>(const_cast<float*>(x.data()));
  args.strides[0] = args.strides[1] = sizeof(float);
  args.n = x.size();
  args.threads = 128;
  args.types[0] = args.types[1] = ElementType::kFloat32;
  run("softmax_f32_any", {1}, {128}, args);
  return y;
}

// Warps leave their sums in shared memory, and the first thread adds them up, whenever that may be.
void broken_sum(const float* x, float* out) {
  TD_SHARED(float, part, 4);
  float s = x[threadIdx.x];
  for (int bits = 16; bits > 0; bits /= 2) s += __shfl_xor_sync(0xffffffffu, s, bits);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  if (threadIdx.x == 0) *out = part[0] + part[1] + part[2] + part[3];
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<float> x(1000, 0.5f);
  if (argc > 1 && std::strcmp(argv[1], "broken") == 0) {
    float result = 0;
    taeda::emulator::launch({1}, {128}, 0, 1, [&] { broken_sum(x.data(), &result); });
    return 0;
  }
  std::printf("%g %g\n", static_cast<double>(sum(x)), static_cast<double>(softmax(x)[7]));
  return 0;
}
