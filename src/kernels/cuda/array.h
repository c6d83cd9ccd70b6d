// Tensors without strides, for kernels that number elements, and what their launches touch.
#pragma once

#include <optional>

#include "kernels/cuda/text/array_args.h"
#include "kernels/cuda/walk.h"
#include "kernels/cuda/workspace.h"

namespace taeda::cuda {

// A tensor in row-major order for as long as a launch needs it.
class Dense {
 public:
  // A View's elements: its own, or a copy.
  explicit Dense(const View& v);
  // Elements that nobody has written yet.
  Dense(Device device, DType type, IntSpan sizes);
  Dense(const Dense&) = delete;
  Dense& operator=(const Dense&) = delete;
  const View& view() const { return view_; }
  operator const View&() const { return view_; }

 private:
  bool set_strides();  // to those of row-major order: whether they were

  View view_;
  DimVector sizes_, strides_;
  std::optional<Workspace> memory_;
};

// A View from the end of some dimensions on.
class Reversed {
 public:
  Reversed(const View& v, IntSpan dims);
  Reversed(const Reversed&) = delete;
  Reversed& operator=(const Reversed&) = delete;
  const View& view() const { return view_; }
  operator const View&() const { return view_; }

 private:
  View view_;
  DimVector strides_;
};

device::Array array(const View& v);

// What a launch touches; Views that are left out count for nothing.
using Accesses = SmallVector<Access, 12>;
Accesses accesses(Span<const View> written, Span<const View> read);

}  // namespace taeda::cuda
