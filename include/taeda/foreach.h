// Operators on each tensor of a list, as torch._foreach_add: one call for a model's parameters.
//
// In the arguments after the first, a list (TensorList, std::vector<Scalar>, ...) has a value for
// each tensor, and anything else stands for all of them. RuntimeError for lists of different
// lengths and for no tensors at all; what else is refused is refused by the operator. They are
// loops: each tensor is recorded, and fails, for itself.
//
//   const TensorList params = {ones({2}), ones({3})}, grads = {ones({2}), ones({3})};
//   const TensorList moved = _foreach_add(params, grads, Scalar(-0.5));  // alpha
//   _foreach_mul_(moved, std::vector<Scalar>{2, 4});
//   assert(moved[0][0].item<float>() == 1 && moved[1][0].item<float>() == 2);
#pragma once

#include <vector>

#include "taeda/ops.h"

namespace taeda {
namespace foreach {

template <class Arg>
concept List = requires(const Arg& arg) {
  arg.begin();
  arg[size_t{0}];
};

template <class Arg>
const auto& share(const Arg& arg, [[maybe_unused]] size_t i) {
  if constexpr (List<Arg>) {
    return arg[i];
  } else {
    return arg;
  }
}

template <class Arg>
void check_length(TensorSpan self, [[maybe_unused]] const Arg& arg) {
  if constexpr (List<Arg>) {
    TD_CHECK(arg.size() == self.size(),
             "Tensor lists must have the same number of tensors, got {} and {}", self.size(),
             arg.size());
  }
}

// f(self[i], share of each of args) for every i.
template <class F, class... Args>
TensorList map(const F& f, TensorSpan self, const Args&... args) {
  TD_CHECK(!self.empty(), "Tensor list must have at least one tensor.");
  (check_length(self, args), ...);
  TensorList made;
  made.reserve(self.size());
  for (size_t i = 0; i < self.size(); i++) made.push_back(f(self[i], share(args, i)...));
  return made;
}

}  // namespace foreach

// NAME(self, args...): the function ONE on each.
#define TD_FOREACH(NAME, ONE)                                    \
  template <class... Args>                                       \
  TensorList NAME(TensorSpan self, const Args&... args) {        \
    const auto one = [](const auto&... x) { return ONE(x...); }; \
    return foreach::map(one, self, args...);                     \
  }
#include "taeda/foreach.inc"  // _foreach_add, _foreach_add_ and the others of the operator table
#undef TD_FOREACH

// A number to the power of each tensor.
inline TensorList _foreach_pow(const Scalar& self, TensorSpan exponent) {
  return foreach::map([&](const Tensor& one) { return pow(self, one); }, exponent);
}
// The norm of each tensor, in `dtype` where it is given.
inline TensorList _foreach_norm(TensorSpan self, const Scalar& ord = 2, OptDType dtype = {}) {
  return foreach::map(
      [&](const Tensor& one) { return linalg_vector_norm(one, ord, {}, false, dtype); }, self);
}
// The sum of the powers of each tensor's absolute values.
inline TensorList _foreach_powsum(TensorSpan self, const Scalar& ord = 2, OptDType dtype = {}) {
  return foreach::map([&](const Tensor& one) { return pow(abs(one), ord).sum({}, false, dtype); },
                      self);
}
// The largest element of each tensor.
inline TensorList _foreach_max(TensorSpan self) {
  return foreach::map([](const Tensor& one) { return max(one); }, self);
}
// The product of each matrix with that of another list.
inline TensorList _foreach_mm(TensorSpan self, TensorSpan mat2) {
  return foreach::map([](const Tensor& a, const Tensor& b) { return mm(a, b); }, self, mat2);
}
// A copy of each tensor.
inline TensorList _foreach_clone(TensorSpan self, OptMemoryFormat memory_format = {}) {
  return foreach::map([&](const Tensor& one) { return clone(one, memory_format); }, self);
}

}  // namespace taeda
