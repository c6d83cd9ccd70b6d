#include <gtest/gtest.h>

#include "taeda/taeda.h"

namespace taeda {
namespace {

// The same program in PyTorch (manual_seed(0); a network, data, then these optimizers one after the
// other) gives these losses.
TEST(Optimizers, TrainLikeTorch) {
  manual_seed(0);
  nn::Sequential net{nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 3)};
  const Tensor x = randn({16, 4}), y = randint(0, 3, {16});
  const auto train = [&](optim::Optimizer& optimizer, const std::vector<double>& want) {
    for (const double loss_wanted : want) {
      optimizer.zero_grad();
      const Tensor loss = cross_entropy(net(x), y);
      loss.backward();
      optimizer.step();
      EXPECT_NEAR(loss.item<double>(), loss_wanted, 2e-5);
    }
  };
  optim::SGD sgd(net.parameters(),
                 {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
  train(sgd, {1.0729613304138184, 1.052049994468689, 1.0265817642211914, 1.0000048875808716,
              0.9748861193656921});
  optim::Adam adam(net.parameters(), {.lr = 0.05, .amsgrad = true});
  train(adam, {0.9527602791786194, 0.9022120833396912, 0.8530877828598022, 0.8088409900665283,
               0.7688401341438293});
  optim::AdamW adamw(net.parameters(), {.lr = 0.05});
  train(adamw, {0.7267829775810242, 0.6763496398925781, 0.6328004598617554, 0.5960394740104675,
                0.5611959099769592});
  optim::RMSprop rmsprop(net.parameters(), {.lr = 0.01, .momentum = 0.5, .centered = true});
  train(rmsprop, {0.525477409362793, 0.49825021624565125, 0.4592837393283844, 0.3886226713657379,
                  0.3680419623851776});
}

Tensor parameter(float value) {
  Tensor p = full({1}, value);
  p.requires_grad_();
  p.set_grad(ones({1}));
  return p;
}

TEST(Optimizers, StateComesBack) {
  Tensor a = parameter(1), b = parameter(1);
  optim::Adam first({a}, {.lr = 0.1});
  first.step();
  first.step();
  optim::Adam second({b}, {.lr = 0.1});
  b.detach().copy_(a.detach());
  second.load_state_dict(first.state_dict());
  first.step();
  second.step();
  EXPECT_EQ(a.item<float>(), b.item<float>());
  optim::SGD other({b}, {.momentum = 0.9});
  EXPECT_THROW(other.load_state_dict(first.state_dict()), Error);
}

TEST(Optimizers, GroupsAndChecks) {
  Tensor a = parameter(1), b = parameter(1), c = parameter(1);
  optim::SGD sgd({a}, {.lr = 1});
  sgd.add_group({b}, 0.5);
  sgd.step();
  EXPECT_FLOAT_EQ(a.item<float>(), 0);
  EXPECT_FLOAT_EQ(b.item<float>(), 0.5);
  EXPECT_THROW(sgd.add_group({a}, 1), Error);
  EXPECT_THROW(sgd.add_group({c}, -1), Error);
  EXPECT_THROW(optim::SGD({}), Error);
  EXPECT_THROW(optim::SGD({mul(c, 2)}), Error);
  EXPECT_THROW(optim::SGD({c}, {.nesterov = true}), Error);
  EXPECT_THROW(optim::Adam({c}, {.beta1 = 1}), Error);
}

TEST(Schedulers, RatesAreTorchs) {
  Tensor p = parameter(0);
  const auto rates = [&](auto make, const std::vector<double>& want) {
    optim::SGD sgd({p}, {.lr = 1});
    auto scheduler = make(sgd);
    for (const double rate : want) {
      EXPECT_NEAR(scheduler.lr(), rate, 1e-6);
      scheduler.step();
    }
  };
  rates([](auto& o) { return optim::StepLR(o, 2, 0.5); }, {1, 1, 0.5, 0.5, 0.25});
  rates([](auto& o) { return optim::MultiStepLR(o, {1, 3}, 0.1); }, {1, 0.1, 0.1, 0.01, 0.01});
  rates([](auto& o) { return optim::ExponentialLR(o, 0.9); }, {1, 0.9, 0.81, 0.729, 0.6561});
  rates([](auto& o) { return optim::LinearLR(o, 0.25, 1, 4); }, {0.25, 0.4375, 0.625, 0.8125, 1});
  rates([](auto& o) { return optim::CosineAnnealingLR(o, 4, 0.1); },
        {1, 0.868198, 0.55, 0.231802, 0.1});
}

}  // namespace
}  // namespace taeda
