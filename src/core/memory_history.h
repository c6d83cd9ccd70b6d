// MemoryHistory: the last events of an allocator, for torch.cuda.memory._snapshot(). The
// allocator's lock guards it; only on() may be asked without.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/memory_stats.h"

namespace taeda {

class MemoryHistory {
 public:
  bool on() const { return on_.load(std::memory_order_relaxed); }

  // At most `max_events` are kept, the latest ones. Turning it off keeps what there is.
  void start(bool on, size_t max_events, bool clear) {
    on_ = on && max_events > 0;
    events_ = clear ? std::vector<MemoryEvent>() : events();
    next_ = 0;
    max_ = std::max<size_t>(max_events, 1);
    if (on && events_.size() > max_)
      events_.erase(events_.begin(), events_.end() - static_cast<int64_t>(max_));
  }

  void add(MemoryEvent event) {
    event.time_us = std::chrono::duration_cast<std::chrono::microseconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count();
    if (events_.size() < max_) return events_.push_back(std::move(event));
    events_[next_] = std::move(event);
    next_ = (next_ + 1) % max_;
  }

  // The oldest first.
  std::vector<MemoryEvent> events() const {
    std::vector<MemoryEvent> result = events_;
    std::rotate(result.begin(), result.begin() + static_cast<int64_t>(next_), result.end());
    return result;
  }

 private:
  std::atomic<bool> on_{false};
  size_t max_ = 1, next_ = 0;  // `next_` is the oldest once it is full
  std::vector<MemoryEvent> events_;
};

}  // namespace taeda
