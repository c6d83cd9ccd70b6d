// Error functions and gamma functions.

// erf(x) = 2/sqrt(pi) int_0^x e^(-t^2) dt
struct Erf {
  template <class V>
  TD_FN V operator()(V x) const {
    return erf(x);
  }
};

// erfc(x) = 1 - erf(x), accurate for large x
struct Erfc {
  template <class V>
  TD_FN V operator()(V x) const {
    return erfc(x);
  }
};

// The inverse of erf.
struct Erfinv {
  template <class V>
  TD_FN V operator()(V x) const {
    return erfinv(x);
  }
};

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

// e^(x^2) erfc(x)
struct Erfcx {
  template <class V>
  TD_FN V operator()(V x) const {
    return erfcx(x);
  }
};

// The inverse of the normal distribution function.
struct Ndtri {
  template <class V>
  TD_FN V operator()(V x) const {
    return ndtri(x);
  }
};

// I_0(x) e^-|x|
struct I0e {
  template <class V>
  TD_FN V operator()(V x) const {
    return i0e(x);
  }
};

// I_1(x) e^-|x|
struct I1e {
  template <class V>
  TD_FN V operator()(V x) const {
    return i1e(x);
  }
};

// -x log(x), 0 at 0 and -inf below
struct Entr {
  template <class V>
  TD_FN V operator()(V x) const {
    const V below = select(x == 0, V(0), V(-kInf));
    return select(isnan(x), x, select(x > 0, -x * log(x), below));
  }
};
