// Element types. Names and promotion follow PyTorch (torch.dtype, torch.promote_types).
//
// Everything known of a dtype stands in one row of the table TD_DTYPES below; a new dtype is a new
// row, and a struct where C++ has no such type (docs/notes/dtypes.md).
//
//   assert(promote_types(DType::kInt64, DType::kFloat16) == DType::kFloat16);
//   assert(item_size(DType::kComplex64) == 8 && to_text(DType::kBFloat16) == "bfloat16");
//   assert(kDTypeOf<double> == DType::kFloat64);
//
// | dtype | bytes | largest | exact integers up to | smallest step at 1 |
// |---|---|---|---|---|
// | float16 | 2 | 65504 | 2^11 | 2^-10 |
// | bfloat16 | 2 | 3.4e38 | 2^8 | 2^-7 |
// | float32 | 4 | 3.4e38 | 2^24 | 2^-23 |
// | float64 | 8 | 1.8e308 | 2^53 | 2^-52 |
//
// Kernels compute half precision in float32 and round their results once, to nearest even.
//
// Everything here but the default dtype is constant: functions may be called from any thread, and a
// question about a dtype costs a look into a table of constants at most.
#pragma once

#include <bit>
#include <complex>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "taeda/float8.h"

namespace taeda {

// An element of a bool tensor as it lies in memory: a byte, of which any but 0 is true. Memory from
// elsewhere (a view of bytes, NumPy, DLPack, a file) may hold others than 0 and 1, and reading
// those as C++'s bool is undefined. It converts from and to bool without a cast:
//
//   const Tensor mask = tensor({3, 0}) > 1;
//   assert(mask.data<Bool>()[0] && !mask.data<Bool>()[1] && sizeof(Bool) == 1);
struct Bool {
  uint8_t byte = 0;
  Bool() = default;
  constexpr Bool(bool value) : byte(value) {}
  constexpr operator bool() const { return byte != 0; }
};

// IEEE 754 binary16 and bfloat16 as storage formats: arithmetic converts to float and back,
// rounding to nearest even. Conversions are inline and exact; NaN stays NaN, what is too large
// becomes infinite, and denormal numbers are kept.
//
// The smallest normal float16 is 2^-14, the smallest denormal one 2^-24: gradients below half of
// that become 0, which scaling the loss prevents. bfloat16 is the upper half of a float32: it has
// the same range, needs no scaling, and has an eighth of the precision of float16. A double is
// rounded to float first, so it may be rounded twice.
//
//   assert(static_cast<float>(Half(65520.0f)) == std::numeric_limits<float>::infinity());
//   assert(static_cast<float>(BFloat16(1.003f)) == 1.0f);
//   assert(Half(2049.0f) == 2048.0f && Half(1e-8f) == 0.0f && Half(0x1p-24f) != 0.0f);
//   static_assert(std::is_same_v<decltype(Half() * Half()), float>);
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

// Two halves: complex32. A storage type, which operators convert to complex64 and back; real and
// imaginary part lie side by side, as in std::complex.
struct ComplexHalf {
  Half re, im;
  ComplexHalf() = default;
  explicit ComplexHalf(std::complex<float> z) : re(z.real()), im(z.imag()) {}
  operator std::complex<float>() const { return {static_cast<float>(re), static_cast<float>(im)}; }
};

// X(enumerator, C++ type, name, other name, PyTorch's class name, kind, compute type, NumPy's
// number,
//   struct format, DLPack code, safetensors' name)
//
// The class name is that of messages ("not implemented for 'Half'"), tensor types (HalfTensor) and
// storages (HalfStorage). The compute type is that in which pointwise operators calculate.
// NumPy's number is its NPY_TYPES, -1 where it has no such type; the struct format is that of
// Python's module struct and of the buffer protocol (PEP 3118); the DLPack code is DLDataTypeCode.
//
// The order of the rows is that of promotion: bool, integers by size, floating types, complex ones.
// Of two arithmetic real types the later one is mostly the common one (promote_types), so a row
// does not move. Code that is compiled for each type expands a table; what asks for properties
// alone loops over kDTypes:
//
//   int floating = 0;
//   for (const DTypeInfo& row : kDTypes) floating += row.kind == DTypeKind::kFloating;
//   assert(floating == 10);
// clang-format off
#define TD_ARITHMETIC_DTYPES(X)                                                                    \
  X(kBool,       Bool,     "bool",       "",        "Bool",     kBool,     Bool,     0, "?", 6, "BOOL") \
  X(kUInt8,      uint8_t,  "uint8",      "",        "Byte",     kInteger,  uint8_t,  2, "B", 1, "U8")   \
  X(kInt8,       int8_t,   "int8",       "",        "Char",     kInteger,  int8_t,   1, "b", 0, "I8")   \
  X(kInt16,      int16_t,  "int16",      "short",   "Short",    kInteger,  int16_t,  3, "h", 0, "I16")  \
  X(kInt32,      int32_t,  "int32",      "int",     "Int",      kInteger,  int32_t,  5, "i", 0, "I32")  \
  X(kInt64,      int64_t,  "int64",      "long",    "Long",     kInteger,  int64_t,  7, "l", 0, "I64")  \
  X(kFloat16,    Half,     "float16",    "half",    "Half",     kFloating, float,   23, "e", 2, "F16")  \
  X(kBFloat16,   BFloat16, "bfloat16",   "",        "BFloat16", kFloating, float,   -1, "",  4, "BF16") \
  X(kFloat32,    float,    "float32",    "float",   "Float",    kFloating, float,   11, "f", 2, "F32")  \
  X(kFloat64,    double,   "float64",    "double",  "Double",   kFloating, double,  12, "d", 2, "F64")  \
  X(kComplex64,  std::complex<float>,  "complex64",  "cfloat",  "ComplexFloat",  kComplex, std::complex<float>,  14, "Zf", 5, "C64") \
  X(kComplex128, std::complex<double>, "complex128", "cdouble", "ComplexDouble", kComplex, std::complex<double>, 15, "Zd", 5, "C128")
// Storage types: made, copied, converted, indexed, compared, saved and exchanged; no kernel is
// compiled for them. Operators that any type may go through calculate in the compute type; the
// others raise NotImplementedError that names operator and type.
#define TD_STORAGE_DTYPES(X)                                                                       \
  X(kUInt16, uint16_t, "uint16", "", "UInt16", kInteger, int32_t, 4, "H", 1, "U16")                \
  X(kUInt32, uint32_t, "uint32", "", "UInt32", kInteger, int64_t, 6, "I", 1, "U32")                \
  X(kUInt64, uint64_t, "uint64", "", "UInt64", kInteger, int64_t, 8, "L", 1, "U64")                \
  X(kFloat8E4M3FN,   Float8E4M3FN,   "float8_e4m3fn",   "", "Float8_e4m3fn",   kFloating, float, -1, "", 10, "F8_E4M3") \
  X(kFloat8E5M2,     Float8E5M2,     "float8_e5m2",     "", "Float8_e5m2",     kFloating, float, -1, "", 12, "F8_E5M2") \
  X(kFloat8E4M3FNUZ, Float8E4M3FNUZ, "float8_e4m3fnuz", "", "Float8_e4m3fnuz", kFloating, float, -1, "", 11, "")        \
  X(kFloat8E5M2FNUZ, Float8E5M2FNUZ, "float8_e5m2fnuz", "", "Float8_e5m2fnuz", kFloating, float, -1, "", 13, "")        \
  X(kFloat8E8M0FNU,  Float8E8M0,     "float8_e8m0fnu",  "", "Float8_e8m0fnu",  kFloating, float, -1, "", 14, "F8_E8M0") \
  X(kFloat4E2M1FNx2, Float4E2M1x2,   "float4_e2m1fn_x2", "", "Float4_e2m1fn_x2", kFloating, float, -1, "", 17, "")      \
  X(kComplex32, ComplexHalf, "complex32", "chalf", "ComplexHalf", kComplex, std::complex<float>, -1, "", 5, "")
// clang-format on
#define TD_DTYPES(X)      \
  TD_ARITHMETIC_DTYPES(X) \
  TD_STORAGE_DTYPES(X)

// An element type. The numbers are the rows of the tables above; files and other processes are
// given names, never these.
enum class DType : uint8_t {
#define TD_ENUMERATOR(name, ...) name,
  TD_DTYPES(TD_ENUMERATOR)
#undef TD_ENUMERATOR
};
#define TD_COUNT(...) +1
inline constexpr int kNumArithmeticDTypes = 0 TD_ARITHMETIC_DTYPES(TD_COUNT);
inline constexpr int kNumDTypes = 0 TD_DTYPES(TD_COUNT);
#undef TD_COUNT

// The dtype of a C++ type: kDTypeOf<float> is DType::kFloat32. Does not compile for types that are
// no element type: std::complex<Half>, long double, char. bool leads to kBool, as Bool does.
//
//   static_assert(kDTypeOf<bool> == DType::kBool && kDTypeOf<uint8_t> == DType::kUInt8);
template <class T>
struct DTypeOf;
#define TD_DTYPE_OF(name, type, ...)            \
  template <>                                   \
  struct DTypeOf<type> {                        \
    static constexpr DType value = DType::name; \
  };
TD_DTYPES(TD_DTYPE_OF)
#undef TD_DTYPE_OF
template <>
struct DTypeOf<bool> : DTypeOf<Bool> {};
template <class T>
inline constexpr DType kDTypeOf = DTypeOf<T>::value;

// Floating types that C++ cannot calculate with: read as float, written from float. Half, BFloat16
// and the eight-bit formats are, float and double are not: generic code asks this to know where
// it must convert.
template <class T>
concept StoredFloat = requires(T x) {
  x.bits;
  T(1.0f);
};

// What promotion goes by, in its order: a result has the highest kind among its arguments. A tensor
// with dimensions outranks a 0-d one, and that a number, as long as the kind is not higher:
//
//   const Tensor row = ones({2}, DType::kInt32), one = ones({}, DType::kInt64);
//   assert((row + one).dtype() == DType::kInt32 && (row + 1.5).dtype() == default_dtype());
enum class DTypeKind : uint8_t { kBool, kInteger, kFloating, kComplex };

// A row of the table. The texts are constant data that lives as long as the program.
struct DTypeInfo {
  std::string_view name, other_name, class_name;
  DTypeKind kind;
  bool is_signed;
  uint8_t bytes;
  DType compute;
  int8_t numpy;             // -1: NumPy has no such type
  std::string_view buffer;  // as the struct module and PEP 3118 write it; empty: not at all
  uint8_t dlpack;
  std::string_view safetensors;  // empty: the format has no such type
};

namespace detail {
template <class T>
constexpr bool is_signed_number() {
  if constexpr (requires { T::kSigned; }) return T::kSigned;
  return !std::is_unsigned_v<T> && !std::is_same_v<T, Bool>;
}
}  // namespace detail

inline constexpr DTypeInfo kDTypes[kNumDTypes] = {
#define TD_ROW(enumerator, type, name, other, class_name, kind, compute, ...) \
  {name,                                                                      \
   other,                                                                     \
   class_name,                                                                \
   DTypeKind::kind,                                                           \
   detail::is_signed_number<type>(),                                          \
   sizeof(type),                                                              \
   kDTypeOf<compute>,                                                         \
   __VA_ARGS__},
    TD_DTYPES(TD_ROW)
#undef TD_ROW
};
constexpr const DTypeInfo& dtype_info(DType t) { return kDTypes[static_cast<int>(t)]; }

// A set of dtypes, one bit each, so that asking costs one instruction. Operators' entries say with
// such sets which types they take.
//
//   constexpr DTypeSet half = dtype_bit(DType::kFloat16) | dtype_bit(DType::kBFloat16);
//   assert((half & dtypes_of(DTypeKind::kFloating)) == half && !(half & kStorageDTypes));
using DTypeSet = uint32_t;
constexpr DTypeSet dtype_bit(DType t) { return 1u << static_cast<int>(t); }
consteval DTypeSet dtypes_of(DTypeKind kind) {
  DTypeSet set = 0;
  for (int i = 0; i < kNumDTypes; i++)
    if (kDTypes[i].kind == kind) set |= 1u << i;
  return set;
}
inline constexpr DTypeSet kStorageDTypes = (1u << kNumDTypes) - (1u << kNumArithmeticDTypes);

// Questions about a dtype. Floating: half to double and the formats of eight bits and fewer;
// inexact: floating or complex; integral: without bool, as in TD_DTYPES; storage type: one that no
// kernel calculates with; reduced floating: the two of sixteen bits. Signed is said of complex
// types, too, and not of bool and float8_e8m0fnu, which has no sign.
//
//   assert(is_floating(DType::kFloat8E5M2) && is_narrow_floating(DType::kFloat8E5M2));
//   assert(!is_integral(DType::kBool) && is_inexact(DType::kComplex64));
//   assert(!is_signed(DType::kUInt8) && is_signed(DType::kComplex64));
constexpr bool is_floating(DType t) { return dtype_bit(t) & dtypes_of(DTypeKind::kFloating); }
constexpr bool is_complex(DType t) { return dtype_bit(t) & dtypes_of(DTypeKind::kComplex); }
constexpr bool is_inexact(DType t) {
  return dtype_bit(t) & (dtypes_of(DTypeKind::kFloating) | dtypes_of(DTypeKind::kComplex));
}
constexpr bool is_integral(DType t) { return dtype_bit(t) & dtypes_of(DTypeKind::kInteger); }
constexpr bool is_signed(DType t) { return dtype_info(t).is_signed; }
constexpr bool is_storage_type(DType t) { return dtype_bit(t) & kStorageDTypes; }
constexpr bool is_narrow_floating(DType t) {
  return dtype_bit(t) & dtypes_of(DTypeKind::kFloating) & kStorageDTypes;
}
constexpr bool is_reduced_floating(DType t) {
  return t == DType::kFloat16 || t == DType::kBFloat16;
}

inline constexpr uint8_t kItemSizes[kNumDTypes] = {
#define TD_SIZE(name, type, ...) sizeof(type),
    TD_DTYPES(TD_SIZE)
#undef TD_SIZE
};
// Bytes of an element, 1 to 16. A complex number counts as one element; both parts are in its size.
constexpr int64_t item_size(DType t) { return kItemSizes[static_cast<int>(t)]; }

// "float32", as in torch.float32.
std::string_view to_text(DType t);
// "Float", the name that PyTorch's messages use.
std::string_view scalar_type_name(DType t);

// torch.promote_types: the smallest type that both convert to. RuntimeError for eight-bit floats
// and for uint16, uint32 and uint64 beside another type, but that these become floating. Operators
// promote tensors of one kind so; numbers and 0-d tensors count only where their kind is higher.
//
//   assert(promote_types(DType::kUInt8, DType::kInt8) == DType::kInt16);
//   assert(promote_types(DType::kFloat16, DType::kBFloat16) == DType::kFloat32);
//   assert((ones({2}, DType::kFloat16) + 2.5).dtype() == DType::kFloat16);
//   assert(promote_types(DType::kFloat64, DType::kComplex64) == DType::kComplex128);
//
// "Smallest" is of kinds, not of values: an integer beside a floating type takes that type, even
// where it cannot hold the value. An int64 of 100000 beside float16 is infinite.
DType promote_types(DType a, DType b);
// torch.can_cast: whether a result of type `from` may be written to a tensor of type `to`: by out=
// and in place. It may lose precision, range and sign, but not its kind: no complex number becomes
// real, no fraction an integer, and nothing but a bool a bool. Tensor::to converts between any two.
//
//   assert(can_cast(DType::kFloat64, DType::kFloat16) && !can_cast(DType::kFloat32,
//   DType::kInt64));
bool can_cast(DType from, DType to);

// The real type of a complex one's parts, and the complex type with such parts. Others map to
// themselves, and to the complex type of float, bfloat16 and integers among them.
//
//   assert(to_real(DType::kComplex128) == DType::kFloat64);
//   assert(to_complex(DType::kFloat16) == DType::kComplex32);
//   assert(to_complex(DType::kBFloat16) == DType::kComplex64);
constexpr DType to_real(DType t) {
  return t == DType::kComplex64    ? DType::kFloat32
         : t == DType::kComplex128 ? DType::kFloat64
         : t == DType::kComplex32  ? DType::kFloat16
                                   : t;
}
constexpr DType to_complex(DType t) {
  return t == DType::kFloat64   ? DType::kComplex128
         : t == DType::kFloat16 ? DType::kComplex32
         : is_complex(t)        ? t
                                : DType::kComplex64;
}

// torch.get_default_dtype / set_default_dtype, for the whole process: what factories and numbers
// with decimals give, float32 at first. Both may be called from any thread; operators that run
// meanwhile see one or the other. Python raises TypeError for types that are not floating; this
// function takes the caller's word for it.
DType default_dtype();
void set_default_dtype(DType t);

}  // namespace taeda
