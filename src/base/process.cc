#include "base/process.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace taeda {
namespace {

bool is_known(pid_t pid) { return kill(pid, 0) == 0 || errno == EPERM; }

// The bytes of /proc/PID/stat, or how many could not be read: a negative number.
ssize_t read_stat(pid_t pid, char* text, size_t size) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  const ssize_t n = read(file, text, size - 1);
  close(file);
  if (n > 0) text[n] = 0;
  return n;
}

// The start of the field after `n` more spaces, null where there are fewer.
const char* skip_fields(const char* text, int n) {
  for (; text && n > 0; n--) {
    text = std::strchr(text, ' ');
    if (text) text++;
  }
  return text;
}

}  // namespace

int64_t process_start(pid_t pid) {
  char text[1024];
  if (pid <= 0) return 0;
  if (read_stat(pid, text, sizeof text) <= 0) return is_known(pid) ? -1 : 0;
  // "PID (NAME) STATE ...", where the name may hold anything; the start is the 22nd field.
  const char* const name_end = std::strrchr(text, ')');
  if (!name_end || name_end[1] != ' ') return -1;
  const char state = name_end[2];
  if (state == 'Z' || state == 'X') return 0;
  const char* const start = skip_fields(name_end + 2, 19);
  return start ? std::strtoll(start, nullptr, 10) : -1;
}

bool is_running(pid_t pid, int64_t start) {
  const int64_t now = process_start(pid);
  return now == start || (now != 0 && (now < 0 || start < 0));
}

}  // namespace taeda
