#include "ops/contract.h"

#include "core/dim_fix.h"

namespace taeda::contract {

void fail_undefined(std::string_view op, std::string_view argument) {
  fail(ErrorKind::kType, "{}(): argument '{}' must be Tensor, not None", op, argument);
}

void fail_types(std::string_view op, DType got) {
  fail(ErrorKind::kNotImplemented, "\"{}\" not implemented for '{}'", op, scalar_type_name(got));
}

void fail_sizes(std::string_view op) {
  fail(ErrorKind::kNotImplemented,
       "{}: the result's sizes depend on data, which a meta tensor does not have", op);
}

void fail_dim(int64_t dim, int64_t ndim) {
  const int64_t n = ndim > 0 ? ndim : 1;
  fail(ErrorKind::kIndex,
       "Dimension out of range (expected to be in range of [{}, {}], but got {})\n{}", -n, n - 1,
       dim, dim_fix(ndim));
}

void fail_device(std::string_view op, std::string_view argument, Device expected, Device got) {
  fail(ErrorKind::kRuntime,
       "Expected all tensors to be on the same device, but found at least two devices, {} and {}! "
       "(in {}, argument '{}' is on {})\nFix: move it, .to(\"{}\"); a model by model.to(device)",
       expected, got, op, argument, got, expected);
}

void same_device(const char* op, const char* argument, TensorSpan list, Device expected) {
  for (const Tensor& t : list) same_device(op, argument, expected, t);
}
void same_device(const char* op, const char* argument, TensorSpan list) {
  if (!list.empty()) same_device(op, argument, list, list[0].device());
}

DimVector wrap_dims(const char* op, IntSpan dims, int64_t ndim) {
  DimVector wrapped(dims);
  uint64_t seen = 0;
  for (auto& dim : wrapped) {
    dim = wrap_dim(dim, ndim);
    TD_CHECK(dim < 64 && !(seen >> dim & 1),
             "{}: dim {} appears multiple times in the list of dims", op, dim);
    seen |= uint64_t{1} << dim;
  }
  return wrapped;
}

void list_defined(const char* op, const char* argument, TensorSpan list) {
  for (size_t i = 0; i < list.size(); i++) {
    TD_CHECK_TYPE(
        list[i].defined(),
        "{}(): argument '{}' must be tuple of Tensors, but found element of type None at pos {}",
        op, argument, i);
  }
}

}  // namespace taeda::contract
