#include "kernels/cpu/conv/convolution.h"

#include <algorithm>

#include "base/interrupt.h"
#include "base/parallel.h"
#include "kernels/cpu/conv/conv_array.h"
#include "kernels/cpu/conv/conv_backends.h"
#include "kernels/cpu/conv/conv_bands.h"
#include "kernels/cpu/pointwise/loop.h"
#include "kernels/cpu/simd/scratch.h"

namespace taeda::cpu {

namespace {

// A sequence becomes an image of height one.
void insert_height(ConvArray& a) {
  a.strides.insert(2, std::max<int64_t>(a.sizes[2] * a.strides[2], 1));
  a.sizes.insert(2, 1);
}

// oneDNN counts steps in 32 bits.
bool moderate(const ConvProblem& p) {
  for (const DimVector* values : {&p.stride, &p.padding, &p.dilation}) {
    for (const int64_t v : *values) {
      if (v >= int64_t{1} << 24) return false;
    }
  }
  return true;
}

// oneDNN has no convolutions whose last positions of x belong to no window at any stride: the
// output padding of a transposed convolution may be as large as its dilation.
bool leaves_steps_over(const ConvProblem& p) {
  const DimVector after = p.padding_after();
  for (size_t i = 0; i < p.spatial(); i++) {
    if (after[i] + p.stride[i] <= 0) return true;
  }
  return false;
}

// What every fast way asks for.
bool use_onednn(const ConvProblem& p) {
  return onednn_convolves(p.x.dtype) && p.x.numel() > 0 && p.y.numel() > 0 && moderate(p);
}

// Beside images narrower than a step, oneDNN 3.2's gradients of bf16 filters contain whatever lay
// in memory before.
bool too_narrow_for_onednn(const ConvProblem& p) {
  return p.x.dtype != DType::kFloat32 && p.x.sizes.back() < p.stride.back();
}

// Beside volumes no deeper than the filters, oneDNN 3.2's gradients of filters with steps of two in
// depth lack elements.
bool too_shallow_for_onednn(const ConvProblem& p) {
  return p.spatial() == 3 && p.stride[0] == 2 &&
         p.x.sizes[2] <= (p.w.sizes[2] - 1) * p.dilation[0] + 1;
}

bool row_major(const ConvArray& a) {
  int64_t stride = 1;
  for (size_t d = a.sizes.size(); d-- > 0; stride *= a.sizes[d]) {
    if (a.strides[d] != stride && a.sizes[d] != 1) return false;
  }
  return true;
}

void set_row_major(ConvArray& a) {
  int64_t stride = 1;
  for (size_t d = a.sizes.size(); d-- > 0; stride *= a.sizes[d]) a.strides[d] = stride;
}

// A row-major f32 copy of an array, or the array itself where it is that.
class Planes {
 public:
  explicit Planes(const ConvArray& a)
      : given_(a), planes_(a), memory_(row_major(a) && a.dtype == DType::kFloat32 ? 0 : a.numel()) {
    set_row_major(planes_);
    planes_.dtype = DType::kFloat32;
    if (memory_.data()) planes_.data = reinterpret_cast<char*>(memory_.data());
  }
  const ConvArray& array() const { return planes_; }
  void load() const {
    if (memory_.data()) copy(planes_.view(), given_.view());
  }
  void store() const {
    if (memory_.data()) copy(given_.view(), planes_.view());
  }

 private:
  const ConvArray& given_;
  ConvArray planes_;
  Scratch<float> memory_;
};

// A vector in f32, for problems on planes.
class FloatVector {
 public:
  explicit FloatVector(const View& given)
      : given_(given),
        memory_(given.present ? given.numel : 0),
        view_{memory_.data(), DType::kFloat32, given.sizes, stride_, given.numel, given.present} {}
  const View& view() const { return view_; }
  void load() const {
    if (given_.present) copy(view_, given_);
  }

 private:
  const View& given_;
  const DimVector stride_{1};
  Scratch<float> memory_;
  View view_;
};

// Calls convolve(problem) on row-major f32 arrays, of which it writes `out`. Copying channels-last
// ones there and back takes less than Winograd's algorithm saves.
template <class Convolve>
void on_planes(const ConvProblem& p, ConvArray ConvProblem::*out, const Convolve& convolve) {
  ConvProblem q = p;
  const Planes x(p.x), w(p.w), y(p.y);
  using Part = std::pair<const Planes*, ConvArray ConvProblem::*>;
  const Part parts[] = {{&x, &ConvProblem::x}, {&w, &ConvProblem::w}, {&y, &ConvProblem::y}};
  for (const auto& [planes, array] : parts) {
    q.*array = planes->array();
    if (array != out) planes->load();
  }
  convolve(q);
  for (const auto& [planes, array] : parts) {
    if (array == out) planes->store();
  }
}

// to += from; row-major arrays of f32.
void accumulate(const ConvArray& to, const ConvArray& from) {
  auto* const sum = reinterpret_cast<float*>(to.data);
  const auto* const part = reinterpret_cast<const float*>(from.data);
  for (int64_t i = 0; i < to.numel(); i++) sum[i] += part[i];
}

// The gradients that bands of the image give, added up in f32.
bool onednn_weight_gradient(const ConvProblem& p) {
  const std::vector<ConvProblem> bands = bands_of_y(p);
  const bool fit = std::none_of(bands.begin(), bands.end(), [](const ConvProblem& band) {
    return too_narrow_for_onednn(band) || too_shallow_for_onednn(band);
  });
  if (bands.size() == 1 || !fit) return onednn_conv_weight_gradient(p, p.w);
  const Scratch<float> memory(2 * p.w.numel());
  ConvArray sum = p.w;
  sum.dtype = DType::kFloat32;
  set_row_major(sum);
  const auto in = [&](float* data) {
    ConvArray a = sum;
    a.data = reinterpret_cast<char*>(data);
    return a;
  };
  sum = in(memory.data());
  const ConvArray part = in(memory.data() + p.w.numel());
  for (size_t i = 0; i < bands.size(); i++) {
    check_interrupt();
    if (!onednn_conv_weight_gradient(bands[i], i == 0 ? sum : part)) return false;
    if (i > 0) accumulate(sum, part);
  }
  copy(p.w.view(), sum.view());
  return true;
}

// oneDNN's filter gradient; bf16 ones in f32 where those are wrong.
bool try_onednn_weight_gradient(const ConvProblem& p) {
  if (!use_onednn(p) || leaves_steps_over(p) || too_shallow_for_onednn(p)) return false;
  if (!too_narrow_for_onednn(p)) return onednn_weight_gradient(p);
  bool done = false;
  on_planes(p, &ConvProblem::w, [&](const auto& q) { done = onednn_conv_weight_gradient(q, q.w); });
  return done;
}

template <class F>
void for_each_band(const std::vector<ConvProblem>& bands, const F& f) {
  parallel_for(0, static_cast<int64_t>(bands.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) f(bands[static_cast<size_t>(i)]);
  });
}

// The unfolded way for every type; it has no bf16 of its own.
void unfolded_forward(const ConvProblem& p, const View& bias) {
  if (p.x.dtype != DType::kBFloat16) return unfolded_conv_forward(p, bias);
  const FloatVector wide(bias);
  wide.load();
  on_planes(p, &ConvProblem::y, [&](const auto& q) { unfolded_conv_forward(q, wide.view()); });
}
void unfolded_input_gradient(const ConvProblem& p) {
  if (p.x.dtype != DType::kBFloat16) return unfolded_conv_input_gradient(p);
  on_planes(p, &ConvProblem::x, unfolded_conv_input_gradient);
}
void unfolded_weight_gradient(const ConvProblem& p) {
  if (p.x.dtype != DType::kBFloat16) return unfolded_conv_weight_gradient(p);
  on_planes(p, &ConvProblem::w, unfolded_conv_weight_gradient);
}

}  // namespace

ConvProblem::ConvProblem(const View& x_view, const View& w_view, const View& y_view,
                         const ConvGeometry& g)
    : x(x_view),
      w(w_view),
      y(y_view),
      stride(g.stride),
      padding(g.padding),
      dilation(g.dilation),
      groups(g.groups) {
  if (stride.size() == 1) {
    for (ConvArray* a : {&x, &w, &y}) insert_height(*a);
    stride.insert(0, 1);
    padding.insert(0, 0);
    dilation.insert(0, 1);
  }
}

double ConvProblem::work_per_sample() const {
  double work = static_cast<double>(w.numel());
  for (size_t i = 2; i < y.sizes.size(); i++) work *= static_cast<double>(y.sizes[i]);
  return work;
}

DimVector ConvProblem::padding_after() const {
  DimVector after;
  for (size_t i = 0; i < spatial(); i++) {
    const int64_t covered =
        (y.sizes[i + 2] - 1) * stride[i] + (w.sizes[i + 2] - 1) * dilation[i] + 1;
    after.push_back(covered - x.sizes[i + 2] - padding[i]);
  }
  return after;
}

void convolution_forward(const View& y, const View& x, const View& w, const View& b,
                         const ConvGeometry& g) {
  if (y.numel == 0) return;
  const ConvProblem p(x, w, y, g);
  if (use_onednn(p) && use_winograd(p, false))
    on_planes(p, &ConvProblem::y, [&](const auto& q) { winograd_conv_forward(q, b); });
  else if (use_onednn(p) && use_pointwise(p, false))
    pointwise_conv_forward(p, b);
  else if (use_onednn(p) && use_direct(p))
    direct_conv_forward(p, b);
  else
    for_each_band(bands_of_y(p), [&](const ConvProblem& band) {
      if (!use_onednn(band) || leaves_steps_over(band) || !onednn_conv_forward(band, b))
        unfolded_forward(band, b);
    });
}

void convolution_input_gradient(const View& gx, const View& gy, const View& w,
                                const ConvGeometry& g) {
  if (gx.numel == 0) return;
  const ConvProblem p(gx, w, gy, g);
  if (use_onednn(p) && use_winograd(p, false))
    on_planes(p, &ConvProblem::x, winograd_conv_input_gradient);
  else if (use_onednn(p) && use_pointwise(p, false))
    pointwise_conv_input_gradient(p);
  else if (use_onednn(p) && use_direct_gradient(p, false))
    direct_conv_input_gradient(p);
  else
    for_each_band(bands_of_x(p), [&](const ConvProblem& band) {
      if (!use_onednn(band) || leaves_steps_over(band) || !onednn_conv_input_gradient(band))
        unfolded_input_gradient(band);
    });
}

void convolution_weight_gradient(const View& gw, const View& gy, const View& x,
                                 const ConvGeometry& g) {
  const ConvProblem p(x, gw, gy, g);
  if (use_onednn(p) && use_winograd(p, true))
    on_planes(p, &ConvProblem::w, winograd_conv_weight_gradient);
  else if (use_onednn(p) && use_pointwise(p, true))
    pointwise_conv_weight_gradient(p);
  else if (use_onednn(p) && use_direct_gradient(p, true))
    direct_conv_weight_gradient(p);
  else if (!try_onednn_weight_gradient(p))
    unfolded_weight_gradient(p);
}

}  // namespace taeda::cpu
