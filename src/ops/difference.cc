// torch.diff: differences of neighbours.
#include "op/cat.h"
#include "op/clone.h"
#include "op/ne.h"
#include "op/slice.h"
#include "op/sub.h"
#include "ops/contract.h"

namespace taeda::impl {

Tensor diff(const Tensor& self, int64_t n, int64_t dim, const Tensor& prepend,
            const Tensor& append) {
  if (n == 0) return op::clone(self, std::nullopt);
  dim = contract::wrap_dim(dim, self.dim());
  TensorList parts;
  for (const Tensor& part : {prepend, self, append}) {
    if (!part.defined()) continue;
    TD_CHECK(part.dim() == self.dim(),
             "diff expects prepend or append to be the same dimension as input");
    for (int64_t d = 0; d < self.dim(); d++) {
      TD_CHECK(d == dim || part.size(d) == self.size(d),
               "diff expects the shape of tensor to prepend or append to match that of input "
               "except along the differencing dimension; input.size({}) = {}, but got "
               "tensor.size({}) = {}",
               d, self.size(d), d, part.size(d));
    }
    parts.push_back(part);
  }
  Tensor out = parts.size() == 1 ? self : op::cat(parts, dim);
  for (int64_t i = 0; i < n && out.size(dim) > 0; i++) {
    const Tensor later = op::slice(out, dim, 1, std::nullopt, 1),
                 earlier = op::slice(out, dim, 0, -1, 1);
    out = out.dtype() == DType::kBool ? op::ne(later, earlier)
                                      : op::sub(later, earlier, Scalar(int64_t{1}));
  }
  return out;
}

}  // namespace taeda::impl
