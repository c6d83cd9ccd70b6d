#include "base/handover.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <vector>

#include "taeda/error.h"

namespace taeda {
namespace {

using Capture = std::unique_ptr<Carried> (*)();

std::vector<Capture>& captures() {
  static std::vector<Capture>& instance = *new std::vector<Capture>;
  return instance;
}

// As much as a main thread usually has, whatever the limits of this process say.
constexpr size_t kStackBytes = size_t{8} << 20;
constexpr std::chrono::milliseconds kBetweenLooks{50};

struct Errand {
  const std::function<void()>& work;
  std::vector<std::unique_ptr<Carried>> carried;
  std::exception_ptr error;
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;

  void run() {
    size_t arrived = 0;
    try {
      for (; arrived < carried.size(); arrived++) carried[arrived]->arrive();
      work();
    } catch (...) {
      error = std::current_exception();
    }
    while (arrived-- > 0) carried[arrived]->leave();
  }
  void wait() {
    std::vector<Carried*> watching;
    for (const auto& c : carried)
      if (c->watches()) watching.push_back(c.get());
    std::unique_lock<std::mutex> lock(mutex);
    const auto is_done = [&] { return done; };
    if (watching.empty()) return ended.wait(lock, is_done);
    while (!ended.wait_for(lock, kBetweenLooks, is_done)) {
      lock.unlock();
      for (Carried* c : watching) c->watch();
      lock.lock();
    }
  }
};

void* run_errand(void* argument) {
  auto& errand = *static_cast<Errand*>(argument);
  errand.run();
  const std::lock_guard<std::mutex> lock(errand.mutex);
  errand.done = true;
  errand.ended.notify_one();
  return nullptr;
}

pthread_t start(Errand& errand) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_t thread;
  const int failure = pthread_create(&thread, &attributes, run_errand, &errand);
  pthread_attr_destroy(&attributes);
  if (failure != 0)
    fail(ErrorKind::kRuntime, "cannot start a thread for deeper recursion: {}",
         std::strerror(failure));
  return thread;
}

}  // namespace

void carry_over(std::unique_ptr<Carried> (*capture)()) { captures().push_back(capture); }

void run_on_fresh_thread(const std::function<void()>& work) {
  Errand errand{work, {}, {}, {}, {}};
  for (const Capture capture : captures()) errand.carried.push_back(capture());
  const pthread_t thread = start(errand);
  errand.wait();
  pthread_join(thread, nullptr);
  for (const auto& c : errand.carried) c->come_back(errand.error);
  if (errand.error) std::rethrow_exception(errand.error);
}

}  // namespace taeda
