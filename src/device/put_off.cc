#include "device/put_off.h"

#include <exception>
#include <memory>
#include <utility>

#include "taeda/error.h"

namespace taeda::cuda {
namespace {

// Made by who begins a list: thread-local memory that is there from a thread's start is scarce in a
// library that is loaded late.
struct Lists {
  int depth = 0;
  std::exception_ptr failure;
};
thread_local std::unique_ptr<Lists> lists;

}  // namespace

constinit thread_local Launch launch_put_off = nullptr;
constinit thread_local bool launch_is_locked = false;

void begin_list() {
  if (!lists) lists = std::make_unique<Lists>();
  lists->depth++;
}

void end_list() {
  TD_CHECK(in_list(), "no list of calls was begun");
  if (--lists->depth > 0) return;
  launch_what_is_put_off();
  if (lists->failure) std::rethrow_exception(std::exchange(lists->failure, nullptr));
}

bool in_list() { return lists && lists->depth > 0; }

void run_put_off() noexcept {
  try {
    std::exchange(launch_put_off, nullptr)();
  } catch (...) {
    if (!lists->failure) lists->failure = std::current_exception();
  }
}

}  // namespace taeda::cuda
