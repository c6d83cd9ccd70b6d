// Floating-point numbers of eight bits, as storage formats: the OCP formats E4M3FN, E5M2 and E8M0
// and the FNUZ variants (finite, with NaN in the place of negative zero). Conversions from float
// round to nearest, ties to even, and treat what is too large as PyTorch does. All of it is
// constexpr and needs no tables; tensors of such types are converted to calculate. Beside them two
// numbers of four bits in a byte, which nothing converts. Sources:
// Micikevicius et al., "FP8 formats for deep learning", 2022; Rouhani et al., "Microscaling data
// formats", 2023.
#pragma once

#include <bit>
#include <cstdint>

namespace taeda {

// | type | exponent and mantissa bits | largest | smallest above 0 | infinity |
// |---|---|---|---|---|
// | Float8E4M3FN | 4, 3 | 448 | 2^-9 | no |
// | Float8E5M2 | 5, 2 | 57344 | 2^-16 | yes |
// | Float8E4M3FNUZ | 4, 3 | 240 | 2^-10 | no |
// | Float8E5M2FNUZ | 5, 2 | 57344 | 2^-17 | no |
// | Float8E8M0 | 8, 0 | 2^127 | 2^-127 | no |
//
//   assert(static_cast<float>(Float8E4M3FN(1.06f)) == 1.0f);
//   assert(static_cast<float>(Float8E5M2(3.0f)) == 3.0f);
//   assert(static_cast<float>(Float8E8M0(5.0f)) == 4.0f);
//
// What is too large, infinity included, becomes 448 in E4M3FN, infinity in E5M2, and NaN in the
// FNUZ formats. E4M3FN is for weights and activations, E5M2 for gradients, whose range is wider and
// which need fewer digits; E8M0 is the scale that a block of smaller numbers shares. Scale values
// into the range before the conversion: 448 is soon reached.
//
//   assert(static_cast<float>(Float8E4M3FN(1000.0f)) == 448.0f);
//   assert(std::isinf(static_cast<float>(Float8E5M2(1e6f))));
//   assert(std::isnan(static_cast<float>(Float8E4M3FNUZ(1000.0f))));
//
// A format with a sign bit. Codes are those of positive numbers.
struct Float8Format {
  int mantissa;      // bits
  int bias;          // of the exponent
  uint8_t largest;   // the largest finite number
  uint8_t overflow;  // what numbers above it become
  uint8_t nan;
  bool fnuz;  // no negative zero: its code is the only NaN
};

// The number that a code stands for, exactly; NaN for the format's NaNs. Every code of every format
// is a float, so decoding and encoding again gives the code back, NaNs aside.
//
//   for (int code = 0; code < 0x7f; code++) {
//     Float8E4M3FN x;
//     x.bits = static_cast<uint8_t>(code);
//     assert(Float8E4M3FN(static_cast<float>(x)).bits == code);
//   }
constexpr float decode_float8(Float8Format f, uint8_t bits) {
  const uint32_t code = bits & 0x7fu, sign = bits & 0x80u;
  if (f.fnuz ? bits == f.nan : code > f.largest) {
    const bool infinite = code == f.overflow && f.overflow != f.nan && code > f.largest;
    return std::bit_cast<float>((sign << 24) | (infinite ? 0x7f800000u : 0x7fc00000u));
  }
  const uint32_t one = 1u << f.mantissa, exponent = code >> f.mantissa;
  const uint32_t mantissa = (code & (one - 1)) + (exponent ? one : 0);
  const uint32_t power =
      127u + (exponent ? exponent : 1) - static_cast<uint32_t>(f.bias + f.mantissa);
  const float magnitude = static_cast<float>(mantissa) * std::bit_cast<float>(power << 23);
  return sign ? -magnitude : magnitude;
}

// The code of the nearest number, ties to the even code; NaN stays NaN. Denormal numbers are kept:
// up to half of the smallest one the result is zero, with the value's sign but in FNUZ formats.
constexpr uint8_t encode_float8(Float8Format f, float value) {
  const uint32_t u = std::bit_cast<uint32_t>(value), magnitude = u & 0x7fffffffu;
  const uint32_t sign = f.fnuz ? 0 : (u >> 24) & 0x80u;
  if (magnitude > 0x7f800000u) return static_cast<uint8_t>(f.nan | sign);
  const int dropped = 23 - f.mantissa;
  const uint32_t rebias = static_cast<uint32_t>(127 - f.bias) << 23;
  uint32_t code;
  if (magnitude < rebias + (1u << 23)) {  // denormal: let the adder round
    const uint32_t unit = static_cast<uint32_t>(127 + 24 - f.bias - f.mantissa) << 23;
    code = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(unit)) -
           unit;
  } else {
    const uint32_t half = (1u << (dropped - 1)) - 1;
    code = (magnitude + half + ((magnitude >> dropped) & 1u) - rebias) >> dropped;
  }
  if (code > f.largest) return static_cast<uint8_t>(f.overflow | sign);
  if (f.fnuz) return static_cast<uint8_t>(code ? code | ((u >> 24) & 0x80u) : 0);
  return static_cast<uint8_t>(code | sign);
}

// One byte, zero at first. Made from float explicitly, read as float without a cast, as Half is.
template <Float8Format kFormat>
struct Float8 {
  static constexpr bool kSigned = true;
  uint8_t bits = 0;
  Float8() = default;
  constexpr explicit Float8(float value) : bits(encode_float8(kFormat, value)) {}
  constexpr operator float() const { return decode_float8(kFormat, bits); }
};

using Float8E4M3FN = Float8<{3, 7, 0x7e, 0x7e, 0x7f, false}>;
using Float8E5M2 = Float8<{2, 15, 0x7b, 0x7c, 0x7f, false}>;
using Float8E4M3FNUZ = Float8<{3, 8, 0x7f, 0x80, 0x80, true}>;
using Float8E5M2FNUZ = Float8<{2, 16, 0x7f, 0x80, 0x80, true}>;

// Powers of two from 2^-127 to 2^127, without zero, sign and infinity: the exponent of a float. The
// sign is dropped, zero becomes 2^-127, infinity and what is too large NaN, and a number in the
// middle of two powers becomes the larger one, as in PyTorch. A default-made one is 2^-127, not 0.
//
//   assert(Float8E8M0(6.0f) == 8.0f && Float8E8M0(-2.0f) == 2.0f);
//   assert(Float8E8M0() == 0x1p-127f && std::isnan(float{Float8E8M0(INFINITY)}));
struct Float8E8M0 {
  static constexpr bool kSigned = false;
  uint8_t bits = 0;
  Float8E8M0() = default;
  constexpr explicit Float8E8M0(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value), exponent = (u >> 23) & 0xffu;
    const uint32_t mantissa = u & 0x7fffffu, half = 1u << 22;
    const bool up = mantissa > half || (mantissa == half && exponent > 0);
    bits = static_cast<uint8_t>(exponent == 255 ? 255 : exponent + up);
  }
  constexpr operator float() const {
    const uint32_t u = bits == 255 ? 0x7fc00000u : bits == 0 ? 0x00400000u : uint32_t{bits} << 23;
    return std::bit_cast<float>(u);
  }
};

// Two numbers of four bits (E2M1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives) in a byte, the
// first in its lower half: a type to make, move, view and save. As in PyTorch nothing converts it,
// and a tensor's sizes count bytes; to look inside, view it as uint8.
struct Float4E2M1x2 {
  static constexpr bool kSigned = true;
  uint8_t bits = 0;
  Float4E2M1x2() = default;
  explicit Float4E2M1x2(float) { refuse(); }
  operator float() const { refuse(); }
  // NotImplementedError: says to view the tensor as uint8.
  [[noreturn]] static void refuse();
};

}  // namespace taeda
