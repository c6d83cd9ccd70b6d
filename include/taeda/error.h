// Errors: every failed precondition in taeda is a C++ exception derived from taeda::Error.
//
// TD_CHECK(cond, "softmax: dim {} out of range [{}, {}]", dim, lo, hi) raises RuntimeError when
// cond is false; the variants below raise the type that PyTorch raises in Python for the same
// mistake. Errors may be caught and thrown from any thread; those of worker threads are thrown
// again where the program waits for them. A message names the operator, the argument, what was
// expected and what was given. Nothing is formatted unless the check fails.
//
//   try {
//     ones({2, 3}) + ones({4});
//   } catch (const Error& error) {
//     assert(error.kind() == ErrorKind::kRuntime);
//     assert(std::string(error.what()).find("must match") != std::string::npos);
//   }
//   assert(format("{} of {}", 2, true) == "2 of True");
#pragma once

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace taeda {

// The Python exception type that an error becomes. Order is part of the binding layer's table.
// kRuntime is the usual one; kValue is for arguments of the right type and a wrong value where
// PyTorch raises ValueError; kIndex for dimensions and indices out of range; kType for arguments of
// the wrong type, undefined tensors among them. kNotImplemented says that the operator has no
// kernel for that dtype or device.
//
//   ErrorKind kind = ErrorKind::kRuntime;
//   try {
//     ones({2, 3}).size(2);
//   } catch (const Error& error) {
//     kind = error.kind();
//   }
//   assert(kind == ErrorKind::kIndex);
enum class ErrorKind : uint8_t {
  kRuntime,
  kValue,
  kIndex,
  kType,
  kNotImplemented,
  kAttribute,
  kOutOfMemory,  // torch.OutOfMemoryError, a RuntimeError
  kLinAlg,       // torch.linalg.LinAlgError, a RuntimeError
  kAssertion,    // what PyTorch raises where there is no CUDA device
  kOS,           // a file that cannot be opened
};

// what() is PyTorch's message where PyTorch has the error. Only std::bad_alloc of small objects and
// what a program's own callbacks throw leave the library beside it. Arguments are checked before
// anything is written, but for the values of index tensors: an IndexError may leave a part of an
// in-place write behind.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

namespace detail {

std::string to_text(bool value);
std::string to_text(int64_t value);
std::string to_text(uint64_t value);
std::string to_text(double value);
inline std::string to_text(std::string_view value) { return std::string(value); }

// How a value of any printable type becomes text: numbers and strings here, other types by an
// ADL-found to_text(T) beside their definition.
template <class T>
std::string text_of(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return to_text(static_cast<bool>(value));
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(to_text(value));
  } else if constexpr (std::is_integral_v<T>) {
    if constexpr (std::is_signed_v<T>)
      return to_text(static_cast<int64_t>(value));
    else
      return to_text(static_cast<uint64_t>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    return to_text(static_cast<double>(value));
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return std::string(std::string_view(value));
  } else {
    return to_text(value);
  }
}

std::string format_parts(std::string_view format, std::initializer_list<std::string> args);
[[noreturn]] void raise(ErrorKind kind, const std::string& message);

}  // namespace detail

// Replaces each "{}" of `format` by the next argument, written as Python writes it: True, 0.1, nan;
// but whole floats have no ".0". A type of your own takes part by a function to_text(T) beside it.
// Braces without an argument stay, and arguments without braces are left out: nothing is checked.
//
//   assert(format("{} in {}", DType::kInt8, IntSpan({2, 3})) == "int8 in [2, 3]");
template <class... Args>
std::string format(std::string_view format, const Args&... args) {
  return detail::format_parts(format, {detail::text_of(args)...});
}

// Throws an Error whose message is format(message, args...). Kept out of line, so that a check
// costs its caller a comparison and a jump.
template <class... Args>
[[noreturn, gnu::noinline, gnu::cold]] void fail(ErrorKind kind, std::string_view message,
                                                 const Args&... args) {
  detail::raise(kind, taeda::format(message, args...));
}

}  // namespace taeda

// Each throws unless the condition holds: RuntimeError, ValueError, IndexError, TypeError,
// NotImplementedError, or the ErrorKind given. The arguments are a format and what it shows, and
// are evaluated only then. They are no asserts: they stay in release builds.
//
//   const auto checked_root = [](double x) {
//     TD_CHECK_VALUE(x >= 0, "checked_root: expected x >= 0, got {}", x);
//     return std::sqrt(x);
//   };
//   assert(checked_root(9) == 3);
//   EXPECT_THROW(checked_root(-1), Error);
#define TD_CHECK_AS(kind, cond, ...)    \
  do {                                  \
    if (!(cond)) [[unlikely]]           \
      ::taeda::fail(kind, __VA_ARGS__); \
  } while (false)

#define TD_CHECK(cond, ...) TD_CHECK_AS(::taeda::ErrorKind::kRuntime, cond, __VA_ARGS__)
#define TD_CHECK_VALUE(cond, ...) TD_CHECK_AS(::taeda::ErrorKind::kValue, cond, __VA_ARGS__)
#define TD_CHECK_INDEX(cond, ...) TD_CHECK_AS(::taeda::ErrorKind::kIndex, cond, __VA_ARGS__)
#define TD_CHECK_TYPE(cond, ...) TD_CHECK_AS(::taeda::ErrorKind::kType, cond, __VA_ARGS__)
#define TD_CHECK_IMPLEMENTED(cond, ...) \
  TD_CHECK_AS(::taeda::ErrorKind::kNotImplemented, cond, __VA_ARGS__)
