"""The kernels of the suite `kernels` by family: docs/benchmarks.md has one row for each."""

from __future__ import annotations

import re

# The first expression that finds something in a case's name is its family.
FAMILIES = {
    "copies": r"^copy,|_copy of|(slice|diagonal|select|strided)_scatter of",
    "Fourier transforms": r"^(fft\.|i?stft)",
    "linear algebra": r"^(linalg\.|ormqr)",
    "torch.special, igamma": r"^(special\.|igamma)",
    "signal windows": r"^windows",
    "masked reductions": r"^masked\.",
    "lists of tensors": r"^_foreach",
    "statistics, histograms": r"^(cov|corrcoef|gradient|renorm|histogram|logcumsum|nan|quantile"
    r"|[cp]dist|hash|trapezoid)",
    "matrix products in bf16": r"in bf16,",
    "matrix products, Linear": r"^(x @ |bmm|linear|vdot)",
    "attention": r"^(causal )?attention",
    "LSTM, GRU": r"^(LSTM|GRU)",
    "depthwise convolutions": r"^depthwise",
    "convolutions": r"^\dx\d",
    "normalization": r"^(batch|layer)_norm",
    "max pooling": r"^max_pool",
    "softmax, cross entropy, logsumexp": r"softmax|cross_entropy|logsumexp",
    "activations: relu, gelu, dropout": r"^(relu|gelu|dropout)",
    "exp, powers, special functions": r"^(exp|tanh|erf|lgamma|digamma|x \*\* )",
    "integer division": r"^x (//|%) ",
    "conversions, comparisons, where": r"^\w+ to |^(x > |where$|masked_fill|clamp)",
    "transposed and strided operands": r"contiguous|::2|\.t\(\)|flip",
    "elements: add, broadcasting": r"^(x \+|x\.add|add\()",
    "joining and repeating": r"^(cat|stack|repeat|roll|tril)",
    "sums, means, norms": r"^(sum|complex sum|mean|var|norm|cumsum|count_nonzero|any)",
    "max, argmax, cummax": r"^(max|argmax|cummax)",
    "sorting and selecting": r"sort|topk|median|kthvalue|unique",
    "searching and counting": r"search|bincount|isin|histc|nonzero|where\(",
    "indexing, gather, scatter": r"gather|scatter|index|segment|\[mask\]|\[i, j\]",
    "embeddings": r"^embedding",
    "resizing, grid_sample": r"^(interpolate|grid_sample)",
    "random numbers": r"^(rand|bernoulli|poisson|binomial|_standard_gamma|_sample)",
    "filling": r"^(arange|zeros)",
    "optimizer steps": r" step,",
}


def family(name: str) -> str:
    found = (title for title, pattern in FAMILIES.items() if re.search(pattern, name))
    return next(found, "others")
