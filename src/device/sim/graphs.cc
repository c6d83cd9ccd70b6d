// The simulator's graphs and its memory behind reserved addresses.
#include <algorithm>
#include <utility>

#include "device/sim/simulator.h"

namespace taeda::sim {
namespace {

[[noreturn]] void refuse() { throw Failure(cuda::kInvalidValue, "invalid argument"); }

thread_local cuda::CaptureMode thread_mode = cuda::CaptureMode::kGlobal;

}  // namespace

cuda::CaptureMode exchange_capture_mode(cuda::CaptureMode mode) {
  return std::exchange(thread_mode, mode);
}

// --- addresses and memory ---

uintptr_t Simulator::reserve(int64_t bytes) {
  check_alive();
  if (bytes <= 0 || bytes % kGranule != 0) refuse();
  const uintptr_t address = devices_[index(current_device())].memory.addresses().reserve(bytes);
  if (!address) throw Failure(cuda::kOutOfMemory, "out of memory");
  return address;
}

void Simulator::unreserve(uintptr_t address, int64_t bytes) {
  if (!devices_[index(current_device())].memory.addresses().unreserve(address, bytes)) refuse();
}

uint64_t Simulator::create_memory(int64_t bytes) {
  if (bytes <= 0 || bytes % kGranule != 0) refuse();
  return allocate(bytes);
}

void Simulator::destroy_memory(uint64_t handle) {
  if (!devices_[index(current_device())].memory.release(handle)) refuse();
}

void Simulator::map(uintptr_t address, int64_t bytes, uint64_t handle) {
  check_alive();
  if (!devices_[index(current_device())].memory.map(address, bytes, handle)) refuse();
}

void Simulator::allow(uintptr_t address, int64_t bytes) {
  if (!devices_[index(current_device())].memory.addresses().allow(address, bytes)) refuse();
}

// The driver does not wait for work that uses the memory: whoever unmaps has to.
void Simulator::unmap(uintptr_t address, int64_t bytes) {
  Stream& host = *streams_[0];
  const uint64_t tick = host.clock.advance(0);
  touch({reinterpret_cast<void*>(address), bytes, true},
        std::make_shared<Operation>(Operation{"unmapping", "the host", 0, tick}), host.clock);
  if (!devices_[index(current_device())].memory.addresses().unmap(address, bytes)) refuse();
  races_.forget(address, address + static_cast<uintptr_t>(bytes));
}

// --- graphs ---

std::shared_ptr<Capture> Simulator::captured(size_t stream) const {
  for (const auto& capture : captures_)
    if (capture->has(stream)) return capture;
  return nullptr;
}

void Simulator::forbid_while_capturing() {
  if (thread_mode == cuda::CaptureMode::kRelaxed) return;
  for (const auto& capture : captures_) {
    const bool forbidden = capture->is_own_thread()
                               ? capture->mode() != cuda::CaptureMode::kRelaxed
                               : capture->mode() == cuda::CaptureMode::kGlobal &&
                                     thread_mode == cuda::CaptureMode::kGlobal;
    if (forbidden) forbid_on(capture, cuda::kCaptureUnsupported);
  }
}

void Simulator::forbid_on(const std::shared_ptr<Capture>& capture, cuda::Status status) const {
  if (!capture) return;
  capture->invalidate();
  throw Failure(status, "operation not permitted when stream is capturing");
}

void Simulator::forbid_captured(const Event& event) const {
  forbid_on(event.capture.lock(), cuda::kCapturedEvent);
  if (event.captured)
    throw Failure(cuda::kCapturedEvent,
                  "operation not permitted on an event last recorded in a "
                  "capturing stream");
}

void Simulator::begin_capture(cuda::StreamHandle stream, cuda::CaptureMode mode) {
  check_alive();
  const size_t i = find(stream);
  if (i == devices_[index(streams_[i]->device)].default_stream)
    throw Failure(cuda::kCaptureUnsupported, "operation not permitted when stream is capturing");
  forbid_on(captured(i), cuda::kCaptureUnsupported);
  captures_.push_back(std::make_shared<Capture>(next_capture_++, i, mode));
}

std::shared_ptr<const WorkGraph> Simulator::end_capture(cuda::StreamHandle stream) {
  check_alive();
  const size_t i = find(stream);
  const auto capture = captured(i);
  if (!capture) refuse();
  if (capture->origin() != i) forbid_on(capture, cuda::kCaptureUnmatched);
  if (capture->mode() != cuda::CaptureMode::kRelaxed && !capture->is_own_thread())
    forbid_on(capture, cuda::kCaptureWrongThread);
  std::erase(captures_, capture);
  if (capture->invalid())
    throw Failure(cuda::kCaptureInvalidated, "operation failed due to a previous error");
  if (!capture->is_joined())
    throw Failure(cuda::kCaptureUnjoined, "capturing stream has unjoined work");
  return std::make_shared<const WorkGraph>(capture->take());
}

const Capture* Simulator::capture(cuda::StreamHandle stream) const {
  return captured(find(stream)).get();
}

// All nodes are one piece of the stream's work, each with the accesses it was captured with.
void Simulator::launch(const std::shared_ptr<const WorkGraph>& graph, cuda::StreamHandle stream) {
  counters_.launches++;
  std::vector<Access> accesses;
  for (const Node& node : graph->nodes)
    accesses.insert(accesses.end(), node.accesses.begin(), node.accesses.end());
  enqueue(find(stream), "a graph", accesses, graph->device_ns(),
          [this, graph] { graph->run(random_); });
}

}  // namespace taeda::sim
