// gather, scatter, scatter_add and scatter with reductions (text/index.cuh).
#include "kernels/cpu/index/index_common.h"
#include "kernels/cuda/indexed.h"
#include "kernels/cuda/number.h"

namespace taeda::cuda {
namespace {

constexpr const char *kScatterMessage =
                         "scatter(): index {} is out of bounds for dimension {} with size {}",
                     *kScatterAddMessage =
                         "scatter_add(): index {} is out of bounds for dimension {} with size {}";

void scatter(const View& self, int64_t dim, const View& index, const View& src, Combine combine,
             const char* message = kScatterMessage) {
  cpu::check_writable(self);
  write_indexed({self, src, index, dim, message}, combine);
}
void scatter_number(const View& self, int64_t dim, const View& index, const Scalar& value,
                    Combine combine) {
  cpu::check_writable(self);
  const Number number(self.dtype, value);
  write_indexed({self, number.view, index, dim, kScatterMessage}, combine, &number.view);
}

}  // namespace

void gather(const View& out, const View& self, int64_t dim, const View& index, bool) {
  read_indexed(
      {self, out, index, dim, "gather(): index {} is out of bounds for dimension {} with size {}"});
}
void scatter_src(const View& self, int64_t dim, const View& index, const View& src) {
  scatter(self, dim, index, src, Combine::kSet);
}
void scatter_value(const View& self, int64_t dim, const View& index, const Scalar& value) {
  scatter_number(self, dim, index, value, Combine::kSet);
}
void scatter_add(const View& self, int64_t dim, const View& index, const View& src) {
  scatter(self, dim, index, src, Combine::kSum, kScatterAddMessage);
}
void scatter_reduce_src(const View& self, int64_t dim, const View& index, const View& src,
                        std::string_view reduce) {
  scatter(self, dim, index, src, combine_named(reduce));
}
void scatter_value_reduce(const View& self, int64_t dim, const View& index, const Scalar& value,
                          std::string_view reduce) {
  scatter_number(self, dim, index, value, combine_named(reduce));
}

}  // namespace taeda::cuda
