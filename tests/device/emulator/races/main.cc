// Kernels whose threads work together, under the thread sanitizer (tests/device/test_emulator.py):
// a sum by blocks in two launches, a softmax, cumulative sums and a scan's tangents, a loss,
// additions by a warp, the numbers of flags that are true in three launches, the mode of a sorted
// row and a draw by weight. With the argument "broken" a sum that lacks the barrier before its last
// step.
#include <cstdio>
#include <cstring>
#include <vector>

#include "device/emulator/emulator.h"
#include "kernels/cuda/text/compact_args.h"
#include "kernels/cuda/text/loss_args.h"
#include "kernels/cuda/text/pool_args.h"
#include "kernels/cuda/text/random_args.h"
#include "kernels/cuda/text/reduce_args.h"
#include "kernels/cuda/text/row_args.h"
#include "kernels/cuda/text/sort_args.h"

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

// softmax or cumsum
std::vector<float> along(const char* kernel, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  RowArgs args{};
  args.rows.count = 1;
  args.data[0] = reinterpret_cast<char*>(y.data());
  args.data[1] = reinterpret_cast<char*>(const_cast<float*>(x.data()));
  args.strides[0] = args.strides[1] = sizeof(float);
  args.n = x.size();
  args.threads = 128;
  args.types[0] = args.types[1] = ElementType::kFloat32;
  run(kernel, {1}, {128}, args);
  return y;
}

float cross_entropy(const std::vector<float>& x) {
  const int64_t target = 7;
  std::vector<double> sums(2);
  float loss = 0, lse = 0;
  const auto array = [](const float& first) {
    return Array{reinterpret_cast<char*>(const_cast<float*>(&first)), ElementType::kFloat32};
  };
  CrossEntropyArgs args{};
  args.x = array(x[0]), args.out = array(loss), args.lse = array(lse);
  args.target = &target;
  args.sums = sums.data();
  args.n = 1;
  args.classes = static_cast<int64_t>(x.size());
  args.ignored = -100;
  args.smoothing = 0.5;
  args.threads = 128;
  run("cross_entropy_f32_any", {1}, {128}, args);
  return loss;
}

// The last of the tangents of running products of ones, where all elements move by 1.
float cumprod_tangent(size_t n) {
  const std::vector<float> ones(n, 1.0f);
  std::vector<float> s(n);
  RowArgs args{};
  args.rows.count = 1;
  args.data[0] = reinterpret_cast<char*>(s.data());
  for (int k = 0; k < 3; k++) {
    if (k > 0) args.data[k] = reinterpret_cast<char*>(const_cast<float*>(ones.data()));
    args.strides[k] = sizeof(float);
    args.types[k] = ElementType::kFloat32;
  }
  args.n = n;
  args.threads = 128;
  run("cumprod_tangent_f32_any", {1}, {128}, args);
  return s.back();
}

// n ones added to two elements in turn: what the first then is.
float pool_scatter(int64_t n) {
  const std::vector<float> gy(static_cast<size_t>(n), 1.0f);
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < n; i++) indices.push_back(i % 2);
  std::vector<float> gx(2);
  PoolArgs args{};
  args.each.count = 1;
  args.in = 2, args.out = n;
  args.result = reinterpret_cast<char*>(gx.data());
  args.x = reinterpret_cast<const char*>(gy.data());
  args.indices = indices.data();
  run("pool_scatter_f32_any", {1}, {128}, args);
  return gx[0];
}

// The numbers of the flags that are true, by two blocks.
std::vector<int64_t> where(const std::vector<uint8_t>& flags) {
  CompactArgs args{};
  std::vector<int64_t> starts(4), out(flags.size());
  args.walk = line<2>(static_cast<uint32_t>(flags.size()), 1);
  args.flags = reinterpret_cast<const char*>(flags.data());
  args.out = reinterpret_cast<char*>(out.data());
  args.starts = starts.data();
  args.chunk = kTile;
  args.chunks = (flags.size() + kTile - 1) / kTile;
  args.sizes[0] = static_cast<int64_t>(flags.size());
  args.stride = args.dim_stride = sizeof(int64_t);
  args.ndim = 1;
  args.type = ElementType::kBool;
  run("compact_count_i64_any", {2}, {128}, args);
  run("compact_starts_i64_any", {1}, {128}, args);
  run("compact_nonzero_i64_any", {2}, {128}, args);
  out.resize(static_cast<size_t>(starts[args.chunks]));
  return out;
}

// Of a row of keys in their order, which are the elements, too.
int64_t mode(std::vector<uint64_t> keys) {
  SortArgs args{};
  std::vector<int64_t> order(keys.size());
  for (size_t i = 0; i < order.size(); i++) order[i] = static_cast<int64_t>(i);
  int64_t value = 0, index = 0;
  args.rows.count = 1;
  args.n = keys.size();
  args.keys[0] = keys.data();
  args.order[0] = order.data();
  args.data[0] = reinterpret_cast<char*>(keys.data());
  args.data[1] = reinterpret_cast<char*>(&value);
  args.data[2] = reinterpret_cast<char*>(&index);
  args.strides[0] = sizeof(uint64_t);
  args.pick = Pick::kMode;
  args.threads = 128;
  run("sort_pick_i64_any", {1}, {128}, args);
  return value;
}

// With equal keys, the heaviest.
int64_t category(const std::vector<float>& weights) {
  std::vector<float> keys(weights.size(), 1.0f);
  int64_t drawn = -1;
  MultinomialArgs args{};
  args.weights = reinterpret_cast<const char*>(weights.data());
  args.keys = reinterpret_cast<char*>(keys.data());
  args.out = &drawn;
  args.rows = args.samples = 1;
  args.n = weights.size();
  args.threads = 128;
  args.type = ElementType::kFloat32;
  args.itemsize = sizeof(float);
  run("multinomial_rows_f32_any", {1}, {128}, args);
  return drawn;
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
  for (const float result :
       {sum(x), along("softmax_f32_any", x)[7], along("cumsum_f32_any", x)[998], cross_entropy(x),
        cumprod_tangent(1000), pool_scatter(100)})
    std::printf("%g ", static_cast<double>(result));
  std::vector<uint8_t> flags(2500);
  for (size_t i = 0; i < flags.size(); i += 100) flags[i] = 1;
  std::vector<uint64_t> keys(300);
  for (size_t i = 0; i < keys.size(); i++) keys[i] = i < 100 ? i / 2 : i / 50;
  for (size_t i = 100; i < keys.size(); i++) keys[i] += 100;
  std::vector<float> heavy = x;
  heavy[611] = 0.75f;
  const std::vector<int64_t> found = where(flags);
  for (const int64_t result :
       {static_cast<int64_t>(found.size()), found.back(), mode(keys), category(heavy)})
    std::printf("%lld ", static_cast<long long>(result));
  return 0;
}
