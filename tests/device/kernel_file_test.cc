#include "device/kernel_file.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdio>
#include <fstream>

#include "taeda/error.h"

namespace taeda::cuda {
namespace {

void append(std::string& bytes, uint32_t value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Two kernels of two lines behind one prelude: what tools/pack_kernels.py writes of
//   .version 8.4 / .entry f_f32(  add %f3, %f1 / .entry g_f32(  add %f200, %f200
std::string family(const std::string& second = "g_f32") {
  const std::string templates = ".version 8.4\n.entry \x01(\nadd %f\x14, %f\x14\n";
  const std::string index = "#0 0 0 1 -1\nf_f32 1 0 2 0\n" + second + " 3 4 2 0\n";
  const std::string ids("\0\1\2\1\2", 5);
  const std::string numbers("\0\4\0\5\0\x8e\3\1", 8);  // new 3, new 1; new 200, 1 back
  std::string raw;
  append(raw, 3);
  append(raw, 3);
  for (const std::string& part : {templates, index, ids})
    append(raw, static_cast<uint32_t>(part.size()));
  return raw + templates + index + ids + numbers;
}

class File {
 public:
  explicit File(const std::string& raw, const std::string& magic = "TDKERN2\n",
                std::string types = "f32 f16")
      : path_(testing::TempDir() + "kernel_file_test.bin") {
    std::string packed(compressBound(raw.size()), 0);
    uLongf size = packed.size();
    compress(reinterpret_cast<Bytef*>(packed.data()), &size,
             reinterpret_cast<const Bytef*>(raw.data()), raw.size());
    std::string bytes = magic;
    append(bytes, 1);
    append(bytes, static_cast<uint32_t>(size));
    append(bytes, static_cast<uint32_t>(raw.size()));
    types.resize(32);
    std::ofstream(path_, std::ios::binary) << bytes << types << packed.substr(0, size);
  }
  ~File() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(KernelFile, GivesAKernelsTextBehindItsPrelude) {
  const File file(family());
  KernelFile kernels(file.path());
  EXPECT_EQ(kernels.image("f_f32"), ".version 8.4\n.entry f_f32(\nadd %f3, %f1\n");
  EXPECT_EQ(kernels.image("g_f32"), ".version 8.4\n.entry g_f32(\nadd %f200, %f200\n");
}

// A unit of two kernels, and a header.
std::string text_family() {
  const std::string templates = "u.cu\n#include \"a.h\"\nint x = y %r\x10;\n#define y 1\n";
  const std::string index = "f_c64 0 0 1 -1\ng_c64 0 0 1 -1\nu.cu 1 0 2 -1\n&a.h 3 2 1 -1\n";
  const std::string ids("\0\1\2\3", 4), numbers("\0\xc", 2);
  std::string raw;
  append(raw, 4);
  append(raw, 4);
  for (const std::string& part : {templates, index, ids})
    append(raw, static_cast<uint32_t>(part.size()));
  return raw + templates + index + ids + numbers;
}

TEST(KernelFile, GivesTheUnitOfAKernelThatItHasAsText) {
  const File file(text_family(), "TDKERN2\n", "text");
  KernelFile kernels(file.path());
  EXPECT_EQ(kernels.image("f_c64"), "");
  const auto unit = kernels.text("g_c64");
  ASSERT_TRUE(unit);
  EXPECT_EQ(unit->name, "u.cu");
  EXPECT_EQ(unit->text, "#include \"a.h\"\nint x = y %r7;\n");
  EXPECT_EQ(unit->headers.size(), 1u);
  EXPECT_EQ(unit->headers[0].first, "a.h");
  EXPECT_EQ(unit->headers[0].second, "#define y 1\n");
  EXPECT_FALSE(kernels.text("h_c64"));
  EXPECT_EQ(kernels.names().size(), 2u);
  const File ptx_alone(family());
  EXPECT_FALSE(KernelFile(ptx_alone.path()).text("f_f32"));
}

TEST(KernelFile, FindsAFamilyByTheTypeInFrontOfAForm) {
  for (const std::string name : {"g_f32_any", "g_f32_list"}) {
    const File file(family(name));
    EXPECT_NE(KernelFile(file.path()).image(name), "");
  }
}

TEST(KernelFile, KnowsWhichNamesItHas) {
  const File file(family());
  KernelFile kernels(file.path());
  EXPECT_EQ(kernels.image("h_f32"), "");
  EXPECT_EQ(kernels.image("f_f32_any"), "");
  EXPECT_EQ(kernels.image("f_i64"), "");
  EXPECT_EQ(kernels.names().size(), 2u);
}

TEST(KernelFile, RefusesWhatItCannotRead) {
  EXPECT_THROW(KernelFile(File(family(), "TDKERN1\n").path()), Error);
  std::string wrong = family();
  wrong[wrong.size() - 11] = 77;  // a line of no template
  const File file(wrong);
  KernelFile kernels(file.path());
  EXPECT_THROW(kernels.image("f_f32"), Error);
  wrong = family();
  wrong[wrong.size() - 1] = 2;  // only one register was named
  const File another(wrong);
  EXPECT_THROW(KernelFile(another.path()).image("g_f32"), Error);
}

}  // namespace
}  // namespace taeda::cuda
