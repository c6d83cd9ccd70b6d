#include "device/emulator/races/kernels.h"
#include "device/emulator/races/run.h"
#include "kernels/cuda/text/compact_args.h"
#include "kernels/cuda/text/pool_args.h"
#include "kernels/cuda/text/reduce_args.h"

namespace taeda::races {

using namespace device;

namespace {

template <int N>
Walk<N> line(uint32_t n, int64_t stride) {
  Walk<N> walk{};
  walk.ndim = 1;
  walk.count = n;
  walk.sizes[0] = divisor(n);
  for (int k = 0; k < N; k++) walk.strides[0][k] = stride;
  return walk;
}

}  // namespace

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

}  // namespace taeda::races
