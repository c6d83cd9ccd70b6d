// Exponentials and logarithms.

// exp(x) = e^x
struct Exp {
  template <class V>
  TD_FN V operator()(V x) const { return exp(x); }
};
