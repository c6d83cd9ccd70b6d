// The declarations of the driver's calls against NVIDIA's own header, where it is installed (make
// setup).
#include "device/api.h"

#include <gtest/gtest.h>

#if __has_include(<cudaTypedefs.h>)
#include <cuda.h>
#include <cudaTypedefs.h>

#include <cstddef>
#include <type_traits>

namespace taeda::cuda {
namespace {

// Equal as far as a caller's registers and memory are concerned.
template <class A, class B>
constexpr bool interchangeable() {
  constexpr bool numbers =
      (std::is_enum_v<A> || std::is_integral_v<A>)&&(std::is_enum_v<B> || std::is_integral_v<B>);
  constexpr bool pointers = std::is_pointer_v<A> && std::is_pointer_v<B>;
  return std::is_same_v<A, B> || ((numbers || pointers) && sizeof(A) == sizeof(B));
}
template <class F, class G>
struct SameCall;
template <class R, class... A, class S, class... B>
struct SameCall<R (*)(A...), S (*)(B...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(A) == sizeof...(B))
      return interchangeable<R, S>() && (interchangeable<A, B>() && ...);
    else
      return false;
  }();
};

#define TD_SAME_CALL(member, type) static_assert(SameCall<decltype(DeviceApi::member), type>::value)
TD_SAME_CALL(init, PFN_cuInit_v2000);
TD_SAME_CALL(driver_version, PFN_cuDriverGetVersion_v2020);
TD_SAME_CALL(error_name, PFN_cuGetErrorName_v6000);
TD_SAME_CALL(error_text, PFN_cuGetErrorString_v6000);
TD_SAME_CALL(device_count, PFN_cuDeviceGetCount_v2000);
TD_SAME_CALL(device_get, PFN_cuDeviceGet_v2000);
TD_SAME_CALL(device_name, PFN_cuDeviceGetName_v2000);
TD_SAME_CALL(device_uuid, PFN_cuDeviceGetUuid_v11040);
TD_SAME_CALL(device_memory, PFN_cuDeviceTotalMem_v3020);
TD_SAME_CALL(device_attribute, PFN_cuDeviceGetAttribute_v2000);
TD_SAME_CALL(can_access_peer, PFN_cuDeviceCanAccessPeer_v4000);
TD_SAME_CALL(retain_primary, PFN_cuDevicePrimaryCtxRetain_v7000);
TD_SAME_CALL(set_context, PFN_cuCtxSetCurrent_v4000);
TD_SAME_CALL(synchronize_context, PFN_cuCtxSynchronize_v2000);
TD_SAME_CALL(priority_range, PFN_cuCtxGetStreamPriorityRange_v5050);
TD_SAME_CALL(memory_info, PFN_cuMemGetInfo_v3020);
TD_SAME_CALL(allocate, PFN_cuMemAlloc_v3020);
TD_SAME_CALL(release, PFN_cuMemFree_v3020);
TD_SAME_CALL(host_allocate, PFN_cuMemHostAlloc_v2020);
TD_SAME_CALL(host_release, PFN_cuMemFreeHost_v2000);
TD_SAME_CALL(stream_create, PFN_cuStreamCreateWithPriority_v5050);
TD_SAME_CALL(stream_query, PFN_cuStreamQuery_v2000);
TD_SAME_CALL(stream_synchronize, PFN_cuStreamSynchronize_v2000);
TD_SAME_CALL(stream_wait, PFN_cuStreamWaitEvent_v3020);
TD_SAME_CALL(event_create, PFN_cuEventCreate_v2000);
TD_SAME_CALL(event_destroy, PFN_cuEventDestroy_v4000);
TD_SAME_CALL(event_record, PFN_cuEventRecord_v2000);
TD_SAME_CALL(event_query, PFN_cuEventQuery_v2000);
TD_SAME_CALL(event_synchronize, PFN_cuEventSynchronize_v2000);
TD_SAME_CALL(event_elapsed, PFN_cuEventElapsedTime_v2000);
TD_SAME_CALL(copy, PFN_cuMemcpyAsync_v4000);
TD_SAME_CALL(copy_peer, PFN_cuMemcpyPeerAsync_v4000);
TD_SAME_CALL(fill, PFN_cuMemsetD8Async_v3020);
TD_SAME_CALL(host_register, PFN_cuMemHostRegister_v6050);
TD_SAME_CALL(host_unregister, PFN_cuMemHostUnregister_v4000);
TD_SAME_CALL(granularity, PFN_cuMemGetAllocationGranularity_v10020);
TD_SAME_CALL(reserve, PFN_cuMemAddressReserve_v10020);
TD_SAME_CALL(unreserve, PFN_cuMemAddressFree_v10020);
TD_SAME_CALL(memory_create, PFN_cuMemCreate_v10020);
TD_SAME_CALL(memory_destroy, PFN_cuMemRelease_v10020);
TD_SAME_CALL(map, PFN_cuMemMap_v10020);
TD_SAME_CALL(unmap, PFN_cuMemUnmap_v10020);
TD_SAME_CALL(set_access, PFN_cuMemSetAccess_v10020);
TD_SAME_CALL(capture_begin, PFN_cuStreamBeginCapture_v10010);
TD_SAME_CALL(capture_end, PFN_cuStreamEndCapture_v10000);
TD_SAME_CALL(capture_info, PFN_cuStreamGetCaptureInfo_v10010);
TD_SAME_CALL(capture_exchange_mode, PFN_cuThreadExchangeStreamCaptureMode_v10010);
TD_SAME_CALL(graph_nodes, PFN_cuGraphGetNodes_v10000);
TD_SAME_CALL(graph_instantiate, PFN_cuGraphInstantiateWithFlags_v11040);
TD_SAME_CALL(graph_launch, PFN_cuGraphLaunch_v10000);
TD_SAME_CALL(graph_exec_destroy, PFN_cuGraphExecDestroy_v10000);
TD_SAME_CALL(graph_destroy, PFN_cuGraphDestroy_v10000);
TD_SAME_CALL(graph_print, PFN_cuGraphDebugDotPrint_v11030);
TD_SAME_CALL(module_load, PFN_cuModuleLoadData_v2000);
TD_SAME_CALL(module_function, PFN_cuModuleGetFunction_v2000);
TD_SAME_CALL(module_global, PFN_cuModuleGetGlobal_v3020);
TD_SAME_CALL(launch, PFN_cuLaunchKernel_v4000);
static_assert(
    std::is_same_v<PFN_cuGetProcAddress_v12000, CUresult (*)(const char*, void**, int, cuuint64_t,
                                                             CUdriverProcAddressQueryResult*)>);

#define TD_SAME_ATTRIBUTE(ours, theirs) \
  static_assert(static_cast<int>(Attribute::ours) == CU_DEVICE_ATTRIBUTE_##theirs)
TD_SAME_ATTRIBUTE(kMaxThreadsPerBlock, MAX_THREADS_PER_BLOCK);
TD_SAME_ATTRIBUTE(kMaxSharedMemoryPerBlock, MAX_SHARED_MEMORY_PER_BLOCK);
TD_SAME_ATTRIBUTE(kWarpSize, WARP_SIZE);
TD_SAME_ATTRIBUTE(kMaxRegistersPerBlock, MAX_REGISTERS_PER_BLOCK);
TD_SAME_ATTRIBUTE(kClockRate, CLOCK_RATE);
TD_SAME_ATTRIBUTE(kMultiprocessorCount, MULTIPROCESSOR_COUNT);
TD_SAME_ATTRIBUTE(kIntegrated, INTEGRATED);
TD_SAME_ATTRIBUTE(kPciBusId, PCI_BUS_ID);
TD_SAME_ATTRIBUTE(kPciDeviceId, PCI_DEVICE_ID);
TD_SAME_ATTRIBUTE(kMemoryClockRate, MEMORY_CLOCK_RATE);
TD_SAME_ATTRIBUTE(kMemoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH);
TD_SAME_ATTRIBUTE(kL2CacheBytes, L2_CACHE_SIZE);
TD_SAME_ATTRIBUTE(kMaxThreadsPerMultiprocessor, MAX_THREADS_PER_MULTIPROCESSOR);
TD_SAME_ATTRIBUTE(kPciDomainId, PCI_DOMAIN_ID);
TD_SAME_ATTRIBUTE(kComputeCapabilityMajor, COMPUTE_CAPABILITY_MAJOR);
TD_SAME_ATTRIBUTE(kComputeCapabilityMinor, COMPUTE_CAPABILITY_MINOR);
TD_SAME_ATTRIBUTE(kMaxSharedMemoryPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
TD_SAME_ATTRIBUTE(kMaxRegistersPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR);
TD_SAME_ATTRIBUTE(kIsMultiGpuBoard, MULTI_GPU_BOARD);
TD_SAME_ATTRIBUTE(kMaxSharedMemoryPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);

static_assert(kInvalidValue == CUDA_ERROR_INVALID_VALUE);
static_assert(kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(kNotInitialized == CUDA_ERROR_NOT_INITIALIZED);
static_assert(kNoDevice == CUDA_ERROR_NO_DEVICE);
static_assert(kInvalidDevice == CUDA_ERROR_INVALID_DEVICE);
static_assert(kInvalidImage == CUDA_ERROR_INVALID_IMAGE);
static_assert(kNoBinaryForDevice == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(kInvalidContext == CUDA_ERROR_INVALID_CONTEXT);
static_assert(kInvalidHandle == CUDA_ERROR_INVALID_HANDLE);
static_assert(kNotFound == CUDA_ERROR_NOT_FOUND);
static_assert(kNotReady == CUDA_ERROR_NOT_READY);
static_assert(kIllegalAddress == CUDA_ERROR_ILLEGAL_ADDRESS);
static_assert(kLaunchFailed == CUDA_ERROR_LAUNCH_FAILED);
static_assert(kNotSupported == CUDA_ERROR_NOT_SUPPORTED);
static_assert(kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(kEventBlockingSync == CU_EVENT_BLOCKING_SYNC);
static_assert(kEventDisableTiming == CU_EVENT_DISABLE_TIMING);
static_assert(kHostPortable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(sizeof(Uuid) == sizeof(CUuuid));
static_assert(kCaptureUnsupported == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
static_assert(kCaptureInvalidated == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
static_assert(kCaptureUnmatched == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
static_assert(kCaptureUnjoined == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
static_assert(kCaptureIsolation == CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
static_assert(kCapturedEvent == CUDA_ERROR_CAPTURED_EVENT);
static_assert(kCaptureWrongThread == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
static_assert(kHostRegisterPortable == CU_MEMHOSTREGISTER_PORTABLE);
static_assert(sizeof(MemoryProperties) == sizeof(CUmemAllocationProp));
static_assert(offsetof(MemoryProperties, location) == offsetof(CUmemAllocationProp, location));
static_assert(sizeof(MemoryAccess) == sizeof(CUmemAccessDesc));
static_assert(MemoryProperties{}.type == CU_MEM_ALLOCATION_TYPE_PINNED);
static_assert(MemoryLocation{}.type == CU_MEM_LOCATION_TYPE_DEVICE);
static_assert(MemoryAccess{}.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
static_assert(kGranularityRecommended == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
static_assert(static_cast<int>(CaptureMode::kGlobal) == CU_STREAM_CAPTURE_MODE_GLOBAL);
static_assert(static_cast<int>(CaptureMode::kThreadLocal) == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
static_assert(static_cast<int>(CaptureMode::kRelaxed) == CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(static_cast<int>(CaptureStatus::kActive) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
static_assert(static_cast<int>(CaptureStatus::kInvalidated) ==
              CU_STREAM_CAPTURE_STATUS_INVALIDATED);

TEST(CudaApi, DeclarationsAreTheDriversOwn) {}  // what the compiler has checked above

}  // namespace
}  // namespace taeda::cuda
#else
TEST(CudaApi, DeclarationsAreTheDriversOwn) { GTEST_SKIP() << "no header of CUDA is installed"; }
#endif
