#include "core/shared_memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/shared/in_place.h"
#include "taeda/error.h"

namespace taeda {
namespace {

Ref<Storage> shared_storage(int64_t nbytes, int value) {
  Ref<Storage> storage = Storage::allocate(nbytes, Device());
  std::memset(storage->data(), value, static_cast<size_t>(nbytes));
  share_memory(*storage);
  return storage;
}

bool all_are(const Storage& storage, int value) {
  const auto* const bytes = static_cast<const unsigned char*>(storage.data());
  for (int64_t i = 0; i < storage.nbytes(); i++)
    if (bytes[i] != value) return false;
  return true;
}

// A process whose memory is a copy of this one's. It does what it is told and waits to be killed.
class Child {
 public:
  explicit Child(const std::function<void()>& work) {
    int done[2];
    EXPECT_EQ(pipe(done), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(done[0]);
      work();
      (void)!write(done[1], "d", 1);
      while (true) pause();
    }
    close(done[1]);
    char byte = 0;
    finished_ = read(done[0], &byte, 1) == 1;
    close(done[0]);
  }
  ~Child() { kill_now(); }
  void kill_now() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    pid_ = 0;
  }
  bool finished() const { return finished_; }

 private:
  pid_t pid_ = 0;
  bool finished_ = false;
};

// Runs `work` in a child; whether it returned true.
bool in_child(const std::function<bool()>& work) {
  const pid_t pid = fork();
  if (pid == 0) _exit(work() ? 0 : 1);
  int status = -1;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(SharedMemory, KeepsContentsAndSize) {
  for (const int64_t nbytes : {0, 1, 64, 65, 5000, 16384, 16385, 1 << 20, 5 << 20}) {
    const Ref<Storage> storage = shared_storage(nbytes, 7);
    EXPECT_TRUE(is_shared(*storage));
    EXPECT_EQ(storage->nbytes(), nbytes);
    EXPECT_TRUE(all_are(*storage, 7)) << nbytes;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(storage->data()) % 64, 0u);
    EXPECT_THROW(storage->resize(nbytes + 100), Error);
  }
  EXPECT_FALSE(is_shared(*Storage::allocate(10, Device())));
}

TEST(SharedMemory, BlocksNeverOverlap) {
  std::vector<Ref<Storage>> storages;
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 2000; i++) storages.push_back(shared_storage((i * 37) % 9000, i % 251));
    for (int i = 0; i < 2000; i++)
      ASSERT_TRUE(all_are(*storages[static_cast<size_t>(i)], i % 251)) << i;
    storages.clear();
  }
  EXPECT_EQ(shared_memory_stats().blocks, 0);
}

TEST(SharedMemory, ReusesWhatIsFree) {
  const Ref<Storage> kept = shared_storage(100, 1);
  const int64_t before = shared_memory_stats().segments;
  for (int i = 0; i < 200; i++) shared_storage(4 << 20, i);
  for (int i = 0; i < 300000; i++) shared_storage(64, i);
  EXPECT_EQ(shared_memory_stats().segments, before);
}

TEST(SharedMemory, AForkedChildSharesWhatItsParentHolds) {
  const Ref<Storage> storage = shared_storage(1000, 1);
  EXPECT_TRUE(in_child([&] {
    std::memset(storage->data(), 2, 1000);
    return true;
  }));
  EXPECT_TRUE(all_are(*storage, 2));
}

TEST(SharedMemory, AChildKeepsWhatItsParentLetsGo) {
  Ref<Storage> storage = shared_storage(1 << 20, 3);
  void* const address = storage->data();
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    _exit(read(go[0], &byte, 1) == 1 && all_are(*storage, 3) ? 0 : 1);
  }
  storage = Ref<Storage>();
  std::vector<Ref<Storage>> others;
  for (int i = 0; i < 20; i++) {
    others.push_back(shared_storage(1 << 20, 4));
    EXPECT_NE(others.back()->data(), address);
  }
  ASSERT_EQ(write(go[1], "g", 1), 1);
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  close(go[0]);
  close(go[1]);
}

TEST(SharedMemory, AChildAllocatesInSegmentsOfItsOwn) {
  const Ref<Storage> storage = shared_storage(64, 1);
  void* const address = storage->data();
  EXPECT_TRUE(in_child([&] {
    const int64_t segments = shared_memory_stats().segments;
    const Ref<Storage> own = shared_storage(64, 2);
    return shared_memory_stats().segments == segments + 1 &&
           shared_memory_stats().own_segments == 1 && own->data() != address &&
           all_are(*storage, 1);
  }));
}

TEST(SharedMemory, AMessageKeepsTheMemoryUntilItIsReceived) {
  Ref<Storage> storage = shared_storage(1 << 20, 5);
  void* const address = storage->data();
  const SharedName name = send_shared(*storage);
  storage = Ref<Storage>();
  const Ref<Storage> other = shared_storage(1 << 20, 6);
  EXPECT_NE(other->data(), address);
  Ref<Storage> received = receive_shared(name);
  EXPECT_EQ(received->data(), address);
  EXPECT_TRUE(all_are(*received, 5));
  EXPECT_THROW(receive_shared(name), Error) << "a message is received once";
  EXPECT_TRUE(all_are(*received, 5));
  received = Ref<Storage>();
  EXPECT_THROW(receive_shared(name), Error) << "its memory is free";
  EXPECT_EQ(shared_storage(1 << 20, 7)->data(), address);
}

TEST(SharedMemory, AMessageThatIsDroppedKeepsNothing) {
  Ref<Storage> storage = shared_storage(1 << 20, 5);
  void* const address = storage->data();
  const SharedName name = send_shared(*storage);
  storage = Ref<Storage>();
  drop_shared(name);
  drop_shared(name);
  EXPECT_EQ(shared_storage(1 << 20, 7)->data(), address);
  SharedName other = name;
  other.segment[0]++;
  EXPECT_FALSE(is_mapped(other));
  EXPECT_TRUE(is_mapped(name));
  EXPECT_THROW(receive_shared(other), Error);
  other = name;
  other.block = 1u << 30;
  EXPECT_THROW(receive_shared(other), Error);
}

TEST(SharedMemory, OnlyMessagesThatNobodyReceivedAreDropped) {
  Ref<Storage> storage = shared_storage(1 << 20, 5);
  void* const address = storage->data();
  const SharedName first = send_shared(*storage), second = send_shared(*storage);
  EXPECT_TRUE(is_under_way(first) && is_under_way(second));
  Ref<Storage> received = receive_shared(first);
  EXPECT_FALSE(is_under_way(first));
  storage = received = Ref<Storage>();
  drop_shared(first);  // leaves the second one's hold
  EXPECT_NE(shared_storage(1 << 20, 7)->data(), address);
  EXPECT_TRUE(is_under_way(second));
  drop_shared(second);
  EXPECT_FALSE(is_under_way(second));
  EXPECT_THROW(receive_shared(second), Error);
  EXPECT_EQ(shared_storage(1 << 20, 7)->data(), address);
}

TEST(SharedMemory, MoreMessagesThanTicketsArrive) {
  const Ref<Storage> storage = shared_storage(64, 3);
  std::vector<SharedName> names;
  for (int i = 0; i < 6000; i++) names.push_back(send_shared(*storage));
  int known = 0;
  for (const SharedName& name : names) {
    known += is_under_way(name);
    EXPECT_TRUE(all_are(*receive_shared(name), 3));
  }
  EXPECT_GT(known, 4000);
  EXPECT_TRUE(is_under_way(send_shared(*storage)));
}

TEST(SharedMemory, MemoryOfKilledProcessesComesBack) {
  const auto fill = [](std::vector<Ref<Storage>>& storages) {
    for (int i = 0; i < 40; i++) storages.push_back(shared_storage(1 << 20, 1));
  };
  std::vector<Ref<Storage>> storages;
  fill(storages);
  const int64_t segments = shared_memory_stats().segments;
  for (int round = 0; round < 5; round++) {
    Child child([] {});  // holds all of them
    ASSERT_TRUE(child.finished());
    storages.clear();
    child.kill_now();
    fill(storages);
    EXPECT_LE(shared_memory_stats().segments, segments + 1);
  }
}

TEST(SharedMemory, NumbersOfEndedProcessesAreGivenToOthers) {
  const Ref<Storage> storage = shared_storage(64, 1);
  for (int i = 0; i < 600; i++) ASSERT_TRUE(in_child([&] { return all_are(*storage, 1); })) << i;
  EXPECT_TRUE(in_child([&] {
    receive_shared(send_shared(*storage));  // only a process with a number can
    return true;
  }));
}

TEST(SharedMemory, MoreProcessesThanNumbersKeepNothingWhenTheyHaveEnded) {
  EXPECT_TRUE(in_child([] {
    Ref<Storage> storage = shared_storage(1 << 20, 1);
    void* const address = storage->data();
    std::vector<std::unique_ptr<Child>> children;
    for (int i = 0; i < 270; i++) children.push_back(std::make_unique<Child>([] {}));
    storage = Ref<Storage>();
    if (shared_storage(1 << 20, 1)->data() == address) return false;  // they hold it
    while (children.size() > 1) children.pop_back();
    if (shared_storage(1 << 20, 1)->data() == address) return false;  // one that has a number
    children.clear();
    std::vector<Ref<Storage>> others;
    for (int i = 0; i < 80; i++) others.push_back(shared_storage(1 << 20, 1));
    for (const Ref<Storage>& other : others)
      if (other->data() == address) return true;
    return false;
  }));
}

TEST(SharedMemory, AFailedForkLeavesNothingBehind) {
  const Ref<Storage> first = shared_storage(1 << 20, 1);
  EXPECT_TRUE(in_child([&] {
    Ref<Storage> own = shared_storage(1 << 20, 1);
    void* const address = own->data();
    rlimit limit{0, 0};
    setrlimit(RLIMIT_NPROC, &limit);
    if (getuid() == 0 && setuid(65534) != 0) return true;  // root has no limit
    for (int i = 0; i < 600; i++)
      if (fork() >= 0) _exit(i == 0 ? 0 : 1);
    receive_shared(send_shared(*first));  // only a process with a number can
    own = Ref<Storage>();
    return shared_storage(1 << 20, 1)->data() == address;
  }));
}

TEST(SharedMemory, ForksWhileThreadsShare) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; t++)
    threads.emplace_back([&stop, t] {
      while (!stop) {
        const Ref<Storage> storage = shared_storage(1000 + 3000 * t, t);
        const Ref<Storage> again = receive_shared(send_shared(*storage));
        EXPECT_TRUE(all_are(*again, t));
      }
    });
  for (int i = 0; i < 50; i++)
    EXPECT_TRUE(in_child([i] { return all_are(*shared_storage(5000, i), i); }));
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(SharedMemory, NeedsADescriptorASegmentOnly) {
  const Ref<Storage> first = shared_storage(8, 1);
  EXPECT_TRUE(in_child([] {
    const Ref<Storage> own = shared_storage(8, 1);
    rlimit limit{3, 3};
    setrlimit(RLIMIT_NOFILE, &limit);
    std::vector<Ref<Storage>> many;
    for (int i = 0; i < 20000; i++) many.push_back(shared_storage(16, i % 100));
    try {
      shared_storage(int64_t{1} << 30, 1);  // a new segment
    } catch (const Error& error) {
      return std::string(error.what()).find("Too many open files") != std::string::npos;
    }
    return false;
  }));
}

TEST(SharedMemory, MoreThanThereIsIsRefused) {
  const Ref<Storage> storage = Storage::wrap(
      nullptr, int64_t{1} << 45, Device(), [](void*) {}, nullptr);
  try {
    share_memory(*storage);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOutOfMemory);
  }
  EXPECT_FALSE(is_shared(*storage));
}

// A file that can be cut short, or that another program has made, is never mapped.
TEST(SharedMemory, OnlySoManyBlocksAreSharedWhereTheyAre) {
  constexpr int64_t kBytes = 100'000;
  const auto share = [] {
    Ref<Storage> storage = Storage::allocate(kBytes, Device());
    std::memset(storage->data(), 3, kBytes);
    const void* const before = storage->data();
    share_memory(*storage, true);
    EXPECT_TRUE(is_shared(*storage));
    EXPECT_TRUE(all_are(*storage, 3));
    const bool stays = storage->data() == before;
    return std::pair(std::move(storage), stays);
  };
  const size_t most = shared::set_most_in_place(0);
  EXPECT_EQ(most, 16'384u);
  EXPECT_FALSE(share().second) << "it moves";
  shared::set_most_in_place(1);
  {
    const auto [first, first_stays] = share();
    const auto [second, second_stays] = share();
    EXPECT_TRUE(first_stays);
    EXPECT_FALSE(second_stays);
  }
  EXPECT_TRUE(share().second) << "the first one's has been given back";
  shared::set_most_in_place(most);
}

TEST(SharedMemory, OtherFilesAreRefused) {
  const Ref<Storage> storage = shared_storage(8, 1);
  const SharedName name = send_shared(*storage);
  drop_shared(name);
  const int own = segment_descriptor(name);
  ASSERT_GE(own, 0);
  EXPECT_NE(ftruncate(own, 0), 0);
  const int64_t segments = shared_memory_stats().segments;
  map_segment(dup(own));
  EXPECT_EQ(shared_memory_stats().segments, segments) << "it is mapped already";
  char header[1 << 16];
  ASSERT_EQ(pread(own, header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
  header[8]++;  // another id
  const int copy = memfd_create("copy", 0);
  ASSERT_EQ(write(copy, header, sizeof header), static_cast<ssize_t>(sizeof header));
  EXPECT_THROW(map_segment(copy), Error) << "not sealed";
  const int empty = memfd_create("empty", MFD_ALLOW_SEALING);
  EXPECT_THROW(map_segment(empty), Error);
  EXPECT_THROW(map_segment(-1), Error);
}

}  // namespace
}  // namespace taeda
