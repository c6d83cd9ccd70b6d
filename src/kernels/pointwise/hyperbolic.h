// Hyperbolic functions and their inverses.

struct Sinh {
  template <class V>
  TD_FN V operator()(V x) const {
    return sinh(x);
  }
};

struct Cosh {
  template <class V>
  TD_FN V operator()(V x) const {
    return cosh(x);
  }
};

// tanh(x) = (e^x - e^-x) / (e^x + e^-x)
struct Tanh {
  template <class V>
  TD_FN V operator()(V x) const {
    return tanh(x);
  }
};

// gx = gy (1 - y^2), y = tanh(x)
struct TanhBackward {
  template <class V>
  TD_FN V operator()(V gy, V y) const {
    return gy * conj(1 - y * y);
  }
};

struct Asinh {
  template <class V>
  TD_FN V operator()(V x) const {
    return asinh(x);
  }
};

struct Acosh {
  template <class V>
  TD_FN V operator()(V x) const {
    return acosh(x);
  }
};

struct Atanh {
  template <class V>
  TD_FN V operator()(V x) const {
    return atanh(x);
  }
};
