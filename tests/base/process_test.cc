#include "base/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace taeda {
namespace {

TEST(Process, IsTheSameUntilItEnds) {
  const int64_t start = process_start(getpid());
  ASSERT_GT(start, 0);
  EXPECT_EQ(process_start(getpid()), start);
  EXPECT_TRUE(is_running(getpid(), start));
  EXPECT_FALSE(is_running(getpid(), start + 1)) << "the same number, another process";
  EXPECT_TRUE(is_running(getpid(), -1)) << "of unknown start";
}

TEST(Process, HasEndedBeforeAnybodyWaitsForIt) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const int64_t start = process_start(child);
  EXPECT_TRUE(is_running(child, start));
  kill(child, SIGKILL);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(is_running(child, start));
  EXPECT_EQ(process_start(child), 0);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(process_start(child), 0);
  EXPECT_EQ(process_start(-5), 0);
}

}  // namespace
}  // namespace taeda
