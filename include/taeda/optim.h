// Optimizers: update rules for parameters by their gradients, and schedules for the learning rate.
//
//   nn::Linear net(1, 1);
//   optim::SGD sgd(net.parameters(), {.lr = 0.1, .momentum = 0.5});
//   const Tensor x = tensor({-1.0, 0.0, 1.0}, {3, 1}), y = 3 * x + 1;
//   for (int step = 0; step < 200; step++) {
//     sgd.zero_grad();
//     mse_loss(net(x), y).backward();
//     sgd.step();
//   }
//   assert(std::abs(net.weight.item<float>() - 3) < 1e-3);
//
// Rules, options and defaults are those of torch.optim. A step is one fused pass over all
// parameters of a group. Parameters without a gradient are left alone. An optimizer is used by one
// thread at a time.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "taeda/tensor.h"

namespace taeda::optim {

// Parameters in groups, their state, and one step. Parameters are held, not copied: a module may
// go, its parameters stay as long as the optimizer.
class Optimizer {
 public:
  // Parameters that share a learning rate and a weight decay.
  struct Group {
    TensorList parameters;
    double lr;
    double weight_decay;
  };

  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Updates every parameter that has a gradient, unrecorded, and counts as a write: a graph that
  // saved the old values raises in backward. Gradients stay as they are, and the next backward adds
  // to them unless zero_grad() comes between.
  void step();
  // Drops the gradients of all parameters: grad() is undefined until the next backward.
  void zero_grad();

  // Learning rates and decays may be changed between steps.
  //
  //   const Tensor w = ones({1}).requires_grad_();
  //   optim::SGD sgd({w}, {.lr = 1.0});
  //   sgd.groups()[0].lr = 0.5;
  //   w.sum().backward();
  //   sgd.step();
  //   assert(w.item<float>() == 0.5);
  std::vector<Group>& groups() { return groups_; }
  // More parameters, with a rate of their own: layers that are fine-tuned, or biases without decay.
  // Their state begins with their first step. ValueError for parameters that are no leaves, appear
  // twice, or for a negative rate or decay.
  void add_group(TensorList parameters, double lr, double weight_decay = 0);

  // Buffers by "index.name", the index counting parameters over all groups: what training needs to
  // go on beside the parameters themselves. Learning rates are not among them. The tensors are the
  // optimizer's own, not copies; save() them before the next step.
  //
  //   const Tensor w = ones({3}).requires_grad_();
  //   optim::Adam adam({w});
  //   w.sum().backward();
  //   adam.step();
  //   assert(adam.state_dict().size() > 0 && adam.state_dict()[0].first.starts_with("0."));
  using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
  NamedTensors state_dict() const;
  // RuntimeError for entries that this optimizer has no place for.
  void load_state_dict(const NamedTensors& state);

 protected:
  Optimizer(TensorList parameters, double lr, double weight_decay);

  // State tensors of one parameter, in the order of state_names(); empty before its first step.
  using State = TensorList;
  // Parameters with gradients, by column: what fused operators take.
  struct Columns {
    TensorList parameters, gradients;
    std::vector<State*> states;
    TensorList state(size_t which) const;
  };
  virtual std::vector<std::string> state_names() const = 0;
  // Makes the state of a parameter that has none yet.
  virtual State fresh_state(const Tensor& parameter) const = 0;
  // `first`: these parameters' states are fresh.
  virtual void update(const Group& group, const Columns& columns, bool first) = 0;

 private:
  std::vector<Group> groups_;
  std::vector<std::vector<State>> states_;  // by group and parameter
};

// Stochastic gradient descent with momentum (Sutskever et al. 2013, with PyTorch's placing of the
// rate): v = momentum v + (1 - dampening) (g + weight_decay p); p -= lr v, or with nesterov
// lr (g + momentum v). The first step takes v = g. ValueError for negative rates, and for nesterov
// without momentum or with dampening. With momentum a parameter's state is one tensor of its size,
// without it none.
//
//   const Tensor w = tensor({1.0}).requires_grad_();
//   optim::SGD sgd({w}, {.lr = 0.1, .weight_decay = 0.5});
//   (w * 2).sum().backward();
//   sgd.step();                                               // w - 0.1 (2 + 0.5 w)
//   assert(std::abs(w.item<float>() - 0.75) < 1e-6);
struct SGDOptions {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
};
class SGD final : public Optimizer {
 public:
  explicit SGD(TensorList parameters, SGDOptions options = {});

 private:
  std::vector<std::string> state_names() const override;
  State fresh_state(const Tensor& parameter) const override;
  void update(const Group& group, const Columns& columns, bool first) override;
  SGDOptions options_;
};

// beta1 and beta2 are the decays of the averages of g and of g^2, in [0, 1); amsgrad divides by the
// largest average of g^2 so far; maximize goes up the gradient. ValueError for others.
struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool amsgrad = false, maximize = false;
};
// Kingma & Ba 2015: p -= lr m / (sqrt(v) + eps) with bias-corrected averages m of g and v of g^2;
// weight decay is added to g. A parameter's state is two tensors of its size (three with amsgrad)
// and a count of steps. The first step moves every element by nearly lr, whatever its gradient.
//
//   const Tensor w = tensor({1.0, 1.0}).requires_grad_();
//   optim::Adam adam({w}, {.lr = 0.1});
//   (w * tensor({1.0, 1000.0})).sum().backward();
//   adam.step();
//   assert(allclose(w, full({2}, 0.9), 1e-4));
class Adam : public Optimizer {
 public:
  explicit Adam(TensorList parameters, AdamOptions options = {})
      : Adam(std::move(parameters), options, false) {}

 protected:
  Adam(TensorList parameters, AdamOptions options, bool decoupled);

 private:
  std::vector<std::string> state_names() const override;
  State fresh_state(const Tensor& parameter) const override;
  void update(const Group& group, const Columns& columns, bool first) override;
  AdamOptions options_;
  bool decoupled_;
};

struct AdamWOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 1e-2;
  bool amsgrad = false, maximize = false;
};
// Loshchilov & Hutter 2019: Adam whose weight decay is beside the gradient instead of in it,
// p -= lr weight_decay p, so that large gradients do not hide it. State and options are Adam's.
class AdamW final : public Adam {
 public:
  explicit AdamW(TensorList parameters, AdamWOptions o = {})
      : Adam(std::move(parameters),
             {o.lr, o.beta1, o.beta2, o.eps, o.weight_decay, o.amsgrad, o.maximize}, true) {}
};

// alpha is the decay of the average of g^2; centered subtracts the square of g's average from it.
struct RMSpropOptions {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false, maximize = false;
};
// Tieleman & Hinton 2012: p -= lr g / (sqrt(v) + eps), with the average v of g^2, and momentum on
// top.
class RMSprop final : public Optimizer {
 public:
  explicit RMSprop(TensorList parameters, RMSpropOptions options = {});

 private:
  std::vector<std::string> state_names() const override;
  State fresh_state(const Tensor& parameter) const override;
  void update(const Group& group, const Columns& columns, bool first) override;
  RMSpropOptions options_;
};

// Learning rates as functions of the number of step() calls, which follow the optimizer's, mostly
// once an epoch. Rates are computed from those that the groups had when the scheduler was made, so
// one scheduler drives an optimizer at a time. The optimizer must outlive its scheduler.
//
//   nn::Linear net(2, 1);
//   optim::SGD sgd(net.parameters(), {.lr = 1.0});
//   optim::StepLR schedule(sgd, 2, 0.1);
//   for (int epoch = 0; epoch < 2; epoch++) schedule.step();
//   assert(std::abs(schedule.lr() - 0.1) < 1e-12);
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  void step();
  // The rate of a group now.
  double lr(size_t group = 0) const { return optimizer_.groups().at(group).lr; }

 protected:
  // Sets the rates of step 0.
  explicit Scheduler(Optimizer& optimizer);
  void apply();
  virtual double rate(double base, int64_t epoch) const = 0;

 private:
  Optimizer& optimizer_;
  std::vector<double> base_;
  int64_t epoch_ = 0;
};

// base * gamma^floor(epoch / size): a tenth every `size` epochs.
class StepLR final : public Scheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t size, double gamma = 0.1);

 private:
  double rate(double base, int64_t epoch) const override;
  int64_t size_;
  double gamma_;
};

// base * gamma^(number of milestones reached). Milestones are epochs in any order; one that stands
// twice counts twice.
//
//   optim::SGD sgd({ones({1}).requires_grad_()}, {.lr = 1.0});
//   optim::MultiStepLR schedule(sgd, {1, 3}, 0.5);
//   for (int epoch = 0; epoch < 3; epoch++) schedule.step();
//   assert(schedule.lr() == 0.25);
class MultiStepLR final : public Scheduler {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1);

 private:
  double rate(double base, int64_t epoch) const override;
  std::vector<int64_t> milestones_;
  double gamma_;
};

// base * gamma^epoch
class ExponentialLR final : public Scheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);

 private:
  double rate(double base, int64_t epoch) const override;
  double gamma_;
};

// From base * start to base * end over `total` epochs, in equal steps, and base * end after them: a
// warm-up, which large batches and transformers want.
//
//   optim::SGD sgd({ones({1}).requires_grad_()}, {.lr = 1.0});
//   optim::LinearLR warm_up(sgd, 0.5, 1.0, 4);
//   assert(warm_up.lr() == 0.5);
//   warm_up.step();
//   assert(warm_up.lr() == 0.625);
class LinearLR final : public Scheduler {
 public:
  LinearLR(Optimizer& optimizer, double start = 1.0 / 3, double end = 1.0, int64_t total = 5);

 private:
  double rate(double base, int64_t epoch) const override;
  double start_, end_;
  int64_t total_;
};

// Loshchilov & Hutter 2017: eta_min + (base - eta_min) (1 + cos(pi epoch / t_max)) / 2, down to
// eta_min in t_max epochs, and up again after them.
//
//   optim::SGD sgd({ones({1}).requires_grad_()}, {.lr = 1.0});
//   optim::CosineAnnealingLR schedule(sgd, 2);
//   schedule.step();
//   assert(std::abs(schedule.lr() - 0.5) < 1e-12);
class CosineAnnealingLR final : public Scheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min = 0);

 private:
  double rate(double base, int64_t epoch) const override;
  int64_t t_max_;
  double eta_min_;
};

}  // namespace taeda::optim
