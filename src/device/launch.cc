#include "device/launch.h"

#include <algorithm>

#include "device/deterministic.h"
#include "device/device.h"
#include "device/modules.h"
#include "device/stream.h"

namespace taeda::cuda {

std::atomic<bool> deterministic{false};

void launch(int device, const std::string& name, int64_t work, void* args,
            Span<const Access> accesses) {
  const Properties& card = properties(device);
  const int64_t resident = static_cast<int64_t>(card.multiprocessors) *
                           (card.threads_per_multiprocessor / kThreadsPerBlock);
  const int64_t blocks = (work + kThreadsPerBlock - 1) / kThreadsPerBlock;
  const auto grid = static_cast<unsigned>(std::min(blocks, resident));
  const Function function = find_kernel(device, name);
  const DeviceApi& driver = use_device(device);
  if (driver.announce) driver.announce(accesses.data(), accesses.size());
  void* arguments[] = {args};
  check(driver.launch(function, grid, 1, 1, kThreadsPerBlock, 1, 1, 0,
                      Stream::current(device).handle(), arguments, nullptr));
}

}  // namespace taeda::cuda
