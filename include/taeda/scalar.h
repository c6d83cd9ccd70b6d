// Scalar: one number of any Python kind (bool, int, float, complex), as operators take them.
//
// It keeps its kind: in type promotion an int beside a float tensor leaves the tensor's dtype, a
// float beside an int tensor gives the default floating dtype. Integers are int64, other numbers
// double. Numbers of C++ convert to it. PyTorch's c10::Scalar is the same idea.
//
// It is a value: nothing is shared or allocated, and any thread may read it. Only conversions
// raise, where the number does not fit.
//
//   const Scalar half = 0.5, three = 3;
//   assert(three.is_integral() && half.to<float>() == 0.5f && half.to_int() == 0);
//   assert(three == Scalar(3.0) && three.dtype() == DType::kInt64);
#pragma once

#include <complex>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "taeda/dtype.h"
#include "taeda/error.h"

namespace taeda {

// A value of 24 bytes: copies share nothing. Half, BFloat16 and the eight-bit formats become
// floats, the library's Bool a bool; a pointer is no number and does not compile.
//
//   assert(Scalar(Half(0.5f)).is_float() && Scalar(Half(0.5f)) == Scalar(0.5));
//   static_assert(!std::is_constructible_v<Scalar, const char*>);
//
//   assert((ones({2}, DType::kInt64) * Scalar(2)).dtype() == DType::kInt64);
//   assert((ones({2}, DType::kInt64) * Scalar(2.0)).dtype() == DType::kFloat32);
//   assert((ones({2}, DType::kFloat64) * Scalar(2)).dtype() == DType::kFloat64);
class Scalar {
 public:
  // In the order of promotion. What kind a number of C++ becomes follows from its type alone: any
  // integer type is kInt, float and double are kFloat, whatever the value.
  //
  //   assert(Scalar(true).kind() == Scalar::Kind::kBool);
  //   assert(Scalar(1u).is_integral() && Scalar(1.0f).is_float());
  enum class Kind : uint8_t { kBool, kInt, kFloat, kComplex };

  Scalar() : Scalar(int64_t{0}) {}
  template <class T>
    requires(std::is_same_v<T, bool> || std::is_same_v<T, Bool>)
  Scalar(T value) : kind_(Kind::kBool) { int_ = static_cast<bool>(value); }
  template <StoredFloat T>
  Scalar(T value) : Scalar(static_cast<float>(value)) {}
  template <class T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
  Scalar(T value) : kind_(Kind::kInt) {
    int_ = static_cast<int64_t>(value);
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) huge_ = int_ < 0;
  }
  template <class T>
    requires std::is_floating_point_v<T> Scalar(T value) : kind_(Kind::kFloat) {
      real_ = static_cast<double>(value);
    }
    Scalar(std::complex<double> value) : kind_(Kind::kComplex), imag_(value.imag()) {
      real_ = value.real();
    }

    // Exactly one of bool, int, float and complex; is_integral() is true of bools, too, as
    // isIntegral(includeBool=true) is in PyTorch.
    Kind kind() const { return kind_; }
    bool is_integral() const { return kind_ <= Kind::kInt; }
    bool is_bool() const { return kind_ == Kind::kBool; }
    bool is_float() const { return kind_ == Kind::kFloat; }
    bool is_complex() const { return kind_ == Kind::kComplex; }
    // An integer from 2^63 on, which only uint64 can hold: to<uint64_t>() and the floating types
    // give it, every other integer type is a RuntimeError.
    //
    //   const Scalar most = std::numeric_limits<uint64_t>::max();
    //   assert(most.is_huge() && most.to<double>() == 0x1p64);
    //   EXPECT_THROW(most.to<int64_t>(), Error);
    bool is_huge() const { return huge_; }

    // The value as T. RuntimeError for a complex value with a nonzero imaginary part as a real
    // type, and for a number outside an integer type's range (for unsigned types, negative integers
    // wrap around as in PyTorch). Fractions are cut off toward zero. NaN and infinities fit no
    // integer type. Floating types are not checked: what is too large for one becomes infinite, and
    // integers beyond its mantissa are rounded.
    //
    //   assert(Scalar(-2.7).to<int64_t>() == -2 && Scalar(-1).to<uint8_t>() == 255);
    //   EXPECT_THROW(Scalar(300).to<uint8_t>(), Error);
    //   EXPECT_THROW(Scalar(std::complex<double>(1, 2)).to<float>(), Error);
    template <class T>
    T to() const {
      if constexpr (std::is_same_v<T, std::complex<float>> ||
                    std::is_same_v<T, std::complex<double>>) {
        using R = typename T::value_type;
        return T(static_cast<R>(is_integral() ? integer_as<double>() : real_),
                 static_cast<R>(imag_));
      } else if constexpr (std::is_same_v<T, ComplexHalf>) {
        return T(to<std::complex<float>>());
      } else {
        if (is_complex()) [[unlikely]]
          check_real();
        if constexpr (StoredFloat<T>)
          return T(to<float>());
        else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, Bool>)
          return is_integral() ? int_ != 0 : real_ != 0;
        else if constexpr (std::is_integral_v<T>)
          return is_integral() ? narrow<T>(int_) : cut<T>();
        else if (is_integral())
          return integer_as<T>();
        else
          return static_cast<T>(real_);
      }
    }
    // to<T>() by name, but that to_int() drops an imaginary part where to<int64_t>() raises.
    // to_bool() is true for anything but zero, NaN included; of a complex number both parts count.
    double to_double() const { return to<double>(); }
    int64_t to_int() const { return is_integral() ? narrow<int64_t>(int_) : to_int64(); }
    // An integer modulo 2^64, as it lies in a tensor of 64-bit integers: 2^64 - 1 is -1. Other
    // numbers as to_int().
    int64_t wrapped_int() const { return is_integral() ? int_ : to_int64(); }
    bool to_bool() const { return is_complex() ? real_ != 0 || imag_ != 0 : to<bool>(); }
    std::complex<double> to_complex() const { return to<std::complex<double>>(); }

    // The dtype of a Python number in type promotion: bool, int64, the default float, its complex.
    // The last two follow set_default_dtype() at the time of the call.
    DType dtype() const;

    // Of the same kind, but that a bool becomes an int, as in Python. Integers wrap around: int64's
    // least value is its own negative.
    Scalar operator-() const {
      if (is_integral()) return Scalar(static_cast<int64_t>(0 - static_cast<uint64_t>(int_)));
      if (is_float()) return Scalar(-real_);
      return Scalar(std::complex<double>(-real_, -imag_));
    }
    // By value, whatever the kinds: integers exactly, others as complex doubles. So true equals 1
    // and 1.0, NaN equals nothing, and beside a float an integer above 2^53 is rounded first.
    //
    //   assert(Scalar(true) == Scalar(1.0) && Scalar(2) == Scalar(std::complex<double>(2, 0)));
    //   assert(!(Scalar(NAN) == Scalar(NAN)));
    friend bool operator==(const Scalar& a, const Scalar& b) {
      if (a.is_integral() && b.is_integral()) return a.int_ == b.int_ && a.huge_ == b.huge_;
      return a.to_complex() == b.to_complex();
    }

   private:
    void check_real() const {
      TD_CHECK(imag_ == 0,
               "value cannot be converted to a real type without overflow: imaginary part is {}",
               imag_);
    }
    template <class T>
    T integer_as() const {
      return huge_ ? static_cast<T>(static_cast<uint64_t>(int_)) : static_cast<T>(int_);
    }
    template <class T>
    T narrow(int64_t value) const {
      if (huge_ && !std::is_same_v<T, uint64_t>) [[unlikely]]
        fail_overflow(sizeof(T), std::is_signed_v<T>);
      if constexpr (sizeof(T) < sizeof(int64_t)) {
        constexpr int64_t hi = static_cast<int64_t>(std::numeric_limits<T>::max());
        constexpr int64_t lo = std::is_signed_v<T> ? -hi - 1 : -hi;
        if (value < lo || value > hi) [[unlikely]]
          fail_overflow(sizeof(T), std::is_signed_v<T>);
      }
      return static_cast<T>(value);
    }
    // Without its fraction; the number itself must lie in T's range.
    template <class T>
    T cut() const {
      using L = std::numeric_limits<T>;
      if constexpr (sizeof(T) < sizeof(int64_t)) {
        if (real_ < static_cast<double>(L::lowest()) || real_ > static_cast<double>(L::max()))
            [[unlikely]]
          fail_overflow(sizeof(T), std::is_signed_v<T>);
      }
      if constexpr (std::is_same_v<T, uint64_t>) {
        if (real_ >= 0x1p63 && real_ < 0x1p64) return static_cast<T>(real_);
      }
      return static_cast<T>(to_int64());
    }
    [[noreturn]] void fail_overflow(size_t bytes, bool is_signed) const;
    int64_t to_int64() const;  // truncates; RuntimeError where the value does not fit

    union {
      int64_t int_;
      double real_;
    };
    Kind kind_;
    bool huge_ = false;  // int_ is a uint64_t
    double imag_ = 0;
};

// As Python writes the number, but that a whole float has no ".0". Messages show numbers so.
//
//   assert(to_text(Scalar(true)) == "True" && to_text(Scalar(0.1)) == "0.1");
//   assert(to_text(Scalar(std::complex<double>(1, -2))) == "(1-2j)");
std::string to_text(const Scalar& value);

}  // namespace taeda
