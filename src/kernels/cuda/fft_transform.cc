#include "kernels/cuda/fft_transform.h"

#include "kernels/cuda/fft_chain.h"
#include "kernels/cuda/fft_lengths.h"
#include "kernels/cuda/workspace.h"
#include "kernels/product.h"
#include "taeda/error.h"

namespace taeda::cuda {
namespace {

using device::FftForm;

FftLines lines_of(const View& v, int64_t dim, bool writes) {
  FftLines lines{
      static_cast<char*>(v.data), v.strides[dim] * item_size(v.dtype), {}, access(v, writes)};
  for (int64_t d = 0; d < v.ndim(); d++)
    if (d != dim) lines.strides.push_back(v.strides[d] * item_size(v.dtype));
  return lines;
}

// By a convolution of m elements with the chirp c_k = exp(-pi i k^2 / n): y_k = c_k sum_j (x_j c_j)
// conj(c_(k - j)), whose transforms are multiplied.
void run_chirp(const FftTransform& t, bool wide, IntSpan sizes, device::FftArgs hooks) {
  const int64_t m = smooth_length(2 * static_cast<int64_t>(hooks.n) - 1);
  const int64_t bytes = m * (wide ? 16 : 8);
  hooks.length = static_cast<uint64_t>(m);
  const Workspace filter(t.out.device, bytes),
      product(t.out.device, bytes * kernels::product(sizes));
  device::FftArgs plain{};
  plain.length = plain.in_count = plain.out_count = hooks.length;
  plain.n = hooks.n;
  plain.scale = 1;
  device::FftArgs args = plain;
  args.from = FftForm::kFilter;
  run_fft_chain(t.out.device, wide, {}, args, {}, dense_lines(filter.data(), wide, {}, m));
  args = plain;
  args.from = hooks.from, args.in_count = hooks.in_count;
  args.swap_in = t.inverse, args.chirp_in = true;
  args.factors = filter.data();
  const FftLines between = dense_lines(product.data(), wide, sizes, m);
  run_fft_chain(t.out.device, wide, sizes, args, lines_of(t.in, t.dim, false), between,
                filter.access(false));
  args = plain;
  args.to = hooks.to, args.out_count = hooks.out_count;
  args.swap_in = args.swap_out = args.chirp_out = true, args.swap_end = t.inverse;
  args.scale = t.scale / static_cast<double>(m);
  run_fft_chain(t.out.device, wide, sizes, args, between, lines_of(t.out, t.dim, true));
}

}  // namespace

void run_fft(const FftTransform& t) {
  const bool wide = item_size(to_real(t.in.dtype)) == 8;
  const int64_t n = t.to == FftForm::kReal ? t.out.sizes[t.dim] : t.in.sizes[t.dim];
  TD_CHECK(n < int64_t{1} << 29, "a transform of {} elements is too long for CUDA", n);
  DimVector sizes;
  for (int64_t d = 0; d < t.out.ndim(); d++)
    if (d != t.dim) sizes.push_back(t.out.sizes[d]);
  device::FftArgs hooks{};
  hooks.from = t.from, hooks.to = t.to;
  hooks.n = hooks.length = hooks.in_count = static_cast<uint64_t>(n);
  hooks.out_count = static_cast<uint64_t>(t.out.sizes[t.dim]);
  hooks.swap_in = hooks.swap_out = t.inverse;
  hooks.scale = t.scale;
  if (!is_smooth(n)) return run_chirp(t, wide, sizes, hooks);
  run_fft_chain(t.out.device, wide, sizes, hooks, lines_of(t.in, t.dim, false),
                lines_of(t.out, t.dim, true));
}

}  // namespace taeda::cuda
