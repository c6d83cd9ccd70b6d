#include "device/sim/simulator.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace taeda::sim {
namespace {

constexpr size_t kHost = 0;
// So much work may be queued on a stream; queueing more waits for the oldest, as on a real device.
constexpr size_t kQueueLimit = 1024;
thread_local int current = -1;

}  // namespace

Simulator::Simulator(const Options& options) {
  add_stream(-1, 0);  // the host
  for (int i = 0; i < options.devices; i++)
    devices_.push_back({SimMemory(options.bytes), add_stream(i, 0), {}});
  set_schedule(options.schedule);
}

void Simulator::set_schedule(uint64_t seed) {
  schedule_ = seed;
  random_.seed(seed);
}

// --- contexts ---

void Simulator::set_device(int device) { current = device; }

int Simulator::current_device() const {
  if (current < 0 || current >= devices())
    throw Failure(cuda::kInvalidContext, "invalid device context");
  return current;
}

// --- looking up ---

size_t Simulator::add_stream(int device, int priority) {
  streams_.push_back(std::make_unique<Stream>(Stream{device, priority, {}, {}, 0, 0, 0}));
  return streams_.size() - 1;
}

size_t Simulator::find(cuda::StreamHandle stream) const {
  if (!stream) return devices_[index(current_device())].default_stream;
  for (size_t i = 1; i < streams_.size(); i++)
    if (reinterpret_cast<cuda::StreamHandle>(streams_[i].get()) == stream) return i;
  throw Failure(cuda::kInvalidHandle, "invalid resource handle");
}

Simulator::Event& Simulator::find(cuda::EventHandle event) const {
  const auto found = events_.find(event);
  if (found == events_.end()) throw Failure(cuda::kInvalidHandle, "invalid resource handle");
  return *found->second;
}

const Simulator::Device* Simulator::owner(uintptr_t address) const {
  for (const Device& device : devices_)
    if (device.memory.owns(address)) return &device;
  return nullptr;
}

bool Simulator::pinned(uintptr_t address) const {
  auto block = pinned_.upper_bound(address);
  return block != pinned_.begin() &&
         address < std::prev(block)->first + static_cast<uintptr_t>(std::prev(block)->second);
}

char* Simulator::alias_of(uintptr_t address) const {
  const Device* const device = owner(address);
  return device ? device->memory.alias(address) : reinterpret_cast<char*>(address);
}

// --- memory ---

void Simulator::check_alive() const {
  if (lost_) throw Failure(cuda::kLaunchFailed, "unspecified launch failure");
}

uintptr_t Simulator::allocate(int64_t bytes) {
  check_alive();
  forbid_while_capturing();
  counters_.allocations++;
  host_ns_ += kAllocateNs;
  note_host("cudaMalloc", host_ns_ - kAllocateNs, bytes);
  if (bytes <= 0) throw Failure(cuda::kInvalidValue, "invalid argument");
  const uintptr_t address = fail_allocation_ > 0 && --fail_allocation_ == 0
                                ? 0
                                : devices_[index(current_device())].memory.allocate(bytes);
  if (!address) throw Failure(cuda::kOutOfMemory, "out of memory");
  return address;
}

void Simulator::release(uintptr_t address) {
  forbid_while_capturing();
  for (size_t i = 0; i < devices_.size(); i++) {
    SimMemory& memory = devices_[i].memory;
    const int64_t bytes = memory.block_bytes(address);
    if (!bytes) continue;
    const int64_t begin_ns = host_ns_;
    // cuMemFree waits for all work that may use the memory, whichever device it runs on.
    for (int device = 0; device < devices(); device++) finish_device(device);
    races_.forget(address, address + static_cast<uintptr_t>(bytes));
    memory.release(address);
    host_ns_ += kReleaseNs;
    note_host("cudaFree", begin_ns, bytes);
    return;
  }
  throw Failure(cuda::kInvalidValue, "invalid argument");
}

void* Simulator::host_allocate(int64_t bytes) {
  check_alive();
  forbid_while_capturing();
  void* memory = nullptr;
  if (bytes <= 0 || posix_memalign(&memory, 4096, static_cast<size_t>(bytes)) != 0)
    throw Failure(cuda::kOutOfMemory, "out of memory");
  pinned_[reinterpret_cast<uintptr_t>(memory)] = bytes;
  return memory;
}

void Simulator::host_release(void* memory) {
  const auto block = pinned_.find(reinterpret_cast<uintptr_t>(memory));
  if (block == pinned_.end()) throw Failure(cuda::kInvalidValue, "invalid argument");
  for (int device = 0; device < devices(); device++) finish_device(device);
  races_.forget(block->first, block->first + static_cast<uintptr_t>(block->second));
  pinned_.erase(block);
  std::free(memory);
}

void Simulator::register_host(void* memory, int64_t bytes) {
  check_alive();
  forbid_while_capturing();
  if (bytes <= 0 || pinned(reinterpret_cast<uintptr_t>(memory)))
    throw Failure(cuda::kInvalidValue, "invalid argument");
  pinned_[reinterpret_cast<uintptr_t>(memory)] = bytes;
}

void Simulator::unregister_host(void* memory) {
  const auto block = pinned_.find(reinterpret_cast<uintptr_t>(memory));
  if (block == pinned_.end()) throw Failure(cuda::kInvalidValue, "invalid argument");
  for (int device = 0; device < devices(); device++) finish_device(device);
  races_.forget(block->first, block->first + static_cast<uintptr_t>(block->second));
  pinned_.erase(block);
}

// --- the order of work ---

// Runs the next piece of a stream; false when there is none.
bool Simulator::step(size_t stream) {
  Stream& s = *streams_[stream];
  if (s.queue.empty()) return false;
  Work work = std::move(s.queue.front());
  s.queue.pop_front();
  if (work.run) {
    if (!lost_) work.run();
  } else {
    run_until(work.wait_stream, work.wait_tick);
  }
  s.done = work.tick;
  return true;
}

// Runs a stream up to its tick, and of others what that waits for: no more.
void Simulator::run_until(size_t stream, uint64_t tick) {
  while (streams_[stream]->done < tick && step(stream)) {
  }
}

void Simulator::run_by_schedule() {
  if (schedule_ == kAsLateAsPossible) return;
  if (schedule_ == kAsEarlyAsPossible) {
    for (size_t i = 1; i < streams_.size(); i++) run_until(i, streams_[i]->queued);
    return;
  }
  while (random_() % 2) {
    const size_t stream = 1 + random_() % (streams_.size() - 1);
    for (uint64_t n = random_() % 4; n > 0 && step(stream); n--) {
    }
  }
}

void Simulator::host_waits(size_t stream, uint64_t tick, const Clock& clock, int64_t ns) {
  counters_.synchronizations++;
  run_until(stream, tick);
  streams_[kHost]->clock.join(clock);
  host_ns_ = std::max(host_ns_, ns);
}

void Simulator::finish_device(int device) {
  for (size_t i = 1; i < streams_.size(); i++) {
    Stream& s = *streams_[i];
    if (s.device == device) host_waits(i, s.queued, s.clock, s.busy_until_ns);
  }
}

// --- streams ---

cuda::StreamHandle Simulator::create_stream(int priority) {
  check_alive();
  const size_t made = add_stream(current_device(), priority);
  return reinterpret_cast<cuda::StreamHandle>(streams_[made].get());
}

// Work goes on while somebody keeps asking, so that waiting by asking ends.
bool Simulator::query_stream(cuda::StreamHandle stream) {
  check_alive();
  const size_t i = find(stream);
  forbid_on(captured(i), cuda::kCaptureUnsupported);
  if (streams_[i]->queue.empty()) {
    streams_[kHost]->clock.join(streams_[i]->clock);
    return true;
  }
  step(i);
  return false;
}

void Simulator::synchronize(cuda::StreamHandle stream) {
  check_alive();
  const size_t i = find(stream);
  forbid_on(captured(i), cuda::kCaptureUnsupported);
  const Stream& s = *streams_[i];
  host_waits(i, s.queued, s.clock, s.busy_until_ns);
  check_alive();
}

void Simulator::synchronize_device() {
  check_alive();
  for (const auto& capture : captures_)
    if (streams_[capture->origin()]->device == current_device())
      forbid_on(capture, cuda::kCaptureUnsupported);
  finish_device(current_device());
  check_alive();
}

void Simulator::wait(cuda::StreamHandle stream, cuda::EventHandle event) {
  check_alive();
  const Event& e = find(event);
  const size_t i = find(stream);
  const auto own = captured(i), events = e.capture.lock();
  if (events && events != own) {
    // The stream joins the capture, unless its work is captured elsewhere.
    forbid_on(own, cuda::kCaptureIsolation);
    return events->wait(i, e.nodes);
  }
  if (events) return own->wait(i, e.nodes);
  if (e.captured) forbid_captured(e);
  if (e.tick == 0) return;  // nothing was recorded
  forbid_on(own, cuda::kCaptureIsolation);
  if (e.stream == i) return;  // the order is there anyway
  Stream& s = *streams_[i];
  s.clock.join(e.clock);
  s.queued = s.clock.advance(i);
  s.busy_until_ns = std::max(s.busy_until_ns, e.ns);
  s.queue.push_back({nullptr, e.stream, e.tick, s.queued});
  run_by_schedule();
}

// --- events ---

cuda::EventHandle Simulator::create_event(bool timing) {
  check_alive();
  auto event = std::make_unique<Event>();
  event->device = current_device();
  event->timing = timing;
  const auto handle = reinterpret_cast<cuda::EventHandle>(event.get());
  events_.emplace(handle, std::move(event));
  return handle;
}

void Simulator::destroy(cuda::EventHandle event) {
  find(event);
  events_.erase(event);
}

void Simulator::record(cuda::EventHandle event, cuda::StreamHandle stream) {
  check_alive();
  Event& e = find(event);
  const size_t i = find(stream);
  const Stream& s = *streams_[i];
  if (s.device != e.device) throw Failure(cuda::kInvalidHandle, "invalid resource handle");
  const auto capture = captured(i);
  e.capture = capture;
  e.captured = capture != nullptr;
  if (capture) {
    e.nodes = capture->last(i);
    e.tick = 0;
    return;
  }
  e.stream = i;
  e.tick = s.queued;
  e.clock = s.clock;
  e.ns = std::max(s.busy_until_ns, host_ns_);
}

bool Simulator::query(cuda::EventHandle event) {
  check_alive();
  const Event& e = find(event);
  forbid_captured(e);
  forbid_while_capturing();
  if (e.tick <= streams_[e.stream]->done) {
    streams_[kHost]->clock.join(e.clock);
    return true;
  }
  step(e.stream);
  return false;
}

void Simulator::synchronize(cuda::EventHandle event) {
  check_alive();
  const Event& e = find(event);
  forbid_captured(e);
  forbid_while_capturing();
  if (e.tick > 0) host_waits(e.stream, e.tick, e.clock, e.ns);
  check_alive();
}

float Simulator::elapsed(cuda::EventHandle start, cuda::EventHandle end) {
  check_alive();
  const Event &a = find(start), &b = find(end);
  if (!a.timing || !b.timing) throw Failure(cuda::kInvalidHandle, "invalid resource handle");
  for (const Event* e : {&a, &b})
    if (e->tick > streams_[e->stream]->done) throw Failure(cuda::kNotReady, "device not ready");
  return static_cast<float>(static_cast<double>(b.ns - a.ns) * 1e-6);
}

// --- work ---

void Simulator::check_access(const Access& access) const {
  const auto begin = reinterpret_cast<uintptr_t>(access.begin);
  if (const Device* device = owner(begin); device && !device->memory.holds(begin, access.bytes))
    throw Failure(cuda::kIllegalAddress, "an illegal memory access was encountered");
}

void Simulator::touch(const Access& access, const OperationRef& operation, const Clock& clock) {
  const auto begin = reinterpret_cast<uintptr_t>(access.begin);
  const std::string race = races_.touch(begin, begin + static_cast<uintptr_t>(access.bytes),
                                        access.writes, operation, clock);
  if (!race.empty()) throw Failure(kRace, race);
}

void Simulator::enqueue(size_t stream, std::string name, const std::vector<Access>& accesses,
                        int64_t device_ns, std::function<void()> run) {
  check_alive();
  for (const Access& access : accesses) check_access(access);
  if (const auto capture = captured(stream)) {
    host_ns_ += kLaunchNs;
    if (capture->invalid()) throw Failure(cuda::kCaptureInvalidated, "the capture has ended");
    const std::string race =
        capture->add(stream, {std::move(name), accesses, device_ns, std::move(run), {}});
    if (!race.empty()) throw Failure(kRace, race);
    return;
  }
  Stream& s = *streams_[stream];
  if (s.queue.size() >= kQueueLimit) step(stream);
  host_ns_ += kLaunchNs;
  s.clock.join(streams_[kHost]->clock);  // what the host has seen is before what it queues
  s.queued = s.clock.advance(stream);
  const OperationRef operation = std::make_shared<Operation>(
      Operation{std::move(name),
                "stream " + std::to_string(stream) + " of device " + std::to_string(s.device),
                stream, s.queued});
  const int64_t begin_ns = std::max(host_ns_, s.busy_until_ns);
  s.busy_until_ns = begin_ns + device_ns;
  if (logging_)
    log_.push_back({operation->name, host_ns_ - kLaunchNs, host_ns_, stream, s.device, begin_ns,
                    s.busy_until_ns, 0});
  if (fail_launch_ > 0 && --fail_launch_ == 0) run = [this] { lost_ = true; };
  // A race leaves a piece that does nothing: the stream's numbers have no gaps.
  s.queue.push_back({[] {}, 0, 0, s.queued});
  for (const Access& access : accesses) touch(access, operation, s.clock);
  s.queue.back().run = std::move(run);
  run_by_schedule();
}

void Simulator::launch(cuda::StreamHandle stream, const std::string& name,
                       std::vector<Access> accesses, int64_t device_ns, std::function<void()> run) {
  counters_.launches++;
  enqueue(find(stream), name, accesses, device_ns, std::move(run));
}

void Simulator::copy(void* to, const void* from, int64_t bytes, cuda::StreamHandle stream) {
  if (bytes == 0) return check_alive();
  counters_.copies++;
  const auto target = reinterpret_cast<uintptr_t>(to), source = reinterpret_cast<uintptr_t>(from);
  const bool to_device = owner(target), from_device = owner(source);
  const size_t i = find(stream);
  if (!from_device && !pinned(source))
    return copy_from_pageable(static_cast<char*>(to), static_cast<const char*>(from), bytes, i);
  if (!to_device && !pinned(target))
    return copy_to_pageable(static_cast<char*>(to), static_cast<const char*>(from), bytes, i);
  enqueue(
      i, from_device ? to_device ? "copy on the device" : "copy to the host" : "copy to the device",
      {{from, bytes, false}, {to, bytes, true}}, kCopyNs + bytes / kCopyBytesPerNs,
      [to = alias(static_cast<char*>(to)), from = alias(static_cast<const char*>(from)), bytes] {
        std::memmove(to, from, static_cast<size_t>(bytes));
      });
}

// The driver has taken the bytes when the call returns.
void Simulator::copy_from_pageable(char* to, const char* from, int64_t bytes, size_t stream) {
  forbid_on(captured(stream), cuda::kCaptureUnsupported);
  auto staged = std::make_shared<std::vector<char>>(from, from + bytes);
  enqueue(stream, "copy to the device", {{to, bytes, true}}, kCopyNs + bytes / kCopyBytesPerNs,
          [to = alias(to), staged] { std::memcpy(to, staged->data(), staged->size()); });
}

// The bytes are there when the call returns.
void Simulator::copy_to_pageable(char* to, const char* from, int64_t bytes, size_t stream) {
  forbid_on(captured(stream), cuda::kCaptureUnsupported);
  enqueue(stream, "copy to the host", {{from, bytes, false}}, kCopyNs + bytes / kCopyBytesPerNs,
          [to, from = alias(from), bytes] { std::memcpy(to, from, static_cast<size_t>(bytes)); });
  const Stream& s = *streams_[stream];
  host_waits(stream, s.queued, s.clock, s.busy_until_ns);
  check_alive();
}

void Simulator::fill(void* to, unsigned char value, int64_t bytes, cuda::StreamHandle stream) {
  if (bytes == 0) return check_alive();
  enqueue(find(stream), "fill", {{to, bytes, true}}, kCopyNs + bytes / kCopyBytesPerNs,
          [to = alias(static_cast<char*>(to)), value, bytes] {
            std::memset(to, value, static_cast<size_t>(bytes));
          });
}

void Simulator::keep_log(bool on) {
  logging_ = on;
  if (on) log_.clear();
}

void Simulator::note_host(const char* name, int64_t begin_ns, int64_t bytes) {
  if (logging_) log_.push_back({name, begin_ns, host_ns_, 0, current_device(), 0, 0, bytes});
}

void Simulator::host_works(const std::string& name, int64_t ns) {
  host_ns_ += ns;
  if (logging_) log_.push_back({name, host_ns_ - ns, host_ns_});
}

void Simulator::alias_words(void* args, size_t bytes) const {
  for (size_t at = 0; at + sizeof(uintptr_t) <= bytes; at += sizeof(uintptr_t)) {
    char* const word = static_cast<char*>(args) + at;
    uintptr_t address = 0;
    std::memcpy(&address, word, sizeof address);
    if (!owner(address)) continue;
    char* const moved = alias_of(address);
    std::memcpy(word, &moved, sizeof moved);
  }
}

uintptr_t Simulator::global(const std::string& name) {
  Device& device = devices_[index(current_device())];
  uintptr_t& address = device.globals[name];
  if (!address) {
    address = device.memory.allocate(8);
    std::memset(device.memory.alias(address), 0, 8);
  }
  return address;
}

void Simulator::host_touches(const void* p, int64_t bytes, bool writes) {
  Stream& host = *streams_[kHost];
  const uint64_t tick = host.clock.advance(kHost);
  touch({p, bytes, writes},
        std::make_shared<Operation>(Operation{"an access", "the host", kHost, tick}), host.clock);
}

}  // namespace taeda::sim
