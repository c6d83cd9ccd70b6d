// A part of a file that zlib has packed: what the files of kernels are made of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace taeda::cuda {

// The `raw_bytes` that were packed into `packed_bytes` from `offset` on; nothing where the file
// ends before, or where that is not what is there.
std::optional<std::string> unpacked(const std::string& path, uint64_t offset, size_t packed_bytes,
                                    size_t raw_bytes);

}  // namespace taeda::cuda
