// Sums, products and quotients.

// add(x, y) = x + alpha y
template <class S>
struct Add {
  S alpha;
  template <class V>
  TD_FN V operator()(V x, V y) const { return x + alpha * y; }
};

// sub(x, y) = x - alpha y
template <class S>
struct Sub {
  S alpha;
  template <class V>
  TD_FN V operator()(V x, V y) const { return x - alpha * y; }
};

// mul(x, y) = x y
struct Mul {
  template <class V>
  TD_FN V operator()(V x, V y) const { return x * y; }
};

// div(x, y) = x / y
struct Div {
  template <class V>
  TD_FN V operator()(V x, V y) const { return x / y; }
};
