// PooledEvent: an event without timing, recorded at once and given back to its device's pool in the
// end, since making one costs more than recording it.
#pragma once

#include "device/stream.h"

namespace taeda::cuda {

class PooledEvent {
 public:
  PooledEvent() = default;
  explicit PooledEvent(Stream stream);
  PooledEvent(PooledEvent&& other) noexcept = default;
  PooledEvent& operator=(PooledEvent&& other) noexcept = default;
  ~PooledEvent();

  const Event& event() const { return event_; }
  bool query() const { return event_.query(); }
  void synchronize() const { event_.synchronize(); }

 private:
  Event event_;
};

}  // namespace taeda::cuda
