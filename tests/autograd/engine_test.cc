#include <gtest/gtest.h>
#include <pthread.h>

#include <thread>

#include "autograd/engine.h"
#include "hand_ops.h"

namespace taeda::hand {
namespace {

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}
#define EXPECT_ERROR(statement, part)                                     \
  EXPECT_NE(message_of([&] { statement; }).find(part), std::string::npos) \
      << message_of([&] { statement; })

// Runs `f` on a thread whose stack has 1 MiB.
void on_small_stack(std::function<void()> f) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 1 << 20);
  pthread_t thread;
  const auto start = [](void* arg) -> void* {
    (*static_cast<std::function<void()>*>(arg))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, start, &f), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(Backward, ProductRule) {
  Tensor x = leaf({2, 3}), y = leaf({5, 7});
  sum(mul(x, y)).backward();
  EXPECT_EQ(values(x.grad()), (Values{5, 7}));
  EXPECT_EQ(values(y.grad()), (Values{2, 3}));
  EXPECT_FALSE(x.grad().requires_grad());
}

TEST(Backward, AccumulatesOverCallsAndKeepsTheGradTensor) {
  Tensor x = leaf({2, 3});
  sum(mul(x, x)).backward();
  const Tensor first = x.grad();
  sum(mul(x, x)).backward();
  EXPECT_TRUE(first.is_same(x.grad()));
  EXPECT_EQ(values(first), (Values{8, 12}));
}

TEST(Backward, OneGradientForTwoLeavesIsNotShared) {
  Tensor x = leaf({2}), y = leaf({3});
  sum(add(x, y)).backward();
  at(x.grad(), 0) = 100;
  EXPECT_EQ(values(y.grad()), (Values{1}));
}

TEST(Backward, GivenGradientIsNotTakenOver) {
  Tensor x = leaf({2});
  Tensor gy = vec({4});
  backward({add(x, vec({1}))}, {gy});
  at(x.grad(), 0) = 100;
  EXPECT_EQ(values(gy), (Values{4}));
}

TEST(Backward, SecondTimeNeedsRetainGraph) {
  Tensor x = leaf({2, 3});
  Tensor y = sum(mul(x, x));
  y.backward({}, /*retain_graph=*/true);
  y.backward();
  EXPECT_EQ(values(x.grad()), (Values{8, 12}));
  EXPECT_ERROR(y.backward(), "Trying to backward through the graph a second time");
}

TEST(Backward, Errors) {
  Tensor x = leaf({2, 3});
  EXPECT_ERROR(mul(x, x).backward(), "grad can be implicitly created only for scalar outputs");
  EXPECT_ERROR(vec({1}).backward(),
               "element 0 of tensors does not require grad and does not have a grad_fn");
  EXPECT_ERROR(mul(x, x).backward(vec({1})),
               "Mismatch in shape: grad_output[0] has a shape of torch.Size([1]) and output[0] has "
               "a shape of torch.Size([2]).");
  EXPECT_ERROR(grad({sum(x)}, {leaf({1})}),
               "The differentiated Tensor at index 0 appears to not have been used in the graph");
  EXPECT_ERROR(grad({sum(x)}, {vec({1})}),
               "One of the differentiated Tensors does not require grad");
}

TEST(Backward, GradOfChosenInputsLeavesOthersAlone) {
  Tensor x = leaf({2}), y = leaf({3});
  Tensor h = mul(x, y);
  Tensor z = sum(mul(h, h));
  const TensorList g = grad({z}, {h, x}, {}, {.retain_graph = true});
  EXPECT_EQ(values(g[0]), (Values{12}));
  EXPECT_EQ(values(g[1]), (Values{36}));
  EXPECT_FALSE(x.grad().defined());
  backward({z}, {}, false, false, {y});
  EXPECT_EQ(values(y.grad()), (Values{24}));
  EXPECT_FALSE(x.grad().defined());
}

TEST(Backward, UnusedInputs) {
  Tensor x = leaf({2}), y = leaf({3, 4});
  TensorList g = grad({sum(x)}, {y}, {}, {.allow_unused = true});
  EXPECT_FALSE(g[0].defined());
  g = grad({sum(x)}, {y}, {}, {.allow_unused = true, .materialize_grads = true});
  EXPECT_EQ(values(g[0]), (Values{0, 0}));
}

TEST(Backward, InvalidGradientNamesTheNode) {
  struct BadNode final : Node {
    const char* name() const override { return "BadBackward0"; }
    TensorList apply(TensorList&&) override { return {vec({1, 2, 3})}; }
  };
  Tensor x = leaf({2, 3});
  Tensor y = vec({1});
  Ref<BadNode> node = make_ref<BadNode>();
  autograd::set_edges(*node, x);
  set_history(y, node);
  EXPECT_ERROR(y.backward(),
               "Function BadBackward0 returned an invalid gradient at index 0 - got [3] but "
               "expected shape compatible with [2]");
}

TEST(Backward, HigherOrder) {
  Tensor x = leaf({2});
  Tensor y = mul(mul(x, x), x);
  const Tensor g = grad({y}, {x}, {}, {.create_graph = true})[0];
  EXPECT_EQ(values(g), (Values{12}));
  const Tensor gg = grad({g}, {x}, {}, {.create_graph = true})[0];
  EXPECT_EQ(values(gg), (Values{12}));
  EXPECT_EQ(values(grad({gg}, {x})[0]), (Values{6}));
}

TEST(Backward, HigherOrderThroughASavedResult) {
  Tensor x = leaf({0.5});
  const Tensor g = grad({exp(x)}, {x}, {}, {.create_graph = true})[0];
  EXPECT_DOUBLE_EQ(values(grad({g}, {x})[0])[0], std::exp(0.5));
}

TEST(Backward, SumsDownToTheInputsShape) {
  struct OuterNode final
      : Node {  // y = x * [1, 2, 3] with x of one element, gradient left unsummed
    const char* name() const override { return "OuterBackward0"; }
    TensorList apply(TensorList&& grads) override { return {mul(grads[0], vec({1, 2, 3}))}; }
  };
  Tensor x = leaf({4});
  Tensor y = vec({4, 8, 12});
  Ref<OuterNode> node = make_ref<OuterNode>();
  autograd::set_edges(*node, x);
  set_history(y, node);
  y.backward(vec({1, 1, 1}));
  EXPECT_EQ(values(x.grad()), (Values{6}));
}

TEST(Backward, MillionNodesOnASmallStack) {
  on_small_stack([] {
    const int64_t before = Node::live_count();
    {
      Tensor x = leaf({1});
      Tensor y = x;
      const Tensor one = vec({1});
      for (int i = 0; i < 1'000'000; i++) y = mul(y, one);
      y.backward();
      EXPECT_EQ(values(x.grad()), (Values{1}));
    }
    EXPECT_EQ(Node::live_count(), before);
  });
}

TEST(Backward, MillionNodesDestroyedWithoutBackward) {
  on_small_stack([] {
    const int64_t before = Node::live_count();
    {
      Tensor x = leaf({1});
      Tensor y = x;
      for (int i = 0; i < 1'000'000; i++) y = mul(y, y);
    }
    EXPECT_EQ(Node::live_count(), before);
  });
}

TEST(Backward, ThreadsOnSeparateGraphsShareALeaf) {
  Tensor w = leaf({1, 2});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&] {
      for (int i = 0; i < 250; i++) sum(mul(w, w)).backward();
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(values(w.grad()), (Values{2000, 4000}));
}

TEST(Backward, ThreadsOnOneGraph) {
  Tensor w = leaf({1, 2});
  Tensor y = mul(w, w);
  for (int i = 0; i < 20; i++) y = add(y, mul(w, w));
  const Tensor loss = sum(y);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; i++) loss.backward({}, /*retain_graph=*/true);
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(values(w.grad()), (Values{2 * 21 * 200, 4 * 21 * 200}));
}

TEST(Backward, ThreadsThatReleaseOneGraphRaiseOrSucceed) {
  for (int round = 0; round < 50; round++) {
    Tensor w = leaf({1, 2});
    Tensor y = w;
    for (int i = 0; i < 10; i++) y = mul(y, w);
    const Tensor loss = sum(y);
    std::atomic<int> done{0}, failed{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; t++) {
      threads.emplace_back([&] {
        try {
          loss.backward();
          done++;
        } catch (const Error&) {
          failed++;
        }
      });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(done + failed, 3);
  }
}

TEST(Backward, Reentrant) {
  struct InnerNode final : Node {
    Tensor inner;
    const char* name() const override { return "InnerBackward0"; }
    TensorList apply(TensorList&& grads) override {
      const EnableGrad guard;
      sum(mul(inner, inner)).backward();
      return {mul(grads[0], inner.grad())};
    }
  };
  Tensor x = leaf({1}), y = vec({9});
  Ref<InnerNode> node = make_ref<InnerNode>();
  node->inner = leaf({5});
  autograd::set_edges(*node, x);
  set_history(y, node);
  y.backward();
  EXPECT_EQ(values(x.grad()), (Values{10}));
}

TEST(Backward, ErrorsOfNodesNameThem) {
  struct FailNode final : Node {
    const char* name() const override { return "FailBackward0"; }
    TensorList apply(TensorList&&) override { fail(ErrorKind::kValue, "no luck"); }
  };
  Tensor x = leaf({1}), y = vec({9});
  Ref<FailNode> node = make_ref<FailNode>();
  autograd::set_edges(*node, x);
  set_history(y, node);
  EXPECT_ERROR(y.backward(), "no luck [while running FailBackward0]");
  EXPECT_EQ(autograd::Engine::running(), false);
  EXPECT_TRUE(thread_modes.grad_enabled);
}

TEST(Backward, CallbackRunsAtTheEnd) {
  int calls = 0;
  Tensor x = leaf({1});
  register_hook(x, [&](const Tensor&) {
    autograd::Engine::queue_callback([&] { calls++; });
    EXPECT_EQ(calls, 0);
    return Tensor();
  });
  sum(mul(x, x)).backward();
  EXPECT_EQ(calls, 1);
}

TEST(Anomaly, NanNamesTheNode) {
  AnomalyMode::set(true);
  Tensor x = leaf({2});
  Tensor y = mul(x, vec({std::nan("")}));
  EXPECT_ERROR(sum(y).backward(), "Function 'MulBackward0' returned nan values in its 0th output.");
  AnomalyMode::set(false);
}

}  // namespace
}  // namespace taeda::hand
