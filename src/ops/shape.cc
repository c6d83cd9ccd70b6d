// Splitting, joining and repeating: composites of views and copies behind ops/shape.yaml.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/interrupt.h"
#include "base/sliced.h"
#include "core/host_copy.h"
#include "core/layout.h"
#include "device/put_off.h"
#include "kernels/cpu/pointwise/interleave.h"
#include "op/_local_scalar_dense.h"
#include "op/_unsafe_view.h"
#include "op/all.h"
#include "op/atleast_1d.h"
#include "op/atleast_2d.h"
#include "op/atleast_3d.h"
#include "op/cat.h"
#include "op/chunk.h"
#include "op/clone.h"
#include "op/constant_pad_nd.h"
#include "op/contiguous.h"
#include "op/copy_.h"
#include "op/eq.h"
#include "op/expand.h"
#include "op/index.h"
#include "op/meshgrid.h"
#include "op/new_empty.h"
#include "op/new_zeros.h"
#include "op/permute.h"
#include "op/rearranged.h"
#include "op/repeat.h"
#include "op/repeat_backward.h"
#include "op/repeated.h"
#include "op/reshape.h"
#include "op/select.h"
#include "op/slice.h"
#include "op/split.h"
#include "op/split_with_sizes.h"
#include "op/stack.h"
#include "op/sum.h"
#include "op/tensor_split.h"
#include "op/unsqueeze.h"
#include "op/view.h"
#include "ops/allocate.h"
#include "ops/contract.h"
#include "ops/expr.h"
#include "ops/host.h"
#include "ops/rules.h"
#include "ops/view_rules.h"
#include "taeda/values.h"

namespace taeda::impl {

Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  TD_CHECK(length >= 0, "narrow(): length must be non-negative.");
  const int64_t n = self.size(dim);
  TD_CHECK_INDEX(start >= -n && start <= n,
                 "start out of range (expected to be in range of [{}, {}], but got {})", -n, n,
                 start);
  const int64_t at = start < 0 ? start + n : start;
  TD_CHECK(at <= n - length, "start ({}) + length ({}) exceeds dimension size ({}).", at, length,
           n);
  return op::slice(self, dim, at, at + length, 1);
}

static DimVector from_the_front(IntSpan dims, int64_t ndim) {
  DimVector wrapped;
  for (const int64_t dim : dims) wrapped.push_back(wrap_dim(dim, ndim));
  return wrapped;
}

static void check_distinct(IntSpan wrapped, IntSpan given, const char* argument) {
  DimVector sorted(wrapped);
  std::sort(sorted.begin(), sorted.end());
  TD_CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(),
           "movedim: repeated dim in `{}` ({})", argument, given);
}

Tensor movedim(const Tensor& self, IntSpan source, IntSpan destination) {
  TD_CHECK(source.size() == destination.size(),
           "movedim: Invalid source or destination dims: source ({} dims) should contain the same "
           "number of dims as "
           "destination ({} dims)",
           source, destination);
  const DimVector from = from_the_front(source, self.dim());
  const DimVector to = from_the_front(destination, self.dim());
  check_distinct(from, source, "source");
  check_distinct(to, destination, "destination");
  if (self.dim() == 0) return op::permute(self, DimVector{});
  const auto n = static_cast<size_t>(self.dim());
  DimVector order(n, -1);
  for (size_t i = 0; i < from.size(); i++) order[static_cast<size_t>(to[i])] = from[i];
  int64_t next = 0;
  for (size_t i = 0; i < n; i++) {
    if (order[i] >= 0) continue;
    while (std::find(from.begin(), from.end(), next) != from.end()) next++;
    order[i] = next++;
  }
  return op::permute(self, order);
}

Tensor flatten(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  TD_CHECK(start_dim <= end_dim, "flatten() has invalid args: start_dim cannot come after end_dim");
  if (self.dim() == 0) return op::reshape(self, IntSpan({int64_t{1}}));
  if (start_dim == end_dim) return self;
  DimVector shape;
  int64_t joined = 1;
  for (int64_t i = 0; i < self.dim(); i++) {
    const int64_t n = self.sizes()[static_cast<size_t>(i)];
    if (i < start_dim || i > end_dim) {
      shape.push_back(n);
    } else {
      joined *= n;
      if (i == end_dim) shape.push_back(joined);
    }
  }
  return op::reshape(self, shape);
}

namespace {
DimVector unflattened(IntSpan sizes, int64_t size, int64_t dim) {
  try {
    return rules::infer_size(sizes, size);
  } catch (const Error& error) {
    if (std::string_view(error.what()).find("is invalid for") == std::string_view::npos) throw;
    fail(ErrorKind::kRuntime,
         "unflatten: Provided sizes {} don't multiply up to the size of dim {} ({}) in the input "
         "tensor\nFix: the sizes multiply to {}; one of them may be -1, for what is left",
         sizes, dim, size, size);
  }
}
}  // namespace

Tensor unflatten(const Tensor& self, int64_t dim, IntSpan sizes) {
  TD_CHECK(!sizes.empty(), "unflatten: sizes must be non-empty");
  const DimVector inner = unflattened(sizes, self.size(dim), dim);
  DimVector shape;
  for (int64_t i = 0; i < self.dim(); i++) {
    if (i != dim)
      shape.push_back(self.sizes()[static_cast<size_t>(i)]);
    else
      for (int64_t n : inner) shape.push_back(n);
  }
  return op::view(self, shape);
}

namespace {
// Empty chunks cost memory too: no machine has enough for more of them.
constexpr int64_t kMaxEmptyParts = int64_t{1} << 26;

void check_parts(std::string_view op, int64_t size, int64_t parts) {
  TD_CHECK(parts <= std::max(size, kMaxEmptyParts), "{}: a dimension of size {} in {} parts", op,
           size, parts);
}

constexpr int64_t kViewWork = 16;  // what a view takes, in elements

// The chunks of a tensor, which may be millions.
class Parts {
 public:
  Parts() = default;
  explicit Parts(int64_t count) { list_.reserve(static_cast<size_t>(count)); }
  void add(Tensor view) {
    list_.push_back(std::move(view));
    looks_.after(kViewWork);
  }
  TensorList take() { return std::move(list_); }

 private:
  TensorList list_;
  Looks looks_;
};
}  // namespace

TensorList split(const Tensor& self, int64_t split_size, int64_t dim) {
  TD_CHECK(split_size >= 0, "split expects split_size be non-negative, but got split_size={}",
           split_size);
  const int64_t n = self.size(dim);
  TD_CHECK(split_size > 0 || n == 0,
           "split_size can only be 0 if dimension size is 0, but got dimension size of {}", n);
  Parts parts;
  if (n == 0) return {op::slice(self, dim, 0, 0, 1)};
  for (int64_t at = 0; at < n; at += std::min(split_size, n - at))
    parts.add(op::slice(self, dim, at, at + std::min(split_size, n - at), 1));
  return parts.take();
}

TensorList split_sizes(const Tensor& self, IntSpan sizes, int64_t dim) {
  TD_CHECK(self.dim() > 0, "split_with_sizes expects at least a 1-dimensional tensor");
  int64_t total = 0;
  for (int64_t s : sizes) {
    TD_CHECK(s >= 0,
             "split_with_sizes expects split_sizes have only non-negative entries, but got "
             "split_sizes={}",
             sizes);
    total = checked_add(total, s, "split sizes");
  }
  TD_CHECK(total == self.size(dim),
           "split_with_sizes expects split_sizes to sum exactly to {} (input tensor's size at "
           "dimension {}), but got "
           "split_sizes={}",
           self.size(dim), dim, sizes);
  Parts parts;
  int64_t at = 0;
  for (int64_t s : sizes) {
    parts.add(op::slice(self, dim, at, at + s, 1));
    at += s;
  }
  return parts.take();
}

TensorList chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  TD_CHECK(chunks > 0, "chunk expects `chunks` to be greater than 0, got: {}", chunks);
  const int64_t n = self.size(dim);
  if (n == 0) check_parts("chunk", n, chunks);
  const int64_t size = n / chunks + (n % chunks != 0);
  if (size == 0) return op::split_with_sizes(self, DimVector(static_cast<size_t>(chunks), 0), dim);
  return op::split(self, size, dim);
}

// Parts that share memory with `self` but are no views of it: each counts its writes for itself,
// and what is written into one is its own history. A dual tensor's stay views, of its tangent too.
static TensorList each_by_itself(TensorList parts, const Tensor& self, int64_t dim) {
  int64_t start = 0;
  const bool recorded = thread_modes.grad_enabled && self.requires_grad();
  for (Tensor& part : parts) {
    const int64_t end = start + part.size(dim);
    part = op::slice(self, dim, start, end, 1);
    TensorImpl& impl = *part.impl();
    if (!(impl.keys | thread_modes.included).has(Key::kForward)) {
      impl.view_base = {};
      impl.view_flags = 0;
      if (!recorded) impl.keys = impl.keys - Key::kAutograd;  // which views have without a history
      if (!impl.inference) impl.own_version = make_ref<VersionCounter>();
    }
    start = end;
  }
  return parts;
}

TensorList unsafe_chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  return each_by_itself(op::chunk(self, chunks, dim), self, dim);
}
TensorList unsafe_split(const Tensor& self, int64_t split_size, int64_t dim) {
  return each_by_itself(op::split(self, split_size, dim), self, dim);
}
TensorList unsafe_split_with_sizes(const Tensor& self, IntSpan split_sizes, int64_t dim) {
  return each_by_itself(op::split_with_sizes(self, split_sizes, dim), self, dim);
}

TensorList tensor_split(const Tensor& self, int64_t sections, int64_t dim) {
  TD_CHECK(sections > 0, "number of sections must be larger than 0, got {}", sections);
  check_parts("tensor_split", self.size(dim), sections);
  const int64_t n = self.size(dim), small = n / sections, larger = n % sections;
  Parts parts;
  int64_t at = 0;
  for (int64_t i = 0; i < sections; i++) {
    const int64_t length = small + (i < larger);
    parts.add(op::slice(self, dim, at, at + length, 1));
    at += length;
  }
  return parts.take();
}

TensorList tensor_split_indices(const Tensor& self, IntSpan indices, int64_t dim) {
  Parts parts;
  int64_t at = 0;
  for (int64_t end : indices) {
    parts.add(op::slice(self, dim, at, end, 1));
    at = end;
  }
  parts.add(op::slice(self, dim, at, std::nullopt, 1));
  return parts.take();
}

TensorList tensor_split_tensor(const Tensor& self, const Tensor& parts, int64_t dim) {
  if (parts.dim() == 0) return op::tensor_split(self, parts.item_scalar().to_int(), dim);
  check_has_elements("tensor_split", parts);
  const HostElements<int64_t> given(parts);
  const DimVector indices(given.begin(), given.end());  // others may write it
  return op::tensor_split_indices(self, indices, dim);
}

TensorList unbind(const Tensor& self, int64_t dim) {
  TD_CHECK_INDEX(self.dim() > 0, "Dimension specified as 0 but tensor has no dimensions");
  const int64_t n = self.size(dim);
  Parts parts(n);
  for (int64_t i = 0; i < n; i++) parts.add(op::select(self, dim, i));
  return parts.take();
}

namespace {
// PyTorch skips 1-d empty tensors in cat, whatever the others' shape.
bool skipped(const Tensor& t) { return t.dim() == 1 && t.numel() == 0; }

constexpr int64_t kSmallJoin = 16384;  // bytes up to which joining is a few calls of memcpy

// cat and stack of small row-major tensors of out's dtype: a row of the result (what follows an
// index into the dimensions before `dim`) is a row of each in turn. Returns whether it applied.
bool join_small(const Tensor& out, TensorSpan tensors, int64_t dim) {
  const int64_t item = item_size(out.dtype());
  if (!out.device().is_cpu() || !out.is_contiguous() || out.numel() * item > kSmallJoin)
    return false;
  for (const Tensor& t : tensors) {
    if (!t.is_contiguous() || t.dtype() != out.dtype()) return false;
  }
  int64_t rows = 1;
  for (int64_t d = 0; d < dim; d++) rows *= out.sizes()[static_cast<size_t>(d)];
  if (out.numel() == 0) return true;
  char* to = static_cast<char*>(out.data_ptr());
  for (int64_t r = 0; r < rows; r++) {
    for (const Tensor& t : tensors) {
      const int64_t bytes = t.numel() / rows * item;
      if (bytes > 0)
        std::memcpy(to, static_cast<const char*>(t.data_ptr()) + r * bytes,
                    static_cast<size_t>(bytes));
      to += bytes;
    }
  }
  return true;
}

// stack along the last dimension of a few row-major tensors of out's dtype. Returns whether it
// applied.
bool join_last(const Tensor& out, TensorSpan tensors, int64_t dim) {
  constexpr size_t kFew = 16;
  if (!out.device().is_cpu() || dim + 1 < out.dim() || tensors.size() > kFew) return false;
  const void* parts[kFew];
  for (size_t i = 0; i < tensors.size(); i++) {
    if (!tensors[i].is_contiguous() || tensors[i].dtype() != out.dtype()) return false;
    parts[i] = tensors[i].data_ptr();
  }
  cpu::interleave(out.data_ptr(), parts, static_cast<int64_t>(tensors.size()),
                  item_size(out.dtype()), tensors[0].numel());
  return true;
}

// Copies into `out`, on a CUDA device together where they can be.
template <class Copies>
void as_few_launches(const Tensor& out, Copies&& copies) {
  if (out.device().type == DeviceType::kCUDA)
    cuda::with_list(copies);
  else
    copies();
}

// Before parts of rows are written: the first would touch every page of the result.
void touch_rows(const Tensor& out, int64_t dim) {
  constexpr int64_t kLarge = int64_t{8} << 20;
  const int64_t bytes = out.numel() * item_size(out.dtype());
  if (dim > 0 && bytes >= kLarge && out.device().is_cpu()) touch_pages(out.data_ptr(), bytes);
}
}  // namespace

// Whether all tensors lie like channels-last ones of their rank, gaps aside: what joins them does
// then, too.
static bool all_channels_last(TensorSpan tensors) {
  const int64_t rank = tensors[0].dim();
  return std::all_of(tensors.begin(), tensors.end(), [&](const Tensor& t) {
    return t.dim() == rank && resembles_channels_last(t.sizes(), t.strides());
  });
}

namespace {

void check_chunk_cat(TensorSpan tensors, int64_t dim, int64_t num_chunks) {
  TD_CHECK(num_chunks >= 1, "_chunk_cat expects positive num_chunks");
  TD_CHECK(!tensors.empty(), "_chunk_cat expects a non-empty input tensor list");
  const Tensor& first = tensors[0];
  for (const Tensor& t : tensors) {
    TD_CHECK(t.numel() > 0, "_chunk_cat expects non-empty tensor");
    TD_CHECK(t.dtype() == first.dtype(),
             "_chunk_cat expects all input tensors with the same dtype");
    TD_CHECK(t.dim() == first.dim() || dim >= 0,
             "_chunk_cat expects non-negative dim when input tensors have different ndims");
  }
  contract::wrap_dim(dim, first.dim());
  for (const Tensor& t : tensors)
    TD_CHECK(dim < t.dim(), "_chunk_cat expects dim < ndim for all input tensors");
  dim = contract::wrap_dim(dim, first.dim());
  for (const Tensor& t : tensors)
    TD_CHECK(t.sizes().slice(0, dim) == first.sizes().slice(0, dim),
             "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors");
}

}  // namespace

Tensor _chunk_cat(TensorSpan tensors, int64_t dim, int64_t num_chunks) {
  check_chunk_cat(tensors, dim, num_chunks);
  dim = contract::wrap_dim(dim, tensors[0].dim());
  TensorList parts;
  for (const Tensor& t : tensors) {
    const int64_t size = t.size(dim), missing = (num_chunks - size % num_chunks) % num_chunks;
    DimVector pad(2 * (t.dim() - dim), 0);
    pad.back() = missing;
    const Tensor whole = missing ? op::constant_pad_nd(t, pad, Scalar(int64_t{0})) : t;
    DimVector sizes(t.sizes().slice(0, dim));
    sizes.push_back(num_chunks);
    sizes.push_back(-1);
    parts.push_back(op::reshape(whole, sizes));
  }
  return op::cat(parts, dim + 1);
}

Tensor cat(TensorSpan tensors, int64_t dim) {
  TD_CHECK_VALUE(!tensors.empty(), "torch.cat(): expected a non-empty list of Tensors");
  const Tensor* first = nullptr;
  rules::Promotion promotion;
  int64_t total = 0;
  for (size_t i = 0; i < tensors.size(); i++) {
    const Tensor& t = tensors[i];
    TD_CHECK(t.dim() > 0, "zero-dimensional tensor (at position {}) cannot be concatenated", i);
    promotion.add(t);
    if (skipped(t)) continue;
    if (!first) {
      first = &t;
      dim = contract::wrap_dim(dim, t.dim());
    }
    TD_CHECK(t.dim() == first->dim(), "Tensors must have same number of dimensions: got {} and {}",
             first->dim(), t.dim());
    for (int64_t d = 0; d < t.dim(); d++) {
      const auto k = static_cast<size_t>(d);
      TD_CHECK(
          d == dim || t.sizes()[k] == first->sizes()[k],
          "Sizes of tensors must match except in dimension {}. Expected size {} but got size "
          "{} for tensor number {} "
          "in the list.\nFix: all but the dimension that is joined must agree: another dim, or "
          "pad or cut them first",
          dim, first->sizes()[k], t.sizes()[k], i);
    }
    total = checked_add(total, t.size(dim), "cat");
  }
  if (!first) return empty_tensor({0}, promotion.result(), tensors[0].device());
  DimVector sizes(first->sizes());
  sizes[static_cast<size_t>(dim)] = total;
  Tensor out;
  if (all_channels_last(tensors))
    out = empty_strided_tensor(sizes, channels_last_strides(sizes), promotion.result(),
                               first->device());
  else
    out = empty_tensor(sizes, promotion.result(), first->device());
  if (join_small(out, tensors, dim)) return out;
  touch_rows(out, dim);
  int64_t at = 0;
  Looks looks;
  as_few_launches(out, [&] {
    for (const Tensor& t : tensors) {
      if (skipped(t)) continue;
      impl::copy_(impl::slice(out, dim, at, at + t.size(dim), 1), t, false);
      at += t.size(dim);
      looks.after(kViewWork + t.numel());
    }
  });
  return out;
}

TensorList cat_backward(const Tensor& gy, TensorSpan tensors, int64_t dim) {
  if (dim < 0) dim += gy.dim();
  Parts parts;
  int64_t at = 0;
  for (const Tensor& t : tensors) {
    if (skipped(t)) {
      parts.add(op::new_zeros(gy, IntSpan({int64_t{0}}), {}));
      continue;
    }
    parts.add(op::slice(gy, dim, at, at + t.size(dim), 1));
    at += t.size(dim);
  }
  return parts.take();
}

Tensor stack(TensorSpan tensors, int64_t dim) {
  TD_CHECK(!tensors.empty(), "stack expects a non-empty TensorList");
  const Tensor& first = tensors[0];
  dim = contract::wrap_dim(dim, first.dim() + 1);
  rules::Promotion promotion;
  for (size_t i = 0; i < tensors.size(); i++) {
    TD_CHECK(
        tensors[i].sizes() == first.sizes(),
        "stack expects each tensor to be equal size, but got {} at entry 0 and {} at entry "
        "{}\nFix: pad or cut them to one size (nn.utils.rnn.pad_sequence; a collate_fn does it for "
        "a DataLoader), or keep a list",
        first.sizes(), tensors[i].sizes(), i);
    promotion.add(tensors[i]);
  }
  DimVector sizes(first.sizes());
  sizes.insert(static_cast<size_t>(dim), static_cast<int64_t>(tensors.size()));
  Tensor out;
  if (dim < first.dim() && all_channels_last(tensors)) {  // laid out as cat's result
    const auto d = static_cast<size_t>(dim);
    DimVector joined(first.sizes());
    joined[d] = checked_mul(joined[d], sizes[d], "stack");
    DimVector strides = channels_last_strides(joined);
    strides.insert(d, strides[d] * first.sizes()[d]);
    out = empty_strided_tensor(sizes, strides, promotion.result(), first.device());
  } else {
    out = empty_tensor(sizes, promotion.result(), first.device());
  }
  if (join_small(out, tensors, dim) || join_last(out, tensors, dim)) return out;
  touch_rows(out, dim);
  Looks looks;
  as_few_launches(out, [&] {
    for (size_t i = 0; i < tensors.size(); i++) {
      impl::copy_(impl::select(out, dim, static_cast<int64_t>(i)), tensors[i], false);
      looks.after(kViewWork + tensors[i].numel());
    }
  });
  return out;
}

namespace {
template <class F>
TensorList mapped(TensorSpan tensors, const F& f) {
  TensorList out;
  out.reserve(tensors.size());
  for (const Tensor& t : tensors) out.push_back(f(t));
  return out;
}

// n over r: the ways of choosing r of n; RuntimeError where they are more than 2^63.
int64_t chosen(int64_t n, int64_t r) {
  if (r > n) return 0;
  const int64_t least = std::min(r, n - r);
  int64_t count = 1;
  for (int64_t i = 1; i <= least; i++)
    count = checked_mul(count, n - least + i, "combinations: the number of rows") / i;
  return count;
}

}  // namespace

Tensor hstack(TensorSpan tensors) {
  TD_CHECK(!tensors.empty(), "hstack expects a non-empty TensorList");
  const TensorList rows = mapped(tensors, [](const Tensor& t) { return op::atleast_1d(t); });
  return op::cat(rows, rows[0].dim() == 1 ? 0 : 1);
}
Tensor column_stack(TensorSpan tensors) {
  TD_CHECK(!tensors.empty(), "column_stack expects a non-empty TensorList");
  const auto column = [](const Tensor& t) {
    return t.dim() > 1 ? t : op::reshape(t, DimVector{t.numel(), 1});
  };
  return op::cat(mapped(tensors, column), 1);
}
Tensor vstack(TensorSpan tensors) {
  TD_CHECK(!tensors.empty(), "vstack expects a non-empty TensorList");
  return op::cat(mapped(tensors, [](const Tensor& t) { return op::atleast_2d(t); }), 0);
}
Tensor dstack(TensorSpan tensors) {
  TD_CHECK(!tensors.empty(), "dstack expects a non-empty TensorList");
  return op::cat(mapped(tensors, [](const Tensor& t) { return op::atleast_3d(t); }), 2);
}

Tensor cartesian_prod(TensorSpan tensors) {
  for (const Tensor& t : tensors)
    TD_CHECK(t.dim() == 1, "Expect a 1D vector, but got shape {}", t.sizes());
  if (tensors.size() == 1) return tensors[0];
  const auto flat = [](const Tensor& t) { return op::reshape(t, DimVector{-1}); };
  return op::stack(mapped(op::meshgrid(tensors, "ij"), flat), 1);
}

Tensor combinations(const Tensor& self, int64_t r, bool with_replacement) {
  const int64_t n = self.size(0), step = with_replacement ? 0 : 1;
  if (r == 0) return op::new_empty(self, DimVector{0}, {});
  // PyTorch counts all rows of a grid.
  TD_CHECK(static_cast<double>(r) * std::log2(static_cast<double>(std::max<int64_t>(n, 1))) < 63,
           "combinations: {} elements to the power of {} are more than 2^63", n, r);
  const int64_t count = chosen(checked_add(n, with_replacement ? r - 1 : 0, "combinations"), r);
  const Tensor index = empty_tensor({count, r}, DType::kInt64, DeviceType::kCPU);
  int64_t* row = index.data<int64_t>();
  for (int64_t i = 0; count > 0 && i < r; i++) row[i] = i * step;
  // A row differs from the one before it from the last place on that can grow.
  const auto largest = [&](int64_t i) { return n - 1 - (r - 1 - i) * step; };
  Looks looks;
  for (int64_t k = 1; k < count; k++, row += r) {
    looks.after(r);
    int64_t i = r - 1;
    while (row[i] == largest(i)) i--;
    std::copy_n(row, i, row + r);
    for (int64_t next = row[i] + 1; i < r; i++, next += step) row[r + i] = next;
  }
  return op::index(self, TensorList{index});
}

Tensor repeated(const Tensor& self, IntSpan repeats) {
  TD_CHECK(
      static_cast<int64_t>(repeats.size()) >= self.dim(),
      "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
  const size_t lead = repeats.size() - self.sizes().size();
  DimVector inner, wide, shape;
  for (size_t i = 0; i < repeats.size(); i++) {
    const int64_t n = i < lead ? 1 : self.sizes()[i - lead];
    TD_CHECK(repeats[i] >= 0, "Trying to create tensor with negative dimension {}: {}", repeats[i],
             repeats);
    for (int64_t v : {int64_t{1}, n}) inner.push_back(v);
    for (int64_t v : {repeats[i], n}) wide.push_back(v);
    shape.push_back(checked_mul(repeats[i], n, "repeat"));
  }
  return op::_unsafe_view(
      op::clone(op::expand(op::reshape(self, inner), wide, false), MemoryFormat::kContiguous),
      shape);
}

Tensor rearranged(const Tensor& self, IntSpan split, IntSpan order, IntSpan sizes) {
  const Tensor permuted = op::permute(op::reshape(self, split), order);
  const Tensor result = op::_unsafe_view(op::clone(permuted, MemoryFormat::kContiguous), sizes);
  const bool channels_last = sizes.size() == 4 && self.dim() == 4 && !self.is_contiguous() &&
                             is_channels_last_layout(self.sizes(), self.strides());
  return channels_last ? op::contiguous(result, MemoryFormat::kChannelsLast) : result;
}

Tensor repeat_backward(const Tensor& gy, IntSpan repeats, IntSpan sizes) {
  TD_CHECK(repeats.size() >= sizes.size(), "repeat_backward: {} counts for {} dimensions",
           static_cast<int64_t>(repeats.size()), static_cast<int64_t>(sizes.size()));
  const size_t lead = repeats.size() - sizes.size();
  DimVector wide, copies;
  for (size_t i = 0; i < repeats.size(); i++) {
    copies.push_back(static_cast<int64_t>(wide.size()));
    wide.push_back(repeats[i]);
    wide.push_back(i < lead ? 1 : sizes[i - lead]);
  }
  if (copies.empty()) return gy;
  return op::reshape(op::sum(op::reshape(gy, wide), OptInts(copies), false, std::nullopt), sizes);
}

Tensor tile(const Tensor& self, IntSpan dims) {
  DimVector repeats;
  for (int64_t i = static_cast<int64_t>(dims.size()); i < self.dim(); i++) repeats.push_back(1);
  for (int64_t d : dims) repeats.push_back(d);
  return op::repeat(self, repeats);
}

Tensor sum_to_size(const Tensor& self, IntSpan size) {
  // As in PyTorch, a sum to no dimensions is one in any case: integers and bool become int64.
  if (self.sizes() == size && !size.empty()) return self;
  TD_CHECK(is_expandable_to(size, self.sizes()), "size {{}} is not expandable to size {{}}.", size,
           self.sizes());
  const int64_t lead = self.dim() - static_cast<int64_t>(size.size());
  DimVector dims;
  for (int64_t i = 0; i < self.dim(); i++) {
    const auto k = static_cast<size_t>(i);
    if (i < lead || (size[k - static_cast<size_t>(lead)] == 1 && self.sizes()[k] != 1))
      dims.push_back(i);
  }
  Tensor out = dims.empty() && !size.empty()
                   ? self
                   : op::sum(self, OptInts(IntSpan(dims)), true, std::nullopt);
  return lead > 0 ? op::view(out, size) : out;
}

Scalar _local_scalar_dense(const Tensor& self) {
  const ExcludeKeys elements((KeySet(Key::kPython)));
  return self.item_scalar();
}

namespace {
// One store while the library is loaded: core, a layer below, cannot name this function.
const bool known_to_core = (dispatched_item = op::_local_scalar_dense, true);
}  // namespace

bool equal(const Tensor& self, const Tensor& other) {
  if (self.sizes() != other.sizes()) return false;
  const ExcludeKeys no_history(KeySet(Key::kAutograd) | Key::kForward);
  Tensor a = self, b = other;
  for (int64_t dim = 0; dim < a.dim(); dim++) {  // what both repeat is compared once
    if (a.size(dim) < 2 || a.stride(dim) != 0 || b.stride(dim) != 0) continue;
    a = op::slice(a, dim, 0, 1, 1);
    b = op::slice(b, dim, 0, 1, 1);
  }
  return rules::is_true(op::all(op::eq(a, b), std::nullopt, false));
}

TensorList broadcast_tensors(TensorSpan tensors) {
  DimVector sizes;
  for (const Tensor& t : tensors) sizes = broadcast_shapes(sizes, t.sizes());
  return mapped(tensors, [&](const Tensor& t) {
    return t.sizes() == sizes ? t : op::expand(t, sizes, false);
  });
}

TensorList meshgrid(TensorSpan tensors, std::optional<std::string_view> indexing) {
  TD_CHECK(!tensors.empty(), "meshgrid expects a non-empty TensorList");
  for (const Tensor& t : tensors)
    TD_CHECK(t.dtype() == tensors[0].dtype(),
             "torch.meshgrid expects all tensors to have the same dtype");
  const std::string_view order = indexing.value_or("ij");
  TD_CHECK(order == "ij" || order == "xy",
           "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: {}", order);
  const bool swap = order == "xy" && tensors.size() >= 2;
  TensorList inputs(tensors.begin(), tensors.end());
  if (swap) std::swap(inputs[0], inputs[1]);
  DimVector shape;
  for (const Tensor& t : inputs) {
    TD_CHECK(t.dim() <= 1,
             "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {}", t.sizes());
    shape.push_back(t.numel());
  }
  TensorList grids;
  for (size_t i = 0; i < inputs.size(); i++) {
    DimVector view(shape.size(), 1);
    view[i] = shape[i];
    grids.push_back(op::expand(op::reshape(inputs[i], view), shape, false));
  }
  if (swap) std::swap(grids[0], grids[1]);
  return grids;
}

}  // namespace taeda::impl
