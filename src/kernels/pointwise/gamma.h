// Gamma functions, Hurwitz' zeta function.

// log|gamma(x)|
struct Lgamma {
  template <class V>
  TD_FN V operator()(V x) const {
    return lgamma(x);
  }
};

// digamma(x) = d/dx log|gamma(x)|
struct Digamma {
  template <class V>
  TD_FN V operator()(V x) const {
    return digamma(x);
  }
};

// trigamma(x) = d/dx digamma(x)
struct Trigamma {
  template <class V>
  TD_FN V operator()(V x) const {
    return trigamma(x);
  }
};

// Hurwitz' zeta function, the sum of (q + k)^-s over k >= 0
struct Zeta {
  template <class V>
  TD_FN V operator()(V s, V q) const {
    return zeta(s, q);
  }
};

// P(a, x), the regularized lower incomplete gamma function
struct Igamma {
  template <class V>
  TD_FN V operator()(V a, V x) const {
    return igamma(a, x);
  }
};

// Q(a, x) = 1 - P(a, x)
struct Igammac {
  template <class V>
  TD_FN V operator()(V a, V x) const {
    return igammac(a, x);
  }
};
