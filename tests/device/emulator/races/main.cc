// Kernels whose threads work together, under the thread sanitizer (tests/device/test_emulator.py):
// without an argument those of the library, and what they give; with a name one that lacks a
// barrier, with a second argument the same one that has it.
#include <cstdio>

#include "device/emulator/races/kernels.h"

using namespace taeda::races;

namespace {

// 25 flags of 2,500.
std::vector<int64_t> flagged() {
  std::vector<uint8_t> flags(2500);
  for (size_t i = 0; i < flags.size(); i += 100) flags[i] = 1;
  return where(flags);
}

// Pairs of keys, then fifty each of 102 and more.
std::vector<uint64_t> sorted_keys() {
  std::vector<uint64_t> keys(300);
  for (size_t i = 0; i < keys.size(); i++) keys[i] = i < 100 ? i / 2 : 100 + i / 50;
  return keys;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) return run_planted(argv[1], argc > 2) ? 0 : 2;
  const std::vector<float> x(1000, 0.5f);
  std::vector<float> heavy = x;
  heavy[611] = 0.75f;
  for (const float result :
       {sum(x), along("softmax_f32_any", x)[7], along("cumsum_f32_any", x)[998], cross_entropy(x),
        cumprod_tangent(1000), pool_scatter(100)})
    std::printf("%g ", static_cast<double>(result));
  const std::vector<int64_t> found = flagged();
  for (const int64_t result :
       {static_cast<int64_t>(found.size()), found.back(), mode(sorted_keys()), category(heavy)})
    std::printf("%lld ", static_cast<long long>(result));
  return 0;
}
