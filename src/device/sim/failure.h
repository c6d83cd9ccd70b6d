// What a call of the simulated driver throws inside: the status that it returns, and a text for the
// statuses of its own.
#pragma once

#include <stdexcept>
#include <string>

#include "device/api.h"

namespace taeda::sim {

// Two pieces of work touch the same bytes and nothing orders them: no status of CUDA's.
inline constexpr cuda::Status kRace = 100'001;
// A kernel did what hangs or breaks a device (tests/device/emulator), or there are no kernels.
inline constexpr cuda::Status kKernelFault = 100'002;

class Failure : public std::runtime_error {
 public:
  Failure(cuda::Status status, const std::string& text)
      : std::runtime_error(text), status_(status) {}
  cuda::Status status() const { return status_; }

 private:
  cuda::Status status_;
};

}  // namespace taeda::sim
