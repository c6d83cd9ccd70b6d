// The C++ reader of safetensors on bytes that nobody vouches for: tensors or an Error.
//
// A libFuzzer target; driver.cc stands in where clang's libFuzzer is not to be had.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "taeda/serialize.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

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

// Three of four mutants have the right length of the header, without which nothing behind it is
// read.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 4 == 0 || size < 8) return size;
  size_t end = size;
  while (end > 8 && data[end - 1] != '}') end--;
  const uint64_t length = end - 8;
  for (size_t i = 0; i < 8; i++) data[i] = static_cast<uint8_t>(length >> (8 * i));
  return size;
}
