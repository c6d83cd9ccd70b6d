#include "taeda/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "taeda/device.h"
#include "taeda/error.h"

namespace taeda {
namespace {

// Rows and columns in the order of DType; from torch.promote_types.
TEST(DType, PromotionIsTorchs) {
  const char* expected[kNumArithmeticDTypes] = {
      "b u i s w l h B f d c C", "u u s s w l h B f d c C", "i s i s w l h B f d c C",
      "s s s s w l h B f d c C", "w w w w w l h B f d c C", "l l l l l l h B f d c C",
      "h h h h h h h f f d c C", "B B B B B B f B f d c C", "f f f f f f f f f d c C",
      "d d d d d d d d d d C C", "c c c c c c c c c C c C", "C C C C C C C C C C C C"};
  const std::string_view letters = "buiswlhBfdcC";
  for (int a = 0; a < kNumArithmeticDTypes; a++) {
    for (int b = 0; b < kNumArithmeticDTypes; b++) {
      const DType want = static_cast<DType>(letters.find(expected[a][2 * b]));
      EXPECT_EQ(promote_types(static_cast<DType>(a), static_cast<DType>(b)), want) << a << " " << b;
    }
  }
}

TEST(DType, StorageTypesHaveFewCommonTypes) {
  EXPECT_EQ(promote_types(DType::kUInt16, DType::kFloat16), DType::kFloat16);
  EXPECT_EQ(promote_types(DType::kComplex32, DType::kFloat64), DType::kComplex128);
  EXPECT_EQ(promote_types(DType::kInt64, DType::kComplex32), DType::kComplex32);
  EXPECT_THROW(promote_types(DType::kUInt16, DType::kInt64), Error);
  EXPECT_THROW(promote_types(DType::kUInt16, DType::kUInt32), Error);
  EXPECT_THROW(promote_types(DType::kFloat8E5M2, DType::kFloat32), Error);
}

// All codes but NaN's come back, and numbers half way between two go to the even code.
template <class T>
void expect_rounds_to_nearest() {
  for (int code = 0; code < 0x7f; code++) {
    T low, high;
    low.bits = static_cast<uint8_t>(code);
    high.bits = static_cast<uint8_t>(code + 1);
    const float a = low, b = high;
    if (!std::isfinite(a)) continue;
    EXPECT_EQ(T(a).bits, code);
    if (!std::isfinite(b)) continue;
    EXPECT_EQ(T((a + b) / 2).bits, code % 2 ? code + 1 : code) << code;
    EXPECT_EQ(T(std::nextafter((a + b) / 2, b)).bits, code + 1) << code;
  }
}
TEST(DType, Float8RoundsToNearestEven) {
  expect_rounds_to_nearest<Float8E4M3FN>();
  expect_rounds_to_nearest<Float8E5M2>();
  expect_rounds_to_nearest<Float8E4M3FNUZ>();
  expect_rounds_to_nearest<Float8E5M2FNUZ>();
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Float8E4M3FN(infinity).bits, 0x7e);  // saturates
  EXPECT_EQ(Float8E5M2(-infinity).bits, 0xfc);
  EXPECT_EQ(Float8E4M3FNUZ(248.f).bits, 0x80);  // NaN
  EXPECT_EQ(Float8E4M3FNUZ(-0.f).bits, 0);
  EXPECT_EQ(Float8E8M0(3.f).bits, 0x81);
}

TEST(DType, CanCast) {
  EXPECT_FALSE(can_cast(DType::kFloat32, DType::kInt64));
  EXPECT_FALSE(can_cast(DType::kComplex64, DType::kFloat64));
  EXPECT_FALSE(can_cast(DType::kInt32, DType::kBool));
  EXPECT_FALSE(can_cast(DType::kFloat32, DType::kBool));
  EXPECT_TRUE(can_cast(DType::kInt64, DType::kUInt8));
  EXPECT_TRUE(can_cast(DType::kFloat64, DType::kFloat16));
  EXPECT_TRUE(can_cast(DType::kBool, DType::kBool));
}

TEST(DType, HalfRoundsLikeIeee) {
  for (uint32_t bits = 0; bits < 65536; bits++) {
    Half h;
    h.bits = static_cast<uint16_t>(bits);
    const float f = h;
    if (std::isnan(f))
      EXPECT_TRUE(std::isnan(static_cast<float>(Half(f))));
    else
      EXPECT_EQ(Half(f).bits, h.bits);
  }
  EXPECT_EQ(Half(65519.f).bits, 0x7bff);
  EXPECT_EQ(Half(65520.f).bits, 0x7c00);
  EXPECT_EQ(Half(0x1p-25f).bits, 0);  // ties to even
  EXPECT_EQ(Half(0x1.000002p-25f).bits, 1);
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::infinity()).bits, 0x7f80);
}

TEST(Device, Parse) {
  EXPECT_EQ(Device::parse("cpu"), Device(DeviceType::kCPU));
  EXPECT_EQ(Device::parse("cuda:1"), Device(DeviceType::kCUDA, 1));
  EXPECT_EQ(to_text(Device::parse("cuda:1")), "cuda:1");
  for (const char* bad : {"", "gpu", "cuda:", "cuda:-1", "cuda:x", "cuda:01", "cuda:999"})
    EXPECT_THROW(Device::parse(bad), Error) << bad;
}

}  // namespace
}  // namespace taeda
