// The simulated driver's graphs, and its memory behind reserved addresses.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "device/sim/simulator.h"

namespace taeda::sim {
namespace {

constexpr int64_t kMiB = 1 << 20;

template <class F>
cuda::Status failure(F f) {
  try {
    f();
    return cuda::kSuccess;
  } catch (const Failure& thrown) {
    return thrown.status();
  }
}

class SimulatedGraph : public ::testing::Test {
 protected:
  SimulatedGraph() {
    sim_.set_device(0);
    stream_ = sim_.create_stream(0);
    side_ = sim_.create_stream(0);
    values_ = reinterpret_cast<float*>(sim_.allocate(400));
    sim_.fill(values_, 0, 400, nullptr);
    sim_.synchronize_device();
  }
  // x[0] = x[0] * factor + 1
  void step(cuda::StreamHandle stream, float* x, float factor = 1, int64_t ns = 1000) {
    float* const at = sim_.alias(x);
    sim_.launch(stream, "step", {{x, 4, true}}, ns, [=] { *at = *at * factor + 1; });
  }
  void join(cuda::StreamHandle later, cuda::StreamHandle earlier) {
    const cuda::EventHandle event = sim_.create_event(false);
    sim_.record(event, earlier);
    sim_.wait(later, event);
  }
  float value(const float* x) {
    sim_.synchronize_device();
    return *sim_.alias(x);
  }

  Simulator sim_{Options{.devices = 1, .bytes = 64 * kMiB}};
  cuda::StreamHandle stream_, side_;
  float* values_;
};

TEST_F(SimulatedGraph, RunsWhatWasCapturedOnceForEachLaunch) {
  sim_.begin_capture(stream_, cuda::CaptureMode::kGlobal);
  step(stream_, values_, 2);
  step(stream_, values_, 3);
  const auto graph = sim_.end_capture(stream_);
  EXPECT_EQ(graph->nodes.size(), 2u);
  EXPECT_EQ(value(values_), 0);
  sim_.launch(graph, stream_);
  EXPECT_EQ(value(values_), 4);  // (0 * 2 + 1) * 3 + 1
  sim_.launch(graph, nullptr);
  EXPECT_EQ(value(values_), 28);
}

TEST_F(SimulatedGraph, TakesAsLongAsItsLongestPath) {
  sim_.begin_capture(stream_, cuda::CaptureMode::kGlobal);
  step(stream_, values_, 1, 1000);
  join(side_, stream_);
  step(side_, values_ + 10, 1, 5000);
  step(stream_, values_, 1, 3000);
  join(stream_, side_);
  step(stream_, values_, 1, 1000);
  EXPECT_EQ(sim_.end_capture(stream_)->device_ns(), 7000);
}

TEST_F(SimulatedGraph, ALaunchIsOrderedAsOtherWorkIs) {
  sim_.begin_capture(stream_, cuda::CaptureMode::kGlobal);
  step(stream_, values_);
  const auto graph = sim_.end_capture(stream_);
  step(side_, values_);
  EXPECT_EQ(failure([&] { sim_.launch(graph, stream_); }), kRace);
  join(stream_, side_);
  EXPECT_EQ(failure([&] { sim_.launch(graph, stream_); }), cuda::kSuccess);
  EXPECT_EQ(value(values_), 2);
}

TEST_F(SimulatedGraph, WhatMayNotBeDoneEndsTheCapture) {
  const cuda::EventHandle event = sim_.create_event(false);
  sim_.record(event, nullptr);
  const std::pair<cuda::Status, std::function<void()>> calls[] = {
      {cuda::kCaptureUnsupported, [&] { sim_.allocate(512); }},
      {cuda::kCaptureUnsupported, [&] { sim_.synchronize(stream_); }},
      {cuda::kCaptureUnsupported, [&] { sim_.query_stream(stream_); }},
      {cuda::kCaptureUnsupported, [&] { sim_.synchronize_device(); }},
      {cuda::kCaptureUnsupported, [&] { sim_.query(event); }},
      {cuda::kCaptureIsolation, [&] { sim_.wait(stream_, event); }},
      {cuda::kCapturedEvent,
       [&] {
         sim_.record(event, stream_);
         sim_.query(event);
       }},
  };
  for (const auto& [status, call] : calls) {
    sim_.begin_capture(stream_, cuda::CaptureMode::kGlobal);
    EXPECT_EQ(failure(call), status);
    EXPECT_EQ(failure([&] { sim_.end_capture(stream_); }), cuda::kCaptureInvalidated);
  }
  EXPECT_EQ(sim_.capture(stream_), nullptr);
}

TEST_F(SimulatedGraph, WhoSaysThatItKnowsMayAllocate) {
  sim_.begin_capture(stream_, cuda::CaptureMode::kGlobal);
  const cuda::CaptureMode saved = exchange_capture_mode(cuda::CaptureMode::kRelaxed);
  const uintptr_t address = sim_.allocate(512);
  exchange_capture_mode(saved);
  step(stream_, reinterpret_cast<float*>(address));
  EXPECT_EQ(sim_.end_capture(stream_)->nodes.size(), 1u);
}

TEST_F(SimulatedGraph, StreamsThatForkMustJoin) {
  sim_.begin_capture(stream_, cuda::CaptureMode::kGlobal);
  join(side_, stream_);
  step(side_, values_);
  EXPECT_EQ(failure([&] { sim_.end_capture(side_); }), cuda::kCaptureUnmatched);
  EXPECT_EQ(failure([&] { sim_.end_capture(stream_); }), cuda::kCaptureInvalidated);
  sim_.begin_capture(stream_, cuda::CaptureMode::kGlobal);
  join(side_, stream_);
  step(side_, values_);
  EXPECT_EQ(failure([&] { sim_.end_capture(stream_); }), cuda::kCaptureUnjoined);
}

class MappedMemory : public SimulatedGraph {
 protected:
  static constexpr int64_t kGranule = Simulator::kGranule;
  MappedMemory() : begin_(sim_.reserve(4 * kGranule)) {}
  uint64_t map(int64_t i) {
    const uint64_t handle = sim_.create_memory(kGranule);
    sim_.map(begin_ + static_cast<uintptr_t>(i * kGranule), kGranule, handle);
    return handle;
  }
  float* at(int64_t bytes) const {
    return reinterpret_cast<float*>(begin_ + static_cast<uintptr_t>(bytes));
  }
  uintptr_t begin_;
};

TEST_F(MappedMemory, WorkReachesItAcrossGranules) {
  map(0);
  map(1);
  sim_.allow(begin_, 2 * kGranule);
  sim_.fill(at(kGranule - 400), 0, 800, stream_);
  step(stream_, at(kGranule));
  EXPECT_EQ(value(at(kGranule)), 1);
  EXPECT_EQ(value(at(kGranule - 4)), 0);
  EXPECT_EQ(failure([&] { step(stream_, at(2 * kGranule)); }), cuda::kIllegalAddress);
}

TEST_F(MappedMemory, NeedsAccessAndMemory) {
  EXPECT_EQ(failure([&] { step(stream_, at(0)); }), cuda::kIllegalAddress);
  map(0);
  EXPECT_EQ(failure([&] { step(stream_, at(0)); }), cuda::kIllegalAddress);
  sim_.allow(begin_, kGranule);
  EXPECT_EQ(failure([&] { step(stream_, at(0)); }), cuda::kSuccess);
  EXPECT_EQ(failure([&] { map(0); }), cuda::kInvalidValue);  // there is memory already
  EXPECT_EQ(failure([&] { map(4); }), cuda::kInvalidValue);  // not reserved
}

TEST_F(MappedMemory, IsUnmappedOnlyAfterItsWork) {
  const int64_t free = sim_.memory(0).bytes_free();
  const uint64_t handle = map(0);
  sim_.allow(begin_, kGranule);
  step(stream_, at(0));
  EXPECT_EQ(failure([&] { sim_.unmap(begin_, kGranule); }), kRace);
  EXPECT_EQ(failure([&] { sim_.unreserve(begin_, 4 * kGranule); }), cuda::kInvalidValue);
  sim_.synchronize_device();
  sim_.unmap(begin_, kGranule);
  sim_.destroy_memory(handle);
  EXPECT_EQ(sim_.memory(0).bytes_free(), free);
  sim_.unreserve(begin_, 4 * kGranule);
  EXPECT_EQ(sim_.reserve(4 * kGranule), begin_);
}

TEST_F(MappedMemory, TheHostMayNotTouchIt) {
  map(0);
  sim_.allow(begin_, kGranule);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    volatile float read = *at(0);
    (void)read;
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST_F(MappedMemory, ItsEndIsPlanned) {
  sim_.fail_allocation(1);
  EXPECT_EQ(failure([&] { sim_.create_memory(kGranule); }), cuda::kOutOfMemory);
  EXPECT_EQ(failure([&] { sim_.create_memory(100); }), cuda::kInvalidValue);
}

}  // namespace
}  // namespace taeda::sim
