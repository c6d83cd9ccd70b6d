// Bessel and Airy functions by their names in torch.special, for contiguous float and double
// tensors.
#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/pointwise/bessel.h"
#include "kernels/special_function_names.h"
#include "kernels/view.h"

namespace taeda::cpu {

void special_function(const View& result, const View& self, std::string_view name) {
  const SpecialFunction which = kernels::special_function_named(name);
  with_dtype<WideFloating>(self.dtype, [&]<class T>(T) {
    const T* const x = self.as<T>();
    T* const out = result.as<T>();
    parallel_for(0, self.numel, 2048, [&](int64_t begin, int64_t end) {
      bessel(which, x + begin, out + begin, end - begin);
    });
  });
}

}  // namespace taeda::cpu
