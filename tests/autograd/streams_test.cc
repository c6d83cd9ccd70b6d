// The engine runs a node on the stream of its forward and orders streams where gradients pass from
// one to the other. Nodes here launch kernels of the simulated driver, which raise a race
// otherwise.
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "autograd/engine.h"
#include "device/device.h"
#include "device/memory.h"
#include "device/sim/driver.h"
#include "device/stream.h"
#include "taeda/storage.h"

namespace taeda::autograd {
namespace {

using cuda::Stream;

// Before anything asks for the driver.
[[maybe_unused]] const int chosen = setenv("TAEDA_CUDA", "sim:2", 0);

constexpr int64_t kCount = 100;

Tensor on_device(int device = 0) {
  const Device cuda(DeviceType::kCUDA, static_cast<int8_t>(device));
  auto impl = make_ref<TensorImpl>(Storage::allocate(kCount * 4, cuda), DType::kFloat32, cuda);
  impl->set_contiguous_layout({kCount});
  return Tensor(std::move(impl));
}

cuda::Status add(const Tensor& x, Stream stream) {
  cuda::use_device(stream.device);
  return taeda_sim_add(stream.handle(), x.storage()->data(), kCount, 1);
}

// Changes the gradient by a kernel on the current stream and hands it on.
class Add final : public Node {
 public:
  explicit Add(std::vector<Stream>& seen) : seen_(seen) {}
  TensorList apply(TensorList&& grads) override {
    seen_.push_back(Stream::current(grads[0].device().index));
    EXPECT_EQ(add(grads[0], seen_.back()), cuda::kSuccess);
    return std::move(grads);
  }
  const char* name() const override { return "Add"; }

 private:
  std::vector<Stream>& seen_;
};

class EngineStreams : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cuda::simulated()) GTEST_SKIP() << "TAEDA_CUDA asks for another driver";
    cuda::initialize();
  }
  void TearDown() override {
    for (int device = 0; device < cuda::device_count(); device++) cuda::synchronize_device(device);
  }

  // A node whose forward ran on `stream`; `next` receives its gradient.
  Ref<Node> node_on(Stream stream, Ref<Node> next = {}) {
    const cuda::StreamGuard guard(stream);
    Ref<Node> node = make_ref<Add>(seen_);
    node->set_input_metadata(0, on_device(stream.device));
    EdgeList edges;
    if (next) edges.push_back({std::move(next), 0});
    node->set_next_edges(std::move(edges));
    return node;
  }
  // The gradient that arrives at `last`.
  static Tensor run(const Ref<Node>& first, const Ref<Node>& last, Tensor gradient) {
    RunOptions options;
    options.accumulate = false;
    return Engine::run({{first, 0}}, {std::move(gradient)}, {{last, 0}}, options)[0];
  }

  std::vector<Stream> seen_;
};

TEST_F(EngineStreams, NodesRunOnTheStreamsOfTheirForward) {
  const Stream a = Stream::from_pool(0), b = Stream::from_pool(0);
  const Ref<Node> last = node_on(Stream::default_of(0));
  const Ref<Node> first = node_on(a, node_on(b, last));
  run(first, last, on_device());
  EXPECT_EQ(seen_, (std::vector<Stream>{a, b}));  // the last one is only looked at
  EXPECT_EQ(Stream::current(0), Stream::default_of(0));
}

// Each kernel changes what the one before has written.
TEST_F(EngineStreams, StreamsWaitForEachOther) {
  const Stream a = Stream::from_pool(0), b = Stream::from_pool(0), c = Stream::from_pool(0);
  const Ref<Node> last = node_on(c);
  const Tensor gradient = on_device();
  ASSERT_EQ(add(gradient, Stream::current(0)), cuda::kSuccess);
  const Tensor result = run(node_on(a, node_on(b, last)), last, gradient);
  EXPECT_TRUE(result.is_same(gradient));
  EXPECT_EQ(add(result, Stream::current(0)), cuda::kSuccess);  // the caller's stream waits as well
}

TEST_F(EngineStreams, MemoryWaitsForTheStreamsThatUseIt) {
  taeda_sim_set_schedule(0);
  const Stream side = Stream::from_pool(0);
  const Ref<Node> last = node_on(side);
  cuda::synchronize_device(0);
  Tensor gradient = on_device();
  const void* const address = gradient.storage()->data();
  run(node_on(side, last), last, std::move(gradient));
  gradient = Tensor();
  EXPECT_NE(on_device().storage()->data(), address);
  cuda::synchronize_device(0);
}

TEST_F(EngineStreams, DevicesOfNodesAreCurrent) {
  const Ref<Node> last = node_on(Stream::default_of(1));
  run(node_on(Stream::default_of(1), last), last, on_device(1));
  EXPECT_EQ(seen_, (std::vector<Stream>{Stream::default_of(1)}));
  EXPECT_EQ(cuda::current_device(), 0);
}

}  // namespace
}  // namespace taeda::autograd
