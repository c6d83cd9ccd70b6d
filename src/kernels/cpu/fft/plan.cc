#include "kernels/cpu/fft/plan.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <numbers>

#include "base/parallel.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kWork = 1 << 15;  // elements of a pass that a thread takes at once

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

// The factors of n, fours first; empty where one is above kLargestRadix.
std::vector<int> radices_of(int64_t n) {
  std::vector<int> found;
  for (int radix : {4, 2, 3, 5}) {
    for (; n % radix == 0; n /= radix) found.push_back(radix);
  }
  for (int radix = 7; radix <= kLargestRadix; radix += 2) {
    for (; n % radix == 0; n /= radix) found.push_back(radix);
  }
  if (n > 1) found.clear();
  return found;
}

// The next length from n on with factors 2, 3 and 5 only.
int64_t smooth_length(int64_t n) {
  for (;; n++) {
    int64_t rest = n;
    for (int factor : {2, 3, 5})
      while (rest % factor == 0) rest /= factor;
    if (rest == 1) return n;
  }
}

}  // namespace

template <class T>
FftPlan<T>::FftPlan(int64_t n) : n_(n) {
  std::vector<int> radices = radices_of(n);
  if (n > 1 && radices.empty())
    make_chirp();
  else
    make_stages(std::move(radices));
}

template <class T>
const std::complex<T>* FftPlan<T>::half_roots() {
  if (half_roots_.empty())
    for (int64_t k = 0; k <= n_; k++) half_roots_.emplace_back(root(k, 2 * n_));
  return half_roots_.data();
}

template <class T>
void FftPlan<T>::make_stages(std::vector<int> radices) {
  int64_t length = n_;
  for (const int radix : radices) {
    Stage stage{radix, length / radix, {}, {}};
    for (int64_t p = 0; p < stage.m; p++)
      for (int j = 1; j < radix; j++) stage.twiddles.push(root(p * j, length));
    for (int j = 0; j < radix; j++) stage.roots.push(root(j, radix));
    stages_.push_back(std::move(stage));
    length /= radix;
  }
}

template <class T>
void FftPlan<T>::make_chirp() {
  const int64_t m = smooth_length(2 * n_ - 1);
  inner_ = of(m);
  for (int64_t k = 0, square = 0; k < n_; square = (square + 2 * k + 1) % (2 * n_), k++)
    chirp_.push(root(square, 2 * n_));
  std::vector<T> work(static_cast<size_t>(4 * m), T(0));
  const Complexes<T> x{work.data(), work.data() + m}, y{x.re + 2 * m, x.re + 3 * m};
  for (int64_t k = 0; k < n_; k++) {
    for (const int64_t at : {k, k ? m - k : 0}) {
      x.re[at] = chirp_.re[static_cast<size_t>(k)];
      x.im[at] = -chirp_.im[static_cast<size_t>(k)];
    }
  }
  const Complexes<T> filter = inner_->run(x, y, 1);
  for (int64_t k = 0; k < m; k++)
    filter_.push(std::complex<double>(filter.re[k], filter.im[k]) / static_cast<double>(m));
}

template <class T>
Complexes<T> FftPlan<T>::run(Complexes<T> x, Complexes<T> y, int64_t count) const {
  if (inner_) return run_chirp(x, y, count);
  int64_t s = count;
  for (const Stage& stage : stages_) {
    const int64_t grain = std::max<int64_t>(1, kWork / (s * stage.radix));
    parallel_for(0, stage.m, grain, [&](int64_t begin, int64_t end) {
      run_pass({stage.radix, stage.m, s, stage.twiddles.data(), stage.roots.data(), begin, end},
               {x.re, x.im}, y);
    });
    std::swap(x, y);
    s *= stage.radix;
  }
  return x;
}

template <class T>
Complexes<T> FftPlan<T>::run_chirp(Complexes<T> x, Complexes<T> y, int64_t count) const {
  const auto multiply = [&](Complexes<T> z, const Split& by, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
      const T re = by.re[static_cast<size_t>(k)], im = by.im[static_cast<size_t>(k)];
      for (int64_t i = k * count; i < (k + 1) * count; i++) {
        const T was = z.re[i];
        z.re[i] = was * re - z.im[i] * im;
        z.im[i] = was * im + z.im[i] * re;
      }
    }
  };
  multiply(x, chirp_, n_);
  std::fill(x.re + n_ * count, x.re + inner_->n_ * count, T(0));
  std::fill(x.im + n_ * count, x.im + inner_->n_ * count, T(0));
  Complexes<T> z = inner_->run(x, y, count);
  multiply(z, filter_, inner_->n_);
  const Complexes<T> other = z.re == x.re ? y : x;
  const Complexes<T> back = inner_->run({z.im, z.re}, {other.im, other.re}, count);
  z = {back.im, back.re};
  multiply(z, chirp_, n_);
  return z;
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
