// The signs of C++ on tensors: as in Python, elementwise, the arguments broadcast. Numbers convert
// (`x * 2.0`). `x += y` changes the elements of x, which every tensor that shares its memory sees.
// Part of taeda/ops.h.
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

inline const Tensor& operator+=(const Tensor& a, const Tensor& b) { return add_(a, b), a; }
inline const Tensor& operator-=(const Tensor& a, const Tensor& b) { return sub_(a, b), a; }
inline const Tensor& operator*=(const Tensor& a, const Tensor& b) { return mul_(a, b), a; }
inline const Tensor& operator/=(const Tensor& a, const Tensor& b) { return div_(a, b), a; }
inline const Tensor& operator%=(const Tensor& a, const Tensor& b) { return remainder_(a, b), a; }
inline const Tensor& operator&=(const Tensor& a, const Tensor& b) { return bitwise_and_(a, b), a; }
inline const Tensor& operator|=(const Tensor& a, const Tensor& b) { return bitwise_or_(a, b), a; }
inline const Tensor& operator^=(const Tensor& a, const Tensor& b) { return bitwise_xor_(a, b), a; }

}  // namespace taeda
