// The program's stack as allocators of device memory keep it: which line asked for a block.
#pragma once

namespace taeda::python {

enum class Stacks {
  kLine,  // the innermost line that is not taeda's own: what an OutOfMemoryError names
  kAll,   // all frames, for torch.cuda.memory._snapshot()
};
// From now on, for all devices; kLine at first.
void keep_stacks(Stacks which);
// Asks for stacks at each allocation of device memory.
void install_memory_context();

}  // namespace taeda::python
