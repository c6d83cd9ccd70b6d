#include "device/graph.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "device/device.h"
#include "device/memory.h"
#include "device/pinned.h"
#include "taeda/error.h"
#include "taeda/warning.h"

namespace taeda::cuda {
namespace {

// Captures that are under way: the driver's number of each, its pool and its generators.
struct Capture {
  PoolName pool;
  GraphGenerators* generators;
};
struct Captures {
  std::mutex mutex;
  std::map<unsigned long long, Capture> known;
};
Captures& captures() {
  static auto& instance = *new Captures;
  return instance;
}
std::atomic<int> captures_under_way{0};

struct Use {
  int device;
  PoolName name;
};
std::vector<Use>& uses() {
  thread_local std::vector<Use> instance;
  return instance;
}
// Whether any thread has ever chosen a pool: until then nothing is looked up.
std::atomic<bool> pools_are_used{false};

struct CaptureInfo {
  CaptureStatus status = CaptureStatus::kNone;
  unsigned long long id = 0;
};
CaptureInfo capture_info(Stream stream) {
  CaptureInfo info;
  check(use_device(stream.device).capture_info(stream.handle(), &info.status, &info.id));
  return info;
}

}  // namespace

PoolName new_pool_name(bool by_program) {
  static std::atomic<int64_t> last{0};
  const int64_t n = ++last;
  return by_program ? PoolName{0, n} : PoolName{n, 0};
}

PoolName current_pool(Stream stream) {
  if (any_capturing()) {
    const CaptureInfo info = capture_info(stream);
    if (info.status != CaptureStatus::kNone) {
      const std::lock_guard<std::mutex> lock(captures().mutex);
      const auto found = captures().known.find(info.id);
      if (found != captures().known.end()) return found->second.pool;
    }
  }
  if (!pools_are_used.load(std::memory_order_relaxed)) return {0, 0};
  const auto& chosen = uses();
  const auto last = std::find_if(chosen.rbegin(), chosen.rend(),
                                 [&](const Use& use) { return use.device == stream.device; });
  return last == chosen.rend() ? PoolName{0, 0} : last->name;
}

void begin_use_of_pool(int device, const PoolName& name) {
  retain_pool(device, name);
  pools_are_used = true;
  uses().push_back({device, name});
}

void end_use_of_pool(int device, const PoolName& name) {
  auto& chosen = uses();
  const auto last = std::find_if(chosen.rbegin(), chosen.rend(), [&](const Use& use) {
    return use.device == device && use.name == name;
  });
  TD_CHECK(last != chosen.rend(), "the thread does not allocate from the pool ({}, {})", name.first,
           name.second);
  chosen.erase(std::prev(last.base()));
  release_pool(device, name);
}

bool any_capturing() noexcept { return captures_under_way.load(std::memory_order_relaxed) > 0; }

bool is_capturing(Stream stream) {
  return any_capturing() && capture_info(stream).status != CaptureStatus::kNone;
}
bool is_capturing(int device) { return is_capturing(Stream::current(device)); }

std::optional<CapturedGenerator> captured_generator(const Philox& generator, int device,
                                                    uint64_t words) {
  if (!any_capturing()) return std::nullopt;
  const CaptureInfo info = capture_info(Stream::current(device));
  if (info.status == CaptureStatus::kNone) return std::nullopt;
  const std::lock_guard<std::mutex> lock(captures().mutex);
  const auto found = captures().known.find(info.id);
  std::optional<CapturedGenerator> state;
  if (found != captures().known.end()) state = found->second.generators->take(generator, words);
  TD_CHECK(state,
           "Attempt to increase offset for a CUDA generator not in capture mode.\n"
           "Fix: call register_generator_state(generator) of the graph before its capture");
  return state;
}

void forbid_while_capturing(Stream stream, const char* what) {
  if (!is_capturing(stream)) return;
  throw AcceleratorError(
      format("operation not permitted when stream is capturing\n{} waits for the device, which a "
             "CUDA graph cannot: it runs only when it is replayed",
             what));
}

void forbid_host_work_while_capturing(int device, std::string_view what) {
  if (!is_capturing(device)) return;
  throw AcceleratorError(
      format("operation not permitted when stream is capturing\n{} has no kernel for these tensors "
             "on device cuda:{} and runs on the CPU, on copies, which a CUDA graph cannot repeat",
             what, device));
}

RelaxedCapture::RelaxedCapture() : active_(any_capturing()) {
  if (active_) check(api()->capture_exchange_mode(&saved_));
}
RelaxedCapture::~RelaxedCapture() {
  if (active_) api()->capture_exchange_mode(&saved_);
}

// --- CudaGraph ---

CudaGraph::~CudaGraph() {
  if (is_forked_child()) return;
  try {
    reset();
  } catch (const Error&) {
    // The device is lost, and the graph with it.
  }
}

void CudaGraph::capture_begin(std::optional<PoolName> pool, CaptureMode mode) {
  TD_CHECK(!captured_ && !capturing_,
           "This CUDAGraph instance already owns a captured graph. To capture a new graph, create "
           "a new instance.");
  initialize("torch.cuda.CUDAGraph needs one");
  device_ = current_device();
  stream_ = Stream::current(device_);
  TD_CHECK(stream_ != Stream::default_of(device_),
           "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok "
           "to replay them on the default stream.)");
  generators_.add(default_generator(Device(DeviceType::kCUDA, static_cast<int8_t>(device_))));
  generators_.begin_capture(device_);
  pool_ = pool ? *pool : new_pool_name(false);
  retain_pool(device_, *pool_);
  const Status status = use_device(device_).capture_begin(stream_.handle(), mode);
  if (status != kSuccess) {
    release_pool(device_, *std::exchange(pool_, std::nullopt));
    fail_status(status);
  }
  capturing_ = true;
  begin_capture(device_);
  captures_under_way++;
  const unsigned long long id = capture_info(stream_).id;
  const std::lock_guard<std::mutex> lock(captures().mutex);
  captures().known[id] = {*pool_, &generators_};
}

void CudaGraph::forget_capture() {
  const CaptureInfo info = capture_info(stream_);
  const std::lock_guard<std::mutex> lock(captures().mutex);
  captures().known.erase(info.id);
}

void CudaGraph::end_use() {
  capturing_ = false;
  captures_under_way--;
  end_capture(device_);
  if (!any_capturing()) release_pinned_after_capture();
}

void CudaGraph::capture_end() {
  TD_CHECK(capturing_, "CUDAGraph.capture_end: no capture was begun");
  TD_CHECK(Stream::current(device_) == stream_, "Capture must end on the same stream it began on.");
  const DeviceApi& driver = use_device(device_);
  forget_capture();
  const Status status = driver.capture_end(stream_.handle(), &graph_);
  end_use();
  check(status);
  captured_ = true;
  check(driver.graph_nodes(graph_, nullptr, &nodes_));
  if (nodes_ == 0)
    warn(
        "The CUDA Graph is empty. This usually means that the graph was attempted to be captured "
        "on wrong device or stream.");
  if (!keep_) instantiate();
  if (!keep_) check(driver.graph_destroy(std::exchange(graph_, nullptr)));
}

void CudaGraph::instantiate() {
  TD_CHECK(captured_, "Called CUDAGraph::instantiate without a preceding successful capture.");
  TD_CHECK(graph_,
           "CUDAGraph.instantiate: the graph was made with keep_graph=False, which "
           "instantiates it at the end of its capture");
  const DeviceApi& driver = use_device(device_);
  if (exec_) check(driver.graph_exec_destroy(std::exchange(exec_, nullptr)));
  check(driver.graph_instantiate(&exec_, graph_, 0));
}

void CudaGraph::replay() {
  TD_CHECK(captured_, "Called CUDAGraph::replay without a preceding successful capture.");
  if (!exec_) instantiate();
  const DeviceGuard guard(device_);
  const Stream stream = Stream::current(device_);
  // The driver orders launches of a graph; but what the last one still reads is written before.
  const bool draws = generators_.are_used();
  if (draws && replayed_) stream.wait(replayed_->event());
  generators_.replay(stream);
  check(use_device(device_).graph_launch(exec_, stream.handle()));
  if (draws) replayed_.emplace(stream);
}

void CudaGraph::reset() {
  if (!pool_) return;
  const DeviceApi& driver = use_device(device_);
  if (capturing_) {
    forget_capture();
    driver.capture_end(stream_.handle(), &graph_);  // what fails was no graph
    end_use();
  }
  if (graph_) driver.graph_destroy(std::exchange(graph_, nullptr));
  if (exec_) driver.graph_exec_destroy(std::exchange(exec_, nullptr));
  captured_ = false;
  replayed_.reset();
  generators_.release_memory();
  release_pool(device_, *std::exchange(pool_, std::nullopt));
}

PoolName CudaGraph::pool() const {
  TD_CHECK(pool_, "Called CUDAGraph::pool() without a preceding successful capture.");
  return *pool_;
}

Graph CudaGraph::graph() const {
  TD_CHECK(keep_,
           "You cannot access the raw cudaGraph_t instance unless CUDAGraph was initialized "
           "with keep_graph=true");
  TD_CHECK(captured_,
           "You cannot access the raw cudaGraph_t instance until capture_end() has been "
           "called");
  return graph_;
}

GraphExec CudaGraph::exec() const {
  TD_CHECK(exec_,
           "You cannot access the raw cudaGraphExec_t instance until instantiate() has been "
           "called");
  return exec_;
}

void CudaGraph::debug_dump(const std::string& path) {
  TD_CHECK(
      captured_ && graph_,
      "CUDA Graphs debug not enabled, set with [graph].enable_debug_mode() before the capture");
  constexpr unsigned kVerbose = 1;  // CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE
  check(use_device(device_).graph_print(graph_, path.c_str(), kVerbose));
}

}  // namespace taeda::cuda
