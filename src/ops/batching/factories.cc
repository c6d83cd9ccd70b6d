// vmap of what makes tensors from tensors: linspace and logspace between ends of each sample's own.
#include "op/add.h"
#include "op/arange.h"
#include "op/div.h"
#include "op/lt.h"
#include "op/mul.h"
#include "op/pow.h"
#include "op/reshape.h"
#include "op/sub.h"
#include "op/to_device.h"
#include "op/to_dtype.h"
#include "op/where.h"
#include "ops/batching/rules.h"

namespace taeda::batching {
namespace {

Tensor to(const Tensor& t, DType dtype) { return op::to_dtype(t, dtype, false, std::nullopt); }
Tensor number(double value) { return Tensor(Scalar(value)); }

// An end, which may be a number.
Tensor end(const Call& call, size_t i) {
  return call.stack[i].is_tensor() ? call.value_or_plain(i) : Tensor(call.stack[i].scalar());
}

// What is made: from the arguments that `options` are in the boxed call.
struct Made {
  DType dtype, wide;  // of the result, of what is computed
  TensorOptions steps;

  Made(const Call& call, size_t options) : steps(DType::kFloat64) {
    const bool complex = is_complex(end(call, 0).dtype()) || is_complex(end(call, 1).dtype());
    const Value &given = call.stack[options], &device = call.stack[options + 2];
    dtype = !given.is_none() ? given.dtype()
            : complex        ? to_complex(default_dtype())
                             : default_dtype();
    TD_CHECK(!complex || is_complex(dtype),
             "{}(): inferred dtype {} can't be safely cast to passed dtype {}",
             call.op.schema().name, to_complex(default_dtype()), dtype);
    wide = is_complex(dtype) ? DType::kComplex128 : DType::kFloat64;
    steps.device = device.is_none() ? Device() : device.device();
  }
};

// The i-th end as a column [B, 1], or [1, 1] where all samples share it; integers lose the
// fraction.
Tensor column(const Call& call, size_t i, const Made& made, bool truncate) {
  const Tensor given = end(call, i);
  Tensor one = op::reshape(given, {given.numel(), 1});
  if (truncate) one = to(one, made.dtype);
  return op::to_device(to(one, made.wide), made.steps.device.value(), false);
}

// n evenly spaced numbers, from both ends, as impl::linspace has them.
Tensor spaced(const Tensor& first, const Tensor& last, int64_t n, const TensorOptions& options) {
  const Scalar one(int64_t{1});
  const Tensor i = op::arange(Scalar(n), options);
  if (n <= 1) return op::add(first, op::mul(i, number(0)), one);
  const Tensor step = op::div(op::sub(last, first, one), number(static_cast<double>(n - 1)));
  const Tensor up = op::add(first, op::mul(step, i), one);
  const Tensor left = op::sub(number(static_cast<double>(n - 1)), i, one);
  const Tensor down = op::sub(last, op::mul(step, left), one);
  return op::where(op::lt(i, number(static_cast<double>(n / 2))), up, down);
}

void space(Call& call, std::optional<double> base, size_t options) {
  const Made made(call, options);
  const int64_t n = call.stack[2].integer();
  Tensor result;
  {
    const Outside outside(call.level);
    const bool truncate = is_integral(made.dtype) && !(base && n == 1);
    result =
        spaced(column(call, 0, made, truncate), column(call, 1, made, truncate), n, made.steps);
    if (base) result = op::pow(number(*base), result);
    result = to(result, made.dtype);
  }
  call.give(result);
}

}  // namespace

// (start, end, steps, options)
void linspace_tensor(Call& call) { space(call, std::nullopt, 3); }
void linspace_end_tensor(Call& call) { space(call, std::nullopt, 3); }
// (start, end, steps, base, options)
void logspace_tensor(Call& call) { space(call, call.stack[3].real(), 4); }
void logspace_end_tensor(Call& call) { space(call, call.stack[3].real(), 4); }

}  // namespace taeda::batching
