// Error functions, Bessel functions, the normal distribution, entropy.

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

// e^(x^2) erfc(x)
struct Erfcx {
  template <class V>
  TD_FN V operator()(V x) const {
    return erfcx(x);
  }
};

// The derivative of y = erfcx(x), 2 x y - 2 / sqrt(pi), which cancels as x grows: there by
// the asymptotic series.
struct ErfcxSlope {
  template <class V>
  TD_FN V operator()(V x, V y) const {
    const V r = 0.5 / (x * x);
    const V series = 1 - r * (3 - r * (15 - r * (105 - r * (945 - r * 10395))));
    return select(x > 27, series * r * -1.1283791670955126, x * y * 2 - 1.1283791670955126);
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
