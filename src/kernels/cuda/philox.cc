#include "kernels/cuda/philox.h"

#include <algorithm>
#include <mutex>

#include "device/device.h"
#include "device/graph_generators.h"

namespace taeda::cuda {

Deal deal(int device, int64_t n, int64_t per_draw) {
  constexpr int64_t kThreads = 256;
  const Properties& card = properties(device);
  const int64_t most = int64_t{card.multiprocessors} * (card.threads_per_multiprocessor / kThreads);
  const int64_t threads = std::min(most, (n + kThreads - 1) / kThreads) * kThreads;
  return {threads, static_cast<uint64_t>((n - 1) / (threads * per_draw) + 1)};
}

device::PhiloxState take(Generator& generator, const View& out, uint64_t words) {
  auto& philox = static_cast<Philox&>(generator);
  const std::scoped_lock lock(generator.mutex());
  if (const auto captured = captured_generator(philox, out.device.index, words))
    return {captured->words, 0, captured->offset};
  return {nullptr, philox.initial_seed(), philox.take(words)};
}

Access access(const device::PhiloxState& state) {
  return {state.captured, state.captured ? 16 : 0, false};
}

}  // namespace taeda::cuda
