// Kernels by name: loaded into a device's context when they are first asked for.
#pragma once

#include <string>
#include <vector>

#include "device/api.h"
#include "device/has_kernels.h"

namespace taeda::cuda {

// False: has_kernels() says no, for tests of what then happens; true at first.
void use_kernels(bool use);
// RuntimeError where no kernel has the name.
Function find_kernel(int device, const std::string& name);
// All that there are, sorted.
std::vector<std::string> kernel_names();
// Those that were asked for so far.
std::vector<std::string> loaded_kernels(int device);
// Whether kernels for the device are there as cubins (cubin_file.h).
bool has_cubins(int device);
// Loads them, several at a time: a driver compiles each for its device.
void preload(int device, const std::vector<std::string>& names);

}  // namespace taeda::cuda
