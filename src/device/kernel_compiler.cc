#include "device/kernel_compiler.h"

#include <array>

#include "base/dynamic_library.h"
#include "taeda/error.h"

namespace taeda::cuda {
namespace {

constexpr std::array kOptions = {"--std=c++20", "-default-device", "--fmad=true",
                                 "--diag-suppress=1097,177,550"};

// nvrtc.h: results are an enum whose 0 is success, programs a pointer.
class Nvrtc final : public KernelCompiler {
 public:
  static Nvrtc* open() {
    const std::string packages = library_folder() + "/../../nvidia";
    for (const std::string& path :
         {packages + "/cuda_nvrtc/lib/libnvrtc.so.12", packages + "/cu13/lib/libnvrtc.so.13",
          std::string("libnvrtc.so.12"), std::string("libnvrtc.so.13")})
      if (const DynamicLibrary library = DynamicLibrary::open(path); library.is_open())
        return new Nvrtc(library);
    return nullptr;
  }

  std::string version() const override {
    int major = 0, minor = 0;
    check(version_(&major, &minor));
    return "nvrtc " + std::to_string(major) + "." + std::to_string(minor);
  }

  std::string compile(const KernelText& unit, const std::string& architecture) override {
    std::vector<const char*> names, texts;
    for (const auto& [name, text] : unit.headers)
      names.push_back(name.c_str()), texts.push_back(text.c_str());
    const std::string target = "--gpu-architecture=" + architecture;
    std::vector<const char*> options(kOptions.begin(), kOptions.end());
    options.push_back(target.c_str());
    struct Program {
      const Nvrtc& nvrtc;
      void* handle = nullptr;
      ~Program() { nvrtc.destroy_(&handle); }
    } program{*this};
    check(create_(&program.handle, unit.text.c_str(), unit.name.c_str(),
                  static_cast<int>(names.size()), texts.data(), names.data()));
    const int status = compile_(program.handle, static_cast<int>(options.size()), options.data());
    TD_CHECK(status == 0, "{} for {}: {}", unit.name, architecture,
             read(program.handle, log_size_, log_).c_str());
    return read(program.handle, cubin_size_, cubin_);
  }

 private:
  using Size = int(void* program, size_t* bytes);
  using Text = int(void* program, char* text);

  explicit Nvrtc(const DynamicLibrary& library) {
    library.load(version_, "nvrtcVersion");
    library.load(error_, "nvrtcGetErrorString");
    library.load(create_, "nvrtcCreateProgram");
    library.load(compile_, "nvrtcCompileProgram");
    library.load(destroy_, "nvrtcDestroyProgram");
    library.load(log_size_, "nvrtcGetProgramLogSize");
    library.load(log_, "nvrtcGetProgramLog");
    library.load(cubin_size_, "nvrtcGetCUBINSize");
    library.load(cubin_, "nvrtcGetCUBIN");
  }
  void check(int status) const { TD_CHECK(status == 0, "NVRTC: {}", error_(status)); }
  std::string read(void* program, Size* size, Text* text) const {
    size_t bytes = 0;
    check(size(program, &bytes));
    std::string result(bytes, 0);
    check(text(program, result.data()));
    return result;
  }

  int (*version_)(int* major, int* minor);
  const char* (*error_)(int status);
  int (*create_)(void** program, const char* text, const char* name, int headers,
                 const char* const* texts, const char* const* names);
  int (*compile_)(void* program, int count, const char* const* options);
  int (*destroy_)(void** program);
  Size *log_size_, *cubin_size_;
  Text *log_, *cubin_;
};

// All that decides what comes of the unit; parts are told from each other by their lengths.
std::string key_of(const KernelText& unit, const std::string& architecture,
                   const std::string& compiler) {
  std::string key;
  const auto add = [&](const std::string& part) {
    key += std::to_string(part.size()) + ":" + part;
  };
  add(architecture);
  add(compiler);
  for (const char* const option : kOptions) add(option);
  add(unit.text);
  for (const auto& [name, text] : unit.headers) add(name), add(text);
  return key;
}

}  // namespace

KernelCompiler* nvrtc() {
  static Nvrtc* const instance = Nvrtc::open();
  return instance;
}

std::string compiled(const KernelText& unit, const std::string& architecture,
                     const KernelCache& cache, KernelCompiler* compiler) {
  TD_CHECK(compiler,
           "the kernels of {} are compiled when they are used, and there is no compiler for them\n"
           "Fix: pip install nvidia-cuda-nvrtc-cu12",
           unit.name);
  const std::string key = key_of(unit, architecture, compiler->version());
  if (auto known = cache.find(key)) return *std::move(known);
  std::string image = compiler->compile(unit, architecture);
  cache.put(key, image);
  return image;
}

}  // namespace taeda::cuda
