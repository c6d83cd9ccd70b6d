#include "device/kernel_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace taeda::cuda {
namespace {

namespace fs = std::filesystem;

class KernelCacheTest : public testing::Test {
 protected:
  KernelCacheTest() {
    std::string pattern = testing::TempDir() + "kernel_cache_XXXXXX";
    base_ = mkdtemp(pattern.data());
    folder_ = base_ + "/kernels";
  }
  ~KernelCacheTest() override {
    fs::permissions(folder_, fs::perms::owner_all, ignored_);
    fs::remove_all(base_, ignored_);
  }
  size_t count() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  void age(const KernelCache& cache, const char* key, int seconds) {
    const timespec times[2] = {{1000 + seconds, 0}, {1000 + seconds, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, cache.path_of(key).c_str(), times, 0), 0);
  }

  std::string base_, folder_;
  std::error_code ignored_;
};

TEST_F(KernelCacheTest, GivesBackWhatWasPutUnderItsKey) {
  const KernelCache cache(folder_);
  EXPECT_FALSE(cache.find("sm_90 add"));
  const std::string image("\0cubin\n\0", 8);
  cache.put("sm_90 add", image);
  EXPECT_EQ(cache.find("sm_90 add"), image);
  EXPECT_EQ(KernelCache(folder_).find("sm_90 add"), image);
  EXPECT_FALSE(cache.find("sm_80 add"));
  cache.put("sm_90 add", "another");
  EXPECT_EQ(cache.find("sm_90 add"), "another");
  EXPECT_EQ(count(), 1u);
}

TEST_F(KernelCacheTest, TheFolderIsTheUsersAlone) {
  const KernelCache cache(folder_);
  cache.put("key", "image");
  struct stat info {};
  ASSERT_EQ(stat(folder_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  cache.remove("key");
  EXPECT_FALSE(cache.find("key"));
  cache.put("key", "image");
  chmod(folder_.c_str(), 0777);
  EXPECT_FALSE(cache.find("key"));
  cache.put("other", "image");
  EXPECT_EQ(count(), 1u);
}

// A process that ends between making a folder and closing it to others would leave one that is
// never trusted: it must be closed when it is made.
TEST_F(KernelCacheTest, TheFolderIsMadeClosed) {
  const mode_t before = umask(0);
  KernelCache(base_ + "/between/kernels/").put("key", "image");
  umask(before);
  struct stat info {};
  ASSERT_EQ(stat((base_ + "/between/kernels").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  ASSERT_EQ(stat((base_ + "/between").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0777u);
  EXPECT_TRUE(KernelCache(base_ + "/between/kernels").find("key"));
}

TEST_F(KernelCacheTest, DamagedFilesAreRemoved) {
  const KernelCache cache(folder_);
  for (const auto& damage : {"short", "flipped", "of another key", "empty"}) {
    cache.put("key", "the image");
    const std::string path = cache.path_of("key");
    const auto size = fs::file_size(path);
    if (damage == std::string("short")) fs::resize_file(path, size - 1);
    if (damage == std::string("empty")) fs::resize_file(path, 0);
    if (damage == std::string("flipped"))
      std::fstream(path, std::ios::in | std::ios::out).seekp(static_cast<int64_t>(size) - 2) << 'X';
    if (damage == std::string("of another key")) {
      cache.put("other", "the image");
      fs::rename(cache.path_of("other"), path);
    }
    EXPECT_FALSE(cache.find("key")) << damage;
    cache.put("key", "whole");
    EXPECT_EQ(cache.find("key"), "whole") << damage;
  }
}

TEST_F(KernelCacheTest, TheLeastUsedGoAboveTheLimit) {
  const std::string image(1000, 'x');
  const KernelCache cache(folder_, 4000);
  for (const auto& key : {"a", "b", "c"}) cache.put(key, image);
  age(cache, "a", 1);
  age(cache, "b", 2);
  age(cache, "c", 3);
  EXPECT_TRUE(cache.find("a"));  // used now
  cache.put("d", image);         // 4160 bytes with their heads
  EXPECT_FALSE(cache.find("b"));
  for (const auto& key : {"a", "c", "d"}) EXPECT_TRUE(cache.find(key)) << key;
  cache.put("huge", std::string(5000, 'x'));
  EXPECT_FALSE(cache.find("huge"));
  EXPECT_TRUE(cache.find("d"));
}

TEST_F(KernelCacheTest, WhereNothingCanBeWrittenNothingIsKept) {
  const KernelCache none("");
  none.put("key", "image");
  EXPECT_FALSE(none.find("key"));
  std::ofstream(base_ + "/file") << "no folder";
  const KernelCache below_a_file(base_ + "/file/kernels");
  below_a_file.put("key", "image");
  EXPECT_FALSE(below_a_file.find("key"));
}

// Permissions do not stop root, but where /proc is nobody makes folders.
TEST_F(KernelCacheTest, AReadOnlyFolderIsStillReadFrom) {
  const KernelCache cache(folder_);
  cache.put("key", "image");
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  cache.put("other", "image");
  EXPECT_EQ(cache.find("key"), "image");
  EXPECT_EQ(cache.find("other").has_value(), geteuid() == 0);
  const KernelCache odd("/proc/self/kernels");
  odd.put("key", "image");
  EXPECT_FALSE(odd.find("key"));
}

TEST_F(KernelCacheTest, ProcessesMayWriteTheSameKeysAtATime) {
  const std::string image(20000, 'x');
  const KernelCache cache(folder_, 200000);
  pid_t children[4];
  for (pid_t& child : children) {
    child = fork();
    if (child != 0) continue;
    bool right = true;
    for (int i = 0; i < 200; i++) {
      const std::string key = "key" + std::to_string(i % 20);
      cache.put(key, image + key);
      const auto found = cache.find(key);
      right &= !found || *found == image + key;
    }
    _exit(right ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  for (const auto& entry : fs::directory_iterator(folder_))
    EXPECT_EQ(entry.path().extension(), ".cubin");  // no half-written ones are left
}

TEST_F(KernelCacheTest, WhereItIs) {
  const char* const names[] = {"TAEDA_KERNEL_CACHE", "XDG_CACHE_HOME", "HOME"};
  std::optional<std::string> before[3];
  for (int i = 0; i < 3; i++)
    if (const char* const value = getenv(names[i])) before[i] = value;
  setenv("TAEDA_KERNEL_CACHE", "/own", 1);
  EXPECT_EQ(KernelCache::default_folder(), "/own");
  unsetenv("TAEDA_KERNEL_CACHE");
  setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(KernelCache::default_folder(), "/cache/taeda/kernels");
  setenv("XDG_CACHE_HOME", "relative", 1);
  setenv("HOME", "/home/me", 1);
  EXPECT_EQ(KernelCache::default_folder(), "/home/me/.cache/taeda/kernels");
  unsetenv("HOME");
  EXPECT_EQ(KernelCache::default_folder(), "");
  for (int i = 0; i < 3; i++)
    before[i] ? setenv(names[i], before[i]->c_str(), 1) : unsetenv(names[i]);
}

}  // namespace
}  // namespace taeda::cuda
