#include "kernels/cuda/optim_launch.h"

#include <algorithm>

#include "device/launch.h"

namespace taeda::cuda {

device::ElementType note_number(const char*& at, const View& number, Touched& touched) {
  at = number.as<const char>();
  touched.push_back({at, item_size(number.dtype), false});
  return element_type(number.dtype);
}

namespace {

// Whether parameter i can share a launch with an earlier one: of its types, and in its chunks.
bool fits(const OptimLists& lists, size_t i, size_t first, uint32_t chunks) {
  const auto& [params, grads, states, steps, flag] = lists;
  return params[i].dtype == params[first].dtype &&
         (steps.empty() || steps[i].dtype == steps[first].dtype) &&
         params[i].numel / device::kOptimChunk < UINT32_MAX - chunks;
}

device::OptimTensor tensor(const OptimLists& lists, size_t i, Touched& touched) {
  const View& p = lists.params[i];
  const int64_t bytes = p.numel * item_size(p.dtype);
  uintptr_t bits = 0;
  const auto note = [&](const View& v, bool writes) {
    touched.push_back({v.data, bytes, writes});
    bits |= reinterpret_cast<uintptr_t>(v.data);
    return v.as<char>();
  };
  device::OptimTensor t{};
  t.param = note(p, true);
  t.grad = note(lists.grads[i], false);
  for (int k = 0; k < 3; k++)
    if (!lists.states[k].empty()) t.states[k] = note(lists.states[k][i], true);
  t.n = static_cast<uint64_t>(p.numel);
  t.aligned = bits % static_cast<uintptr_t>(4 * item_size(p.dtype)) == 0;
  return t;
}

}  // namespace

size_t fill_tensors(const OptimLists& lists, size_t begin, device::OptimTensor* tensors,
                    uint32_t& count, uint32_t& chunks, device::ElementType& step_type,
                    Touched& touched) {
  count = chunks = 0;
  size_t i = begin;
  for (; i < lists.params.size() && count < device::kOptimTensors; i++) {
    if (!fits(lists, i, begin, chunks)) break;
    if (lists.params[i].numel == 0) continue;
    device::OptimTensor t = tensor(lists, i, touched);
    if (!lists.steps.empty()) {
      const View& step = lists.steps[i];
      if (step.device.is_cpu())
        t.step_value = *step.as<double>();
      else
        step_type = note_number(t.step, step, touched);
    }
    t.first = chunks;
    chunks += static_cast<uint32_t>((t.n + device::kOptimChunk - 1) / device::kOptimChunk);
    tensors[count++] = t;
  }
  return i;
}

void launch_optim(int device, std::string_view name, DType type, uint32_t chunks, void* args,
                  const Touched& touched) {
  if (chunks == 0) return;
  launch(device, kernel_name(name, type, "_any"), int64_t{chunks} * kThreadsPerBlock, args,
         touched);
}

}  // namespace taeda::cuda
