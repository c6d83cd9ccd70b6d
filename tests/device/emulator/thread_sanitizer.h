// What the thread sanitizer is told of CUDA threads: each is a fiber of its own, and only barriers,
// warp operations, the beginning and the end of a launch order them; blocks are not ordered.
//
// Nothing in builds without TD_TSAN. The scheduler is compiled without the sanitizer, which sees
// what the C library's functions do for it all the same: it is told to ignore that (Unseen), and
// each thread has a stack that nobody had before, since neighbours on one stack would be races.
#pragma once

#include <cstddef>
#include <deque>

#if defined(TD_TSAN)
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void AnnotateIgnoreWritesBegin(const char* file, int line);  // reads, too
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace taeda::emulator::sanitizer {

#if defined(TD_TSAN)
inline constexpr bool kIsOn = true;
inline constexpr unsigned kNoSync = 1;
inline void* current() { return __tsan_get_current_fiber(); }
inline void* create() { return __tsan_create_fiber(0); }
inline void destroy(void* fiber) { __tsan_destroy_fiber(fiber); }
inline void enter(void* fiber) { __tsan_switch_to_fiber(fiber, kNoSync); }
inline void acquire(void* token) { __tsan_acquire(token); }
inline void release(void* token) { __tsan_release(token); }
inline void begin_unseen() { AnnotateIgnoreWritesBegin(__FILE__, __LINE__); }
inline void end_unseen() { AnnotateIgnoreWritesEnd(__FILE__, __LINE__); }
#else
inline constexpr bool kIsOn = false;
inline void* current() { return nullptr; }
inline void* create() { return nullptr; }
inline void destroy(void*) {}
inline void enter(void*) {}
inline void acquire(void*) {}
inline void release(void*) {}
inline void begin_unseen() {}
inline void end_unseen() {}
#endif

// What the calling thread does in the scope is the emulator's, not the kernel's.
class Unseen {
 public:
  Unseen() { begin_unseen(); }
  ~Unseen() { end_unseen(); }
  Unseen(const Unseen&) = delete;
};

// Of a launch: its threads begin after what was done before it, and what is done after it comes
// after all of them. Their fibers stay until then: reports say where an earlier access was.
class Launch {
 public:
  Launch() { release(&begin_); }
  ~Launch() {
    acquire(&end_);
    for (void* const fiber : ended_) destroy(fiber);
  }
  Launch(const Launch&) = delete;
  void thread_begins() { acquire(&begin_); }
  void thread_ends() { release(&end_); }
  void keep(void* fiber) {
    if (!kIsOn) return;
    ended_.push_back(fiber);
    if (ended_.size() < kKept) return;  // the sanitizer knows some 8,000 at a time
    destroy(ended_.front());
    ended_.pop_front();
  }

 private:
  static constexpr size_t kKept = 4000;
  char begin_ = 0, end_ = 0;
  std::deque<void*> ended_;
};

}  // namespace taeda::emulator::sanitizer
