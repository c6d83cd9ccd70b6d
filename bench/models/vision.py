"""Image classifiers, from their papers."""

import torch
from torch import nn


class AlexNet(nn.Module):
    """Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014."""

    def __init__(self, classes=1000, width=1):
        super().__init__()
        a, b, c, d, hidden = (n // width for n in (64, 192, 384, 256, 4096))
        self.features = nn.Sequential(
            nn.Conv2d(3, a, 11, stride=4, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
            nn.Conv2d(a, b, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
            nn.Conv2d(b, c, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(c, d, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(d, d, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
            nn.AdaptiveAvgPool2d(6),
        )  # fmt: skip
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Dropout(), nn.Linear(d * 36, hidden), nn.ReLU(inplace=True),
            nn.Dropout(), nn.Linear(hidden, hidden), nn.ReLU(inplace=True),
            nn.Linear(hidden, classes),
        )  # fmt: skip

    def forward(self, x):
        return self.classifier(self.features(x))


class VGG19(nn.Module):
    """Simonyan and Zisserman, "Very deep convolutional networks", 2014, configuration E."""

    def __init__(self, classes=1000, width=1, image=224):
        super().__init__()
        layers, n_in = [], 3
        for n_out, repeats in ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4)):
            for _ in range(repeats):
                layers += [
                    nn.Conv2d(n_in, n_out // width, 3, padding=1),
                    nn.ReLU(inplace=True),
                ]
                n_in = n_out // width
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        hidden = 4096 // width
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Linear(n_in * (image // 32) ** 2, hidden), nn.ReLU(inplace=True), nn.Dropout(),
            nn.Linear(hidden, hidden), nn.ReLU(inplace=True), nn.Dropout(),
            nn.Linear(hidden, classes),
        )  # fmt: skip

    def forward(self, x):
        return self.classifier(self.features(x))


def conv_bn(n_in, n_out, kernel, stride=1, groups=1):
    """A convolution that keeps the image's size (but for the stride), and its batch norm."""
    return nn.Sequential(
        nn.Conv2d(n_in, n_out, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(n_out),
    )


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, n_in, n, stride):
        super().__init__()
        self.body = nn.Sequential(
            conv_bn(n_in, n, 3, stride), nn.ReLU(inplace=True), conv_bn(n, n, 3)
        )
        self.skip = nn.Identity() if stride == 1 and n_in == n else conv_bn(n_in, n, 1, stride)

    def forward(self, x):
        return torch.relu(self.body(x) + self.skip(x))


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, n_in, n, stride):
        super().__init__()
        self.body = nn.Sequential(
            conv_bn(n_in, n, 1), nn.ReLU(inplace=True),
            conv_bn(n, n, 3, stride), nn.ReLU(inplace=True),
            conv_bn(n, 4 * n, 1),
        )  # fmt: skip
        self.skip = (
            nn.Identity() if stride == 1 and n_in == 4 * n else conv_bn(n_in, 4 * n, 1, stride)
        )

    def forward(self, x):
        return torch.relu(self.body(x) + self.skip(x))


class ResNet(nn.Module):
    """He et al., "Deep residual learning for image recognition", 2015; stride in the 3x3."""

    def __init__(self, block, depths, classes=1000, width=64):
        super().__init__()
        self.stem = nn.Sequential(
            conv_bn(3, width, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, padding=1)
        )
        blocks, n_in = [], width
        for stage, depth in enumerate(depths):
            n = width << stage
            for i in range(depth):
                blocks.append(block(n_in, n, 2 if i == 0 and stage > 0 else 1))
                n_in = n * block.expansion
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(n_in, classes))

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))


class MobileNetV1(nn.Module):
    """Howard et al., "MobileNets", 2017."""

    def __init__(self, classes=1000, width=32):
        super().__init__()
        layers = [conv_bn(3, width, 3, 2), nn.ReLU(inplace=True)]
        n_in = width
        plan = ((2, 1), (4, 2), (4, 1), (8, 2), (8, 1), (16, 2), *[(16, 1)] * 5, (32, 2), (32, 1))
        for factor, stride in plan:
            n = width * factor
            layers += [
                conv_bn(n_in, n_in, 3, stride, groups=n_in), nn.ReLU(inplace=True),
                conv_bn(n_in, n, 1), nn.ReLU(inplace=True),
            ]  # fmt: skip
            n_in = n
        self.features = nn.Sequential(*layers)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(n_in, classes))

    def forward(self, x):
        return self.head(self.features(x))


class InvertedResidual(nn.Module):
    def __init__(self, n_in, n, stride, expansion):
        super().__init__()
        wide = n_in * expansion
        layers = []
        if expansion != 1:
            layers += [conv_bn(n_in, wide, 1), nn.ReLU6(inplace=True)]
        layers += [
            conv_bn(wide, wide, 3, stride, groups=wide), nn.ReLU6(inplace=True),
            conv_bn(wide, n, 1),
        ]  # fmt: skip
        self.body = nn.Sequential(*layers)
        self.residual = stride == 1 and n_in == n

    def forward(self, x):
        return x + self.body(x) if self.residual else self.body(x)


class MobileNetV2(nn.Module):
    """Sandler et al., "MobileNetV2: inverted residuals and linear bottlenecks", 2018, table 2."""

    def __init__(self, classes=1000, divisor=1):
        super().__init__()
        n_in = 32 // divisor
        layers = [conv_bn(3, n_in, 3, 2), nn.ReLU6(inplace=True)]
        plan = (
            (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
            (6, 160, 3, 2), (6, 320, 1, 1),
        )  # fmt: skip
        for expansion, channels, repeats, stride in plan:
            n = channels // divisor
            for i in range(repeats):
                layers.append(InvertedResidual(n_in, n, stride if i == 0 else 1, expansion))
                n_in = n
        last = 1280 // divisor
        layers += [conv_bn(n_in, last, 1), nn.ReLU6(inplace=True)]
        self.features = nn.Sequential(*layers)
        self.head = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(last, classes)
        )

    def forward(self, x):
        return self.head(self.features(x))


def pooled(n_in, n_out):
    return nn.Sequential(
        nn.Conv2d(n_in, n_out, 3, padding=1, bias=False), nn.BatchNorm2d(n_out), nn.ReLU(),
        nn.MaxPool2d(2),
    )  # fmt: skip


class ConvNet(nn.Module):
    """The demo's network (examples/fashion_mnist.py) for images of 28 x 28."""

    def __init__(self, classes=10):
        super().__init__()
        self.features = nn.Sequential(pooled(1, 16), pooled(16, 64), pooled(64, 128))
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Linear(128 * 9, 128), nn.ReLU(), nn.Dropout(0.25),
            nn.Linear(128, classes),
        )  # fmt: skip

    def forward(self, x):
        return self.classifier(self.features(x))
