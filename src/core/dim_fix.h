// What to do about a dimension out of range, for the messages that layout.cc and contract.cc give.
#pragma once

#include <cstdint>
#include <string>

namespace taeda {

// "Fix: ...", for a tensor of so many dimensions.
std::string dim_fix(int64_t ndim);

}  // namespace taeda
