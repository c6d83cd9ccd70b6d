#include "device/put_off.h"

#include <exception>
#include <utility>

namespace taeda::cuda {
namespace {

thread_local int depth = 0;
thread_local std::exception_ptr failure;

}  // namespace

constinit thread_local Launch launch_put_off = nullptr;

void begin_list() { depth++; }

void end_list() {
  if (--depth > 0) return;
  launch_what_is_put_off();
  if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
}

bool in_list() { return depth > 0; }

void run_put_off() noexcept {
  try {
    std::exchange(launch_put_off, nullptr)();
  } catch (...) {
    if (!failure) failure = std::current_exception();
  }
}

}  // namespace taeda::cuda
