// Division that rounds, remainders, greatest common divisors. Integers divided by zero raise.
//
// kIntegers: how dense arrays of integers are divided (kernels/cpu/pointwise/divide.h).

// div(x, y, rounding_mode="trunc"): the quotient rounded towards zero
struct DivTrunc {
  static constexpr Division kIntegers = Division::kTrunc;
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return trunc_divide(x, y);
  }
};

// floor_divide(x, y): the quotient rounded down, as Python's x // y
struct FloorDivide {
  static constexpr Division kIntegers = Division::kFloor;
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return floor_divide(x, y);
  }
};

// remainder(x, y) = x - y floor(x / y): the sign of y, as Python's x % y
struct Remainder {
  static constexpr Division kIntegers = Division::kRemainder;
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return remainder(x, y);
  }
};

// fmod(x, y) = x - y trunc(x / y): the sign of x, as C's fmod
struct Fmod {
  static constexpr Division kIntegers = Division::kFmod;
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return fmod(x, y);
  }
};

// The greatest common divisor, at least 0.
struct Gcd {
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return gcd(x, y);
  }
};

// lcm(x, y) = |x / gcd(x, y) y|, 0 where both are 0
struct Lcm {
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return lcm(x, y);
  }
};
