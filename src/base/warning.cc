#include "taeda/warning.h"

#include <cstdio>

namespace taeda {
namespace {

void print_warning(const std::string& message) {
  std::fprintf(stderr, "Warning: %s\n", message.c_str());
}

std::atomic<WarningHandler> handler{print_warning};

}  // namespace

std::atomic<bool> warn_always{false};

WarningHandler set_warning_handler(WarningHandler replacement) {
  return handler.exchange(replacement);
}

void warn(const std::string& message) { handler.load()(message); }

}  // namespace taeda
