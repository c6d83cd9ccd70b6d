// The handler of kProfile for calls of the table's operators by their C++ functions: it needs no
// Values of the arguments, and goes on by run_modes without its key.
#pragma once

#include "ops/modes.h"

namespace taeda::dispatch {

using ProfileHandler = void (*)(const OperatorRecord& record, Operator::Form form, KeySet keys,
                                const void* const* args, void* const* results);
// Set once, before the first thread includes kProfile.
void set_profile_handler(ProfileHandler handler);

}  // namespace taeda::dispatch
