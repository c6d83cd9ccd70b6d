#include "kernels/cuda/pointwise.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/with_dtype.h"
#include "device/launch.h"
#include "kernels/cpu/pointwise/loop.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/parts.h"
#include "taeda/error.h"
#include "taeda/scalar.h"

namespace taeda::cuda {
namespace {

using Plan = cpu::LoopPlan<device::kMaxInputs + 1>;

// The functor as the kernel has it: its fields in the compute type, or doubles.
struct Functor {
  alignas(16) unsigned char bytes[64] = {};

  explicit Functor(const PointwiseCall& call) {
    const auto count = size_t{call.loop.fields};
    if (count > 0 && !call.loop.scalars) std::memcpy(bytes, call.fields, count * sizeof(double));
    if (!call.loop.scalars) return;
    const auto* const values = static_cast<const Scalar*>(call.fields);
    with_dtype<Join<Types<bool>, WideNumbers>>(call.compute, [&]<class T>(T) {
      for (size_t i = 0; i < count; i++) {
        const T value = values[i].to<T>();
        std::memcpy(bytes + i * sizeof(T), &value, sizeof(T));
      }
    });
  }
};

// One call's operands, 0 being the result, and its launches.
template <int N>
class Launcher {
 public:
  Launcher(const PointwiseCall& call, const View& out, Span<const View> in)
      : call_(call), device_(out.device.index), functor_(call) {
    const View* views[N + 1] = {&out};
    for (int i = 0; i < N; i++) views[i + 1] = &in[static_cast<size_t>(i)];
    for (int k = 0; k <= N; k++) types_[k] = views[k]->dtype;
    for (int i = 0; i < N; i++) note_number(i, *views[i + 1]);
    plan_.build(views, N + 1);
  }

  void run() {
    if (const std::optional<DType> stored = dense_type()) return run_dense(*stored);
    for_each_part(plan_, [&](const Plan& part) { run_strided(part); });
  }

 private:
  template <class Loop>
  struct Argument {
    Loop loop{};
    Functor functor;
  };

  bool is_given(int k) const { return k > 0 && numbers_.given >> (k - 1) & 1; }
  bool is_number(int k) const {
    return k > 0 && (numbers_.given | numbers_.repeated) >> (k - 1) & 1;
  }

  // An input that is one element: its value if it is the host's, else read by the kernel.
  void note_number(int i, const View& view) {
    for (size_t d = 0; d < view.sizes.size(); d++)
      if (view.strides[d] != 0 && view.sizes[d] != 1) return;
    (view.device.is_cpu() ? numbers_.given : numbers_.repeated) |= 1u << i;
    if (!view.device.is_cpu()) return;
    unsigned char* const number = numbers_.number[i];
    if (view.dtype == call_.compute)
      std::memcpy(number, view.data, static_cast<size_t>(item_size(view.dtype)));
    else
      cpu::Conversion(call_.compute, view.dtype)(number, view.data, 1);
  }

  // Of the arrays, if all operands are arrays in one order and the kernel for their type fits.
  std::optional<DType> dense_type() const {
    DType stored = call_.result == call_.compute ? types_[0] : call_.compute;
    for (int k = N; k > 0; k--)
      if (!is_number(k)) stored = types_[k];
    const DType written = call_.result == call_.compute ? stored : call_.result;
    bool dense = dtype_info(stored).compute == call_.compute;
    for (int k = 0; k <= N; k++) {
      if (is_given(k)) continue;
      dense &= types_[k] == (k == 0 ? written : stored);
      dense &= is_number(k) || plan_.is_linear(k, item_size(types_[k]));
    }
    return dense ? std::optional(stored) : std::nullopt;
  }

  void run_dense(DType stored) {
    Argument<device::DenseArgs<N>> argument{.functor = functor_};
    auto& loop = argument.loop;
    loop.numbers = numbers_;
    const std::string name = kernel_name(call_.loop.name, stored);
    const int64_t width = device::pack_size(item_size(stored));
    for (int64_t begin = 0; begin < plan_.numel; begin += device::kMaxElements) {
      const int64_t n = std::min(plan_.numel - begin, device::kMaxElements);
      SmallVector<Access, N + 1> accesses;
      uintptr_t bits = 0;
      for (int k = 0; k <= N; k++) {
        const int64_t itemsize = item_size(types_[k]), count = is_number(k) ? 1 : n;
        void* const at = plan_.data[k] + (is_number(k) ? 0 : begin * itemsize);
        if (k == 0) loop.out = at;
        if (k > 0) loop.in[k - 1] = at;
        if (!is_number(k)) bits |= reinterpret_cast<uintptr_t>(at);
        if (!is_given(k)) accesses.push_back({at, count * itemsize, k == 0});
      }
      loop.n = static_cast<uint32_t>(n);
      loop.aligned = bits % 16 == 0;
      launch(device_, name, (n + width - 1) / width, &argument, accesses);
    }
  }

  void run_strided(const Plan& part) {
    Argument<device::StridedArgs<N>> argument{.functor = functor_};
    auto& loop = argument.loop;
    loop.numbers = numbers_;
    loop.ndim = static_cast<uint8_t>(part.ndim);
    loop.n = static_cast<uint32_t>(part.numel);
    SmallVector<Access, N + 1> accesses;
    for (int k = 0; k <= N; k++) {
      loop.data[k] = part.data[k];
      loop.types[k] = element_type(types_[k]);
      for (int d = 0; d < part.ndim; d++)
        loop.strides[d][k] = static_cast<int32_t>(part.strides[d][k]);
      const Extent e = extent(part, k, item_size(types_[k]));
      if (!is_given(k)) accesses.push_back({part.data[k] + e.below, e.above - e.below, k == 0});
    }
    for (int d = 0; d < part.ndim; d++)
      loop.sizes[d] = device::divisor(static_cast<uint32_t>(part.sizes[d]));
    launch(device_, kernel_name(call_.loop.name, call_.compute, "_any"), part.numel, &argument,
           accesses);
  }

  const PointwiseCall& call_;
  int device_;
  Functor functor_;
  device::Numbers<N> numbers_{};
  DType types_[N + 1];
  Plan plan_;
};

}  // namespace

void pointwise(const PointwiseCall& call, const View& out, Span<const View> in) {
  switch (in.size()) {
    case 1:
      return Launcher<1>(call, out, in).run();
    case 2:
      return Launcher<2>(call, out, in).run();
    case 3:
      return Launcher<3>(call, out, in).run();
    case 4:
      return Launcher<4>(call, out, in).run();
    default:
      fail(ErrorKind::kRuntime, "{}: {} inputs, a kernel takes at most {}", call.loop.name,
           in.size(), device::kMaxInputs);
  }
}

}  // namespace taeda::cuda
