// Printing against PyTorch's: tests/data/tensor_str.txt, written by make_tensor_str.py beside it.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "taeda/tensor.h"

namespace taeda {
namespace {

DimVector ints(const std::string& text) {
  DimVector values;
  if (text == "-") return values;
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, ',');) values.push_back(std::stoll(item));
  return values;
}

Tensor parse(const std::string& line) {
  std::istringstream in(line);
  std::string dtype, sizes, strides, hex;
  in >> dtype >> sizes >> strides >> hex;
  DType type = DType::kBool;
  while (to_text(type) != dtype) type = static_cast<DType>(static_cast<int>(type) + 1);
  if (hex == "-") hex.clear();
  const auto bytes = static_cast<int64_t>(hex.size() / 2);
  const Ref<Storage> storage = Storage::allocate(bytes, DeviceType::kCPU);
  for (int64_t i = 0; i < bytes; i++) {
    static_cast<uint8_t*>(storage->data())[i] =
        static_cast<uint8_t>(std::stoi(hex.substr(static_cast<size_t>(2 * i), 2), nullptr, 16));
  }
  Ref<TensorImpl> impl(new TensorImpl(storage, type, DeviceType::kCPU));
  impl->set_layout(ints(sizes), ints(strides), 0);
  return Tensor(std::move(impl));
}

TEST(TensorStr, LikeTorch) {
  std::ifstream file(std::string(TAEDA_TEST_DATA) + "/tensor_str.txt");
  int cases = 0;
  for (std::string head; std::getline(file, head); cases++) {
    std::string want, line;
    while (std::getline(file, line) && line != "%%") want += (want.empty() ? "" : "\n") + line;
    EXPECT_EQ(parse(head).to_string(), want);
  }
  EXPECT_GT(cases, 30);
}

}  // namespace
}  // namespace taeda
