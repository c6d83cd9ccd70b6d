#include "data/worker_channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "taeda/error.h"

namespace taeda::data {
namespace {

constexpr size_t kBytes = size_t{1} << 30;

TEST(BlockAllocator, GivesBlocksAgainWhenNobodyHoldsThem) {
  const auto area = SharedArea::create(kBytes);
  BlockAllocator blocks(*area, 4096, kBytes / 2);
  Block* const first = blocks.allocate(100'000);
  Block* const second = blocks.allocate(100'000);
  ASSERT_TRUE(first && second && first != second);
  EXPECT_GE(first->bytes, 100'000u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first->data()) % 64, 0u);
  std::memset(first->data(), 1, first->bytes);
  WorkerChannel::release(first);
  EXPECT_EQ(blocks.allocate(99'000), first);
}

TEST(BlockAllocator, SaysWhenItsRangeIsUsedUpAndKeepsABlockForThat) {
  const auto area = SharedArea::create(kBytes);
  BlockAllocator blocks(*area, 0, 1 << 20);
  EXPECT_EQ(blocks.allocate(2 << 20), nullptr);
  EXPECT_EQ(blocks.allocate(~size_t{0} - 100), nullptr);
  while (blocks.allocate(10'000)) {
  }
  while (blocks.allocate(BlockAllocator::kReserved)) {
  }
  EXPECT_EQ(blocks.allocate(100), nullptr);
}

TEST(SharedArea, CannotBeExecuted) {
  constexpr unsigned kNoExecute = 8;  // MFD_NOEXEC_SEAL
  constexpr int kSealExecute = 32;    // F_SEAL_EXEC
  const int file = memfd_create("taeda_test", MFD_CLOEXEC | kNoExecute);
  if (file < 0) GTEST_SKIP() << "the system has no such files";
  close(file);
  const auto area = SharedArea::create(kBytes);
  EXPECT_TRUE(fcntl(area->handle(), F_GET_SEALS) & kSealExecute);
}

TEST(SharedArea, FreesABlockWhenItsLastStorageGoes) {
  const auto area = SharedArea::create(kBytes);
  BlockAllocator blocks(*area, 0, kBytes / 2);
  Block* const block = blocks.allocate(1000);
  Ref<Storage> storage = area->storage(block, block->data(), 1000);
  EXPECT_EQ(area->block_of(*storage), block);
  EXPECT_EQ(SharedArea::held_blocks(), 1u);
  storage = nullptr;
  EXPECT_EQ(block->holders.load(), 0u);
  EXPECT_EQ(SharedArea::held_blocks(), 0u);
  EXPECT_EQ(area->block_of(*Storage::allocate(8, Device())), nullptr);
}

TEST(SharedArea, KeepsBlocksThatAreHeldWhenItRetires) {
  const auto area = SharedArea::create(kBytes);
  BlockAllocator blocks(*area, 0, kBytes / 2);
  std::vector<Ref<Storage>> kept;
  for (int i = 0; i < 20; i++) {
    Block* const block = blocks.allocate(50'000);
    std::memset(block->data(), i, 50'000);
    Ref<Storage> storage = area->storage(block, block->data(), 50'000);
    if (i % 3 == 0) kept.push_back(std::move(storage));
  }
  area->retire();
  EXPECT_LT(area->bytes(), size_t{4} << 20);
  for (size_t i = 0; i < kept.size(); i++)
    EXPECT_EQ(static_cast<char*>(kept[i]->data())[49'999], static_cast<char>(3 * i));
}

// A child sees what was there when it was forked, whatever the parent and the owner do next.
TEST(SharedArea, GivesForkedChildrenCopies) {
  const auto area = SharedArea::create(kBytes);
  BlockAllocator blocks(*area, 0, kBytes / 2);
  Block* const block = blocks.allocate(10'000);
  std::memset(block->data(), 7, 10'000);
  Ref<Storage> storage = area->storage(block, block->data(), 10'000);
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    const bool woken = read(go[0], &byte, 1) == 1;
    auto* const data = static_cast<char*>(storage->data());
    const bool same = data[0] == 7 && data[9'999] == 7;
    data[0] = 9;
    storage = nullptr;
    _exit(woken && same ? 0 : 1);
  }
  std::memset(block->data(), 8, 10'000);
  EXPECT_EQ(block->holders.load(), 1u);
  ASSERT_EQ(write(go[1], "x", 1), 1);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(block->data()[0], 8);
  EXPECT_EQ(block->holders.load(), 1u);
  close(go[0]);
  close(go[1]);
}

// Whether f, called in a forked process, is true.
template <class F>
bool is_true_in_child(const F& f) {
  const pid_t child = fork();
  if (child == 0) _exit(f() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0;
}

TEST(SharedArea, AFailedForkHoldsNothing) {
  EXPECT_TRUE(is_true_in_child([] {
    const auto area = SharedArea::create(kBytes);
    BlockAllocator blocks(*area, 0, kBytes / 2);
    Block* const block = blocks.allocate(10'000);
    Ref<Storage> storage = area->storage(block, block->data(), 10'000);
    rlimit limit{0, 0};
    setrlimit(RLIMIT_NPROC, &limit);
    if (getuid() == 0 && setuid(65534) != 0) return true;  // root has no limit
    const pid_t child = fork();
    if (child >= 0) _exit(0);  // there is no limit here
    const bool held_once = block->holders.load() == 1;
    storage = nullptr;
    return held_once && block->holders.load() == 0;
  }));
}

TEST(SharedArea, AForkedChildCopiesWithoutAddressSpaceToSpare) {
  constexpr size_t kBlock = size_t{64} << 20;
  EXPECT_TRUE(is_true_in_child([] {
    const auto area = SharedArea::create(kBytes);
    BlockAllocator blocks(*area, 0, kBytes / 2);
    Block* const block = blocks.allocate(kBlock);
    std::memset(block->data(), 7, kBlock);
    Ref<Storage> storage = area->storage(block, block->data(), kBlock);
    int go[2];
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t room = pages * 4096 + (kBlock >> 2);
    rlimit limit{room, room};
    if (pipe(go) != 0 || setrlimit(RLIMIT_AS, &limit) != 0) return false;
    const pid_t child = fork();
    if (child == 0) {
      char byte;
      const bool woken = read(go[0], &byte, 1) == 1;
      const char* const data = static_cast<const char*>(storage->data());
      _exit(woken && data[0] == 7 && data[kBlock / 2] == 7 && data[kBlock - 1] == 7 ? 0 : 1);
    }
    std::memset(block->data(), 8, kBlock);
    const bool held_once = block->holders.load() == 1;
    if (write(go[1], "x", 1) != 1) return false;
    int status = 0;
    waitpid(child, &status, 0);
    return status == 0 && held_once;
  }));
}

TEST(WorkerChannel, CarriesMessagesInTheirOrder) {
  const auto trainer = WorkerChannel::create(4, kBytes);
  const auto worker = WorkerChannel::open(trainer->area().handle());
  EXPECT_EQ(worker->pop(), nullptr);
  for (int i = 0; i < 4; i++) {
    Block* const block = trainer->allocate(16);
    block->data()[0] = static_cast<char>(i);
    ASSERT_TRUE(trainer->push(block));
  }
  EXPECT_FALSE(trainer->push(trainer->allocate(16)));  // full
  for (int i = 0; i < 4; i++) {
    Block* const block = worker->pop();
    ASSERT_TRUE(block);
    EXPECT_EQ(block->data()[0], static_cast<char>(i));
    WorkerChannel::release(block);
  }
  worker->cells()[3] = 42;
  EXPECT_EQ(trainer->cells()[3], 42);
}

TEST(WorkerChannel, WakesAWorkerForATaskAndForTheEnd) {
  const auto trainer = WorkerChannel::create(4, kBytes);
  const auto worker = WorkerChannel::open(trainer->area().handle());
  std::thread sleeper([&] {
    while (!worker->has_message()) worker->wait_for_task(60'000'000'000);
    WorkerChannel::release(worker->pop());
    while (!worker->closed()) worker->wait_for_task(60'000'000'000);
  });
  ASSERT_TRUE(trainer->push(trainer->allocate(16)));
  trainer->close();
  sleeper.join();
  EXPECT_FALSE(worker->has_message());
}

TEST(WorkerChannel, RefusesFilesThatCouldShrink) {
  const int handle = memfd_create("unsealed", 0);
  EXPECT_THROW(WorkerChannel::open(handle), Error);
  close(handle);
}

}  // namespace
}  // namespace taeda::data
