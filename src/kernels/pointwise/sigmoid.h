// Smooth activation functions: the sigmoid, and what is made of it or of its like.

// sigmoid(x) = 1 / (1 + e^-x)
struct Sigmoid {
  template <class V>
  TD_FN V operator()(V x) const {
    return sigmoid(x);
  }
};

// gx = gy y (1 - y), y = sigmoid(x)
struct SigmoidBackward {
  template <class V>
  TD_FN V operator()(V gy, V y) const {
    return gy * conj(y * (1 - y));
  }
};

// log(sigmoid(x)) = min(x, 0) - log(1 + e^-|x|), written without the kink of |x| at 0
struct LogSigmoid {
  template <class V>
  TD_FN V operator()(V x) const {
    return select(x < 0, x, V(0)) - log1p(exp(select(x < 0, x, -x)));
  }
};

// -t log(sigmoid(x)) - (1 - t) log(sigmoid(-x)), without the difference of large numbers
struct CrossEntropyOfLogit {
  template <class V>
  TD_FN V operator()(V x, V t) const {
    return (1 - t) * x - LogSigmoid{}(x);
  }
};

// silu(x) = x sigmoid(x)  [Elfwing et al. 2017]
struct Silu {
  template <class V>
  TD_FN V operator()(V x) const {
    return x * sigmoid(x);
  }
};

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
