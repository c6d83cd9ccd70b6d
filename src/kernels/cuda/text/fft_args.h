// The argument of Fourier transforms' kernel (fft.cuh), which launchers fill (../fft_chain.cc).
#pragma once
#include "kernels/cuda/text/walk_args.h"

namespace taeda::device {

// Complex numbers of T that a block holds: 16 KiB, three times in shared memory.
template <class T>
inline constexpr uint32_t kFftPoints = (16 << 10) / (2 * sizeof(T));
inline constexpr int kFftPasses = 16;  // in shared memory, at most

// What a line has in memory: complex or real numbers; the first half of a line whose other half are
// conjugates; nothing, standing for the filter of Bluestein's convolution.
enum class FftForm : uint8_t { kComplex, kReal, kHermitian, kFilter };

struct FftPass {
  Divisor butterflies, before;  // of a transform; the product of the radices so far
  uint32_t radix;
};

// A pass over lines of `length` = before * points * rest elements: each is transformed in `columns`
// = before * rest transforms of `points` elements, which are `columns` elements apart.
struct FftArgs {
  Walk<2> lines;  // where each begins in what is read and what is written
  const char* in;
  char* out;
  const char* factors;            // `length` numbers that results are multiplied by; null: none
  int64_t in_stride, out_stride;  // bytes from an element to the next
  uint64_t length, n;             // n: of the transform that is a convolution of `length` elements
  uint64_t in_count, out_count;   // elements that are read, others being 0, and that are written
  uint64_t transforms, tiles;     // a block has `tile` transforms at a time
  double scale;
  Divisor points, columns, before, tile;
  uint32_t pitch;  // from a transform to the next in shared memory
  uint32_t passes;
  FftPass pass[kFftPasses];
  FftForm from, to;
  bool swap_in, swap_out, swap_end;  // real and imaginary parts: read; before and after chirps
  bool chirp_in, chirp_out;          // multiplied by exp(-pi i k^2 / n)
  bool across_in, across_out;        // neighbours in memory are of neighbouring transforms
  bool wide;                         // 31 bits do not hold `transforms`
};

}  // namespace taeda::device
