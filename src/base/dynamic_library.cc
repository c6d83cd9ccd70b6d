#include "base/dynamic_library.h"

#include <dlfcn.h>

#include "taeda/error.h"

namespace taeda {

std::string library_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&library_folder), &info) == 0 || !info.dli_fname) return {};
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

DynamicLibrary DynamicLibrary::open(std::string_view file_name) {
  DynamicLibrary library;
  for (const std::string& folder : {library_folder(), std::string()}) {
    const bool system = folder.empty();
    const std::string path =
        system ? std::string(file_name) : folder + "/" + std::string(file_name);
    library.handle_ = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (library.handle_) {
      library.path_ = path;
      library.error_.clear();
      return library;
    }
    const char* reason = dlerror();
    library.error_ += (library.error_.empty() ? "" : "; ") + std::string(reason ? reason : path);
  }
  return library;
}

void* DynamicLibrary::find(const char* name) const {
  return handle_ ? dlsym(handle_, name) : nullptr;
}

void* DynamicLibrary::require(const char* name) const {
  TD_CHECK(is_open(), "cannot open library: {}", error_);
  void* symbol = find(name);
  TD_CHECK(symbol, "{} has no symbol {}", path_, name);
  return symbol;
}

}  // namespace taeda
