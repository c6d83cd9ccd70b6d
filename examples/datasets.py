"""The images the examples train on, as tensors of bytes.

Fashion-MNIST (Zalando, MIT licence) comes with Debian's package dataset-fashion-mnist: 60,000
training and 10,000 test images of 28 x 28. Without it there are scikit-learn's 1,797 digits.
Every function takes the framework as its first argument, `taeda` or `torch`.
"""

import gzip
import os

FASHION_MNIST = "/usr/share/datasets/fashion-mnist"
FASHION_NAMES = "T-shirt Trouser Pullover Dress Coat Sandal Shirt Sneaker Bag Boot".split()


def read_idx(torch, path):
    """One gzip-compressed IDX file of bytes: two zeros, the type, the rank, then the sizes."""
    with gzip.open(path, "rb") as file:
        raw = bytearray(file.read())
    if raw[:3] != b"\0\0\x08":
        raise ValueError(f"{path} does not hold bytes in IDX format")
    rank = raw[3]
    sizes = [int.from_bytes(raw[4 + 4 * i : 8 + 4 * i], "big") for i in range(rank)]
    return torch.frombuffer(raw, dtype=torch.uint8, offset=4 + 4 * rank).reshape(sizes)


def fashion_mnist(torch, folder=FASHION_MNIST):
    """((training images, labels), (test images, labels)); images are n x 1 x 28 x 28."""
    parts = []
    for split in ("train", "t10k"):
        images = read_idx(torch, os.path.join(folder, f"{split}-images-idx3-ubyte.gz"))
        labels = read_idx(torch, os.path.join(folder, f"{split}-labels-idx1-ubyte.gz"))
        parts.append((images.unsqueeze(1), labels.long()))
    return parts


def digits(torch):
    """scikit-learn's 8 x 8 digits, enlarged threefold onto a canvas of 28 x 28."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    small = torch.tensor(bunch.images.tolist()).mul(255 / 16).to(torch.uint8)
    images = torch.zeros(len(small), 1, 28, 28, dtype=torch.uint8)
    images[:, 0, 2:26, 2:26] = small.repeat_interleave(3, dim=1).repeat_interleave(3, dim=2)
    labels = torch.tensor(bunch.target.tolist())
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(1))
    images, labels = images[order], labels[order]
    return [(images[:1437], labels[:1437]), (images[1437:], labels[1437:])]


def load(torch, folder=FASHION_MNIST):
    """(name, class names, training pair, test pair) of the best data set at hand."""
    if os.path.exists(os.path.join(folder, "train-images-idx3-ubyte.gz")):
        return "Fashion-MNIST", FASHION_NAMES, *fashion_mnist(torch, folder)
    print(f"No Fashion-MNIST in {folder} (Debian's package dataset-fashion-mnist):")
    print("training on scikit-learn's digits instead.")
    return "Digits", [str(digit) for digit in range(10)], *digits(torch)
