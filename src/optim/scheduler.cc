#include <algorithm>
#include <cmath>
#include <numbers>

#include "taeda/optim.h"

namespace taeda::optim {

Scheduler::Scheduler(Optimizer& optimizer) : optimizer_(optimizer) {
  for (const Optimizer::Group& group : optimizer.groups()) base_.push_back(group.lr);
}

void Scheduler::step() {
  epoch_++;
  apply();
}

void Scheduler::apply() {
  auto& groups = optimizer_.groups();
  for (size_t g = 0; g < base_.size() && g < groups.size(); g++)
    groups[g].lr = rate(base_[g], epoch_);
}

StepLR::StepLR(Optimizer& optimizer, int64_t size, double gamma)
    : Scheduler(optimizer), size_(size), gamma_(gamma) {
  TD_CHECK_VALUE(size > 0, "StepLR: expected a positive step size, got {}", size);
}
double StepLR::rate(double base, int64_t epoch) const {
  return base * std::pow(gamma_, static_cast<double>(epoch / size_));
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma)
    : Scheduler(optimizer), milestones_(std::move(milestones)), gamma_(gamma) {
  std::sort(milestones_.begin(), milestones_.end());
}
double MultiStepLR::rate(double base, int64_t epoch) const {
  const auto reached =
      std::upper_bound(milestones_.begin(), milestones_.end(), epoch) - milestones_.begin();
  return base * std::pow(gamma_, static_cast<double>(reached));
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma)
    : Scheduler(optimizer), gamma_(gamma) {}
double ExponentialLR::rate(double base, int64_t epoch) const {
  return base * std::pow(gamma_, static_cast<double>(epoch));
}

LinearLR::LinearLR(Optimizer& optimizer, double start, double end, int64_t total)
    : Scheduler(optimizer), start_(start), end_(end), total_(total) {
  TD_CHECK_VALUE(
      start > 0 && start <= 1,
      "Starting multiplicative factor expected to be greater than 0 and less or equal to 1.");
  TD_CHECK_VALUE(end >= 0 && end <= 1,
                 "Ending multiplicative factor expected to be between 0 and 1.");
  TD_CHECK_VALUE(total > 0, "LinearLR: expected a positive number of epochs, got {}", total);
  apply();
}
double LinearLR::rate(double base, int64_t epoch) const {
  const double done = static_cast<double>(std::min(epoch, total_)) / static_cast<double>(total_);
  return base * (start_ + (end_ - start_) * done);
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min)
    : Scheduler(optimizer), t_max_(t_max), eta_min_(eta_min) {
  TD_CHECK_VALUE(t_max > 0, "CosineAnnealingLR: expected a positive T_max, got {}", t_max);
}
double CosineAnnealingLR::rate(double base, int64_t epoch) const {
  const double phase = std::numbers::pi * static_cast<double>(epoch) / static_cast<double>(t_max_);
  return eta_min_ + (base - eta_min_) * (1 + std::cos(phase)) / 2;
}

}  // namespace taeda::optim
