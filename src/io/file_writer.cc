#include "io/file_writer.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace taeda::io {
namespace {

constexpr size_t kRandomDigits = 16, kCopyBytes = size_t{1} << 20;
constexpr int kMaxLinks = 40;

std::string folder_of(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
}

// What a chain of symbolic links leads to, whether or not that exists.
std::string follow_links(std::string path) {
  for (int i = 0; i < kMaxLinks; i++) {
    char target[4096];
    const ssize_t length = readlink(path.c_str(), target, sizeof(target));
    if (length < 0) return path;
    const std::string next(target, static_cast<size_t>(length));
    path = next.starts_with('/') ? next : folder_of(path) + "/" + next;
  }
  throw FileError("save: cannot open", path, ELOOP);
}

std::string random_digits() {
  unsigned char bytes[kRandomDigits / 2];
  if (getrandom(bytes, sizeof(bytes), 0) != static_cast<ssize_t>(sizeof(bytes)))
    throw FileError("save: no random numbers", "", errno);
  std::string digits;
  for (const unsigned char byte : bytes) {
    digits += "0123456789abcdef"[byte >> 4];
    digits += "0123456789abcdef"[byte & 15];
  }
  return digits;
}

bool lock(int file) { return flock(file, LOCK_EX | LOCK_NB) == 0; }

// Files that may not be made, as against those that cannot.
bool is_forbidden(int code) { return code == EACCES || code == EPERM || code == EROFS; }

}  // namespace

FileError::FileError(const std::string& what, const std::string& path, int code)
    : Error(ErrorKind::kRuntime, what + " " + path + ": " + std::strerror(code)),
      path_(path),
      code_(code) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(value_, other.value_);
  return *this;
}

void Descriptor::reset() {
  if (value_ >= 0) close(value_);
  value_ = -1;
}

FileWriter::FileWriter(const std::string& path, Options options)
    : path_(follow_links(path)), options_(std::move(options)) {
  folder_ = folder_of(path_);
  name_ = path_.substr(path_.find_last_of('/') + 1);  // npos + 1 is 0
  exists_ = stat(path_.c_str(), &old_) == 0;
  if (!exists_ && errno != ENOENT && errno != ENOTDIR) fail("save: cannot open", errno);
  if (exists_ && S_ISDIR(old_.st_mode)) fail("save: cannot open", EISDIR);
  if (exists_ && !S_ISREG(old_.st_mode)) {
    open_stream();
    return;
  }
  struct stat folder;
  TD_CHECK(stat(folder_.c_str(), &folder) == 0 && S_ISDIR(folder.st_mode),
           "Parent directory {} does not exist.", folder_);
  if (name_.empty()) fail("save: cannot open", EISDIR);
  remove_litter(".tmp");
  open_beside(options_.nameless);
}

FileWriter::~FileWriter() {
  file_.reset();
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void FileWriter::fail(const std::string& what, int code) const {
  throw FileError(what, path_, code);
}

// After a call that failed: returns if it was merely interrupted.
void FileWriter::retry_or_fail(const char* what) const {
  if (errno != EINTR) fail(what, errno);
  if (options_.on_interrupt) options_.on_interrupt();
}

void FileWriter::open_stream() {
  way_ = Way::kStream;
  while (!file_) {
    file_ = Descriptor(open(path_.c_str(), O_WRONLY | O_CLOEXEC));
    if (!file_) retry_or_fail("save: cannot open");
  }
}

void FileWriter::open_beside(bool nameless) {
  if (nameless && open_nameless()) return inherit(file_.get());
  open_named();
}

// Whether there is such a file now, and a way to name it later.
bool FileWriter::open_nameless() {
#ifdef O_TMPFILE
  file_ = Descriptor(
      open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, exists_ ? S_IRUSR | S_IWUSR : 0666));
  if (!file_) return false;
  if (access(("/proc/self/fd/" + std::to_string(file_.get())).c_str(), F_OK) == 0) {
    lock(file_.get());
    return true;
  }
  file_.reset();
#endif
  return false;
}

void FileWriter::open_named() {
  while (true) {
    temporary_ = hidden_name(".tmp");
    file_ = Descriptor(open(temporary_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC,
                            exists_ ? S_IRUSR | S_IWUSR : 0666));
    if (!file_) {
      const int code = errno;
      temporary_.clear();
      if (code == EEXIST) continue;
      if (!exists_ || !is_forbidden(code)) fail("save: cannot write beside", code);
      return open_elsewhere(code);
    }
    lock(file_.get());
    struct stat now;  // another writer may have taken it for litter before it was locked
    if (fstat(file_.get(), &now) == 0 && now.st_nlink > 0) return inherit(file_.get());
  }
}

// A file that may be written in a folder that may not: collected among temporary files first.
void FileWriter::open_elsewhere(int code) {
  if (access(path_.c_str(), W_OK) != 0) fail("save: cannot write beside", code);
  way_ = Way::kOverwrite;
  const char* const chosen = std::getenv("TMPDIR");
  std::string name = std::string(chosen && *chosen ? chosen : "/tmp") + "/taeda-save-XXXXXX";
  file_ = Descriptor(mkostemp(name.data(), O_CLOEXEC));
  if (!file_) fail("save: cannot write beside", code);
  unlink(name.c_str());
}

// Gives a new file the owner and the permissions of the old one.
void FileWriter::inherit(int file) const {
  if (!exists_) return;
  if (old_.st_uid != geteuid() || old_.st_gid != getegid()) {
    if (fchown(file, old_.st_uid, old_.st_gid) != 0) errno = 0;  // not everyone may
  }
  if (fchmod(file, old_.st_mode & 07777) != 0) fail("save: cannot set the permissions of", errno);
}

void FileWriter::write(const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(file_.get(), at, bytes);
    if (written < 0) {
      retry_or_fail("save: cannot write");
      continue;
    }
    at += written;
    bytes -= static_cast<size_t>(written);
  }
}

void FileWriter::commit() {
  if (way_ != Way::kStream) sync(file_.get());
  if (way_ == Way::kRename) rename_into_place();
  if (way_ == Way::kOverwrite) overwrite();
  file_.reset();
}

void FileWriter::rename_into_place() {
  if (temporary_.empty()) {
    const std::string name = hidden_name(".tmp");
    const std::string link = "/proc/self/fd/" + std::to_string(file_.get());
    if (linkat(AT_FDCWD, link.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0)
      fail("save: cannot write", errno);
    temporary_ = name;
  }
  if (std::rename(temporary_.c_str(), path_.c_str()) == 0) {
    temporary_.clear();
    return sync_folder();
  }
  if (errno != EBUSY && errno != EXDEV) fail("save: cannot replace", errno);
  keep_beside_and_overwrite();
}

void FileWriter::keep_beside_and_overwrite() {
  const std::string kept = hidden_name(".new");
  if (std::rename(temporary_.c_str(), kept.c_str()) != 0) fail("save: cannot write beside", errno);
  temporary_.clear();
  sync_folder();
  try {
    overwrite();
  } catch (const FileError& error) {
    throw FileError("save: the whole content is in " + kept + "; cannot overwrite", path_,
                    error.code());
  }
  unlink(kept.c_str());
  file_.reset();  // lets go of the lock on it
  remove_litter(".new");
  sync_folder();
}

// Copies the content into the file at the path. Space is set aside first, so that a full disk
// leaves that file as it is.
void FileWriter::overwrite() {
  const Descriptor target(open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat source;
  if (!target || fstat(file_.get(), &source) != 0) fail("save: cannot open", errno);
  while (source.st_size > old_.st_size &&
         fallocate(target.get(), FALLOC_FL_KEEP_SIZE, 0, source.st_size) != 0) {
    if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) fail("save: cannot write", errno);
    if (errno != EINTR) break;  // not every file system can
    retry_or_fail("save: cannot write");
  }
  const auto buffer = std::make_unique<char[]>(kCopyBytes);
  for (off_t at = 0; at < source.st_size;) {
    const ssize_t count = pread(file_.get(), buffer.get(), kCopyBytes, at);
    if (count == 0) fail("save: cannot read back", EIO);
    for (ssize_t done = 0; done < count;) {
      const ssize_t written =
          pwrite(target.get(), buffer.get() + done, static_cast<size_t>(count - done), at + done);
      if (written > 0)
        done += written;
      else
        retry_or_fail("save: cannot write");
    }
    if (count < 0)
      retry_or_fail("save: cannot read back");
    else
      at += count;
  }
  while (ftruncate(target.get(), source.st_size) != 0) retry_or_fail("save: cannot write");
  sync(target.get());
}

void FileWriter::sync(int file) const {
  while (fsync(file) != 0) retry_or_fail("save: cannot write");
}

std::string FileWriter::hidden_name(const char* suffix) const {
  return folder_ + "/." + name_.substr(0, 200) + ".taeda-" + random_digits() + suffix;
}

// Removes what writers of the same path left behind that are not at work any more: regular files
// with a name that only hidden_name gives.
void FileWriter::remove_litter(const char* suffix) const {
  const std::string prefix = "." + name_.substr(0, 200) + ".taeda-";
  const size_t length = prefix.size() + kRandomDigits + std::strlen(suffix);
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(folder_.c_str()), closedir);
  std::vector<std::string> found;
  while (const dirent* entry = folder ? readdir(folder.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    if (name.size() == length && name.starts_with(prefix) && name.ends_with(suffix) &&
        name.substr(prefix.size(), kRandomDigits).find_first_not_of("0123456789abcdef") ==
            std::string_view::npos)
      found.push_back(folder_ + "/" + std::string(name));
  }
  for (const std::string& path : found) {
    struct stat now;
    if (lstat(path.c_str(), &now) != 0 || !S_ISREG(now.st_mode)) continue;
    const Descriptor file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file && lock(file.get())) unlink(path.c_str());
  }
}

// Makes the renaming itself durable, where the system can do that. The new content is in its place:
// what a signal's handler raises now is left to the program.
void FileWriter::sync_folder() const {
  const Descriptor folder(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  while (folder && fsync(folder.get()) != 0 && errno == EINTR) {
  }
}

}  // namespace taeda::io
