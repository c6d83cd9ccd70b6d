// call_detached: a long call of a library that cannot be interrupted, made so that its caller can.
//
// The call runs on a thread of its own while the caller waits and looks for interrupts
// (base/interrupt.h). When one comes, the exception leaves here at once, and the call runs on to
// its end with nobody waiting for it: it must own all that it reads and writes. It costs some 50
// microseconds. A fork waits for all such calls, left behind or not.
#pragma once

#include <cstdint>
#include <functional>

namespace taeda {

// What `call` returns or throws. Everything that it uses is captured by value, memory as shared
// references to it, about `bytes` together; that is dropped when the call ends, on whichever
// thread. It runs here where no thread can be started. It waits, interruptibly, while calls left
// behind hold so much memory that they and it would have more than kMostLeftBehind.
int call_detached(int64_t bytes, std::function<int()> call);

constexpr int64_t kMostLeftBehind = int64_t{1} << 30;

}  // namespace taeda
