// Trigonometric functions and their inverses.

struct Sin {
  template <class V>
  TD_FN V operator()(V x) const {
    return sin(x);
  }
};

struct Cos {
  template <class V>
  TD_FN V operator()(V x) const {
    return cos(x);
  }
};

struct Tan {
  template <class V>
  TD_FN V operator()(V x) const {
    return tan(x);
  }
};

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

// sinc(x) = sin(pi x) / (pi x), 1 at 0
struct Sinc {
  template <class V>
  TD_FN V operator()(V x) const {
    const V t = x * 3.1415926535897932;
    return select(x == 0, V(1), sin(t) / t);
  }
};
