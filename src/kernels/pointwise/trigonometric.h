// Trigonometric functions.

struct Sin {
  template <class V>
  TD_FN V operator()(V x) const {
    return sin(x);
  }
};

struct Cos {
  template <class V>
  TD_FN V operator()(V x) const {
    return cos(x);
  }
};

struct Tan {
  template <class V>
  TD_FN V operator()(V x) const {
    return tan(x);
  }
};

// sinc(x) = sin(pi x) / (pi x), 1 at 0. Taylor's series near 0, where the quotient's derivative
// would be the difference of two large numbers.
struct Sinc {
  template <class V>
  TD_FN V operator()(V x) const {
    const V t = x * 3.1415926535897932, z = t * t;
    const V near =
        1 -
        z / 6 *
            (1 -
             z / 20 *
                 (1 - z / 42 *
                          (1 - z / 72 *
                                   (1 - z / 110 * (1 - z / 156 * (1 - z / 210 * (1 - z / 272)))))));
    return select(real(z * conj(z)) < 1, near, sin(t) / t);
  }
};
