#include "kernels/cuda/text/bags.cuh"

namespace taeda::device {

#define TD_BAGS(type, T)                                                              \
  TD_GLOBAL(bag_sum_##type##_any, BagsArgs, bag_sum_kernel<T>)                        \
  TD_GLOBAL(bag_pieces_##type##_any, BagsArgs, bag_pieces_kernel<T>)                  \
  TD_GLOBAL(bag_join_##type##_any, BagsArgs, bag_join_kernel<T>)                      \
  TD_GLOBAL(bag_sum_backward_##type##_any, BagsArgs, combine_pieces<T, BagColumn<T>>) \
  TD_GLOBAL(bag_dots_##type##_any, BagsArgs, bag_dots_kernel<T>)
TD_BAGS(f32, float)
TD_BAGS(f64, double)

}  // namespace taeda::device
