#include "kernels/cpu/random/random.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <mutex>
#include <numbers>

#include "base/parallel.h"
#include "core/mersenne.h"
#include "core/with_dtype.h"
#include "kernels/cpu/random/random_draws.h"
#include "kernels/cpu/random/random_words.h"
#include "kernels/cpu/rows/row_io.h"
#include "kernels/cpu/simd/scratch.h"
#include "taeda/error.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kBlock = 1024;
constexpr int64_t kBetweenLooks = 1 << 18;  // elements, for an interrupt

bool is_row_major(const View& v) {
  int64_t expected = 1;
  for (int64_t d = v.ndim() - 1; d >= 0; d--) {
    if (v.sizes[d] != 1 && v.strides[d] != expected) return false;
    expected *= v.sizes[d];
  }
  return true;
}

// The innermost runs of `v`, in the order that they lie in memory, and where the same elements of
// `other`, a view of the same sizes, are.
class Runs {
 public:
  explicit Runs(const View& v) : Runs(v, v) {}
  Runs(const View& v, const View& other) : more_(v.numel != 0) {
    if (!more_) return;         // sizes beside a 0 may have products that overflow
    SmallVector<int, 8> order;  // outermost first
    for (int d = 0; d < v.ndim(); d++) {
      if (v.sizes[d] > 1) order.push_back(d);
    }
    const auto outer = [&](int a, int b) { return v.strides[a] > v.strides[b]; };
    if (!std::is_sorted(order.begin(), order.end(), outer))  // row-major layouts are
      std::stable_sort(order.begin(), order.end(), outer);
    // Merge dimensions that continue each other, so that dense layouts are one run.
    for (int d : order) {
      const Dim dim{v.sizes[d], v.strides[d], other.strides[d]};
      if (!outer_.empty() && outer_.back().stride == dim.stride * dim.size &&
          outer_.back().other_stride == dim.other_stride * dim.size) {
        outer_.back() = {outer_.back().size * dim.size, dim.stride, dim.other_stride};
      } else {
        outer_.push_back(dim);
      }
    }
    if (outer_.empty()) return;
    run = outer_.back();
    outer_.pop_back();
    index_.resize(outer_.size());
  }

  // Whether there is a run; it is at `offset` and `other_offset` until the next call.
  bool next() {
    if (!started_) {
      started_ = true;
      return more_;
    }
    for (size_t d = outer_.size(); d-- > 0;) {
      const Dim& dim = outer_[d];
      offset += dim.stride;
      other_offset += dim.other_stride;
      if (++index_[d] < dim.size) return true;
      offset -= dim.stride * dim.size;
      other_offset -= dim.other_stride * dim.size;
      index_[d] = 0;
    }
    return false;
  }

  struct Dim {
    int64_t size, stride, other_stride;
  };
  Dim run{1, 1, 1};
  int64_t offset = 0, other_offset = 0;

 private:
  SmallVector<Dim, 8> outer_;
  SmallVector<int64_t, 8> index_;
  bool started_ = false, more_;
};

// NotImplementedError for the dtypes outside `List`.
template <class List>
void require_dtype(const View& out, std::string_view name) {
  with_dtype<List>(out.dtype, name, [](auto) {});
}

// Block by block, in the order that the elements lie in memory: draw(to, n) gives the next n as
// Value, which are converted to out's dtype.
template <class Value, class Draw>
void fill(const View& out, GeneratorLock& generator, const Draw& draw) {
  alignas(64) Value block[kBlock];
  int64_t drawn = 0;
  for (Runs runs(out); runs.next();) {
    const bool direct = out.dtype == kDTypeOf<Value> && runs.run.stride == 1;
    for (int64_t i = 0; i < runs.run.size; i += kBlock) {
      if (++drawn % (kBetweenLooks / kBlock) == 0) generator.look();
      const int64_t n = std::min(kBlock, runs.run.size - i);
      const int64_t offset = runs.offset + i * runs.run.stride;
      draw(direct ? out.as<Value>() + offset : block, n);
      if (!direct)
        convert_row(at(out, offset), out.dtype, runs.run.stride, block, kDTypeOf<Value>, 1, n);
    }
  }
}

// The same from `each` words an element, by several threads: make(words, to, n).
template <class Value>
void fill_from_words(const View& out, int64_t each, GeneratorLock& generator,
                     const std::function<void(const uint32_t* words, Value* to, int64_t n)>& make) {
  for (Runs runs(out); runs.next();) {
    const int64_t stride = runs.run.stride;
    const bool direct = out.dtype == kDTypeOf<Value> && stride == 1;
    const auto make_chunk = [&](const uint32_t* words, int64_t begin, int64_t n) {
      const int64_t offset = runs.offset + begin * stride;
      if (direct) return make(words, out.as<Value>() + offset, n);
      alignas(64) Value block[kBlock];
      for (int64_t i = 0; i < n; i += kBlock) {
        const int64_t count = std::min(kBlock, n - i);
        make(words + i * each, block, count);
        convert_row(at(out, offset + i * stride), out.dtype, stride, block, kDTypeOf<Value>, 1,
                    count);
      }
    };
    draw_words(generator, runs.run.size, each, make_chunk);
  }
}

// f(i, the first and the second word of element i as one number).
template <class F>
void for_each_pair(const uint32_t* words, int64_t n, const F& f) {
  alignas(64) uint32_t tempered[2 * kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = std::min(kBlock, n - i);
    mersenne::temper(words + 2 * i, tempered, 2 * count);
    for (int64_t k = 0; k < count; k++)
      f(i + k, uint64_t{tempered[2 * k]} << 32 | tempered[2 * k + 1]);
  }
}

// In [0, 1): 24 random bits and one word each, or 53 bits and two.
void uniforms(const uint32_t* words, float* out, int64_t n) { uniform_floats(words, 0, 1, out, n); }
void uniforms(const uint32_t* words, double* out, int64_t n) {
  for_each_pair(words, n, [=](int64_t i, uint64_t bits) { out[i] = Mt19937::unit(bits); });
}
template <class T>
constexpr int64_t kWordsOf = sizeof(T) / sizeof(uint32_t);  // of a uniform float or double

// Elements whose value is a function of one uniform double.
template <class F>
void fill_from_uniform(const View& out, std::string_view op, Generator& generator, const F& f) {
  GeneratorLock lock(generator);
  require_dtype<RealTypes>(out, op);
  fill_from_words<double>(out, 2, lock, [&](const uint32_t* words, double* to, int64_t n) {
    uniforms(words, to, n);
    for (int64_t i = 0; i < n; i++) to[i] = f(to[i]);
  });
}

float rounded_to(DType t, double value) {
  const auto x = static_cast<float>(value);
  if (t == DType::kFloat16) return static_cast<float>(Half(x));
  if (t == DType::kBFloat16) return static_cast<float>(BFloat16(x));
  return x;
}

}  // namespace

void random_uniform(const View& out, double from, double to, Generator& generator) {
  GeneratorLock lock(generator);
  require_dtype<Floating>(out, "uniform_");
  if (out.dtype == DType::kFloat64) {
    const double range = to - from;
    fill_from_words<double>(out, 2, lock, [&](const uint32_t* words, double* data, int64_t n) {
      uniforms(words, data, n);
      for (int64_t i = 0; i < n; i++) data[i] = std::fma(data[i], range, from);
    });
    return;
  }
  const float low = static_cast<float>(from), range = static_cast<float>(to) - low,
              high = rounded_to(out.dtype, to);
  fill_from_words<float>(out, 1, lock, [&](const uint32_t* words, float* data, int64_t n) {
    uniform_floats(words, low, range, data, n);
    if (out.dtype == DType::kFloat32) return;
    // `to` itself is not drawn: what rounds to it becomes `from`.
    for (int64_t i = 0; i < n; i++)
      if (rounded_to(out.dtype, data[i]) == high) data[i] = low;
  });
}

namespace {

// One block of 16: radii from the first eight uniforms, angles from the last.
void box_muller_16(double* data, double mean, double std) {
  for (int j = 0; j < 8; j++) {
    const double radius = std::sqrt(-2 * std::log(1 - data[j]));
    const double theta = 2.0 * std::numbers::pi * data[j + 8];
    data[j] = radius * std::cos(theta) * std + mean;
    data[j + 8] = radius * std::sin(theta) * std + mean;
  }
}

}  // namespace

void box_muller(double* data, int64_t n, double mean, double std) {
  parallel_for(0, n / 16, 512, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; i++) box_muller_16(data + 16 * i, mean, std);
  });
}

namespace {

// Row-major outputs of at least 16 elements: uniforms everywhere, then blocks of 16. A rest shorter
// than a block is covered by drawing the last 16 anew.
template <class T>
void normal_fill(T* data, int64_t n, T mean, T std, GeneratorLock& generator) {
  draw_words(generator, n, kWordsOf<T>, [&](const uint32_t* words, int64_t begin, int64_t count) {
    uniforms(words, data + begin, count);
    box_muller(data + begin, count / 16 * 16, mean, std);
  });
  if (n % 16 != 0) normal_fill(data + n - 16, 16, mean, std, generator);
}

// Half and bfloat16 through a float buffer; those of the rest are drawn once.
void normal_fill_reduced(const View& out, int64_t begin, int64_t n, float mean, float std,
                         GeneratorLock& generator) {
  draw_words(generator, n, 1, [&](const uint32_t* words, int64_t at_word, int64_t count) {
    alignas(64) float block[kBlock];
    for (int64_t i = 0; i < count; i += kBlock) {
      const int64_t size = std::min(kBlock, count - i);
      uniforms(words + i, block, size);
      box_muller(block, size, mean, std);
      convert_row(at(out, begin + at_word + i), out.dtype, 1, block, DType::kFloat32, 1, size);
    }
  });
}

}  // namespace

void random_normal(const View& out, double mean, double std, Generator& generator) {
  GeneratorLock lock(generator);
  require_dtype<Floating>(out, "normal_kernel_cpu");
  const auto mean32 = static_cast<float>(mean), std32 = static_cast<float>(std);
  if (out.numel < 16 || !is_row_major(out)) {
    fill<double>(out, lock, [&](double* to, int64_t n) {
      for (int64_t i = 0; i < n; i++) to[i] = lock->normal() * std + mean;
    });
  } else if (out.dtype == DType::kFloat64) {
    normal_fill(out.as<double>(), out.numel, mean, std, lock);
  } else if (out.dtype == DType::kFloat32) {
    normal_fill(out.as<float>(), out.numel, mean32, std32, lock);
  } else {
    const int64_t whole = out.numel / 16 * 16;
    normal_fill_reduced(out, 0, whole, mean32, std32, lock);
    if (whole != out.numel) normal_fill_reduced(out, out.numel - 16, 16, mean32, std32, lock);
  }
}

void random_bernoulli(const View& out, double p, Generator& generator) {
  GeneratorLock lock(generator);
  require_dtype<RealTypes>(out, "bernoulli_scalar_cpu_");
  const uint64_t threshold = flip_threshold(p);
  fill_from_words<uint8_t>(out, 2, lock, [&](const uint32_t* words, uint8_t* to, int64_t n) {
    flip_coins(words, threshold, to, n);
  });
}

// As those of floats in random_words.h.
static void flip_coins(const uint32_t* words, const double* p, float* out, int64_t n) {
  for_each_pair(words, n,
                [=](int64_t i, uint64_t bits) { out[i] = Mt19937::unit(bits) < p[i] ? 1 : 0; });
}
static bool are_chances(const double* p, int64_t n) {
  return std::all_of(p, p + n, [](double x) { return x >= 0 && x <= 1; });
}

namespace {

// Coins from probabilities that are read as T: float, with one word a flip, or double, with two.
template <class T>
class ChanceRows {
 public:
  ChanceRows(const View& out, const View& p) : out_(out), p_(p) {}

  void check() const {
    for (Runs runs(out_, p_); runs.next();) {
      for_each_block(runs, 0, runs.run.size, [](const T* chance, int64_t, int64_t n) {
        if (are_chances(chance, n)) return;
        for (int64_t i = 0; i < n; i++) {
          TD_CHECK(chance[i] >= 0 && chance[i] <= 1,
                   "bernoulli: expected probabilities in [0, 1], got {}", chance[i]);
        }
      });
    }
  }

  void flip(GeneratorLock& generator) const {
    for (Runs runs(out_, p_); runs.next();) {
      draw_words(generator, runs.run.size, kWordsOf<T>,
                 [&](const uint32_t* words, int64_t begin, int64_t n) {
                   for_each_block(runs, begin, n, [&](const T* chance, int64_t i, int64_t count) {
                     put(runs, words + (i - begin) * kWordsOf<T>, chance, i, count);
                   });
                 });
    }
  }

 private:
  // f(probabilities, place in the run, number) for blocks of a run's elements begin .. begin + n.
  template <class F>
  void for_each_block(const Runs& runs, int64_t begin, int64_t n, const F& f) const {
    const int64_t stride = runs.run.other_stride;
    alignas(64) T chance[kBlock];
    for (int64_t i = begin; i < begin + n; i += kBlock) {
      const int64_t count = std::min(kBlock, begin + n - i),
                    offset = runs.other_offset + i * stride;
      const bool direct = p_.dtype == kDTypeOf<T> && stride == 1;
      if (!direct) convert_row(chance, kDTypeOf<T>, 1, at(p_, offset), p_.dtype, stride, count);
      f(direct ? p_.as<T>() + offset : chance, i, count);
    }
  }

  void put(const Runs& runs, const uint32_t* words, const T* chance, int64_t i, int64_t n) const {
    const int64_t stride = runs.run.stride, offset = runs.offset + i * stride;
    if (out_.dtype == DType::kFloat32 && stride == 1)
      return flip_coins(words, chance, out_.as<float>() + offset, n);
    alignas(64) float coins[kBlock];
    flip_coins(words, chance, coins, n);
    convert_row(at(out_, offset), out_.dtype, stride, coins, DType::kFloat32, 1, n);
  }

  const View &out_, &p_;
};

}  // namespace

void random_bernoulli_each(const View& out, const View& p, Generator& generator) {
  GeneratorLock lock(generator);
  require_dtype<Floating>(p, "bernoulli_tensor_cpu_p_");
  require_dtype<RealTypes>(out, "bernoulli_tensor_cpu_self_");
  const auto flip = [&](const auto& rows) {
    rows.check();
    rows.flip(lock);
  };
  if (p.dtype == DType::kFloat64)
    flip(ChanceRows<double>(out, p));
  else
    flip(ChanceRows<float>(out, p));
}

namespace {

// base + word % range, of one 32-bit draw an element or, where `wide`, of two. Range 0: 2^64.
void fill_integers(const View& out, uint64_t range, int64_t base, bool wide,
                   GeneratorLock& generator) {
  fill_from_words<int64_t>(
      out, wide ? 2 : 1, generator, [&](const uint32_t* words, int64_t* to, int64_t n) {
        if (!wide) return small_integers(words, static_cast<uint32_t>(range), base, to, n);
        for_each_pair(words, n, [=](int64_t i, uint64_t bits) {
          to[i] = static_cast<int64_t>((range == 0 ? bits : bits % range) +
                                       static_cast<uint64_t>(base));
        });
      });
}

}  // namespace

uint64_t countable(DType t) {
  switch (t) {
    case DType::kBool:
      return 2;
    case DType::kFloat64:
      return (uint64_t{1} << 53) + 1;
    case DType::kFloat32:
      return (1u << 24) + 1;
    case DType::kFloat16:
      return (1u << 11) + 1;
    case DType::kBFloat16:
      return (1u << 8) + 1;
    case DType::kUInt8:
      return 1u << 8;
    default:
      return uint64_t{1} << (8 * item_size(t) - 1);
  }
}

void random_integers(const View& out, uint64_t range, int64_t base, Generator& generator) {
  GeneratorLock lock(generator);
  using WithUnsigned = Join<RealTypes, Types<uint16_t, uint32_t, uint64_t>>;
  require_dtype<WithUnsigned>(out, "random_from_to");
  fill_integers(out, range, base, range == 0 || range >= uint64_t{1} << 28, lock);
}

void random_all_integers(const View& out, Generator& generator) {
  GeneratorLock lock(generator);
  require_dtype<RealTypes>(out, "random_");
  fill_integers(out, countable(out.dtype), 0, item_size(out.dtype) == 8, lock);
}

void random_exponential(const View& out, double rate, Generator& generator) {
  fill_from_uniform(out, "exponential_", generator,
                    [=](double u) { return -1.0 / rate * std::log1p(-u); });
}

void random_geometric(const View& out, double p, Generator& generator) {
  const double log_fail = std::log1p(-p);
  fill_from_uniform(out, "geometric_", generator,
                    [=](double u) { return std::ceil(std::log(u) / log_fail); });
}

void random_cauchy(const View& out, double median, double sigma, Generator& generator) {
  fill_from_uniform(out, "cauchy_", generator, [=](double u) {
    return median + sigma * std::tan(std::numbers::pi * (u - 0.5));
  });
}

void random_log_normal(const View& out, double mean, double std, Generator& generator) {
  GeneratorLock lock(generator);
  require_dtype<Floating>(out, "log_normal_cpu");
  fill<double>(out, lock, [&](double* to, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = std::exp(lock->normal() * std + mean);
  });
}

namespace {

// Fisher and Yates: from the front while 32 bits choose well enough, inside out beyond.
void shuffle(int32_t* data, int64_t n, GeneratorLock& generator) {
  for (int64_t i = 0; i < n; i++) {
    if (i > 0 && i % kBetweenLooks == 0) generator.look();
    data[i] = static_cast<int32_t>(i);
  }
  alignas(64) uint32_t words[kBlock];
  for (int64_t i = 0; i < n - 1; i += kBlock) {
    if (i > 0 && i % kBetweenLooks == 0) generator.look();
    const int64_t count = std::min(kBlock, n - 1 - i);
    generator->fill(words, count);
    for (int64_t k = 0; k < count; k++)
      std::swap(data[i + k], data[i + k + words[k] % static_cast<uint32_t>(n - i - k)]);
  }
}

void shuffle(int64_t* data, int64_t n, GeneratorLock& generator) {
  for (int64_t i = 0; i < n; i++) {
    if (i > 0 && i % kBetweenLooks == 0) generator.look();
    const auto z = static_cast<int64_t>(generator->random64() % static_cast<uint64_t>(i + 1));
    data[i] = data[z];
    data[z] = i;
  }
}

// Shuffled as Index, where a cache holds more of them, then converted.
template <class Index>
void permutation(const View& out, Generator& generator) {
  const int64_t n = out.numel, stride = out.ndim() ? out.strides[0] : 1;
  const Scratch<Index> order(n);
  {
    GeneratorLock lock(generator);
    shuffle(order.data(), n, lock);
  }
  convert_row(out.data, out.dtype, stride, order.data(), kDTypeOf<Index>, 1, n);
}

}  // namespace

void random_permutation(const View& out, Generator& generator) {
  require_dtype<RealTypes>(out, "randperm");
  if (out.numel < static_cast<int64_t>(std::numeric_limits<uint32_t>::max() / 20))
    permutation<int32_t>(out, generator);
  else
    permutation<int64_t>(out, generator);
}

}  // namespace taeda::cpu
