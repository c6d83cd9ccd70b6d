// Smooth rectifiers: mish, softplus, gelu.

// mish(x) = x tanh(log(1 + e^x)) = x t / (t + 2), t = e^x (e^x + 2)  [Misra 2019]
struct Mish {
  template <class V>
  TD_FN V operator()(V x) const {
    const V e = exp(min(x, V(20))), t = e * (e + 2);
    return select(x > 20, x, x * t / (t + 2));
  }
};

// softplus(x) = log(1 + e^(beta x)) / beta, and x where beta x > threshold
template <class S>
struct Softplus {
  S beta;
  S threshold;
  template <class V>
  TD_FN V operator()(V x) const {
    const V z = x * beta;
    return select(z > threshold, x, log1p(exp(z)) / beta);
  }
};

// gelu(x) = x Phi(x) = x/2 (1 + erf(x / sqrt(2)))  [Hendrycks & Gimpel 2016]
struct Gelu {
  template <class V>
  TD_FN V operator()(V x) const {
    return 0.5 * x * (1 + erf(x * 0.70710678118654752));
  }
};

// gelu(x) with Phi approximated: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
struct GeluTanh {
  template <class V>
  TD_FN V operator()(V x) const {
    const V inner = 0.79788456080286536 * (x + 0.044715 * x * x * x);
    return 0.5 * x * (1 + tanh(inner));
  }
};
