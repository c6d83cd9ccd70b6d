#include "device/kernel_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace taeda::cuda {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "TDCACHE1";

// FNV-1a [Fowler, Noll and Vo] from a start of its own, mixed at the end as by MurmurHash3.
uint64_t digest(std::string_view bytes, uint64_t start) {
  uint64_t hash = start;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccd;
  hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53;
  return hash ^ hash >> 33;
}

// What stands before the image: by it a damaged or another key's file is known.
struct Head {
  char magic[8];
  uint64_t key_bytes, key_digest, image_bytes, image_digest;

  Head(std::string_view key, std::string_view image)
      : key_bytes(key.size()),
        key_digest(digest(key, 3)),
        image_bytes(image.size()),
        image_digest(digest(image, 4)) {
    std::copy(kMagic.begin(), kMagic.end(), magic);
  }
};

std::string hex(uint64_t value) {
  std::string text(16, '0');
  for (size_t i = 16; value; value >>= 4) text[--i] = "0123456789abcdef"[value & 15];
  return text;
}

// All of a file; empty if it cannot be read.
std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

KernelCache::KernelCache(std::string folder, int64_t limit)
    : folder_(std::move(folder)), limit_(limit) {
  while (folder_.ends_with('/')) folder_.pop_back();
}

std::string KernelCache::default_folder() {
  if (const char* const own = std::getenv("TAEDA_KERNEL_CACHE")) return own;
  if (const char* const cache = std::getenv("XDG_CACHE_HOME"); cache && *cache == '/')
    return std::string(cache) + "/taeda/kernels";
  const char* const home = std::getenv("HOME");
  return home && *home == '/' ? std::string(home) + "/.cache/taeda/kernels" : std::string();
}

std::string KernelCache::path_of(std::string_view key) const {
  return folder_ + "/" + hex(digest(key, 1)) + hex(digest(key, 2)) + ".cubin";
}

// What is loaded runs: the folder must be the user's, and nobody else may write there.
bool KernelCache::is_trusted() const {
  struct stat info {};
  return !folder_.empty() && stat(folder_.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::optional<std::string> KernelCache::find(std::string_view key) const {
  if (!is_trusted()) return std::nullopt;
  const std::string path = path_of(key), content = content_of(path);
  if (content.empty()) return std::nullopt;
  std::string image = content.substr(std::min(sizeof(Head), content.size()));
  const Head expected(key, image);
  if (content.size() < sizeof(Head) || std::memcmp(content.data(), &expected, sizeof(Head)) != 0) {
    unlink(path.c_str());
    return std::nullopt;
  }
  utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // used now
  return image;
}

void KernelCache::put(std::string_view key, std::string_view image) const {
  if (folder_.empty() || static_cast<int64_t>(image.size()) > limit_) return;
  std::error_code error;
  fs::create_directories(fs::path(folder_).parent_path(), error);
  mkdir(folder_.c_str(), 0700);  // nobody else's for a moment, whatever the umask
  if (!is_trusted()) return;
  static std::atomic<int> writes{0};
  const std::string path = path_of(key);
  const std::string fresh = path + "." + std::to_string(getpid()) + "." + std::to_string(++writes);
  const Head head(key, image);
  std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(&head), sizeof head);
  file.write(image.data(), static_cast<std::streamsize>(image.size()));
  file.close();
  if (!file || rename(fresh.c_str(), path.c_str()) != 0) unlink(fresh.c_str());
  remove_oldest();
}

void KernelCache::remove(std::string_view key) const {
  if (is_trusted()) unlink(path_of(key).c_str());
}

// Down to nine tenths of the limit, so that not every file after it removes one. Files that another
// process writes or has removed meanwhile are its own business.
void KernelCache::remove_oldest() const {
  struct Entry {
    fs::file_time_type used;
    int64_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  int64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    const auto bytes = static_cast<int64_t>(at->file_size(gone));
    const fs::file_time_type used = at->last_write_time(gone);
    if (gone) continue;
    entries.push_back({used, bytes, at->path()});
    total += bytes;
  }
  if (total <= limit_) return;
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= limit_ / 10 * 9) break;
    if (fs::remove(entry.path, error)) total -= entry.bytes;
  }
}

}  // namespace taeda::cuda
