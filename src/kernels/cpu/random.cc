#include "kernels/cpu/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numbers>
#include <type_traits>

#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/random_mask.h"
#include "taeda/error.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kBlock = 1024;
constexpr uint64_t kMask53 = (uint64_t{1} << 53) - 1;

bool is_row_major(const View& v) {
  int64_t expected = 1;
  for (int64_t d = v.ndim() - 1; d >= 0; d--) {
    if (v.sizes[d] != 1 && v.strides[d] != expected) return false;
    expected *= v.sizes[d];
  }
  return true;
}

// Calls row(offset, stride, n) for the innermost runs of a layout, in the order that they lie in
// memory.
template <class Row>
void for_each_run(const View& v, const Row& row) {
  if (v.numel == 0) return;
  SmallVector<int, 8> order;  // outermost first
  for (int d = 0; d < v.ndim(); d++) {
    if (v.sizes[d] > 1) order.push_back(d);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return v.strides[a] > v.strides[b]; });
  // Merge dimensions that continue each other, so that dense layouts are one run.
  SmallVector<int64_t, 8> sizes, strides;
  for (int d : order) {
    if (!sizes.empty() && strides.back() == v.strides[d] * v.sizes[d]) {
      sizes.back() *= v.sizes[d];
      strides.back() = v.strides[d];
    } else {
      sizes.push_back(v.sizes[d]);
      strides.push_back(v.strides[d]);
    }
  }
  if (sizes.empty()) return row(int64_t{0}, int64_t{1}, int64_t{1});
  const size_t outer = sizes.size() - 1;
  SmallVector<int64_t, 8> index(outer);
  int64_t offset = 0;
  while (true) {
    row(offset, strides[outer], sizes[outer]);
    size_t d = outer;
    while (true) {
      if (d == 0) return;
      d--;
      offset += strides[d];
      if (++index[d] < sizes[d]) break;
      offset -= strides[d] * sizes[d];
      index[d] = 0;
    }
  }
}

// out = draw(), one element after the other.
template <class T, class Draw>
void fill_serial(const View& out, const Draw& draw) {
  T* data = out.as<T>();
  for_each_run(out, [&](int64_t offset, int64_t stride, int64_t n) {
    for (int64_t i = 0; i < n; i++) data[offset + i * stride] = draw();
  });
}

// out = convert(word) with one 32-bit draw an element, or two (64 bits) for Word = uint64_t; drawn
// block by block.
template <class T, class Word, class Convert>
void fill_blocks(const View& out, Generator& generator, const Convert& convert) {
  T* data = out.as<T>();
  constexpr int64_t kDraws = sizeof(Word) / 4;
  alignas(64) uint32_t words[kBlock * kDraws];
  for_each_run(out, [&](int64_t offset, int64_t stride, int64_t n) {
    for (int64_t at = 0; at < n; at += kBlock) {
      const int64_t count = std::min(kBlock, n - at);
      generator.fill(words, count * kDraws);
      T* to = data + offset + at * stride;
      for (int64_t i = 0; i < count; i++) {
        if constexpr (kDraws == 1)
          to[i * stride] = convert(words[i]);
        else
          to[i * stride] = convert(uint64_t{words[2 * i]} << 32 | words[2 * i + 1]);
      }
    }
  });
}

template <class T>
T from_double(double value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return T(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

// Elements whose value is a function of one uniform double (two draws each).
template <class F>
void fill_from_uniform(const View& out, std::string_view op, Generator& generator, const F& f) {
  std::lock_guard<std::mutex> lock(generator.mutex());
  with_dtype<RealTypes>(out.dtype, op, [&]<class T>(T) {
    fill_blocks<T, uint64_t>(out, generator, [&](uint64_t word) {
      return from_double<T>(f(static_cast<double>(word & kMask53) * 0x1p-53));
    });
  });
}

}  // namespace

void random_uniform(const View& out, double from, double to, Generator& generator) {
  std::lock_guard<std::mutex> lock(generator.mutex());
  with_dtype<Floating>(out.dtype, "uniform_", [&]<class T>(T) {
    if constexpr (std::is_same_v<T, double>) {
      const double range = to - from;
      fill_blocks<T, uint64_t>(out, generator, [=](uint64_t word) {
        return std::fma(static_cast<double>(word & kMask53) * 0x1p-53, range, from);
      });
    } else {
      const float low = static_cast<float>(from_double<T>(from)),
                  range = static_cast<float>(from_double<T>(to)) - low;
      const auto unit = [](uint32_t word) {
        return static_cast<float>(static_cast<int32_t>(word & 0xffffff)) * 0x1p-24f;
      };
      if (low == 0) {  // spares the call of fma, which rounds the same then
        fill_blocks<T, uint32_t>(out, generator,
                                 [=](uint32_t word) { return T(unit(word) * range); });
      } else {
        fill_blocks<T, uint32_t>(
            out, generator, [=](uint32_t word) { return T(std::fma(unit(word), range, low)); });
      }
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

// Row-major outputs of at least 16 elements: uniforms everywhere, then blocks of 16. A rest shorter
// than a block is covered by drawing the last 16 anew.
void normal_fill(double* data, int64_t n, double mean, double std, Generator& generator) {
  const auto transform = [&](double* begin, int64_t count) {
    parallel_for(0, count / 16, 512, [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; i++) box_muller_16(begin + 16 * i, mean, std);
    });
  };
  for (int64_t i = 0; i < n; i++) data[i] = generator.uniform();
  transform(data, n / 16 * 16);
  if (n % 16 == 0) return;
  for (int64_t i = n - 16; i < n; i++) data[i] = generator.uniform();
  transform(data + n - 16, 16);
}

void uniforms(float* data, int64_t n, Generator& generator) {
  alignas(64) uint32_t words[kBlock];
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t count = std::min(kBlock, n - at);
    generator.fill(words, count);
    for (int64_t i = 0; i < count; i++)
      data[at + i] = static_cast<float>(static_cast<int32_t>(words[i] & 0xffffff)) * 0x1p-24f;
  }
}

void normal_fill(float* data, int64_t n, float mean, float std, Generator& generator) {
  uniforms(data, n, generator);
  box_muller(data, n / 16 * 16, mean, std);
  if (n % 16 == 0) return;
  uniforms(data + n - 16, 16, generator);
  box_muller(data + n - 16, 16, mean, std);
}

// Half and bfloat16 through a float buffer.
template <class T>
void normal_fill_reduced(T* data, int64_t n, double mean, double std, Generator& generator) {
  float block[kBlock];
  const auto put = [&](T* to, int64_t count) {
    uniforms(block, count, generator);
    box_muller(block, count, static_cast<float>(mean), static_cast<float>(std));
    for (int64_t i = 0; i < count; i++) to[i] = T(block[i]);
  };
  for (int64_t at = 0; at < n / 16 * 16; at += kBlock)
    put(data + at, std::min(kBlock, n / 16 * 16 - at));
  if (n % 16 != 0) put(data + n - 16, 16);
}

}  // namespace

void random_normal(const View& out, double mean, double std, Generator& generator) {
  std::lock_guard<std::mutex> lock(generator.mutex());
  const bool blocks = out.numel >= 16 && is_row_major(out);
  with_dtype<Floating>(out.dtype, "normal_kernel_cpu", [&]<class T>(T) {
    if (!blocks) {
      fill_serial<T>(out, [&] { return from_double<T>(generator.normal() * std + mean); });
    } else if constexpr (std::is_same_v<T, double>) {
      normal_fill(out.as<double>(), out.numel, mean, std, generator);
    } else if constexpr (std::is_same_v<T, float>) {
      normal_fill(out.as<float>(), out.numel, static_cast<float>(mean), static_cast<float>(std),
                  generator);
    } else {
      normal_fill_reduced(out.as<T>(), out.numel, mean, std, generator);
    }
  });
}

void random_bernoulli(const View& out, double p, Generator& generator) {
  std::lock_guard<std::mutex> lock(generator.mutex());
  const uint64_t threshold = flip_threshold(p);
  with_dtype<RealTypes>(out.dtype, "bernoulli_scalar_cpu_", [&]<class T>(T) {
    T* data = out.as<T>();
    const T values[2] = {from_double<T>(0), from_double<T>(1)};
    alignas(64) uint32_t words[2 * kBlock];
    uint8_t mask[kBlock];
    for_each_run(out, [&](int64_t offset, int64_t stride, int64_t n) {
      for (int64_t at = 0; at < n; at += kBlock) {
        const int64_t count = std::min(kBlock, n - at);
        generator.fill(words, 2 * count);
        flip_coins(words, threshold, mask, count);
        T* to = data + offset + at * stride;
        for (int64_t i = 0; i < count; i++) to[i * stride] = values[mask[i]];
      }
    });
  });
}

namespace {

// Calls f(out offset, p offset) for each element, in the order that out's lie in memory.
template <class F>
void for_each_pair(const View& out, const View& p, const F& f) {
  if (out.numel == 0) return;
  SmallVector<int, 8> order;  // outermost first
  for (int d = 0; d < out.ndim(); d++) order.push_back(d);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return out.strides[a] > out.strides[b]; });
  SmallVector<int64_t, 8> index(order.size());
  int64_t at = 0, from = 0;
  while (true) {
    f(at, from);
    size_t k = order.size();
    while (true) {
      if (k == 0) return;
      const int d = order[--k];
      at += out.strides[d];
      from += p.strides[d];
      if (++index[k] < out.sizes[d]) break;
      at -= out.strides[d] * out.sizes[d];
      from -= p.strides[d] * out.sizes[d];
      index[k] = 0;
    }
  }
}

}  // namespace

void random_bernoulli(const View& out, const View& p, Generator& generator) {
  std::lock_guard<std::mutex> lock(generator.mutex());
  with_dtype<Floating>(p.dtype, "bernoulli_tensor_cpu_p_", [&]<class P>(P) {
    const P* from = p.as<P>();
    for_each_pair(out, p, [&](int64_t, int64_t i) {
      const auto probability = static_cast<double>(from[i]);
      TD_CHECK(probability >= 0 && probability <= 1,
               "bernoulli: expected probabilities in [0, 1], got {}", probability);
    });
    with_dtype<RealTypes>(out.dtype, "bernoulli_tensor_cpu_self_", [&]<class T>(T) {
      T* to = out.as<T>();
      for_each_pair(out, p, [&](int64_t at, int64_t i) {
        const double u = std::is_same_v<P, double> ? generator.uniform()
                                                   : static_cast<double>(generator.uniform_float());
        to[at] = from_double<T>(u < static_cast<double>(from[i]) ? 1 : 0);
      });
    });
  });
}

void random_integers(const View& out, uint64_t range, int64_t base, Generator& generator) {
  std::lock_guard<std::mutex> lock(generator.mutex());
  with_dtype<RealTypes>(out.dtype, "random_from_to", [&]<class T>(T) {
    const auto convert = [=](uint64_t word) {
      const auto value = static_cast<int64_t>(word + static_cast<uint64_t>(base));
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
        return T(static_cast<float>(value));
      else
        return static_cast<T>(value);
    };
    if (range == 0) {
      fill_blocks<T, uint64_t>(out, generator, convert);
    } else if (range >= uint64_t{1} << 28) {
      fill_blocks<T, uint64_t>(out, generator,
                               [=](uint64_t word) { return convert(word % range); });
    } else {
      const auto range32 = static_cast<uint32_t>(range);
      fill_blocks<T, uint32_t>(out, generator,
                               [=](uint32_t word) { return convert(word % range32); });
    }
  });
}

void random_integers(const View& out, Generator& generator) {
  std::lock_guard<std::mutex> lock(generator.mutex());
  with_dtype<RealTypes>(out.dtype, "random_", [&]<class T>(T) {
    if constexpr (std::is_same_v<T, double>) {
      fill_blocks<T, uint64_t>(out, generator, [](uint64_t word) {
        return static_cast<double>(word % ((uint64_t{1} << 53) + 1));
      });
    } else if constexpr (std::is_same_v<T, int64_t>) {
      fill_blocks<T, uint64_t>(
          out, generator, [](uint64_t word) { return static_cast<int64_t>(word & INT64_MAX); });
    } else if constexpr (std::is_same_v<T, bool>) {
      fill_blocks<T, uint32_t>(out, generator, [](uint32_t word) { return (word & 1) != 0; });
    } else if constexpr (std::is_integral_v<T>) {
      constexpr uint32_t kRange = static_cast<uint32_t>(std::numeric_limits<T>::max()) + 1;
      fill_blocks<T, uint32_t>(out, generator,
                               [](uint32_t word) { return static_cast<T>(word % kRange); });
    } else {
      // The integers that the format counts exactly: 2^digits.
      constexpr uint32_t kRange = (std::is_same_v<T, Half>       ? 1u << 11
                                   : std::is_same_v<T, BFloat16> ? 1u << 8
                                                                 : 1u << 24) +
                                  1;
      fill_blocks<T, uint32_t>(out, generator,
                               [](uint32_t word) { return T(static_cast<float>(word % kRange)); });
    }
  });
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
  with_dtype<Floating>(out.dtype, "log_normal_cpu", [&]<class T>(T) {
    fill_serial<T>(out, [&] { return from_double<T>(std::exp(generator.normal() * std + mean)); });
  });
}

void random_permutation(const View& out, Generator& generator) {
  std::lock_guard<std::mutex> lock(generator.mutex());
  const int64_t n = out.numel, stride = out.ndim() ? out.strides[0] : 1;
  with_dtype<RealTypes>(out.dtype, "randperm", [&]<class T>(T) {
    T* data = out.as<T>();
    // Fisher and Yates, from the front while 32 bits choose well enough, inside out beyond.
    if (n < static_cast<int64_t>(std::numeric_limits<uint32_t>::max() / 20)) {
      const auto shuffle = [&](auto step) {
        for (int64_t i = 0; i < n; i++) data[i * step] = from_double<T>(static_cast<double>(i));
        for (int64_t i = 0; i < n - 1; i++) {
          const auto z = static_cast<uint32_t>(generator.random()) % static_cast<uint32_t>(n - i);
          std::swap(data[i * step], data[(i + z) * step]);
        }
      };
      if (stride == 1)
        shuffle(std::integral_constant<int64_t, 1>());
      else
        shuffle(stride);
      return;
    }
    for (int64_t i = 0; i < n; i++) {
      const auto z = static_cast<int64_t>(generator.random64() % static_cast<uint64_t>(i + 1));
      data[i * stride] = data[z * stride];
      data[z * stride] = from_double<T>(static_cast<double>(i));
    }
  });
}

}  // namespace taeda::cpu
