// Logic on truth values (anything but 0 is true; bool results) and on bits.

struct LogicalAnd {
  template <class V>
  TD_FN typename V::M operator()(V x, V y) const {
    return (x != 0) & (y != 0);
  }
};

struct LogicalOr {
  template <class V>
  TD_FN typename V::M operator()(V x, V y) const {
    return (x != 0) | (y != 0);
  }
};

struct LogicalXor {
  template <class V>
  TD_FN typename V::M operator()(V x, V y) const {
    return (x != 0) ^ (y != 0);
  }
};

struct LogicalNot {
  template <class V>
  TD_FN auto operator()(V x) const {
    return x == 0;
  }
};

struct BitwiseAnd {
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return bit_and(x, y);
  }
};

struct BitwiseOr {
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return bit_or(x, y);
  }
};

struct BitwiseXor {
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return bit_xor(x, y);
  }
};

struct BitwiseNot {
  template <class V>
  TD_FN V operator()(V x) const {
    return bit_not(x);
  }
};

// x 2^y, 0 where y is negative or not below the number of bits
struct BitwiseLeftShift {
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return shift_left(x, y);
  }
};

// x / 2^y rounded down; all bits become the sign where y is negative or not below the number of
// bits
struct BitwiseRightShift {
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return shift_right(x, y);
  }
};
