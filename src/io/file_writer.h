// FileWriter: a file that takes another's place only when it is complete.
//
// Whatever happens before `commit` returns (an error, a full disk, SIGKILL, a power cut), the path
// holds the old content or the new one. The new content goes to a file without a name beside the
// old one where the file system has such files (O_TMPFILE), which a killed process leaves only in
// the instant between naming and renaming it; elsewhere it is `.NAME.taeda-RANDOM.tmp` from the
// start. It is locked while it is written: the next writer of the same path removes what nobody
// holds. A link stays a link; permissions and, where that is allowed, the owner of an old file are
// kept.
//
// A file that cannot be replaced by renaming (a container's mounted file, a folder without write
// permission) is overwritten once the new content is complete and synced elsewhere. Beside it, that
// is `.NAME.taeda-RANDOM.new`: what a crash during the overwriting leaves is there, whole. A pipe
// or a device is written directly.
//
// Failures of the system are FileError. One thread at a time.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <string>

#include "taeda/error.h"

namespace taeda::io {

// A system call on a file that failed.
class FileError : public Error {
 public:
  FileError(const std::string& what, const std::string& path, int code);
  int code() const { return code_; }  // errno
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int code_;
};

// An open file's descriptor.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(other.value_) { other.value_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { reset(); }
  void reset();
  int get() const { return value_; }
  explicit operator bool() const { return value_ >= 0; }

 private:
  int value_;
};

class FileWriter {
 public:
  struct Options {
    bool nameless = true;                // false: as on file systems without O_TMPFILE
    std::function<void()> on_interrupt;  // after a signal during a call that waits; may throw
  };

  explicit FileWriter(const std::string& path) : FileWriter(path, Options()) {}
  FileWriter(const std::string& path, Options options);
  // Drops what was not committed.
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(const void* data, size_t bytes);
  // Syncs the content and puts it in its place. Nothing may be written afterwards.
  void commit();

 private:
  enum class Way { kRename, kOverwrite, kStream };

  [[noreturn]] void fail(const std::string& what, int code) const;
  void retry_or_fail(const char* what) const;
  void open_stream();
  void open_beside(bool nameless);
  bool open_nameless();
  void open_named();
  void open_elsewhere(int code);
  void inherit(int file) const;
  void rename_into_place();
  void keep_beside_and_overwrite();
  void overwrite();
  void sync(int file) const;
  std::string hidden_name(const char* suffix) const;
  void remove_litter(const char* suffix) const;
  void sync_folder() const;

  std::string path_;           // links followed
  std::string folder_, name_;  // its two parts
  Options options_;
  Way way_ = Way::kRename;
  bool exists_ = false;
  struct stat old_ = {};
  Descriptor file_;
  std::string temporary_;  // its name while it has one
};

}  // namespace taeda::io
