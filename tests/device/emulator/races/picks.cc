#include "device/emulator/races/kernels.h"
#include "device/emulator/races/run.h"
#include "kernels/cuda/text/random_args.h"
#include "kernels/cuda/text/sort_args.h"

namespace taeda::races {

using namespace device;

int64_t mode(std::vector<uint64_t> keys) {
  SortArgs args{};
  std::vector<int64_t> order(keys.size());
  for (size_t i = 0; i < order.size(); i++) order[i] = static_cast<int64_t>(i);
  int64_t value = 0, index = 0;
  args.rows.count = 1;
  args.n = keys.size();
  args.keys[0] = keys.data();
  args.order[0] = order.data();
  args.data[0] = reinterpret_cast<char*>(keys.data());
  args.data[1] = reinterpret_cast<char*>(&value);
  args.data[2] = reinterpret_cast<char*>(&index);
  args.strides[0] = sizeof(uint64_t);
  args.pick = Pick::kMode;
  args.threads = 128;
  run("sort_pick_i64_any", {1}, {128}, args);
  return value;
}

int64_t category(const std::vector<float>& weights) {
  std::vector<float> keys(weights.size(), 1.0f);
  int64_t drawn = -1;
  MultinomialArgs args{};
  args.weights = reinterpret_cast<const char*>(weights.data());
  args.keys = reinterpret_cast<char*>(keys.data());
  args.out = &drawn;
  args.rows = args.samples = 1;
  args.n = weights.size();
  args.threads = 128;
  args.type = ElementType::kFloat32;
  args.itemsize = sizeof(float);
  run("multinomial_rows_f32_any", {1}, {128}, args);
  return drawn;
}

}  // namespace taeda::races
