// Comparisons and tests: bool results.

struct Eq {
  template <class V>
  TD_FN auto operator()(V x, V y) const {
    return x == y;
  }
};

struct Ne {
  template <class V>
  TD_FN auto operator()(V x, V y) const {
    return x != y;
  }
};

struct Lt {
  template <class V>
  TD_FN auto operator()(V x, V y) const {
    return x < y;
  }
};

struct Le {
  template <class V>
  TD_FN auto operator()(V x, V y) const {
    return x <= y;
  }
};

struct Gt {
  template <class V>
  TD_FN auto operator()(V x, V y) const {
    return x > y;
  }
};

struct Ge {
  template <class V>
  TD_FN auto operator()(V x, V y) const {
    return x >= y;
  }
};

struct Isnan {
  template <class V>
  TD_FN auto operator()(V x) const {
    return isnan(x);
  }
};

struct Isinf {
  template <class V>
  TD_FN auto operator()(V x) const {
    return isinf(x);
  }
};

struct Isfinite {
  template <class V>
  TD_FN auto operator()(V x) const {
    return isfinite(x);
  }
};

struct Isposinf {
  template <class V>
  TD_FN auto operator()(V x) const {
    return isinf(x) & (x > 0);
  }
};

struct Isneginf {
  template <class V>
  TD_FN auto operator()(V x) const {
    return isinf(x) & (x < 0);
  }
};

// Whether the sign bit is set: true for -0.
struct Signbit {
  template <class V>
  TD_FN auto operator()(V x) const {
    return signbit(x);
  }
};
