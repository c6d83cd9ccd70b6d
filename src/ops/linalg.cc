// Products of tensors built from mm, bmm, mv and dot: the hand-written bodies behind
// ops/linalg.yaml.
#include <algorithm>
#include <numeric>

#include "core/layout.h"
#include "kernels/cpu/gemm/matmul.h"
#include "op/_cdist_forward.h"
#include "op/_matrix_times_batch.h"
#include "op/_unsafe_view.h"
#include "op/add.h"
#include "op/addbmm.h"
#include "op/bmm.h"
#include "op/clamp_min.h"
#include "op/clone.h"
#include "op/conj.h"
#include "op/contiguous.h"
#include "op/copy_.h"
#include "op/dot.h"
#include "op/expand.h"
#include "op/eye.h"
#include "op/linalg_inv.h"
#include "op/matmul.h"
#include "op/matrix_power.h"
#include "op/mm.h"
#include "op/mul.h"
#include "op/mv.h"
#include "op/permute.h"
#include "op/reshape.h"
#include "op/resize_.h"
#include "op/sqrt.h"
#include "op/squeeze.h"
#include "op/sub.h"
#include "op/sum.h"
#include "op/transpose.h"
#include "op/unsqueeze.h"
#include "ops/allocate.h"
#include "ops/autocast.h"
#include "ops/contract.h"
#include "ops/dispatch.h"
#include "ops/linalg_rules.h"
#include "ops/rules.h"

namespace taeda {

namespace rules {

bool expands_to(IntSpan from, IntSpan to) {
  if (from.size() > to.size()) return false;
  const size_t skip = to.size() - from.size();
  for (size_t i = 0; i < from.size(); i++) {
    if (from[i] != to[i + skip] && from[i] != 1) return false;
  }
  return true;
}

bool all_zero(IntSpan values) {
  return std::ranges::all_of(values, [](int64_t value) { return value == 0; });
}

int64_t product(IntSpan values) {
  return std::accumulate(values.begin(), values.end(), int64_t{1}, std::multiplies<>());
}

Scalar conj(const Scalar& value) {
  return value.is_complex() ? Scalar(std::conj(value.to_complex())) : value;
}

bool is_factor(const Scalar& factor, DType dtype, std::string_view name) {
  TD_CHECK(!factor.is_bool() || dtype == DType::kBool,
           "Boolean {} only supported for Boolean results.", name);
  TD_CHECK(factor.is_integral() || is_inexact(dtype),
           "For integral input tensors, argument {} must not be a floating point number.", name);
  return true;
}

}  // namespace rules

namespace {

DimVector joined(IntSpan a, IntSpan b) {
  DimVector out(a);
  for (const int64_t v : b) out.push_back(v);
  return out;
}

// The tensor's leading dimensions broadcast to `batch` and joined into one; without copying where
// it only repeats.
Tensor as_batch(const Tensor& t, IntSpan batch) {
  const int64_t count = rules::product(batch), n = t.dim();
  const IntSpan own = t.sizes().slice(0, static_cast<size_t>(n - 2));
  const DimVector matrices{count, t.size(-2), t.size(-1)};
  if (rules::product(own) == 1) {
    return op::expand(op::reshape(t, DimVector{1, t.size(-2), t.size(-1)}), matrices, false);
  }
  return op::reshape(
      op::expand(t, joined(batch, t.sizes().slice(static_cast<size_t>(n - 2), 2)), false),
      matrices);
}

Tensor batched_matmul(const Tensor& a, const Tensor& b) {
  const size_t na = static_cast<size_t>(a.dim() - 2), nb = static_cast<size_t>(b.dim() - 2);
  const DimVector batch = broadcast_shapes(a.sizes().slice(0, na), b.sizes().slice(0, nb));
  const Tensor product = op::bmm(as_batch(a, batch), as_batch(b, batch));
  return op::_unsafe_view(product, joined(batch, DimVector{a.size(-2), b.size(-1)}));
}

// (..., n, m) times a matrix (m, p): all rows in one product.
Tensor rows_times_matrix(const Tensor& a, const Tensor& b) {
  const IntSpan leading = a.sizes().slice(0, static_cast<size_t>(a.dim() - 1));
  const Tensor product = op::mm(op::reshape(a, DimVector{rules::product(leading), a.size(-1)}), b);
  return op::_unsafe_view(product, joined(leading, DimVector{b.size(1)}));
}

}  // namespace

namespace impl {

Tensor matmul(const Tensor& self, const Tensor& other) {
  const int64_t a = self.dim(), b = other.dim();
  TD_CHECK(a > 0 && b > 0,
           "both arguments to matmul need to be at least 1D, but they are {}D and {}D", a, b);
  if (a == 2 && b == 2) return op::mm(self, other);
  if (a == 1 && b == 1) return op::dot(self, other);
  if (a == 2 && b == 1) return op::mv(self, other);
  if (a == 1) {  // a row, which is dropped again
    const Tensor product = op::matmul(op::unsqueeze(self, 0), other);
    DimVector sizes(product.sizes().begin(), product.sizes().end() - 2);
    sizes.push_back(product.size(-1));
    return op::_unsafe_view(product, sizes);
  }
  if (b == 1) {
    const IntSpan leading = self.sizes().slice(0, static_cast<size_t>(a - 1));
    return op::_unsafe_view(
        op::mv(op::reshape(self, DimVector{rules::product(leading), self.size(-1)}), other),
        leading);
  }
  if (b == 2) return rows_times_matrix(self, other);
  return a == 2 ? op::_matrix_times_batch(self, other) : batched_matmul(self, other);
}

namespace {

// A matrix (n, m) times narrow matrices (m, p) is one product for all of them: many would read the
// left matrix as often, and cost more than copying the narrow ones.
bool is_narrow(int64_t n, int64_t m, int64_t p) { return p <= 64 && 2 * p <= std::min(n, m); }

// (..., n, p) as rows (... p, n)
Tensor columns_of(const Tensor& batch) {
  const int64_t n = batch.size(-2);
  return op::reshape(op::transpose(batch, -2, -1), {n == 0 ? 0 : batch.numel() / n, n});
}

}  // namespace

Tensor _matrix_times_batch(const Tensor& self, const Tensor& other) {
  const bool narrow = is_narrow(self.size(0), self.size(1), other.size(-1));
  const Tensor product =
      narrow
          ? op::transpose(
                rows_times_matrix(op::transpose(other, -2, -1), op::transpose(self, 0, 1)), -2, -1)
          : batched_matmul(self, other);
  // Not a view: what it would look into is nobody's.
  return alias_tensor(product, product.sizes(), product.strides(), product.storage_offset());
}

std::tuple<Tensor, Tensor> _matrix_times_batch_backward(const Tensor& gy, const Tensor& self,
                                                        const Tensor& other, bool of_self,
                                                        bool of_other) {
  const int64_t n = self.size(0), m = self.size(1), p = gy.size(-1);
  const bool narrow = is_narrow(n, m, p);
  // Of matrices that are not narrow, a product for each may be smaller than copies of both.
  const bool summed = !narrow && n * m <= p * (n + m);
  const Tensor columns = narrow || (of_self && !summed) ? columns_of(gy) : Tensor();
  Tensor gs, go;
  if (of_self && summed) {
    const Tensor products = batched_matmul(gy, op::conj(op::transpose(other, -2, -1)));
    gs =
        op::sum(op::reshape(products,
                            {rules::product(products.sizes()) / std::max<int64_t>(1, n * m), n, m}),
                DimVector{0}, false, std::nullopt);
  } else if (of_self) {
    gs = op::mm(op::transpose(columns, 0, 1), op::conj(columns_of(other)));
  }
  if (of_other && narrow) {
    DimVector sizes(other.sizes());
    std::swap(sizes[sizes.size() - 2], sizes[sizes.size() - 1]);
    go = op::transpose(op::reshape(op::mm(columns, op::conj(self)), sizes), -2, -1);
  } else if (of_other) {
    go = op::matmul(op::conj(op::transpose(self, 0, 1)), gy);
  }
  return {gs, go};
}

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  const IntSpan leading = input.sizes().slice(0, static_cast<size_t>(input.dim() - 1));
  if (weight.dim() == 1) return op::matmul(input, weight);
  if (bias.defined() && bias.dim() > 1)
    return op::add(linear(input, weight, Tensor()), bias, Scalar(int64_t{1}));
  const int64_t rows = rules::product(leading), features = weight.size(0);
  Tensor result = empty_tensor(joined(leading, DimVector{features}), input.dtype(), input.device());
  const Tensor x = input.dim() == 2 ? input : op::reshape(input, DimVector{rows, input.size(-1)});
  const DimVector sizes{rows, features}, strides{features, 1};
  const View out{result.data_ptr(), result.dtype(), sizes,          strides,
                 result.numel(),    true,           result.device()};
  kernels::linear_rows(out, view_of(x), view_of(weight), view_of(bias));
  return result;
}

Tensor tensordot(const Tensor& self, const Tensor& other, IntSpan dims_self, IntSpan dims_other) {
  TD_CHECK(dims_self.size() == dims_other.size(),
           "both dimension lists should have same length, got {} and {}", dims_self, dims_other);
  // Dimensions that stay, then those that are summed; and the other way round.
  const auto split = [](const Tensor& t, IntSpan dims, DimVector& kept, DimVector& summed,
                        DimVector& sizes) {
    summed = contract::wrap_dims("tensordot", dims, t.dim());
    for (int64_t d = 0; d < t.dim(); d++) {
      if (std::find(summed.begin(), summed.end(), d) != summed.end()) continue;
      kept.push_back(d);
      sizes.push_back(t.size(d));
    }
  };
  DimVector kept_a, kept_b, summed_a, summed_b, sizes_a, sizes_b;
  split(self, dims_self, kept_a, summed_a, sizes_a);
  split(other, dims_other, kept_b, summed_b, sizes_b);
  Tensor a = self, b = other;
  int64_t inner = 1;
  for (size_t i = 0; i < summed_a.size(); i++) {
    const int64_t da = summed_a[i], db = summed_b[i], size_a = self.size(da),
                  size_b = other.size(db);
    if (size_b == 1 && size_a != 1)
      a = op::sum(a, DimVector{da}, true, self.dtype());
    else if (size_a == 1 && size_b != 1)
      b = op::sum(b, DimVector{db}, true, other.dtype());
    else
      TD_CHECK(size_a == size_b,
               "contracted dimensions need to match, but first has size {} in dim {} and second "
               "has size {} in dim {}",
               size_a, da, size_b, db);
    inner *= size_a == 1 || size_b == 1 ? 1 : size_a;
  }
  const Tensor rows = op::reshape(op::permute(a, joined(kept_a, summed_a)),
                                  DimVector{rules::product(sizes_a), inner});
  const Tensor cols = op::reshape(op::permute(b, joined(summed_b, kept_b)),
                                  DimVector{inner, rules::product(sizes_b)});
  return op::reshape(op::mm(rows, cols), joined(sizes_a, sizes_b));
}

Tensor kron(const Tensor& self, const Tensor& other) {
  const int64_t n = std::max(self.dim(), other.dim());
  DimVector a, b, out;
  for (int64_t d = 0; d < n; d++) {
    const int64_t da = d - (n - self.dim()), db = d - (n - other.dim());
    const int64_t x = da < 0 ? 1 : self.size(da), y = db < 0 ? 1 : other.size(db);
    a.push_back(x), a.push_back(1), b.push_back(1), b.push_back(y), out.push_back(x * y);
  }
  const Tensor product = op::mul(op::reshape(self, a), op::reshape(other, b));
  return op::_unsafe_view(op::contiguous(product, MemoryFormat::kContiguous), out);
}

namespace {

// Multiplies matrices[first..last] as the table of best cuts says.
Tensor multiply_chain(TensorSpan matrices, const std::vector<std::vector<size_t>>& cuts,
                      size_t first, size_t last) {
  if (first == last) return matrices[first];
  const size_t cut = cuts[first][last];
  return op::mm(multiply_chain(matrices, cuts, first, cut),
                multiply_chain(matrices, cuts, cut + 1, last));
}

// The order of a chain of products with the fewest multiplications (Cormen et al., Introduction to
// Algorithms, 15.2).
Tensor best_chain(TensorSpan matrices) {
  const size_t n = matrices.size();
  std::vector<std::vector<double>> cost(n, std::vector<double>(n, 0));
  std::vector<std::vector<size_t>> cuts(n, std::vector<size_t>(n, 0));
  for (size_t length = 1; length < n; length++) {
    for (size_t i = 0; i + length < n; i++) {
      const size_t j = i + length;
      cost[i][j] = std::numeric_limits<double>::infinity();
      for (size_t k = i; k < j; k++) {
        const double here = cost[i][k] + cost[k + 1][j] +
                            static_cast<double>(matrices[i].size(0)) *
                                static_cast<double>(matrices[k].size(1)) *
                                static_cast<double>(matrices[j].size(1));
        if (here < cost[i][j]) cost[i][j] = here, cuts[i][j] = k;
      }
    }
  }
  return multiply_chain(matrices, cuts, 0, n - 1);
}

void check_chain(std::string_view name, TensorSpan matrices) {
  for (size_t i = 0; i < matrices.size(); i++) {
    TD_CHECK(matrices[i].dim() == 2, "{}(): tensor {} must be 2D but got {}D", name,
             static_cast<int64_t>(i), matrices[i].dim());
    if (i == 0) continue;
    TD_CHECK(matrices[i - 1].size(1) == matrices[i].size(0),
             "{}(): tensors {} and {} with shapes {} and {} cannot be multiplied", name,
             static_cast<int64_t>(i - 1), static_cast<int64_t>(i), matrices[i - 1].sizes(),
             matrices[i].sizes());
  }
}

}  // namespace

Tensor chain_matmul(TensorSpan matrices) {
  TD_CHECK(!matrices.empty(), "chain_matmul(): Expected one or more matrices");
  check_chain("chain_matmul", matrices);
  return best_chain(matrices);
}

Tensor linalg_multi_dot(TensorSpan tensors) {
  TD_CHECK(tensors.size() >= 2, "multi_dot(): expected at least 2 tensors but got {}",
           static_cast<int64_t>(tensors.size()));
  TensorList matrices(tensors.begin(), tensors.end());
  const bool row = matrices.front().dim() == 1, column = matrices.back().dim() == 1;
  if (row) matrices.front() = op::unsqueeze(matrices.front(), 0);
  if (column) matrices.back() = op::unsqueeze(matrices.back(), 1);
  check_chain("multi_dot", matrices);
  Tensor result = best_chain(matrices);
  if (row) result = op::squeeze_dim(result, DimVector{0});
  if (column) result = op::squeeze_dim(result, DimVector{-1});
  return result;
}

Tensor matrix_power(const Tensor& self, int64_t n) {
  TD_CHECK(n > INT64_MIN, "matrix_power: the exponent {} has no negative", n);
  if (n < 0) return impl::matrix_power(op::linalg_inv(self), -n);
  if (n == 0) {
    TensorOptions options(self.dtype());
    options.device = self.device();
    const Tensor result = op::clone(self, MemoryFormat::kContiguous);  // in self's graph, as zeros
    return op::copy_(result, op::eye(self.size(-1), options), false);
  }
  Tensor base = self, result;
  for (; n > 0; n /= 2) {
    if (n % 2) result = result.defined() ? op::matmul(result, base) : base;
    if (n > 1) base = op::matmul(base, base);
  }
  return result.is_same(self) ? op::clone(self, std::nullopt) : result;
}

Tensor cdist(const Tensor& x1, const Tensor& x2, double p, std::string_view compute_mode) {
  const bool squared_by_product =
      p == 2.0 && (compute_mode == "use_mm_for_euclid_dist" ||
                   (compute_mode == "use_mm_for_euclid_dist_if_necessary" &&
                    (x1.size(-2) > 25 || x2.size(-2) > 25)));
  if (squared_by_product && x1.numel() > 0 && x2.numel() > 0) {
    // |a - b|^2 = |a|^2 - 2 a b + |b|^2, kept off zero, where the root has no derivative.
    const Tensor a2 = op::sum(op::mul(x1, x1), DimVector{-1}, true, std::nullopt);
    const Tensor b2 =
        op::transpose(op::sum(op::mul(x2, x2), DimVector{-1}, true, std::nullopt), -2, -1);
    const Tensor product = op::matmul(x1, op::transpose(x2, -2, -1));
    const Tensor squares = op::sub(op::add(a2, b2, 1), op::mul(product, Tensor(2)), 1);
    return op::sqrt(op::clamp_min(squares, 1e-30));
  }
  const size_t n1 = x1.sizes().size() - 2, n2 = x2.sizes().size() - 2;
  const DimVector batch = broadcast_shapes(x1.sizes().slice(0, n1), x2.sizes().slice(0, n2));
  const auto in_batch = [&](const Tensor& x) {
    const DimVector sizes = joined(batch, DimVector{x.size(-2), x.size(-1)});
    return x.sizes() == IntSpan(sizes) ? x : op::expand(x, sizes, false);
  };
  return op::_cdist_forward(in_batch(x1), in_batch(x2), p, std::nullopt);
}

Tensor addbmm_(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
               const Scalar& alpha) {
  const autocast::Pause outside;
  const Tensor result = op::addbmm(self, batch1, batch2, beta, alpha);
  if (self.sizes() != result.sizes()) op::resize_(self, result.sizes(), std::nullopt);
  return write_inplace("addbmm_", self, result);
}

}  // namespace impl

}  // namespace taeda
