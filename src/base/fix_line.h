// The line of an error's message that says what to do: the last one, "Fix: ...".
//
// In C++ it is a part of what(). In Python it is a note of the exception, since programs compare
// texts with PyTorch's (python/errors.cc). It costs nothing until a check fails.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace taeda {

constexpr std::string_view kFixLine = "\nFix: ";

// The message with `more` at its end, but before that line.
inline std::string before_fix(std::string message, std::string_view more) {
  return message.insert(std::min(message.rfind(kFixLine), message.size()), more);
}

}  // namespace taeda
