// Which vector instructions Highway may use: its dispatch asks the functions below, which its
// header declares. They are defined here rather than taken from libhwy, which measures the
// resolution of the processor's timer as it is loaded: 3.9 million instructions, an eighth of
// importing taeda.
//
// TAEDA_CPU=baseline|avx2|avx512 limits the instructions: to compare them, and to test all on one
// machine.
#include "hwy/targets.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace hwy {

namespace {

// Read by the first dispatch, which initializers of other files may make.
constinit std::atomic<int64_t> disabled{0};
constinit ChosenTarget chosen;

#define SUPPORTS __builtin_cpu_supports

// What the processor and the operating system support. Each set of instructions contains those
// before it.
int64_t detected_targets() {
  __builtin_cpu_init();
  const bool sse4 =
      SUPPORTS("sse4.1") && SUPPORTS("sse4.2") && SUPPORTS("pclmul") && SUPPORTS("aes");
  const bool avx2 = SUPPORTS("avx2") && SUPPORTS("fma") && SUPPORTS("f16c") && SUPPORTS("lzcnt") &&
                    SUPPORTS("bmi") && SUPPORTS("bmi2");
  const bool avx3 = SUPPORTS("avx512f") && SUPPORTS("avx512vl") && SUPPORTS("avx512dq") &&
                    SUPPORTS("avx512bw") && SUPPORTS("avx512cd");
  const bool avx3_dl = SUPPORTS("avx512vnni") && SUPPORTS("vpclmulqdq") && SUPPORTS("vaes") &&
                       SUPPORTS("avx512vbmi") && SUPPORTS("avx512vbmi2") &&
                       SUPPORTS("avx512vpopcntdq") && SUPPORTS("avx512bitalg");
  const std::pair<int64_t, bool> levels[] = {
      {HWY_SSSE3, SUPPORTS("ssse3")}, {HWY_SSE4, sse4}, {HWY_AVX2, avx2}, {HWY_AVX3, avx3},
      {HWY_AVX3_DL, avx3_dl},
  };
  int64_t targets = HWY_STATIC_TARGET;
  for (const auto& [target, supported] : levels) {
    if (!supported) break;
    targets |= target;
  }
  return targets;
}

#undef SUPPORTS

}  // namespace

int64_t SupportedTargets() {
  static const int64_t detected = detected_targets();
  const int64_t enabled = detected & ~disabled.load(std::memory_order_relaxed);
  return enabled ? enabled : HWY_STATIC_TARGET;
}

void DisableTargets(int64_t disabled_targets) {
  disabled.store(disabled_targets, std::memory_order_relaxed);
  chosen.DeInit();  // the next dispatch chooses again
}

ChosenTarget& GetChosenTarget() { return chosen; }

}  // namespace hwy

namespace taeda {

namespace {

// Before the first dispatch, hence when the library is loaded.
[[maybe_unused]] const bool limited = [] {
  const char* text = std::getenv("TAEDA_CPU");
  if (!text || !*text) return false;
  const std::string_view level = text;
  if (level == "baseline") {
    hwy::DisableTargets(HWY_SSSE3 | HWY_SSE4 | HWY_AVX2 | HWY_AVX3 | HWY_AVX3_DL);
  } else if (level == "avx2") {
    hwy::DisableTargets(HWY_AVX3 | HWY_AVX3_DL);
  } else if (level != "avx512") {
    std::fprintf(stderr, "taeda: TAEDA_CPU=%s ignored: expected baseline, avx2 or avx512\n", text);
  }
  return true;
}();

}  // namespace

}  // namespace taeda
