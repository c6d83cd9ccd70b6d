// Element types. Names and promotion follow PyTorch (torch.dtype, torch.promote_types).
#pragma once

#include <bit>
#include <complex>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace taeda {

enum class DType : uint8_t {
  kBool,
  kUInt8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kComplex64,
  kComplex128,
};
inline constexpr int kNumDTypes = 12;

// An element of a bool tensor as it lies in memory: a byte, of which any but 0 is true. Memory from
// elsewhere (a view of bytes, NumPy, DLPack, a file) may hold others than 0 and 1, and reading
// those as C++'s bool is undefined.
struct Bool {
  uint8_t byte = 0;
  Bool() = default;
  constexpr Bool(bool value) : byte(value) {}
  constexpr operator bool() const { return byte != 0; }
};

// IEEE 754 binary16 and bfloat16 as storage formats: arithmetic converts to float and back,
// rounding to nearest even.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value);
  operator float() const;
};
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) {
    const uint32_t u = std::bit_cast<uint32_t>(value);
    if ((u & 0x7fffffffu) > 0x7f800000u) {
      bits = static_cast<uint16_t>((u >> 16) | 0x40u);  // keep a NaN a NaN
    } else {
      bits = static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
    }
  }
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

inline Half::operator float() const {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu, mantissa = bits & 0x3ffu;
  if (exponent == 0) {  // zero or denormal: mantissa * 2^-24
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}
inline Half::Half(float value) {
  const uint32_t u = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    bits = static_cast<uint16_t>(sign | 0x7e00u);
  } else if (magnitude >= 0x477ff000u) {  // rounds to infinity
    bits = static_cast<uint16_t>(sign | 0x7c00u);
  } else if (magnitude < 0x38800000u) {  // denormal: let the adder round
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    bits = static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  } else {
    const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    bits = static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
  }
}

constexpr bool is_floating(DType t) { return t >= DType::kFloat16 && t <= DType::kFloat64; }
constexpr bool is_complex(DType t) { return t >= DType::kComplex64; }
constexpr bool is_inexact(DType t) { return t >= DType::kFloat16; }
constexpr bool is_integral(DType t) { return t > DType::kBool && t <= DType::kInt64; }
constexpr bool is_reduced_floating(DType t) {
  return t == DType::kFloat16 || t == DType::kBFloat16;
}

constexpr int64_t item_size(DType t) {
  constexpr int64_t sizes[kNumDTypes] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  return sizes[static_cast<int>(t)];
}

// "float32", as in torch.float32.
std::string_view to_text(DType t);
// "Float", the name that PyTorch's messages use.
std::string_view scalar_type_name(DType t);

// torch.promote_types: the smallest type that both convert to.
DType promote_types(DType a, DType b);
// torch.can_cast: whether a result of type `from` may be written to a tensor of type `to`.
bool can_cast(DType from, DType to);

// The real type of a complex one's parts, and the complex type with such parts; others map to
// themselves.
constexpr DType to_real(DType t) {
  return t == DType::kComplex64 ? DType::kFloat32 : t == DType::kComplex128 ? DType::kFloat64 : t;
}
constexpr DType to_complex(DType t) {
  return t == DType::kFloat64 ? DType::kComplex128 : is_complex(t) ? t : DType::kComplex64;
}

// torch.get_default_dtype / set_default_dtype, for the whole process.
DType default_dtype();
void set_default_dtype(DType t);

template <class T>
struct DTypeOf;
#define TD_DTYPE_OF(type, name)                 \
  template <>                                   \
  struct DTypeOf<type> {                        \
    static constexpr DType value = DType::name; \
  };
TD_DTYPE_OF(bool, kBool)
TD_DTYPE_OF(Bool, kBool)
TD_DTYPE_OF(uint8_t, kUInt8)
TD_DTYPE_OF(int8_t, kInt8)
TD_DTYPE_OF(int16_t, kInt16)
TD_DTYPE_OF(int32_t, kInt32)
TD_DTYPE_OF(int64_t, kInt64)
TD_DTYPE_OF(Half, kFloat16)
TD_DTYPE_OF(BFloat16, kBFloat16)
TD_DTYPE_OF(float, kFloat32)
TD_DTYPE_OF(double, kFloat64)
TD_DTYPE_OF(std::complex<float>, kComplex64)
TD_DTYPE_OF(std::complex<double>, kComplex128)
#undef TD_DTYPE_OF
template <class T>
inline constexpr DType kDTypeOf = DTypeOf<T>::value;

}  // namespace taeda
