// Every operator that Python has no name for (backward steps, kernels behind composites), called by
// itself with tensors, sizes and modes that do not fit together: an exception, never a signal. The
// calls of one operator have a forked process of their own.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <deque>
#include <limits>
#include <random>
#include <tuple>

#include "core/allocator.h"
#include "internal_operators.h"
#include "op/expand.h"
#include "op/to_dtype.h"
#include "op/transpose.h"
#include "taeda/taeda.h"

namespace taeda {
namespace {

constexpr int kCalls = 400;
constexpr int64_t kMemory = int64_t{1} << 30;

// Random arguments that often agree with each other: sizes and dtype are mostly those of the call.
class Arguments {
 public:
  Arguments(uint32_t seed, char* log, size_t log_size)
      : random_(seed), log_(log), log_size_(log_size) {
    const int64_t rank = pick<int64_t>({0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5});
    for (int64_t d = 0; d < rank; d++) sizes_.push_back(pick<int64_t>({0, 1, 2, 2, 3, 3, 4, 5}));
    dtype_ = pick<DType>({DType::kFloat32, DType::kFloat32, DType::kFloat64, DType::kBFloat16,
                          DType::kInt64, DType::kComplex64, DType::kBool, DType::kUInt8});
  }

  template <class T>
  T get() {
    T value{};
    make(value);
    return value;
  }

 private:
  template <class T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[random_() % values.size()];
  }
  bool rarely() { return random_() % 4 == 0; }

  int64_t number() {
    if (!sizes_.empty() && random_() % 3 == 0) return sizes_[random_() % sizes_.size()];
    return pick<int64_t>({0, 0, 1, 1, 2, 3, -1, -2, 5, 64, int64_t{1} << 31, int64_t{1} << 62,
                          std::numeric_limits<int64_t>::min()});
  }

  DimVector some_sizes() {
    DimVector s(sizes_);
    if (!rarely()) return s;
    switch (random_() % 7) {
      case 0:
        return {};
      case 1:
        return {int64_t{0}};
      case 2:
        if (!s.empty()) s.pop_back();
        return s;
      case 3:
        s.push_back(pick<int64_t>({0, 1, 2}));
        return s;
      case 4:
        std::reverse(s.begin(), s.end());
        return s;
      case 5:
        return {s.empty() ? int64_t{1} : s[random_() % s.size()]};
      default:
        if (!s.empty()) s[random_() % s.size()] = pick<int64_t>({0, 1, 2, 7});
        return s;
    }
  }

  // Contents that are also indices inside and outside of small tensors.
  Tensor tensor() {
    const DType dtype =
        rarely() ? pick<DType>({DType::kInt64, DType::kInt64, DType::kInt32, DType::kUInt8,
                                DType::kBool, DType::kFloat32, DType::kFloat64, DType::kComplex128})
                 : dtype_;
    const DimVector sizes = some_sizes();
    Tensor indices = zeros(sizes, TensorOptions(DType::kInt64));
    for (int64_t i = 0; i < indices.numel(); i++)
      indices.data<int64_t>()[i] = rarely() ? number() : static_cast<int64_t>(random_() % 3);
    Tensor t = op::to_dtype(indices, dtype, false, std::nullopt);
    if (t.dim() >= 2 && rarely()) t = op::transpose(t, 0, -1);
    note(to_text(t.dtype()));
    note(to_text(t.sizes()));
    return t;
  }

  void make(Tensor& t) { t = random_() % 16 ? tensor() : Tensor(); }
  void make(TensorSpan& list) {
    TensorList& kept = tensors_.emplace_back();
    for (uint32_t n = random_() % 4; n > 0; n--) kept.push_back(tensor());
    list = kept;
  }
  void make(Device& device) {
    device = pick<DeviceType>({DeviceType::kCPU, DeviceType::kMeta, DeviceType::kCUDA});
  }
  void make(IntSpan& list) {
    DimVector& kept = ints_.emplace_back();
    if (rarely()) {
      for (uint32_t n = random_() % 5; n > 0; n--) kept.push_back(number());
    } else {
      kept = some_sizes();
    }
    note(to_text(IntSpan(kept)));
    list = kept;
  }
  void make(OptInts& list) {
    if (random_() % 4) list = get<IntSpan>();
  }
  void make(int64_t& n) { note(std::to_string(n = number())); }
  void make(OptInt& n) {
    if (random_() % 4) n = get<int64_t>();
  }
  void make(bool& b) { b = random_() % 2; }
  void make(double& x) {
    x = pick<double>({0, 1, -1, 0.5, 2, 1e300, std::numeric_limits<double>::infinity(),
                      std::numeric_limits<double>::quiet_NaN()});
  }
  void make(OptDouble& x) {
    if (random_() % 4) x = get<double>();
  }
  void make(Scalar& s) { s = random_() % 2 ? Scalar(get<double>()) : Scalar(number()); }
  void make(OptScalar& s) {
    if (random_() % 4) s = get<Scalar>();
  }
  void make(std::string_view& text) {
    text = pick<std::string_view>(
        {"",         "mean",      "sum",           "none",          "reflect", "replicate",
         "circular", "nearest",   "nearest-exact", "nearest-whole", "linear",  "bilinear",
         "bicubic",  "trilinear", "prod",          "amax",          "amin",    "tanh",
         "relu",     "lstm",      "gru",           "floor",         "trunc",   "x"});
    note(text);
  }
  void make(DType& dtype) { dtype = dtype_; }
  void make(OptDType& dtype) {
    if (random_() % 2) dtype = dtype_;
  }
  void make(OptMemoryFormat& format) {
    if (random_() % 2) format = MemoryFormat::kContiguous;
  }
  void make(Generator*& generator) { generator = nullptr; }

  void note(std::string_view text) {
    const size_t n = std::min(text.size(), log_size_ - 2);
    std::memcpy(log_, text.data(), n);
    log_[n] = ' ';
    log_[n + 1] = 0;
    log_ += n + 1;
    log_size_ -= n + 1;
  }

  std::mt19937 random_;
  char* log_;
  size_t log_size_;
  DimVector sizes_;
  DType dtype_;
  std::deque<TensorList> tensors_;
  std::deque<DimVector> ints_;
};

template <class R, class... A>
void call_once(R (*function)(A...), Arguments& given) {
  std::tuple<std::decay_t<A>...> arguments{given.get<std::decay_t<A>>()...};
  std::apply(function, arguments);
}

template <class F>
void call_often(F* function, uint32_t seed, char* log, size_t log_size) {
  for (int i = 0; i < kCalls; i++) {
    Arguments given(seed + static_cast<uint32_t>(i), log, log_size);
    try {
      call_once(function, given);
    } catch (const std::exception&) {
      continue;  // what is hoped for
    }
  }
}

// The last arguments of the process that died; empty where it ended well.
template <class F>
std::string death_of(F* function, uint32_t seed) {
  constexpr size_t kLog = 1 << 14;
  char* const log = static_cast<char*>(
      mmap(nullptr, kLog, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const pid_t child = fork();
  if (child == 0) {
    alarm(120);
    set_cpu_memory_limit(kMemory);
    call_often(function, seed, log, kLog);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::string found;
  if (status != 0) found = format("status {} with {}", status, std::string_view(log));
  munmap(log, kLog);
  return found;
}

TEST(InternalOperators, SurviveArgumentsThatDoNotFit) {
  uint32_t seed = 1;
#define TD_TRY(name) EXPECT_EQ(death_of(&op::name, seed += kCalls), "") << #name;
  TD_INTERNAL_OPERATORS(TD_TRY)
#undef TD_TRY
}

}  // namespace
}  // namespace taeda
