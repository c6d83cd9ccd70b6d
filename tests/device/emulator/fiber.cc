#include "device/emulator/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "device/emulator/thread_sanitizer.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__)
#error "the emulator switches stacks on x86-64 only"
#endif

// Saves what a call must preserve on the stack, whose pointer goes to *from, and takes up that at
// `to`.
extern "C" void taeda_emulator_switch(void** from, void* to);
asm(R"(
.pushsection .text
.globl taeda_emulator_switch
.hidden taeda_emulator_switch
.type taeda_emulator_switch, @function
taeda_emulator_switch:
  pushq %rbx
  pushq %rbp
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbp
  popq %rbx
  ret
.popsection
)");

namespace taeda::emulator {
namespace {

// Stacks that nobody runs on.
thread_local std::vector<char*> spare_stacks;

char* take_stack() {
  if (!spare_stacks.empty()) {
    char* const stack = spare_stacks.back();
    spare_stacks.pop_back();
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(stack, Fiber::kStackBytes);  // of frames that were left
#endif
    return stack;
  }
  void* const memory = mmap(nullptr, Fiber::kStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return static_cast<char*>(memory);
}

}  // namespace

Fiber::Fiber(void (*entry)()) : stack_(take_stack()), bottom_(stack_), bytes_(kStackBytes) {
  auto** top = reinterpret_cast<void**>(stack_ + kStackBytes);
  *--top = nullptr;  // the return address of `entry`, which is never used
  *--top = reinterpret_cast<void*>(entry);
  for (int preserved = 0; preserved < 6; preserved++) *--top = nullptr;
  top_ = top;
}
Fiber::~Fiber() {
  if (!stack_) return;
  if (sanitizer::kIsOn)
    munmap(stack_, kStackBytes);
  else
    spare_stacks.push_back(stack_);
}
Fiber::Fiber(Fiber&& other) noexcept { *this = std::move(other); }
Fiber& Fiber::operator=(Fiber&& other) noexcept {
  std::swap(top_, other.top_);
  std::swap(stack_, other.stack_);
  std::swap(bottom_, other.bottom_);
  std::swap(bytes_, other.bytes_);
  std::swap(sanitizer_, other.sanitizer_);
  return *this;
}

void Fiber::switch_to(Fiber& to) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&sanitizer_, to.bottom_, to.bytes_);
#endif
  taeda_emulator_switch(&top_, to.top_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(sanitizer_, nullptr, nullptr);
#endif
}
void Fiber::entered([[maybe_unused]] Fiber& from) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &from.bottom_, &from.bytes_);
#endif
}

}  // namespace taeda::emulator
