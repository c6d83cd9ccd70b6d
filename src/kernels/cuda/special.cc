// Special functions, orthogonal polynomials, and gradients of gamma and Dirichlet numbers
// (text/special.cuh).
#include "device/launch.h"
#include "kernels/cuda/array.h"
#include "kernels/cuda/kernel_name.h"
#include "kernels/cuda/text/elementwise_args.h"
#include "kernels/special_function_names.h"

namespace taeda::cuda {
namespace {

void run(std::string_view kernel, DType compute, const View& out, Span<const View> in,
         uint8_t which = 0) {
  if (out.numel == 0) return;
  device::ElementwiseArgs args{};
  args.out = array(out);
  for (size_t k = 0; k < in.size(); k++) args.in[k] = array(in[k]);
  args.n = static_cast<uint64_t>(out.numel);
  args.which = which;
  launch(out.device.index, kernel_name(kernel, compute, "_any"), out.numel, &args,
         accesses({&out, 1}, in));
}

}  // namespace

void special_function(const View& result, const View& self, std::string_view name) {
  const auto which = static_cast<uint8_t>(kernels::special_function_named(name));
  run("special_function", DType::kFloat64, result, {&self, 1}, which);
}

void orthogonal_polynomial(const View& result, const View& x, const View& n,
                           std::string_view name) {
  const View in[] = {x, n};
  const auto which = static_cast<uint8_t>(kernels::polynomial_named(name));
  run("orthogonal_polynomial", x.dtype, result, in, which);
}

void standard_gamma_grad(const View& out, const View& self, const View& output) {
  const View in[] = {self, output};
  run("standard_gamma_grad", DType::kFloat64, out, in);
}

void dirichlet_grad(const View& out, const View& x, const View& alpha, const View& total) {
  const View in[] = {x, alpha, total};
  run("dirichlet_grad", x.dtype, out, in);
}

}  // namespace taeda::cuda
