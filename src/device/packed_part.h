// Parts of files that are packed, by zlib or as .xz: what the files of kernels are made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace taeda::cuda {

// The `raw_bytes` that zlib packed into `packed_bytes` from `offset` on; nothing where the file
// ends before, or where that is not what is there.
std::optional<std::string> unpacked(const std::string& path, uint64_t offset, size_t packed_bytes,
                                    size_t raw_bytes);

// The same of what xz packed, which takes half of the bytes. That wants the system's liblzma:
// nothing where has_xz() is false.
bool has_xz();
std::optional<std::string> unpacked_xz(const std::string& path, uint64_t offset,
                                       size_t packed_bytes, size_t raw_bytes);

}  // namespace taeda::cuda
