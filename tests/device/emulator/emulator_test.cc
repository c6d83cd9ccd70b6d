#include "device/emulator/emulator.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace taeda::emulator {
namespace {

// Sums of a block's threads, thread by thread: y[b] = sum of x[b * blockDim.x + t].
template <bool kBarrier>
void block_sum(const float* x, float* y) {
  TD_SHARED(float, part, 32);
  float sum = x[blockIdx.x * blockDim.x + threadIdx.x];
  for (int bits = 16; bits > 0; bits /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, bits);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  if constexpr (kBarrier) __syncthreads();
  if (threadIdx.x != 0) return;
  float total = 0;
  for (unsigned w = 0; w < blockDim.x / 32; w++) total += part[w];
  y[blockIdx.x] = total;
}

std::vector<float> numbers(size_t n) {
  std::vector<float> x(n);
  for (size_t i = 0; i < n; i++) x[i] = static_cast<float>(i % 17) - 5;
  return x;
}

TEST(Emulator, EveryThreadRunsOnce) {
  std::multiset<unsigned> seen;
  launch({3, 2}, {5, 2, 3}, 0, 7, [&] {
    const unsigned thread = threadIdx.x + 5 * (threadIdx.y + 2 * threadIdx.z);
    seen.insert(thread + 30 * (blockIdx.x + 3 * blockIdx.y));
    EXPECT_EQ(gridDim.x, 3u);
    EXPECT_EQ(blockDim.z, 3u);
  });
  ASSERT_EQ(seen.size(), 180u);
  for (unsigned i = 0; i < 180; i++) EXPECT_EQ(seen.count(i), 1u);
}

TEST(Emulator, BarriersAndShufflesGiveTheSameInEveryOrder) {
  const std::vector<float> x = numbers(4 * 128);
  for (uint32_t seed = 0; seed < 20; seed++) {
    std::vector<float> y(4, -1);
    launch({4}, {128}, 0, seed, [&] { block_sum<true>(x.data(), y.data()); });
    for (size_t b = 0; b < 4; b++) {
      float expected = 0;
      for (size_t i = 0; i < 128; i++) expected += x[b * 128 + i];
      EXPECT_EQ(y[b], expected);
    }
  }
}

TEST(Emulator, AMissingBarrierShows) {
  const std::vector<float> x = numbers(256);
  int wrong = 0;
  for (uint32_t seed = 0; seed < 20; seed++) {
    float right = 0, y = 0;
    launch({1}, {256}, 0, seed, [&] { block_sum<true>(x.data(), &right); });
    launch({1}, {256}, 0, seed, [&] { block_sum<false>(x.data(), &y); });
    wrong += y != right;  // shared memory that nobody wrote is NaN
  }
  EXPECT_GE(wrong, 10);
}

TEST(Emulator, BallotsSeeTheLanesOfTheMask) {
  launch({1}, {64}, 0, 3, [] {
    EXPECT_EQ(__ballot_sync(0xffffffffu, threadIdx.x % 2 == 0), 0x55555555u);
    if (threadIdx.x % 32 < 8) {
      EXPECT_EQ(__ballot_sync(0xffu, 1), 0xffu);
      const unsigned next = __shfl_down_sync(0xffu, threadIdx.x, 1);
      if (threadIdx.x % 32 < 7) {
        EXPECT_EQ(next, threadIdx.x + 1);
      }
    }
    __syncwarp();
    EXPECT_EQ(__shfl_sync(0xffffffffu, threadIdx.x, 5), threadIdx.x / 32 * 32 + 5);
    const unsigned lane = threadIdx.x % 32, up = __shfl_up_sync(0xffffffffu, threadIdx.x, 4);
    EXPECT_EQ(up, lane < 4 ? threadIdx.x : threadIdx.x - 4);
  });
}

std::string fault_of(dim3 block, const std::function<void()>& thread) {
  try {
    launch({1}, block, 0, 1, thread);
    return "";
  } catch (const LaunchError& error) {
    return error.what();
  }
}

TEST(Emulator, ThreadsAtDifferentBarriersAreAFault) {
  const std::string text = fault_of({64}, [] {
    if (threadIdx.x < 32)
      __syncthreads();
    else
      __syncthreads();
  });
  EXPECT_NE(text.find("wait at different barriers: "), std::string::npos) << text;
}
TEST(Emulator, WarpOperationsNeedTheLanesOfTheirMask) {
  EXPECT_NE(fault_of({32},
                     [] {
                       if (threadIdx.x == 3) return;
                       __syncwarp();
                     })
                .find("a lane whose thread has ended"),
            std::string::npos);
  EXPECT_NE(fault_of({32},
                     [] {
                       if (threadIdx.x == 3)
                         __syncthreads();
                       else
                         __syncwarp();
                     })
                .find("never arrives"),
            std::string::npos);
  EXPECT_NE(fault_of({32}, [] { __syncwarp(1); }).find("leaves out the lane"), std::string::npos);
}
TEST(Emulator, LaunchesStayWithinTheHardwaresLimits) {
  const auto nothing = [] {};
  EXPECT_THROW(launch({1}, {1025}, 0, 0, nothing), LaunchError);
  EXPECT_THROW(launch({0}, {32}, 0, 0, nothing), LaunchError);
  EXPECT_THROW(launch({1, 65536}, {32}, 0, 0, nothing), LaunchError);
  EXPECT_THROW(launch({1}, {32}, 228 << 10, 0, nothing), LaunchError);
}
TEST(Emulator, SharedMemoryIsTheBlocksOwn) {
  std::vector<float> first(6);
  launch({6}, {32}, 4 * sizeof(float), 5, [&] {
    TD_DYNAMIC_SHARED(float, own);
    if (threadIdx.x == 0) {
      first[blockIdx.x] = own[3];
      own[3] = 1;
    }
  });
  for (const float x : first) EXPECT_TRUE(std::isnan(x));
}
TEST(Emulator, AThreadThatEndsEarlyLeavesTheOthers) {
  int others = 0;
  launch({1}, {64}, 0, 1, [&] {
    if (threadIdx.x % 2) end_thread();
    others++;
  });
  EXPECT_EQ(others, 32);
}

}  // namespace
}  // namespace taeda::emulator
