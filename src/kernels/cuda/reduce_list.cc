#include "kernels/cuda/reduce_list.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/strides.h"
#include "device/launch.h"
#include "device/put_off.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/text/reduce_list_args.h"
#include "kernels/cuda/workspace.h"

namespace taeda::cuda {
namespace {

constexpr std::string_view kListed[] = {"norm", "maxnorm", "max"};
constexpr int64_t kMost = int64_t{1} << 36;  // elements of one: 32 bits count all chunks
constexpr int64_t kStateBytes = 16;          // of the largest state

struct List {
  std::vector<device::ReducedArray> arrays;
  std::string kernel;
  double parameter = 0;
  Device device;
  DType x = DType::kFloat32, out = DType::kFloat32;
};

thread_local std::unique_ptr<List> list;  // what the thread has put off

int64_t bytes_of(const List& l, const device::ReducedArray& array) {
  return static_cast<int64_t>(array.n) * item_size(l.x);
}

// Whether `touched` is what the list writes or, if it is to be written, what the list reads.
bool depends(const List& l, const Access& touched) {
  const auto* const begin = static_cast<const char*>(touched.begin);
  const auto meets = [&](const char* at, int64_t bytes) {
    return begin < at + bytes && at < begin + touched.bytes;
  };
  return std::ranges::any_of(l.arrays, [&](const device::ReducedArray& array) {
    return meets(array.out, item_size(l.out)) ||
           (touched.writes && meets(array.x, bytes_of(l, array)));
  });
}

void launch_part(const List& l, size_t begin, size_t end) {
  device::ReduceListArgs args{};
  static_assert(sizeof(args) <= 4096, "CUDA's limit");
  SmallVector<Access, 16> touched;
  for (size_t i = begin; i < end; i++) {
    device::ReducedArray& array = args.arrays[args.count++] = l.arrays[i];
    array.first = args.chunks;
    const uint64_t chunks = (array.n + device::kReducedChunk - 1) / device::kReducedChunk;
    args.chunks += static_cast<uint32_t>(std::max<uint64_t>(1, chunks));
    touched.push_back({array.x, bytes_of(l, array), false});
    touched.push_back({array.out, item_size(l.out), true});
  }
  args.parameter = l.parameter;
  args.itemsize = static_cast<uint32_t>(item_size(l.x));
  args.x_type = element_type(l.x), args.out_type = element_type(l.out);
  const int64_t work = int64_t{args.chunks} * kThreadsPerBlock;
  if (args.chunks == args.count)
    return launch(l.device.index, "reduce_" + l.kernel, work, &args, touched);
  const Workspace states(l.device, args.chunks * kStateBytes);
  args.partial = states.data();
  touched.push_back(states.access(true));
  launch(l.device.index, "reduce_" + l.kernel, work, &args, touched);
  launch(l.device.index, "join_" + l.kernel, int64_t{args.count} * 32, &args, touched);
}

void launch_list() {
  const List l = std::exchange(*list, {});
  for (size_t i = 0; i < l.arrays.size(); i += device::kReducedArrays)
    launch_part(l, i, std::min(i + device::kReducedArrays, l.arrays.size()));
}

}  // namespace

bool put_off_reduction(const Reduction& what, const View& out, const View& x) {
  if (std::ranges::find(kListed, what.name) == std::end(kListed) || is_complex(x.dtype) ||
      is_complex(what.compute) || out.numel != 1 || x.numel > kMost ||
      !is_dense_layout(x.sizes, x.strides))
    return false;
  std::string kernel = kernel_name(what.name, what.compute, "_list");
  if (!list) list = std::make_unique<List>();
  List& l = *list;
  const bool same = l.kernel == kernel && l.parameter == what.parameter && l.device == x.device &&
                    l.x == x.dtype && l.out == out.dtype;
  const device::ReducedArray array{static_cast<const char*>(x.data), static_cast<char*>(out.data),
                                   static_cast<uint64_t>(x.numel), 0};
  if (launch_put_off != launch_list || !same || depends(l, {array.x, bytes_of(l, array), false}) ||
      depends(l, {array.out, item_size(out.dtype), true}))
    launch_what_is_put_off();
  if (l.arrays.empty()) {
    l.kernel = std::move(kernel);
    l.parameter = what.parameter, l.device = x.device, l.x = x.dtype, l.out = out.dtype;
    launch_put_off = launch_list;
  }
  l.arrays.push_back(array);
  return true;
}

}  // namespace taeda::cuda
