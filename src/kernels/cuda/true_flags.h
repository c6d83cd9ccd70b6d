// Elements where flags are true, in row-major order (text/compact.cuh).
#pragma once

#include <string_view>

#include "kernels/cuda/text/compact_args.h"
#include "kernels/cuda/workspace.h"
#include "kernels/view.h"

namespace taeda::cuda {

// Flags of any dtype, of which there are some, and x, which has their sizes. The flags are counted
// when it is made.
class TrueFlags {
 public:
  TrueFlags(const View& flags, const View& x);
  // How many are true: waits for the device.
  int64_t count() const;
  // Runs a kernel that writes `out`, or x and reads `out`.
  void run(std::string_view kernel, DType type, const View& out, bool writes_x = false);

  device::CompactArgs args{};

 private:
  const View &flags_, &x_;
  int64_t chunk_, chunks_;
  Workspace starts_;
};

}  // namespace taeda::cuda
