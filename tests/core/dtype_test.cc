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
  const char* expected[kNumDTypes] = {
      "b u i s w l h B f d c C", "u u s s w l h B f d c C", "i s i s w l h B f d c C",
      "s s s s w l h B f d c C", "w w w w w l h B f d c C", "l l l l l l h B f d c C",
      "h h h h h h h f f d c C", "B B B B B B f B f d c C", "f f f f f f f f f d c C",
      "d d d d d d d d d d C C", "c c c c c c c c c C c C", "C C C C C C C C C C C C"};
  const std::string_view letters = "buiswlhBfdcC";
  for (int a = 0; a < kNumDTypes; a++) {
    for (int b = 0; b < kNumDTypes; b++) {
      const DType want = static_cast<DType>(letters.find(expected[a][2 * b]));
      EXPECT_EQ(promote_types(static_cast<DType>(a), static_cast<DType>(b)), want) << a << " " << b;
    }
  }
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
