// DynamicLibrary: a shared library opened at run time, for what taeda can use but does not need in
// order to start.
//
// Looked for beside libtaeda.so (where a wheel puts its libraries and a build folder has links to
// them), then where the system's loader looks. A library stays open until the process ends: closing
// one that has started threads or registered handlers is never safe.
#pragma once

#include <string>
#include <string_view>

namespace taeda {

class DynamicLibrary {
 public:
  // A library that is not there gives an object for which is_open() is false and error() says what
  // was tried.
  static DynamicLibrary open(std::string_view file_name);

  bool is_open() const { return handle_ != nullptr; }
  const std::string& path() const { return path_; }
  const std::string& error() const { return error_; }

  // The address of a symbol, null when the library has none of that name.
  void* find(const char* name) const;
  // The same as a function pointer; RuntimeError naming library and symbol when missing.
  template <class Fn>
  void load(Fn*& fn, const char* name) const {
    fn = reinterpret_cast<Fn*>(require(name));
  }

 private:
  void* require(const char* name) const;

  void* handle_ = nullptr;
  std::string path_;
  std::string error_;
};

// The folder that holds libtaeda.so.
std::string library_folder();

}  // namespace taeda
