// frexp: every element's mantissa and binary exponent.
#include <cmath>

#include "base/parallel.h"
#include "core/with_dtype.h"
#include "kernels/view.h"

namespace taeda::cpu {

void frexp(const View& mantissa, const View& exponent, const View& self) {
  with_dtype<Floating>(self.dtype, [&]<class T>(T) {
    const T* from = self.as<T>();
    parallel_for(0, self.numel, 1 << 14, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const Wide<T> x = static_cast<Wide<T>>(from[i]);
        int power = 0;  // std::frexp leaves it alone at infinities and NaN
        mantissa.as<T>()[i] = T(std::frexp(x, &power));
        exponent.as<int32_t>()[i] = power;
      }
    });
  });
}

}  // namespace taeda::cpu
