#include "device/cubin_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/dynamic_library.h"
#include "device/packed_part.h"
#include "taeda/error.h"

namespace taeda::cuda {
namespace {

std::string xz(const std::string& raw) {
  int (*encode)(uint32_t preset, int check, const void* allocator, const uint8_t* in,
                size_t in_bytes, uint8_t* out, size_t* out_at, size_t out_bytes);
  DynamicLibrary::open("liblzma.so.5").load(encode, "lzma_easy_buffer_encode");
  std::string data(raw.size() + 1000, 0);
  size_t size = 0;
  constexpr int kCrc32 = 1;
  encode(6, kCrc32, nullptr, reinterpret_cast<const uint8_t*>(raw.data()), raw.size(),
         reinterpret_cast<uint8_t*>(data.data()), &size, data.size());
  return data.substr(0, size);
}

// What tools/pack_cubins.py writes of modules with these kernels.
std::string packed(const std::vector<std::pair<std::string, std::string>>& units) {
  std::string index, images;
  size_t begin = 0;
  for (int round = 0; round < 2; round++) {  // offsets count the index, whose size they decide
    index.clear(), images.clear();
    for (const auto& [kernels, image] : units) {
      const std::string data = xz(image);
      std::string offset = std::to_string(begin + images.size());
      offset.insert(0, 8 - offset.size(), '0');
      index += offset + " " + std::to_string(data.size()) + " " + std::to_string(image.size()) +
               " " + kernels + "\n";
      images += data;
    }
    begin = 16 + index.size();
  }
  const uint32_t head[] = {77, static_cast<uint32_t>(index.size())};
  return "TDCUBIN2" + std::string(reinterpret_cast<const char*>(head), 8) + index + images;
}

class CubinFileTest : public testing::Test {
 protected:
  CubinFileTest() {
    std::string pattern = testing::TempDir() + "cubin_file_XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~CubinFileTest() override { std::filesystem::remove_all(folder_); }
  void SetUp() override {
    if (!has_xz()) GTEST_SKIP() << "no liblzma";
  }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes;
    return folder_ + "/" + name;
  }
  std::string found(int card) const {
    const auto file = CubinFile::find(folder_, card);
    return file ? file->path().substr(folder_.size() + 1) : "";
  }
  std::string folder_;
};

TEST_F(CubinFileTest, GivesTheModuleThatHasAKernel) {
  const std::string second(3000, 'x');
  const CubinFile file(write(
      "sm_90.bin", packed({{"add_f32 add_f16", std::string("\0one", 4)}, {"f_i64", second}})));
  EXPECT_EQ(file.unit("add_f16"), file.unit("add_f32"));
  EXPECT_EQ(file.image(file.unit("add_f32")), std::string("\0one", 4));
  EXPECT_EQ(file.image(file.unit("f_i64")), second);
  EXPECT_EQ(file.unit("add"), CubinFile::kNone);
  EXPECT_EQ(file.names().size(), 3u);
  EXPECT_EQ(file.stamp(), 77u);
  EXPECT_EQ(CubinFile::stamp_of(write("nine", "123456789")), 0xcbf43926u);  // CRC-32's check value
}

TEST_F(CubinFileTest, ADeviceRunsWhatIsForItOrAnEarlierOneOfItsMajorNumber) {
  for (const auto& name : {"sm_75.bin", "sm_80.bin", "sm_86.bin", "sm_120.bin"})
    write(name, packed({}));
  EXPECT_EQ(found(75), "sm_75.bin");
  EXPECT_EQ(found(80), "sm_80.bin");
  EXPECT_EQ(found(89), "sm_86.bin");
  EXPECT_EQ(found(90), "");
  EXPECT_EQ(found(100), "");
  EXPECT_EQ(found(121), "sm_120.bin");
  EXPECT_EQ(CubinFile::find("", 75), nullptr);
  EXPECT_EQ(CubinFile::find(folder_ + "/none", 75), nullptr);
}

TEST_F(CubinFileTest, RefusesWhatIsDamaged) {
  std::string bytes = packed({{"f_i64", std::string(3000, 'x')}});
  EXPECT_THROW(CubinFile(write("short.bin", bytes.substr(0, 20))), Error);
  EXPECT_THROW(CubinFile(write("other.bin", "TDCUBIN1" + bytes.substr(8))), Error);
  EXPECT_THROW(CubinFile(write("absent/file.bin", bytes)), Error);
  const CubinFile cut(write("cut.bin", bytes.substr(0, bytes.size() - 5)));
  EXPECT_THROW(cut.image(0), Error);
  bytes[bytes.size() - 6] ^= 1;
  const CubinFile flipped(write("flipped.bin", bytes));
  EXPECT_THROW(flipped.image(0), Error);
}

}  // namespace
}  // namespace taeda::cuda
