// Autocast: operators with an `autocast:` entry convert their floating arguments first.
//
// One handler for all of them, reached through Key::kAutocast, which a block includes: it converts
// by the rule in the operator's record and calls the operator again with the key excluded, so
// nothing inside an operator is converted twice. State belongs to the calling thread. Leaves that
// require grad (parameters) are converted once in a block; the conversions are kept until
// clear_cache().
#pragma once

#include "taeda/operator.h"

namespace taeda::autocast {

// Whether the calling thread is in a block.
inline bool enabled() { return thread_modes.included.has(Key::kAutocast); }
inline void set_enabled(bool value) {
  thread_modes.included =
      value ? thread_modes.included | Key::kAutocast : thread_modes.included - Key::kAutocast;
}
// The dtype of `lower` operators: bfloat16 unless set otherwise.
DType lower_dtype();
void set_lower_dtype(DType dtype);
bool cache_enabled();
void set_cache_enabled(bool enabled);
void clear_cache();

// A floating tensor on the CPU, other than float64, in dtype `to`; any other as it is.
Tensor cast(const Tensor& x, DType to);

// The handler of Key::kAutocast.
void handle(const Operator& op, KeySet keys, Stack& stack);

// No autocast on this thread until the end of the scope.
class Pause : public ExcludeKeys {
 public:
  Pause() : ExcludeKeys(Key::kAutocast) {}
};

}  // namespace taeda::autocast
