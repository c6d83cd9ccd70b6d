// What the table's expression language compiles to where C++ has no operator of the same meaning:
// Python's integer division and modulo, negative indices and slices of integer lists,
// concatenation.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "taeda/tensor.h"

namespace taeda::expr {

inline constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

[[noreturn]] void fail_overflow(const char* operation, int64_t a, int64_t b);
[[noreturn]] void fail_index(int64_t index, size_t size);

inline int64_t checked_add(int64_t a, int64_t b) {
  int64_t c;
  if (__builtin_add_overflow(a, b, &c)) [[unlikely]]
    fail_overflow("+", a, b);
  return c;
}
inline int64_t checked_sub(int64_t a, int64_t b) {
  int64_t c;
  if (__builtin_sub_overflow(a, b, &c)) [[unlikely]]
    fail_overflow("-", a, b);
  return c;
}
inline int64_t checked_mul(int64_t a, int64_t b) {
  int64_t c;
  if (__builtin_mul_overflow(a, b, &c)) [[unlikely]]
    fail_overflow("*", a, b);
  return c;
}

// Rounds toward minus infinity, as Python does.
template <class A, class B>
auto floor_div(A a, B b) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B>) {
    const int64_t x = a, y = b;
    if (y == 0 || (y == -1 && x == std::numeric_limits<int64_t>::min())) [[unlikely]]
      fail_overflow("//", x, y);
    return x / y - ((x % y != 0) && ((x < 0) != (y < 0)));
  } else {
    return std::floor(static_cast<double>(a) / static_cast<double>(b));
  }
}
template <class A, class B>
auto modulo(A a, B b) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B>)
    return static_cast<int64_t>(a) - floor_div(a, b) * b;
  else
    return a - floor_div(a, b) * b;
}
template <class A, class B>
auto power(A a, B b) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B>) {
    int64_t result = 1;
    for (int64_t i = 0; i < b; i++) result = checked_mul(result, a);
    return result;
  } else {
    return std::pow(static_cast<double>(a), static_cast<double>(b));
  }
}

template <class List>
auto at(const List& list, int64_t index) {
  const int64_t n = static_cast<int64_t>(list.size());
  if (index < -n || index >= n) [[unlikely]]
    fail_index(index, list.size());
  return list[static_cast<size_t>(index < 0 ? index + n : index)];
}
inline int64_t clamp_index(int64_t index, int64_t n) {
  if (index < 0) index += n;
  return index < 0 ? 0 : index > n ? n : index;
}
inline DimVector slice(IntSpan list, int64_t start, int64_t stop) {
  const int64_t n = static_cast<int64_t>(list.size());
  const int64_t a = clamp_index(start, n), b = clamp_index(stop, n);
  return a < b ? DimVector(list.begin() + a, list.begin() + b) : DimVector();
}
inline TensorList slice(TensorSpan list, int64_t start, int64_t stop) {
  const int64_t n = static_cast<int64_t>(list.size());
  const int64_t a = clamp_index(start, n), b = clamp_index(stop, n);
  return a < b ? TensorList(list.begin() + a, list.begin() + b) : TensorList();
}

inline DimVector concat(IntSpan first) { return first; }
template <class... Rest>
DimVector concat(IntSpan first, const Rest&... rest) {
  DimVector out(first);
  for (int64_t v : concat(IntSpan(rest)...)) out.push_back(v);
  return out;
}
inline DimVector repeat(IntSpan list, int64_t count) {
  DimVector out;
  for (int64_t i = 0; i < count; i++)
    for (int64_t v : list) out.push_back(v);
  return out;
}

// int[N] arguments: a list of one value stands for N equal ones.
inline DimVector one_for_all(IntSpan list, size_t n) {
  return list.size() == 1 ? DimVector(n, list[0]) : DimVector(list);
}

inline MemoryFormat memory_format(std::string_view name) {
  return name == "contiguous"      ? MemoryFormat::kContiguous
         : name == "channels_last" ? MemoryFormat::kChannelsLast
                                   : MemoryFormat::kPreserve;
}

inline TensorOptions options(OptDType dtype, OptDevice device) {
  TensorOptions out;
  out.dtype = dtype;
  out.device = device;
  return out;
}

inline OptInts opt_ints(const OptInts& value) { return value; }
inline OptInts opt_ints(const std::optional<DimVector>& value) {
  return value ? OptInts(IntSpan(*value)) : std::nullopt;
}

}  // namespace taeda::expr
