// Streams and events of CUDA devices, in PyTorch's way.
//
// A Stream is a value: a device and a number that says which of its streams. 0 is the default
// stream; odd numbers are streams of the pool, 32 of each priority, handed out in turn; other
// numbers are the handle of a stream that somebody else made. Streams of the pool are not ordered
// with the default stream. Each thread has a current stream of each device, on which its work is
// queued.
//
// An Event marks a point of a stream's work. Its driver object is made when it is first recorded.
#pragma once

#include <cstdint>

#include "device/api.h"

namespace taeda::cuda {

class Event;

struct Stream {
  int device = 0;
  int64_t id = 0;

  static constexpr int kPoolSize = 32;  // streams of one priority
  static constexpr int kLeastPriority = 0;
  static constexpr int kGreatestPriority = -3;  // what PyTorch offers of the devices' six

  // The next stream of the pool; a priority beyond the range is taken as its nearest end.
  static Stream from_pool(int device, int priority = 0);
  static Stream default_of(int device) { return {device, 0}; }
  // The calling thread's.
  static Stream current(int device);
  static Stream external(int device, StreamHandle handle);

  StreamHandle handle() const;
  int priority() const;
  bool query() const;  // whether all work is done
  void synchronize() const;
  // Work queued from now on comes after the event.
  void wait(const Event& event) const;

  friend bool operator==(Stream a, Stream b) = default;
};

// Makes it the calling thread's stream of its device; the current device stays.
void set_current_stream(Stream stream);

// Makes a stream current, and its device, until the end of the scope.
class StreamGuard {
 public:
  explicit StreamGuard(Stream stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;

 private:
  int device_;
  Stream stream_;
};

class Event {
 public:
  explicit Event(bool timing = false, bool blocking = false)
      : flags_((timing ? 0 : kEventDisableTiming) | (blocking ? kEventBlockingSync : 0)) {}
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  ~Event();

  // RuntimeError when it was recorded on another device before.
  void record(Stream stream);
  // Whether the work recorded has been done; true before the first record().
  bool query() const;
  void synchronize() const;
  // ValueError-like RuntimeErrors of PyTorch for events without timing or not recorded yet.
  float elapsed_ms(const Event& end) const;

  bool recorded() const { return handle_ != nullptr; }
  int device() const { return device_; }
  EventHandle handle() const { return handle_; }

 private:
  friend struct Stream;
  void create(int device);

  unsigned flags_;
  int device_ = -1;
  EventHandle handle_ = nullptr;
};

}  // namespace taeda::cuda
