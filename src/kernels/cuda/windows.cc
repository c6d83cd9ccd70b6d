#include "kernels/cuda/windows.h"

#include "device/launch.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/kernel_name.h"
#include "taeda/error.h"

namespace taeda::cuda {

device::Planes planes_of(int64_t planes, int64_t d, int64_t h, int64_t w) {
  device::Planes all{};
  int64_t count = planes;
  const int64_t sizes[] = {w, h, d};
  for (int i = 0; i < 3; i++) {
    TD_CHECK(sizes[i] < INT32_MAX, "a dimension of {} elements is too long for CUDA", sizes[i]);
    all.sizes[i] = device::divisor(static_cast<uint32_t>(std::max<int64_t>(sizes[i], 1)));
    count *= sizes[i];
  }
  all.count = static_cast<uint64_t>(count);
  all.wide = count > INT32_MAX;
  return all;
}

device::Windows device_windows(const cpu::Windows& w) {
  const int64_t reach = w.dilation * (w.kernel - 1) + 1;
  for (const int64_t span : {w.in, w.out, reach, w.padding})
    TD_CHECK(span <= device::kMaxWindow, "windows over {} positions are too long for CUDA", span);
  const auto small = [](int64_t n) {
    return static_cast<int32_t>(std::min(n, device::kMaxWindow));
  };
  return {small(w.in),     small(w.out),     small(w.kernel),
          small(w.stride), small(w.padding), small(w.dilation)};
}

device::PoolArgs pool_arguments(const cpu::PoolShape& s, Each each) {
  device::PoolArgs args{};
  const cpu::Windows* const dims[] = {&s.d, &s.h, &s.w};
  for (int d = 0; d < 3; d++) args.dims[d] = device_windows(*dims[d]);
  args.in = s.in_size();
  args.out = s.out_size();
  args.each = each == Each::kResult ? planes_of(s.planes, s.d.out, s.h.out, s.w.out)
                                    : planes_of(s.planes, s.d.in, s.h.in, s.w.in);
  return args;
}

device::PoolArgs adaptive_arguments(const View& input, const View& result, size_t spatial,
                                    Each each) {
  const DimVector ones(spatial, 1), zeros(spatial, 0);
  device::PoolArgs args =
      pool_arguments(cpu::pool_shape(input.sizes, result.sizes, ones, ones, zeros, ones), each);
  for (device::Windows& w : args.dims) w.kernel = 0;
  return args;
}

void launch_windows(std::string_view kernel, const View& x, device::PoolArgs& args,
                    Span<const View> written, Span<const View> read, int64_t threads) {
  if (args.each.count == 0) return;
  const bool integral = is_integral(x.dtype);
  args.x = static_cast<const char*>(x.data);
  args.type = element_type(x.dtype);
  args.itemsize = static_cast<uint8_t>(item_size(x.dtype));
  launch(x.device.index, kernel_name(kernel, integral ? DType::kInt64 : x.dtype, "_any"),
         static_cast<int64_t>(args.each.count) * threads, &args, accesses(written, read));
}

}  // namespace taeda::cuda
