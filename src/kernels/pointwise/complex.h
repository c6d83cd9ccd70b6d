// Complex numbers. Real numbers count as complex ones with imaginary part 0.

struct Conj {
  template <class V>
  TD_FN V operator()(V x) const {
    return conj(x);
  }
};

// The angle of a complex number, a real one; of real numbers 0 or pi.
struct Angle {
  template <class V>
  TD_FN auto operator()(V x) const {
    return angle(x);
  }
};

// gx = gy i z / |z|^2, 0 for real numbers and at 0
struct AngleBackward {
  template <class V>
  TD_FN V operator()(V gy, V x) const {
    return gy * angle_gradient(x);
  }
};
