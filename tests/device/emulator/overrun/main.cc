// Adds 1,000 numbers where memory for 999 is, under the address sanitizer, whose report tests look
// for (tests/device/test_emulator.py). With the argument "exact" the memory suffices.
#include <cstring>
#include <memory>

#include "device/emulator/emulator.h"
#include "kernels/cuda/text/pointwise_args.h"

using taeda::device::DenseArgs;
using taeda::emulator::Kernel;

namespace {

struct Argument {
  DenseArgs<2> loop{};
  float alpha = 1;
};

}  // namespace

int main(int argc, char** argv) {
  const uint32_t n = 1000, held = argc > 1 && std::strcmp(argv[1], "exact") == 0 ? n : n - 1;
  const auto x = std::make_unique<float[]>(held), y = std::make_unique<float[]>(held);
  Argument argument;
  argument.loop.out = y.get();
  argument.loop.in[0] = argument.loop.in[1] = x.get();
  argument.loop.n = n;
  argument.loop.aligned = 1;
  const Kernel* const kernel = Kernel::find("add_f32");
  taeda::emulator::launch({2}, {128}, 0, 1, [&] { kernel->run(&argument); });
  return 0;
}
