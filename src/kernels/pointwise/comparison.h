// Comparisons: bool results.

// lt(x, y) = x < y
struct Lt {
  template <class V>
  TD_FN auto operator()(V x, V y) const { return x < y; }
};

// eq(x, y) = x == y
struct Eq {
  template <class V>
  TD_FN auto operator()(V x, V y) const { return x == y; }
};
