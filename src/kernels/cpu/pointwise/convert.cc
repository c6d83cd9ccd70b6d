// Element conversion between all pairs of dtypes, over dense arrays.
#include <algorithm>
#include <array>
#include <complex>
#include <type_traits>
#include <utility>

#include "kernels/cpu/pointwise/convert.h"
#include "kernels/cpu/pointwise/convert_value.h"
#include "kernels/cpu/pointwise/loop.h"

// Vector code for whatever the baseline instruction set can convert by vectors.
#pragma GCC optimize("O3")

namespace taeda::cpu {

namespace {

using scalar::convert;

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

// What convert_loop() does, and 16-bit floating types, whose way leads through float.
template <class T>
inline constexpr bool kIsInteger = std::is_integral_v<T>;  // Bool is none
template <class T>
inline constexpr bool kIsReduced = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <class From, class To>
inline constexpr bool kElsewhere = kIsReduced<From> || kIsReduced<To> ||
                                   (kIsInteger<From> && (kIsInteger<To> || kIsBool<To>)) ||
                                   (kIsBool<From> && kIsInteger<To>);

// From one arithmetic type to each.
template <class From>
struct Row {
  Conversion::Function to[kNumArithmeticDTypes];
};
template <class From, class To>
constexpr Conversion::Function function() {
  using Stored = std::conditional_t<kIsBool<To>, bool, To>;  // 0 or 1 is written
  if constexpr (kElsewhere<From, To>)
    return nullptr;
  else if constexpr (kIsBool<From>)
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
  if (const Conversion::Function loop = convert_loop(to, from)) return loop;
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

// Floats of 8 bits, by a table of all.
template <class From>
void decode(float* y, const From* x, int64_t n) {
  static const auto table = [] {
    std::array<float, 256> found;
    for (int code = 0; code < 256; code++) {
      From value;
      value.bits = static_cast<uint8_t>(code);
      found[static_cast<size_t>(code)] = static_cast<float>(value);
    }
    return found;
  }();
  for (int64_t i = 0; i < n; i++) y[i] = table[x[i].bits];
}

template <class To, class From>
void convert_stored(void* dst, const void* src, int64_t n) {
  constexpr bool widens = std::is_same_v<From, ComplexHalf>;
  if constexpr (widens || std::is_same_v<To, ComplexHalf>) {  // twice as many halves
    constexpr DType half = DType::kFloat16, single = DType::kFloat32;
    between_arithmetic(widens ? single : half, widens ? half : single)(dst, src, 2 * n);
  } else if constexpr (std::is_same_v<To, float> && requires { From::kSigned; }) {
    decode(static_cast<float*>(dst), static_cast<const From*>(src), n);
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
  DType at = from;
  const auto add_loop = [&](DType next) {
    const Function fast = convert_simd(next, at), loop = fast ? fast : convert_loop(next, at);
    if (loop) add(loop, item_size(next)), at = next;
    return loop != nullptr;
  };
  const auto step_to = [&](DType next) {
    if (at != next) add(between_arithmetic(next, at), item_size(next));
    at = next;
  };
  if (add_loop(to)) return;
  if (is_integral(from) && is_floating(to) && item_size(to) <= 2 && add_loop(DType::kFloat32)) {
    // what is left begins with a float
  } else if (is_storage_type(from)) {
    const Widened& source = widened(from, to);
    at = source.compute;
    add(source.widen, item_size(at));
  } else if (is_reduced_floating(from)) {
    step_to(DType::kFloat32);
  }
  if (at == to || (at != from && add_loop(to))) return;
  if (!is_storage_type(to)) {
    // Through float, but for what convert_simd() does at once.
    if (is_reduced_floating(to) && !convert_simd(to, at)) step_to(DType::kFloat32);
    step_to(to);
    return;
  }
  const Widened& result = widened(to, from);
  step_to(result.compute);
  const Function fast = convert_simd(to, at);
  add(fast ? fast : result.narrow, item_size(to));
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
