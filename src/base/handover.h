// Work handed over to a fresh thread, for recursion that would outgrow the stack of its own.
//
// Thread-local state that belongs to the work rather than to its thread (modes, hooks, levels) goes
// with it: the file that owns such state registers a function that captures it. A hand-over costs
// some 50 microseconds.
#pragma once

#include <exception>
#include <functional>
#include <memory>

namespace taeda {

// State of the thread that hands work over; made there.
class Carried {
 public:
  virtual ~Carried() = default;
  // On the fresh thread, before and after the work.
  virtual void arrive() {}
  virtual void leave() noexcept {}
  // On the first thread: now and then while it waits (where `watches`), and after the work, whose
  // exception, or none, it may replace.
  virtual bool watches() const { return false; }
  virtual void watch() noexcept {}
  virtual void come_back(std::exception_ptr&) {}
};

// Called once, while the library is loaded.
void carry_over(std::unique_ptr<Carried> (*capture)());

// Runs `work` on a fresh thread with the caller's carried state while the caller waits. What it
// throws is thrown here. RuntimeError where no thread can be started.
void run_on_fresh_thread(const std::function<void()>& work);

// Carries the value of one thread-local variable: static const CarriedValue<&get, &set> carried;
template <auto get, auto set>
class CarriedValue {
 public:
  CarriedValue() {
    carry_over([]() -> std::unique_ptr<Carried> { return std::make_unique<Value>(); });
  }

 private:
  struct Value final : Carried {
    decltype(get()) value = get();
    void arrive() override { set(std::move(value)); }
  };
};

}  // namespace taeda
