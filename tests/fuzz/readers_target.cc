// The C++ reader of safetensors on bytes that nobody vouches for: tensors or an Error.
//
// A libFuzzer target; driver.cc stands in where clang's libFuzzer is not to be had.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "taeda/serialize.h"

namespace {

// A file without a name, written anew for each input.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("input", MFD_CLOEXEC)) {
    if (descriptor_ < 0) std::abort();
  }
  void assign(const uint8_t* data, size_t size) const {
    if (ftruncate(descriptor_, 0) != 0) std::abort();
    if (pwrite(descriptor_, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const MemoryFile file;
  file.assign(data, size);
  try {
    for (const auto& [name, x] : taeda::load_tensors(file.path())) {
      const volatile auto* bytes = static_cast<const char*>(x.storage()->data());
      for (int64_t i = 0; i < x.storage()->nbytes(); i += 64) (void)bytes[i];
    }
  } catch (const taeda::Error&) {
  }
  return 0;
}
