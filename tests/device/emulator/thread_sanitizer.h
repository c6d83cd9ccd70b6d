// What the thread sanitizer is told of CUDA threads: each is a fiber of its own, and only barriers,
// warp operations and the launch order them. Nothing in builds without TD_TSAN; the scheduler is
// compiled without the sanitizer, which would see its own switching as races.
#pragma once

#if defined(TD_TSAN)
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace taeda::emulator::sanitizer {

#if defined(TD_TSAN)
inline constexpr unsigned kNoSync = 1;
inline void* current() { return __tsan_get_current_fiber(); }
inline void* create() { return __tsan_create_fiber(0); }
inline void destroy(void* fiber) { __tsan_destroy_fiber(fiber); }
inline void enter(void* fiber) { __tsan_switch_to_fiber(fiber, kNoSync); }
inline void acquire(void* token) { __tsan_acquire(token); }
inline void release(void* token) { __tsan_release(token); }
struct IgnoreWrites {
  IgnoreWrites() { AnnotateIgnoreWritesBegin(__FILE__, __LINE__); }
  ~IgnoreWrites() { AnnotateIgnoreWritesEnd(__FILE__, __LINE__); }
};
#else
inline void* current() { return nullptr; }
inline void* create() { return nullptr; }
inline void destroy(void*) {}
inline void enter(void*) {}
inline void acquire(void*) {}
inline void release(void*) {}
struct [[maybe_unused]] IgnoreWrites {};
#endif

}  // namespace taeda::emulator::sanitizer
