// How draws of gamma and beta numbers move with their parameters (kernels/implicit_gradients.h).
#include "kernels/implicit_gradients.h"
#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/view.h"

namespace taeda::cpu {
namespace {

using implicit_gradients::dirichlet_gradient;
using implicit_gradients::gamma_gradient;

constexpr int64_t kGrain = 1 << 11;

}  // namespace

void standard_gamma_grad(const View& out, const View& self, const View& output) {
  with_dtype<WideFloating>(out.dtype, [&]<class T>(T) {
    parallel_for(0, out.numel, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++)
        out.as<T>()[i] = static_cast<T>(gamma_gradient(self.as<T>()[i], output.as<T>()[i]));
    });
  });
}

void dirichlet_grad(const View& out, const View& x, const View& alpha, const View& total) {
  with_dtype<WideFloating>(out.dtype, [&]<class T>(T) {
    parallel_for(0, out.numel, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++)
        out.as<T>()[i] = dirichlet_gradient(x.as<T>()[i], alpha.as<T>()[i], total.as<T>()[i]);
    });
  });
}

}  // namespace taeda::cpu
