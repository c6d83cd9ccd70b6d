#include "base/parent_watch.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "base/block_signals.h"
#include "base/fork.h"
#include "base/process.h"
#include "taeda/error.h"

namespace taeda {
namespace {

constexpr size_t kStackBytes = size_t{128} << 10;
constexpr useconds_t kBetweenLooksUs = 200'000;

struct Watch {
  pid_t pid = 0;
  int64_t start = 0;  // of the process, see base/process.h
  int pidfd = -1;     // none: the thread looks now and then
  bool is_parent = false;
};

class Watches {
 public:
  static Watches& all() {
    static Watches& instance = *new Watches;
    return instance;
  }

  void add(pid_t pid);
  int count() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<int>(watches_.size());
  }

 private:
  Watches() {
    protect_over_fork(mutex_);
    pthread_atfork(nullptr, nullptr, [] { all().forget(); });
  }
  // In the child of a fork, which has none of the threads.
  void forget() {
    for (const Watch& watch : watches_) {
      if (watch.pidfd >= 0) close(watch.pidfd);
    }
    watches_.clear();
  }

  std::mutex mutex_;
  std::vector<Watch> watches_;
};

[[noreturn]] void end_this_process() {
  kill(getpid(), SIGKILL);
  _exit(128 + SIGKILL);  // the first process of a container takes no signal from itself
}

void wait_for_end(const Watch& watch) {
  while (watch.pidfd >= 0) {
    pollfd ended = {watch.pidfd, POLLIN, 0};
    if (poll(&ended, 1, -1) > 0) {
      if (ended.revents & POLLIN) return;
      break;  // the program has closed the descriptor
    }
    if (errno != EINTR) break;
  }
  // A child changes hands when its parent ends, which needs no descriptor to be seen.
  while (watch.is_parent ? getppid() == watch.pid : is_running(watch.pid, watch.start))
    usleep(kBetweenLooksUs);
}

void* run_watch(void* argument) {
  sigset_t taken;
  sigemptyset(&taken);
  sigaddset(&taken, watch_signal());
  pthread_sigmask(SIG_UNBLOCK, &taken, nullptr);
  wait_for_end(*std::unique_ptr<Watch>(static_cast<Watch*>(argument)));
  end_this_process();
}

// 0, or why no thread could be started.
int start_thread(const Watch& watch) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, std::max<size_t>(kStackBytes, PTHREAD_STACK_MIN));
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  auto argument = std::make_unique<Watch>(watch);
  const BlockSignals for_thread;
  pthread_t thread;
  int failure = pthread_create(&thread, &attributes, run_watch, argument.get());
  if (failure == EINVAL) {  // libraries want more of each thread's stack for their own variables
    pthread_attr_setstacksize(&attributes, 64 * kStackBytes);
    failure = pthread_create(&thread, &attributes, run_watch, argument.get());
  }
  pthread_attr_destroy(&attributes);
  if (failure == 0) argument.release();
  return failure;
}

void Watches::add(pid_t pid) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Watch watch{pid, 0, static_cast<int>(syscall(SYS_pidfd_open, pid, 0)), getppid() == pid};
  watch.start = process_start(pid);  // while the pidfd keeps the number from another process
  if (watch.start == 0) end_this_process();
  const auto same = [&](const Watch& w) { return w.pid == pid && w.start == watch.start; };
  const bool known = std::any_of(watches_.begin(), watches_.end(), same);
  const int failure = known ? 0 : start_thread(watch);
  if (!known && failure == 0) return watches_.push_back(watch);
  if (watch.pidfd >= 0) close(watch.pidfd);
  TD_CHECK(failure == 0, "end_with_process: cannot start a thread: {}", std::strerror(failure));
}

}  // namespace

void end_with_process(pid_t pid) {
  TD_CHECK_VALUE(pid > 0 && pid != getpid(),
                 "end_with_process: expected the number of another process, got {}",
                 static_cast<int64_t>(pid));
  Watches::all().add(pid);
}

int watching_threads() { return Watches::all().count(); }

int watch_signal() { return SIGRTMIN + 7; }

}  // namespace taeda
