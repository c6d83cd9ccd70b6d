#include "core/allocator.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "base/block_list.h"
#include "core/storage_bytes.h"
#include "taeda/error.h"
#include "taeda/storage.h"

namespace taeda {
namespace {

TEST(CpuAllocator, BlocksAreAlignedApartAndKeepTheirBytes) {
  std::mt19937 rng(1);
  struct Live {
    unsigned char* memory;
    int64_t bytes;
    unsigned char mark;
  };
  std::vector<Live> live;
  const int64_t before = cpu_live_bytes();
  const auto check = [](const Live& block) {
    for (const int64_t at : {int64_t{0}, block.bytes / 2, block.bytes - 1})
      ASSERT_EQ(block.memory[at], block.mark);
  };
  for (int op = 0; op < 20000; op++) {
    if (rng() % 2 || live.empty()) {
      const int64_t bytes = 1 + static_cast<int64_t>(rng() % (uint32_t{1} << (1 + rng() % 22)));
      auto* memory = static_cast<unsigned char*>(allocate_cpu(bytes));
      ASSERT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
      const auto mark = static_cast<unsigned char>(rng());
      std::memset(memory, mark, static_cast<size_t>(bytes));
      live.push_back({memory, bytes, mark});
    } else {
      const size_t at = rng() % live.size();
      check(live[at]);
      release_cpu(live[at].memory, live[at].bytes);
      live[at] = live.back();
      live.pop_back();
    }
    if (live.size() > 100) {
      release_cpu(live[0].memory, live[0].bytes);
      live.erase(live.begin());
    }
  }
  EXPECT_GT(cpu_live_bytes(), before);
  for (const Live& block : live) {
    check(block);
    release_cpu(block.memory, block.bytes);
  }
  EXPECT_EQ(cpu_live_bytes(), before);
}

TEST(CpuAllocator, LargeBlocksAreReused) {
  const char* kind = std::getenv("TAEDA_ALLOCATOR");
  if (!kPoolBlocks && (!kind || std::string(kind) != "caching"))
    GTEST_SKIP() << "the system's allocator keeps nothing";
  void* p = allocate_cpu(64 << 20);
  std::memset(p, 1, 64 << 20);
  const MemoryStats before = cpu_memory_stats();
  release_cpu(p, 64 << 20);
  for (int i = 0; i < 10; i++) {
    void* q = allocate_cpu(64 << 20);
    EXPECT_EQ(q, p);
    release_cpu(q, 64 << 20);
  }
  EXPECT_EQ(cpu_memory_stats().device_allocations, before.device_allocations);
  empty_cpu_cache();
  EXPECT_LT(cpu_memory_stats().reserved_bytes.current, before.reserved_bytes.current);
}

TEST(CpuAllocator, ImpossibleSizesRaiseOutOfMemory) {
  for (const int64_t bytes : {int64_t{1} << 47, int64_t{1} << 60, INT64_MAX, int64_t{-1}}) {
    try {
      allocate_cpu(bytes);
      FAIL() << bytes;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
    }
  }
}

TEST(CpuAllocator, BlocksReleasedByOtherThreads) {
  const int64_t before = cpu_live_bytes();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([t] {
      std::vector<Ref<Storage>> mine;
      for (int i = 0; i < 2000; i++)
        mine.push_back(Storage::allocate(100 + 977 * ((i * 7 + t) % 90), DeviceType::kCPU));
      std::thread([&] { mine.resize(500); }).join();
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(cpu_live_bytes(), before);
}

TEST(Storage, MemoryRightBehindItIsReleased) {
  int released = 0;
  auto storage = Storage::allocate(0, DeviceType::kCPU);
  char* const behind = reinterpret_cast<char*>(storage.get()) + kStorageBlockBytes;
  storage->replace(
      behind, [](void* count) { ++*static_cast<int*>(count); }, &released);
  storage = {};
  EXPECT_EQ(released, 1);
}

TEST(CpuAllocator, ChildrenAllocateWhileTheParentsThreadsDo) {
  const std::jthread busy([](std::stop_token stop) {
    while (!stop.stop_requested()) {
      for (const int64_t bytes : {100, 100000, 3 << 20}) release_cpu(allocate_cpu(bytes), bytes);
    }
  });
  for (int round = 0; round < 30; round++) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      for (const int64_t bytes : {64, 100, 100000, 3 << 20}) {
        const auto storage = Storage::allocate(bytes, DeviceType::kCPU);
        std::memset(storage->data(), 1, static_cast<size_t>(bytes));
      }
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
}

}  // namespace
}  // namespace taeda
