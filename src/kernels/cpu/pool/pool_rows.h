// Row kernels of max pooling, compiled for every instruction set. A NaN wins against any number.
//
// Windows that begin `stride` elements apart are taken by whole vectors from the phases of a row:
// phase j holds the elements j, j + stride, j + 2 stride, ... of the padded row, so that element k
// of the windows o, o + 1, ... lies side by side in one phase.
#pragma once

#include "kernels/cpu/pool/pool.h"

namespace taeda::cpu {

// The phases of rows with windows `w`, one after the other.
struct Phases {
  explicit Phases(const Windows& w);
  // Where window 0's element k is.
  int64_t tap(int64_t k) const {
    const int64_t at = k * w.dilation;
    return at % w.stride * pitch + at / w.stride;
  }
  int64_t size() const { return w.stride * pitch; }
  // Rows of few windows, or of windows far apart, would be mostly padding.
  static bool pays(const Windows& w) {
    return w.out >= 4 && w.stride <= 8 && w.kernel <= w.in && w.dilation <= w.in;
  }

  const Windows w;
  int64_t pitch;  // elements of a phase, with room for whole vectors
};

// Writes a row's elements to their indices in `phases`, whose others hold minus infinity; whether
// one is NaN.
bool split_phases(const Phases& p, const float* row, float* phases);
bool split_phases(const Phases& p, const double* row, double* phases);

// y[i] = max over t < count of taps[t][i], i < n
void max_of_taps(const float* const* taps, int64_t count, float* y, int64_t n);
void max_of_taps(const double* const* taps, int64_t count, double* y, int64_t n);

inline constexpr uint32_t kNoTap = 0xffffffff;

// y[i] = max over t < count of from[taps[t] + i] and which t it is: of the first among equals, the
// last among NaN, kNoTap where all are minus infinity. Reads whole vectors of taps and writes whole
// vectors of `where`; has_nan may be false only where no element is NaN. Whether there is a kNoTap.
bool find_max_of_taps(const float* from, const int64_t* taps, int64_t count, bool has_nan, float* y,
                      uint32_t* where, int64_t n);
bool find_max_of_taps(const double* from, const int64_t* taps, int64_t count, bool has_nan,
                      double* y, uint32_t* where, int64_t n);

// y[i] = max(upper[2 i], upper[2 i + 1], lower[2 i], lower[2 i + 1])
void max_of_pairs(const float* upper, const float* lower, float* y, int64_t n);
void max_of_pairs(const double* upper, const double* lower, double* y, int64_t n);
// gy[i] goes to the one of those four that argmax[i] names, zero to the others.
void max_of_pairs_gradient(const uint8_t* argmax, const float* gy, float* g_upper, float* g_lower,
                           int64_t n);
void max_of_pairs_gradient(const uint8_t* argmax, const double* gy, double* g_upper,
                           double* g_lower, int64_t n);

}  // namespace taeda::cpu
