// Smooth activation functions: the sigmoid, and what is made of it.

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
