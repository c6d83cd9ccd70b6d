#include "device/stream.h"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <utility>

#include "device/device.h"
#include "device/fault.h"
#include "device/graph.h"
#include "device/put_off.h"
#include "taeda/error.h"

namespace taeda::cuda {
namespace {

constexpr size_t kPriorities = Stream::kLeastPriority - Stream::kGreatestPriority + 1;

// Of one device. Streams are made when they are first handed out and live as long as the process.
struct Pool {
  std::mutex mutex;
  std::array<std::array<StreamHandle, Stream::kPoolSize>, kPriorities> streams{};
  std::array<unsigned, kPriorities> next{};
};

Pool& pool(int device) {
  static auto& pools = *new std::array<Pool, kMaxDevices>;
  return pools[static_cast<size_t>(device)];
}

// Made by who leaves the default streams: thread-local memory that is there from a thread's start
// is scarce in a library that is loaded late.
using CurrentIds = std::array<int64_t, kMaxDevices>;
thread_local std::unique_ptr<CurrentIds> current_ids;

void set_current_id(Stream stream) {
  if (!current_ids) current_ids = std::make_unique<CurrentIds>();
  (*current_ids)[static_cast<size_t>(stream.device)] = stream.id;
}

// The number of a stream of the pool: odd, with its level of priority and its place in it.
int64_t pool_id(size_t level, unsigned index) {
  return static_cast<int64_t>(index) << 3 | static_cast<int64_t>(level) << 1 | 1;
}
bool from_pool(int64_t id) { return id & 1; }
size_t level_of(int64_t id) { return static_cast<size_t>(id >> 1 & 3); }
size_t index_of(int64_t id) { return static_cast<size_t>(id >> 3); }

}  // namespace

Stream Stream::from_pool(int device, int priority) {
  const DeviceApi& driver = use_device(device);
  const auto level =
      static_cast<size_t>(kLeastPriority - std::clamp(priority, kGreatestPriority, kLeastPriority));
  Pool& streams = pool(device);
  const std::lock_guard<std::mutex> lock(streams.mutex);
  const unsigned index = streams.next[level]++ % kPoolSize;
  StreamHandle& handle = streams.streams[level][index];
  if (!handle) {
    check(driver.stream_create(&handle, kStreamNonBlocking,
                               kLeastPriority - static_cast<int>(level)));
  }
  return {device, pool_id(level, index)};
}

Stream Stream::current(int device) {
  return {device, current_ids ? (*current_ids)[static_cast<size_t>(device)] : 0};
}

Stream Stream::external(int device, StreamHandle handle) {
  check_device(device);
  const auto legacy =
      reinterpret_cast<StreamHandle>(intptr_t{1});  // the default stream's other name
  if (handle == legacy) return default_of(device);
  return {device, static_cast<int64_t>(reinterpret_cast<intptr_t>(handle))};
}

StreamHandle Stream::handle() const {
  if (!cuda::from_pool(id)) return reinterpret_cast<StreamHandle>(static_cast<intptr_t>(id));
  Pool& streams = pool(device);
  const std::lock_guard<std::mutex> lock(streams.mutex);
  return streams.streams[level_of(id)][index_of(id)];
}

int Stream::priority() const {
  return cuda::from_pool(id) ? kLeastPriority - static_cast<int>(level_of(id)) : 0;
}

bool Stream::query() const {
  forbid_while_capturing(*this, "Stream.query");
  const Status status = use_device(device).stream_query(handle());
  if (status == kNotReady) return false;
  check(status);
  return true;
}

void Stream::synchronize() const {
  forbid_while_capturing(*this, "Stream.synchronize");
  check(use_device(device).stream_synchronize(handle()));
  raise_fault(device);
}

void Stream::wait(const Event& event) const {
  if (event.recorded()) check(use_device(device).stream_wait(handle(), event.handle(), 0));
}

void set_current_stream(Stream stream) {
  launch_what_is_put_off();
  check_device(stream.device);
  set_current_id(stream);
}

StreamGuard::StreamGuard(Stream stream)
    : device_(current_device()), stream_(Stream::current(stream.device)) {
  set_device(stream.device);
  set_current_stream(stream);
}
StreamGuard::~StreamGuard() {
  set_current_id(stream_);
  set_device(device_);
}

// --- events ---

Event::Event(Event&& other) noexcept
    : flags_(other.flags_),
      device_(other.device_),
      handle_(std::exchange(other.handle_, nullptr)) {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(flags_, other.flags_);
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  return *this;
}

Event::~Event() {
  if (handle_ && !is_forked_child()) api()->event_destroy(handle_);
}

void Event::create(int device) {
  check(use_device(device).event_create(&handle_, flags_));
  device_ = device;
}

void Event::record(Stream stream) {
  if (!handle_) create(stream.device);
  TD_CHECK(device_ == stream.device, "Event device {} does not match recording stream's device {}.",
           device_, stream.device);
  check(use_device(device_).event_record(handle_, stream.handle()));
}

bool Event::query() const {
  if (!handle_) return true;
  forbid_while_capturing(Stream::current(device_), "Event.query");
  const Status status = use_device(device_).event_query(handle_);
  if (status == kNotReady) return false;
  check(status);
  return true;
}

void Event::synchronize() const {
  if (!handle_) return;
  forbid_while_capturing(Stream::current(device_), "Event.synchronize");
  check(use_device(device_).event_synchronize(handle_));
  raise_fault(device_);
}

float Event::elapsed_ms(const Event& end) const {
  TD_CHECK_VALUE(!((flags_ | end.flags_) & kEventDisableTiming),
                 "Both events must be created with argument 'enable_timing=True'.");
  TD_CHECK_VALUE(handle_ && end.handle_,
                 "Both events must be recorded before calculating elapsed time.");
  TD_CHECK_VALUE(device_ == end.device_,
                 "Events must be on the same device: they were recorded on {} and {}.", device_,
                 end.device_);
  float milliseconds = 0;
  check(use_device(device_).event_elapsed(&milliseconds, handle_, end.handle_));
  return milliseconds;
}

}  // namespace taeda::cuda
