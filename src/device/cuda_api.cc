// NVIDIA's driver, opened at run time: libcuda.so.1 comes with the driver, not with CUDA's toolkit.
//
// Each function is asked for by its name and the version of CUDA in which it got the signature that
// api.h declares (cuGetProcAddress, drivers since 12.0); older drivers have the same functions
// under the name that this version's header gives them. The types of DeviceApi are checked against
// a declaration of the driver's own types here, since no compiler sees the real ones.
#include "base/dynamic_library.h"
#include "device/api.h"

namespace taeda::cuda {
namespace {

static_assert(sizeof(Uuid) == 16);
static_assert(sizeof(Address) == sizeof(void*), "CUdeviceptr is as wide as a pointer");
static_assert(sizeof(MemoryProperties) == 32 && sizeof(MemoryAccess) == 12);

// CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
//                              CUdriverProcAddressQueryResult* symbolStatus)
using GetProcAddress = Status(const char* symbol, void** function, int version, uint64_t flags,
                              int* symbol_status);

class Driver {
 public:
  explicit Driver(const DynamicLibrary& library)
      : library_(library),
        lookup_(reinterpret_cast<GetProcAddress*>(library.find("cuGetProcAddress_v2"))) {}

  // The function `name` as CUDA `version` has it (12040: 12.4), which the library exports as
  // `exported`. Clears complete() when there is none.
  template <class Fn>
  void find(Fn*& function, const char* name, int version, const char* exported = nullptr) {
    void* found = nullptr;
    int symbol_status = 0;
    if (!lookup_ || lookup_(name, &found, version, 0, &symbol_status) != kSuccess) found = nullptr;
    if (!found) found = library_.find(exported ? exported : name);
    complete_ = complete_ && found;
    function = reinterpret_cast<Fn*>(found);
  }
  bool complete() const { return complete_; }

 private:
  const DynamicLibrary& library_;
  GetProcAddress* lookup_;
  bool complete_ = true;
};

bool fill_api(DeviceApi& api, const DynamicLibrary& library) {
  Driver driver(library);
  driver.find(api.init, "cuInit", 2000);
  driver.find(api.driver_version, "cuDriverGetVersion", 2020);
  driver.find(api.error_name, "cuGetErrorName", 6000);
  driver.find(api.error_text, "cuGetErrorString", 6000);
  driver.find(api.device_count, "cuDeviceGetCount", 2000);
  driver.find(api.device_get, "cuDeviceGet", 2000);
  driver.find(api.device_name, "cuDeviceGetName", 2000);
  driver.find(api.device_uuid, "cuDeviceGetUuid", 11040, "cuDeviceGetUuid_v2");
  driver.find(api.device_memory, "cuDeviceTotalMem", 3020, "cuDeviceTotalMem_v2");
  driver.find(api.device_attribute, "cuDeviceGetAttribute", 2000);
  driver.find(api.can_access_peer, "cuDeviceCanAccessPeer", 4000);
  driver.find(api.retain_primary, "cuDevicePrimaryCtxRetain", 7000);
  driver.find(api.set_context, "cuCtxSetCurrent", 4000);
  driver.find(api.synchronize_context, "cuCtxSynchronize", 2000);
  driver.find(api.priority_range, "cuCtxGetStreamPriorityRange", 5050);
  driver.find(api.memory_info, "cuMemGetInfo", 3020, "cuMemGetInfo_v2");
  driver.find(api.allocate, "cuMemAlloc", 3020, "cuMemAlloc_v2");
  driver.find(api.release, "cuMemFree", 3020, "cuMemFree_v2");
  driver.find(api.host_allocate, "cuMemHostAlloc", 2020);
  driver.find(api.host_release, "cuMemFreeHost", 2000);
  driver.find(api.host_register, "cuMemHostRegister", 6050, "cuMemHostRegister_v2");
  driver.find(api.host_unregister, "cuMemHostUnregister", 4000);
  driver.find(api.granularity, "cuMemGetAllocationGranularity", 10020);
  driver.find(api.reserve, "cuMemAddressReserve", 10020);
  driver.find(api.unreserve, "cuMemAddressFree", 10020);
  driver.find(api.memory_create, "cuMemCreate", 10020);
  driver.find(api.memory_destroy, "cuMemRelease", 10020);
  driver.find(api.map, "cuMemMap", 10020);
  driver.find(api.unmap, "cuMemUnmap", 10020);
  driver.find(api.set_access, "cuMemSetAccess", 10020);
  driver.find(api.stream_create, "cuStreamCreateWithPriority", 5050);
  driver.find(api.stream_query, "cuStreamQuery", 2000);
  driver.find(api.stream_synchronize, "cuStreamSynchronize", 2000);
  driver.find(api.stream_wait, "cuStreamWaitEvent", 3020);
  driver.find(api.event_create, "cuEventCreate", 2000);
  driver.find(api.event_destroy, "cuEventDestroy", 4000, "cuEventDestroy_v2");
  driver.find(api.event_record, "cuEventRecord", 2000);
  driver.find(api.event_query, "cuEventQuery", 2000);
  driver.find(api.event_synchronize, "cuEventSynchronize", 2000);
  driver.find(api.event_elapsed, "cuEventElapsedTime", 2000);
  driver.find(api.copy, "cuMemcpyAsync", 4000);
  driver.find(api.copy_peer, "cuMemcpyPeerAsync", 4000);
  driver.find(api.fill, "cuMemsetD8Async", 3020);
  driver.find(api.capture_begin, "cuStreamBeginCapture", 10010, "cuStreamBeginCapture_v2");
  driver.find(api.capture_end, "cuStreamEndCapture", 10000);
  driver.find(api.capture_info, "cuStreamGetCaptureInfo", 10010);
  driver.find(api.capture_exchange_mode, "cuThreadExchangeStreamCaptureMode", 10010);
  driver.find(api.graph_nodes, "cuGraphGetNodes", 10000);
  driver.find(api.graph_instantiate, "cuGraphInstantiateWithFlags", 11040);
  driver.find(api.graph_launch, "cuGraphLaunch", 10000);
  driver.find(api.graph_exec_destroy, "cuGraphExecDestroy", 10000);
  driver.find(api.graph_destroy, "cuGraphDestroy", 10000);
  driver.find(api.graph_print, "cuGraphDebugDotPrint", 11030);
  driver.find(api.module_load, "cuModuleLoadData", 2000);
  driver.find(api.module_function, "cuModuleGetFunction", 2000);
  driver.find(api.module_global, "cuModuleGetGlobal", 3020, "cuModuleGetGlobal_v2");
  driver.find(api.launch, "cuLaunchKernel", 4000);
  return driver.complete();
}

}  // namespace

const DeviceApi* open_driver() {
  static const DynamicLibrary library = DynamicLibrary::open("libcuda.so.1");
  static DeviceApi api{};
  static const bool complete = library.is_open() && fill_api(api, library);
  return complete ? &api : nullptr;
}

}  // namespace taeda::cuda
