// Bytes of CPU storages that the calling thread has allocated less those that it has released, as
// they were asked for. A thread may release what another allocated: the number can be negative.
#pragma once

#include <cstdint>

namespace taeda {

extern thread_local int64_t live_storage_bytes __attribute__((tls_model("initial-exec")));

}  // namespace taeda
