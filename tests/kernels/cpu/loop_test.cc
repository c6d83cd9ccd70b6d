// The loop engine against a plain walk over all indices, for random layouts, dtypes and broadcasts.
#include "kernels/cpu/pointwise/loop.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstring>
#include <random>
#include <vector>

namespace taeda {
namespace {

using Random = std::mt19937;

int64_t pick(Random& random, int64_t lo, int64_t hi) {
  return std::uniform_int_distribution<int64_t>(lo, hi)(random);
}

// An array with memory, sizes and strides of its own.
struct Array {
  std::vector<char> memory;
  DimVector sizes, strides;
  DType dtype;
  int64_t numel = 1;

  View view() { return {memory.data(), dtype, sizes, strides, numel, true}; }
  char* at(int64_t linear) {
    int64_t offset = 0;
    for (size_t d = sizes.size(); d-- > 0;) {
      offset += linear % sizes[d] * strides[d];
      linear /= sizes[d];
    }
    return memory.data() + offset * item_size(dtype);
  }
};

// Dimensions in random order, with gaps now and then; broadcast (stride 0) where allowed.
Array random_array(Random& random, const DimVector& sizes, DType dtype, bool may_broadcast) {
  Array a;
  a.sizes = sizes;
  a.dtype = dtype;
  a.strides.resize(sizes.size());
  std::vector<size_t> order(sizes.size());
  for (size_t d = 0; d < order.size(); d++) order[d] = order.size() - 1 - d;
  if (pick(random, 0, 1)) std::shuffle(order.begin(), order.end(), random);
  int64_t stride = pick(random, 0, 3) ? 1 : 2;
  for (const size_t d : order) {
    a.numel *= sizes[d];
    if (may_broadcast && pick(random, 0, 3) == 0) continue;
    a.strides[d] = stride;
    stride *= sizes[d] + (pick(random, 0, 3) == 0);
  }
  a.memory.resize(static_cast<size_t>(stride * item_size(dtype) + 64));
  return a;
}

DimVector random_sizes(Random& random) {
  DimVector sizes;
  const int64_t ndim = pick(random, 0, 5);
  int64_t numel = 1;
  for (int64_t d = 0; d < ndim; d++) {
    const int64_t size =
        numel < 100 && pick(random, 0, 9) == 0 ? pick(random, 30, 70) : pick(random, 1, 9);
    sizes.push_back(numel * size < 10000 ? size : 1);
    numel *= sizes.back();
  }
  return sizes;
}

double get(DType dtype, const char* p) {
  switch (dtype) {
#define TD_CASE(name, type)               \
  case DType::name: {                     \
    type value;                           \
    std::memcpy(&value, p, sizeof value); \
    return static_cast<double>(value);    \
  }
    TD_CASE(kBool, uint8_t)
    TD_CASE(kUInt8, uint8_t)
    TD_CASE(kInt8, int8_t)
    TD_CASE(kInt16, int16_t)
    TD_CASE(kInt32, int32_t)
    TD_CASE(kInt64, int64_t)
    TD_CASE(kFloat16, Half)
    TD_CASE(kBFloat16, BFloat16)
    TD_CASE(kFloat32, float)
    TD_CASE(kFloat64, double)
#undef TD_CASE
    case DType::kComplex64:
      return *reinterpret_cast<const float*>(p);
    case DType::kComplex128:
      return *reinterpret_cast<const double*>(p);
    default:
      ADD_FAILURE() << "no kernel computes in a type to store";
      return 0;
  }
}

// Small integers, which every dtype but bool holds exactly.
void put(DType dtype, char* p, int64_t value) {
  const auto write = [p](auto v) { std::memcpy(p, &v, sizeof v); };
  switch (dtype) {
    case DType::kBool:
      return write(value != 0);
    case DType::kUInt8:
      return write(static_cast<uint8_t>(value));
    case DType::kInt8:
      return write(static_cast<int8_t>(value));
    case DType::kInt16:
      return write(static_cast<int16_t>(value));
    case DType::kInt32:
      return write(static_cast<int32_t>(value));
    case DType::kInt64:
      return write(value);
    case DType::kFloat16:
      return write(Half(static_cast<float>(value)));
    case DType::kBFloat16:
      return write(BFloat16(static_cast<float>(value)));
    case DType::kFloat32:
      return write(static_cast<float>(value));
    case DType::kFloat64:
      return write(static_cast<double>(value));
    case DType::kComplex64:
      return write(std::complex<float>(static_cast<float>(value), 0));
    case DType::kComplex128:
      return write(std::complex<double>(static_cast<double>(value), 0));
    default:
      ADD_FAILURE() << "no kernel computes in a type to store";
  }
}

void fill_random(Random& random, Array& a) {
  for (int64_t i = 0; i < a.numel; i++) put(a.dtype, a.at(i), pick(random, 0, 3));
}

float element(const void* const* in, size_t k, int64_t i, uint32_t repeated) {
  // Of a repeated input, any of the copies.
  const int64_t copies = kRepeatBytes / int64_t{sizeof(float)};
  return static_cast<const float*>(in[k])[repeated >> k & 1 ? i % copies : i];
}
void weighted_sum(void* out, const void* const* in, int64_t n, const void* params,
                  uint32_t repeated) {
  const float scale = *static_cast<const float*>(params);
  for (int64_t i = 0; i < n; i++)
    static_cast<float*>(out)[i] = element(in, 0, i, repeated) + scale * element(in, 1, i, repeated);
}
void is_less(void* out, const void* const* in, int64_t n, const void*, uint32_t repeated) {
  for (int64_t i = 0; i < n; i++)
    static_cast<bool*>(out)[i] = element(in, 0, i, repeated) < element(in, 1, i, repeated);
}

DType random_dtype(Random& random) {
  return static_cast<DType>(pick(random, 0, kNumArithmeticDTypes - 1));
}

TEST(Loop, EveryLayoutAndDType) {
  Random random(1);
  for (int round = 0; round < 600; round++) {
    const DimVector sizes = random_sizes(random);
    const bool plain = pick(random, 0, 2) == 0;
    const auto dtype = [&] { return plain ? DType::kFloat32 : random_dtype(random); };
    Array out = random_array(random, sizes, dtype(), false);
    Array x = random_array(random, sizes, dtype(), true),
          y = random_array(random, sizes, dtype(), true);
    fill_random(random, x);
    fill_random(random, y);
    const std::vector<char> untouched = out.memory;
    const float scale = 2;
    pointwise_loop(weighted_sum, DType::kFloat32, DType::kFloat32, out.view(), {x.view(), y.view()},
                   &scale);
    for (int64_t i = 0; i < out.numel; i++) {
      double expected = get(x.dtype, x.at(i)) + 2 * get(y.dtype, y.at(i));
      if (out.dtype == DType::kBool) expected = expected != 0;
      ASSERT_EQ(get(out.dtype, out.at(i)), expected) << "round " << round << " element " << i;
    }
    // Gaps between elements keep their bytes.
    for (int64_t i = 0; i < out.numel; i++)
      std::memset(out.at(i), 0, static_cast<size_t>(item_size(out.dtype)));
    ASSERT_EQ(out.memory, untouched) << "round " << round;
  }
}

TEST(Loop, BoolResults) {
  Random random(2);
  for (int round = 0; round < 200; round++) {
    const DimVector sizes = random_sizes(random);
    Array out = random_array(random, sizes, DType::kBool, false);
    Array x = random_array(random, sizes, DType::kBFloat16, true),
          y = random_array(random, sizes, DType::kInt64, true);
    fill_random(random, x);
    fill_random(random, y);
    pointwise_loop(is_less, DType::kFloat32, DType::kBool, out.view(), {x.view(), y.view()},
                   nullptr);
    for (int64_t i = 0; i < out.numel; i++) {
      ASSERT_EQ(get(out.dtype, out.at(i)) != 0, get(x.dtype, x.at(i)) < get(y.dtype, y.at(i)));
    }
  }
}

TEST(Loop, LargeTransposedInPlaceAndEmpty) {
  const int64_t n = 700;
  std::vector<float> x(static_cast<size_t>(n * n)), y(x), out(x);
  for (size_t i = 0; i < x.size(); i++)
    x[i] = static_cast<float>(i), y[i] = static_cast<float>(i % 11);
  const float scale = 3;
  const DimVector sizes{n, n}, row_major{n, 1}, transposed{1, n};
  const auto view = [&](std::vector<float>& v, const DimVector& strides) {
    return View{v.data(), DType::kFloat32, sizes, strides, n * n, true};
  };
  pointwise_loop(weighted_sum, DType::kFloat32, DType::kFloat32, view(out, row_major),
                 {view(x, transposed), view(y, row_major)}, &scale);
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < n; j++) {
      ASSERT_EQ(out[static_cast<size_t>(i * n + j)],
                static_cast<float>(j * n + i) + 3 * y[static_cast<size_t>(i * n + j)]);
    }
  }
  pointwise_loop(weighted_sum, DType::kFloat32, DType::kFloat32, view(x, transposed),
                 {view(x, transposed), view(x, transposed)}, &scale);
  for (size_t i = 0; i < x.size(); i++)
    ASSERT_EQ(x[i], static_cast<float>(i) + 3 * static_cast<float>(i));
  const DimVector none{0, 5}, strides{5, 1};
  const View empty{nullptr, DType::kFloat32, none, strides, 0, true};
  pointwise_loop(weighted_sum, DType::kFloat32, DType::kFloat32, empty, {empty, empty}, &scale);
}

TEST(Copy, EveryLayoutAndDTypePair) {
  Random random(3);
  for (int round = 0; round < 600; round++) {
    const DimVector sizes = random_sizes(random);
    Array src = random_array(random, sizes, random_dtype(random), true);
    Array dst =
        random_array(random, sizes, pick(random, 0, 1) ? src.dtype : random_dtype(random), false);
    fill_random(random, src);
    cpu::copy(dst.view(), src.view());
    for (int64_t i = 0; i < dst.numel; i++) {
      double expected = get(src.dtype, src.at(i));
      if (dst.dtype == DType::kBool) expected = expected != 0;
      ASSERT_EQ(get(dst.dtype, dst.at(i)), expected) << "round " << round;
    }
  }
}

TEST(Copy, Conversions) {
  const auto convert = [](auto to, auto value) {
    decltype(to) result;
    cpu::Conversion(kDTypeOf<decltype(to)>, kDTypeOf<decltype(value)>)(&result, &value, 1);
    return result;
  };
  EXPECT_EQ(convert(int64_t{}, -2.9), -2);
  EXPECT_EQ(convert(uint8_t{}, -1.5f), 255);
  EXPECT_EQ(convert(int8_t{}, int64_t{300}), 44);
  EXPECT_EQ(convert(bool{}, std::complex<float>(0, 1)), true);
  EXPECT_EQ(convert(bool{}, std::numeric_limits<float>::quiet_NaN()), true);
  EXPECT_EQ(convert(int32_t{}, 1e30f), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(convert(int64_t{}, std::numeric_limits<double>::quiet_NaN()),
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(convert(float{}, std::complex<double>(1.5, 7)), 1.5f);
  EXPECT_EQ(convert(Half{}, 65520.0f).bits, 0x7c00);
}

// The vector code must agree with the scalar conversion, bit for bit.
TEST(Copy, SixteenBitFloats) {
  std::vector<Half> halves(65536), back(65536);
  std::vector<BFloat16> shorts(65536), short_back(65536);
  for (size_t i = 0; i < 65536; i++) halves[i].bits = shorts[i].bits = static_cast<uint16_t>(i);
  std::vector<float> wide(65536), narrow_input;
  cpu::Conversion(DType::kFloat32, DType::kFloat16)(wide.data(), halves.data(), 65536);
  cpu::Conversion(DType::kFloat16, DType::kFloat32)(back.data(), wide.data(), 65536);
  for (size_t i = 0; i < 65536; i++) {
    if (wide[i] != wide[i]) continue;
    ASSERT_EQ(wide[i], static_cast<float>(halves[i]));
    ASSERT_EQ(back[i].bits, halves[i].bits);
  }
  Random random(4);
  for (int i = 0; i < 100001; i++)
    narrow_input.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  std::vector<BFloat16> narrow(narrow_input.size());
  cpu::Conversion(DType::kBFloat16, DType::kFloat32)(narrow.data(), narrow_input.data(),
                                                     static_cast<int64_t>(narrow.size()));
  for (size_t i = 0; i < narrow.size(); i++) {
    if (narrow_input[i] == narrow_input[i])
      ASSERT_EQ(narrow[i].bits, BFloat16(narrow_input[i]).bits);
    else
      ASSERT_NE(static_cast<float>(narrow[i]), static_cast<float>(narrow[i]));
  }
}

TEST(Fill, ConvertsAndChecks) {
  Random random(5);
  for (int round = 0; round < 300; round++) {
    Array dst = random_array(random, random_sizes(random), random_dtype(random), false);
    cpu::fill(dst.view(), Scalar(1));
    for (int64_t i = 0; i < dst.numel; i++) ASSERT_EQ(get(dst.dtype, dst.at(i)), 1);
  }
  uint8_t byte;
  const DimVector none{};
  EXPECT_THROW(cpu::fill(View{&byte, DType::kUInt8, none, none, 1, true}, Scalar(300)), Error);
}

}  // namespace
}  // namespace taeda
