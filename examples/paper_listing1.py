"""A layer of one's own inside a small convolutional network.

After Listing 1 of "PyTorch: An Imperative Style, High-Performance Deep Learning Library" (Paszke
et al., 2019, arXiv 1912.01703): a layer is a Python class whose constructor makes the parameters
and whose `forward` computes; a model composes layers in the same way.

    python examples/paper_listing1.py            # about 0.86 after a minute
    python examples/paper_listing1.py --quick    # a few seconds, on part of the images
"""

import argparse
import importlib

import datasets

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--framework", default="taeda", help="the module to train with: taeda or torch")
parser.add_argument("--quick", action="store_true")
args = parser.parse_args()

torch = importlib.import_module(args.framework)
nn = importlib.import_module(f"{args.framework}.nn")
optim = importlib.import_module(f"{args.framework}.optim")


class LinearLayer(nn.Module):
    """activations @ w + b, as the library's own Linear computes it."""

    def __init__(self, n_in, n_out):
        super().__init__()
        self.w = nn.Parameter(torch.randn(n_in, n_out) / n_in**0.5)
        self.b = nn.Parameter(torch.zeros(n_out))

    def forward(self, activations):
        return torch.mm(activations, self.w) + self.b


class BasicModel(nn.Module):
    """28 x 28 grey values to the logarithms of ten probabilities."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 32, kernel_size=5, stride=3)
        self.fc = LinearLayer(32 * 8 * 8, 10)

    def forward(self, x):
        t1 = self.conv(x)
        t2 = nn.functional.relu(t1)
        t3 = self.fc(t2.flatten(1))
        return nn.functional.log_softmax(t3, dim=1)


def accuracy(model, images, labels):
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def main():
    torch.manual_seed(0)
    _, _, (images, labels), (test_images, test_labels) = datasets.load(torch)
    if args.quick:
        images, labels = images[:4000], labels[:4000]
        test_images, test_labels = test_images[:1000], test_labels[:1000]
    images, test_images = images.float() / 255, test_images.float() / 255

    model = BasicModel()
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    print(f"untrained: test accuracy {accuracy(model, test_images, test_labels):.4f}")
    for epoch in range(3):
        total, steps = 0.0, 0
        for batch in torch.randperm(len(labels)).split(64):
            loss = nn.functional.nll_loss(model(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, steps = total + loss.item(), steps + 1
        found = accuracy(model, test_images, test_labels)
        print(f"epoch {epoch + 1}: loss {total / steps:.4f}, test accuracy {found:.4f}", flush=True)


if __name__ == "__main__":
    main()
