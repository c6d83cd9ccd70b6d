// What to do about the faults whose texts say it as little in many operators.
#pragma once

#include <string_view>

namespace taeda::python {

// "Fix: ..." for a text that has no such line of its own; empty where none is known.
std::string_view common_fix(std::string_view text) noexcept;

}  // namespace taeda::python
