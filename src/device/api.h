// DeviceApi: the driver's calls that taeda makes, as one record of function pointers.
//
// There are three fillings: NVIDIA's driver, found at run time (cuda_api.cc); the simulated driver,
// a library of its own for tests (sim/); and none, where api() is null. Which one is in use is
// decided when it is first asked for, by the environment variable TAEDA_CUDA: "driver", if the
// machine has one, "sim" or "sim:4" (so many simulated devices), or none while it is unset. Nothing
// is opened before that: programs that never ask pay nothing.
//
// The calls are the driver API's own (the names of their counterparts stand beside them), with its
// types spelled out, so that no header of CUDA's is needed. They return the driver's status.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "taeda/error.h"

namespace taeda::cuda {

// CUresult. The numbers are part of the driver's interface.
using Status = int;
inline constexpr Status kSuccess = 0;
inline constexpr Status kInvalidValue = 1;
inline constexpr Status kOutOfMemory = 2;
inline constexpr Status kNotInitialized = 3;
inline constexpr Status kNoDevice = 100;
inline constexpr Status kInvalidDevice = 101;
inline constexpr Status kInvalidImage = 200;
inline constexpr Status kInvalidContext = 201;
inline constexpr Status kNoBinaryForDevice = 209;
inline constexpr Status kInvalidHandle = 400;
inline constexpr Status kNotFound = 500;
inline constexpr Status kNotReady = 600;
inline constexpr Status kIllegalAddress = 700;
inline constexpr Status kLaunchFailed = 719;
inline constexpr Status kNotSupported = 801;
// What may not be done while work is captured into a graph.
inline constexpr Status kCaptureUnsupported = 900, kCaptureInvalidated = 901;
inline constexpr Status kCaptureUnmatched = 903, kCaptureUnjoined = 904;
inline constexpr Status kCaptureIsolation = 905, kCapturedEvent = 907;
inline constexpr Status kCaptureWrongThread = 908;

using DeviceHandle = int;                  // CUdevice
using Context = struct ContextState*;      // CUcontext
using StreamHandle = struct StreamState*;  // CUstream; null: the device's default stream
using EventHandle = struct EventState*;    // CUevent
using Address = unsigned long long;        // CUdeviceptr
using MemoryHandle = unsigned long long;   // CUmemGenericAllocationHandle
using Graph = struct GraphState*;          // CUgraph
using GraphExec = struct GraphExecState*;  // CUgraphExec: a graph that can be launched
using GraphNode = struct GraphNodeState*;  // CUgraphNode
using Module = struct ModuleState*;        // CUmodule
using Function = struct FunctionState*;    // CUfunction
struct Uuid {
  unsigned char bytes[16];
};

// CUdevice_attribute: those that are asked for.
enum class Attribute : int {
  kMaxThreadsPerBlock = 1,
  kMaxSharedMemoryPerBlock = 8,
  kWarpSize = 10,
  kMaxRegistersPerBlock = 12,
  kClockRate = 13,  // kHz
  kMultiprocessorCount = 16,
  kIntegrated = 18,
  kPciBusId = 33,
  kPciDeviceId = 34,
  kMemoryClockRate = 36,  // kHz
  kMemoryBusWidth = 37,   // bits
  kL2CacheBytes = 38,
  kMaxThreadsPerMultiprocessor = 39,
  kPciDomainId = 50,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryPerMultiprocessor = 81,
  kMaxRegistersPerMultiprocessor = 82,
  kIsMultiGpuBoard = 84,
  kMaxSharedMemoryPerBlockOptin = 97,
};

inline constexpr unsigned kStreamNonBlocking = 1;  // CU_STREAM_NON_BLOCKING
// CU_EVENT_*
inline constexpr unsigned kEventBlockingSync = 1, kEventDisableTiming = 2;
inline constexpr unsigned kHostPortable = 1;  // CU_MEMHOSTALLOC_PORTABLE: pinned for all devices

inline constexpr unsigned kHostRegisterPortable = 1;  // CU_MEMHOSTREGISTER_PORTABLE

// CUmemAllocationProp and CUmemAccessDesc: memory of a device, which that device reads and writes.
struct MemoryLocation {
  int type = 1;  // CU_MEM_LOCATION_TYPE_DEVICE
  int device = 0;
};
struct MemoryProperties {
  int type = 1;          // CU_MEM_ALLOCATION_TYPE_PINNED
  int handle_types = 0;  // CU_MEM_HANDLE_TYPE_NONE
  MemoryLocation location;
  void* win32_metadata = nullptr;
  unsigned char flags[8] = {};
};
struct MemoryAccess {
  MemoryLocation location;
  int flags = 3;  // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
};
inline constexpr int kGranularityRecommended = 1;  // CU_MEM_ALLOC_GRANULARITY_RECOMMENDED

// CUstreamCaptureMode: whose calls that may not be captured end it. Global: those of all threads.
enum class CaptureMode : int { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };
// CUstreamCaptureStatus
enum class CaptureStatus : int { kNone = 0, kActive = 1, kInvalidated = 2 };
// Bytes that a kernel reads or writes.
struct Access {
  const void* begin;
  int64_t bytes;
  bool writes;
};

struct DeviceApi {
  // --- the driver and its devices ---
  Status (*init)(unsigned flags);                                      // cuInit
  Status (*driver_version)(int* version);                              // cuDriverGetVersion
  Status (*error_name)(Status status, const char** name);              // cuGetErrorName
  Status (*error_text)(Status status, const char** text);              // cuGetErrorString
  Status (*device_count)(int* count);                                  // cuDeviceGetCount
  Status (*device_get)(DeviceHandle* device, int ordinal);             // cuDeviceGet
  Status (*device_name)(char* name, int length, DeviceHandle device);  // cuDeviceGetName
  Status (*device_uuid)(Uuid* uuid, DeviceHandle device);              // cuDeviceGetUuid
  Status (*device_memory)(size_t* bytes, DeviceHandle device);         // cuDeviceTotalMem
  Status (*device_attribute)(int* value, Attribute which, DeviceHandle device);
  Status (*can_access_peer)(int* can, DeviceHandle device, DeviceHandle peer);

  // --- contexts: one a device, the primary one ---
  Status (*retain_primary)(Context* context, DeviceHandle device);  // cuDevicePrimaryCtxRetain
  Status (*set_context)(Context context);                           // cuCtxSetCurrent
  Status (*synchronize_context)();                                  // cuCtxSynchronize
  Status (*priority_range)(int* least, int* greatest);              // cuCtxGetStreamPriorityRange

  // --- memory, of the current context ---
  Status (*memory_info)(size_t* free, size_t* total);                    // cuMemGetInfo
  Status (*allocate)(Address* address, size_t bytes);                    // cuMemAlloc
  Status (*release)(Address address);                                    // cuMemFree
  Status (*host_allocate)(void** memory, size_t bytes, unsigned flags);  // cuMemHostAlloc
  Status (*host_release)(void* memory);                                  // cuMemFreeHost
  Status (*host_register)(void* memory, size_t bytes, unsigned flags);   // cuMemHostRegister
  Status (*host_unregister)(void* memory);                               // cuMemHostUnregister

  // --- addresses and what lies behind them ---
  Status (*granularity)(size_t* bytes, const MemoryProperties* properties,
                        int option);  // cuMemGetAllocationGranularity
  Status (*reserve)(Address* address, size_t bytes, size_t alignment, Address wanted,
                    unsigned long long flags);         // cuMemAddressReserve
  Status (*unreserve)(Address address, size_t bytes);  // cuMemAddressFree
  Status (*memory_create)(MemoryHandle* handle, size_t bytes, const MemoryProperties* properties,
                          unsigned long long flags);  // cuMemCreate
  Status (*memory_destroy)(MemoryHandle handle);      // cuMemRelease
  Status (*map)(Address address, size_t bytes, size_t offset, MemoryHandle handle,
                unsigned long long flags);         // cuMemMap
  Status (*unmap)(Address address, size_t bytes);  // cuMemUnmap
  Status (*set_access)(Address address, size_t bytes, const MemoryAccess* access,
                       size_t count);  // cuMemSetAccess

  // --- streams ---
  Status (*stream_create)(StreamHandle* stream, unsigned flags,
                          int priority);        // cuStreamCreateWithPriority
  Status (*stream_query)(StreamHandle stream);  // kNotReady while work is left
  Status (*stream_synchronize)(StreamHandle stream);
  Status (*stream_wait)(StreamHandle stream, EventHandle event, unsigned flags);

  // --- events ---
  Status (*event_create)(EventHandle* event, unsigned flags);
  Status (*event_destroy)(EventHandle event);
  Status (*event_record)(EventHandle event, StreamHandle stream);
  Status (*event_query)(EventHandle event);
  Status (*event_synchronize)(EventHandle event);
  Status (*event_elapsed)(float* milliseconds, EventHandle start, EventHandle end);

  // --- copies: addresses of devices and of the host alike ---
  Status (*copy)(Address to, Address from, size_t bytes, StreamHandle stream);  // cuMemcpyAsync
  Status (*copy_peer)(Address to, Context to_context, Address from, Context from_context,
                      size_t bytes, StreamHandle stream);  // cuMemcpyPeerAsync
  Status (*fill)(Address to, unsigned char value, size_t bytes, StreamHandle stream);

  // --- graphs ---
  Status (*capture_begin)(StreamHandle stream, CaptureMode mode);  // cuStreamBeginCapture
  Status (*capture_end)(StreamHandle stream, Graph* graph);        // cuStreamEndCapture
  Status (*capture_info)(StreamHandle stream, CaptureStatus* status,
                         unsigned long long* id);      // cuStreamGetCaptureInfo
  Status (*capture_exchange_mode)(CaptureMode* mode);  // cuThreadExchangeStreamCaptureMode
  Status (*graph_nodes)(Graph graph, GraphNode* nodes, size_t* count);  // cuGraphGetNodes
  Status (*graph_instantiate)(GraphExec* exec, Graph graph, unsigned long long flags);
  Status (*graph_launch)(GraphExec exec, StreamHandle stream);
  Status (*graph_exec_destroy)(GraphExec exec);
  Status (*graph_destroy)(Graph graph);
  Status (*graph_print)(Graph graph, const char* path, unsigned flags);  // cuGraphDebugDotPrint
  // --- kernels ---
  Status (*module_load)(Module* module, const void* image);  // cuModuleLoadData
  Status (*module_function)(Function* function, Module module,
                            const char* name);  // cuModuleGetFunction
  Status (*module_global)(Address* address, size_t* bytes, Module module,
                          const char* name);  // cuModuleGetGlobal
  Status (*launch)(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   StreamHandle stream, void** args, void** extra);  // cuLaunchKernel
  // What the thread's next launch reads and writes: for a driver that looks for races, else null.
  void (*announce)(const Access* accesses, size_t count);
  // The i-th kernel of a driver that has kernels itself, null beyond the last; for others null.
  const char* (*kernel_at)(size_t i);
};

// The filling in use; null where there is none or none is asked for. ValueError for another
// value of TAEDA_CUDA, RuntimeError where the simulated driver is asked for and not there.
const DeviceApi* api();
// Whether it is the simulated driver.
bool simulated();

// The two fillings: null where the driver cannot be opened.
const DeviceApi* open_driver();
const DeviceApi* open_simulator(int devices);

// What the driver reports, which may stem from work queued before: torch.AcceleratorError, a
// RuntimeError.
class AcceleratorError : public Error {
 public:
  explicit AcceleratorError(const std::string& message)
      : Error(ErrorKind::kRuntime, "CUDA error: " + message) {}
};

// AcceleratorError with PyTorch's words for a status that is not success (OutOfMemoryError for the
// memory's end).
void check(Status status);
[[noreturn]] void fail_status(Status status);

}  // namespace taeda::cuda
