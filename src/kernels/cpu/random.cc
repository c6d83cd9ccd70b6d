#include "kernels/cpu/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numbers>
#include <numeric>

#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/random_mask.h"
#include "kernels/cpu/row_io.h"
#include "kernels/cpu/scratch.h"
#include "taeda/error.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kBlock = 1024;

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
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return v.strides[a] > v.strides[b]; });
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
void fill(const View& out, const Draw& draw) {
  alignas(64) Value block[kBlock];
  for (Runs runs(out); runs.next();) {
    const bool direct = out.dtype == kDTypeOf<Value> && runs.run.stride == 1;
    for (int64_t i = 0; i < runs.run.size; i += kBlock) {
      const int64_t n = std::min(kBlock, runs.run.size - i);
      const int64_t offset = runs.offset + i * runs.run.stride;
      draw(direct ? out.as<Value>() + offset : block, n);
      if (!direct)
        convert_row(at(out, offset), out.dtype, runs.run.stride, block, kDTypeOf<Value>, 1, n);
    }
  }
}

// In [0, 1): 24 random bits and one draw each, or 53 bits and two draws.
void uniforms(float* data, int64_t n, Generator& generator) {
  alignas(64) uint32_t words[kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = std::min(kBlock, n - i);
    generator.fill(words, count);
    for (int64_t k = 0; k < count; k++) data[i + k] = Generator::unit(words[k]);
  }
}

uint64_t two_words(const uint32_t* words) { return uint64_t{words[0]} << 32 | words[1]; }

void uniforms(double* data, int64_t n, Generator& generator) {
  alignas(64) uint32_t words[2 * kBlock];
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = std::min(kBlock, n - i);
    generator.fill(words, 2 * count);
    for (int64_t k = 0; k < count; k++) data[i + k] = Generator::unit(two_words(words + 2 * k));
  }
}

// Elements whose value is a function of one uniform double.
template <class F>
void fill_from_uniform(const View& out, std::string_view op, Generator& generator, const F& f) {
  std::lock_guard<std::mutex> lock(generator.mutex());
  require_dtype<RealTypes>(out, op);
  fill<double>(out, [&](double* to, int64_t n) {
    uniforms(to, n, generator);
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
  std::lock_guard<std::mutex> lock(generator.mutex());
  require_dtype<Floating>(out, "uniform_");
  if (out.dtype == DType::kFloat64) {
    const double range = to - from;
    fill<double>(out, [&](double* data, int64_t n) {
      uniforms(data, n, generator);
      for (int64_t i = 0; i < n; i++) data[i] = std::fma(data[i], range, from);
    });
    return;
  }
  const float low = rounded_to(out.dtype, from), range = rounded_to(out.dtype, to) - low;
  fill<float>(out, [&](float* data, int64_t n) {
    uniforms(data, n, generator);
    if (low == 0) {  // spares the call of fma, which rounds the same then
      for (int64_t i = 0; i < n; i++) data[i] *= range;
    } else {
      for (int64_t i = 0; i < n; i++) data[i] = std::fma(data[i], range, low);
    }
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
void normal_fill(T* data, int64_t n, T mean, T std, Generator& generator) {
  uniforms(data, n, generator);
  box_muller(data, n / 16 * 16, mean, std);
  if (n % 16 == 0) return;
  uniforms(data + n - 16, 16, generator);
  box_muller(data + n - 16, 16, mean, std);
}

// Half and bfloat16 through a float buffer.
void normal_fill_reduced(const View& out, float mean, float std, Generator& generator) {
  const auto put = [&](int64_t offset, int64_t n) {
    float block[kBlock];
    uniforms(block, n, generator);
    box_muller(block, n, mean, std);
    convert_row(at(out, offset), out.dtype, 1, block, DType::kFloat32, 1, n);
  };
  const int64_t whole = out.numel / 16 * 16;
  for (int64_t i = 0; i < whole; i += kBlock) put(i, std::min(kBlock, whole - i));
  if (whole != out.numel) put(out.numel - 16, 16);
}

}  // namespace

void random_normal(const View& out, double mean, double std, Generator& generator) {
  std::lock_guard<std::mutex> lock(generator.mutex());
  require_dtype<Floating>(out, "normal_kernel_cpu");
  const auto mean32 = static_cast<float>(mean), std32 = static_cast<float>(std);
  if (out.numel < 16 || !is_row_major(out)) {
    fill<double>(out, [&](double* to, int64_t n) {
      for (int64_t i = 0; i < n; i++) to[i] = generator.normal() * std + mean;
    });
  } else if (out.dtype == DType::kFloat64) {
    normal_fill(out.as<double>(), out.numel, mean, std, generator);
  } else if (out.dtype == DType::kFloat32) {
    normal_fill(out.as<float>(), out.numel, mean32, std32, generator);
  } else {
    normal_fill_reduced(out, mean32, std32, generator);
  }
}

void random_bernoulli(const View& out, double p, Generator& generator) {
  std::lock_guard<std::mutex> lock(generator.mutex());
  require_dtype<RealTypes>(out, "bernoulli_scalar_cpu_");
  const uint64_t threshold = flip_threshold(p);
  alignas(64) uint32_t words[2 * kBlock];
  fill<uint8_t>(out, [&](uint8_t* to, int64_t n) {
    generator.fill(words, 2 * n);
    flip_coins(words, threshold, to, n);
  });
}

void random_bernoulli(const View& out, const View& p, Generator& generator) {
  std::lock_guard<std::mutex> lock(generator.mutex());
  require_dtype<Floating>(p, "bernoulli_tensor_cpu_p_");
  require_dtype<RealTypes>(out, "bernoulli_tensor_cpu_self_");
  double chance[kBlock];
  uint8_t coins[kBlock];
  // Calls f(offset in out, its stride, n) with the next n probabilities in `chance`.
  const auto for_each_block = [&](const auto& f) {
    for (Runs runs(out, p); runs.next();) {
      const auto& run = runs.run;
      for (int64_t i = 0; i < run.size; i += kBlock) {
        const int64_t n = std::min(kBlock, run.size - i);
        convert_row(chance, DType::kFloat64, 1, at(p, runs.other_offset + i * run.other_stride),
                    p.dtype, run.other_stride, n);
        f(runs.offset + i * run.stride, run.stride, n);
      }
    }
  };
  for_each_block([&](int64_t, int64_t, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
      TD_CHECK(chance[i] >= 0 && chance[i] <= 1,
               "bernoulli: expected probabilities in [0, 1], got {}", chance[i]);
    }
  });
  for_each_block([&](int64_t offset, int64_t stride, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
      const double u = p.dtype == DType::kFloat64 ? generator.uniform()
                                                  : static_cast<double>(generator.uniform_float());
      coins[i] = u < chance[i];
    }
    convert_row(at(out, offset), out.dtype, stride, coins, DType::kUInt8, 1, n);
  });
}

namespace {

// base + word % range, of one 32-bit draw an element or, where `wide`, of two. Range 0: 2^64.
void fill_integers(const View& out, uint64_t range, int64_t base, bool wide, Generator& generator) {
  alignas(64) uint32_t words[2 * kBlock];
  const auto narrow_range = static_cast<uint32_t>(range);
  fill<int64_t>(out, [&](int64_t* to, int64_t n) {
    generator.fill(words, wide ? 2 * n : n);
    for (int64_t i = 0; i < n; i++) {
      uint64_t value = 0;
      if (!wide)
        value = words[i] % narrow_range;
      else if (range == 0)
        value = two_words(words + 2 * i);
      else
        value = two_words(words + 2 * i) % range;
      to[i] = static_cast<int64_t>(value + static_cast<uint64_t>(base));
    }
  });
}

// How many integers, from 0 on, random_() draws from: for floating dtypes, those that the format
// counts exactly.
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

}  // namespace

void random_integers(const View& out, uint64_t range, int64_t base, Generator& generator) {
  std::lock_guard<std::mutex> lock(generator.mutex());
  require_dtype<RealTypes>(out, "random_from_to");
  fill_integers(out, range, base, range == 0 || range >= uint64_t{1} << 28, generator);
}

void random_integers(const View& out, Generator& generator) {
  std::lock_guard<std::mutex> lock(generator.mutex());
  require_dtype<RealTypes>(out, "random_");
  fill_integers(out, countable(out.dtype), 0, item_size(out.dtype) == 8, generator);
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
  std::lock_guard<std::mutex> lock(generator.mutex());
  require_dtype<Floating>(out, "log_normal_cpu");
  fill<double>(out, [&](double* to, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = std::exp(generator.normal() * std + mean);
  });
}

namespace {

// Fisher and Yates: from the front while 32 bits choose well enough, inside out beyond.
void shuffle(int32_t* data, int64_t n, Generator& generator) {
  std::iota(data, data + n, 0);
  alignas(64) uint32_t words[kBlock];
  for (int64_t i = 0; i < n - 1; i += kBlock) {
    const int64_t count = std::min(kBlock, n - 1 - i);
    generator.fill(words, count);
    for (int64_t k = 0; k < count; k++)
      std::swap(data[i + k], data[i + k + words[k] % static_cast<uint32_t>(n - i - k)]);
  }
}

void shuffle(int64_t* data, int64_t n, Generator& generator) {
  for (int64_t i = 0; i < n; i++) {
    const auto z = static_cast<int64_t>(generator.random64() % static_cast<uint64_t>(i + 1));
    data[i] = data[z];
    data[z] = i;
  }
}

// Shuffled as Index, where a cache holds more of them, then converted.
template <class Index>
void permutation(const View& out, Generator& generator) {
  const int64_t n = out.numel, stride = out.ndim() ? out.strides[0] : 1;
  const Scratch<Index> order(n);
  shuffle(order.data(), n, generator);
  convert_row(out.data, out.dtype, stride, order.data(), kDTypeOf<Index>, 1, n);
}

}  // namespace

void random_permutation(const View& out, Generator& generator) {
  std::lock_guard<std::mutex> lock(generator.mutex());
  require_dtype<RealTypes>(out, "randperm");
  if (out.numel < static_cast<int64_t>(std::numeric_limits<uint32_t>::max() / 20))
    permutation<int32_t>(out, generator);
  else
    permutation<int64_t>(out, generator);
}

}  // namespace taeda::cpu
