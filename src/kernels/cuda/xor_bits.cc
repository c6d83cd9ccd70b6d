// The exclusive or of elements' bits by the kernels of reductions (text/reducers.cuh).
#include "kernels/cuda/reduce.h"

namespace taeda::cuda {

void xor_bits(const View& out, const View& self, IntSpan dim, bool) {
  const DType type = is_floating(self.dtype) ? DType::kFloat64 : DType::kInt64;
  reduce({"xor", type}, &out, nullptr, self, dim);
}

}  // namespace taeda::cuda
