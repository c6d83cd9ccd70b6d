// Trains a small convolutional network on Fashion-MNIST (Debian's package dataset-fashion-mnist).
//
//   fashion_mnist [FOLDER [EPOCHS]]
#include <taeda/taeda.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace nn = taeda::nn;
using taeda::Tensor;

struct Net : nn::Layer {
  nn::Sequential features =
      add("features", nn::Sequential{block(1, 16), block(16, 64), block(64, 128)});
  nn::Sequential classifier =
      add("classifier", nn::Sequential{nn::Flatten(), nn::Linear(128 * 3 * 3, 128), nn::ReLU(),
                                       nn::Dropout(0.25), nn::Linear(128, 10)});

  static nn::Sequential block(int64_t in, int64_t out) {
    return nn::Sequential{nn::Conv2d(in, out, 3, {.padding = 1, .bias = false}),
                          nn::BatchNorm2d(out), nn::ReLU(), nn::MaxPool2d(2)};
  }
  Tensor forward(const Tensor& x) const override { return classifier(features(x)); }
};

// Share of the test images that the network names correctly.
double accuracy(Net& net, const taeda::data::DataLoader& loader) {
  const taeda::NoGrad no_grad;
  net.eval();
  int64_t right = 0, all = 0;
  for (const auto& [images, labels] : loader) {
    right += taeda::eq(net(images).argmax(1), labels).sum().item<int64_t>();
    all += labels.numel();
  }
  net.train();
  return static_cast<double>(right) / static_cast<double>(all);
}

int main(int argc, char** argv) try {
  const std::string folder = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  const int epochs = argc > 2 ? std::atoi(argv[2]) : 5;
  taeda::manual_seed(0);
  const taeda::data::DataLoader train(taeda::data::mnist(folder, true),
                                      {.batch_size = 128, .shuffle = true, .workers = 1});
  const taeda::data::DataLoader test(taeda::data::mnist(folder, false), {.batch_size = 512});

  Net net;
  taeda::optim::Adam adam(net.parameters(), {.lr = 0.002});
  taeda::optim::CosineAnnealingLR schedule(adam, epochs, 1e-5);
  for (int epoch = 0; epoch < epochs; epoch++) {
    const auto start = std::chrono::steady_clock::now();
    double total = 0;
    for (const auto& [images, labels] : train) {
      adam.zero_grad();
      const Tensor loss = taeda::cross_entropy(net(images), labels);
      loss.backward();
      adam.step();
      total += loss.item<double>();
    }
    schedule.step();
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("epoch %d  loss %.4f  accuracy %.2f %%  %.1f s\n", epoch + 1,
                total / static_cast<double>(train.size()), 100 * accuracy(net, test), seconds);
  }
} catch (const taeda::Error& error) {
  std::fprintf(stderr, "fashion_mnist: %s\n", error.what());
  return 1;
}
