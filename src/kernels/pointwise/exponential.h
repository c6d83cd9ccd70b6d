// Exponentials and logarithms.

// e^x
struct Exp {
  template <class V>
  TD_FN V operator()(V x) const {
    return exp(x);
  }
};

// 2^x
struct Exp2 {
  template <class V>
  TD_FN V operator()(V x) const {
    return exp2(x);
  }
};

// e^x - 1, accurate near 0
struct Expm1 {
  template <class V>
  TD_FN V operator()(V x) const {
    return expm1(x);
  }
};

// The natural logarithm.
struct Log {
  template <class V>
  TD_FN V operator()(V x) const {
    return log(x);
  }
};

struct Log2 {
  template <class V>
  TD_FN V operator()(V x) const {
    return log2(x);
  }
};

struct Log10 {
  template <class V>
  TD_FN V operator()(V x) const {
    return log10(x);
  }
};

// log(1 + x), accurate near 0
struct Log1p {
  template <class V>
  TD_FN V operator()(V x) const {
    return log1p(x);
  }
};

// xlog1py(x, y) = x log(1 + y), 0 where x = 0 unless y is NaN
struct Xlog1py {
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return select(isnan(y), y, select(x == 0, V(0), x * log1p(y)));
  }
};

// logaddexp(x, y) = log(e^x + e^y) = max + log1p(e^(min - max)); equal infinities stay themselves.
// Complex numbers are ordered by their real parts; a NaN in either part makes both NaN.
struct Logaddexp {
  template <class V>
  TD_FN V operator()(V x, V y) const {
    if constexpr (requires { x.raw.real(); }) {
      const auto a = real(x), b = real(y);
      const V low = select(a < b, x, y), high = select(a < b, y, x);
      const V sum = isinf(a) & (a == b) ? (a < 0 ? low : log(exp(low) + exp(high)))
                                        : high + log1p(exp(low - high));
      return select(isnan(x) | isnan(y), (x + y) * V(kNaN), sum);
    } else {
      return select(isinf(x) & (x == y), x, max(x, y) + log1p(exp(-abs(x - y))));
    }
  }
};

// logaddexp2(x, y) = log2(2^x + 2^y)
struct Logaddexp2 {
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return select(isinf(x) & (x == y), x,
                  max(x, y) + log1p(exp2(-abs(x - y))) * 1.4426950408889634);
  }
};

// xlogy(x, y) = x log(y), 0 where x = 0 unless y is NaN
struct Xlogy {
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return select(isnan(y), y, select(x == 0, V(0), x * log(y)));
  }
};

// logit(x) = log(x / (1 - x)), the inverse of sigmoid
struct Logit {
  template <class V>
  TD_FN V operator()(V x) const {
    return log(x / (1 - x));
  }
};

// gx = gy / (x (1 - x)), infinite at 0 and 1 and NaN beyond
struct LogitBackward {
  template <class V>
  TD_FN V operator()(V gy, V x) const {
    return select((x < 0) | (x > 1), V(kNaN), gy / (x * (1 - x)));
  }
};
