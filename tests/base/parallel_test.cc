#include "base/parallel.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/cgroup.h"
#include "base/cpus.h"
#include "taeda/error.h"

namespace taeda {
namespace {

// Gives the test `threads` threads, whatever the machine has.
class Threads {
 public:
  explicit Threads(int threads) : saved_(get_num_threads()) { set_num_threads(threads); }
  ~Threads() { set_num_threads(saved_); }

 private:
  int saved_;
};

std::set<std::pair<int64_t, int64_t>> splits(int64_t n, int64_t grain) {
  std::mutex mutex;
  std::set<std::pair<int64_t, int64_t>> seen;
  parallel_for(0, n, grain, [&](int64_t begin, int64_t end) {
    std::lock_guard<std::mutex> lock(mutex);
    EXPECT_TRUE(seen.insert({begin, end}).second);
  });
  return seen;
}

TEST(Parallel, EveryIndexOnceAndTheSameSplitsForAnyThreadCount) {
  for (const int64_t n : {0, 1, 7, 8, 9, 1000, 100003}) {
    for (const int64_t grain : {1, 8, 4096}) {
      std::set<std::pair<int64_t, int64_t>> first;
      for (const int threads : {1, 2, 5}) {
        Threads scope(threads);
        const auto seen = splits(n, grain);
        int64_t at = 0;
        for (const auto& [begin, end] : seen) {
          EXPECT_EQ(begin, at);
          at = end;
        }
        EXPECT_EQ(at, n);
        if (threads == 1)
          first = seen;
        else
          EXPECT_EQ(seen, first);
      }
    }
  }
}

// Two threads inside of one region at the same time, within 20 ms.
bool is_shared() {
  std::atomic<int> inside{0};
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  parallel_for(0, 2, 1, [&](int64_t, int64_t) {
    inside++;
    while (inside.load() < 2 && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    inside.fetch_add(inside.load() >= 2 ? 10 : -1);
  });
  return inside.load() >= 20;
}

// A region is shared where a core is free for a worker: for a while on a busy machine, none is.
TEST(Parallel, WorkersTakePart) {
  Threads scope(3);
  bool awake = false, asleep = false;
  for (int round = 0; round < 500 && !awake; round++) awake = is_shared();
  for (int round = 0; round < 500 && !asleep; round++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    asleep = is_shared();
  }
  EXPECT_TRUE(awake);
  EXPECT_TRUE(asleep);
}

TEST(Parallel, ShortAndLongRegionsBetweenPauses) {
  Threads scope(2);
  for (int round = 0; round < 400; round++) {
    const int64_t n = 1 + round * 37 % 1000, spins = round % 5 == 0 ? 20000 : 10;
    std::vector<int> hits(static_cast<size_t>(n));
    parallel_for(0, n, 1 + round % 7, [&](int64_t begin, int64_t end) {
      for (volatile int64_t i = 0; i < spins;) i = i + 1;
      for (int64_t i = begin; i < end; i++) hits[static_cast<size_t>(i)]++;
    });
    EXPECT_EQ(std::count(hits.begin(), hits.end(), 1), n);
    if (round % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(round));
  }
}

TEST(Parallel, ChunkTimesRememberTheLongestOfLate) {
  detail::ChunkTime time;
  EXPECT_EQ(time.of(5), 0);
  time.learn(1000);
  EXPECT_EQ(time.of(5), 5000);
  time.learn(1);  // one short job says little about the next
  EXPECT_EQ(time.of(1), 875);
  for (int i = 0; i < 100; i++) time.learn(0);
  EXPECT_LE(time.of(1), 8);
  EXPECT_GT(time.of(1), 0);  // known, though too short for the clock
  time.learn(500);
  EXPECT_EQ(time.of(2), 1000);
}

TEST(Parallel, NestedRunsInline) {
  Threads scope(4);
  std::atomic<int64_t> sum{0};
  parallel_for(0, 16, 1, [&](int64_t begin, int64_t end) {
    EXPECT_TRUE(in_parallel_region());
    const std::thread::id outer = std::this_thread::get_id();
    for (int64_t i = begin; i < end; i++) {
      parallel_for(0, 100, 1, [&](int64_t from, int64_t to) {
        EXPECT_EQ(std::this_thread::get_id(), outer);
        for (int64_t j = from; j < to; j++) sum += i * j;
      });
    }
  });
  EXPECT_EQ(sum.load(), 120 * 4950);
  EXPECT_FALSE(in_parallel_region());
}

TEST(Parallel, ExceptionsReachTheCaller) {
  for (const int threads : {1, 4}) {
    Threads scope(threads);
    for (int round = 0; round < 50; round++) {
      try {
        parallel_for(0, 1000, 1, [&](int64_t begin, int64_t) {
          TD_CHECK_INDEX(begin != 500, "bad index {}", begin);
        });
        FAIL();
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kIndex);
        EXPECT_STREQ(error.what(), "bad index 500");
      }
      EXPECT_FALSE(in_parallel_region());
    }
    EXPECT_FALSE(splits(100, 1).empty());  // the pool still works
  }
}

TEST(Parallel, ManyCallersAtOnce) {
  Threads scope(3);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 12; t++) {
    callers.emplace_back([&] {
      std::vector<int> hits(1000);
      for (int round = 0; round < 200; round++) {
        parallel_for(0, 1000, 16, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; i++) hits[i]++;
        });
        for (int h : hits) wrong += h != round + 1;
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Parallel, ChildrenOfForkHaveAPoolOfTheirOwn) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer cannot start threads after a fork";
#endif
  Threads scope(3);
  // Another thread keeps regions open, so that forks hit the pool at any moment.
  const std::jthread busy([](std::stop_token stop) {
    while (!stop.stop_requested()) parallel_for(0, 64, 1, [](int64_t, int64_t) {});
  });
  for (int round = 0; round < 40; round++) {
    splits(64, 1);
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // a hang dies by a signal
      std::atomic<int64_t> sum{0};
      for (int i = 0; i < 20; i++)
        parallel_for(0, 100, 1, [&](int64_t begin, int64_t) { sum += begin; });
      _exit(sum.load() == 20 * 4950 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
}

std::atomic<int> hook_calls{0};
thread_local bool hooked = false;

TEST(Parallel, WorkersRunStartHooksFirst) {
  Threads scope(3);
  splits(100, 1);  // workers exist before the hook does
  add_worker_start_hook([] {
    hooked = true;
    hook_calls++;
  });
  const std::thread::id caller = std::this_thread::get_id();
  for (int round = 0; round < 100; round++) {
    parallel_for(0, 64, 1, [&](int64_t, int64_t) {
      EXPECT_TRUE(hooked || std::this_thread::get_id() == caller);
    });
  }
  EXPECT_LE(hook_calls.load(), 11);  // at most once a worker
}

TEST(Cpus, Cgroups) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(testing::TempDir()) / "taeda_cgroup_test";
  fs::create_directories(root / "pods" / "one");
  fs::create_directories(root / "cpu" / "docker");
  std::ofstream(root / "pods" / "cpu.max") << "250000 100000\n";
  std::ofstream(root / "pods" / "one" / "cpu.max") << "max 100000\n";
  std::ofstream(root / "cpu" / "docker" / "cpu.cfs_quota_us") << "400000\n";
  std::ofstream(root / "cpu" / "docker" / "cpu.cfs_period_us") << "100000\n";
  EXPECT_EQ(cgroup_cpu_limit("0::/pods/one\n", root), 3);
  EXPECT_EQ(cgroup_cpu_limit("4:cpuacct,cpu:/docker\n3:cpuset:/pods\n", root), 4);
  EXPECT_EQ(cgroup_cpu_limit("0::/elsewhere\n", root), 0);
  EXPECT_EQ(cgroup_cpu_limit("", root), 0);
  fs::remove_all(root);
  EXPECT_GE(available_cpus(), 1);
}

TEST(Cgroup, Memory) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(testing::TempDir()) / "taeda_cgroup_memory_test";
  fs::create_directories(root / "pods" / "one");
  fs::create_directories(root / "memory" / "docker");
  std::ofstream(root / "pods" / "memory.max") << "1000000\n";
  std::ofstream(root / "pods" / "memory.current") << "300000\n";
  std::ofstream(root / "pods" / "memory.stat") << "anon 200000\ninactive_file 90000\n"
                                               << "active_file 10000\n";
  std::ofstream(root / "pods" / "one" / "memory.max") << "max\n";
  std::ofstream(root / "memory" / "memory.limit_in_bytes") << "9223372036854771712\n";
  std::ofstream(root / "memory" / "docker" / "memory.limit_in_bytes") << "5000000\n";
  std::ofstream(root / "memory" / "docker" / "memory.usage_in_bytes") << "0\n";

  const CgroupMemory v2("0::/pods/one\n", root);
  EXPECT_EQ(v2.limit(), 1000000);
  EXPECT_EQ(v2.available(0), 800000);       // the page cache can be dropped
  EXPECT_EQ(v2.available(500000), 300000);  // reserved, though not touched yet
  std::ofstream(root / "pods" / "memory.current") << "950000\n";
  EXPECT_EQ(v2.available(500000), 150000);  // somebody else's
  EXPECT_EQ(v2.available(2000000), 0);

  const CgroupMemory v1("4:memory:/docker\n", root);
  EXPECT_EQ(v1.limit(), 5000000);
  EXPECT_EQ(v1.available(1000000), 4000000);

  const CgroupMemory none("0::/elsewhere\n3:cpu:/docker\n", root);
  EXPECT_EQ(none.limit(), 0);
  EXPECT_EQ(none.available(INT64_MAX / 2), INT64_MAX);
  fs::remove_all(root);
}

}  // namespace
}  // namespace taeda
