#include "data/page_file.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <thread>
#include <vector>

#include "data/page_sharer.h"

namespace taeda::data {
namespace {

const size_t kPage = PageStates::page_bytes();

// Anonymous memory of so many pages, each with bytes of its own.
class Memory {
 public:
  explicit Memory(size_t pages) : bytes_(pages * kPage) {
    data_ = static_cast<char*>(
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (size_t i = 0; i < bytes_; i++) data_[i] = static_cast<char>(i / kPage * 31 + i % 251);
  }
  ~Memory() { munmap(data_, bytes_); }
  Memory(const Memory&) = delete;

  char* page(size_t i) const { return data_ + i * kPage; }
  size_t pages() const { return bytes_ / kPage; }
  PageRange range() const {
    const auto begin = reinterpret_cast<uintptr_t>(data_);
    return {begin, begin + bytes_};
  }
  std::vector<char> content() const { return {data_, data_ + bytes_}; }

 private:
  char* data_;
  size_t bytes_;
};

std::shared_ptr<PageFile> stored(const Memory& memory) {
  auto file = PageFile::create();
  const PageRange range = memory.range();
  return file && file->store({&range, 1}) ? file : nullptr;
}

size_t copies(const PageFile& file, const Memory& memory) {
  const PageRange range = memory.range();
  return file.count({&range, 1}).exclusive;
}

bool is_mapped(const PageFile& file, const char* address) {
  for (const PageRange& range : file.mapped(read_memory_map())) {
    if (range.contains(address)) return true;
  }
  return false;
}

int status_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(PageRange, IntersectionsAreInOrderAndJoined) {
  const auto common = intersect({{50, 60}, {10, 20}, {20, 30}}, {{15, 25}, {25, 55}, {70, 80}});
  ASSERT_EQ(common.size(), 2u);
  EXPECT_TRUE(common[0].begin == 15 && common[0].end == 30);
  EXPECT_TRUE(common[1].begin == 50 && common[1].end == 55);
}

TEST(PageFile, DropsACopyOnceItHoldsWhatTheFileHolds) {
  const Memory memory(64);
  const auto file = stored(memory);
  ASSERT_TRUE(file);
  const std::vector<char> before = memory.content();
  size_t most_copies = 0;
  ASSERT_TRUE(file->map(memory.range(), most_copies));
  EXPECT_EQ(copies(*file, memory), 0u);
  for (const size_t i : {3, 4, 5, 63}) memory.page(i)[7]++;
  EXPECT_EQ(copies(*file, memory), 4u);
  EXPECT_EQ(file->drop_equal(memory.range()), 0);
  for (const size_t i : {3, 5, 63}) memory.page(i)[7]--;
  EXPECT_EQ(file->drop_equal(memory.range()), 3);
  EXPECT_EQ(copies(*file, memory), 1u);
  memory.page(4)[7]--;
  EXPECT_EQ(memory.content(), before);
}

TEST(PageStates, FindsTheCopiesThatThePagemapShows) {
  const Memory memory(600);
  const auto file = stored(memory);
  ASSERT_TRUE(file);
  size_t most_copies = 0;
  ASSERT_TRUE(file->map(memory.range(), most_copies));
  std::mt19937 random(1);
  for (size_t i = 0; i < memory.pages(); i++) {
    volatile char* const byte = memory.page(i);
    if (random() % 2) *byte = static_cast<char>(*byte + 1);
  }
  const PageStates states;
  std::vector<uint64_t> expected(memory.pages());
  ASSERT_TRUE(states.read(memory.range().begin, expected));
  std::vector<bool> found(memory.pages());
  PageRange runs[7];
  for (uintptr_t begin = memory.range().begin; begin < memory.range().end;) {
    const ssize_t n = states.find_copies(begin, memory.range().end, runs);
    ASSERT_GE(n, 0);
    for (const PageRange& run : std::span(runs, static_cast<size_t>(n))) {
      for (uintptr_t at = run.begin; at < run.end; at += kPage)
        found[(at - memory.range().begin) / kPage] = true;
    }
  }
  for (size_t i = 0; i < memory.pages(); i++)
    EXPECT_EQ(found[i], PageStates::is_anonymous(expected[i])) << i;
}

TEST(PageFile, MapsPagesThatDifferAsCopies) {
  const Memory memory(16);
  const auto file = stored(memory);
  ASSERT_TRUE(file);
  memory.page(2)[0]++;
  madvise(memory.page(9), kPage, MADV_DONTNEED);  // zero now, and not in memory
  const std::vector<char> before = memory.content();
  size_t most_copies = 2;
  ASSERT_TRUE(file->map(memory.range(), most_copies));
  EXPECT_EQ(most_copies, 0u);
  EXPECT_EQ(memory.content(), before);
}

TEST(PageFile, LeavesARangeAloneThatDiffersTooMuch) {
  const Memory memory(16);
  const auto file = stored(memory);
  ASSERT_TRUE(file);
  for (size_t i = 0; i < 16; i += 2) memory.page(i)[1] = 0x55;
  const std::vector<char> before = memory.content();
  size_t most_copies = 7;
  EXPECT_FALSE(file->map(memory.range(), most_copies));
  EXPECT_FALSE(is_mapped(*file, memory.page(0)));
  EXPECT_EQ(memory.content(), before);
}

TEST(PageFile, IsStoredOnceByOneProcess) {
  const Memory memory(4);
  const auto file = PageFile::create();
  ASSERT_TRUE(file);
  file->set_inherited(true);
  const PageRange range = memory.range();
  size_t most_copies = 0;
  EXPECT_FALSE(file->map(range, most_copies));  // nothing is there yet
  const pid_t child = fork();
  if (child == 0) _exit(file->store({&range, 1}) ? 0 : 1);
  EXPECT_EQ(status_of(child), 0);
  EXPECT_TRUE(file->is_stored());
  EXPECT_FALSE(file->store({&range, 1}));
  EXPECT_TRUE(file->map(range, most_copies));
}

TEST(PageFile, KeepsWritesFromOtherProcesses) {
  const Memory memory(8);
  const auto file = stored(memory);
  ASSERT_TRUE(file);
  file->set_inherited(true);
  const std::vector<char> before = memory.content();
  size_t most_copies = 0;
  ASSERT_TRUE(file->map(memory.range(), most_copies));
  const pid_t child = fork();
  if (child == 0) {
    for (size_t i = 0; i < 8; i++) std::memset(memory.page(i), 0x77, kPage);
    _exit(file->drop_equal(memory.range()) == 0 && memory.page(5)[9] == 0x77 ? 0 : 1);
  }
  EXPECT_EQ(status_of(child), 0);
  EXPECT_EQ(memory.content(), before);
}

TEST(PageFile, DoesNotKnowMemoryThatWasMappedAnew) {
  const Memory memory(8);
  const auto file = stored(memory);
  ASSERT_TRUE(file);
  size_t most_copies = 0;
  ASSERT_TRUE(file->map(memory.range(), most_copies));
  ASSERT_TRUE(is_mapped(*file, memory.page(3)));
  const std::vector<char> page(memory.page(3), memory.page(4));
  mmap(memory.page(3), kPage, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1,
       0);
  std::memcpy(memory.page(3), page.data(), kPage);  // the file's bytes, but nothing lies below
  EXPECT_FALSE(is_mapped(*file, memory.page(3)));
  for (const PageRange& range : file->mapped(read_memory_map())) file->drop_equal(range);
  EXPECT_EQ(std::memcmp(memory.page(3), page.data(), kPage), 0);
}

TEST(PageFile, IsNotHadUnderALimitOfFileSizes) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit = {1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    _exit(PageFile::create() ? 1 : 0);
  }
  EXPECT_EQ(status_of(child), 0);
}

TEST(PageFile, AChildThatIsNoWorkerClosesIt) {
  const Memory memory(4);
  const auto file = PageFile::create();
  ASSERT_TRUE(file);
  const PageRange range = memory.range();
  const pid_t child = fork();
  if (child == 0) _exit(file->store({&range, 1}) ? 1 : 0);
  EXPECT_EQ(status_of(child), 0);
  EXPECT_TRUE(file->store({&range, 1}));
}

// What a program may do to its memory between passes, against a copy that nobody shares.
TEST(PageFile, NeverChangesAByteHoweverMemoryIsUsed) {
  for (uint32_t seed = 0; seed < 20; seed++) {
    std::mt19937 random(seed);
    const auto draw = [&](size_t n) { return static_cast<size_t>(random() % n); };
    const Memory memory(40);
    const auto file = stored(memory);
    ASSERT_TRUE(file);
    const std::vector<char> original = memory.content();
    std::vector<char> expected = original;
    for (size_t n = draw(20); n > 0; n--) {
      const size_t at = draw(expected.size());
      expected[at] = memory.page(0)[at] = static_cast<char>(random());
    }
    size_t most_copies = 40;
    ASSERT_TRUE(file->map(memory.range(), most_copies));
    for (int step = 0; step < 300; step++) {
      const size_t i = draw(40), n = 1 + draw(std::min<size_t>(5, 40 - i));
      char* const at = memory.page(i);
      char* const truth = expected.data() + i * kPage;
      switch (draw(8)) {
        case 0:  // counts a reference
          at[draw(n * kPage)]++;
          break;
        case 1:  // back to what was stored
          std::memcpy(at, original.data() + i * kPage, n * kPage);
          break;
        case 2:
          std::memset(at, static_cast<int>(random()), n * kPage);
          break;
        case 3:  // returned to the system and had again
          if (draw(10) == 0)
            mmap(at, n * kPage, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1,
                 0);
          break;
        case 4:
          mprotect(at, n * kPage, PROT_READ);
          mprotect(at, n * kPage, PROT_READ | PROT_WRITE);
          break;
        default:
          for (const PageRange& range : file->mapped(read_memory_map()))
            ASSERT_GE(file->drop_equal(range), 0);
          ASSERT_EQ(memory.content(), expected) << "seed " << seed << ", step " << step;
          continue;
      }
      std::memcpy(truth, at, n * kPage);
    }
  }
}

int threads_of_this_process() {
  int threads = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    threads++;
  return threads;
}

std::vector<PageRange> big_ranges;
std::vector<PageRange> arenas() { return big_ranges; }

// Copies all of it, as fast as can be.
void use(const Memory& memory) {
  for (size_t i = 0; i < memory.pages(); i++) {
    volatile char* const byte = memory.page(i);
    *byte = static_cast<char>(*byte + 1);
    *byte = static_cast<char>(*byte - 1);
  }
}

TEST(PageSharer, LeavesQuickReadersOfLittleMemoryAlone) {
  for (const auto preference : {PageSharer::kSpeed, PageSharer::kMemory}) {
    const Memory memory(10'000);
    big_ranges = {memory.range()};
    const auto file = PageFile::create();
    ASSERT_TRUE(file);
    static_assert(10'000u * 4096 * 3 < PageSharer::kMostCopiedBytes);
    PageSharer sharer(file, 3, threads_of_this_process(), preference, arenas);
    EXPECT_FALSE(sharer.after_batch());
    madvise(memory.page(0), memory.range().bytes(), MADV_DONTNEED);
    use(memory);
    EXPECT_TRUE(sharer.after_batch());
    EXPECT_EQ(file->is_stored(), preference == PageSharer::kMemory);
  }
}

// Without being asked, since four workers would copy more than 128 MiB.
TEST(PageSharer, SharesWhatWasReadUnlessThereIsAnotherThread) {
  const Memory memory(20'000);
  big_ranges = {memory.range()};
  const auto file = PageFile::create();
  ASSERT_TRUE(file);
  PageSharer sharer(file, 4, threads_of_this_process(), PageSharer::kSpeed, arenas);
  EXPECT_FALSE(sharer.after_batch());
  const auto fault = [&] { use(Memory(6000)); };
  const std::vector<char> before = memory.content();
  {
    std::atomic<bool> done = false;
    std::thread other([&] { done.wait(false); });
    fault();
    EXPECT_TRUE(sharer.after_batch());
    EXPECT_EQ(sharer.counts().skipped, 1);
    EXPECT_FALSE(file->is_stored());
    done = true;
    done.notify_all();
    other.join();
  }
  fault();
  EXPECT_TRUE(sharer.after_batch());
  EXPECT_TRUE(file->is_stored());
  EXPECT_TRUE(is_mapped(*file, memory.page(10)));
  use(memory);
  EXPECT_EQ(copies(*file, memory), memory.pages());
  EXPECT_TRUE(sharer.after_batch());
  EXPECT_GE(sharer.counts().dropped, 20'000);
  EXPECT_EQ(copies(*file, memory), 0u);
  EXPECT_EQ(memory.content(), before);
}

TEST(PageSharer, LooksAgainAtTheNextBatchWhereAnotherWorkerIsStoring) {
  const Memory memory(20'000);
  big_ranges = {memory.range()};
  const auto file = PageFile::create();
  ASSERT_TRUE(file);
  file->set_inherited(true);
  const pid_t other = fork();
  if (other == 0) _exit(file->store(big_ranges) ? 0 : 1);
  PageSharer sharer(file, 4, threads_of_this_process(), PageSharer::kMemory, arenas);
  EXPECT_FALSE(sharer.after_batch());
  const Memory used(6000);
  for (size_t i = 0; i < used.pages(); i++) *static_cast<volatile char*>(used.page(i)) = 1;
  while (!file->is_being_stored() && !file->is_stored() && !file->has_failed()) sched_yield();
  EXPECT_TRUE(sharer.after_batch());
  int status = -1;
  waitpid(other, &status, 0);
  ASSERT_EQ(status, 0);
  if (!is_mapped(*file, memory.page(10))) {
    EXPECT_TRUE(sharer.after_batch());
  }
  EXPECT_TRUE(is_mapped(*file, memory.page(10)));
}

}  // namespace
}  // namespace taeda::data
