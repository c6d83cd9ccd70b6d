// Activation functions that are clipped, or zero in an interval: the hard and shrinking forms.

// hardtanh(x) = min(max(x, min_val), max_val); a -0 at the bound 0 stays
template <class S>
struct Hardtanh {
  S min_val;
  S max_val;
  template <class V>
  TD_FN V operator()(V x) const {
    return select(x < min_val, V(min_val), select(x > max_val, V(max_val), x));
  }
};

// gx = gy where min_val < x < max_val, else 0
template <class S>
struct HardtanhBackward {
  S min_val;
  S max_val;
  template <class V>
  TD_FN V operator()(V gy, V x) const {
    return select(x <= min_val, V(0), select(x >= max_val, V(0), gy));
  }
};

// hardsigmoid(x) = min(max(x + 3, 0), 6) / 6
struct Hardsigmoid {
  template <class V>
  TD_FN V operator()(V x) const {
    const V inside = select(x < 3, (x + 3) / 6, x * 0);  // NaN has the slope 0
    return select(x <= -3, V(0), select(x >= 3, V(1), inside));
  }
};

// hardswish(x) = x hardsigmoid(x)  [Howard et al. 2019]
struct Hardswish {
  template <class V>
  TD_FN V operator()(V x) const {
    return select(x <= -3, x * 0, select(x >= 3, x, x * (x + 3) / 6));
  }
};

// hardshrink(x) = x where |x| > lambd, else 0
template <class S>
struct Hardshrink {
  S lambd;
  template <class V>
  TD_FN V operator()(V x) const {
    return select(abs(x) <= lambd, V(0), x);
  }
};

// softshrink(x) = x - lambd above lambd, x + lambd below -lambd, else 0
template <class S>
struct Softshrink {
  S lambd;
  template <class V>
  TD_FN V operator()(V x) const {
    return select(x > lambd, x - lambd, select(x < -V(lambd), x + lambd, x * 0));
  }
};
