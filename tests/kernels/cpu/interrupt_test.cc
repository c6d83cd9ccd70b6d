// Kernels whose work may be one row, line or window look for an interrupt within it: as a chunk of
// a parallel_for that has failed, each ends. Without threads, so that no other look is met before.
#include <gtest/gtest.h>

#include <deque>
#include <functional>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "kernels/view.h"
#include "op/_avg_pool2d.h"
#include "op/_cross_entropy.h"
#include "op/_group_norm.h"
#include "op/_logsumexp.h"
#include "op/_max_pool2d.h"
#include "op/avg_pool2d_backward.h"
#include "op/col2im.h"
#include "op/cross_entropy_backward.h"
#include "op/gather.h"
#include "op/group_norm_backward.h"
#include "op/im2col.h"
#include "op/layer_norm_backward.h"
#include "op/log_softmax.h"
#include "op/log_softmax_backward.h"
#include "op/native_layer_norm.h"
#include "op/pad_by_index.h"
#include "op/pad_by_index_backward.h"
#include "op/put_.h"
#include "op/resample.h"
#include "op/softmax.h"
#include "op/softmax_backward.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kN = int64_t{3} << 20, kSide = 2000;

// Tensors of zeros on the heap.
class Zeros {
 public:
  View of(const DimVector& sizes, DType dtype = DType::kFloat32) {
    Array& array = arrays_.emplace_back();
    array.sizes = sizes;
    array.strides = DimVector(sizes.size(), 1);
    int64_t n = 1;
    for (size_t i = sizes.size(); i-- > 0; n *= sizes[i]) array.strides[i] = n;
    array.bytes.resize(static_cast<size_t>(n * item_size(dtype)));
    return {array.bytes.data(), dtype, array.sizes, array.strides, n, true};
  }

 private:
  struct Array {
    DimVector sizes, strides;
    std::vector<char> bytes;
  };
  std::deque<Array> arrays_;
};

using Call = std::function<void()>;
struct Case {
  const char* name;
  Call (*make)(Zeros& zeros);
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const DimVector kRow{kN}, kOneRow{1, kN}, kColumns{kN / 2, 2}, kOne{1};

template <class Kernel>
Call softmax_of(Zeros& z, Kernel* kernel, const DimVector& sizes, DType dtype = DType::kFloat32) {
  return [=, out = z.of(sizes, dtype), x = z.of(sizes, dtype)] { kernel(out, x, 0, {}); };
}
template <class Kernel>
Call softmax_gradient_of(Zeros& z, Kernel* kernel, const DimVector& sizes) {
  return [=, out = z.of(sizes), gy = z.of(sizes), y = z.of(sizes)] {
    kernel(out, gy, y, 0, DType::kFloat32);
  };
}
Call pad_of(Zeros& z, const DimVector& from, const DimVector& to, std::string_view mode) {
  return [=, out = z.of(to), x = z.of(from)] {
    pad_by_index(out, x, DimVector(2 * from.size(), 2), mode);
  };
}

const Case kCases[] = {
    {"softmax", [](Zeros& z) { return softmax_of(z, softmax, kRow); }},
    {"softmax_of_halves", [](Zeros& z) { return softmax_of(z, softmax, kRow, DType::kFloat16); }},
    {"log_softmax", [](Zeros& z) { return softmax_of(z, log_softmax, kRow); }},
    {"softmax_of_columns", [](Zeros& z) { return softmax_of(z, softmax, kColumns); }},
    {"logsumexp",
     [](Zeros& z) -> Call {
       return [out = z.of(kOne), x = z.of(kRow)] { logsumexp(out, x, 0, false); };
     }},
    {"softmax_backward", [](Zeros& z) { return softmax_gradient_of(z, softmax_backward, kRow); }},
    {"log_softmax_backward",
     [](Zeros& z) { return softmax_gradient_of(z, log_softmax_backward, kRow); }},
    {"softmax_backward_of_columns",
     [](Zeros& z) { return softmax_gradient_of(z, softmax_backward, kColumns); }},
    {"layer_norm",
     [](Zeros& z) -> Call {
       return [out = z.of(kRow), mean = z.of(kOne), rstd = z.of(kOne), x = z.of(kRow)] {
         layer_norm(out, mean, rstd, x, kRow, View(), View(), 1e-5);
       };
     }},
    {"layer_norm_backward",
     [](Zeros& z) -> Call {
       return [gx = z.of(kRow), gw = z.of(kRow), gb = z.of(kRow), gy = z.of(kRow), x = z.of(kRow),
               w = z.of(kRow), mean = z.of(kOne), rstd = z.of(kOne)] {
         layer_norm_backward(gx, gw, gb, gy, x, kRow, mean, rstd, w, 1e-5);
       };
     }},
    {"group_norm",
     [](Zeros& z) -> Call {
       return [out = z.of(kOneRow), mean = z.of(kOne), rstd = z.of(kOne), x = z.of(kOneRow),
               w = z.of(kRow), b = z.of(kRow)] { group_norm(out, mean, rstd, x, 1, w, b, 1e-5); };
     }},
    {"group_norm_backward",
     [](Zeros& z) -> Call {
       return [gx = z.of(kOneRow), gw = z.of(kOne), gb = z.of(kOne), w = z.of(kOne),
               gy = z.of({1, 1, kN}), x = z.of({1, 1, kN}), mean = z.of(kOne), rstd = z.of(kOne)] {
         group_norm_backward(gx, gw, gb, gy, x, 1, mean, rstd, w, 1e-5);
       };
     }},
    {"cross_entropy",
     [](Zeros& z) -> Call {
       return [loss = z.of(kOne), lse = z.of(kOne), total = z.of(kOne), x = z.of(kOneRow),
               target = z.of(kOne, DType::kInt64),
               w = z.of(kRow)] { cross_entropy(loss, lse, total, x, target, w, -100, "sum", 0); };
     }},
    {"cross_entropy_backward",
     [](Zeros& z) -> Call {
       return [gx = z.of(kOneRow), gy = z.of(kOne), x = z.of(kOneRow), w = z.of(kRow),
               lse = z.of(kOne), total = z.of(kOne), target = z.of(kOne, DType::kInt64)] {
         cross_entropy_backward(gx, gy, x, target, w, lse, total, -100, "sum", 0);
       };
     }},
    {"reflect_a_line", [](Zeros& z) { return pad_of(z, kRow, {kN + 4}, "reflect"); }},
    {"replicate_a_plane",
     [](Zeros& z) {
       return pad_of(z, {kSide, kSide}, {kSide + 4, kSide + 4}, "replicate");
     }},
    {"pad_backward",
     [](Zeros& z) -> Call {
       return [gx = z.of({kSide, kSide}), gy = z.of({kSide + 4, kSide + 4})] {
         pad_by_index_backward(gx, gy, gx.sizes, DimVector(4, 2), "circular");
       };
     }},
    {"gather",
     [](Zeros& z) -> Call {
       return [out = z.of(kRow), x = z.of(kRow), index = z.of(kRow, DType::kInt64)] {
         gather(out, x, 0, index, false);
       };
     }},
    {"gather_from_columns",
     [](Zeros& z) -> Call {
       return [out = z.of(kColumns), x = z.of(kColumns), index = z.of(kColumns, DType::kInt64)] {
         gather(out, x, 0, index, false);
       };
     }},
    {"put",
     [](Zeros& z) -> Call {
       return [x = z.of(kRow), index = z.of(kRow, DType::kInt64), values = z.of(kRow)] {
         put(x, index, values, false);
       };
     }},
    {"max_pool",
     [](Zeros& z) -> Call {
       return [out = z.of({1, kN - 99}), x = z.of(kOneRow)] {
         max_pool(out, View(), x, DimVector{100}, kOne, DimVector{0}, kOne, false, false);
       };
     }},
    {"avg_pool",
     [](Zeros& z) -> Call {
       return [out = z.of({1, kN - 99}), x = z.of(kOneRow)] {
         avg_pool(out, x, DimVector{100}, kOne, DimVector{0}, false, true, {});
       };
     }},
    {"avg_pool_backward",
     [](Zeros& z) -> Call {
       return [gx = z.of(kOneRow), gy = z.of({1, kN - 99})] {
         avg_pool_backward(gx, gy, kOneRow, DimVector{100}, kOne, DimVector{0}, false, true, {});
       };
     }},
    {"im2col",
     [](Zeros& z) -> Call {
       return [out = z.of({4, (kSide - 1) * (kSide - 1)}), x = z.of({1, kSide, kSide})] {
         im2col(out, x, DimVector{2, 2}, kOne, DimVector{0}, kOne);
       };
     }},
    {"col2im",
     [](Zeros& z) -> Call {
       return [out = z.of({1, kSide, kSide}), x = z.of({4, (kSide - 1) * (kSide - 1)})] {
         col2im(out, x, DimVector{kSide, kSide}, DimVector{2, 2}, kOne, DimVector{0}, kOne);
       };
     }},
    {"resample",
     [](Zeros& z) -> Call {
       return [out = z.of({1, 1, 2 * kN}), x = z.of({1, 1, kN})] {
         resample(out, x, DimVector{2 * kN}, "linear", false, 0, 0, 0);
       };
     }},
};

class LongRow : public testing::TestWithParam<Case> {};

TEST_P(LongRow, IsLeftInTheMiddle) {
  set_num_threads(1);
  Zeros zeros;
  const Call call = GetParam().make(zeros);
  call();
  const std::atomic<bool> cancelled{true};
  {
    const CancelScope scope(&cancelled);
    EXPECT_THROW(call(), Cancelled);
  }
  set_num_threads(2);
}

INSTANTIATE_TEST_SUITE_P(Kernels, LongRow, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace taeda::cpu
