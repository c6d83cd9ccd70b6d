// Fibers of one OS thread: stacks that take turns. x86-64, known to the address sanitizer.
#pragma once

#include <cstddef>

namespace taeda::emulator {

class Fiber {
 public:
  static constexpr size_t kStackBytes = 128 << 10;

  Fiber() = default;                // what is running now
  explicit Fiber(void (*entry)());  // which never returns
  ~Fiber();
  Fiber(Fiber&& other) noexcept;
  Fiber& operator=(Fiber&& other) noexcept;

  // Stops here and goes on in `to`; returns when somebody comes back.
  void switch_to(Fiber& to);
  // The first thing that an entry calls.
  static void entered(Fiber& from);

 private:
  void* top_ = nullptr;  // the stack pointer while it waits
  char* stack_ = nullptr;
  const void* bottom_ = nullptr;
  size_t bytes_ = 0;
  void* sanitizer_ = nullptr;
};

}  // namespace taeda::emulator
