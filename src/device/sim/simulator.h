// Simulator: CUDA devices that are none, for tests. What the driver is asked for, answered on the
// CPU in the least friendly way that the driver's documentation allows.
//
// - Device memory is untouchable by the host (memory.h); pinned memory is the host's.
// - Work is queued and runs late: by default when somebody waits for it. Other schedules (seeds)
// run
//   some of it earlier, in any order that streams and events allow. Host memory that is pinned is
//   read and written when the copy runs, not when it is asked for; other host memory is read at
//   once, and a copy to it is waited for, as the driver's interface promises.
// - Every piece of work says what it reads and writes; two that are not ordered are a race
//   (races.h), reported where the second one is queued, with both names.
// - Addresses must lie in allocated blocks, handles must be alive, a context must be set.
// - Time is virtual: work takes as long as it says, the host kLaunchNs for each piece that it
// queues.
// - Faults can be planned: the n-th allocation finds no memory, the n-th piece of work loses the
//   device for good.
//
// Methods throw Failure; one mutex, taken by the caller (driver.cc), guards everything.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "device/sim/failure.h"
#include "device/sim/memory.h"
#include "device/sim/races.h"

namespace taeda::sim {

struct Access {
  const void* begin;
  int64_t bytes;
  bool writes;
};

// Which of the permitted orders work runs in.
inline constexpr uint64_t kAsLateAsPossible = 0, kAsEarlyAsPossible = 1;  // other seeds: a mixture

struct Options {
  int devices = 1;
  int64_t bytes = int64_t{4} << 30;  // each device
  uint64_t schedule = kAsLateAsPossible;
};

struct Counters {
  int64_t launches = 0, copies = 0, synchronizations = 0, allocations = 0;
};

class Simulator {
 public:
  static constexpr int64_t kLaunchNs = 4'000;
  static constexpr int64_t kCopyNs = 1'000, kCopyBytesPerNs = 50;

  explicit Simulator(const Options& options);
  Simulator(const Simulator&) = delete;

  int devices() const { return static_cast<int>(devices_.size()); }
  void set_schedule(uint64_t seed);
  void fail_allocation(int64_t nth) { fail_allocation_ = nth; }
  void fail_launch(int64_t nth) { fail_launch_ = nth; }
  const Counters& counters() const { return counters_; }

  // --- contexts; device numbers stand for them ---
  void set_device(int device);
  int current_device() const;

  // --- memory ---
  uintptr_t allocate(int64_t bytes);
  void release(uintptr_t address);
  void* host_allocate(int64_t bytes);
  void host_release(void* memory);
  const SimMemory& memory(int device) const { return devices_[index(device)].memory; }

  // --- streams; null stands for the current device's default stream ---
  cuda::StreamHandle create_stream(int priority);
  bool query_stream(cuda::StreamHandle stream);
  void synchronize(cuda::StreamHandle stream);
  void synchronize_device();
  void wait(cuda::StreamHandle stream, cuda::EventHandle event);

  // --- events ---
  cuda::EventHandle create_event(bool timing);
  void destroy(cuda::EventHandle event);
  void record(cuda::EventHandle event, cuda::StreamHandle stream);
  bool query(cuda::EventHandle event);
  void synchronize(cuda::EventHandle event);
  float elapsed(cuda::EventHandle start, cuda::EventHandle end);

  // --- work ---
  void copy(void* to, const void* from, int64_t bytes, cuda::StreamHandle stream);
  void fill(void* to, unsigned char value, int64_t bytes, cuda::StreamHandle stream);
  // A kernel: `run` is called on the CPU, with the memory at its second addresses (alias()).
  void launch(cuda::StreamHandle stream, const std::string& name, std::vector<Access> accesses,
              int64_t device_ns, std::function<void()> run);
  template <class T>
  T* alias(T* p) const {
    return reinterpret_cast<T*>(alias_of(reinterpret_cast<uintptr_t>(p)));
  }
  // What the host does itself with memory that a device may use.
  void host_touches(const void* p, int64_t bytes, bool writes);
  int64_t host_ns() const { return host_ns_; }

 private:
  struct Event {
    int device;
    bool timing;
    size_t stream = 0;
    uint64_t tick = 0;  // 0: never recorded
    Clock clock;
    int64_t ns = 0;
  };
  struct Work {
    std::function<void()> run;
    size_t wait_stream = 0;  // a wait for that stream to reach wait_tick, where `run` is empty
    uint64_t wait_tick = 0;
    uint64_t tick = 0;
  };
  struct Stream {
    int device;
    int priority;
    Clock clock;
    std::deque<Work> queue;
    uint64_t queued = 0, done = 0;
    int64_t busy_until_ns = 0;
  };
  struct Device {
    SimMemory memory;
    size_t default_stream;
  };

  static size_t index(int i) { return static_cast<size_t>(i); }
  size_t find(cuda::StreamHandle stream) const;
  Event& find(cuda::EventHandle event) const;
  size_t add_stream(int device, int priority);
  char* alias_of(uintptr_t address) const;
  const Device* owner(uintptr_t address) const;
  bool pinned(uintptr_t address) const;

  void check_alive() const;
  void check_access(const Access& access) const;
  void touch(const Access& access, const OperationRef& operation, const Clock& clock);
  void enqueue(size_t stream, std::string name, const std::vector<Access>& accesses,
               int64_t device_ns, std::function<void()> run);
  void copy_from_pageable(char* to, const char* from, int64_t bytes, size_t stream);
  void copy_to_pageable(char* to, const char* from, int64_t bytes, size_t stream);

  bool step(size_t stream);
  void run_until(size_t stream, uint64_t tick);
  void host_waits(size_t stream, uint64_t tick, const Clock& clock, int64_t ns);
  void finish_device(int device);
  void run_by_schedule();

  std::vector<Device> devices_;
  std::vector<std::unique_ptr<Stream>> streams_;  // 0 is the host
  std::map<cuda::EventHandle, std::unique_ptr<Event>> events_;
  std::map<uintptr_t, int64_t> pinned_;
  RaceDetector races_;
  uint64_t schedule_;
  std::mt19937_64 random_;
  Counters counters_;
  int64_t fail_allocation_ = 0, fail_launch_ = 0;
  int64_t host_ns_ = 0;
  bool lost_ = false;
};

}  // namespace taeda::sim
