#include "base/detached_call.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/block_signals.h"
#include "base/interrupt.h"

namespace taeda {
namespace {

constexpr size_t kStackBytes = size_t{8} << 20;  // as much as a main thread usually has
constexpr std::chrono::milliseconds kBetweenLooks{50};
// Beyond so many, callers wait in vain for memory bandwidth, and libraries run out of buffers.
constexpr int kMostThreads = 64;

std::atomic<int> threads{0};
std::atomic<int64_t> left_behind{0};  // bytes

// A thread may hold a lock inside of the library, which would stay locked in the child of a fork
// for ever: forks wait until all calls have ended. The handlers are registered after those of
// base/fork.h, so that these wait while the threads can still have the locks that those take.
class Forks {
 public:
  std::mutex gate;  // no thread starts while it is taken

  Forks() {
    pthread_atfork([] { forks().wait(); }, [] { forks().gate.unlock(); },
                   [] { forks().gate.unlock(); });
  }
  static Forks& forks() {
    static Forks& all = *new Forks;
    return all;
  }

 private:
  void wait() {
    gate.lock();
    while (threads.load() > 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
};

// Shared by the caller and the thread; whoever leaves last drops it.
class Call {
 public:
  Call(int64_t bytes, std::function<int()> work) : bytes_(bytes), work_(std::move(work)) {}

  void run() {
    int result = 0;
    std::exception_ptr error;
    try {
      result = work_();
    } catch (...) {
      error = std::current_exception();
    }
    work_ = nullptr;  // its memory is free once the caller goes on
    const std::lock_guard<std::mutex> lock(mutex_);
    result_ = result;
    error_ = std::move(error);
    done_ = true;
    if (abandoned_) left_behind.fetch_sub(bytes_);
    ended_.notify_one();
  }

  int wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!ended_.wait_for(lock, kBetweenLooks, [this] { return done_; })) {
      lock.unlock();
      try {
        check_interrupt();
      } catch (...) {
        abandon();
        throw;
      }
      lock.lock();
    }
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return result_;
  }

 private:
  void abandon() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (done_) return;
    abandoned_ = true;
    left_behind.fetch_add(bytes_);
  }

  const int64_t bytes_;
  std::function<int()> work_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false, abandoned_ = false;
  int result_ = 0;
  std::exception_ptr error_;
};

using CallRef = std::shared_ptr<Call>;

void* run_thread(void* argument) {
  {
    const std::unique_ptr<CallRef> call(static_cast<CallRef*>(argument));
    (*call)->run();
  }
  threads.fetch_sub(1);
  return nullptr;
}

// Whether a thread runs the call. Signals are for the program's own threads.
bool start(const CallRef& call) {
  auto argument = std::make_unique<CallRef>(call);
  const std::lock_guard<std::mutex> no_fork(Forks::forks().gate);
  if (threads.fetch_add(1) < kMostThreads) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    const BlockSignals for_thread;
    pthread_t thread;
    const int failure = pthread_create(&thread, &attributes, run_thread, argument.get());
    pthread_attr_destroy(&attributes);
    if (failure == 0) {
      argument.release();
      return true;
    }
  }
  threads.fetch_sub(1);
  return false;
}

}  // namespace

int call_detached(int64_t bytes, std::function<int()> work) {
  for (int64_t held; (held = left_behind.load()) > 0 && held + bytes > kMostLeftBehind;) {
    std::this_thread::sleep_for(kBetweenLooks);
    check_interrupt();
  }
  const auto call = std::make_shared<Call>(bytes, std::move(work));
  if (!start(call)) call->run();
  return call->wait();
}

}  // namespace taeda
