// Random numbers against PyTorch's: tests/data/random.txt, written by make_random.py beside it, has
// for each case the dtype, the number of elements, the generator's next draw below 2^20, and the
// elements' bytes.
#include "kernels/cpu/random/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string_view>

#include "taeda/error.h"

namespace taeda {
namespace {

struct Case {
  std::string name, dtype;
  int64_t numel, after;
  std::string bytes;
};

std::vector<Case> read_cases() {
  std::ifstream file(std::string(TAEDA_TEST_DATA) + "/random.txt");
  std::vector<Case> cases;
  Case c;
  std::string hex;
  while (file >> c.name >> c.dtype >> c.numel >> c.after >> hex) {
    c.bytes.clear();
    for (size_t i = 0; i < hex.size(); i += 2)
      c.bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    cases.push_back(c);
  }
  return cases;
}

DType dtype_named(const std::string& name) {
  for (int i = 0; i < kNumDTypes; i++) {
    if (to_text(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  }
  throw std::runtime_error(name);
}

// Owns what a View needs.
struct Array {
  std::vector<char> bytes;
  DimVector sizes, strides;
  View view;
  Array(DType dtype, IntSpan shape) : sizes(shape), strides(shape.size()) {
    int64_t n = 1;
    for (size_t d = sizes.size(); d-- > 0; n *= sizes[d]) strides[d] = n;
    bytes.resize(static_cast<size_t>(n * item_size(dtype)));
    view = {bytes.data(), dtype, sizes, strides, n, true};
  }
  Array(const Array&) = delete;
};

using Fill = std::function<void(const View&, Generator&)>;
const std::map<std::string, Fill>& fills() {
  static const std::map<std::string, Fill> table = {
      {"uniform", [](const View& v, Generator& g) { cpu::random_uniform(v, 0, 1, g); }},
      {"uniform_range", [](const View& v, Generator& g) { cpu::random_uniform(v, -3, 7, g); }},
      {"normal", [](const View& v, Generator& g) { cpu::random_normal(v, 0, 1, g); }},
      {"normal_range", [](const View& v, Generator& g) { cpu::random_normal(v, 5, 0.3, g); }},
      {"bernoulli", [](const View& v, Generator& g) { cpu::random_bernoulli(v, 0.3, g); }},
      {"randint100", [](const View& v, Generator& g) { cpu::random_integers(v, 100, 0, g); }},
      {"randint_wide",
       [](const View& v, Generator& g) {
         cpu::random_integers(v, 3 * (uint64_t{1} << 40), -(int64_t{1} << 40), g);
       }},
      {"randint_int",
       [](const View& v, Generator& g) {
         cpu::random_integers(v, uint64_t{1} << 32, INT32_MIN, g);
       }},
      {"random", [](const View& v, Generator& g) { cpu::random_all_integers(v, g); }},
      {"exponential", [](const View& v, Generator& g) { cpu::random_exponential(v, 1.5, g); }},
      {"geometric", [](const View& v, Generator& g) { cpu::random_geometric(v, 0.3, g); }},
      {"cauchy", [](const View& v, Generator& g) { cpu::random_cauchy(v, 1, 2, g); }},
      {"log_normal", [](const View& v, Generator& g) { cpu::random_log_normal(v, 1, 2, g); }},
      {"randperm", [](const View& v, Generator& g) { cpu::random_permutation(v, g); }},
      {"dropout",
       [](const View& v, Generator& g) {
         Array x(DType::kFloat32, v.sizes), mask(DType::kBool, v.sizes);
         for (int64_t i = 0; i < v.numel; i++) x.view.as<float>()[i] = static_cast<float>(i - 500);
         cpu::dropout(v, mask.view, x.view, 0.3, g);
       }},
      {"multinomial",
       [](const View& v, Generator& g) {
         Array p(DType::kFloat32, {4, 20});
         for (int64_t i = 0; i < 80; i++) p.view.as<float>()[i] = static_cast<float>(i + 1);
         Array out(DType::kInt64, {4, v.numel / 4});
         cpu::multinomial(out.view, p.view, false, g);
         std::copy_n(out.view.as<int64_t>(), v.numel, v.as<int64_t>());
       }},
      {"multinomial_replacement",
       [](const View& v, Generator& g) {
         Array p(DType::kFloat32, {4, 20});
         for (int64_t i = 0; i < 80; i++) p.view.as<float>()[i] = static_cast<float>(i + 1);
         Array out(DType::kInt64, {4, v.numel / 4});
         cpu::multinomial(out.view, p.view, true, g);
         std::copy_n(out.view.as<int64_t>(), v.numel, v.as<int64_t>());
       }},
  };
  return table;
}

double element(DType dtype, const void* data, int64_t i) {
  switch (dtype) {
    case DType::kFloat32:
      return static_cast<const float*>(data)[i];
    case DType::kFloat64:
      return static_cast<const double*>(data)[i];
    case DType::kFloat16:
      return static_cast<float>(static_cast<const Half*>(data)[i]);
    case DType::kBFloat16:
      return static_cast<float>(static_cast<const BFloat16*>(data)[i]);
    case DType::kInt64:
      return static_cast<double>(static_cast<const int64_t*>(data)[i]);
    default:
      return 0;
  }
}

TEST(Random, SameNumbersAsTorch) {
  const auto cases = read_cases();
  ASSERT_GT(cases.size(), 25u);
  uint64_t seed = 1000;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name + " " + c.dtype + " " + std::to_string(c.numel));
    const DType dtype = dtype_named(c.dtype);
    Array out(dtype, {c.numel});
    Mt19937 generator(seed++);
    fills().at(c.name)(out.view, generator);
    int64_t different = 0;
    double error = 0;
    for (int64_t i = 0; i < c.numel; i++) {
      const int64_t size = item_size(dtype);
      if (std::memcmp(out.bytes.data() + i * size, c.bytes.data() + i * size,
                      static_cast<size_t>(size)) == 0)
        continue;
      different++;
      const double a = element(dtype, out.bytes.data(), i), b = element(dtype, c.bytes.data(), i);
      error = std::max(error, std::abs(a - b) / std::max(std::abs(b), 1e-3));
    }
    // Without fused multiply-add the last bit of a normal number may differ.
    const char* level = std::getenv("TAEDA_CPU");
    if (level && std::string_view(level) == "baseline")
      EXPECT_LE(error, 3e-7);
    else
      EXPECT_EQ(different, 0) << "largest relative difference " << error;
    EXPECT_EQ(generator.random() % (1 << 20), static_cast<uint32_t>(c.after))
        << "draws differ in number";
  }
}

}  // namespace
}  // namespace taeda
