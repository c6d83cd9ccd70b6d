// Activation functions in pieces: rectifiers. Those that are constant beyond a bound: clipped.h.

// relu(x) = max(x, 0); NaN stays NaN and -0 stays -0
struct Relu {
  template <class V>
  TD_FN V operator()(V x) const {
    return select(x < 0, V(0), x);
  }
};

// threshold(x) = x where x > threshold, else value
template <class S>
struct Threshold {
  S threshold;
  S value;
  template <class V>
  TD_FN V operator()(V x) const {
    return select(x <= threshold, V(value), x);
  }
};

// gx = gy where x > threshold, else 0
template <class S>
struct ThresholdBackward {
  S threshold;
  template <class V>
  TD_FN V operator()(V gy, V x) const {
    return select(x <= threshold, V(0), gy);
  }
};

// leaky_relu(x) = x where x > 0, else negative_slope x
template <class S>
struct LeakyRelu {
  S negative_slope;
  template <class V>
  TD_FN V operator()(V x) const {
    return select(x > 0, x, negative_slope * x);
  }
};

// prelu(x, w) = x where x > 0, else w x
struct Prelu {
  template <class V>
  TD_FN V operator()(V x, V w) const {
    return select(x > 0, x, w * x);
  }
};

// elu(x) = scale x where x > 0, else scale alpha (e^(input_scale x) - 1)  [Clevert et al. 2016]
template <class S>
struct Elu {
  S alpha;
  S scale;
  S input_scale;
  template <class V>
  TD_FN V operator()(V x) const {
    return scale * select(x > 0, x, alpha * expm1(input_scale * x));
  }
};

// gx of elu and its kin from y = f(x), which takes x's place: the derivative is `positive` where
// y > 0, else (y + offset) slope.
template <class S>
struct EluResultBackward {
  S offset;
  S slope;
  S positive;
  template <class V>
  TD_FN V operator()(V gy, V y) const {
    return gy * select(y <= 0, (y + offset) * slope, V(positive));
  }
};

// selu(x) = elu(x) with the constants that keep mean 0 and variance 1  [Klambauer et al. 2017]
struct Selu {
  template <class V>
  TD_FN V operator()(V x) const {
    return 1.0507009873554804934 * select(x > 0, x, 1.6732632423543772848 * expm1(x));
  }
};

// celu(x) = x where x > 0, else alpha (e^(x/alpha) - 1)  [Barron 2017]
template <class S>
struct Celu {
  S alpha;
  template <class V>
  TD_FN V operator()(V x) const {
    return select(x > 0, x, alpha * expm1(x / alpha));
  }
};
