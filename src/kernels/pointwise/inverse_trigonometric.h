// Inverse trigonometric functions, hypot.

struct Asin {
  template <class V>
  TD_FN V operator()(V x) const {
    return asin(x);
  }
};

struct Acos {
  template <class V>
  TD_FN V operator()(V x) const {
    return acos(x);
  }
};

struct Atan {
  template <class V>
  TD_FN V operator()(V x) const {
    return atan(x);
  }
};

// The angle of the point (x, y), in (-pi, pi].
struct Atan2 {
  template <class V>
  TD_FN V operator()(V y, V x) const {
    return atan2(y, x);
  }
};

// hypot(x, y) = sqrt(x^2 + y^2), without overflow in between
struct Hypot {
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return hypot(x, y);
  }
};
