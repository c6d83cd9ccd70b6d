"""A transformer that predicts the next letter, with attention by hand and by the library."""

from __future__ import annotations

from dataclasses import dataclass

import taeda as torch
import taeda.nn as nn
import taeda.nn.functional as F
from taeda import Tensor


@dataclass
class Config:
    letters: int = 16
    width: int = 32
    heads: int = 4
    layers: int = 2
    length: int = 24
    dropout: float = 0.0


class Attention(nn.Module):
    mask: Tensor

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)
        mask = torch.tril(torch.ones(config.length, config.length, dtype=torch.bool))
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x: Tensor, by_hand: bool = False) -> Tensor:
        n, length, width = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (t.view(n, length, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        if by_hand:
            scores = torch.einsum("bhqd,bhkd->bhqk", q, k) * q.size(-1) ** -0.5
            scores = scores.masked_fill(~self.mask[:length, :length], float("-inf"))
            y = scores.softmax(dim=-1) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(n, length, width))


class Layer(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.norms = nn.ModuleList(nn.LayerNorm(config.width) for _ in range(2))
        self.mlp = nn.Sequential(
            nn.Linear(config.width, 4 * config.width),
            nn.GELU(approximate="tanh"),
            nn.Linear(4 * config.width, config.width),
            nn.Dropout(config.dropout),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norms[0](x))
        return x + self.mlp(self.norms[1](x))


class Model(nn.Module):
    def __init__(self, config: Config | None = None) -> None:
        super().__init__()
        self.config = config or Config()
        self.embed = nn.Embedding(self.config.letters, self.config.width)
        self.positions = nn.Parameter(torch.zeros(self.config.length, self.config.width))
        self.layers = nn.Sequential(*(Layer(self.config) for _ in range(self.config.layers)))
        self.head = nn.Linear(self.config.width, self.config.letters, bias=False)
        self.head.weight = self.embed.weight
        nn.init.normal_(self.embed.weight, std=0.02)

    def forward(
        self, tokens: Tensor, targets: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        x = self.embed(tokens) + self.positions[: tokens.size(1)]
        logits = self.head(self.layers(x))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)

    @torch.no_grad()
    def generate(
        self, tokens: Tensor, count: int, temperature: float = 1.0, top: int = 4
    ) -> Tensor:
        for _ in range(count):
            logits, _ = self(tokens[:, -self.config.length :])
            logits = logits[:, -1, :] / temperature
            best = torch.topk(logits, top)
            logits[logits < best.values[:, [-1]]] = -torch.inf
            following = torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)
            tokens = torch.cat((tokens, following), dim=1)
        return tokens


def train(steps: int = 3) -> float:
    torch.manual_seed(0)
    model = Model()
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(32, 4, dim_feedforward=64, batch_first=True), num_layers=1
    )
    many = nn.MultiheadAttention(32, 4, batch_first=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.99))
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=2)
    last, logits = 0.0, torch.zeros(1, 1)
    for _ in range(steps):
        tokens = torch.randint(16, (4, 25))
        logits, loss = model(tokens[:, :-1], tokens[:, 1:])
        assert loss is not None and logits.requires_grad
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        warm.step()
        last = loss.item()
    values, indices = logits.max(dim=-1)
    assert values.shape == indices.shape
    x = encoder(torch.randn(2, 5, 32))
    y, weights = many(x, x, x, need_weights=True)
    assert y.shape == x.shape and weights is not None
    assert model.generate(torch.zeros(1, 1, dtype=torch.long), 4).shape[1] == 5
    return last


if __name__ == "__main__":
    print(train())
