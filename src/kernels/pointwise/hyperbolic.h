// Hyperbolic functions and their inverses.

// tanh(x) = (e^x - e^-x) / (e^x + e^-x)
struct Tanh {
  template <class V>
  TD_FN V operator()(V x) const { return tanh(x); }
};
