#include "device/kernel_compiler.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "base/dynamic_library.h"
#include "device/device.h"
#include "taeda/error.h"

namespace taeda::cuda {
namespace {

constexpr std::array kOptions = {"--std=c++20", "-default-device", "--fmad=true",
                                 "--diag-suppress=1097,177,550"};

// nvrtc.h: results are an enum whose 0 is success, programs a pointer.
class Nvrtc final : public KernelCompiler {
 public:
  explicit Nvrtc(const DynamicLibrary& library);
  bool complete() const { return complete_; }

  // NVRTC's own has no patch level: the file's size and time tell builds from each other.
  std::string version() const override {
    int major = 0, minor = 0;
    check(version_(&major, &minor));
    std::string version = format("nvrtc {}.{}", major, minor);
    Dl_info library{};
    struct stat file {};
    if (dladdr(reinterpret_cast<void*>(version_), &library) && library.dli_fname &&
        stat(library.dli_fname, &file) == 0)
      version += format(" of {} bytes, {}", file.st_size, file.st_mtim.tv_sec);
    return version;
  }

  std::vector<int> architectures() const override {
    int count = 0;
    check(architecture_count_(&count));
    std::vector<int> found(static_cast<size_t>(count));
    check(architectures_(found.data()));
    return found;
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
    return architecture.starts_with("sm_") ? read(program.handle, cubin_size_, cubin_)
                                           : read(program.handle, ptx_size_, ptx_);
  }

 private:
  using Size = int(void* program, size_t* bytes);
  using Text = int(void* program, char* text);

  void check(int status) const { TD_CHECK(status == 0, "NVRTC: {}", error_(status)); }
  std::string read(void* program, Size* size, Text* text) const {
    size_t bytes = 0;
    check(size(program, &bytes));
    std::string result(bytes, 0);
    check(text(program, result.data()));
    return result;
  }

  bool complete_ = true;
  int (*version_)(int* major, int* minor);
  const char* (*error_)(int status);
  int (*architecture_count_)(int* count);
  int (*architectures_)(int* architectures);
  int (*create_)(void** program, const char* text, const char* name, int headers,
                 const char* const* texts, const char* const* names);
  int (*compile_)(void* program, int count, const char* const* options);
  int (*destroy_)(void** program);
  Size *log_size_, *ptx_size_, *cubin_size_;
  Text *log_, *ptx_, *cubin_;
};

Nvrtc::Nvrtc(const DynamicLibrary& library) {
  const auto find = [&](auto*& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(library.find(name));
    complete_ = complete_ && function;
  };
  find(version_, "nvrtcVersion");
  find(error_, "nvrtcGetErrorString");
  find(architecture_count_, "nvrtcGetNumSupportedArchs");
  find(architectures_, "nvrtcGetSupportedArchs");
  find(create_, "nvrtcCreateProgram");
  find(compile_, "nvrtcCompileProgram");
  find(destroy_, "nvrtcDestroyProgram");
  find(log_size_, "nvrtcGetProgramLogSize");
  find(log_, "nvrtcGetProgramLog");
  find(ptx_size_, "nvrtcGetPTXSize");
  find(ptx_, "nvrtcGetPTX");
  find(cubin_size_, "nvrtcGetCUBINSize");
  find(cubin_, "nvrtcGetCUBIN");
}

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

KernelCompiler* open_nvrtc(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const DynamicLibrary library = DynamicLibrary::open(path);
    if (Nvrtc found(library); library.is_open() && found.complete())
      return new Nvrtc(std::move(found));
  }
  return nullptr;
}

KernelCompiler* nvrtc() {
  const std::string packages = library_folder() + "/../../nvidia";
  static KernelCompiler* const instance =
      open_nvrtc({packages + "/cuda_nvrtc/lib/libnvrtc.so.12",
                  packages + "/cu13/lib/libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.13"});
  return instance;
}

std::string target_of(int card, const std::vector<int>& architectures) {
  int newest = 0;
  for (const int known : architectures)
    if (known <= card) newest = std::max(newest, known);
  TD_CHECK(newest > 0, "NVRTC compiles nothing for devices of compute capability {}.{}", card / 10,
           card % 10);
  return (newest == card ? "sm_" : "compute_") + std::to_string(newest);
}

CompiledUnit compiled(const KernelText& unit, int card, const KernelCache& cache,
                      KernelCompiler* compiler) {
  TD_CHECK(compiler,
           "the kernels of {} are compiled when they are used, and there is no compiler for them\n"
           "Fix: pip install nvidia-cuda-nvrtc-cu12",
           unit.name);
  const std::string target = target_of(card, compiler->architectures());
  std::string key = key_of(unit, target, compiler->version());
  if (auto known = cache.find(key)) return {*std::move(known), std::move(key), true};
  std::string image = compiler->compile(unit, target);
  cache.put(key, image);
  return {std::move(image), std::move(key), false};
}

Module load_unit(const DeviceApi& driver, const KernelText& unit, int card,
                 const KernelCache& cache, KernelCompiler* compiler) {
  Module module = nullptr;
  CompiledUnit code = compiled(unit, card, cache, compiler);
  Status status = driver.module_load(&module, code.image.c_str());
  if (status != kSuccess && code.from_cache) {
    cache.remove(code.key);
    code = compiled(unit, card, cache, compiler);
    status = driver.module_load(&module, code.image.c_str());
  }
  check(status);
  return module;
}

}  // namespace taeda::cuda
