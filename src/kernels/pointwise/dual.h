// Dual<V>: a value and its derivative. A functor evaluated on Dual gives its own derivative. Where
// a function has a kink, the derivative is the one that PyTorch takes.
//
// Constants mix in as plain numbers, never as Duals with derivative 0: 0 * inf would be NaN.
template <class V>
struct Dual {
  using Element = typename V::Element;
  using M = typename V::M;
  V v, d;

  Dual() = default;
  TD_FN Dual(V v, V d) : v(v), d(d) {}
  template <class S>
    requires(requires(S s) { V(s); })
  TD_FN Dual(S s) : v(s), d(0) {}

  friend TD_FN Dual operator+(Dual a, Dual b) { return {a.v + b.v, a.d + b.d}; }
  friend TD_FN Dual operator-(Dual a, Dual b) { return {a.v - b.v, a.d - b.d}; }
  friend TD_FN Dual operator*(Dual a, Dual b) { return {a.v * b.v, a.v * b.d + a.d * b.v}; }
  friend TD_FN Dual operator/(Dual a, Dual b) {
    const V q = a.v / b.v;
    return {q, (a.d - q * b.d) / b.v};
  }
  friend TD_FN Dual operator-(Dual a) { return {-a.v, -a.d}; }
  friend TD_FN M operator<(Dual a, Dual b) { return a.v < b.v; }
  friend TD_FN M operator<=(Dual a, Dual b) { return a.v <= b.v; }
  friend TD_FN M operator>(Dual a, Dual b) { return a.v > b.v; }
  friend TD_FN M operator>=(Dual a, Dual b) { return a.v >= b.v; }
  friend TD_FN M operator==(Dual a, Dual b) { return a.v == b.v; }
  friend TD_FN M operator!=(Dual a, Dual b) { return a.v != b.v; }
  friend TD_FN Dual select(M m, Dual yes, Dual no) {
    return {select(m, yes.v, no.v), select(m, yes.d, no.d)};
  }
  friend TD_FN Dual fma(Dual a, Dual b, Dual c) { return a * b + c; }
  // Equal arguments share the derivative in halves, as torch.maximum does.
  friend TD_FN Dual max(Dual a, Dual b) {
    return {max(a.v, b.v), select(a.v == b.v, (a.d + b.d) * 0.5, select(a.v > b.v, a.d, b.d))};
  }
  friend TD_FN Dual min(Dual a, Dual b) {
    return {min(a.v, b.v), select(a.v == b.v, (a.d + b.d) * 0.5, select(a.v < b.v, a.d, b.d))};
  }
};

// A constant and a Dual.
template <class S, class V>
concept ConstantOf = requires(S s) {
  V(s);
};
template <class S, class V>
  requires ConstantOf<S, V> TD_FN Dual<V>
operator+(S s, Dual<V> a) { return {V(s) + a.v, a.d}; }
template <class S, class V>
  requires ConstantOf<S, V> TD_FN Dual<V>
operator+(Dual<V> a, S s) { return {a.v + V(s), a.d}; }
template <class S, class V>
  requires ConstantOf<S, V> TD_FN Dual<V>
operator-(S s, Dual<V> a) { return {V(s) - a.v, -a.d}; }
template <class S, class V>
  requires ConstantOf<S, V> TD_FN Dual<V>
operator-(Dual<V> a, S s) { return {a.v - V(s), a.d}; }
template <class S, class V>
  requires ConstantOf<S, V> TD_FN Dual<V>
operator*(S s, Dual<V> a) { return {V(s) * a.v, V(s) * a.d}; }
template <class S, class V>
  requires ConstantOf<S, V> TD_FN Dual<V>
operator*(Dual<V> a, S s) { return {a.v * V(s), a.d * V(s)}; }
template <class S, class V>
  requires ConstantOf<S, V> TD_FN Dual<V>
operator/(Dual<V> a, S s) { return {a.v / V(s), a.d / V(s)}; }
template <class S, class V>
  requires ConstantOf<S, V> TD_FN Dual<V>
operator/(S s, Dual<V> a) {
  const V q = V(s) / a.v;
  return {q, -q / a.v * a.d};
}

// d|x|/dx is 0 at 0.
template <class V>
TD_FN Dual<V> abs(Dual<V> x) {
  return {abs(x.v), select(x.v > 0, x.d, select(x.v < 0, -x.d, V(0)))};
}
template <class V>
TD_FN Dual<V> sqrt(Dual<V> x) {
  const V y = sqrt(x.v);
  return {y, x.d / (y * 2)};
}
template <class V>
TD_FN Dual<V> rsqrt(Dual<V> x) {
  const V y = rsqrt(x.v);
  return {y, x.d * y * y * y * -0.5};
}
template <class V>
TD_FN Dual<V> exp(Dual<V> x) {
  const V y = exp(x.v);
  return {y, x.d * y};
}
template <class V>
TD_FN Dual<V> exp2(Dual<V> x) {
  const V y = exp2(x.v);
  return {y, x.d * y * 0.69314718055994531};
}
template <class V>
TD_FN Dual<V> expm1(Dual<V> x) {
  return {expm1(x.v), x.d * exp(x.v)};  // expm1(x) + 1 has no digits left where x is very negative
}
template <class V>
TD_FN Dual<V> log(Dual<V> x) {
  return {log(x.v), x.d / x.v};
}
template <class V>
TD_FN Dual<V> log2(Dual<V> x) {
  return {log2(x.v), x.d / (x.v * 0.69314718055994531)};
}
template <class V>
TD_FN Dual<V> log10(Dual<V> x) {
  return {log10(x.v), x.d / (x.v * 2.3025850929940457)};
}
template <class V>
TD_FN Dual<V> log1p(Dual<V> x) {
  return {log1p(x.v), x.d / (x.v + 1)};
}
template <class V>
TD_FN Dual<V> sin(Dual<V> x) {
  return {sin(x.v), x.d * cos(x.v)};
}
template <class V>
TD_FN Dual<V> cos(Dual<V> x) {
  return {cos(x.v), -(x.d * sin(x.v))};
}
template <class V>
TD_FN Dual<V> tan(Dual<V> x) {
  const V y = tan(x.v);
  return {y, x.d * (y * y + 1)};
}
template <class V>
TD_FN Dual<V> asin(Dual<V> x) {
  return {asin(x.v), x.d * rsqrt(1 - x.v * x.v)};
}
template <class V>
TD_FN Dual<V> acos(Dual<V> x) {
  return {acos(x.v), -(x.d * rsqrt(1 - x.v * x.v))};
}
template <class V>
TD_FN Dual<V> atan(Dual<V> x) {
  return {atan(x.v), x.d / (x.v * x.v + 1)};
}
template <class V>
TD_FN Dual<V> sinh(Dual<V> x) {
  return {sinh(x.v), x.d * cosh(x.v)};
}
template <class V>
TD_FN Dual<V> cosh(Dual<V> x) {
  return {cosh(x.v), x.d * sinh(x.v)};
}
template <class V>
TD_FN Dual<V> tanh(Dual<V> x) {
  const V y = tanh(x.v);
  return {y, x.d * (1 - y * y)};
}
template <class V>
TD_FN Dual<V> asinh(Dual<V> x) {
  return {asinh(x.v), x.d * rsqrt(x.v * x.v + 1)};
}
template <class V>
TD_FN Dual<V> acosh(Dual<V> x) {
  return {acosh(x.v), x.d * rsqrt(x.v - 1) * rsqrt(x.v + 1)};
}
template <class V>
TD_FN Dual<V> atanh(Dual<V> x) {
  return {atanh(x.v), x.d / (1 - x.v * x.v)};
}
template <class V>
TD_FN Dual<V> erf(Dual<V> x) {
  return {erf(x.v), x.d * exp(-x.v * x.v) * 1.1283791670955126};
}
template <class V>
TD_FN Dual<V> erfc(Dual<V> x) {
  return {erfc(x.v), x.d * exp(-x.v * x.v) * -1.1283791670955126};
}
template <class V>
TD_FN Dual<V> erfinv(Dual<V> x) {
  const V y = erfinv(x.v);
  return {y, x.d * exp(y * y) * 0.88622692545275801};
}
template <class V>
TD_FN Dual<V> lgamma(Dual<V> x) {
  return {lgamma(x.v), x.d * digamma(x.v)};
}
template <class V>
TD_FN Dual<V> digamma(Dual<V> x) {
  return {digamma(x.v), x.d * trigamma(x.v)};
}
// The exponent's part is left out where the exponent is a constant: log(a) need not exist.
template <class V>
TD_FN Dual<V> pow(Dual<V> a, Dual<V> b) {
  const V y = pow(a.v, b.v);
  const V base = select(b.v == 0, V(0), a.d * b.v * pow(a.v, b.v - 1));
  return {y, base + select(b.d == 0, V(0), b.d * y * log(a.v))};
}
// Steps: the derivative is 0 wherever there is one, and PyTorch takes 0 at the jumps.
template <class V>
TD_FN Dual<V> floor(Dual<V> x) {
  return {floor(x.v), V(0)};
}
template <class V>
TD_FN Dual<V> ceil(Dual<V> x) {
  return {ceil(x.v), V(0)};
}
template <class V>
TD_FN Dual<V> trunc(Dual<V> x) {
  return {trunc(x.v), V(0)};
}
template <class V>
TD_FN Dual<V> round(Dual<V> x) {
  return {round(x.v), V(0)};
}
template <class V>
TD_FN Dual<V> sgn(Dual<V> x) {
  return {sgn(x.v), V(0)};
}
template <class V>
TD_FN Dual<V> conj(Dual<V> x) {
  return {conj(x.v), conj(x.d)};
}
// Tests look at the value only.
template <class V>
TD_FN auto isnan(Dual<V> x) {
  return isnan(x.v);
}
template <class V>
TD_FN auto isinf(Dual<V> x) {
  return isinf(x.v);
}
template <class V>
TD_FN auto real(Dual<V> x) {
  return real(x.v);
}

// sigmoid(x) = 1 / (1 + e^-x); the derivative from the value stays finite where e^-x does not.
template <class V>
TD_FN V sigmoid(V x) {
  return 1 / (1 + exp(-x));
}
template <class V>
TD_FN Dual<V> sigmoid(Dual<V> x) {
  const V y = sigmoid(x.v);
  return {y, x.d * y * (1 - y)};
}

// Grad<F, I>: the vector-Jacobian product of F in its I-th input: (gy, x...) -> gy * conj(dF/dx_I).
template <class F, int I>
struct Grad {
  F f;

  template <class V>
  TD_FN V operator()(V gy, V x) const {
    return gy * conj(f(seed<0>(x)).d);
  }
  template <class V>
  TD_FN V operator()(V gy, V x, V y) const {
    return gy * conj(f(seed<0>(x), seed<1>(y)).d);
  }
  template <class V>
  TD_FN V operator()(V gy, V x, V y, V z) const {
    return gy * conj(f(seed<0>(x), seed<1>(y), seed<2>(z)).d);
  }

 private:
  template <int K, class V>
  static TD_FN Dual<V> seed(V x) {
    return {x, V(K == I ? 1 : 0)};
  }
};
