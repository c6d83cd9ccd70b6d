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
// - Work of a stream that is captured becomes a graph (capture.h), which runs when it is launched.
//   What may not be done meanwhile ends the capture, as the driver's documentation says.
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

#include "device/sim/capture.h"
#include "device/sim/failure.h"
#include "device/sim/memory.h"
#include "device/sim/races.h"

namespace taeda::sim {

// Which of the permitted orders work runs in.
inline constexpr uint64_t kAsLateAsPossible = 0, kAsEarlyAsPossible = 1;  // other seeds: a mixture

struct Options {
  int devices = 1;
  int64_t bytes = int64_t{4} << 30;  // each device
  uint64_t schedule = kAsLateAsPossible;
};

// What took time, virtual time: on the host, and on the device where `stream` is not 0.
struct Record {
  std::string name;
  int64_t host_begin_ns, host_end_ns;
  size_t stream = 0;
  int device = -1;
  int64_t begin_ns = 0, end_ns = 0;
  int64_t bytes = 0;  // of memory that was allocated or released
};

struct Counters {
  int64_t launches = 0, copies = 0, synchronizations = 0, allocations = 0;
};

class Simulator {
 public:
  static constexpr int64_t kLaunchNs = 4'000;
  static constexpr int64_t kCopyNs = 1'000, kCopyBytesPerNs = 50;
  // Calls that wait for the device or change its page tables; orders of magnitude, not measured.
  static constexpr int64_t kAllocateNs = 100'000, kReleaseNs = 50'000;

  explicit Simulator(const Options& options);
  Simulator(const Simulator&) = delete;

  int devices() const { return static_cast<int>(devices_.size()); }
  void set_schedule(uint64_t seed);
  void fail_allocation(int64_t nth) { fail_allocation_ = nth; }
  void fail_launch(int64_t nth) { fail_launch_ = nth; }
  const Counters& counters() const { return counters_; }
  // Starts over with an empty log, or leaves off.
  void keep_log(bool on);
  const std::vector<Record>& log() const { return log_; }
  // The host does something else: time passes.
  void host_works(const std::string& name, int64_t ns);
  uint32_t next_seed() { return static_cast<uint32_t>(random_()); }

  // --- contexts; device numbers stand for them ---
  void set_device(int device);
  int current_device() const;

  // --- memory ---
  uintptr_t allocate(int64_t bytes);
  void release(uintptr_t address);
  void* host_allocate(int64_t bytes);
  void host_release(void* memory);
  // Addresses, and memory that is mapped behind them: granules of kGranule.
  static constexpr int64_t kGranule = 2 << 20;
  uintptr_t reserve(int64_t bytes);
  void unreserve(uintptr_t address, int64_t bytes);
  uint64_t create_memory(int64_t bytes);
  void destroy_memory(uint64_t handle);
  void map(uintptr_t address, int64_t bytes, uint64_t handle);
  void allow(uintptr_t address, int64_t bytes);
  void unmap(uintptr_t address, int64_t bytes);
  void register_host(void* memory, int64_t bytes);
  void unregister_host(void* memory);
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
  // --- graphs ---
  void begin_capture(cuda::StreamHandle stream, cuda::CaptureMode mode);
  // Throws, and ends the capture all the same, where it was invalidated or is not joined.
  std::shared_ptr<const WorkGraph> end_capture(cuda::StreamHandle stream);
  const Capture* capture(cuda::StreamHandle stream) const;
  void launch(const std::shared_ptr<const WorkGraph>& graph, cuda::StreamHandle stream);

  // Moves what lies in `args` of addresses of devices, word by word, to the second mapping.
  void alias_words(void* args, size_t bytes) const;
  // A device's variable of that name, in 8 bytes of its memory, 0 at first.
  uintptr_t global(const std::string& name);
  // What the host does itself with memory that a device may use.
  void host_touches(const void* p, int64_t bytes, bool writes);
  int64_t host_ns() const { return host_ns_; }

  // What no thread may do while work is captured, but for those that say they know.
  void forbid_while_capturing();

 private:
  struct Event {
    int device;
    bool timing;
    size_t stream = 0;
    uint64_t tick = 0;  // 0: never recorded
    Clock clock;
    int64_t ns = 0;
    std::weak_ptr<Capture> capture{};  // where it was recorded on a stream that is captured
    std::vector<size_t> nodes{};
    bool captured = false;
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
    std::map<std::string, uintptr_t> globals;
  };

  static size_t index(int i) { return static_cast<size_t>(i); }
  size_t find(cuda::StreamHandle stream) const;
  Event& find(cuda::EventHandle event) const;
  size_t add_stream(int device, int priority);
  char* alias_of(uintptr_t address) const;
  const Device* owner(uintptr_t address) const;
  bool pinned(uintptr_t address) const;

  void check_alive() const;
  // The capture that a stream takes part in; null for others.
  std::shared_ptr<Capture> captured(size_t stream) const;
  // What no one may do to a stream whose work is captured, or to an event of it.
  void forbid_on(const std::shared_ptr<Capture>& capture, cuda::Status status) const;
  void forbid_captured(const Event& event) const;
  void check_access(const Access& access) const;
  void touch(const Access& access, const OperationRef& operation, const Clock& clock);
  void enqueue(size_t stream, std::string name, const std::vector<Access>& accesses,
               int64_t device_ns, std::function<void()> run);
  void copy_from_pageable(char* to, const char* from, int64_t bytes, size_t stream);
  void copy_to_pageable(char* to, const char* from, int64_t bytes, size_t stream);

  // The host has been busy since `begin_ns`.
  void note_host(const char* name, int64_t begin_ns, int64_t bytes);
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
  std::vector<std::shared_ptr<Capture>> captures_;
  uint64_t next_capture_ = 1;
  bool logging_ = false;
  std::vector<Record> log_;
  int64_t host_ns_ = 0;
  bool lost_ = false;
};

// Of the calling thread: what it may do while work is captured; returns what it was before.
cuda::CaptureMode exchange_capture_mode(cuda::CaptureMode mode);

}  // namespace taeda::sim
