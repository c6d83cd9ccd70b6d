#include "device/cubin_file.h"

#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

#include "base/dynamic_library.h"
#include "device/packed_part.h"
#include "taeda/error.h"

namespace taeda::cuda {
namespace {

constexpr std::string_view kMagic = "TDCUBIN2";

}  // namespace

CubinFile::CubinFile(std::string path) : path_(std::move(path)) {
  std::ifstream file(path_, std::ios::binary);
  char magic[kMagic.size()] = {};
  uint32_t head[2] = {};
  file.read(magic, sizeof magic).read(reinterpret_cast<char*>(head), sizeof head);
  TD_CHECK(file && std::string_view(magic, sizeof magic) == kMagic,
           "{}: no file of cubins, or one of another version", path_);
  stamp_ = head[0];
  std::string index(head[1], 0);
  TD_CHECK(file.read(index.data(), static_cast<std::streamsize>(index.size())),
           "{}: the file of cubins is damaged", path_);
  std::istringstream rows(index);
  for (std::string row; std::getline(rows, row);) {
    std::istringstream words(row);
    Unit unit{};
    TD_CHECK(words >> unit.offset >> unit.packed_bytes >> unit.raw_bytes,
             "{}: the file of cubins is damaged", path_);
    for (std::string kernel; words >> kernel;) kernels_.emplace(kernel, units_.size());
    units_.push_back(unit);
  }
}

std::unique_ptr<CubinFile> CubinFile::find(const std::string& folder, int card) {
  if (folder.empty()) return nullptr;
  for (int known = card; known >= card / 10 * 10; known--) {
    const std::string path = folder + "/sm_" + std::to_string(known) + ".bin";
    if (access(path.c_str(), R_OK) == 0) return std::make_unique<CubinFile>(path);
  }
  return nullptr;
}

std::string CubinFile::default_folder() {
  if (const char* const own = std::getenv("TAEDA_CUBINS")) return own;
  return library_folder() + "/../../taeda_cuda";
}

uint32_t CubinFile::stamp_of(const std::string& kernel_file) {
  std::ifstream file(kernel_file, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  return static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())));
}

size_t CubinFile::unit(const std::string& kernel) const {
  const auto found = kernels_.find(kernel);
  return found == kernels_.end() ? kNone : found->second;
}

std::string CubinFile::image(size_t unit) const {
  const Unit& what = units_.at(unit);
  std::optional<std::string> raw =
      unpacked_xz(path_, what.offset, what.packed_bytes, what.raw_bytes);
  TD_CHECK(raw, "{}: the file of cubins is damaged", path_);
  return *std::move(raw);
}

std::vector<std::string> CubinFile::names() const {
  std::vector<std::string> all;
  for (const auto& [name, unit] : kernels_) all.push_back(name);
  return all;
}

}  // namespace taeda::cuda
