// Warnings: what a program should know although the call succeeds, UserWarning in Python.
//
// warn() calls the handler from whatever thread found the reason, with no lock held; C++ programs
// get the text on stderr unless they set another. The handler may throw: in Python a warning can be
// turned into an exception, which then leaves the operator that warned.
//
//   static std::string heard;
//   const WarningHandler before =
//       set_warning_handler([](const std::string& message) { heard = message; });
//   warn("mind the gap");
//   set_warning_handler(before);
//   assert(heard == "mind the gap");
#pragma once

#include <atomic>
#include <string>

#include "taeda/error.h"

namespace taeda {

using WarningHandler = void (*)(const std::string& message);
// Returns the handler that was there before.
WarningHandler set_warning_handler(WarningHandler handler);

// Gives the message to the handler, on this thread.
void warn(const std::string& message);

// Whether warnings that are given once a process are given every time (torch.set_warn_always).
extern std::atomic<bool> warn_always;

}  // namespace taeda

// Warns when this line is first reached; the message is only formatted then.
#define TD_WARN_ONCE(...)                              \
  do {                                                 \
    static std::atomic<bool> given{false};             \
    if (!given.exchange(true) || ::taeda::warn_always) \
      ::taeda::warn(::taeda::format(__VA_ARGS__));     \
  } while (false)
