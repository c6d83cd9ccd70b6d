// A device for tests of the caching allocator: a budget of memory, and streams that run late. Work
// queued on a stream happens when the test says so, and an event passes once the work queued before
// it is done. What may not be done (asking for events while work is captured, taking memory away
// that work still uses) is counted in `faults`.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace taeda {

struct LateDevice {
  struct Event {
    int64_t stream = 0, position = 0;
  };
  struct Stream {
    std::deque<std::function<void()>> queue;
    int64_t queued = 0, done = 0;
  };
  struct State {
    int64_t capacity = INT64_MAX, used = 0;
    uintptr_t next_address = 1 << 30;
    std::map<int64_t, Stream> streams;
    bool capturing = false;
    int64_t fail_next = 0;  // so many allocations from now on find no memory
    int64_t faults = 0, orders = 0;
    int64_t launched = 0;
    struct Granule {
      int64_t bytes, launched;  // the second: until it was mapped
    };
    std::map<uintptr_t, Granule> mapped;  // of expandable segments
  };
  std::shared_ptr<State> state = std::make_shared<State>();

  void* allocate(int64_t bytes) {
    if (!take(bytes)) return nullptr;
    return reinterpret_cast<void*>(new_addresses(bytes));
  }
  void release(void*, int64_t bytes) {
    finish();  // as cuMemFree does
    state->used -= bytes;
  }
  Event record_event(int64_t stream) {
    if (state->capturing) state->faults++;
    return {stream, state->streams[stream].queued};
  }
  bool query_event(Event& event) {
    if (state->capturing) state->faults++;
    return passed(event);
  }
  void wait_event(Event& event) {
    if (state->capturing) state->faults++;
    run_until(event);
  }
  std::string name() const { return "Simulated"; }

  // --- streams ---

  void launch(int64_t stream, std::function<void()> work) {
    state->streams[stream].queue.push_back(std::move(work));
    state->streams[stream].queued++;
    state->launched++;
  }
  bool step(int64_t stream) {
    Stream& s = state->streams[stream];
    if (s.queue.empty()) return false;
    const auto work = std::move(s.queue.front());
    s.queue.pop_front();
    work();
    s.done++;
    return true;
  }
  void run_until(const Event& event) {
    while (!passed(event)) step(event.stream);
  }
  bool passed(const Event& event) { return state->streams[event.stream].done >= event.position; }
  void finish() {
    for (auto& [id, stream] : state->streams)
      while (step(id)) {
      }
  }

 protected:
  bool take(int64_t bytes) {
    if (state->fail_next > 0 && state->fail_next-- > 0) return false;
    if (state->used + bytes > state->capacity) return false;
    state->used += bytes;
    return true;
  }
  uintptr_t new_addresses(int64_t bytes) {
    const uintptr_t address = state->next_address;
    state->next_address += static_cast<uintptr_t>(bytes) + 4096;
    return address;
  }
};

// With all that a device may offer.
struct FullDevice : LateDevice {
  int64_t free_bytes() const { return state->capacity - state->used; }
  int64_t total_bytes() const { return state->capacity; }
  std::string out_of_memory_text() const { return " The device is full."; }
  void order(int64_t before, int64_t after) {
    state->orders++;
    const Event event = record_event(before);
    FullDevice self = *this;
    launch(after, [self, event]() mutable { self.run_until(event); });
  }

  int64_t reservation_bytes() const { return state->capacity / 8 * 9; }
  char* reserve(int64_t bytes) { return reinterpret_cast<char*>(new_addresses(bytes)); }
  void unreserve(char* at, int64_t bytes) {
    const auto begin = reinterpret_cast<uintptr_t>(at);
    const auto inside = state->mapped.lower_bound(begin);
    if (inside != state->mapped.end() && inside->first < begin + static_cast<uintptr_t>(bytes))
      state->faults++;
  }
  uint64_t map(char* at, int64_t bytes) {
    if (!take(bytes)) return 0;
    const State::Granule granule{bytes, state->launched};
    if (!state->mapped.emplace(reinterpret_cast<uintptr_t>(at), granule).second) state->faults++;
    return reinterpret_cast<uint64_t>(at);
  }
  void unmap(char* at, int64_t bytes, uint64_t handle) {
    if (handle != reinterpret_cast<uint64_t>(at)) state->faults++;
    const auto granule = state->mapped.find(reinterpret_cast<uintptr_t>(at));
    if (granule == state->mapped.end()) return void(state->faults++);
    for (const auto& [id, stream] : state->streams)
      if (!stream.queue.empty() && state->launched > granule->second.launched) state->faults++;
    state->mapped.erase(granule);
    state->used -= bytes;
  }
  void synchronize() {
    if (state->capturing) state->faults++;
    finish();
  }
  bool is_mapped(const void* address, int64_t bytes) const {
    const auto begin = reinterpret_cast<uintptr_t>(address);
    uintptr_t at = begin;
    while (at < begin + static_cast<uintptr_t>(bytes)) {
      auto granule = state->mapped.upper_bound(at);
      if (granule == state->mapped.begin()) return false;
      --granule;
      const uintptr_t end = granule->first + static_cast<uintptr_t>(granule->second.bytes);
      if (end <= at) return false;
      at = end;
    }
    return true;
  }
};

}  // namespace taeda
