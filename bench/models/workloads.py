"""What is measured: each workload builds a model and gives a function that makes one step of it.

A step is forward, loss, backward and optimizer on one synthetic batch (for the decoders: one text,
token by token) and returns the loss. `full` is the size that is timed, the other one that of the
tests. Everything is drawn from seed 0, so both frameworks see the same numbers.
"""

import contextlib

import torch
import torch.nn.functional as F
from torch import nn

from . import recommendation, sequence, transformer, vision


class Workload:
    """A model, its step, and how many `unit`s (images, tokens, ...) a step works through."""

    def __init__(self, model, step, units, unit):
        self.model, self.step, self.units, self.unit = model, step, units, unit


def training(model, optimizer, loss_of, units, unit):
    def step():
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Workload(model, step, units, unit)


def mixed():
    """The products and convolutions inside in bf16."""
    return torch.autocast("cpu", torch.bfloat16)


def classifier(model, batch, image, classes, lr=0.01, precision=contextlib.nullcontext):
    """Training with SGD and momentum on random images."""
    channels = 1 if image == 28 else 3
    images = torch.randn(batch, channels, image, image)
    labels = torch.randint(0, classes, (batch,))
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, weight_decay=1e-4)

    def loss():
        with precision():
            return F.cross_entropy(model(images), labels)

    return training(model, optimizer, loss, batch, "images")


def alexnet(full):
    if full:
        return classifier(vision.AlexNet(), 32, 224, 1000)
    return classifier(vision.AlexNet(10, width=16), 4, 96, 10)


def vgg19(full):
    if full:
        return classifier(vision.VGG19(), 4, 224, 1000)
    return classifier(vision.VGG19(10, width=16, image=32), 4, 32, 10)


def resnet18(full, batch=16):
    if full:
        return classifier(vision.ResNet(vision.BasicBlock, (2, 2, 2, 2)), batch, 224, 1000)
    return classifier(vision.ResNet(vision.BasicBlock, (2, 2, 2, 2), 10, 8), 8, 64, 10)


def resnet50(full, **options):
    if full:
        return classifier(vision.ResNet(vision.Bottleneck, (3, 4, 6, 3)), 8, 224, 1000, **options)
    return classifier(vision.ResNet(vision.Bottleneck, (1, 1, 1, 1), 10, 8), 8, 64, 10, **options)


def resnet50_bf16(full):
    return resnet50(full, precision=mixed)


def mobilenet_v1(full):
    if full:
        return classifier(vision.MobileNetV1(), 16, 224, 1000)
    return classifier(vision.MobileNetV1(10, 8), 8, 96, 10, lr=1e-4)


def mobilenet_v2(full):
    if full:
        return classifier(vision.MobileNetV2(), 16, 224, 1000)
    return classifier(vision.MobileNetV2(10, 4), 8, 96, 10, lr=1e-4)


def convnet(full):
    """The demo's network, optimizer and loss."""
    model, batch = vision.ConvNet(), 32 if full else 8
    images, labels = torch.randn(batch, 1, 28, 28), torch.randint(0, 10, (batch,))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.004, weight_decay=0.02)
    loss = nn.CrossEntropyLoss(label_smoothing=0.05)
    return training(model, optimizer, lambda: loss(model(images), labels), batch, "images")


def vit_tiny(full):
    model = transformer.ViT() if full else transformer.ViT(32, 8, 24, 3, 3, 10)
    batch, image, classes = (16, 224, 1000) if full else (4, 32, 10)
    images, labels = torch.randn(batch, 3, image, image), torch.randint(0, classes, (batch,))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.05)
    return training(
        model, optimizer, lambda: F.cross_entropy(model(images), labels), batch, "images"
    )


def gpt(full, batch=8, dtype=torch.float32):
    batch, length, vocabulary = (batch, 256, 65) if full else (2, 16, 65)
    model = transformer.GPT(vocabulary, length, *((384, 6, 6) if full else (24, 2, 3))).to(dtype)
    text = torch.randint(0, vocabulary, (batch, length + 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)

    def loss():
        return F.cross_entropy(model(text[:, :-1]).flatten(0, 1).float(), text[:, 1:].flatten())

    return training(model, optimizer, loss, batch * length, "tokens")


def gpt_bf16(full):
    return gpt(full, dtype=torch.bfloat16)


def bert_bf16(full):
    """BERT-small under autocast; a seventh of the tokens is predicted."""
    batch, length, vocabulary = (8, 128, 30522) if full else (2, 16, 65)
    model = transformer.BERT(vocabulary, length, *((512, 4, 8) if full else (24, 2, 3)))
    text = torch.randint(1, vocabulary, (batch, length))
    masked = torch.arange(length) % 7 == 3
    tokens = text.masked_fill(masked, 0)
    targets = text.masked_fill(~masked, -100).flatten()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)

    def loss():
        with mixed():
            scores = model(tokens)
        return F.cross_entropy(scores.flatten(0, 1).float(), targets)

    return training(model, optimizer, loss, batch * length, "tokens")


def gnmt(full):
    vocabulary, width, batch, length = (8000, 512, 16, 24) if full else (50, 16, 4, 6)
    model = sequence.GNMT(vocabulary, width)
    source = torch.randint(0, vocabulary, (length, batch))
    target = torch.randint(0, vocabulary, (length + 1, batch))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

    def loss():
        scores = model(source, target[:-1])
        return F.cross_entropy(scores.flatten(0, 1), target[1:].flatten(), label_smoothing=0.1)

    return training(model, optimizer, loss, 2 * batch * length, "tokens")


def lstm_bf16(full):
    vocabulary, width, batch, length = (10000, 650, 20, 35) if full else (50, 16, 4, 6)
    model = sequence.RecurrentLanguageModel(vocabulary, width).to(torch.bfloat16)
    text = torch.randint(0, vocabulary, (length + 1, batch))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)

    def loss():
        scores = model(text[:-1])
        return F.cross_entropy(scores.flatten(0, 1).float(), text[1:].flatten())

    return training(model, optimizer, loss, batch * length, "tokens")


def ncf(full):
    users, items, batch = (138493, 26744, 16384) if full else (50, 40, 64)
    model = recommendation.NeuMF(users, items)
    user, item = torch.randint(0, users, (batch,)), torch.randint(0, items, (batch,))
    liked = torch.randint(0, 2, (batch,)).float()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

    def loss():
        return F.binary_cross_entropy_with_logits(model(user, item), liked)

    return training(model, optimizer, loss, batch, "samples")


def decoding(full, dtype):
    """A text of one sample read token by token with a cache; the loss is that of its tokens."""
    vocabulary, length = (50257, 16) if full else (61, 8)
    model = transformer.GPT(vocabulary, 1024, *((768, 12, 12) if full else (24, 2, 3)))
    model = model.to(dtype).eval()
    text = torch.randint(0, vocabulary, (1, length + 1))

    @torch.no_grad()
    def step():
        caches, losses = model.new_caches(1, length), []
        for i in range(length):
            scores = model(text[:, i : i + 1], caches, i)[:, -1]
            scores.argmax(1).item()
            losses.append(F.cross_entropy(scores.float(), text[:, i + 1]))
        return torch.stack(losses).mean()

    return Workload(model, step, length, "tokens")


def gpt2_decode(full):
    return decoding(full, torch.float32)


def gpt2_decode_bf16(full):
    return decoding(full, torch.bfloat16)


WORKLOADS = {
    f.__name__: f
    for f in (
        alexnet, vgg19, resnet18, resnet50, mobilenet_v1, mobilenet_v2, convnet, vit_tiny, gpt,
        gnmt, ncf, resnet50_bf16, gpt_bf16, bert_bf16, lstm_bf16, gpt2_decode, gpt2_decode_bf16,
    )
}  # fmt: skip


def make(name, full=True, **options):
    torch.manual_seed(0)
    return WORKLOADS[name](full, **options)
