// Compiled kernels on disk, kept from one run of a program to the next.
//
// Each is a file of its own under a folder of the user's, named by a digest of what it was compiled
// from, for what and by what. Files are written beside their name and renamed, so processes that
// write the same one at a time do not disturb each other or those that read; one that is damaged is
// removed and counts as absent. Above a limit in bytes the files that were not used for longest go.
// Where the folder cannot be made, written or trusted, nothing is kept, and nothing raises.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace taeda::cuda {

class KernelCache {
 public:
  static constexpr int64_t kLimit = int64_t{512} << 20;

  // An empty folder: keeps nothing.
  explicit KernelCache(std::string folder, int64_t limit = kLimit);
  // TAEDA_KERNEL_CACHE (empty: none), else taeda/kernels under XDG_CACHE_HOME or ~/.cache.
  static std::string default_folder();

  // `key`: all that decides what the image is, such as text, architecture and compiler.
  std::optional<std::string> find(std::string_view key) const;
  void put(std::string_view key, std::string_view image) const;
  void remove(std::string_view key) const;
  // Where the key's image is, or would be.
  std::string path_of(std::string_view key) const;

 private:
  bool is_trusted() const;
  void remove_oldest() const;

  std::string folder_;
  int64_t limit_;
};

}  // namespace taeda::cuda
