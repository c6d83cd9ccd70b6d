// Choosing between values.

// where(c, x, y): x where c is not 0, else y
struct Where {
  template <class V>
  TD_FN V operator()(V c, V x, V y) const {
    return select(c != 0, x, y);
  }
};

// masked_fill(x, m): value where m is not 0, else x
template <class S>
struct MaskedFill {
  S value;
  template <class V>
  TD_FN V operator()(V x, V m) const {
    return select(m != 0, V(value), x);
  }
};

// The larger; NaN where either is NaN.
struct Maximum {
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return max(x, y);
  }
};

struct Minimum {
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return min(x, y);
  }
};

// The larger; a NaN loses against a number.
struct Fmax {
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return fmax(x, y);
  }
};

struct Fmin {
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return fmin(x, y);
  }
};

// clamp(x, lo, hi) = min(max(x, lo), hi)
struct Clamp {
  template <class V>
  TD_FN V operator()(V x, V lo, V hi) const {
    return min(max(x, lo), hi);
  }
};

// |x| with the sign of y
struct Copysign {
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return copysign(x, y);
  }
};

// heaviside(x, v): 0 below 0, v at 0, 1 above
struct Heaviside {
  template <class V>
  TD_FN V operator()(V x, V v) const {
    return select(x == 0, v, select(x > 0, V(1), V(0)));
  }
};

// The next number after x in the direction of y.
struct Nextafter {
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return nextafter(x, y);
  }
};

// NaN and the infinities replaced by numbers
struct NanToNum {
  double nan;
  double posinf;
  double neginf;
  template <class V>
  TD_FN V operator()(V x) const {
    return select(isnan(x), V(nan), select(isinf(x), select(x > 0, V(posinf), V(neginf)), x));
  }
};
