// torch.diff: differences of neighbours.
#include "op/ne.h"
#include "op/slice.h"
#include "op/sub.h"

namespace taeda::impl {

Tensor diff(const Tensor& self, int64_t n, int64_t dim) {
  Tensor out = self;
  for (int64_t i = 0; i < n && out.size(dim) > 0; i++) {
    const Tensor later = op::slice(out, dim, 1, std::nullopt, 1),
                 earlier = op::slice(out, dim, 0, -1, 1);
    out = out.dtype() == DType::kBool ? op::ne(later, earlier)
                                      : op::sub(later, earlier, Scalar(int64_t{1}));
  }
  return out;
}

}  // namespace taeda::impl
