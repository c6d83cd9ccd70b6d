#include "device/sim/driver.h"

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device/sim/emulator_api.h"

namespace taeda::sim {
namespace {

using namespace taeda::cuda;

struct Driver {
  explicit Driver(const Options& options) : simulator(options) {}
  std::mutex mutex;
  Simulator simulator;
};

std::atomic<bool> initialized{false};
std::atomic<pid_t> owner{0};  // the process that initialised: its children have no driver
thread_local std::string last_text;

Driver& driver(const Options& options = {}) {
  // Never destroyed: memory may be released while the process exits.
  static Driver& instance = *new Driver(options);
  return instance;
}

Status guarded(const std::function<void(Simulator&)>& use) {
  if (!initialized || owner != getpid()) return kNotInitialized;
  Driver& d = driver();
  const std::lock_guard<std::mutex> lock(d.mutex);
  try {
    use(d.simulator);
    return kSuccess;
  } catch (const Failure& failure) {
    last_text = failure.what();
    return failure.status();
  }
}

void* pointer(Address address) { return reinterpret_cast<void*>(address); }

// --- the driver and its devices ---

Status init(unsigned) {
  pid_t nobody = 0;
  owner.compare_exchange_strong(nobody, getpid());
  if (owner != getpid()) return kNotInitialized;
  initialized = true;
  return kSuccess;
}

Status driver_version(int* version) {
  *version = 12040;
  return kSuccess;
}

struct StatusName {
  Status status;
  const char* name;
  const char* text;
};
constexpr StatusName kStatusNames[] = {
    {kSuccess, "CUDA_SUCCESS", "no error"},
    {kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {kNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kNotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {kNotReady, "CUDA_ERROR_NOT_READY", "device not ready"},
    {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {kNotSupported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {kCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {kCaptureInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {kCaptureUnmatched, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not initiated in this stream"},
    {kCaptureUnjoined, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "capturing stream has unjoined work"},
    {kCaptureIsolation, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "dependency created on uncaptured work in another stream"},
    {kCapturedEvent, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {kCaptureWrongThread, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {kRace, "SIMULATED_RACE", "race"},
    {kKernelFault, "SIMULATED_KERNEL_FAULT", "a kernel's fault"},
};

const StatusName* find_name(Status status) {
  for (const StatusName& known : kStatusNames)
    if (known.status == status) return &known;
  return nullptr;
}

Status error_name(Status status, const char** name) {
  const StatusName* const known = find_name(status);
  *name = known ? known->name : nullptr;
  return known ? kSuccess : kInvalidValue;
}

Status error_text(Status status, const char** text) {
  const StatusName* const known = find_name(status);
  const bool own = status == kRace || status == kKernelFault;
  *text = own ? last_text.c_str() : known ? known->text : nullptr;
  return known ? kSuccess : kInvalidValue;
}

Status device_count(int* count) {
  return guarded([&](Simulator& s) { *count = s.devices(); });
}

void check_device(const Simulator& s, DeviceHandle device) {
  if (device < 0 || device >= s.devices()) throw Failure(kInvalidDevice, "invalid device ordinal");
}

Status device_get(DeviceHandle* device, int ordinal) {
  return guarded([&](Simulator& s) {
    check_device(s, ordinal);
    *device = ordinal;
  });
}

Status device_name(char* name, int length, DeviceHandle device) {
  return guarded([&](Simulator& s) {
    check_device(s, device);
    std::string_view("Simulated CUDA device").copy(name, static_cast<size_t>(length) - 1);
    name[std::min<size_t>(21, static_cast<size_t>(length) - 1)] = 0;
  });
}

Status device_uuid(Uuid* uuid, DeviceHandle device) {
  return guarded([&](Simulator& s) {
    check_device(s, device);
    std::memset(uuid->bytes, 0x5d, sizeof(uuid->bytes));
    uuid->bytes[15] = static_cast<unsigned char>(device);
  });
}

Status device_memory(size_t* bytes, DeviceHandle device) {
  return guarded([&](Simulator& s) {
    check_device(s, device);
    *bytes = static_cast<size_t>(s.memory(device).bytes());
  });
}

// The compute capability of all devices, 90 for 9.0: which compiled kernels they take.
int card() {
  const char* const text = std::getenv("TAEDA_SIM_CARD");
  static const int number = text ? std::atoi(text) : 90;
  return number;
}

// Those of an H200, which is what the figures of random numbers on a grid are known for.
int attribute_value(Attribute which, DeviceHandle device) {
  switch (which) {
    case Attribute::kMaxThreadsPerBlock:
      return 1024;
    case Attribute::kMaxSharedMemoryPerBlock:
      return 48 << 10;
    case Attribute::kWarpSize:
      return 32;
    case Attribute::kMaxRegistersPerBlock:
    case Attribute::kMaxRegistersPerMultiprocessor:
      return 64 << 10;
    case Attribute::kClockRate:
      return 1'980'000;
    case Attribute::kMultiprocessorCount:
      return 132;
    case Attribute::kPciBusId:
      return device + 1;
    case Attribute::kMemoryClockRate:
      return 3'201'000;
    case Attribute::kMemoryBusWidth:
      return 6144;
    case Attribute::kL2CacheBytes:
      return 60 << 20;
    case Attribute::kMaxThreadsPerMultiprocessor:
      return 2048;
    case Attribute::kComputeCapabilityMajor:
      return card() / 10;
    case Attribute::kComputeCapabilityMinor:
      return card() % 10;
    case Attribute::kMaxSharedMemoryPerMultiprocessor:
      return 228 << 10;
    case Attribute::kMaxSharedMemoryPerBlockOptin:
      return 227 << 10;
    case Attribute::kIntegrated:
    case Attribute::kPciDeviceId:
    case Attribute::kPciDomainId:
    case Attribute::kIsMultiGpuBoard:
      return 0;
  }
  throw Failure(kInvalidValue, "invalid argument");
}

Status device_attribute(int* value, Attribute which, DeviceHandle device) {
  return guarded([&](Simulator& s) {
    check_device(s, device);
    *value = attribute_value(which, device);
  });
}

Status can_access_peer(int* can, DeviceHandle device, DeviceHandle peer) {
  return guarded([&](Simulator& s) {
    check_device(s, device);
    check_device(s, peer);
    *can = device != peer;
  });
}

// --- contexts: the number of the device, plus one ---

Context context_of(int device) {
  return reinterpret_cast<Context>(static_cast<intptr_t>(device) + 1);
}
int device_of(Context context) { return static_cast<int>(reinterpret_cast<intptr_t>(context)) - 1; }

Status retain_primary(Context* context, DeviceHandle device) {
  return guarded([&](Simulator& s) {
    check_device(s, device);
    *context = context_of(device);
  });
}
Status set_context(Context context) {
  return guarded([&](Simulator& s) { s.set_device(device_of(context)); });
}
Status synchronize_context() {
  return guarded([](Simulator& s) { s.synchronize_device(); });
}
Status priority_range(int* least, int* greatest) {
  return guarded([&](Simulator& s) {
    s.current_device();
    *least = 0;
    *greatest = -5;
  });
}

// --- memory ---

Status memory_info(size_t* free, size_t* total) {
  return guarded([&](Simulator& s) {
    const SimMemory& memory = s.memory(s.current_device());
    *free = static_cast<size_t>(memory.bytes_free());
    *total = static_cast<size_t>(memory.bytes());
  });
}
Status allocate(Address* address, size_t bytes) {
  return guarded([&](Simulator& s) { *address = s.allocate(static_cast<int64_t>(bytes)); });
}
Status release(Address address) {
  return guarded([&](Simulator& s) { s.release(static_cast<uintptr_t>(address)); });
}
Status host_allocate(void** memory, size_t bytes, unsigned) {
  return guarded([&](Simulator& s) { *memory = s.host_allocate(static_cast<int64_t>(bytes)); });
}
Status host_release(void* memory) {
  return guarded([&](Simulator& s) { s.host_release(memory); });
}

Status host_register(void* memory, size_t bytes, unsigned) {
  return guarded([&](Simulator& s) { s.register_host(memory, static_cast<int64_t>(bytes)); });
}
Status host_unregister(void* memory) {
  return guarded([&](Simulator& s) { s.unregister_host(memory); });
}

// --- addresses and what lies behind them ---

Status granularity(size_t* bytes, const MemoryProperties*, int) {
  *bytes = Simulator::kGranule;
  return kSuccess;
}
Status reserve(Address* address, size_t bytes, size_t, Address, unsigned long long) {
  return guarded([&](Simulator& s) { *address = s.reserve(static_cast<int64_t>(bytes)); });
}
Status unreserve(Address address, size_t bytes) {
  return guarded([&](Simulator& s) { s.unreserve(address, static_cast<int64_t>(bytes)); });
}
Status memory_create(MemoryHandle* handle, size_t bytes, const MemoryProperties*,
                     unsigned long long) {
  return guarded([&](Simulator& s) { *handle = s.create_memory(static_cast<int64_t>(bytes)); });
}
Status memory_destroy(MemoryHandle handle) {
  return guarded([&](Simulator& s) { s.destroy_memory(handle); });
}
Status map(Address address, size_t bytes, size_t offset, MemoryHandle handle, unsigned long long) {
  if (offset != 0) return kNotSupported;
  return guarded([&](Simulator& s) { s.map(address, static_cast<int64_t>(bytes), handle); });
}
Status unmap(Address address, size_t bytes) {
  return guarded([&](Simulator& s) { s.unmap(address, static_cast<int64_t>(bytes)); });
}
Status set_access(Address address, size_t bytes, const MemoryAccess*, size_t) {
  return guarded([&](Simulator& s) { s.allow(address, static_cast<int64_t>(bytes)); });
}

// --- streams ---

// Only streams that do not wait for the default stream are simulated.
Status stream_create(StreamHandle* stream, unsigned flags, int priority) {
  if (flags != kStreamNonBlocking) return kNotSupported;
  return guarded([&](Simulator& s) { *stream = s.create_stream(priority); });
}
Status ready(bool done) { return done ? kSuccess : kNotReady; }
Status stream_query(StreamHandle stream) {
  bool done = false;
  const Status status = guarded([&](Simulator& s) { done = s.query_stream(stream); });
  return status ? status : ready(done);
}
Status stream_synchronize(StreamHandle stream) {
  return guarded([&](Simulator& s) { s.synchronize(stream); });
}
Status stream_wait(StreamHandle stream, EventHandle event, unsigned) {
  return guarded([&](Simulator& s) { s.wait(stream, event); });
}

// --- events ---

Status event_create(EventHandle* event, unsigned flags) {
  return guarded([&](Simulator& s) { *event = s.create_event(!(flags & kEventDisableTiming)); });
}
Status event_destroy(EventHandle event) {
  return guarded([&](Simulator& s) { s.destroy(event); });
}
Status event_record(EventHandle event, StreamHandle stream) {
  return guarded([&](Simulator& s) { s.record(event, stream); });
}
Status event_query(EventHandle event) {
  bool done = false;
  const Status status = guarded([&](Simulator& s) { done = s.query(event); });
  return status ? status : ready(done);
}
Status event_synchronize(EventHandle event) {
  return guarded([&](Simulator& s) { s.synchronize(event); });
}
Status event_elapsed(float* milliseconds, EventHandle start, EventHandle end) {
  return guarded([&](Simulator& s) { *milliseconds = s.elapsed(start, end); });
}

// --- copies ---

Status copy(Address to, Address from, size_t bytes, StreamHandle stream) {
  return guarded([&](Simulator& s) {
    s.copy(pointer(to), pointer(from), static_cast<int64_t>(bytes), stream);
  });
}
Status copy_peer(Address to, Context, Address from, Context, size_t bytes, StreamHandle stream) {
  return copy(to, from, bytes, stream);
}
Status fill(Address to, unsigned char value, size_t bytes, StreamHandle stream) {
  return guarded(
      [&](Simulator& s) { s.fill(pointer(to), value, static_cast<int64_t>(bytes), stream); });
}

// --- graphs: the handles are shared pointers to what was captured ---

using GraphRef = std::shared_ptr<const WorkGraph>;
template <class Handle>
GraphRef& graph_of(Handle handle) {
  return *reinterpret_cast<GraphRef*>(handle);
}
struct Executable {
  GraphRef graph;
  EventHandle launched = nullptr;  // after the last launch
};

Status capture_begin(StreamHandle stream, CaptureMode mode) {
  return guarded([&](Simulator& s) { s.begin_capture(stream, mode); });
}
Status capture_end(StreamHandle stream, Graph* graph) {
  *graph = nullptr;
  return guarded(
      [&](Simulator& s) { *graph = reinterpret_cast<Graph>(new GraphRef(s.end_capture(stream))); });
}
Status capture_info(StreamHandle stream, CaptureStatus* status, unsigned long long* id) {
  return guarded([&](Simulator& s) {
    const Capture* const capture = s.capture(stream);
    *status = !capture             ? CaptureStatus::kNone
              : capture->invalid() ? CaptureStatus::kInvalidated
                                   : CaptureStatus::kActive;
    if (capture) *id = capture->id();
  });
}
Status capture_exchange_mode(CaptureMode* mode) {
  *mode = exchange_capture_mode(*mode);
  return kSuccess;
}
Status graph_nodes(Graph graph, GraphNode* nodes, size_t* count) {
  if (nodes) return kNotSupported;
  *count = graph_of(graph)->nodes.size();
  return kSuccess;
}
Status graph_instantiate(GraphExec* exec, Graph graph, unsigned long long) {
  *exec = reinterpret_cast<GraphExec>(new Executable{graph_of(graph)});
  return kSuccess;
}
// Launches of one executable follow one another, whatever their streams.
Status graph_launch(GraphExec exec, StreamHandle stream) {
  return guarded([&](Simulator& s) {
    Executable& what = *reinterpret_cast<Executable*>(exec);
    if (what.launched) s.wait(stream, what.launched);
    s.launch(what.graph, stream);
    if (what.launched) s.destroy(what.launched);
    what.launched = s.create_event(false);
    s.record(what.launched, stream);
  });
}
Status graph_exec_destroy(GraphExec exec) {
  auto* const what = reinterpret_cast<Executable*>(exec);
  const Status status = guarded([&](Simulator& s) {
    if (what->launched) s.destroy(what->launched);
  });
  delete what;
  return status;
}
Status graph_destroy(Graph graph) {
  delete &graph_of(graph);
  return kSuccess;
}
Status graph_print(Graph graph, const char* path, unsigned) {
  std::ofstream file(path);
  file << "digraph graph_1 {\n";
  const auto& nodes = graph_of(graph)->nodes;
  for (size_t i = 0; i < nodes.size(); i++) {
    file << "  node_" << i << " [label=\"" << nodes[i].name << "\"];\n";
    for (const size_t earlier : nodes[i].after)
      file << "  node_" << earlier << " -> node_" << i << ";\n";
  }
  file << "}\n";
  return file ? kSuccess : kInvalidValue;
}

// --- kernels: modules stand for all that the emulator has ---

thread_local std::vector<Access> announced;

int64_t images_loaded = 0;
std::unordered_map<std::string_view, int64_t> runs_of;  // by the kernel's name

// A cubin is an ELF file of NVIDIA's, which has the device's architecture in its flags: since CUDA
// 13 (version 8 of the format) in other bits.
int architecture_of(const char* image) {
  constexpr size_t kFormatVersion = 8, kFlags = 48;
  uint32_t flags = 0;
  std::memcpy(&flags, image + kFlags, sizeof flags);
  return static_cast<int>((image[kFormatVersion] >= 8 ? flags >> 8 : flags) & 0xff);
}

// Kernels are the emulator's, whatever the image; what a device would refuse is refused.
void check_image(const char* image, DeviceHandle device) {
  if (*image == ' ') return;
  images_loaded++;
  if (std::string_view(image, 4) !=
      "\x7f"
      "ELF")
    throw Failure(kInvalidImage, "device kernel image is invalid");
  const int major = attribute_value(Attribute::kComputeCapabilityMajor, device);
  const int minor = attribute_value(Attribute::kComputeCapabilityMinor, device);
  const int found = architecture_of(image);
  if (found / 10 != major || found % 10 > minor)
    throw Failure(kNoBinaryForDevice, "no kernel image is available for execution on the device");
}

Status module_load(Module* module, const void* image) {
  return guarded([&](Simulator& s) {
    s.forbid_while_capturing();  // it may allocate, and wait
    check_image(static_cast<const char*>(image), s.current_device());
    *module = reinterpret_cast<Module>(&s);
  });
}
Status module_function(Function* function, Module, const char* name) {
  return guarded([&](Simulator&) {
    *function = reinterpret_cast<Function>(const_cast<void*>(emulator().find(name)));
    if (!*function) throw Failure(kNotFound, "named symbol not found");
  });
}
Status module_global(Address* address, size_t* bytes, Module, const char* name) {
  return guarded([&](Simulator& s) {
    *address = s.global(name);
    *bytes = 8;
  });
}
const char* kernel_at(size_t i) {
  const void* const kernel = emulator().kernel_at(i);
  return kernel ? emulator().name(kernel) : nullptr;
}
void announce(const Access* accesses, size_t count) {
  announced.assign(accesses, accesses + count);
}

// Names the memory that a kernel may touch, at its second addresses.
void watch(EmulatedLaunch& launch, const std::vector<Access>& accesses, const Simulator& s) {
  for (int device = 0; device < s.devices(); device++)
    s.memory(device).for_each_block([&](char* begin, int64_t bytes) {
      launch.memory.push_back({begin, static_cast<size_t>(bytes)});
    });
  for (const Access& a : accesses) {
    char* const begin = s.alias(static_cast<char*>(const_cast<void*>(a.begin)));
    launch.allowed.push_back({begin, static_cast<size_t>(a.bytes)});
  }
}

// The argument is copied when the kernel is queued, as by a driver.
Status launch(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
              unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
              StreamHandle stream, void** args, void** extra) {
  if (extra) return kNotSupported;
  const std::vector<Access> accesses = std::exchange(announced, {});
  return guarded([&](Simulator& s) {
    const EmulatorApi& kernels = emulator();
    const size_t bytes = kernels.argument_bytes(function);
    if (bytes > 4096) throw Failure(kInvalidValue, "more than 4 KiB of arguments");
    auto argument = std::make_shared<std::vector<std::max_align_t>>(
        (bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t));
    std::memcpy(argument->data(), args[0], bytes);
    s.alias_words(argument->data(), bytes);
    EmulatedLaunch what{{grid_x, grid_y, grid_z},
                        {block_x, block_y, block_z},
                        shared_bytes,
                        s.next_seed(),
                        s.alias(reinterpret_cast<void*>(s.global("td_fault"))),
                        {},
                        {}};
    const int64_t threads = int64_t{grid_x} * grid_y * grid_z * block_x * block_y * block_z;
    s.launch(stream, kernels.name(function), accesses, Simulator::kLaunchNs + threads / 100,
             [what, argument, function, accesses, &kernels, &s]() mutable {
               if (kernels.watches) watch(what, accesses, s);
               if (const char* text = kernels.run(function, what, argument->data()))
                 throw Failure(kKernelFault, text);
               runs_of[kernels.name(function)]++;
             });
  });
}

constexpr DeviceApi kApi{
    .init = init,
    .driver_version = driver_version,
    .error_name = error_name,
    .error_text = error_text,
    .device_count = device_count,
    .device_get = device_get,
    .device_name = device_name,
    .device_uuid = device_uuid,
    .device_memory = device_memory,
    .device_attribute = device_attribute,
    .can_access_peer = can_access_peer,
    .retain_primary = retain_primary,
    .set_context = set_context,
    .synchronize_context = synchronize_context,
    .priority_range = priority_range,
    .memory_info = memory_info,
    .allocate = allocate,
    .release = release,
    .host_allocate = host_allocate,
    .host_release = host_release,
    .host_register = host_register,
    .host_unregister = host_unregister,
    .granularity = granularity,
    .reserve = reserve,
    .unreserve = unreserve,
    .memory_create = memory_create,
    .memory_destroy = memory_destroy,
    .map = map,
    .unmap = unmap,
    .set_access = set_access,
    .stream_create = stream_create,
    .stream_query = stream_query,
    .stream_synchronize = stream_synchronize,
    .stream_wait = stream_wait,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_query = event_query,
    .event_synchronize = event_synchronize,
    .event_elapsed = event_elapsed,
    .copy = copy,
    .copy_peer = copy_peer,
    .fill = fill,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .capture_info = capture_info,
    .capture_exchange_mode = capture_exchange_mode,
    .graph_nodes = graph_nodes,
    .graph_instantiate = graph_instantiate,
    .graph_launch = graph_launch,
    .graph_exec_destroy = graph_exec_destroy,
    .graph_destroy = graph_destroy,
    .graph_print = graph_print,
    .module_load = module_load,
    .module_function = module_function,
    .module_global = module_global,
    .launch = launch,
    .announce = announce,
    .kernel_at = kernel_at,
};

}  // namespace

Simulator& simulator(const Options& options) { return driver(options).simulator; }

Status with_simulator(const std::function<void(Simulator&)>& use) { return guarded(use); }

}  // namespace taeda::sim

using taeda::sim::Simulator;
using taeda::sim::with_simulator;

const taeda::cuda::DeviceApi* taeda_sim_api(int devices) {
  taeda::sim::Options options{.devices = devices};
  if (const char* seed = std::getenv("TAEDA_SIM_SCHEDULE"))
    options.schedule = std::strtoull(seed, nullptr, 10);
  taeda::sim::simulator(options);
  return &taeda::sim::kApi;
}

void taeda_sim_fail_allocation(int64_t nth) {
  with_simulator([&](Simulator& s) { s.fail_allocation(nth); });
}
void taeda_sim_fail_launch(int64_t nth) {
  with_simulator([&](Simulator& s) { s.fail_launch(nth); });
}
void taeda_sim_set_schedule(uint64_t seed) {
  with_simulator([&](Simulator& s) { s.set_schedule(seed); });
}

int64_t taeda_sim_count(const char* what) {
  int64_t count = -1;
  with_simulator([&](Simulator& s) {
    const taeda::sim::Counters& counters = s.counters();
    const std::string_view name = what;
    if (name == "launches") count = counters.launches;
    if (name == "copies") count = counters.copies;
    if (name == "synchronizations") count = counters.synchronizations;
    if (name == "allocations") count = counters.allocations;
    if (name == "host_ns") count = s.host_ns();
    if (name == "images") count = taeda::sim::images_loaded;
  });
  return count;
}

int64_t taeda_sim_runs(const char* kernel) {
  int64_t runs = 0;
  with_simulator([&](Simulator&) {
    const auto found = taeda::sim::runs_of.find(kernel);
    if (found != taeda::sim::runs_of.end()) runs = found->second;
  });
  return runs;
}

int taeda_sim_add(void* stream, void* values, int64_t n, float value) {
  return with_simulator([&](Simulator& s) {
    float* const at = s.alias(static_cast<float*>(values));
    const int64_t bytes = n * static_cast<int64_t>(sizeof(float));
    s.launch(static_cast<taeda::cuda::StreamHandle>(stream), "add", {{values, bytes, true}}, bytes,
             [at, n, value] {
               for (int64_t i = 0; i < n; i++) at[i] += value;
             });
  });
}

int taeda_sim_launch(void* stream, const char* name, int64_t device_ns, const void* const* begins,
                     const int64_t* bytes, int n, int reads) {
  return with_simulator([&](Simulator& s) {
    std::vector<taeda::sim::Access> accesses;
    for (int i = 0; i < n; i++) accesses.push_back({begins[i], bytes[i], i >= reads});
    s.launch(static_cast<taeda::cuda::StreamHandle>(stream), name, std::move(accesses), device_ns,
             [] {});
  });
}

void taeda_sim_host_works(const char* name, int64_t ns) {
  with_simulator([&](Simulator& s) { s.host_works(name, ns); });
}

void taeda_sim_keep_log(int on) {
  with_simulator([&](Simulator& s) { s.keep_log(on != 0); });
}

bool taeda_sim_write_log(const char* path) {
  std::ofstream file(path);
  with_simulator([&](Simulator& s) {
    const char* separator = "[";
    for (const taeda::sim::Record& r : s.log()) {
      file << std::exchange(separator, ",\n") << "[\"" << r.name << "\"," << r.host_begin_ns << ','
           << r.host_end_ns << ',' << r.stream << ',' << r.begin_ns << ',' << r.end_ns << ','
           << r.bytes << ']';
    }
    file << (s.log().empty() ? "[]\n" : "]\n");
  });
  return static_cast<bool>(file.flush());
}

int taeda_sim_host_touches(const void* p, int64_t bytes, int writes) {
  return with_simulator([&](Simulator& s) { s.host_touches(p, bytes, writes != 0); });
}
