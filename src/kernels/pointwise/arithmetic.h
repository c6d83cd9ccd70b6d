// Sums, products, quotients and what is made of them.

// add(x, y) = x + alpha y
template <class S>
struct Add {
  S alpha;
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return x + alpha * y;
  }
};

// sub(x, y) = x - alpha y
template <class S>
struct Sub {
  S alpha;
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return x - alpha * y;
  }
};

// mul(x, y) = x y
struct Mul {
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return x * y;
  }
};

// div(x, y) = x / y
struct Div {
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return x / y;
  }
};

// addcmul(x, a, b) = x + value a b
template <class S>
struct Addcmul {
  S value;
  template <class V>
  TD_FN V operator()(V x, V a, V b) const {
    return x + value * a * b;
  }
};

// addcdiv(x, a, b) = x + value a / b
template <class S>
struct Addcdiv {
  S value;
  template <class V>
  TD_FN V operator()(V x, V a, V b) const {
    return x + value * a / b;
  }
};

// lerp(x, y, w) = x + w (y - x), from the nearer end, so that w = 0 and w = 1 are exact
struct Lerp {
  template <class V>
  TD_FN V operator()(V x, V y, V w) const {
    return select(abs(w) < 0.5, x + w * (y - x), y - (y - x) * (1 - w));
  }
};

struct Neg {
  template <class V>
  TD_FN V operator()(V x) const {
    return -x;
  }
};

// |x|; the modulus of a complex number, a real one
struct Abs {
  template <class V>
  TD_FN auto operator()(V x) const {
    return abs(x);
  }
};

// reciprocal(x) = 1 / x
struct Reciprocal {
  template <class V>
  TD_FN V operator()(V x) const {
    return 1 / x;
  }
};

// square(x) = x^2
struct Square {
  template <class V>
  TD_FN V operator()(V x) const {
    return x * x;
  }
};

// sqrt(x)
struct Sqrt {
  template <class V>
  TD_FN V operator()(V x) const {
    return sqrt(x);
  }
};

// rsqrt(x) = 1 / sqrt(x)
struct Rsqrt {
  template <class V>
  TD_FN V operator()(V x) const {
    return rsqrt(x);
  }
};

// sign(x): -1, 0 or 1; 0 for NaN
struct Sign {
  template <class V>
  TD_FN V operator()(V x) const {
    return select(x > 0, V(1), select(x < 0, V(-1), V(0)));
  }
};

// sgn(z) = z / |z|, 0 at 0
struct Sgn {
  template <class V>
  TD_FN V operator()(V x) const {
    return sgn(x);
  }
};
