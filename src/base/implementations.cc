#include "base/implementations.h"

#include <mutex>

namespace taeda {
namespace {

struct Counts {
  std::mutex mutex;
  std::map<std::string, int64_t> by_name;
};
Counts& counts() {
  static Counts& instance = *new Counts;
  return instance;
}

}  // namespace

void count_implementation(const std::string& name) {
  const std::lock_guard lock(counts().mutex);
  counts().by_name[name]++;
}

std::map<std::string, int64_t> implementation_counts() {
  const std::lock_guard lock(counts().mutex);
  return counts().by_name;
}

}  // namespace taeda
