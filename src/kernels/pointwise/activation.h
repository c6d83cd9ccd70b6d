// Activation functions.

// relu(x) = max(x, 0), with derivative 0 at 0; NaN stays NaN
struct Relu {
  template <class V>
  TD_FN V operator()(V x) const { return select(x <= 0, V(0), x); }
};

// sigmoid(x) = 1 / (1 + e^-x)
struct Sigmoid {
  template <class V>
  TD_FN V operator()(V x) const { return 1 / (1 + exp(-x)); }
};

// gelu(x) = x Phi(x) = x/2 (1 + erf(x / sqrt(2)))          [Hendrycks & Gimpel 2016]
struct Gelu {
  template <class V>
  TD_FN V operator()(V x) const { return 0.5 * x * (1 + erf(x * 0.70710678118654752)); }
};

// gelu_tanh(x) = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))          [Hendrycks & Gimpel 2016]
struct GeluTanh {
  template <class V>
  TD_FN V operator()(V x) const {
    const V inner = 0.79788456080286536 * (x + 0.044715 * x * x * x);
    return 0.5 * x * (1 + tanh(inner));
  }
};
