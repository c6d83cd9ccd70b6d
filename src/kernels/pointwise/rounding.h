// Rounding. Integers are their own roundings.

struct Floor {
  template <class V>
  TD_FN V operator()(V x) const {
    return floor(x);
  }
};

struct Ceil {
  template <class V>
  TD_FN V operator()(V x) const {
    return ceil(x);
  }
};

// To the nearest integer, halves to even.
struct Round {
  template <class V>
  TD_FN V operator()(V x) const {
    return round(x);
  }
};

// Towards zero.
struct Trunc {
  template <class V>
  TD_FN V operator()(V x) const {
    return trunc(x);
  }
};

// frac(x) = x - trunc(x)
struct Frac {
  template <class V>
  TD_FN V operator()(V x) const {
    return x - trunc(x);
  }
};
