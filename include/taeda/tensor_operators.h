// The signs of C++ on tensors: as in Python, elementwise, the arguments broadcast. Numbers convert
// (`x * 2.0`). `x += y` changes the elements of x, which every tensor that shares its memory sees.
// Part of taeda/ops.h.
//
// Each is the operator of that name: results, dtypes and errors are its, and it is recorded for
// gradients. `/` is true division, also of integers; the result of `%` has the divisor's sign. `^`
// is exclusive or: powers are pow(x, y). Matrix products have no sign: matmul(a, b).
//
//   const Tensor x = tensor({-7, 7});
//   assert(equal(x / 2, tensor({-3.5, 3.5})) && equal(x % 2, tensor({1, 1})));
//
// Comparisons give bool tensors, not bool: `if (a == b)` does not compile, equal(a, b) is meant, or
// (a == b).all().item<bool>(). Masks are combined by & | ~. In C++ these bind less than
// comparisons, in Python more: with brackets around each side the text means the same in both.
//
//   const Tensor x = tensor({-1, 3, 7});
//   assert(equal(x[(x > 0) & (x != 3)], tensor({7})));
#pragma once

#include "taeda/ops.h"

namespace taeda {

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator%(const Tensor& a, const Tensor& b) { return remainder(a, b); }
inline Tensor operator&(const Tensor& a, const Tensor& b) { return bitwise_and(a, b); }
inline Tensor operator|(const Tensor& a, const Tensor& b) { return bitwise_or(a, b); }
inline Tensor operator^(const Tensor& a, const Tensor& b) { return bitwise_xor(a, b); }
inline Tensor operator-(const Tensor& a) { return neg(a); }
inline Tensor operator~(const Tensor& a) { return bitwise_not(a); }
inline Tensor operator!(const Tensor& a) { return logical_not(a); }

inline Tensor operator==(const Tensor& a, const Tensor& b) { return eq(a, b); }
inline Tensor operator!=(const Tensor& a, const Tensor& b) { return ne(a, b); }
inline Tensor operator<(const Tensor& a, const Tensor& b) { return lt(a, b); }
inline Tensor operator<=(const Tensor& a, const Tensor& b) { return le(a, b); }
inline Tensor operator>(const Tensor& a, const Tensor& b) { return gt(a, b); }
inline Tensor operator>=(const Tensor& a, const Tensor& b) { return ge(a, b); }

// In place: `b` broadcasts to a's sizes, never the reverse, and the result must convert to a's
// dtype (can_cast): RuntimeError otherwise, and for a leaf that requires grad, but under NoGrad.
//
//   const Tensor x = tensor({1, 2}), row = x.view({1, 2});
//   x += 5;
//   assert(equal(row[0], tensor({6, 7})));
//   EXPECT_THROW(x += 0.5, Error);
inline const Tensor& operator+=(const Tensor& a, const Tensor& b) { return add_(a, b), a; }
inline const Tensor& operator-=(const Tensor& a, const Tensor& b) { return sub_(a, b), a; }
inline const Tensor& operator*=(const Tensor& a, const Tensor& b) { return mul_(a, b), a; }
inline const Tensor& operator/=(const Tensor& a, const Tensor& b) { return div_(a, b), a; }
inline const Tensor& operator%=(const Tensor& a, const Tensor& b) { return remainder_(a, b), a; }
inline const Tensor& operator&=(const Tensor& a, const Tensor& b) { return bitwise_and_(a, b), a; }
inline const Tensor& operator|=(const Tensor& a, const Tensor& b) { return bitwise_or_(a, b), a; }
inline const Tensor& operator^=(const Tensor& a, const Tensor& b) { return bitwise_xor_(a, b), a; }

}  // namespace taeda
