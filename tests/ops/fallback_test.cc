#include "ops/fallback.h"

#include "core/hidden_device.h"
#include "device/modules.h"
#include "kernels/cpu/pointwise/loop.h"
#include "ops/host.h"
#include "taeda/taeda.h"

namespace taeda {
namespace {

class Fallback : public HiddenDevice {
 protected:
  void SetUp() override {
    HiddenDevice::SetUp();
    fallback::set_policy(fallback::Policy::kQuiet);
    fallback::reset_counts();
    cuda::use_kernels(false);  // nothing runs on a hidden device
  }
  void TearDown() override {
    fallback::set_policy(fallback::Policy::kWarn);
    cuda::use_kernels(true);
    HiddenDevice::TearDown();
  }
  static Tensor on_device(const Tensor& t) { return op::to_device(t, kDevice, false); }
  static Tensor numbers(std::initializer_list<int64_t> sizes) {
    return arange(Scalar(checked_product(sizes)), DType::kFloat32).reshape(IntSpan(sizes));
  }
  static int64_t checked_product(std::initializer_list<int64_t> sizes) {
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    return n;
  }
  static std::vector<float> values(const Tensor& t) {
    const HostElements<float> elements(t);
    return {elements.begin(), elements.end()};
  }
  static int64_t calls(std::string_view op) {
    for (const auto& [name, count] : fallback::counts())
      if (name == op) return count;
    return 0;
  }
};

TEST_F(Fallback, ResultsLieOnTheDevice) {
  const Tensor x = on_device(numbers({2, 3}));
  const Tensor y = x + x;
  EXPECT_EQ(y.device(), kDevice);
  EXPECT_EQ(values(y), (std::vector<float>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(calls("add"), 1);
}

TEST_F(Fallback, NumbersMayLieOnTheCpu) {
  const Tensor x = on_device(numbers({3}));
  EXPECT_EQ(values(x * 2.0), (std::vector<float>{0, 2, 4}));
  EXPECT_EQ(values(x * full({}, Scalar(3.0))), (std::vector<float>{0, 3, 6}));
}

TEST_F(Fallback, TensorsOfTwoDevicesAreRefusedByName) {
  const Tensor x = on_device(numbers({3})), y = numbers({3});
  EXPECT_THROW(x + y, Error);
  try {
    matmul(on_device(numbers({2, 2})), numbers({2, 2}));
    FAIL();
  } catch (const Error& error) {
    const std::string_view text = error.what();
    EXPECT_NE(text.find("found at least two devices, cuda:0 and cpu!"), text.npos) << text;
    EXPECT_NE(text.find("matmul, argument 'other' is on cpu"), text.npos) << text;
  }
}

TEST_F(Fallback, InPlaceWritesReachTheDevice) {
  const Tensor x = on_device(numbers({2, 3})), row = x[1];
  const uint32_t version = x.version();
  row += on_device(ones({3}));
  EXPECT_EQ(values(x), (std::vector<float>{0, 1, 2, 4, 5, 6}));
  EXPECT_GT(x.version(), version);
}

TEST_F(Fallback, ArgumentsThatShareMemoryShareTheirMirror) {
  const Tensor x = on_device(numbers({4}));
  const Tensor front = x.narrow(0, 0, 3), back = x.narrow(0, 1, 3);
  EXPECT_THROW(front += back, Error);  // as on the CPU: they overlap in part
  x += x;
  EXPECT_EQ(values(x), (std::vector<float>{0, 2, 4, 6}));
}

TEST_F(Fallback, OutIsResizedOnTheDevice) {
  const Tensor x = on_device(numbers({5}));
  const Tensor out = empty({0}, TensorOptions(kDevice));
  op::add_out(x, x, Scalar(1), out);
  EXPECT_EQ(values(out), (std::vector<float>{0, 2, 4, 6, 8}));
  const Tensor sorted = empty({5}, TensorOptions(kDevice)), order = empty({5}, [] {
                                                              TensorOptions options(DType::kInt64);
                                                              options.device = kDevice;
                                                              return options;
                                                            }());
  op::sort_out(x, 0, true, sorted, order);
  EXPECT_EQ(values(sorted), (std::vector<float>{4, 3, 2, 1, 0}));
}

TEST_F(Fallback, LayoutsOfResultsAreTheCpus) {
  const Tensor x = on_device(numbers({2, 3}).t()), y = x.exp();
  EXPECT_EQ(y.strides(), x.strides());
}

TEST_F(Fallback, ListsAndSizesThatDependOnData) {
  const Tensor x = on_device(numbers({3}));
  EXPECT_EQ(values(cat(TensorList{x, x}, 0)), (std::vector<float>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(nonzero(x).sizes(), (IntSpan{2, 1}));
  EXPECT_EQ(nonzero(x).device(), kDevice);
}

TEST_F(Fallback, IndicesMayLieOnTheCpu) {
  const Tensor x = on_device(numbers({3}));
  const Tensor last = arange(Scalar(2), Scalar(3), Scalar(1), DType::kInt64);
  EXPECT_EQ(values(x[last]), (std::vector<float>{2}));
  EXPECT_EQ(values(x[on_device(last)]), (std::vector<float>{2}));
}

TEST_F(Fallback, GradientsFlowAcrossDevices) {
  Tensor x = numbers({3});
  x.requires_grad_();
  const Tensor y = op::to_device(x, kDevice, false);
  (y * y).sum().backward();
  EXPECT_TRUE(x.grad().device().is_cpu());
  EXPECT_EQ(values(x.grad()), (std::vector<float>{0, 2, 4}));
}

TEST_F(Fallback, CopiesConvertAndKeepGaps) {
  const Tensor x = on_device(numbers({2, 3}));
  x.select(1, 1).copy_(full({2}, Scalar(int64_t{7}), DType::kInt64));
  EXPECT_EQ(values(x), (std::vector<float>{0, 7, 2, 3, 7, 5}));
  x.select(1, 0).fill_(Tensor(9));
  EXPECT_EQ(values(x), (std::vector<float>{9, 7, 2, 9, 7, 5}));
}

TEST_F(Fallback, FactoriesFillOnTheDevice) {
  const TensorOptions there(kDevice);
  EXPECT_EQ(values(zeros({2}, there)), (std::vector<float>{0, 0}));
  EXPECT_EQ(values(linspace(0, 1, 3, there)), (std::vector<float>{0, .5, 1}));
  EXPECT_EQ(rand({2}, nullptr, there).device(), kDevice);
  EXPECT_EQ(eye(2, there).device(), kDevice);
}

TEST_F(Fallback, ItemAndTextReadTheDeviceAndAreCounted) {
  const Tensor x = on_device(numbers({2}));
  const int64_t before = host_reads();
  EXPECT_EQ(x[1].item<float>(), 1);
  EXPECT_EQ(x.to_string(), "tensor([0., 1.], device='cuda:0')");
  EXPECT_EQ(host_reads(), before + 2);
}

TEST_F(Fallback, MayBeRefused) {
  const Tensor x = on_device(numbers({2}));
  fallback::set_policy(fallback::Policy::kRefuse);
  EXPECT_THROW(x + x, Error);
  EXPECT_EQ(x.t().device(), kDevice);  // a view
}

const OperatorRecord kHalfWritten{
    .text = "taeda::half_written(Tensor(a!) self, Tensor(b!) out) -> Tensor(a!)\0TT",
    .flags = OperatorRecord::kDispatched,
    .name_size = 19,
};

// Raises after it has written the first element and resized `out`.
Tensor write_half(KeySet, const Tensor& self, const Tensor& out) {
  self[0].fill_(Scalar(9));
  op::add_out(self, self, Scalar(1), out);
  fail(ErrorKind::kIndex, "half_written: index 7 is out of bounds");
}

TEST_F(Fallback, AnOperatorThatRaisesLeavesTheDeviceAsItWas) {
  const Tensor x = on_device(numbers({3})), out = empty({0}, TensorOptions(kDevice));
  const uint32_t version = x.version();
  const auto call =
      fallback::handler<kHalfWritten, write_half, Tensor, const Tensor&, const Tensor&>;
  EXPECT_THROW(call(KeySet(Key::kCUDA), x, out), Error);
  EXPECT_EQ(values(x), (std::vector<float>{0, 1, 2}));
  EXPECT_EQ(out.sizes(), IntSpan({0}));
  EXPECT_EQ(x.version(), version);
  EXPECT_EQ(x.storage()->use_count(), 1);
  EXPECT_EQ(values(x + x), (std::vector<float>{0, 2, 4}));
}

TEST_F(Fallback, DeviceMemoryIsNoHostView) {
  const Tensor x = on_device(numbers({3}));
  EXPECT_EQ(view_of(x).device, kDevice);
  EXPECT_THROW(host_view(x), Error);
  const View view = view_of(x);
  EXPECT_THROW(pointwise_loop(nullptr, x.dtype(), x.dtype(), view, {&view, 1}, nullptr), Error);
}

}  // namespace
}  // namespace taeda
