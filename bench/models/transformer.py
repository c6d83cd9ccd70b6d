"""Transformers: an image classifier, language models in training, and one that writes."""

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    """Multi-head self-attention (Vaswani et al. 2017); with a cache, of the newest tokens."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, cache=None, position=0):
        batch, length, width = x.shape
        split = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4).unbind(0)
        if cache is not None:
            end = position + length
            cache[0][:, :, position:end] = k
            cache[1][:, :, position:end] = v
            k, v = cache[0][:, :, :end], cache[1][:, :, :end]
        causal = self.causal and length > 1
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """Pre-norm block (Radford et al. 2019)."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x, cache=None, position=0):
        x = x + self.attention(self.norm1(x), cache, position)
        return x + self.mlp(self.norm2(x))


class PostNormBlock(nn.Module):
    """The block of the first transformers: each part's sum with its input is normalized."""

    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, False)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.mlp(x))


class BERT(nn.Module):
    """Devlin et al., "BERT", 2018: an encoder that predicts the tokens that were masked."""

    def __init__(self, vocabulary, length, width, layers, heads):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(torch.randn(length, width) * 0.02)
        self.norm = nn.LayerNorm(width)
        self.blocks = nn.Sequential(*(PostNormBlock(width, heads) for _ in range(layers)))
        self.transform = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        nn.init.normal_(self.embedding.weight, std=0.02)

    def forward(self, tokens):
        x = self.blocks(self.norm(self.embedding(tokens) + self.position))
        return F.linear(self.transform(x), self.embedding.weight, self.bias)


class ViT(nn.Module):
    """Dosovitskiy et al., "An image is worth 16x16 words", 2020; tiny: 12 layers of 192."""

    def __init__(self, image=224, patch=16, width=192, layers=12, heads=3, classes=1000):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.position = nn.Parameter(torch.randn(1, (image // patch) ** 2 + 1, width) * 0.02)
        self.blocks = nn.ModuleList(Block(width, heads, False) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.position
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class GPT(nn.Module):
    """Radford et al., "Language models are unsupervised multitask learners", 2019."""

    def __init__(self, vocabulary, length, width, layers, heads):
        super().__init__()
        self.width, self.heads = width, heads
        self.embedding = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads, True) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.apply(self._init)

    @staticmethod
    def _init(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)

    def forward(self, tokens, caches=None, position=0):
        indices = torch.arange(position, position + tokens.shape[1])
        x = self.embedding(tokens) + self.position(indices)
        for i, block in enumerate(self.blocks):
            x = block(x, None if caches is None else caches[i], position)
        return F.linear(self.norm(x), self.embedding.weight)

    def new_caches(self, batch, length):
        """Keys and values of all blocks, to be filled token by token."""
        weight = self.embedding.weight
        sizes = (batch, self.heads, length, self.width // self.heads)
        return [(weight.new_zeros(sizes), weight.new_zeros(sizes)) for _ in range(len(self.blocks))]
