// logcumsumexp, and what gradients and tangents of it and of cumprod are made of.
//
//   recurrence: s_i = c_i s_{i-1} + b_i, with c_i made of elements i - 1 and i of the last operand
//   products:   y_i = y_i prod_{j < i} x_j
//   tangent:    s_i = sum_{j <= i} t_j prod_{k <= i, k != j} x_k
//
// A step of each is a map, and maps are composed by a scan (scan.cuh): s -> c s + b for the
// recurrence, products of dual numbers for the tangent. Complex rows are gone along by one thread.
// Operands are read once, but for neighbours from a cache, and results written once.
#pragma once
#include "kernels/cuda/text/scan.cuh"
#include "kernels/log_add_exp.h"

namespace taeda::device {

// write(i, load(0) op ... op load(i)) for each element of a row.
template <class T, class S, class Load, class Combine, class Write>
TD_FN void scan_row(const Row& row, const S& identity, Load load, Combine combine, Write write) {
  S carry = identity;
  if constexpr (kIsComplex<T>) {
    if (row.group.rank() != 0) return;
    for (uint64_t i = 0; i < row.args.n; i++) write(i, carry = combine(carry, load(i)));
  } else {
    for (uint64_t base = 0; base < row.args.n; base += row.args.threads) {
      const uint64_t i = base + row.group.rank();
      S s = i < row.args.n ? load(i) : identity, all;
      s = combine(carry, scan(row.group, s, all, combine));
      carry = combine(carry, all);
      if (i < row.args.n) write(i, s);
    }
  }
}

template <class T>
TD_FN void logcumsumexp_kernel(const RowArgs& args) {
  if constexpr (kIsComplex<T>) {
    for_each_row(args, [](const Row& row) {
      LogAddExp<T> total;
      if (row.group.rank() != 0) return;
      for (uint64_t i = 0; i < row.args.n; i++) row.set(i, total(row.get<T>(1, i)));
    });
  } else {
    scan_rows<LogSumExp<T>>(args, [](const Row& row, uint64_t i, const auto& s) {
      row.set(i, s.high + std::log(s.sum));
    });
  }
}

template <class T>
TD_FN T conjugate(T x) {
  if constexpr (kIsComplex<T>)
    return std::conj(x);
  else
    return x;
}
// exp(a - b), where equal infinities differ by 0.
template <class T>
TD_FN T exp_difference(T a, T b) {
  return a == b ? T(1) : std::exp(a - b);
}

// The coefficients c_i by the elements before and at i.
struct ElementBefore {  // of cumprod's gradient, from the end
  template <class T>
  TD_FN static T of(T before, T) {
    return conjugate(before);
  }
};
struct ExpOfDecrease {  // of logcumsumexp's tangent
  template <class T>
  TD_FN static T of(T before, T at) {
    return exp_difference(before, at);
  }
};
struct ExpOfIncrease {  // of its gradient, from the end
  template <class T>
  TD_FN static T of(T before, T at) {
    return conjugate(exp_difference(at, before));
  }
};

// What maps are composed in. A product may be infinite, or 0, where the elements before it undo
// that; of float none of up to 8 elements is, in double.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float>, double, T>;

// s -> scale s + shift
template <class T>
struct Affine {
  T scale, shift;
};
// Operands: s, b, what the coefficients are made of.
template <class C, class T>
TD_FN void recurrence_kernel(const RowArgs& args) {
  using Map = Affine<Wide<T>>;
  for_each_row(args, [](const Row& row) {
    scan_row<T>(
        row, Map{1, 0},
        [&](uint64_t i) {
          const T c = i == 0 ? T(0) : C::of(row.get<T>(2, i - 1), row.get<T>(2, i));
          return Map{c, row.get<T>(1, i)};
        },
        [](const Map& first, const Map& then) {
          return Map{then.scale * first.scale, then.scale * first.shift + then.shift};
        },
        [&](uint64_t i, const Map& s) { row.set(i, static_cast<T>(s.shift)); });
  });
}

// Operands: y, x; complex x conjugated.
template <class T>
TD_FN void products_before_kernel(const RowArgs& args) {
  struct Factor {
    Wide<T> value;
  };
  for_each_row(args, [](const Row& row) {
    scan_row<T>(
        row, Factor{T(1)},
        [&](uint64_t i) { return Factor{i == 0 ? T(1) : conjugate(row.get<T>(1, i - 1))}; },
        [](const Factor& a, const Factor& b) { return Factor{a.value * b.value}; },
        [&](uint64_t i, const Factor& before) {
          row.set(i, static_cast<T>(row.get<T>(0, i) * before.value));
        });
  });
}

// Operands: s, t, x.
template <class T>
TD_FN void cumprod_tangent_kernel(const RowArgs& args) {
  struct Dual {
    Wide<T> value, tangent;
  };
  for_each_row(args, [](const Row& row) {
    scan_row<T>(
        row, Dual{1, 0},
        [&](uint64_t i) {
          return Dual{row.get<T>(2, i), row.get<T>(1, i)};
        },
        [](const Dual& a, const Dual& b) {
          return Dual{a.value * b.value, a.tangent * b.value + a.value * b.tangent};
        },
        [&](uint64_t i, const Dual& s) { row.set(i, static_cast<T>(s.tangent)); });
  });
}

// y_i = y_i exp(x_i - z_i), conjugated for the gradient. Operands: y, x, z.
template <class T, bool kConjugate>
TD_FN void exp_difference_kernel(const RowArgs& args) {
  for_each_row(args, [](const Row& row) {
    row.each([&](uint64_t i) {
      const T e = exp_difference(row.get<T>(1, i), row.get<T>(2, i));
      row.set(i, row.get<T>(0, i) * (kConjugate ? conjugate(e) : e));
    });
  });
}

}  // namespace taeda::device
