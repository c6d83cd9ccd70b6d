// Autocast: operators with an `autocast:` entry convert their floating arguments first.
//
// The generated entry functions ask for thread_modes.autocast, convert with cast() and call
// themselves again under Pause, so nothing inside an operator is converted twice. State belongs to
// the calling thread. Leaves that require grad (parameters) are converted once in a block; the
// conversions are kept until clear_cache().
#pragma once

#include <initializer_list>

#include "taeda/keys.h"
#include "taeda/tensor.h"

namespace taeda::autocast {

// The dtype of `lower` operators: bfloat16 unless set otherwise.
DType lower_dtype();
void set_lower_dtype(DType dtype);
bool cache_enabled();
void set_cache_enabled(bool enabled);
void clear_cache();

// A floating tensor on the CPU, other than float64, in dtype `to`; any other as it is.
Tensor cast(const Tensor& x, DType to);
TensorList cast(TensorSpan list, DType to);

// float32 if one of the tensors that cast() converts has it, else lower_dtype().
class Tensors {
 public:
  Tensors(const Tensor& x) : span_(&x, 1) {}
  Tensors(TensorSpan list) : span_(list) {}
  TensorSpan span() const { return span_; }

 private:
  TensorSpan span_;
};
DType widest(std::initializer_list<Tensors> arguments);

// No autocast on this thread until the end of the scope.
class Pause {
 public:
  Pause() : saved_(thread_modes.autocast) { thread_modes.autocast = false; }
  ~Pause() { thread_modes.autocast = saved_; }
  Pause(const Pause&) = delete;
  Pause& operator=(const Pause&) = delete;

 private:
  bool saved_;
};

}  // namespace taeda::autocast
