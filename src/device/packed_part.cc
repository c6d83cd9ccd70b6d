#include "device/packed_part.h"

#include <zlib.h>

#include <fstream>

#include "base/dynamic_library.h"

namespace taeda::cuda {
namespace {

std::optional<std::string> part(const std::string& path, uint64_t offset, size_t bytes) {
  std::ifstream file(path, std::ios::binary);
  std::string read(bytes, 0);
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(read.data(), static_cast<std::streamsize>(read.size()));
  return file ? std::optional(std::move(read)) : std::nullopt;
}

// lzma.h: results are an enum whose 0 is success.
using XzDecode = int(uint64_t* memory_limit, uint32_t flags, const void* allocator,
                     const uint8_t* in, size_t* in_at, size_t in_bytes, uint8_t* out,
                     size_t* out_at, size_t out_bytes);
XzDecode* xz_decode() {
  static XzDecode* const decode = reinterpret_cast<XzDecode*>(
      DynamicLibrary::open("liblzma.so.5").find("lzma_stream_buffer_decode"));
  return decode;
}

}  // namespace

std::optional<std::string> unpacked(const std::string& path, uint64_t offset, size_t packed_bytes,
                                    size_t raw_bytes) {
  const std::optional<std::string> packed = part(path, offset, packed_bytes);
  if (!packed) return std::nullopt;
  std::string raw(raw_bytes, 0);
  uLongf size = raw.size();
  const int status = uncompress(reinterpret_cast<Bytef*>(raw.data()), &size,
                                reinterpret_cast<const Bytef*>(packed->data()), packed->size());
  if (status != Z_OK || size != raw.size()) return std::nullopt;
  return raw;
}

bool has_xz() { return xz_decode() != nullptr; }

std::optional<std::string> unpacked_xz(const std::string& path, uint64_t offset,
                                       size_t packed_bytes, size_t raw_bytes) {
  const std::optional<std::string> packed = part(path, offset, packed_bytes);
  if (!packed || !has_xz()) return std::nullopt;
  std::string raw(raw_bytes, 0);
  uint64_t memory_limit = UINT64_MAX;
  size_t in = 0, out = 0;
  const int status =
      xz_decode()(&memory_limit, 0, nullptr, reinterpret_cast<const uint8_t*>(packed->data()), &in,
                  packed->size(), reinterpret_cast<uint8_t*>(raw.data()), &out, raw.size());
  if (status != 0 || out != raw.size()) return std::nullopt;
  return raw;
}

}  // namespace taeda::cuda
