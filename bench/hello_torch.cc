// The counterpart of examples/cpp/hello.cc for PyTorch: only compiled, to compare the time it
// takes.
#include <torch/torch.h>

#include <iostream>

int main() {
  torch::Tensor x = torch::randn({2, 3}, torch::requires_grad());
  (x * x).sum().backward();
  std::cout << x.grad() << '\n';
}
