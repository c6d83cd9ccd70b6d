// Element conversion between all pairs of dtypes, over dense arrays.
#include <algorithm>
#include <complex>
#include <type_traits>
#include <utility>

#include "kernels/cpu/pointwise/convert.h"
#include "kernels/cpu/pointwise/loop.h"

// Vector code for whatever the baseline instruction set can convert by vectors.
#pragma GCC optimize("O3")

namespace taeda::cpu {

namespace {

template <class T>
inline constexpr bool kComplex = false;
template <class T>
inline constexpr bool kComplex<std::complex<T>> = true;

// What a float outside an integer type's range becomes is undefined in C++; here it is what x86's
// conversion gives (the smallest integer of the wider type), then truncated.
template <class Wide, class T>
[[gnu::always_inline]] inline Wide truncate(T x) {
  constexpr T limit = -static_cast<T>(std::numeric_limits<Wide>::min());
  return x >= -limit && x < limit ? static_cast<Wide>(x) : std::numeric_limits<Wide>::min();
}

template <class To, class From>
[[gnu::always_inline]] inline To convert_value(From x) {
  if constexpr (StoredFloat<From>) {
    return convert_value<To>(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (kComplex<To>) {
    using R = typename To::value_type;
    if constexpr (kComplex<From>)
      return To(static_cast<R>(x.real()), static_cast<R>(x.imag()));
    else
      return To(static_cast<R>(x));
  } else if constexpr (kComplex<From>) {
    return convert_value<To>(x.real());
  } else if constexpr (StoredFloat<To>) {
    return To(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, uint64_t> && std::is_floating_point_v<From>) {
    constexpr From half = From(0x1p63);
    return x >= half && x < 2 * half ? static_cast<To>(x) : static_cast<To>(truncate<int64_t>(x));
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    using Wide = std::conditional_t<std::is_signed_v<To> && sizeof(To) <= 4, int32_t, int64_t>;
    return static_cast<To>(truncate<Wide>(x));
  } else {
    return static_cast<To>(x);
  }
}

template <class To, class From>
void convert(void* dst, const void* src, int64_t n) {
  To* y = static_cast<To*>(dst);
  const From* x = static_cast<const From*>(src);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) y[i] = convert_value<To>(x[i]);
}

template <class To>
void convert_bool(void* dst, const void* src, int64_t n) {
  const To zero = convert_value<To>(uint8_t{0}), one = convert_value<To>(uint8_t{1});
  To* y = static_cast<To*>(dst);
  const Bool* x = static_cast<const Bool*>(src);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; i++) y[i] = x[i] ? one : zero;
}

template <class T>
inline constexpr bool kIsBool = std::is_same_v<T, Bool>;

// From one arithmetic type to each.
template <class From>
struct Row {
  Conversion::Function to[kNumArithmeticDTypes];
};
template <class From, class To>
constexpr Conversion::Function function() {
  using Stored = std::conditional_t<kIsBool<To>, bool, To>;  // 0 or 1 is written
  if constexpr (kIsBool<From>)
    return convert_bool<Stored>;
  else
    return convert<Stored, From>;
}
template <class From>
constexpr Row<From> kRow = {{
#define TD_FUNCTION(name, type, ...) function<From, type>(),
    TD_ARITHMETIC_DTYPES(TD_FUNCTION)
#undef TD_FUNCTION
}};

Conversion::Function between_arithmetic(DType to, DType from) {
  if (const Conversion::Function fast = convert_simd(to, from)) return fast;
  switch (from) {
#define TD_CASE(name, type, ...) \
  case DType::name:              \
    return kRow<type>.to[static_cast<int>(to)];
    TD_ARITHMETIC_DTYPES(TD_CASE)
#undef TD_CASE
    default:
      return nullptr;
  }
}

// --- storage types: to and from the type that they are calculated in ---

template <class To, class From>
void convert_stored(void* dst, const void* src, int64_t n) {
  constexpr bool widens = std::is_same_v<From, ComplexHalf>;
  if constexpr (widens || std::is_same_v<To, ComplexHalf>) {  // twice as many halves
    constexpr DType half = DType::kFloat16, single = DType::kFloat32;
    between_arithmetic(widens ? single : half, widens ? half : single)(dst, src, 2 * n);
  } else {
    convert<To, From>(dst, src, n);
  }
}

struct Widened {
  DType storage, compute;
  Conversion::Function widen, narrow;
};
constexpr Widened kWidened[] = {
#define TD_WIDENED(name, type, text, other, class_name, kind, compute, ...) \
  {DType::name, kDTypeOf<compute>, convert_stored<compute, type>, convert_stored<type, compute>},
    TD_STORAGE_DTYPES(TD_WIDENED)
#undef TD_WIDENED
    // No integer type holds all of uint64: between it and floating types the way is direct.
    {DType::kUInt64, DType::kFloat32, convert<float, uint64_t>, convert<uint64_t, float>},
    {DType::kUInt64, DType::kFloat64, convert<double, uint64_t>, convert<uint64_t, double>},
};

// The type through which a storage type reaches `other`.
const Widened& widened(DType storage, DType other) {
  DType compute = dtype_info(storage).compute;
  if (storage == DType::kUInt64 && is_inexact(other)) compute = dtype_info(to_real(other)).compute;
  return *std::find_if(std::begin(kWidened), std::end(kWidened), [&](const Widened& w) {
    return w.storage == storage && w.compute == compute;
  });
}

}  // namespace

Conversion::Conversion(DType to, DType from) : source_bytes_(item_size(from)) {
  if (from == DType::kFloat4E2M1FNx2 || to == DType::kFloat4E2M1FNx2) Float4E2M1x2::refuse();
  DType at = from, target = to;
  const Widened *source = nullptr, *result = nullptr;
  if (is_storage_type(from)) {
    source = &widened(from, to);
    at = source->compute;
    add(source->widen, item_size(at));
  }
  if (is_storage_type(to)) {
    result = &widened(to, from);
    target = result->compute;
  }
  if (at != target) add(between_arithmetic(target, at), item_size(target));
  if (!result) return;
  const Function fast = convert_simd(to, target);
  add(fast ? fast : result->narrow, item_size(to));
}

void Conversion::run_in_blocks(void* dst, const void* src, int64_t n) const {
  constexpr int64_t kBlock = 512;
  alignas(64) char between[2][kBlock * 8];
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t m = std::min(kBlock, n - begin);
    const void* from = static_cast<const char*>(src) + begin * source_bytes_;
    for (int k = 0; k < count_; k++) {
      const bool last = k == count_ - 1;
      void* const to = last ? static_cast<char*>(dst) + begin * bytes_[k] : between[k];
      steps_[k](to, from, m);
      from = to;
    }
  }
}

}  // namespace taeda::cpu
