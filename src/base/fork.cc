#include "base/fork.h"

#include <pthread.h>

#include <vector>

namespace taeda {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<std::mutex*> protected_mutexes;
};

// Never destroyed: forks may happen while the process exits.
Registry& registry() {
  static Registry& instance = *new Registry;
  return instance;
}

void lock_all() {
  registry().mutex.lock();
  for (std::mutex* mutex : registry().protected_mutexes) mutex->lock();
}
void unlock_all() {
  auto& mutexes = registry().protected_mutexes;
  for (size_t i = mutexes.size(); i-- > 0;) mutexes[i]->unlock();
  registry().mutex.unlock();
}

}  // namespace

void protect_over_fork(std::mutex& mutex) {
  static const int installed = pthread_atfork(lock_all, unlock_all, unlock_all);
  (void)installed;
  std::lock_guard<std::mutex> lock(registry().mutex);
  registry().protected_mutexes.push_back(&mutex);
}

}  // namespace taeda
