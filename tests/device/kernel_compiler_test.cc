#include "device/kernel_compiler.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "taeda/error.h"

namespace taeda::cuda {
namespace {

class StandIn : public KernelCompiler {
 public:
  std::string version() const override { return named; }
  std::string compile(const KernelText& unit, const std::string& architecture) override {
    count++;
    TD_CHECK(unit.text != "wrong", "{}: error", unit.name);
    return architecture + " of " + unit.text;
  }
  std::string named = "stand-in 1";
  int count = 0;
};

class KernelCompilerTest : public testing::Test {
 protected:
  KernelCompilerTest() {
    std::string pattern = testing::TempDir() + "kernel_compiler_XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~KernelCompilerTest() override { std::filesystem::remove_all(folder_); }
  std::string compiled_here(const KernelText& unit, const std::string& architecture = "sm_90") {
    return compiled(unit, architecture, KernelCache(folder_), &compiler_);
  }

  std::string folder_;
  StandIn compiler_;
  const KernelText unit_{"f.cu", "text", {{"a.h", "one"}}};
};

TEST_F(KernelCompilerTest, AUnitIsCompiledOnce) {
  EXPECT_EQ(compiled_here(unit_), "sm_90 of text");
  EXPECT_EQ(compiled_here(unit_), "sm_90 of text");
  EXPECT_EQ(compiler_.count, 1);
}

TEST_F(KernelCompilerTest, WhateverDecidesTheCodeIsCompiledAnew) {
  compiled_here(unit_);
  EXPECT_EQ(compiled_here(unit_, "sm_80"), "sm_80 of text");
  KernelText other = unit_;
  other.text = "another";
  EXPECT_EQ(compiled_here(other), "sm_90 of another");
  other = unit_;
  other.headers[0].second = "two";
  compiled_here(other);
  other.headers[0] = {"a.ho", "ne"};
  compiled_here(other);
  EXPECT_EQ(compiler_.count, 5);
  compiler_.named = "stand-in 2";
  compiled_here(unit_);
  EXPECT_EQ(compiler_.count, 6);
}

TEST_F(KernelCompilerTest, WhatDoesNotCompileIsNotKept) {
  const KernelText wrong{"w.cu", "wrong", {}};
  EXPECT_THROW(compiled_here(wrong), Error);
  EXPECT_THROW(compiled_here(wrong), Error);
  EXPECT_EQ(compiler_.count, 2);
}

TEST_F(KernelCompilerTest, WithoutAFolderEachCallCompiles) {
  compiled(unit_, "sm_90", KernelCache(""), &compiler_);
  compiled(unit_, "sm_90", KernelCache(""), &compiler_);
  EXPECT_EQ(compiler_.count, 2);
}

TEST_F(KernelCompilerTest, WithoutACompilerTheErrorSaysWhatToInstall) {
  try {
    compiled(unit_, "sm_90", KernelCache(folder_), nullptr);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("pip install nvidia-cuda-nvrtc"), std::string::npos);
  }
}

TEST_F(KernelCompilerTest, NvrtcMakesCubins) {
  if (!nvrtc()) GTEST_SKIP() << "no NVRTC";
  const KernelText unit{
      "scale.cu",
      "#include \"factor.h\"\n"
      "extern \"C\" __global__ void scale(float* x) { x[threadIdx.x] *= kFactor; }",
      {{"factor.h", "constexpr float kFactor = 3;"}}};
  EXPECT_EQ(compiled(unit, "sm_75", KernelCache(folder_), nvrtc()).substr(0, 4),
            "\x7f"
            "ELF");
  const KernelText wrong{"wrong.cu", "int f() { return x; }", {}};
  try {
    nvrtc()->compile(wrong, "sm_75");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("wrong.cu(1): error"), std::string::npos);
  }
}

}  // namespace
}  // namespace taeda::cuda
