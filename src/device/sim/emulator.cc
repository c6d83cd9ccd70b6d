#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "device/sim/emulator_api.h"
#include "device/sim/failure.h"

namespace taeda::sim {
namespace {

using GetApi = const EmulatorApi*();
// TAEDA_EMULATOR names another one, such as that with the address sanitizer.
const char* library_name() {
  const char* const name = std::getenv("TAEDA_EMULATOR");
  return name ? name : "libtaeda_emulator.so";
}

GetApi* open() {
  Dl_info here{};
  dladdr(reinterpret_cast<void*>(&emulator), &here);
  std::string path = here.dli_fname ? here.dli_fname : "";
  path.replace(path.rfind('/') + 1, std::string::npos, library_name());
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  return library ? reinterpret_cast<GetApi*>(dlsym(library, "taeda_emulator_api")) : nullptr;
}

}  // namespace

const EmulatorApi& emulator() {
  static GetApi* const get = open();
  if (!get)
    throw Failure(kKernelFault, std::string("the simulated driver has no kernels: build ") +
                                    library_name() + " (ninja taeda_emulator)");
  return *get();
}

}  // namespace taeda::sim
