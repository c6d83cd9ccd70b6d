#include "device/kernel_compiler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "taeda/error.h"

namespace taeda::cuda {
namespace {

const std::string kElf =
    "\x7f"
    "ELF";

class StandIn : public KernelCompiler {
 public:
  std::string version() const override { return named; }
  std::vector<int> architectures() const override { return known; }
  std::string compile(const KernelText& unit, const std::string& architecture) override {
    count++;
    TD_CHECK(unit.text != "wrong", "{}: error", unit.name);
    return architecture + " of " + unit.text;
  }
  std::string named = "stand-in 1";
  std::vector<int> known{75, 80, 90};
  int count = 0;
};

class KernelCompilerTest : public testing::Test {
 protected:
  KernelCompilerTest() {
    std::string pattern = testing::TempDir() + "kernel_compiler_XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~KernelCompilerTest() override { std::filesystem::remove_all(folder_); }
  std::string compiled_here(const KernelText& unit, int card = 90) {
    return compiled(unit, card, KernelCache(folder_), &compiler_).image;
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
  EXPECT_EQ(compiled_here(unit_, 80), "sm_80 of text");
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

TEST_F(KernelCompilerTest, DevicesNewerThanTheCompilerGetPtxOfItsNewest) {
  EXPECT_EQ(target_of(90, {75, 80, 90}), "sm_90");
  EXPECT_EQ(target_of(89, {75, 80, 90}), "compute_80");
  EXPECT_EQ(target_of(120, {90, 75, 80}), "compute_90");
  EXPECT_THROW(target_of(70, {75, 80, 90}), Error);
  EXPECT_EQ(compiled_here(unit_, 120), "compute_90 of text");
  EXPECT_EQ(compiled_here(unit_, 100), "compute_90 of text");
  EXPECT_EQ(compiler_.count, 1);
  compiler_.known.push_back(100);  // a newer compiler
  EXPECT_EQ(compiled_here(unit_, 100), "sm_100 of text");
}

TEST_F(KernelCompilerTest, AnImageOfTheCacheThatTheDriverRefusesIsCompiledAnewOnce) {
  static std::vector<std::string> loaded;
  loaded.clear();
  DeviceApi driver{};
  driver.module_load = [](Module* module, const void* image) {
    loaded.emplace_back(static_cast<const char*>(image));
    *module = reinterpret_cast<Module>(&loaded);
    return loaded.back() == "sm_90 of text" ? kSuccess : kInvalidImage;
  };
  driver.error_text = [](Status, const char** text) {
    *text = "device kernel image is invalid";
    return kSuccess;
  };
  const KernelCache cache(folder_);
  const auto load = [&] { return load_unit(driver, unit_, 90, cache, &compiler_); };
  EXPECT_NE(load(), nullptr);
  EXPECT_EQ(compiler_.count, 1);
  const std::string key = compiled(unit_, 90, cache, &compiler_).key;
  cache.put(key, "of another driver");
  EXPECT_NE(load(), nullptr);
  EXPECT_EQ(loaded[1], "of another driver");
  EXPECT_EQ(compiler_.count, 2);
  EXPECT_EQ(cache.find(key), "sm_90 of text");
}

TEST_F(KernelCompilerTest, WhatDoesNotCompileIsNotKept) {
  const KernelText wrong{"w.cu", "wrong", {}};
  EXPECT_THROW(compiled_here(wrong), Error);
  EXPECT_THROW(compiled_here(wrong), Error);
  EXPECT_EQ(compiler_.count, 2);
}

TEST_F(KernelCompilerTest, WithoutAFolderEachCallCompiles) {
  compiled(unit_, 90, KernelCache(""), &compiler_);
  compiled(unit_, 90, KernelCache(""), &compiler_);
  EXPECT_EQ(compiler_.count, 2);
}

TEST_F(KernelCompilerTest, WithoutACompilerTheErrorSaysWhatToInstall) {
  try {
    compiled(unit_, 90, KernelCache(folder_), nullptr);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("pip install nvidia-cuda-nvrtc"), std::string::npos);
  }
}

TEST_F(KernelCompilerTest, ALibraryThatLacksAFunctionIsPassedOver) {
  EXPECT_EQ(open_nvrtc({"libm.so.6", "libnone.so.12"}), nullptr);
  if (nvrtc()) {
    EXPECT_NE(open_nvrtc({"libm.so.6", "libnvrtc.so.12"}), nullptr);
  }
}

TEST_F(KernelCompilerTest, NvrtcMakesCubins) {
  if (!nvrtc()) GTEST_SKIP() << "no NVRTC";
  const KernelText unit{
      "scale.cu",
      "#include \"factor.h\"\n"
      "extern \"C\" __global__ void scale(float* x) { x[threadIdx.x] *= kFactor; }",
      {{"factor.h", "constexpr float kFactor = 3;"}}};
  EXPECT_EQ(nvrtc()->compile(unit, "sm_75").substr(0, 4), kElf);
  EXPECT_EQ(compiled(unit, 75, KernelCache(folder_), nvrtc()).image.substr(0, 4), kElf);
  // No device is as new as that: what NVRTC knows best, as PTX.
  const int newest = std::ranges::max(nvrtc()->architectures());
  const std::string ptx = compiled(unit, 999, KernelCache(folder_), nvrtc()).image;
  EXPECT_NE(ptx.find(".target sm_" + std::to_string(newest)), std::string::npos) << ptx;
  EXPECT_NE(nvrtc()->version().find(" bytes, "), std::string::npos) << nvrtc()->version();
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
