// Tables of logarithms and powers of two, for the powers in simd_math-inl.h.
//
// A number is 2^k m with m in [0.69921875, 1.3984375). The 16 intervals of m of one exponent and
// four bits of the mantissa have an approximate reciprocal each, so that |m reciprocal - 1| <
// 0.0306; it is 1 around m = 1, which makes logarithms near zero exact.
#pragma once

#include <cstdint>

namespace taeda::cpu::power_tables {

// What [0.69921875, ...) begins with, as bits.
inline constexpr int32_t kFirstFloat = 0x3f330000;
inline constexpr int64_t kFirstDouble = 0x3fe6600000000000;

alignas(64) inline constexpr double kReciprocal[16] = {
    1.3984375,   1.33984375, 1.287109375, 1.236328125, 1.19140625,  1.1484375,
    1.107421875, 1.0703125,  1.037109375, 1.0,         0.947265625, 0.89453125,
    0.84765625,  0.8046875,  0.765625,    0.73046875};

// -log(reciprocal) in two parts: k log(2) added to the first is exact.
alignas(64) inline constexpr double kLogHigh[16] = {-0x1.5767717456p-2, -0x1.2b9303ab8ap-2,
                                                    -0x1.0274dc16c2p-2, -0x1.b2797ee464p-3,
                                                    -0x1.66acd4272ap-3, -0x1.1b72ad52f6p-3,
                                                    -0x1.a1ef1d806p-4,  -0x1.16536eea38p-4,
                                                    -0x1.2a7ec2215p-5,  0,
                                                    0x1.bbcebfc69p-5,   0x1.c885801bc4p-4,
                                                    0x1.527e5e4a1cp-3,  0x1.bd087383bep-3,
                                                    0x1.1178e8227ep-2,  0x1.419b423d5fp-2};
alignas(64) inline constexpr double kLogLow[16] = {0x1.64ead9524d7cap-44,  0x1.6db12d6bfb0a5p-45,
                                                   -0x1.979e89cf835c2p-45, 0x1.be88a906d00a9p-44,
                                                   -0x1.aa1bdbfc6c785p-44, -0x1.e80a41811a396p-45,
                                                   -0x1.cd4176df97bcbp-44, 0x1.47c5e768fa309p-46,
                                                   0x1.78ce77a9163fep-45,  0,
                                                   -0x1.7bf868c317c2ap-46, 0x1.646d1c65aacd3p-45,
                                                   -0x1.4e60b8d4b411dp-44, -0x1.d4bc4595412b6p-45,
                                                   0x1.1ef78ce2d07f2p-44,  -0x1.ce379226de3ecp-44};
// The bits of 2^(j/16) less j << 48: adding n << 48 gives 2^(n/16) for any n that ends in j. The
// second table is what 2^(j/16) was rounded by, relative to it.
alignas(64) inline constexpr int64_t kRootBits[16] = {
    0x3ff0000000000000, 0x3fefb5586cf9890f, 0x3fef72b83c7d517b, 0x3fef387a6e756238,
    0x3fef06fe0a31b715, 0x3feedea64c123422, 0x3feebfdad5362a27, 0x3feeab07dd485429,
    0x3feea09e667f3bcd, 0x3feea11473eb0187, 0x3feeace5422aa0db, 0x3feec49182a3f090,
    0x3feee89f995ad3ad, 0x3fef199bdd85529c, 0x3fef5818dcfba487, 0x3fefa4afa2a490da};
alignas(64) inline constexpr double kRootLow[16] = {0,
                                                    8.1893176381955136e-17,
                                                    -2.7939114859515733e-17,
                                                    7.8265732586360749e-17,
                                                    3.3484623336251524e-17,
                                                    3.7508542013031266e-17,
                                                    1.9572585293112036e-17,
                                                    5.68648095791174e-17,
                                                    -6.8358086576619232e-17,
                                                    -2.3591094770850053e-17,
                                                    5.1548301170786783e-17,
                                                    1.5341410053603723e-17,
                                                    4.8751605262270611e-17,
                                                    1.6854872906289731e-17,
                                                    1.7901269076045131e-17,
                                                    -5.5450656186394274e-17};

// Floats: -log2(reciprocal) in two parts (k added to the first is exact), bits of 2^(j/32) less
// j << 18, and what that was rounded by.
alignas(64) inline constexpr float kShortReciprocal[32] = {
    1.40625f,  1.375f,   1.34375f, 1.3125f,   1.3125f,  1.28125f, 1.25f,     1.21875f,
    1.1875f,   1.1875f,  1.15625f, 1.125f,    1.125f,   1.09375f, 1.09375f,  1.0625f,
    1.03125f,  1.03125f, 1,        1,         0.96875f, 0.9375f,  0.90625f,  0.875f,
    0.859375f, 0.84375f, 0.8125f,  0.796875f, 0.78125f, 0.75f,    0.734375f, 0.71875f};
alignas(64) inline constexpr float kLog2High[32] = {-0x1.f7a8p-2f,
                                                    -0x1.d674p-2f,
                                                    -0x1.b48p-2f,
                                                    -0x1.91bcp-2f,
                                                    -0x1.91bcp-2f,
                                                    -0x1.6e24p-2f,
                                                    -0x1.49a8p-2f,
                                                    -0x1.244p-2f,
                                                    -0x1.fbcp-3f,
                                                    -0x1.fbcp-3f,
                                                    -0x1.acf8p-3f,
                                                    -0x1.5cp-3f,
                                                    -0x1.5cp-3f,
                                                    -0x1.08c8p-3f,
                                                    -0x1.08c8p-3f,
                                                    -0x1.664p-4f,
                                                    -0x1.6bap-5f,
                                                    -0x1.6bap-5f,
                                                    0,
                                                    0,
                                                    0x1.774p-5f,
                                                    0x1.7d6p-4f,
                                                    0x1.22d8p-3f,
                                                    0x1.8a88p-3f,
                                                    0x1.bfc8p-3f,
                                                    0x1.f6p-3f,
                                                    0x1.32cp-2f,
                                                    0x1.4f7p-2f,
                                                    0x1.6cbp-2f,
                                                    0x1.a9p-2f,
                                                    0x1.c818p-2f,
                                                    0x1.e7ep-2f};
alignas(64) inline constexpr float kLog2Low[32] = {-1.28968907e-06f,
                                                   -4.73875434e-06f,
                                                   4.77654794e-06f,
                                                   1.30280716e-06f,
                                                   1.30280716e-06f,
                                                   7.19948366e-06f,
                                                   1.83675331e-06f,
                                                   -1.82823726e-06f,
                                                   -2.70875603e-06f,
                                                   -2.70875603e-06f,
                                                   4.03183185e-06f,
                                                   -3.12644238e-06f,
                                                   -3.12644238e-06f,
                                                   4.70278155e-06f,
                                                   4.70278155e-06f,
                                                   5.37655922e-07f,
                                                   -6.30197565e-06f,
                                                   -6.30197565e-06f,
                                                   0,
                                                   0,
                                                   -3.19515243e-06f,
                                                   2.73532095e-07f,
                                                   5.45506782e-06f,
                                                   2.86602835e-06f,
                                                   -2.90200114e-06f,
                                                   -4.68966346e-06f,
                                                   -2.65016098e-07f,
                                                   -1.02556521e-06f,
                                                   3.67350663e-06f,
                                                   -1.56322119e-06f,
                                                   7.09558799e-06f,
                                                   -2.38574444e-06f};
alignas(64) inline constexpr int32_t kShortRootBits[32] = {
    0x3f800000, 0x3f7ecd87, 0x3f7daac3, 0x3f7c980f, 0x3f7b95c2, 0x3f7aa43a, 0x3f79c3d3, 0x3f78f4f0,
    0x3f7837f0, 0x3f778d3a, 0x3f76f532, 0x3f767043, 0x3f75fed7, 0x3f75a15b, 0x3f75583f, 0x3f7523f6,
    0x3f7504f3, 0x3f74fbaf, 0x3f7508a4, 0x3f752c4d, 0x3f75672a, 0x3f75b9be, 0x3f76248c, 0x3f76a81e,
    0x3f7744fd, 0x3f77fbb8, 0x3f78ccdf, 0x3f79b907, 0x3f7ac0c7, 0x3f7be4ba, 0x3f7d257d, 0x3f7e83b3};
alignas(64) inline constexpr float kShortRootLow[32] = {0,
                                                        -4.70845796e-08f,
                                                        4.62854687e-08f,
                                                        -5.56042294e-08f,
                                                        -1.19921572e-08f,
                                                        -4.87760661e-08f,
                                                        4.72978214e-08f,
                                                        -3.48144275e-08f,
                                                        3.19341798e-08f,
                                                        -2.68866662e-08f,
                                                        3.62105718e-08f,
                                                        1.11842106e-09f,
                                                        -3.09907217e-08f,
                                                        -2.63830109e-08f,
                                                        -7.47521322e-09f,
                                                        -4.24563574e-08f,
                                                        1.7114271e-08f,
                                                        2.30019663e-08f,
                                                        -3.04768352e-08f,
                                                        -1.65385376e-08f,
                                                        5.23333422e-09f,
                                                        -3.5920648e-08f,
                                                        6.10759158e-09f,
                                                        -3.11405445e-08f,
                                                        -1.47196057e-08f,
                                                        -2.82181019e-08f,
                                                        -5.25879515e-09f,
                                                        -6.36038722e-09f,
                                                        -6.12825986e-09f,
                                                        -2.48804086e-08f,
                                                        5.14060919e-09f,
                                                        -8.69726665e-09f};

}  // namespace taeda::cpu::power_tables
