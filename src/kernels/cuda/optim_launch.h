// The lists of one optimizer's step, and its launches.
#pragma once

#include <string_view>

#include "device/api.h"
#include "kernels/cpu/optim/optim.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/text/optim_args.h"

namespace taeda::cuda {

using Touched = SmallVector<Access, 16>;

// Lists that are not used are empty; `steps` are numbers of the host or of the device; `flag` is a
// float that is written, too.
struct OptimLists {
  cpu::Views params, grads, states[3], steps{};
  View flag{};
};

// A number in the device's memory, as a kernel's argument.
device::ElementType note_number(const char*& at, const View& number, Touched& touched);

// Fills args.tensors from parameter `begin` on, as many as fit: the first one that is left.
size_t fill_tensors(const OptimLists& lists, size_t begin, device::OptimTensor* tensors,
                    uint32_t& count, uint32_t& chunks, device::ElementType& step_type,
                    Touched& touched);
void launch_optim(int device, std::string_view name, DType type, uint32_t chunks, void* args,
                  const Touched& touched);

template <class Rule, class Options>
void launch_optim(std::string_view name, device::OptimArgs<Rule>& args, const Options& options,
                  const OptimLists& lists) {
  static_assert(sizeof(args) <= 4096, "CUDA's limit");
  args.factor = options.maximize ? -options.grad_scale : options.grad_scale;
  for (size_t begin = 0; begin < lists.params.size();) {
    Touched touched;
    if (options.device_scale.present)
      args.scale_type = note_number(args.grad_scale, options.device_scale, touched);
    if (options.found_inf.present)
      args.found_type = note_number(args.found_inf, options.found_inf, touched);
    if (options.device_lr.present) args.lr_type = note_number(args.lr, options.device_lr, touched);
    if (lists.flag.present) touched.push_back({lists.flag.data, sizeof(float), true});
    const View& first = lists.params[begin];
    begin =
        fill_tensors(lists, begin, args.tensors, args.count, args.chunks, args.step_type, touched);
    launch_optim(first.device.index, name, first.dtype, args.chunks, &args, touched);
  }
}

}  // namespace taeda::cuda
