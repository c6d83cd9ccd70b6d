// The multiply-adds a second that this processor does on numbers in registers: what no product can
// exceed. Compiled for the machine it runs on; `peak THREADS` answers as bench/worker.py does.

#include <immintrin.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr int kChains = 12;  // as many sums at a time: a multiply-add takes four cycles, two begin

#if defined(__AVX512F__)
using Vector = float __attribute__((vector_size(64)));
#else
using Vector = float __attribute__((vector_size(32)));
#endif
constexpr int kLanes = sizeof(Vector) / sizeof(float);

// `steps` multiply-adds in each of kChains vectors; kChains * kLanes * 2 operations a step.
void floats(int64_t steps) {
  Vector sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = Vector{} + static_cast<float>(i);
  Vector a = Vector{} + 0.5f, b = Vector{} + 0.25f;
  for (int64_t i = 0; i < steps; ++i) {
    asm volatile("" : "+x"(a), "+x"(b));  // not known, so not computed beforehand
#pragma GCC unroll 12
    for (Vector& sum : sums) sum = a * sum + b;
  }
#pragma GCC unroll 12
  for (Vector& sum : sums) asm volatile("" ::"x"(sum));
}

#if defined(__AVX512BF16__) && !defined(__AMX_BF16__)
constexpr int kHalfOperations = kChains * 16 * 4;  // two products and sums a lane

void halves(int64_t steps) {
  __m512 sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  __m512i a = _mm512_set1_epi16(0x3f00), b = a;
  for (int64_t i = 0; i < steps; ++i) {
    asm volatile("" : "+x"(a), "+x"(b));
#pragma GCC unroll 12
    for (__m512& sum : sums) {
      sum = _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh&>(a), reinterpret_cast<__m512bh&>(b));
    }
  }
#pragma GCC unroll 12
  for (__m512& sum : sums) asm volatile("" ::"x"(sum));
}
#else
constexpr int kHalfOperations = 0;
void halves(int64_t) {}
#endif

double seconds(void (*run)(int64_t), int64_t steps, int threads) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(run, steps);
  run(steps);
  for (std::thread& other : others) other.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

// A line "peak<tab>f32 or bf16<tab>LOOPS" is answered by the seconds of LOOPS times kOperations on
// each thread, or for LOOPS 0 by the loops that take some 40 ms.
int main(int, char** arguments) {
  constexpr int64_t kOperations = 1 << 20;
  const int threads = std::atoi(arguments[1]);
  char suite[16], name[16];
  long loops = 0;
  while (std::scanf("%15s %15s %ld", suite, name, &loops) == 3) {
    const bool half = std::strcmp(name, "bf16") == 0;
    if (half && kHalfOperations == 0) {
      std::printf("error: no known bf16 instruction\n");
    } else {
      const auto run = half ? halves : floats;
      const int64_t operations = half ? kHalfOperations : kChains * kLanes * 2;
      const auto steps = [&](long wanted) { return wanted * kOperations / operations; };
      if (loops == 0) {
        const double took = seconds(run, steps(1000), threads);
        std::printf("%ld\n", static_cast<long>(1000 * 0.04 / took) + 1);
      } else {
        std::printf("%.9f\n", seconds(run, steps(loops), threads));
      }
    }
    std::fflush(stdout);
  }
}
