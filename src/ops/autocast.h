// Autocast: operators with an `autocast:` entry convert their floating arguments first.
//
// One handler for all of them, reached through Key::kAutocast, which a block includes: it converts
// by the rule in the operator's record and calls the operator again with the key excluded, so
// nothing inside an operator is converted twice. State belongs to the calling thread, a block to
// one type of device: tensors on others stay as they are. Leaves that require grad (parameters) are
// converted once in a block; the conversions are kept until clear_cache().
#pragma once

#include "taeda/operator.h"

namespace taeda::autocast {

// Whether the calling thread is in a block for this type of device.
bool enabled(DeviceType device);
void set_enabled(DeviceType device, bool value);
// The dtype of `lower` operators there: bfloat16 on the CPU, float16 on CUDA devices unless set
// otherwise.
DType lower_dtype(DeviceType device);
void set_lower_dtype(DeviceType device, DType dtype);
bool cache_enabled();
void set_cache_enabled(bool enabled);
void clear_cache();

// Whether a block is for one of these tensors' devices.
bool concerns(const Stack& stack);

// The handler of Key::kAutocast.
void handle(const Operator& op, KeySet keys, Stack& stack);

// No autocast on this thread until the end of the scope.
class Pause : public ExcludeKeys {
 public:
  Pause() : ExcludeKeys(Key::kAutocast) {}
};

}  // namespace taeda::autocast
