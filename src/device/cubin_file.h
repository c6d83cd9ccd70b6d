// Kernels that are compiled for one architecture: a file of the optional wheel taeda-cuda, which
// tools/pack_cubins.py writes and says what is in it.
//
// The driver loads them without compiling, so a kernel's first call waits for some milliseconds. A
// device runs what was compiled for its own compute capability, or an earlier one of the same major
// number. Only the index is read before a kernel is asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace taeda::cuda {

class CubinFile {
 public:
  // RuntimeError for a file that is damaged or of another version.
  explicit CubinFile(std::string path);
  // The newest file of a folder (sm_90.bin, ...) for a device of compute capability 9.0, a `card`
  // of 90; null where there is none.
  static std::unique_ptr<CubinFile> find(const std::string& folder, int card);
  // TAEDA_CUBINS (empty: none), else what the wheel installed beside taeda.
  static std::string default_folder();

  // Of the file of kernels (kernel_file.h) that they belong to: they take the same arguments.
  uint32_t stamp() const { return stamp_; }
  static uint32_t stamp_of(const std::string& kernel_file);

  static constexpr size_t kNone = SIZE_MAX;
  // The module that has the kernel, of those that are numbered from 0; kNone: no such kernel.
  size_t unit(const std::string& kernel) const;
  std::string image(size_t unit) const;
  std::vector<std::string> names() const;
  const std::string& path() const { return path_; }

 private:
  struct Unit {
    uint64_t offset, packed_bytes, raw_bytes;
  };
  std::string path_;
  uint32_t stamp_ = 0;
  std::vector<Unit> units_;
  std::unordered_map<std::string, size_t> kernels_;
};

}  // namespace taeda::cuda
