// 1x1 convolutions in f32 as matrix products on the images as they lie in memory: y = W x over
// positions, gx = W' gy, gW = gy x'. Small images of several samples are first put side by side, so
// that a product is wide enough to be worth packing W for; so are the positions of x that a strided
// convolution reads.
#include <algorithm>
#include <vector>

#include "base/parallel.h"
#include "kernels/cpu/conv/conv_backends.h"
#include "kernels/cpu/gemm/sgemm.h"
#include "kernels/cpu/simd/scratch.h"

namespace taeda::cpu {
namespace {

constexpr int64_t kWide = 384;   // positions that make a product wide
constexpr int64_t kSmall = 100;  // below which a library, sample by sample, is slower
constexpr int64_t kCopyGrain = int64_t{1} << 15;

int64_t positions_of(const ConvArray& a) { return a.numel() / (a.sizes[0] * a.sizes[1]); }

// Channels follow each other as dense row-major images.
bool planar(const ConvArray& a) {
  int64_t stride = 1;
  for (size_t d = a.sizes.size(); d-- > 1;) {
    if (a.strides[d] != stride) return false;
    stride *= a.sizes[d];
  }
  return true;
}

bool strided(const ConvProblem& p) {
  return std::any_of(p.stride.begin(), p.stride.end(), [](int64_t s) { return s != 1; });
}

// Where the rows of y's positions start in a plane of x, and at last the plane's end; none where
// the positions are x's own.
std::vector<int64_t> rows_in_x(const ConvProblem& p) {
  std::vector<int64_t> rows;
  if (!strided(p)) return rows;
  const size_t across = p.spatial() - 1;
  DimVector index(across, 0);
  for (int64_t i = 0; i < positions_of(p.y) / p.y.sizes.back(); i++) {
    rows.push_back(0);
    for (size_t d = 0; d < across; d++) rows.back() += index[d] * p.stride[d] * p.x.strides[d + 2];
    for (size_t d = across; d-- > 0 && ++index[d] == p.y.sizes[d + 2];) index[d] = 0;
  }
  rows.push_back(positions_of(p.x));
  return rows;
}

// Some samples of x or y as the matrix (channels, samples x positions of y): the array's own memory
// where it is that, else a copy.
class Samples {
 public:
  Samples(const ConvProblem& p, const ConvArray& a, int64_t most)
      : a_(a),
        plane_(positions_of(a)),
        positions_(positions_of(p.y)),
        row_length_(p.y.sizes.back()),
        step_(p.stride.back()),
        rows_(&a == &p.x ? rows_in_x(p) : std::vector<int64_t>()),
        copy_(most > 1 || !rows_.empty() ? a.sizes[1] * most * positions_ : 0) {}

  void choose(int64_t first, int64_t count) {
    first_ = first;
    count_ = count;
  }
  float* data() const { return copy_.data() ? copy_.data() : plane(first_, 0); }
  int64_t width() const { return count_ * positions_; }
  void load() const {
    each([&](float* column, float* image) {
      if (rows_.empty()) std::copy_n(image, positions_, column);
      for (size_t row = 0; row + 1 < rows_.size(); row++, column += row_length_)
        for (int64_t j = 0; j < row_length_; j++) column[j] = image[rows_[row] + j * step_];
    });
  }
  // What lies between the positions becomes 0.
  void store() const {
    each([&](float* column, float* image) {
      if (rows_.empty()) std::copy_n(column, positions_, image);
      for (size_t row = 0; row + 1 < rows_.size(); row++, column += row_length_) {
        std::fill(image + rows_[row], image + rows_[row + 1], 0.0f);
        for (int64_t j = 0; j < row_length_; j++) image[rows_[row] + j * step_] = column[j];
      }
    });
  }

 private:
  float* plane(int64_t sample, int64_t channel) const {
    return reinterpret_cast<float*>(a_.data) + sample * a_.strides[0] + channel * plane_;
  }
  template <class F>
  void each(const F& f) const {
    if (!copy_.data()) return;
    parallel_for(0, a_.sizes[1], std::max<int64_t>(1, kCopyGrain / width()),
                 [&](int64_t c, int64_t end) {
                   for (; c < end; c++)
                     for (int64_t i = 0; i < count_; i++)
                       f(copy_.data() + c * width() + i * positions_, plane(first_ + i, c));
                 });
  }

  const ConvArray& a_;
  int64_t plane_, positions_, row_length_, step_, first_ = 0, count_ = 1;
  std::vector<int64_t> rows_;
  Scratch<float> copy_;
};

// Calls f(first, count) for groups of samples of about kWide positions.
template <class F>
void for_each_group(const ConvProblem& p, const F& f) {
  const int64_t n = p.samples(),
                most = std::max<int64_t>(1, (strided(p) ? 2 : 1) * kWide / positions_of(p.y));
  const int64_t groups = (n + most - 1) / most, length = (n + groups - 1) / groups;
  for (int64_t i = 0; i < n; i += length) f(i, std::min(length, n - i));
}
int64_t longest_group(const ConvProblem& p) {
  int64_t longest = 1;
  for_each_group(p, [&](int64_t, int64_t count) { longest = std::max(longest, count); });
  return longest;
}

void add_bias(const ConvArray& y, const View& bias) {
  const int64_t positions = positions_of(y), channels = y.sizes[1];
  parallel_for(0, y.sizes[0] * channels, std::max<int64_t>(1, kCopyGrain / positions),
               [&](int64_t i, int64_t end) {
                 for (; i < end; i++) {
                   float* image = reinterpret_cast<float*>(y.data) + i / channels * y.strides[0] +
                                  i % channels * positions;
                   const float b = bias.as<float>()[i % channels * bias.strides[0]];
                   for (int64_t j = 0; j < positions; j++) image[j] += b;
                 }
               });
}

// y = W x; the input gradient with x and y exchanged and W transposed.
void multiply(const ConvProblem& p, const ConvArray& x, const ConvArray& y, int64_t w_row,
              int64_t w_col) {
  Samples in(p, x, longest_group(p)), out(p, y, longest_group(p));
  for_each_group(p, [&](int64_t first, int64_t count) {
    in.choose(first, count);
    out.choose(first, count);
    in.load();
    sgemm({y.sizes[1], in.width(), x.sizes[1], out.data(), out.width(), 1,
           reinterpret_cast<const float*>(p.w.data), w_row, w_col, in.data(), in.width(), 1},
          true);
    out.store();
  });
}

}  // namespace

bool use_pointwise(const ConvProblem& p, bool weight_gradient) {
  if (p.x.dtype != DType::kFloat32 || p.groups != 1) return false;
  for (size_t i = 0; i < p.spatial(); i++)
    if (p.w.sizes[i + 2] != 1 || p.padding[i] != 0) return false;
  constexpr int64_t kMinChannels = 32;
  return p.x.sizes[1] >= kMinChannels && p.y.sizes[1] >= kMinChannels && planar(p.x) &&
         planar(p.y) && (weight_gradient || strided(p) || positions_of(p.y) < kSmall);
}

void pointwise_conv_forward(const ConvProblem& p, const View& bias) {
  multiply(p, p.x, p.y, p.w.strides[0], p.w.strides[1]);
  if (bias.present) add_bias(p.y, bias);
}
void pointwise_conv_input_gradient(const ConvProblem& p) {
  multiply(p, p.y, p.x, p.w.strides[1], p.w.strides[0]);
}
void pointwise_conv_weight_gradient(const ConvProblem& p) {
  Samples x(p, p.x, longest_group(p)), gy(p, p.y, longest_group(p));
  for_each_group(p, [&](int64_t first, int64_t count) {
    x.choose(first, count);
    gy.choose(first, count);
    x.load();
    gy.load();
    sgemm({p.y.sizes[1], p.x.sizes[1], x.width(), reinterpret_cast<float*>(p.w.data),
           p.w.strides[0], p.w.strides[1], gy.data(), gy.width(), 1, x.data(), 1, x.width(), 1,
           first == 0 ? 0.0f : 1.0f},
          true);
  });
}

}  // namespace taeda::cpu
