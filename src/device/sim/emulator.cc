#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "device/sim/emulator_api.h"
#include "device/sim/failure.h"

// A hash of the kernels' text, which the emulator has, too (tools/kernel_stamp.py).
extern "C" const char* taeda_kernel_stamp();

namespace taeda::sim {
namespace {

using GetApi = const EmulatorApi*();
using GetStamp = const char*();
// TAEDA_EMULATOR names another one, such as that with the address sanitizer.
const char* library_name() {
  const char* const name = std::getenv("TAEDA_EMULATOR");
  return name ? name : "libtaeda_emulator.so";
}

// The target that builds it: taeda_emulator of libtaeda_emulator.so.
std::string target_name() {
  std::string name = library_name();
  name = name.substr(name.rfind('/') + 1);  // npos + 1 is 0
  if (name.starts_with("lib")) name = name.substr(3);
  return name.substr(0, name.find('.'));
}

struct Opened {
  GetApi* api = nullptr;
  bool is_stale = false;
};
Opened open() {
  Dl_info here{};
  dladdr(reinterpret_cast<void*>(&emulator), &here);
  std::string path = here.dli_fname ? here.dli_fname : "";
  path.replace(path.rfind('/') + 1, std::string::npos, library_name());
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return {};
  const auto stamp = reinterpret_cast<GetStamp*>(dlsym(library, "taeda_kernel_stamp"));
  const bool is_stale = !stamp || std::string_view(stamp()) != taeda_kernel_stamp();
  return {reinterpret_cast<GetApi*>(dlsym(library, "taeda_emulator_api")), is_stale};
}

}  // namespace

const EmulatorApi& emulator() {
  static const Opened library = open();
  if (!library.api)
    throw Failure(kKernelFault, std::string("the simulated driver has no kernels: build ") +
                                    library_name() + " (ninja " + target_name() + ")");
  if (library.is_stale)
    throw Failure(kKernelFault, std::string(library_name()) +
                                    " was built from other text of the kernels than this driver: "
                                    "build it again (ninja " +
                                    target_name() + ")");
  return *library.api();
}

}  // namespace taeda::sim
