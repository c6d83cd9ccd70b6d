// Orthogonal polynomials (kernels/orthogonal_polynomials.h) by their names in torch.special, for
// contiguous float and double tensors x and n.
#include "base/interrupt.h"
#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/special_function_names.h"
#include "kernels/view.h"

namespace taeda::cpu {

void orthogonal_polynomial(const View& result, const View& x, const View& n,
                           std::string_view name) {
  const Polynomial which = kernels::polynomial_named(name);
  with_dtype<WideFloating>(x.dtype, [&]<class T>(T) {
    T* const out = result.as<T>();
    parallel_for(0, x.numel, 256, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        check_interrupt();
        out[i] = taeda::orthogonal_polynomial(which, x.as<T>()[i], n.as<T>()[i]);
      }
    });
  });
}

}  // namespace taeda::cpu
