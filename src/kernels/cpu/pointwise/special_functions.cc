// Bessel and Airy functions (kernels/special_functions.h) by their names in torch.special, for
// contiguous float and double tensors, computed in double; most of float by fits (bessel.h).
#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/cpu/pointwise/bessel.h"
#include "kernels/special_function_names.h"
#include "kernels/view.h"

namespace taeda::cpu {

// The first special functions are those that have fits.
static_assert(static_cast<int>(BesselFunction::kJ0) ==
              static_cast<int>(SpecialFunction::kBesselJ0));
static_assert(static_cast<int>(BesselFunction::kY1) ==
              static_cast<int>(SpecialFunction::kBesselY1));
static_assert(static_cast<int>(BesselFunction::kScaledK1) ==
              static_cast<int>(SpecialFunction::kScaledK1));

void special_function(const View& result, const View& self, std::string_view name) {
  const SpecialFunction which = kernels::special_function_named(name);
  with_dtype<WideFloating>(self.dtype, [&]<class T>(T) {
    const T* const x = self.as<T>();
    T* const out = result.as<T>();
    if constexpr (std::is_same_v<T, float>) {
      if (which <= SpecialFunction::kScaledK1) {
        const auto fit = static_cast<BesselFunction>(which);
        parallel_for(0, self.numel, 2048, [&](int64_t begin, int64_t end) {
          bessel(fit, x + begin, out + begin, end - begin);
        });
        return;
      }
    }
    const double precision = std::is_same_v<T, float> ? 1e-9 : 1e-17;  // of terms left out
    parallel_for(0, self.numel, 256, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++)
        out[i] =
            static_cast<T>(taeda::special_function(which, static_cast<double>(x[i]), precision));
    });
  });
}

}  // namespace taeda::cpu
