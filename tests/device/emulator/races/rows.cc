#include "device/emulator/races/kernels.h"
#include "device/emulator/races/run.h"
#include "kernels/cuda/text/loss_args.h"
#include "kernels/cuda/text/row_args.h"

namespace taeda::races {

using namespace device;

std::vector<float> along(const char* kernel, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  RowArgs args{};
  args.rows.count = 1;
  args.data[0] = reinterpret_cast<char*>(y.data());
  args.data[1] = reinterpret_cast<char*>(const_cast<float*>(x.data()));
  args.strides[0] = args.strides[1] = sizeof(float);
  args.n = x.size();
  args.threads = 128;
  args.types[0] = args.types[1] = ElementType::kFloat32;
  run(kernel, {1}, {128}, args);
  return y;
}

float cross_entropy(const std::vector<float>& x) {
  const int64_t target = 7;
  std::vector<double> sums(2);
  float loss = 0, lse = 0;
  const auto array = [](const float& first) {
    return Array{reinterpret_cast<char*>(const_cast<float*>(&first)), ElementType::kFloat32};
  };
  CrossEntropyArgs args{};
  args.x = array(x[0]), args.out = array(loss), args.lse = array(lse);
  args.target = &target;
  args.sums = sums.data();
  args.n = 1;
  args.classes = static_cast<int64_t>(x.size());
  args.ignored = -100;
  args.smoothing = 0.5;
  args.threads = 128;
  run("cross_entropy_f32_any", {1}, {128}, args);
  return loss;
}

float cumprod_tangent(size_t n) {
  const std::vector<float> ones(n, 1.0f);
  std::vector<float> s(n);
  RowArgs args{};
  args.rows.count = 1;
  args.data[0] = reinterpret_cast<char*>(s.data());
  for (int k = 0; k < 3; k++) {
    if (k > 0) args.data[k] = reinterpret_cast<char*>(const_cast<float*>(ones.data()));
    args.strides[k] = sizeof(float);
    args.types[k] = ElementType::kFloat32;
  }
  args.n = n;
  args.threads = 128;
  run("cumprod_tangent_f32_any", {1}, {128}, args);
  return s.back();
}

}  // namespace taeda::races
