// The file of compiled kernels beside libtaeda: PTX of each, which the driver compiles for its
// device.
//
// tools/pack_kernels.py writes it and says what is in it. Nothing of it is read before a kernel is
// asked for; then the families of types that are used.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "device/kernel_compiler.h"

namespace taeda::cuda {

class KernelFile {
 public:
  // RuntimeError for a file that is damaged or of another version.
  explicit KernelFile(std::string path);
  ~KernelFile();
  KernelFile(const KernelFile&) = delete;

  // The PTX of a module that has the kernel; empty where the file has none of that name. Not for
  // several threads at once.
  std::string image(const std::string& kernel);
  // The translation unit that has the kernel, for those that the file holds as text; under the same
  // rule.
  std::optional<KernelText> text(const std::string& kernel);
  std::vector<std::string> names();

 private:
  struct Family;
  Family& load(size_t i);

  std::string path_;
  std::vector<std::unique_ptr<Family>> families_;
};

}  // namespace taeda::cuda
