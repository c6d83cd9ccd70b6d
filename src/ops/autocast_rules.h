// What autocast does with an operator: the keys autocast and autocast_cuda of its entry.
#pragma once

#include "ops/modes.h"

namespace taeda {

// AUTOCASTS in gen/op.py; in front those that OperatorRecord::Autocast has.
enum class AutocastRule : uint8_t { kNoRule, kLower, kFloat32, kWidest, kNone, kResult32, kBanned };

struct AutocastRecord {
  const OperatorRecord* record;
  AutocastRule rule;
};
// The operators with a rule for CUDA devices; generated.
extern const AutocastRecord kAutocastCuda[];
extern const size_t kNumAutocastCuda;

namespace autocast {

AutocastRule rule_of(const OperatorRecord& record, DeviceType device);
// Whether the operator has a rule in one of the thread's blocks.
bool has_rule(const OperatorRecord& record);

}  // namespace autocast
}  // namespace taeda
