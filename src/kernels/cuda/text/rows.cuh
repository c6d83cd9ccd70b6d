// Row: what a group of threads works on, one dimension of up to three operands.
#pragma once
#include "kernels/cuda/text/group.cuh"
#include "kernels/cuda/text/row_args.h"

namespace taeda::device {

struct Row {
  const RowArgs& args;
  Group group;
  Offsets<3> at;

  // Element i of operand k.
  template <class T>
  TD_FN T get(int k, uint64_t i) const {
    return load<T>(args.data[k] + at[k] + static_cast<int64_t>(i) * args.strides[k], args.types[k]);
  }
  template <class T>
  TD_FN void set(uint64_t i, T value, int k = 0) const {
    store(args.data[k] + at[k] + static_cast<int64_t>(i) * args.strides[k], args.types[k], value);
  }
  // body(i) for this thread's elements.
  template <class Body>
  TD_FN void each(Body body) const {
    for (uint64_t i = group.rank(); i < args.n; i += args.threads) body(i);
  }
};

template <class Body>
TD_FN void for_each_row(const RowArgs& args, Body body) {
  const Group group{args.threads};
  for (uint64_t row = group.first(); row < args.rows.count; row += group.step())
    body(Row{args, group, offsets(args.rows, row)});
}

}  // namespace taeda::device
