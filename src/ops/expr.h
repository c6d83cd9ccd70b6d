// What the table's expression language compiles to where C++ has no operator of the same meaning:
// Python's integer division and modulo, negative indices and slices of integer lists,
// concatenation.
#pragma once

#include <cmath>
#include <limits>
#include <numbers>
#include <type_traits>

#include "taeda/tensor.h"

namespace taeda::expr {

inline constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
inline constexpr double inf = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double pi = std::numbers::pi;
inline constexpr DType bool8 = DType::kBool, uint8 = DType::kUInt8, int8 = DType::kInt8,
                       int16 = DType::kInt16, int32 = DType::kInt32, int64 = DType::kInt64,
                       float16 = DType::kFloat16, bfloat16 = DType::kBFloat16,
                       float32 = DType::kFloat32, float64 = DType::kFloat64,
                       complex64 = DType::kComplex64, complex128 = DType::kComplex128;

[[noreturn]] void fail_overflow(const char* operation, int64_t a, int64_t b);
[[noreturn]] void fail_index(int64_t index, size_t size);

// The signs of numbers: of two integers an integer, which is checked, else floating point.
template <class A, class B>
concept Numbers = std::is_arithmetic_v<A> && std::is_arithmetic_v<B>;
template <class A, class B>
inline constexpr bool kIntegers = std::is_integral_v<A>&& std::is_integral_v<B>;

template <class A, class B>
  requires Numbers<A, B>
auto add(A a, B b) {
  if constexpr (kIntegers<A, B>) {
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum)) [[unlikely]]
      fail_overflow("+", a, b);
    return sum;
  } else {
    return a + b;
  }
}
template <class A, class B>
  requires Numbers<A, B>
auto sub(A a, B b) {
  if constexpr (kIntegers<A, B>) {
    int64_t difference;
    if (__builtin_sub_overflow(a, b, &difference)) [[unlikely]]
      fail_overflow("-", a, b);
    return difference;
  } else {
    return a - b;
  }
}
template <class A, class B>
  requires Numbers<A, B>
auto mul(A a, B b) {
  if constexpr (kIntegers<A, B>) {
    int64_t product;
    if (__builtin_mul_overflow(a, b, &product)) [[unlikely]]
      fail_overflow("*", a, b);
    return product;
  } else {
    return a * b;
  }
}
template <class A, class B>
double div(A a, B b) {
  return static_cast<double>(a) / static_cast<double>(b);
}
// Rounds toward minus infinity, as Python does.
template <class A, class B>
auto floor_divide(A a, B b) {
  if constexpr (kIntegers<A, B>) {
    const int64_t x = a, y = b;
    if (y == 0 || (y == -1 && x == std::numeric_limits<int64_t>::min())) [[unlikely]]
      fail_overflow("//", x, y);
    return x / y - ((x % y != 0) && ((x < 0) != (y < 0)));
  } else {
    return std::floor(div(a, b));
  }
}
template <class A, class B>
auto remainder(A a, B b) {
  if constexpr (kIntegers<A, B>)
    return static_cast<int64_t>(a) - floor_divide(a, b) * b;
  else
    return a - floor_divide(a, b) * b;
}
template <class A, class B>
auto pow(A a, B b) {
  if constexpr (kIntegers<A, B>) {
    int64_t result = 1;
    for (int64_t i = 0; i < b; i++) result = mul(result, a);
    return result;
  } else {
    return std::pow(static_cast<double>(a), static_cast<double>(b));
  }
}

template <class List>
int64_t len(const List& list) {
  return static_cast<int64_t>(list.size());
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

inline void append(DimVector& out, int64_t value) { out.push_back(value); }
inline void append(DimVector& out, IntSpan list) {
  for (const int64_t v : list) out.push_back(v);
}
// [n, *list, ...]
template <class... Parts>
DimVector joined(const Parts&... parts) {
  DimVector out;
  (append(out, parts), ...);
  return out;
}
inline DimVector add(IntSpan a, IntSpan b) { return joined(a, b); }
inline DimVector mul(IntSpan list, int64_t count) {
  DimVector out;
  for (int64_t i = 0; i < count; i++) append(out, list);
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

// None: an optional value, a tensor or a generator that is not there.
struct None {
  operator Tensor() const { return Tensor(); }
  template <class T>
    requires std::is_same_v<T, Generator*>
  operator T() const { return nullptr; }
  template <class T>
  operator std::optional<T>() const {
    return std::nullopt;
  }
};
inline constexpr None kNone;

// x is not None
inline bool given(const Tensor& t) { return t.defined(); }
template <class T>
bool given(const std::optional<T>& value) {
  return value.has_value();
}

inline TensorOptions options(OptDType dtype, OptDevice device) {
  TensorOptions out;
  out.dtype = dtype;
  out.device = device;
  return out;
}

}  // namespace taeda::expr
