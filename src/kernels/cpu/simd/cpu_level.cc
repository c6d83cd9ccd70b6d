// TAEDA_CPU=baseline|avx2|avx512 limits the vector instructions in use: to compare them, and to
// test all on one machine.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "hwy/targets.h"

namespace taeda::cpu {

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

}  // namespace taeda::cpu
