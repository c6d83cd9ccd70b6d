// Optimizers: update rules for parameters by their gradients, and schedules for the learning rate.
//
//   optim::SGD sgd(net.parameters(), {.lr = 0.1, .momentum = 0.9});
//   for (auto& [x, y] : loader) {
//     sgd.zero_grad();
//     cross_entropy(net(x), y).backward();
//     sgd.step();
//   }
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

  void step();
  // Drops the gradients of all parameters.
  void zero_grad();

  // Learning rates may be changed between steps.
  std::vector<Group>& groups() { return groups_; }
  // ValueError for parameters that are no leaves, appear twice, or for a negative rate or decay.
  void add_group(TensorList parameters, double lr, double weight_decay = 0);

  // Buffers by "index.name", the index counting parameters over all groups.
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

struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool amsgrad = false, maximize = false;
};
// Kingma & Ba 2015.
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
// Loshchilov & Hutter 2019: weight decay beside the gradient instead of in it.
class AdamW final : public Adam {
 public:
  explicit AdamW(TensorList parameters, AdamWOptions o = {})
      : Adam(std::move(parameters),
             {o.lr, o.beta1, o.beta2, o.eps, o.weight_decay, o.amsgrad, o.maximize}, true) {}
};

struct RMSpropOptions {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false, maximize = false;
};
class RMSprop final : public Optimizer {
 public:
  explicit RMSprop(TensorList parameters, RMSpropOptions options = {});

 private:
  std::vector<std::string> state_names() const override;
  State fresh_state(const Tensor& parameter) const override;
  void update(const Group& group, const Columns& columns, bool first) override;
  RMSpropOptions options_;
};

// Learning rates as functions of the number of step() calls. The optimizer must outlive its
// scheduler.
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

// base * gamma^floor(epoch / size)
class StepLR final : public Scheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t size, double gamma = 0.1);

 private:
  double rate(double base, int64_t epoch) const override;
  int64_t size_;
  double gamma_;
};

// base * gamma^(number of milestones reached)
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

// From base * start to base * end over `total` epochs: a warm-up.
class LinearLR final : public Scheduler {
 public:
  LinearLR(Optimizer& optimizer, double start = 1.0 / 3, double end = 1.0, int64_t total = 5);

 private:
  double rate(double base, int64_t epoch) const override;
  double start_, end_;
  int64_t total_;
};

// Loshchilov & Hutter 2017: eta_min + (base - eta_min) (1 + cos(pi epoch / t_max)) / 2
class CosineAnnealingLR final : public Scheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min = 0);

 private:
  double rate(double base, int64_t epoch) const override;
  int64_t t_max_;
  double eta_min_;
};

}  // namespace taeda::optim
