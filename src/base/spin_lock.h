// SpinLock: one byte that guards a few instructions, such as taking a reference. Who holds it must
// not wait, allocate much or destroy what may take other locks. For std::lock_guard.
#pragma once

#include <atomic>

namespace taeda {

class SpinLock {
 public:
  void lock() {
    while (flag_.test_and_set(std::memory_order_acquire)) {
    }
  }
  void unlock() { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag flag_;
};

}  // namespace taeda
