#include "io/file_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "taeda/serialize.h"
#include "taeda/taeda.h"

namespace {
int interruptions = 0;  // that the next calls of fsync meet
}

// In place of the C library's: on network file systems a signal ends it early.
extern "C" int fsync(int file) {
  if (interruptions > 0) {
    interruptions--;
    errno = EINTR;
    return -1;
  }
  return static_cast<int>(syscall(SYS_fsync, file));
}

namespace taeda::io {
namespace {

namespace fs = std::filesystem;

class Writer : public ::testing::TestWithParam<bool> {
 protected:
  Writer() {
    char name[] = "/tmp/taeda_writer_XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~Writer() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void put(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
  }
  std::string get(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(path(name), std::ios::binary).rdbuf();
    return text.str();
  }
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_))
      found.insert(entry.path().filename().string());
    return found;
  }
  void replace(const std::string& name, const std::string& content) const {
    FileWriter file(path(name), {.nameless = GetParam(), .on_interrupt = {}});
    file.write(content.data(), content.size());
    file.commit();
  }

 private:
  std::string folder_;
};

TEST_P(Writer, CommitReplacesAndTheDestructorDrops) {
  put("x", "old");
  {
    FileWriter file(path("x"), {.nameless = GetParam(), .on_interrupt = {}});
    file.write("new", 3);
    EXPECT_EQ(get("x"), "old");
  }
  EXPECT_EQ(names(), std::set<std::string>{"x"});
  replace("x", "new");
  EXPECT_EQ(get("x"), "new");
  EXPECT_EQ(names(), std::set<std::string>{"x"});
}

TEST_P(Writer, SyncsAgainAfterASignal) {
  put("x", "old");
  int seen = 0;
  {
    FileWriter file(path("x"), {.nameless = GetParam(), .on_interrupt = [&] { seen++; }});
    file.write("new", 3);
    interruptions = 3;
    file.commit();
  }
  EXPECT_EQ(seen, 3);
  EXPECT_EQ(interruptions, 0);
  EXPECT_EQ(get("x"), "new");
  struct Stop {};
  {
    FileWriter file(path("x"), {.nameless = GetParam(), .on_interrupt = [] { throw Stop(); }});
    file.write("newer", 5);
    interruptions = 1;
    EXPECT_THROW(file.commit(), Stop);
  }
  EXPECT_EQ(get("x"), "new");
  EXPECT_EQ(names(), std::set<std::string>{"x"});
}

TEST_P(Writer, PermissionsAndLinksAreKept) {
  put("x", "old");
  fs::permissions(path("x"), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("x", path("link"));
  replace("link", "new");
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(get("x"), "new");
  EXPECT_EQ(fs::status(path("x")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_P(Writer, WhatAKilledProcessLeftDoesNotDisturb) {
  // As a process with the same number left it, in a container that starts again.
  put("x." + std::to_string(getpid()) + ".tmp", "left");
  put(".x.taeda-0123456789abcdef.tmp", "left");
  put(".x.taeda-0123456789abcdeF.tmp", "a user's");
  put(".x.taeda-1111111111111111.tmp", "being written");
  const Descriptor busy(open(path(".x.taeda-1111111111111111.tmp").c_str(), O_RDONLY));
  ASSERT_EQ(flock(busy.get(), LOCK_EX), 0);
  std::set<std::string> wanted = names();
  wanted.erase(".x.taeda-0123456789abcdef.tmp");
  wanted.insert("x");
  replace("x", "new");
  EXPECT_EQ(names(), wanted);
}

TEST_P(Writer, ErrorsSayWhatFailed) {
  EXPECT_THROW(replace("no/such/folder", ""), Error);
  try {
    replace(std::string(300, 'n'), "");
    FAIL();
  } catch (const FileError& error) {
    EXPECT_EQ(error.code(), ENAMETOOLONG);
  }
  fs::create_symlink("loop", path("loop"));
  EXPECT_THROW(replace("loop", ""), FileError);
}

INSTANTIATE_TEST_SUITE_P(Names, Writer, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Nameless" : "Named"; });

TEST_F(Writer, SaveUsesIt) {
  put("x." + std::to_string(getpid()) + ".tmp", "left");
  put("x", "old");
  fs::permissions(path("x"), fs::perms::owner_read);
  fs::create_symlink("x", path("link"));
  save(Tensor(ones({2})), path("link"));
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(fs::status(path("x")).permissions(), fs::perms::owner_read);
  Tensor x;
  load(x, path("x"));
  EXPECT_EQ(x.numel(), 2);
}

TEST_F(Writer, ALargeHeaderThatLiesIsNotAllocated) {
  const uint64_t length = uint64_t{40} << 30;
  put("x", std::string(reinterpret_cast<const char*>(&length), sizeof(length)));
  fs::resize_file(path("x"), length + 100);  // all there, as a hole
  EXPECT_THROW(load_tensors(path("x")), Error);
}

TEST_F(Writer, OnlyRegularFilesAreRead) {
  EXPECT_THROW(load_tensors("/dev/zero"), Error);
  EXPECT_THROW(load_tensors(path("")), FileError);
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_THROW(load_tensors(path("pipe")), Error);  // does not wait for a writer
}

}  // namespace
}  // namespace taeda::io
