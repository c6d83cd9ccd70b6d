// Kernels that the file beside libtaeda holds as text, not as PTX: those of rare types, where their
// PTX would take too much of a wheel. NVRTC compiles one for the device when it is first asked for,
// and what it made is kept on disk (kernel_cache.h).
//
// What comes of it is for one architecture and needs no work of the driver. For one that is newer
// than NVRTC it is PTX of the newest one before, which the driver compiles: it has to be as new as
// NVRTC, and is, since it knows the device.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "device/api.h"
#include "device/kernel_cache.h"

namespace taeda::cuda {

struct KernelText {
  std::string name, text;                                    // of a translation unit
  std::vector<std::pair<std::string, std::string>> headers;  // that it may include, by their names
};

class KernelCompiler {
 public:
  virtual ~KernelCompiler() = default;
  // Two that differ in it may make different code.
  virtual std::string version() const = 0;
  // What it makes code for: 75, 80, ...
  virtual std::vector<int> architectures() const = 0;
  // RuntimeError with what the compiler says. `architecture`: sm_90 for a cubin, compute_90 for PTX
  virtual std::string compile(const KernelText& unit, const std::string& architecture) = 0;
};

// The first of these libraries that is there and has all that is called of NVRTC; null for none.
KernelCompiler* open_nvrtc(const std::vector<std::string>& paths);
// NVRTC of CUDA 12 or 13, found among Python's packages (nvidia/*/lib) or by the system's loader;
// null where there is none.
KernelCompiler* nvrtc();

// What the unit is compiled for, where a device of compute capability 9.0 is a `card` of 90.
std::string target_of(int card, const std::vector<int>& architectures);

struct CompiledUnit {
  std::string image;
  std::string key;          // in the cache
  bool from_cache = false;  // else it was compiled, and put there
};
// RuntimeError without a compiler, naming what to install.
CompiledUnit compiled(const KernelText& unit, int card, const KernelCache& cache,
                      KernelCompiler* compiler);

// The unit in the current context. An image of the cache that the driver refuses, as that of a
// newer one before it was replaced, is removed, and compiled anew once.
Module load_unit(const DeviceApi& driver, const KernelText& unit, int card,
                 const KernelCache& cache, KernelCompiler* compiler);

}  // namespace taeda::cuda
