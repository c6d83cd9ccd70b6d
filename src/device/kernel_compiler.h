// Kernels that the file beside libtaeda holds as text, not as PTX: those of rare types, where their
// PTX would take too much of a wheel. NVRTC compiles one for the device when it is first asked for,
// and what it made is kept on disk (kernel_cache.h).
//
// What comes of it is for one architecture and needs no work of the driver; PTX would need a driver
// as new as NVRTC.
#pragma once

#include <string>
#include <utility>
#include <vector>

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
  // RuntimeError with what the compiler says. `architecture`: sm_90
  virtual std::string compile(const KernelText& unit, const std::string& architecture) = 0;
};

// NVRTC of CUDA 12 or 13, found among Python's packages (nvidia/*/lib) or by the system's loader;
// null where there is none.
KernelCompiler* nvrtc();

// The unit for an architecture: from the cache, else compiled and put there. RuntimeError without a
// compiler, naming what to install.
std::string compiled(const KernelText& unit, const std::string& architecture,
                     const KernelCache& cache, KernelCompiler* compiler);

}  // namespace taeda::cuda
