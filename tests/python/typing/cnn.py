"""A convolutional net with blocks in a ModuleList, saved and loaded again."""

from __future__ import annotations

import io
from collections import OrderedDict
from itertools import pairwise
from typing import Any

import taeda as torch
import taeda.nn as nn
import taeda.nn.functional as F
from taeda import Tensor
from taeda.optim.lr_scheduler import LambdaLR, OneCycleLR, ReduceLROnPlateau, SequentialLR, StepLR
from taeda.utils.data import DataLoader, IterableDataset


class Block(nn.Module):
    def __init__(self, channels_in: int, channels_out: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, 3, stride=stride, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels_out)
        self.act = nn.ReLU(inplace=True)
        self.skip: nn.Module
        if stride != 1 or channels_in != channels_out:
            self.skip = nn.Sequential(
                nn.Conv2d(channels_in, channels_out, kernel_size=1, stride=stride),
                nn.BatchNorm2d(channels_out),
            )
        else:
            self.skip = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.act(self.norm(self.conv(x)) + self.skip(x))
        return y


class Net(nn.Module):
    def __init__(self, widths: tuple[int, ...] = (8, 16), classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            OrderedDict([("conv", nn.Conv2d(1, widths[0], (3, 3))), ("act", nn.GELU())])
        )
        self.blocks = nn.ModuleList([Block(a, b, stride=2) for a, b in pairwise(widths)])
        self.heads = nn.ModuleDict({"main": nn.Linear(widths[-1], classes)})
        self.pool = nn.AdaptiveAvgPool2d((1, 1))

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images)
        for block in self.blocks:
            x = block(x)
        x = torch.flatten(self.pool(x), start_dim=1)
        return F.log_softmax(self.heads["main"](x), dim=-1)


class Noise(IterableDataset[dict[str, Tensor]]):
    def __iter__(self) -> Any:
        for label in range(32):
            yield {"image": torch.randn(1, 12, 12), "label": torch.tensor(label % 10)}


def init(module: nn.Module) -> None:
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def train() -> list[float]:
    model = Net()
    model.apply(init)
    first: nn.Module = model.stem[0]
    assert (
        isinstance(model.stem[-1], nn.GELU) and len(model.blocks) == 1 and len(model.stem[:1]) == 1
    )
    decayed = [p for n, p in model.named_parameters() if n.endswith("weight")]
    others = [p for n, p in model.named_parameters() if not n.endswith("weight")]
    optimizer = torch.optim.SGD(
        [{"params": decayed, "weight_decay": 1e-4}, {"params": others, "lr": 0.01}],
        lr=0.05,
        momentum=0.9,
        nesterov=True,
    )
    schedules = [
        LambdaLR(optimizer, lambda epoch: 0.95**epoch),
        SequentialLR(optimizer, [StepLR(optimizer, 2), StepLR(optimizer, 3, gamma=0.5)], [1]),
        OneCycleLR(optimizer, max_lr=[0.1, 0.2], total_steps=8),
    ]
    plateau = ReduceLROnPlateau(optimizer, mode="min", factor=0.5, patience=1)
    losses: list[float] = []
    for batch in DataLoader(Noise(), batch_size=16, num_workers=0):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output = model(batch["image"])
        loss = F.nll_loss(output.float(), batch["label"], reduction="mean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedules[0].step()
        losses.append(loss.item())
        plateau.step(losses[-1])
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    saved = torch.load(file, map_location="cpu", weights_only=True)
    keys = model.load_state_dict(saved["model"])
    assert not keys.missing_keys and not keys.unexpected_keys
    optimizer.load_state_dict(saved["optimizer"])
    assert isinstance(first, nn.Conv2d) and first.weight.shape == torch.Size([8, 1, 3, 3])
    lrs: list[float] = schedules[0].get_last_lr()
    total = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert total > 0 and len(lrs) == 2
    return losses


if __name__ == "__main__":
    print(train())
