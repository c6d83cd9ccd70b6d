#include "kernels/cpu/fft/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <list>
#include <numbers>

#include "base/parallel.h"
#include "kernels/cpu/simd/scratch.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kLongTable = 1 << 16;  // elements from which on twiddle factors are products
constexpr int64_t kThreaded = 1 << 15;   // elements from which on a line is cut
constexpr int64_t kPanelWork = 1 << 13;  // elements of panels that a thread takes at once
constexpr int64_t kMostRows = 1 << 13;   // of a panel that stays in the second cache
constexpr int64_t kFewRows = 256;        // of a panel that stays in the first cache

// exp(-2 pi i k / n) to double precision: the angle is brought into the first eighth of a turn.
std::complex<double> root(int64_t k, int64_t n) {
  k %= n;
  const bool below = 2 * k > n;  // the lower half: the conjugate
  if (below) k = n - k;
  const bool left = 4 * k > n;
  // eighths in units of 1 / (8 n), so that nothing is rounded
  int64_t eighths = left ? 4 * n - 8 * k : 8 * k;
  const bool steep = eighths > n;
  if (steep) eighths = 2 * n - eighths;
  const double angle = std::numbers::pi / 4 * static_cast<double>(eighths) / static_cast<double>(n);
  double c = std::cos(angle), s = std::sin(angle);
  if (steep) std::swap(c, s);
  return {left ? -c : c, below ? s : -s};
}

template <class T>
void push(std::vector<T>& to, std::complex<double> z) {
  to.push_back(static_cast<T>(z.real()));
  to.push_back(static_cast<T>(z.imag()));
}

// The factors of n; empty where one is above kLargestRadix.
std::vector<int> radices_of(int64_t n) {
  std::vector<int> found;
  int twos = 0;
  for (; n % 2 == 0; n /= 2) twos++;
  for (; twos > 2 && twos != 4; twos -= 3) found.push_back(8);
  for (; twos >= 2; twos -= 2) found.push_back(4);
  if (twos > 0) found.push_back(2);
  for (int radix = 3; radix <= kLargestRadix; radix += 2)
    for (; n % radix == 0; n /= radix) found.push_back(radix);
  if (n > 1) found.clear();
  return found;
}

// About the instructions that transforming n rows takes.
double cost_of(int64_t n) {
  double each = 0;
  for (int radix : radices_of(n))
    each += radix == 2 ? 4 : radix == 3 ? 6 : radix == 4 ? 7 : radix <= 8 ? 10 : 2.5 * radix;
  return each * static_cast<double>(n) * (n > kFewRows ? 1.3 : 1);
}

// The rows n1 of the cheapest matrix for a line of n elements; 0 if there is none.
int64_t rows_of(int64_t n, int64_t lanes) {
  if (radices_of(n).empty()) return 0;
  int64_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  const auto panels = [&](int64_t columns) {
    return static_cast<double>((columns + lanes - 1) / lanes);
  };
  for (int64_t small = std::max<int64_t>(2, lanes); small * small <= n; small++) {
    if (n % small != 0) continue;
    const int64_t large = n / small;
    const double cost = panels(large) * cost_of(small) + panels(small) * cost_of(large);
    if (cost < least) least = cost, best = small;
  }
  return best;
}

// The length from `least` on, with factors 2, 3 and 5 only, that takes least time.
int64_t smooth_length(int64_t least, int64_t lanes) {
  int64_t best = 0;
  double cost = std::numeric_limits<double>::infinity();
  for (int64_t odd : {1, 3, 5, 9, 15, 25, 27}) {
    int64_t n = odd;
    while (n < least) n *= 2;
    const double its = cost_of(n);
    if (its < cost && rows_of(n, lanes) > 0) cost = its, best = n;
  }
  return best;
}

}  // namespace

template <class T>
FftColumns<T>::FftColumns(int64_t n) : n(n), row(static_cast<size_t>(n), 0) {
  int64_t length = n, blocks = 1;
  for (const int radix : radices_of(n)) {
    FftPass<T> pass{radix, length / radix, blocks, {}, {}};
    for (int64_t p = 0; p < pass.m; p++)
      for (int j = 1; j < radix; j++) push(pass.twiddles, root(p * j, length));
    for (int j = 0; j < radix; j++) push(pass.roots, root(j, radix));
    // A block's result j of this pass holds the results j, j + radix, ... of the block.
    length = pass.m;
    for (int64_t k = 0; k < n; k++)
      row[static_cast<size_t>(k)] += static_cast<int32_t>(k / blocks % radix * length);
    blocks *= radix;
    passes.push_back(std::move(pass));
  }
  if (passes.empty()) return;
  first.resize(static_cast<size_t>(passes.back().blocks));
  const int last = passes.back().radix;
  for (int64_t k = 0; k < n / last; k++)
    first[static_cast<size_t>(row[static_cast<size_t>(k)] / last)] = static_cast<int32_t>(k);
}

template <class T>
FftMatrix<T>::FftMatrix(int64_t n1, int64_t n2)
    : lanes(fft_kernels<T>().lanes), down(n1), across(n2) {
  const int64_t n = n1 * n2;
  const bool products = n > kLongTable;
  const auto push_row = [&](std::vector<T>& to, int64_t column, int64_t k1) {
    for (const bool imaginary : {false, true})
      for (int64_t l = 0; l < lanes; l++) {
        const std::complex<double> w = root((column + fft_lane(l, lanes)) * k1, n);
        to.push_back(static_cast<T>(imaginary ? w.imag() : w.real()));
      }
  };
  for (int64_t b = 0; b < panels(n2); b++) {
    const int64_t column = std::min(b * lanes, n2 - lanes);
    for (int64_t k1 = 0; k1 < n1; k1++) {
      if (products)
        push(start, root(column * k1, n));
      else
        push_row(whole, column, k1);
    }
  }
  for (int64_t k1 = 0; products && k1 < n1; k1++) push_row(step, 0, k1);
}

template <class T>
FftPlan<T>::FftPlan(int64_t n) : n_(n) {
  if (n > 1 && radices_of(n).empty()) {
    make_chirp();
    return;
  }
  const int64_t n1 = rows_of(n, fft_kernels<T>().lanes);
  if (n1 > 0) matrix_ = std::make_unique<FftMatrix<T>>(n1, n / n1);
  if (n1 == 0 || n <= kMostRows) columns_ = std::make_unique<FftColumns<T>>(n);
}

template <class T>
const T* FftPlan<T>::half_roots() {
  if (half_roots_.empty())
    for (int64_t k = 0; 2 * k <= n_; k++)
      push(half_roots_, std::complex<double>(0, -1) * root(k, 2 * n_));
  return half_roots_.data();
}

template <class T>
void FftPlan<T>::make_chirp() {
  const int64_t lanes = fft_kernels<T>().lanes;
  const int64_t m = smooth_length(std::max(2 * n_ - 1, lanes * lanes), lanes);
  inner_ = of(m);
  for (int64_t k = 0, square = 0; k < n_; square = (square + 2 * k + 1) % (2 * n_), k++)
    push(chirp_, root(square, 2 * n_));
  filter_.assign(static_cast<size_t>(2 * m), T(0));
  for (int64_t k = 0; k < n_; k++) {
    for (const int64_t at : {k, k ? m - k : 0}) {
      filter_[static_cast<size_t>(2 * at)] = chirp_[static_cast<size_t>(2 * k)];
      filter_[static_cast<size_t>(2 * at + 1)] = -chirp_[static_cast<size_t>(2 * k + 1)];
    }
  }
  const Scratch<T> scratch(inner_->scratch());
  inner_->run(filter_.data(), filter_.data(), T(1), false, scratch.data());
}

template <class T>
int64_t FftPlan<T>::scratch() const {
  if (inner_) return inner_->scratch() + 2 * inner_->n_;
  return matrix_ ? matrix_->panel_size() + matrix_->transposed_size() : 0;
}

template <class T>
void FftPlan<T>::run(const T* in, T* out, T scale, bool backward, T* scratch) const {
  if (inner_) return run_chirp(in, out, scale, backward, scratch);
  run_matrix(in, out, scale, backward, scratch);
}

template <class T>
void FftPlan<T>::run_matrix(const T* in, T* out, T scale, bool backward, T* scratch) const {
  const FftKernels<T>& kernels = fft_kernels<T>();
  const FftMatrix<T>& matrix = *matrix_;
  T* const transposed = scratch + matrix.panel_size();
  if (n_ < kThreaded) {
    kernels.step_down(matrix, in, scratch, transposed, backward, 0, matrix.panels(matrix.across.n));
    kernels.step_across(matrix, transposed, out, scale, backward, 0, matrix.panels(matrix.down.n));
    return;
  }
  // A last panel that shares columns with the one before is done together with that.
  const auto for_panels = [&](int64_t columns, int64_t rows, const auto& run) {
    const int64_t whole = columns / matrix.lanes, panels = matrix.panels(columns);
    const int64_t grain = std::max<int64_t>(1, kPanelWork / (rows * matrix.lanes));
    parallel_for(0, whole, grain,
                 [&](int64_t begin, int64_t end) { run(begin, end == whole ? panels : end); });
  };
  for_panels(matrix.across.n, matrix.down.n, [&](int64_t begin, int64_t end) {
    const Scratch<T> panel(matrix.panel_size());
    kernels.step_down(matrix, in, panel.data(), transposed, backward, begin, end);
  });
  for_panels(matrix.down.n, matrix.across.n, [&](int64_t begin, int64_t end) {
    kernels.step_across(matrix, transposed, out, scale, backward, begin, end);
  });
}

template <class T>
void FftPlan<T>::run_chirp(const T* in, T* out, T scale, bool backward, T* scratch) const {
  const FftKernels<T>& kernels = fft_kernels<T>();
  const int64_t m = inner_->n_;
  T* const work = scratch + inner_->scratch();
  kernels.multiply(in, chirp_.data(), work, n_, T(1), backward);
  std::fill(work + 2 * n_, work + 2 * m, T(0));
  inner_->run(work, work, T(1), false, scratch);
  kernels.multiply(work, filter_.data(), work, m, T(1) / static_cast<T>(m), backward);
  inner_->run(work, work, T(1), true, scratch);
  kernels.multiply(work, chirp_.data(), out, n_, scale, backward);
}

template <class T>
std::shared_ptr<FftPlan<T>> FftPlan<T>::of(int64_t n) {
  static thread_local std::list<std::shared_ptr<FftPlan>> recent;
  constexpr size_t kKept = 12;
  constexpr int64_t kLongest = 1 << 20;
  for (auto it = recent.begin(); it != recent.end(); ++it) {
    if ((*it)->n_ != n) continue;
    recent.splice(recent.begin(), recent, it);
    return *it;
  }
  const auto plan = std::make_shared<FftPlan>(n);
  if (n > kLongest) return plan;
  recent.push_front(plan);
  if (recent.size() > kKept) recent.pop_back();
  return plan;
}

template class FftPlan<float>;
template class FftPlan<double>;

}  // namespace taeda::cpu
