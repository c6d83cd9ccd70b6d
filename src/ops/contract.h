// Contracts: the checks that generated code makes in front of every kernel.
//
// All of them name the operator and the argument, and raise PyTorch's exception type. They cost a
// few comparisons; the failing branches are out of line.
#pragma once

#include <string_view>

#include "core/layout.h"
#include "taeda/error.h"
#include "taeda/tensor.h"

namespace taeda::contract {

// Calls write(), which changes the elements of `t`, and counts the change. An operator that the
// program stopped half way has written too; one that found an error in its arguments has not.
template <class Write>
void written(const Tensor& t, const Write& write) {
  try {
    write();
  } catch (const Error&) {
    throw;
  } catch (...) {
    t.impl()->bump_version();
    throw;
  }
  t.impl()->bump_version();
}

// The table's sets of dtypes (`types:`). Only kAny has all storage types; those that are integers
// have bits, too.
inline constexpr DTypeSet kBool = dtypes_of(DTypeKind::kBool);
inline constexpr DTypeSet kIntegral = dtypes_of(DTypeKind::kInteger) & ~kStorageDTypes;
inline constexpr DTypeSet kFloating = dtypes_of(DTypeKind::kFloating) & ~kStorageDTypes;
inline constexpr DTypeSet kComplex = dtypes_of(DTypeKind::kComplex) & ~kStorageDTypes;
inline constexpr DTypeSet kInexact = kFloating | kComplex;
inline constexpr DTypeSet kIntegralBool = dtypes_of(DTypeKind::kInteger) | kBool;
inline constexpr DTypeSet kReal = kIntegral | kBool | kFloating;
inline constexpr DTypeSet kNumeric = kIntegral | kInexact;
inline constexpr DTypeSet kAll = kReal | kComplex;
inline constexpr DTypeSet kAny = kAll | kStorageDTypes;
inline constexpr DTypeSet kComplex32 = dtype_bit(DType::kComplex32);
inline constexpr DTypeSet kFloat8 =
    dtypes_of(DTypeKind::kFloating) & kStorageDTypes & ~dtype_bit(DType::kFloat4E2M1FNx2);

[[noreturn, gnu::cold]] void fail_undefined(std::string_view op, std::string_view argument);
[[noreturn, gnu::cold]] void fail_types(std::string_view op, DType got);
// A meta tensor was given to an operator whose result's sizes depend on data.
[[noreturn, gnu::cold]] void fail_sizes(std::string_view op);
[[noreturn, gnu::cold]] void fail_dim(int64_t dim, int64_t ndim);
[[noreturn, gnu::cold]] void fail_device(std::string_view op, std::string_view argument,
                                         Device expected, Device got);

// Generated code passes literals, which stay pointers until a check fails: that saves 30
// instructions a name in files that are compiled for size.
inline void defined(auto op, auto argument, const Tensor& t) {
  if (!t.defined()) [[unlikely]]
    fail_undefined(op, argument);
}
inline void types(auto op, DTypeSet allowed, DType got) {
  if (!(allowed & dtype_bit(got))) [[unlikely]]
    fail_types(op, got);
}
inline void same_device(auto op, auto argument, Device expected, const Tensor& t) {
  if (t.defined() && t.device() != expected && !t.impl()->wrapped_number) [[unlikely]]
    fail_device(op, argument, expected, t.device());
}
// Every element of a list on `expected`, or on the first one's.
void same_device(const char* op, const char* argument, TensorSpan list, Device expected);
void same_device(const char* op, const char* argument, TensorSpan list);
// The number of dimensions that wrap: of a list, its first tensor's.
inline int64_t rank(const Tensor& t) { return t.dim(); }
inline int64_t rank(TensorSpan list) { return list.empty() ? 0 : list[0].dim(); }
// A dimension counted from either end; a 0-d tensor counts as having one.
inline int64_t wrap_dim(int64_t dim, int64_t ndim) {
  const int64_t n = ndim > 0 ? ndim : 1;
  if (dim < -n || dim >= n) [[unlikely]]
    fail_dim(dim, ndim);
  return dim < 0 ? dim + n : dim;
}
inline OptInt wrap_dim(OptInt dim, int64_t ndim) {
  return dim ? OptInt(wrap_dim(*dim, ndim)) : dim;
}
// Wraps each and checks that none appears twice.
DimVector wrap_dims(const char* op, IntSpan dims, int64_t ndim);
inline std::optional<DimVector> wrap_dims(const char* op, OptInts dims, int64_t ndim) {
  return dims ? std::optional<DimVector>(wrap_dims(op, *dims, ndim)) : std::nullopt;
}
// Elements of a tensor list: all defined; the list not empty unless the operator says so.
void list_defined(const char* op, const char* argument, TensorSpan list);

}  // namespace taeda::contract
