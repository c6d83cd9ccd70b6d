// Mutexes that survive fork: a lock held by another thread at the moment of a fork would stay
// locked in the child for ever. Registered mutexes are taken before the fork, in the order of
// registration, and released on both sides.
#pragma once

#include <mutex>

namespace taeda {

// Registers a mutex that lives until the process ends.
void protect_over_fork(std::mutex& mutex);

}  // namespace taeda
