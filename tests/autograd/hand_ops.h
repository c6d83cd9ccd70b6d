// Operators written by hand, for tests of autograd that must not depend on the operator table:
// float64, any strides, plain loops. Each shows how an operator records itself.
#pragma once

#include <cmath>
#include <functional>
#include <initializer_list>

#include "autograd/layer.h"
#include "core/layout.h"
#include "taeda/autograd.h"

namespace taeda::hand {

inline Tensor fresh(IntSpan sizes) {
  auto impl = make_ref<TensorImpl>(
      Storage::allocate(checked_nbytes(sizes, DType::kFloat64), DeviceType::kCPU), DType::kFloat64,
      DeviceType::kCPU);
  impl->set_contiguous_layout(sizes);
  return Tensor(impl);
}
inline Tensor vec(std::initializer_list<double> values) {
  Tensor t = fresh({static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), t.data<double>());
  return t;
}
inline Tensor leaf(std::initializer_list<double> values) { return vec(values).requires_grad_(); }

inline double& at(const Tensor& t, int64_t i) {
  int64_t offset = 0;
  for (size_t d = t.sizes().size(); d-- > 0;) {
    offset += i % t.sizes()[d] * t.strides()[d];
    i /= t.sizes()[d];
  }
  return static_cast<double*>(t.data_ptr())[offset];
}
inline std::vector<double> values(const Tensor& t) {
  std::vector<double> out;
  for (int64_t i = 0; i < t.numel(); i++) out.push_back(at(t, i));
  return out;
}
using Values = std::vector<double>;

inline Tensor map(const Tensor& a, const std::function<double(double)>& f) {
  Tensor out = fresh(a.sizes());
  for (int64_t i = 0; i < a.numel(); i++) at(out, i) = f(at(a, i));
  return out;
}
inline Tensor zip(const Tensor& a, const Tensor& b,
                  const std::function<double(double, double)>& f) {
  Tensor out = fresh(a.sizes());
  for (int64_t i = 0; i < a.numel(); i++) at(out, i) = f(at(a, i), at(b, i));
  return out;
}

Tensor mul(const Tensor& self, const Tensor& other);

struct MulNode final : Node {
  SavedTensor self_, other_;
  const char* name() const override { return "MulBackward0"; }
  void release_saved() override {
    self_.reset();
    other_.reset();
  }
  TensorList apply(TensorList&& grads) override {
    TensorList out(2);
    const Tensor& gy = grads[0];
    if (!gy.defined()) return out;
    if (should_compute(0)) out[0] = mul(gy, other_.unpack(*this));
    if (should_compute(1)) out[1] = mul(gy, self_.unpack(*this));
    return out;
  }
};
inline Tensor mul(const Tensor& self, const Tensor& other) {
  const auto below = [&] { return zip(self, other, [](double a, double b) { return a * b; }); };
  if (!needs_grad(self, other)) return below();
  const Ref<MulNode> node = make_ref<MulNode>();
  autograd::set_edges(*node, self, other);
  node->self_ = SavedTensor::input(self);
  node->other_ = SavedTensor::input(other);
  Tensor result = below();
  set_history(result, node);
  return result;
}

struct AddNode final : Node {
  const char* name() const override { return "AddBackward0"; }
  TensorList apply(TensorList&& grads) override { return {grads[0], grads[0]}; }
};
inline Tensor add(const Tensor& self, const Tensor& other) {
  const auto below = [&] { return zip(self, other, [](double a, double b) { return a + b; }); };
  if (!needs_grad(self, other)) return below();
  const Ref<AddNode> node = make_ref<AddNode>();
  autograd::set_edges(*node, self, other);
  Tensor result = below();
  set_history(result, node);
  return result;
}
inline Tensor add_(const Tensor& self, const Tensor& other) {
  const bool needs = needs_grad(self, other);
  autograd::check_inplace("add_", self, needs);
  Ref<AddNode> node;
  if (needs) {
    node = make_ref<AddNode>();
    autograd::set_edges(*node, self, other);
  }
  for (int64_t i = 0; i < self.numel(); i++) at(self, i) += at(other, i);
  self.impl()->bump_version();
  if (needs) rebase_history(self, node);
  return self;
}
inline Tensor mul_(const Tensor& self, const Tensor& other) {
  const bool needs = needs_grad(self, other);
  autograd::check_inplace("mul_", self, needs);
  Ref<MulNode> node;
  if (needs) {
    node = make_ref<MulNode>();
    autograd::set_edges(*node, self, other);
    node->self_ = SavedTensor::input(autograd::copy_for_backward(self));
    node->other_ = SavedTensor::input(other);
  }
  for (int64_t i = 0; i < self.numel(); i++) at(self, i) *= at(other, i);
  self.impl()->bump_version();
  if (needs) rebase_history(self, node);
  return self;
}

// Saves its result.
struct ExpNode final : Node {
  SavedTensor result_;
  const char* name() const override { return "ExpBackward0"; }
  void release_saved() override { result_.reset(); }
  TensorList apply(TensorList&& grads) override { return {mul(grads[0], result_.unpack(*this))}; }
};
inline Tensor exp(const Tensor& self) {
  const auto below = [&] { return map(self, [](double a) { return std::exp(a); }); };
  if (!needs_grad(self)) return below();
  const Ref<ExpNode> node = make_ref<ExpNode>();
  autograd::set_edges(*node, self);
  Tensor result = below();
  set_history(result, node);
  node->result_ = SavedTensor::output(result, node);
  return result;
}
inline Tensor exp_(const Tensor& self) {
  const bool needs = needs_grad(self);
  autograd::check_inplace("exp_", self, needs);
  Ref<ExpNode> node;
  if (needs) {
    node = make_ref<ExpNode>();
    autograd::set_edges(*node, self);
  }
  for (int64_t i = 0; i < self.numel(); i++) at(self, i) = std::exp(at(self, i));
  self.impl()->bump_version();
  if (needs) {
    rebase_history(self, node);
    node->result_ = SavedTensor::output(self, node);
  }
  return self;
}

struct SumNode final : Node {
  DimVector sizes;
  const char* name() const override { return "SumBackward0"; }
  TensorList apply(TensorList&& grads) override {
    Tensor out = fresh(sizes);
    for (int64_t i = 0; i < out.numel(); i++) at(out, i) = at(grads[0], 0);
    return {out};
  }
};
inline Tensor sum(const Tensor& self) {
  Tensor result = fresh({});
  at(result, 0) = 0;
  for (int64_t i = 0; i < self.numel(); i++) at(result, 0) += at(self, i);
  if (!needs_grad(self)) return result;
  const Ref<SumNode> node = make_ref<SumNode>();
  node->sizes = self.sizes();
  autograd::set_edges(*node, self);
  set_history(result, node);
  return result;
}

// A view of `count` elements from `start` on.
struct SliceNode final : Node {
  DimVector sizes;
  int64_t start = 0;
  const char* name() const override { return "SliceBackward0"; }
  TensorList apply(TensorList&& grads) override {
    Tensor out = fresh(sizes);
    for (int64_t i = 0; i < out.numel(); i++) at(out, i) = 0;
    for (int64_t i = 0; i < grads[0].numel(); i++) at(out, start + i) = at(grads[0], i);
    return {out};
  }
};
inline Tensor slice(const Tensor& self, int64_t start, int64_t count) {
  auto impl = make_ref<TensorImpl>(self.storage(), self.dtype(), self.device());
  impl->set_layout({count}, self.strides(), self.storage_offset() + start * self.stride(0));
  Tensor result{impl};
  autograd::track_view(result, self);
  if (!needs_grad(self)) return result;
  const Ref<SliceNode> node = make_ref<SliceNode>();
  node->sizes = self.sizes();
  node->start = start;
  autograd::set_edges(*node, self);
  set_history(result, node);
  return result;
}

}  // namespace taeda::hand
