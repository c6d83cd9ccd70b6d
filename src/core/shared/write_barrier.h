// WriteBarrier: threads that write to some pages wait for the end of its life (userfaultfd(2)).
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
