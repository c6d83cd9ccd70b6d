// The vectorized steps of a Fourier transform, for each instruction set (kernels.cc).
//
// A panel is what all of them work on: a matrix with one transform in each lane of a vector, a row
// of which is a vector of real parts and one of imaginary parts. Its columns are transformed in
// place by passes of a decimation in frequency (Gentleman and Sande, 1966), which leaves the result
// of index k in another row: FftColumns::row says where.
//
// A long line of n = n1 n2 elements is a matrix itself (Bailey, "FFTs in external or hierarchical
// memory", 1990): its n2 columns are transformed a panel at a time, multiplied by the twiddle
// factors exp(-2 pi i b k1 / n), transposed, and become n1 columns of length n2, whose result k2 is
// element k1 + n1 k2. In both steps lanes are neighbours in memory.
#pragma once

#include <cstdint>
#include <vector>

namespace taeda::cpu {

constexpr int kLargestRadix = 61;
constexpr int64_t kMostLanes = 16;

// One pass over n rows, which are `blocks` transforms of radix * m rows: rows p + m k of a block,
// k = 0 ... radix - 1, through a butterfly; result j is multiplied by exp(-2 pi i p j / (radix m)),
// complex numbers at p (radix - 1) + j - 1 of `twiddles`, and replaces row p + m j. `roots` holds
// exp(-2 pi i j / radix), j = 0 ... radix - 1.
template <class T>
struct FftPass {
  int radix;
  int64_t m, blocks;
  std::vector<T> twiddles, roots;
};

// A transform of the columns of n rows.
template <class T>
struct FftColumns {
  explicit FftColumns(int64_t n);  // whose prime factors are at most kLargestRadix
  int64_t n;
  std::vector<FftPass<T>> passes;
  std::vector<int32_t> row;    // where result k is
  std::vector<int32_t> first;  // results of block i of the last pass: first[i] + blocks j
};

// A transform of one line by the columns of a matrix, n = down.n * across.n, both at least the
// number of lanes.
template <class T>
struct FftMatrix {
  FftMatrix(int64_t n1, int64_t n2);
  int64_t n() const { return down.n * across.n; }
  int64_t panels(int64_t n) const { return (n + lanes - 1) / lanes; }
  int64_t panel_size() const { return 2 * lanes * down.n; }  // in numbers of T
  int64_t transposed_size() const { return 2 * lanes * panels(down.n) * across.n; }
  const int64_t lanes;
  const FftColumns<T> down, across;
  // Twiddle factors of panel B of columns and row k1, as a row of a panel: whole[B][k1] or, for
  // long lines, the product of the complex number start[B][k1] with the row step[k1].
  std::vector<T> whole, start, step;
};

enum class FftKind : uint8_t { kComplex, kFromReal, kToReal };

// `lanes` transforms of n elements, one a lane; where there are fewer, the last one several times.
// Addresses are those of first elements, strides count numbers of T.
template <class T>
struct FftLanes {
  const FftColumns<T>* columns;  // of n elements, or of n / 2 pairs of real ones
  const T* half_roots;           // for pairs: -i exp(-2 pi i k / n), k = 0 ... n / 4; else null
  FftKind kind;
  int64_t n, outputs;
  bool backward;
  T scale;
  const T* from[kMostLanes];
  T* to[kMostLanes];
  int64_t from_stride, to_stride;
  // Lanes follow each other in that memory, of which only the first one's address counts. Of
  // results that do not, though what is read does, the addresses are in the order of fft_lane().
  bool from_neighbours, to_neighbours;
  const T *next_from, *next_to;  // what the next lanes read and write where it is far away, or null
};

// The functions of an instruction set; `backward` is the inverse transform, unscaled.
template <class T>
struct FftKernels {
  int64_t lanes;
  void (*run_lanes)(const FftLanes<T>& work, T* panel);
  // Step one for columns panels [begin, end) of `in`, step two for panels of results.
  void (*step_down)(const FftMatrix<T>& matrix, const T* in, T* panel, T* transposed, bool backward,
                    int64_t begin, int64_t end);
  void (*step_across)(const FftMatrix<T>& matrix, T* transposed, T* out, T scale, bool backward,
                      int64_t begin, int64_t end);
  // Pairs (k, half - k) of complex numbers, k in [begin, end), become s (a + conj(b)) + s r (a -
  // conj(b)) and the conjugate of the difference; r is roots[k], or its conjugate where `inverse`.
  void (*mix_pairs)(const T* in, T* out, int64_t half, const T* roots, T s, bool inverse,
                    int64_t begin, int64_t end);
  // out[k] = s x[k] y[k] of complex numbers; the conjugates of the y where `conjugate`.
  void (*multiply)(const T* x, const T* y, T* out, int64_t n, T s, bool conjugate);
};

template <class T>
const FftKernels<T>& fft_kernels();
template <>
const FftKernels<float>& fft_kernels();
template <>
const FftKernels<double>& fft_kernels();

// The complex number that lane l of a row holds, where a panel's rows come from memory that lanes
// are neighbours in: real parts of even lanes are those of the first half.
inline int64_t fft_lane(int64_t l, int64_t lanes) { return l / 2 + (l % 2) * (lanes / 2); }

}  // namespace taeda::cpu
