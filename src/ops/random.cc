// Random tensors: the bodies behind ops/random.yaml. Draws are made by kernels/cpu/random; here are
// PyTorch's rules for ranges and dtypes, and the composites.
#include "kernels/cpu/random/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/device_memory.h"
#include "core/layout.h"
#include "device/has_kernels.h"
#include "kernels/copy.h"
#include "kernels/cuda/shuffle_ties.h"
#include "op/_cast.h"
#include "op/_fused_dropout.h"
#include "op/add.h"
#include "op/bernoulli.h"
#include "op/bernoulli_.h"
#include "op/bitwise_and.h"
#include "op/clamp.h"
#include "op/clone.h"
#include "op/contiguous.h"
#include "op/detach.h"
#include "op/div.h"
#include "op/empty_like.h"
#include "op/expand.h"
#include "op/mul.h"
#include "op/new_empty.h"
#include "op/new_zeros.h"
#include "op/normal_.h"
#include "op/randint.h"
#include "op/randint_like.h"
#include "op/random_.h"
#include "op/real.h"
#include "op/sort.h"
#include "op/sub.h"
#include "op/sum.h"
#include "op/to_dtype.h"
#include "op/uniform_.h"
#include "ops/allocate.h"
#include "ops/batching/level.h"
#include "ops/dispatch.h"
#include "ops/host.h"
#include "ops/rules.h"
#include "taeda/generator.h"

namespace taeda::impl {
namespace {

// Checks that `self` may be filled. Returns `generator` or the default one.
Generator& drawing(const char* op, const Tensor& self, Generator* generator) {
  check_no_internal_overlap(self);
  TD_CHECK(self.storage()->writable(), "{}: the tensor's memory is read-only", op);
  return generator_or_default(generator, self.device());
}

// A complex tensor as one of its parts, with a last dimension of 2.
Tensor parts_of(const Tensor& self) {
  DimVector sizes(self.sizes()), strides(self.strides());
  for (int64_t& stride : strides) stride *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  Ref<TensorImpl> impl(new TensorImpl(self.storage(), to_real(self.dtype()), self.device()));
  impl->set_layout(sizes, strides, 2 * self.storage_offset());
  return Tensor(std::move(impl));
}

void check_floating(const char* function, const Tensor& self) {
  TD_CHECK_IMPLEMENTED(is_inexact(self.dtype()) && !is_narrow_floating(self.dtype()),
                       "\"{}\" not implemented for '{}'", function, scalar_type_name(self.dtype()));
}

// As PyTorch's messages call the C++ types.
std::string_view cpp_name(DType dtype) {
  constexpr std::string_view names[kNumDTypes] = {"bool",
                                                  "unsigned char",
                                                  "signed char",
                                                  "short int",
                                                  "int",
                                                  "long int",
                                                  "c10::Half",
                                                  "c10::BFloat16",
                                                  "float",
                                                  "double",
                                                  "",
                                                  "",
                                                  "short unsigned int",
                                                  "unsigned int",
                                                  "long unsigned int"};
  return names[static_cast<int>(dtype)];
}

Tensor finished(Tensor t, const TensorOptions& options) {
  if (options.requires_grad) t.requires_grad_();
  return t;
}

Tensor fresh(IntSpan size, const TensorOptions& options, DType fallback) {
  return empty_tensor(size, options.dtype.value_or(fallback), options.device.value_or(Device()));
}

Tensor fresh_like(const Tensor& self, const TensorOptions& options, OptMemoryFormat format) {
  TensorOptions plain = options;
  plain.requires_grad = false;
  return impl::empty_like(self, plain, format);
}

}  // namespace

Tensor uniform_(const Tensor& self, double from, double to, Generator* generator) {
  check_floating("check_uniform_bounds", self);
  const Tensor target = is_complex(self.dtype()) ? parts_of(self) : self;
  const double limit = rules::largest(target.dtype());
  TD_CHECK(from >= -limit && from <= limit, "from is out of bounds for {}",
           cpp_name(target.dtype()));
  TD_CHECK(to >= -limit && to <= limit, "to is out of bounds for {}", cpp_name(target.dtype()));
  TD_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from={} > to={}",
           from, to);
  TD_CHECK(to - from <= limit,
           "uniform_ expects to-from <= std::numeric_limits<{}>::max(), but found to={} and "
           "from={} which result in "
           "to-from to exceed the limit",
           cpp_name(target.dtype()), to, from);
  kernels::random_uniform(view_of(target), from, to, drawing("uniform_", self, generator));
  return self;
}

Tensor normal_(const Tensor& self, double mean, double std, Generator* generator) {
  TD_CHECK(std >= 0, "normal expects std >= 0.0, but found std {}", std);
  check_floating("normal_kernel_cpu", self);
  Generator& source = drawing("normal_", self, generator);
  if (is_complex(self.dtype())) {
    // The variance is that of both parts together; either part has the mean.
    kernels::random_normal(view_of(parts_of(self)), mean, std / std::sqrt(2.0), source);
  } else {
    kernels::random_normal(view_of(self), mean, std, source);
  }
  return self;
}

namespace {

int64_t largest_integer(DType dtype) {
  if (dtype == DType::kBool) return 1;
  const int64_t digits = 8 * item_size(dtype) - is_signed(dtype);
  return digits >= 63 ? INT64_MAX : (int64_t{1} << digits) - 1;
}
int64_t smallest_integer(DType dtype) { return is_signed(dtype) ? -largest_integer(dtype) - 1 : 0; }
int digits(DType dtype) {
  return dtype == DType::kFloat16    ? 11
         : dtype == DType::kBFloat16 ? 8
         : dtype == DType::kFloat64  ? 53
                                     : 24;
}

int64_t rounded_to(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::kFloat16:
      return static_cast<int64_t>(static_cast<float>(Half(static_cast<float>(value))));
    case DType::kBFloat16:
      return static_cast<int64_t>(static_cast<float>(BFloat16(static_cast<float>(value))));
    case DType::kFloat32:
      return static_cast<int64_t>(static_cast<double>(static_cast<float>(value)));
    default:
      return value;
  }
}

int floor_log2(int64_t value) {
  const auto bits = static_cast<uint64_t>(value);
  return std::bit_width(value < 0 ? 0 - bits : bits) - 1;
}

// Bounds moved inwards to integers that the floating dtype represents.
int64_t representable_from(DType dtype, int64_t from) {
  const int64_t next = rounded_to(dtype, from + 1);
  if (next >= from) return from;
  return next + (int64_t{1} << (floor_log2(from + 1) - digits(dtype) + 1));
}
int64_t representable_to(DType dtype, int64_t to) {
  const int64_t last = rounded_to(dtype, to - 1);
  if (last < to) return to;
  return to - (int64_t{1} << (floor_log2(to - 1) - digits(dtype) + 1));
}

void check_bound(DType dtype, int64_t value, std::string_view name) {
  const bool inside = is_floating(dtype)
                          ? std::abs(static_cast<double>(value)) <= rules::largest(dtype)
                          : value >= smallest_integer(dtype) && value <= largest_integer(dtype);
  TD_CHECK(inside, "{} is out of bounds for {}", name, cpp_name(dtype));
}

void check_random_type(const Tensor& self) {
  TD_CHECK_IMPLEMENTED(!is_complex(self.dtype()) && !is_narrow_floating(self.dtype()),
                       "\"random_\" not implemented for '{}'", scalar_type_name(self.dtype()));
}

}  // namespace

Tensor random_from_(const Tensor& self, int64_t from, OptInt to, Generator* generator) {
  check_random_type(self);
  const DType dtype = self.dtype();
  uint64_t range;
  if (to) {
    int64_t end = *to;
    TD_CHECK(from < end, "random_ expects 'from' to be less than 'to', but got from={} >= to={}",
             from, end);
    if (is_floating(dtype)) {
      from = representable_from(dtype, from);
      end = representable_to(dtype, end);
      TD_CHECK(from < end,
               "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but "
               "got from={} >= to={}",
               from, end);
    }
    check_bound(dtype, from, "from");
    check_bound(dtype, end - 1, "to - 1");
    range = static_cast<uint64_t>(end) - static_cast<uint64_t>(from);
  } else if (from == INT64_MIN) {
    TD_CHECK_IMPLEMENTED(dtype != DType::kFloat16,
                         "\"random_full_64_bits_range_kernel_cpu\" not implemented for 'Half'");
    TD_CHECK(dtype == DType::kInt64 || is_floating(dtype),
             "random_: from = -2**63 without an end needs int64, got {}", dtype);
    range = 0, from = 0;  // all 64 bits, as they are
  } else {
    const int64_t last = is_floating(dtype) ? int64_t{1} << digits(dtype) : largest_integer(dtype);
    if (is_floating(dtype) && from < last) from = representable_from(dtype, from);
    TD_CHECK(from < last,
             "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted "
             "to dtype, but got "
             "from={} > to_inc={}",
             from, last);
    check_bound(dtype, from, "from");
    range = static_cast<uint64_t>(last) - static_cast<uint64_t>(from) + 1;
  }
  kernels::random_integers(view_of(self), range, from, drawing("random_", self, generator));
  return self;
}

Tensor random_to_(const Tensor& self, int64_t to, Generator* generator) {
  return impl::random_from_(self, 0, to, generator);
}

Tensor random_(const Tensor& self, Generator* generator) {
  check_random_type(self);
  TD_CHECK_IMPLEMENTED(!is_storage_type(self.dtype()), "\"random_\" not implemented for '{}'",
                       scalar_type_name(self.dtype()));
  kernels::random_all_integers(view_of(self), drawing("random_", self, generator));
  return self;
}

Tensor bernoulli_tensor_(const Tensor& self, const Tensor& p, Generator* generator) {
  TD_CHECK_IMPLEMENTED(is_floating(p.dtype()),
                       "\"bernoulli_tensor_cpu_p_\" not implemented for '{}'",
                       scalar_type_name(p.dtype()));
  TD_CHECK_IMPLEMENTED(!is_complex(self.dtype()),
                       "\"bernoulli_tensor_cpu_self_\" not implemented for '{}'",
                       scalar_type_name(self.dtype()));
  const Tensor weights = p.sizes() == self.sizes() ? p : op::expand(p, self.sizes(), false);
  Generator& source = drawing("bernoulli_", self, generator);
  // Probabilities are read before draws are written over them.
  const bool overlaps =
      memory_overlap(self, weights) != MemoryOverlap::kNo && !self.is_same(weights);
  kernels::random_bernoulli_each(
      view_of(self), view_of(overlaps ? impl::clone(weights, std::nullopt) : weights), source);
  return self;
}

Tensor bernoulli_float_(const Tensor& self, double p, Generator* generator) {
  TD_CHECK_IMPLEMENTED(!is_complex(self.dtype()),
                       "\"bernoulli_scalar_cpu_\" not implemented for '{}'",
                       scalar_type_name(self.dtype()));
  kernels::random_bernoulli(view_of(self), p, drawing("bernoulli_", self, generator));
  return self;
}

namespace {

void check_continuous(const char* name, const Tensor& self) {
  TD_CHECK(is_floating(self.dtype()),
           "{} distribution is a continuous probability distribution. dtype must be a floating "
           "point but you "
           "specified {}",
           name, scalar_type_name(self.dtype()));
}

}  // namespace

Tensor exponential_(const Tensor& self, double rate, Generator* generator) {
  check_continuous("Exponential", self);
  kernels::random_exponential(view_of(self), rate, drawing("exponential_", self, generator));
  return self;
}

Tensor geometric_(const Tensor& self, double p, Generator* generator) {
  TD_CHECK_IMPLEMENTED(self.dtype() != DType::kBool && !is_complex(self.dtype()),
                       "\"geometric_cpu\" not implemented for '{}'",
                       scalar_type_name(self.dtype()));
  kernels::random_geometric(view_of(self), p, drawing("geometric_", self, generator));
  return self;
}

Tensor cauchy_(const Tensor& self, double median, double sigma, Generator* generator) {
  check_continuous("Cauchy", self);
  kernels::random_cauchy(view_of(self), median, sigma, drawing("cauchy_", self, generator));
  return self;
}

Tensor log_normal_(const Tensor& self, double mean, double std, Generator* generator) {
  check_floating("log_normal_cpu", self);
  kernels::random_log_normal(view_of(self), mean, std, drawing("log_normal_", self, generator));
  return self;
}

Tensor rand(IntSpan size, Generator* generator, const TensorOptions& options) {
  return finished(op::uniform_(fresh(size, options, default_dtype()), 0, 1, generator), options);
}
Tensor randn(IntSpan size, Generator* generator, const TensorOptions& options) {
  return finished(op::normal_(fresh(size, options, default_dtype()), 0, 1, generator), options);
}
Tensor rand_like(const Tensor& self, const TensorOptions& options, OptMemoryFormat format) {
  return finished(op::uniform_(fresh_like(self, options, format), 0, 1, nullptr), options);
}
Tensor randn_like(const Tensor& self, const TensorOptions& options, OptMemoryFormat format) {
  return finished(op::normal_(fresh_like(self, options, format), 0, 1, nullptr), options);
}

Tensor randint(int64_t low, int64_t high, IntSpan size, Generator* generator,
               const TensorOptions& options) {
  return finished(
      op::random_inplace_from(fresh(size, options, DType::kInt64), low, high, generator), options);
}
Tensor randint_high(int64_t high, IntSpan size, Generator* generator,
                    const TensorOptions& options) {
  return impl::randint(0, high, size, generator, options);
}
Tensor randint_like(const Tensor& self, int64_t low, int64_t high, const TensorOptions& options,
                    OptMemoryFormat format) {
  return finished(op::random_inplace_from(fresh_like(self, options, format), low, high, nullptr),
                  options);
}
Tensor randint_like_high(const Tensor& self, int64_t high, const TensorOptions& options,
                         OptMemoryFormat format) {
  return impl::randint_like(self, 0, high, options, format);
}

namespace {

// 0 .. n - 1 as PyTorch's CUDA kernels permute them: sorted by random keys, and those of equal keys
// shuffled. The keys have so many bits that with probability 0.9 all differ.
Tensor permuted_by_keys(int64_t n, Device device, Generator& generator) {
  if (n == 0) return empty_tensor({0}, DType::kInt64, device);
  const auto count = static_cast<double>(n);
  const double wanted = std::log2(count - (6 * count * count + 1) / (12 * std::log(0.9)));
  const int bits = std::min(64, static_cast<int>(std::ceil(wanted)));
  const bool is_short = bits <= 32;
  const Tensor drawn = empty_tensor({n}, is_short ? DType::kInt32 : DType::kInt64, device);
  const uint64_t range = is_short ? UINT32_MAX : UINT64_MAX;
  kernels::random_integers(view_of(drawn), range, is_short ? INT32_MIN : INT64_MIN, generator);
  Tensor keys = op::to_dtype(drawn, DType::kInt64, false, {});
  if (bits != 32 && bits != 64)
    keys = op::bitwise_and(keys, Tensor(Scalar((int64_t{1} << bits) - 1)));
  const auto [sorted, order] = op::sort(keys, 0, false);
  cuda::shuffle_ties(view_of(order), view_of(sorted), generator);
  return order;
}

}  // namespace

Tensor randperm(int64_t n, Generator* generator, const TensorOptions& options) {
  const DType dtype = options.dtype.value_or(DType::kInt64);
  TD_CHECK_IMPLEMENTED(!is_complex(dtype) && dtype != DType::kBool,
                       "\"randperm\" not implemented for '{}'", scalar_type_name(dtype));
  const int64_t last = is_floating(dtype) ? int64_t{1} << digits(dtype) : largest_integer(dtype);
  TD_CHECK(n - 1 <= last, "randperm: n = {} is too large for {}", n, dtype);
  const Device device = resolved(options.device.value_or(Device()));
  if (device.type == DeviceType::kCUDA && cuda::has_kernels() && n >= 0) {
    const Tensor order = permuted_by_keys(n, device, generator_or_default(generator, device));
    return finished(op::to_dtype(order, dtype, false, {}), options);
  }
  const Tensor out = written_on_host({n}, dtype, device, [&](const Tensor& t) {
    kernels::random_permutation(view_of(t), generator_or_default(generator, device));
  });
  return finished(out, options);
}

namespace {

void check_deviations(const Tensor& std) {
  TD_CHECK(!is_complex(std.dtype()), "normal expects standard deviation to be non-complex");
  for (double value : HostElements<double>(impl::_cast(std, DType::kFloat64, {})))
    TD_CHECK(value >= 0, "normal expects all elements of std >= 0.0");
}

Tensor standard_normal(IntSpan sizes, const Tensor& like, double std, Generator* generator) {
  return op::normal_(empty_tensor(sizes, like.dtype(), like.device()), 0, std, generator);
}

}  // namespace

Tensor normal_tensor_float(const Tensor& mean, double std, Generator* generator) {
  return op::add(standard_normal(mean.sizes(), mean, std, generator), mean, Scalar(int64_t{1}));
}
Tensor normal_float_tensor(double mean, const Tensor& std, Generator* generator) {
  check_deviations(std);
  return op::add(op::mul(standard_normal(std.sizes(), std, 1, generator), std), Tensor(mean),
                 Scalar(int64_t{1}));
}
Tensor normal_tensor_tensor(const Tensor& mean, const Tensor& std, Generator* generator) {
  check_deviations(std);
  const Tensor draws =
      standard_normal(broadcast_shapes(mean.sizes(), std.sizes()), mean, 1, generator);
  const Tensor scaled = op::to_dtype(op::mul(draws, std), mean.dtype(), false, std::nullopt);
  return op::add(scaled, mean, Scalar(int64_t{1}));
}
Tensor normal_float_float(double mean, double std, IntSpan size, Generator* generator,
                          const TensorOptions& options) {
  return finished(op::normal_(fresh(size, options, default_dtype()), mean, std, generator),
                  options);
}

Tensor bernoulli(const Tensor& self, Generator* generator) {
  return impl::bernoulli_tensor_(empty_tensor(self.sizes(), self.dtype(), self.device()), self,
                                 generator);
}
Tensor bernoulli_p(const Tensor& self, double p, Generator* generator) {
  return impl::bernoulli_float_(empty_tensor(self.sizes(), self.dtype(), self.device()), p,
                                generator);
}

Tensor uniform(const Tensor& self, double from, double to, Generator* generator) {
  return op::uniform_(op::clone(self, {}), from, to, generator);
}

Tensor poisson(const Tensor& self, Generator* generator) {
  Tensor out = empty_tensor(self.sizes(), self.dtype(), self.device());
  kernels::random_poisson(view_of(out), view_of(op::contiguous(self, MemoryFormat::kContiguous)),
                          generator_or_default(generator, out.device()));
  return out;
}

Tensor binomial(const Tensor& count, const Tensor& prob, Generator* generator) {
  const DimVector sizes = broadcast_shapes(count.sizes(), prob.sizes());
  Tensor out = empty_tensor(sizes, count.dtype(), count.device());
  const auto dense = [&](const Tensor& t) {
    return op::contiguous(op::expand(t, sizes, false), MemoryFormat::kContiguous);
  };
  kernels::random_binomial(view_of(out), view_of(dense(count)), view_of(dense(prob)),
                           generator_or_default(generator, out.device()));
  return out;
}

Tensor _standard_gamma(const Tensor& self, Generator* generator) {
  Tensor out = empty_tensor(self.sizes(), self.dtype(), self.device());
  kernels::random_gamma(view_of(out), view_of(op::contiguous(self, MemoryFormat::kContiguous)),
                        generator_or_default(generator, out.device()));
  return out;
}

// Gamma numbers divided by their sum, on the CPU in double so that none of small shape underflows.
Tensor _sample_dirichlet(const Tensor& self, Generator* generator) {
  const DType dtype = self.dtype();
  const bool on_cpu = self.device().is_cpu(), is_float = dtype == DType::kFloat32;
  const Tensor shapes = on_cpu ? impl::_cast(self, DType::kFloat64, {}) : self;
  const Tensor gamma = impl::_standard_gamma(shapes, generator);
  const Tensor shares = op::div(gamma, op::sum(gamma, DimVector{-1}, true, std::nullopt));
  const double least =
      is_float ? double{std::numeric_limits<float>::min()} : std::numeric_limits<double>::min();
  const double step = is_float ? 0x1p-23 : 0x1p-52;  // CUDA keeps twice as far from 1 as the CPU
  return op::clamp(impl::_cast(shares, dtype, {}), Scalar(least),
                   Scalar(1 - (on_cpu ? step / 2 : step)));
}

Tensor multinomial(const Tensor& self, int64_t samples, bool replacement, Generator* generator) {
  TD_CHECK(self.dim() == 1 || self.dim() == 2, "prob_dist must be 1 or 2 dim");
  TD_CHECK(is_floating(self.dtype()),
           "multinomial only supports floating-point dtypes for input, got: {}",
           scalar_type_name(self.dtype()));
  TD_CHECK(samples > 0, "cannot sample n_sample <= 0 samples");
  const int64_t categories = self.size(-1), rows = self.dim() == 1 ? 1 : self.size(0);
  TD_CHECK(replacement || samples <= categories,
           "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  TD_CHECK(categories <= int64_t{1} << 24, "number of categories cannot exceed 2^24");
  Tensor out = self.dim() == 1 ? empty_tensor({samples}, DType::kInt64, self.device())
                               : empty_tensor({rows, samples}, DType::kInt64, self.device());
  if (out.numel() == 0) return out;
  TD_CHECK(categories > 0, "multinomial: expected at least one category, got shape {}",
           self.sizes());
  // Without replacement a number is drawn for each weight, on the CPU in their order in memory.
  const bool ordered = (replacement && samples > 1) || self.dim() == 1 || !self.device().is_cpu();
  const DimVector strides =
      ordered ? DimVector{categories, 1} : preserved_strides(self.sizes(), self.strides());
  Tensor weights = self;
  if (!ordered && !self.is_contiguous() && self.strides() != strides) {
    weights = empty_strided_tensor(self.sizes(), strides, self.dtype(), self.device());
    kernels::copy(view_of(weights), view_of(self));
  } else if (ordered) {
    weights = dense_input(self);
  }
  kernels::multinomial(
      view_of(alias_tensor(out, {rows, samples}, {samples, 1}, 0)),
      view_of(alias_tensor(weights, {rows, categories}, strides, weights.storage_offset())),
      replacement, generator_or_default(generator, out.device()));
  return out;
}

Tensor dropout(const Tensor& input, double p, bool train) {
  if (p == 0 || !train || input.numel() == 0) return input;
  if (p == 1) return op::mul(input, op::new_zeros(input, {}, {}));
  if (is_complex(input.dtype())) {
    const Tensor noise = op::bernoulli_p(op::real(op::detach(input)), 1 - p, nullptr);
    return op::mul(input, op::div(noise, Tensor(1 - p)));
  }
  return std::get<0>(op::_fused_dropout(input, p, nullptr));
}

namespace {

// What dropout in place and its relatives multiply an input by, and add to it.
struct Noise {
  Tensor factor, shift;  // shift: undefined where there is none
};

// Noise for each element, or for each channel of each sample; with `alpha` so that what is dropped
// is -scale * alpha of SELU, its value far below 0, and mean 0 and variance 1 stay.
Noise dropout_noise(const Tensor& input, double p, bool channels, bool alpha) {
  constexpr double kFarBelow = 1.7580993408473766;
  if (p == 1) return {op::new_zeros(input, {}, {}), {}};
  DimVector sizes(input.sizes());
  if (channels) {
    TD_CHECK(input.dim() >= 2, "Feature dropout requires at least 2 dimensions in the input");
    std::fill(sizes.begin() + 2, sizes.end(), 1);
  }
  const Tensor memory = channels ? op::new_empty(input, sizes, {}) : op::empty_like(input, {}, {});
  // Samples of vmap that share the input have masks of their own.
  const Tensor kept = batching::current() ? op::bernoulli_p(memory, 1 - p, nullptr)
                                          : op::bernoulli_inplace_float(memory, 1 - p, nullptr);
  if (!alpha) return {op::div_inplace(kept, Tensor(1 - p)), {}};
  const double scale = 1 / std::sqrt((kFarBelow * kFarBelow * p + 1) * (1 - p));
  const Tensor dropped = op::sub(kept, Tensor(1), Scalar(int64_t{1}));
  op::mul_inplace(dropped, Tensor(kFarBelow * scale));
  op::add_inplace(dropped, Tensor(kFarBelow * scale * p), Scalar(int64_t{1}));
  return {op::mul_inplace(kept, Tensor(scale)), dropped};
}

Tensor dropped_out(const Tensor& input, double p, bool train, bool channels, bool alpha) {
  if (p == 0 || !train || input.numel() == 0) return input;
  const Noise noise = dropout_noise(input, p, channels, alpha);
  const Tensor scaled = op::mul(input, noise.factor);
  return noise.shift.defined() ? op::add(scaled, noise.shift, Scalar(int64_t{1})) : scaled;
}

Tensor dropped_out_inplace(const Tensor& self, double p, bool train, bool channels, bool alpha) {
  if (p == 0 || !train || self.numel() == 0) return self;
  const Noise noise = dropout_noise(self, p, channels, alpha);
  op::mul_inplace(self, noise.factor);
  return noise.shift.defined() ? op::add_inplace(self, noise.shift, Scalar(int64_t{1})) : self;
}

}  // namespace

Tensor dropout_(const Tensor& self, double p, bool train) {
  return dropped_out_inplace(self, p, train, false, false);
}
Tensor alpha_dropout(const Tensor& input, double p, bool train) {
  return dropped_out(input, p, train, false, true);
}
Tensor alpha_dropout_(const Tensor& self, double p, bool train) {
  return dropped_out_inplace(self, p, train, false, true);
}
Tensor feature_dropout(const Tensor& input, double p, bool train) {
  return dropped_out(input, p, train, true, false);
}
Tensor feature_dropout_(const Tensor& self, double p, bool train) {
  return dropped_out_inplace(self, p, train, true, false);
}
Tensor feature_alpha_dropout(const Tensor& input, double p, bool train) {
  return dropped_out(input, p, train, true, true);
}
Tensor feature_alpha_dropout_(const Tensor& self, double p, bool train) {
  return dropped_out_inplace(self, p, train, true, true);
}

namespace {

// `t` itself where it has the layout of `like`, else a copy that does.
Tensor in_layout_of(const Tensor& like, const Tensor& t) {
  if (t.strides() == like.strides()) return t;
  Tensor copy = empty_strided_tensor(like.sizes(), like.strides(), t.dtype(), t.device());
  kernels::copy(view_of(copy), view_of(t));
  return copy;
}

}  // namespace

std::tuple<Tensor, Tensor> _fused_dropout(const Tensor& input, double p, Generator* generator) {
  Tensor result = empty_like_tensor(input, input.dtype());
  const Tensor mask =
      empty_strided_tensor(result.sizes(), result.strides(), DType::kBool, result.device());
  kernels::dropout(view_of(result), view_of(mask), view_of(in_layout_of(result, input)), p,
                   generator_or_default(generator, result.device()));
  return {result, mask};
}

Tensor _dropout_backward(const Tensor& grad, const Tensor& mask, double scale) {
  Tensor result = empty_like_tensor(grad, grad.dtype());
  kernels::dropout_backward(view_of(result), view_of(in_layout_of(result, grad)),
                            view_of(in_layout_of(result, mask)), scale);
  return result;
}

}  // namespace taeda::impl
