// Powers.

// pow(x, y) = x^y. Small integer powers are products: that is what most calls ask for.
struct Pow {
  template <class V>
  TD_FN V operator()(V x, V y) const {
    const V square = x * x, cube = square * x;
    if (all(y == 2)) return square;
    if (all(y == 3)) return cube;
    return select(y == 2, square, select(y == 3, cube, pow(x, y)));  // whatever the neighbours are
  }
};

// d(x^y)/dx gy = y x^(y-1) gy, and 0 for y = 0 wherever x is
struct PowBackwardSelf {
  template <class V>
  TD_FN V operator()(V gy, V x, V y) const {
    if (all(y == 2)) return gy * conj(x * 2);
    return select(y == 0, V(0), gy * conj(y * pow(x, y - 1)));
  }
};

// d(x^y)/dy gy = x^y log(x) gy, and 0 at x = 0 for y >= 0; r = x^y
struct PowBackwardExponent {
  template <class V>
  TD_FN V operator()(V gy, V x, V y, V r) const {
    return select((x == 0) & (real(y) >= 0), V(0), gy * conj(r * log(x)));
  }
};
