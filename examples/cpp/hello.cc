// Ten lines of taeda in C++: a tensor, a function of it, its gradient.
#include <taeda/taeda.h>

#include <iostream>

int main() {
  taeda::Tensor x = taeda::linspace(-1, 1, 5).requires_grad_();
  (x * x).sum().backward();
  std::cout << x.grad().to_string() << '\n';  // 2 x
}
