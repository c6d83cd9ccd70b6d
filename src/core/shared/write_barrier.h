// WriteBarrier: threads that write to some pages wait for the end of its life (userfaultfd(2)).
// So do system calls that write there, where the process may stop them (CAP_SYS_PTRACE, or
// vm.unprivileged_userfaultfd). Where it may not, they fail with EFAULT or write less than they
// were asked to, and say so; without a barrier the write would be lost, and that of any thread.
#pragma once

#include <cstddef>

namespace taeda::shared {

class WriteBarrier {
 public:
  // Private anonymous pages, which all exist afterwards. Without the system's help nobody waits.
  WriteBarrier(void* begin, size_t bytes);
  ~WriteBarrier();
  WriteBarrier(const WriteBarrier&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace taeda::shared
