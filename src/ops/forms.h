// The out= form of an operator that cannot write a given tensor: it computes, then copies.
//
//   return forms::out<op::sort>(record::sort, {&out_values, &out_indices}, self, dim, descending);
#pragma once

#include <tuple>

#include "ops/modes.h"

namespace taeda::forms {

using Tensors = Span<const Tensor* const>;

// RuntimeError where out= may not be used: while recording, or where it overlaps `inputs`, or is no
// place for what an operator without dimensions (`of_all`) makes of them. Gives the dtypes that it
// may have.
OutPolicy check_outs(const OperatorRecord& record, Tensors outs, Span<const TensorSpan> inputs,
                     bool of_all);
// Copies `results` into `outs`, which it resizes.
void write_outs(const OperatorRecord& record, Tensors outs, Tensors results, OutPolicy policy);
// What is excluded while the results are computed: they have no history, and autocast leaves them
// alone.
KeySet excluded(const OperatorRecord& record);

inline TensorSpan tensors_in(const Tensor& t) { return TensorSpan(&t, 1); }
inline TensorSpan tensors_in(TensorSpan list) { return list; }
template <class T>
TensorSpan tensors_in(const T&) {
  return {};
}

inline bool is_missing(OptInts dims) { return !dims; }
template <class T>
bool is_missing(const T&) {
  return false;
}

// Factories and sums compute in the dtype of out=.
inline TensorOptions for_out(const OperatorRecord&, TensorOptions options, const Tensor& out) {
  if (!options.dtype) options.dtype = out.dtype();
  return options;
}
inline std::optional<DType> for_out(const OperatorRecord& record, std::optional<DType> dtype,
                                    const Tensor& out) {
  return dtype || !record.has(OperatorRecord::kOutGivesDtype) ? dtype : out.dtype();
}
template <class T>
const T& for_out(const OperatorRecord&, const T& value, const Tensor&) {
  return value;
}

template <class R, size_t... I>
[[gnu::visibility("hidden")]] R results_of(Tensors outs, std::index_sequence<I...>) {
  return R(*outs[I]...);
}

template <auto plain, size_t N, class... Args>
[[gnu::visibility("hidden")]] auto out(const OperatorRecord& record, const Tensor* const (&outs)[N],
                                       const Args&... args) {
  const TensorSpan inputs[] = {tensors_in(args)..., {}};
  const OutPolicy policy = check_outs(record, outs, inputs, (is_missing(args) || ...));
  const ExcludeKeys alone(excluded(record));
  auto made = plain(for_out(record, args, *outs[0])...);
  void* results[N];
  dispatch::ResultPointers<decltype(made)>::fill(made, results);
  const Tensor* parts[N];
  for (size_t i = 0; i < N; i++) parts[i] = static_cast<const Tensor*>(results[i]);
  write_outs(record, outs, parts, policy);
  return results_of<decltype(made)>(outs, std::make_index_sequence<N>());
}

}  // namespace taeda::forms
