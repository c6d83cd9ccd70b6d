#include "device/packed_part.h"

#include <zlib.h>

#include <fstream>

namespace taeda::cuda {

std::optional<std::string> unpacked(const std::string& path, uint64_t offset, size_t packed_bytes,
                                    size_t raw_bytes) {
  std::ifstream file(path, std::ios::binary);
  std::string packed(packed_bytes, 0), raw(raw_bytes, 0);
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(packed.data(), static_cast<std::streamsize>(packed.size()));
  uLongf size = raw.size();
  const int status = uncompress(reinterpret_cast<Bytef*>(raw.data()), &size,
                                reinterpret_cast<const Bytef*>(packed.data()), packed.size());
  if (!file || status != Z_OK || size != raw.size()) return std::nullopt;
  return raw;
}

}  // namespace taeda::cuda
