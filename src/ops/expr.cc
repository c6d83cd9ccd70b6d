#include "ops/expr.h"

namespace taeda::expr {

void fail_overflow(const char* operation, int64_t a, int64_t b) {
  fail(ErrorKind::kRuntime, "size arithmetic overflows: {} {} {}", a, operation, b);
}

void fail_index(int64_t index, size_t size) {
  fail(ErrorKind::kIndex, "index {} is out of range for a list of length {}", index, size);
}

}  // namespace taeda::expr
