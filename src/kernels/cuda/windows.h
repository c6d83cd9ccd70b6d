// What the launchers of kernels over windows share (text/window.cuh).
#pragma once

#include "device/api.h"
#include "kernels/cpu/pool/pool.h"
#include "kernels/cuda/text/pool_args.h"
#include "taeda/small_vector.h"

namespace taeda::cuda {

// Elements of planes of those sizes.
device::Planes planes_of(int64_t planes, int64_t d, int64_t h, int64_t w);

// RuntimeError where they are longer than kernels know.
device::Windows device_windows(const cpu::Windows& windows);

// Whose elements threads have: one each.
enum class Each { kResult, kInput };

device::PoolArgs pool_arguments(const cpu::PoolShape& shape, Each each);
// Windows over the last `spatial` dimensions that divide them evenly.
device::PoolArgs adaptive_arguments(const View& input, const View& result, size_t spatial,
                                    Each each);
// Runs the kernel for the type of `x`, with so many threads for each of the arguments' count;
// `written` and `read` are what it touches.
void launch_windows(std::string_view kernel, const View& x, device::PoolArgs& args,
                    Span<const View> written, Span<const View> read, int64_t threads = 1);

}  // namespace taeda::cuda
