// Shape rules of ops/pool.yaml.
#include "ops/pool_rules.h"
#include "taeda/error.h"

namespace taeda::rules {

DimVector adaptive_pooled(std::string_view name, IntSpan in, int64_t spatial, IntSpan output_size) {
  const size_t n = static_cast<size_t>(spatial);
  TD_CHECK(in.size() == n + 1 || in.size() == n + 2, "{}(): Expected {}D or {}D tensor, but got {}",
           name, spatial + 1, spatial + 2, in);
  TD_CHECK(output_size.size() == n, "{}(): output_size must have {} elements, but got {}", name,
           spatial, output_size);
  DimVector out(in);
  for (size_t i = in.size() - n; i < in.size(); i++) {
    TD_CHECK(in[i] > 0,
             "{}(): Expected input to have non-zero size for non-batch dimensions, but input has "
             "sizes {} with dimension "
             "{} being empty",
             name, in, static_cast<int64_t>(i));
    out[i] = output_size[i - (in.size() - n)];
    TD_CHECK(out[i] >= 0,
             "{}(): elements of output_size must be greater than or equal to 0 but received {}",
             name, output_size);
  }
  return out;
}

}  // namespace taeda::rules
