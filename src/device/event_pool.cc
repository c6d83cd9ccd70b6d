#include "device/event_pool.h"

#include <array>
#include <mutex>
#include <utility>
#include <vector>

#include "device/device.h"

namespace taeda::cuda {
namespace {

struct Pool {
  std::mutex mutex;
  std::vector<Event> events;
};

Pool& pool(int device) {
  static auto& pools = *new std::array<Pool, kMaxDevices>;
  return pools[static_cast<size_t>(device)];
}

Event take(int device) {
  Pool& p = pool(device);
  const std::lock_guard<std::mutex> lock(p.mutex);
  if (p.events.empty()) return Event();
  Event event = std::move(p.events.back());
  p.events.pop_back();
  return event;
}

}  // namespace

PooledEvent::PooledEvent(Stream stream) : event_(take(stream.device)) { event_.record(stream); }

PooledEvent::~PooledEvent() {
  if (!event_.recorded() || is_forked_child()) return;
  Pool& p = pool(event_.device());
  const std::lock_guard<std::mutex> lock(p.mutex);
  p.events.push_back(std::move(event_));
}

}  // namespace taeda::cuda
