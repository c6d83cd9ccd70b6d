"""Layers and losses as functions of torch's own, which spell their arguments otherwise than F's.

A reduction is a number: 0 for none, which is what PyTorch takes if none is given, 1 for the mean, 2
for the sum. ``cudnn_enabled`` has no effect.
"""

from __future__ import annotations

import inspect
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda.nn import functional as F


def _word(reduction: int) -> str:
    if reduction not in (0, 1, 2):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return ("none", "mean", "sum")[reduction]


@_C._overridable
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`F.bilinear`."""
    return F.bilinear(input1, input2, weight, bias)


@_C._overridable
def affine_grid_generator(theta: Tensor, size: Any, align_corners: bool) -> Tensor:
    """`F.affine_grid`."""
    return F.affine_grid(theta, size, align_corners)


@_C._overridable
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`nn.functional.embedding_bag` with other arguments, and what PyTorch keeps beside its result.

    Args:
        weight: ``(num_embeddings, embedding_dim)``.
        indices: all in one row.
        offsets: where each bag begins.
        mode: 0 for the sum, 1 for the mean, 2 for the maximum.

    Returns:
        tuple: a row for each bag; the bag of each index (empty where a sum needs none); the size of
        each bag (0 for sums); for maxima the index that gave each, else the sizes again.

    >>> weight = torch.tensor([[1.0], [2.0], [3.0]])
    >>> torch.embedding_bag(weight, torch.tensor([0, 2, 1]), torch.tensor([0, 2]), mode=2)[3]
    tensor([[2],
            [1]])
    """
    if mode not in (0, 1, 2):
        raise RuntimeError(f"embedding_bag: mode must be 0 (sum), 1 (mean) or 2 (max), got {mode}")
    if per_sample_weights is not None and mode != 0:
        raise RuntimeError("embedding_bag: per_sample_weights only supported with mode='sum'")
    for name, tensor, dims in (
        ("weight", weight, 2),
        ("input", indices, 1),
        ("offsets", offsets, 1),
    ):
        if tensor.dim() != dims:
            raise RuntimeError(
                f"embedding_bag: {name} has to be a {dims}D Tensor, but got Tensor of dimension "
                f"{tensor.dim()}"
            )
    of_largest = mode == 2
    rows = F.embedding_bag(
        indices, weight, offsets, None, 2, scale_grad_by_freq and not of_largest,
        ("sum", "mean", "max")[mode], sparse and not of_largest, per_sample_weights,
        include_last_offset, padding_idx,
    )  # fmt: skip
    padding = None if padding_idx is None else padding_idx % weight.size(0)
    return rows, *_bags_of_indices(weight, indices, offsets, rows.detach(), mode, padding)


def _bags_of_indices(
    weight: Tensor, indices: Tensor, offsets: Tensor, rows: Tensor, mode: int, padding: int | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The bags of the indices, their sizes, and the indices of maxima or the sizes again."""
    dtype = taeda.promote_types(indices.dtype, offsets.dtype)
    starts, at = offsets[: rows.size(0)], taeda.arange(indices.numel(), device=indices.device)
    bag = (taeda.searchsorted(starts.contiguous(), at, right=True) - 1).to(dtype)
    if mode == 0:  # what PyTorch's quick sums of rows without gaps leave out
        quick = weight.dtype in (taeda.float32, taeda.float16, taeda.bfloat16)
        quick = quick and padding is None and weight.stride(1) == 1
        sizes = taeda.zeros_like(starts if weight.requires_grad else offsets, dtype=dtype)
        return bag[:0] if quick else bag, sizes, sizes.clone()
    counts = taeda.ones_like(bag) if padding is None else (indices != padding).to(dtype)
    sizes = taeda.zeros_like(starts, dtype=dtype).index_add(0, bag, counts)
    if mode == 1 or not at.numel():
        return bag, sizes, sizes.clone() if mode == 1 else taeda.zeros_like(rows, dtype=dtype)
    found = weight.detach().index_select(0, indices) == rows.index_select(0, bag)
    found = found & (counts != 0).unsqueeze(1)
    place = at.unsqueeze(1).expand_as(found).masked_fill(~found, at.numel())
    first = taeda.full_like(rows, at.numel(), dtype=taeda.int64)
    first = first.scatter_reduce(0, bag.long().unsqueeze(1).expand_as(place), place, "amin")
    largest = indices.to(dtype)[first.clamp(max=at.numel() - 1)]
    return bag, sizes, largest.masked_fill(first == at.numel(), 0)


@_C._overridable
def grid_sampler_2d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`torch.grid_sampler` of images.

    >>> torch.grid_sampler_2d(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 1, 2), 0, 0, False)
    tensor([[[[1.]]]])
    """
    return taeda.grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@_C._overridable
def _grid_sampler_2d_cpu_fallback(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`torch.grid_sampler` of images, by PyTorch's name of its kernel for any layout."""
    return taeda.grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@_C._overridable
def grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`torch.grid_sampler` of volumes.

    >>> torch.grid_sampler_3d(torch.ones(1, 1, 2, 2, 2), torch.zeros(1, 1, 1, 1, 3), 0, 0, False)
    tensor([[[[[1.]]]]])
    """
    return taeda.grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@_C._overridable
def _native_batch_norm_legit(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, *rest: Any, **options: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """`torch.native_batch_norm` as PyTorch spells it for its compiler: ``running_mean, running_var,
    training, momentum, eps`` with statistics to be written, or ``training, momentum, eps`` without.

    >>> torch._native_batch_norm_legit(torch.tensor([[1.0], [3.0]]), None, None, True, 0.1, 0.0)[1]
    tensor([2.])
    """
    if len(rest) + len(options.keys() - {"out"}) == 3:
        rest = (None, None, *rest)
        if options.get("training", True) is False or (len(rest) > 2 and rest[2] is False):
            raise RuntimeError("running_mean and running_var must be defined in evaluation mode")
    return taeda.native_batch_norm(input, weight, bias, *rest, **options)


@_C._overridable
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """The result of dropout and the bool mask of what it kept."""
    if train is False or input.numel() == 0:
        return input, taeda.ones_like(input, dtype=taeda.bool)
    if p == 1:
        return taeda.zeros_like(input), taeda.zeros_like(input, dtype=taeda.bool)
    mask = taeda.empty_like(input, dtype=taeda.bool).bernoulli_(1 - p)
    return input * mask * (1 / (1 - p)), mask


@_C._overridable
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norm over all dimensions but `dim`, which are kept; over all for -1."""
    if dim == -1:
        return v.norm(pow)
    if not -v.dim() <= dim < v.dim():
        raise IndexError(f"norm_except_dim: dim {dim} is out of range for {v.dim()} dimensions")
    dims = [d for d in range(v.dim()) if d != dim % v.dim()]
    return taeda.linalg.vector_norm(v, pow, dims, keepdim=True) if dims else v.abs()


@_C._overridable
def conv_tbc(self: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolution of (time, batch, channels) with (width, channels in, channels out).

    >>> torch.conv_tbc(torch.ones(3, 1, 2), torch.ones(2, 2, 1), torch.zeros(1)).flatten()
    tensor([4., 4.])
    """
    if self.dim() != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight.dim() != 3:
        raise RuntimeError(
            "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels."
        )
    if bias.dim() != 1:
        raise RuntimeError("Bias must be 1-D")
    if self.size(2) != weight.size(1):
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor.")
    images = F.conv1d(self.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return images.permute(2, 0, 1).contiguous()


@_C._overridable
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = 0,
) -> Tensor:
    """`F.binary_cross_entropy_with_logits`."""
    return F.binary_cross_entropy_with_logits(
        input, target, weight, reduction=_word(reduction), pos_weight=pos_weight
    )


@_C._overridable
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """`F.cosine_embedding_loss`."""
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=_word(reduction))


@_C._overridable
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0
) -> Tensor:
    """`F.hinge_embedding_loss`."""
    return F.hinge_embedding_loss(input, target, margin, reduction=_word(reduction))


@_C._overridable
def kl_div(
    input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False
) -> Tensor:
    """`F.kl_div`."""
    return F.kl_div(input, target, reduction=_word(reduction), log_target=log_target)


@_C._overridable
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """`F.margin_ranking_loss`."""
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=_word(reduction))


@_C._overridable
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    """`F.poisson_nll_loss`."""
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_word(reduction))


@_C._overridable
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 0,
) -> Tensor:
    """`F.triplet_margin_loss`."""
    return F.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=_word(reduction)
    )


@_C._overridable
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 0,
    zero_infinity: bool = False,
) -> Tensor:
    """`F.ctc_loss`."""
    return F.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, _word(reduction), zero_infinity
    )


def _describe_like_functional() -> None:
    """Docstrings: those of the functions of F, and what is different here."""
    for name, function in list(globals().items()):
        if getattr(function, "__doc__", None) == f"`F.{name}`.":
            function.__doc__ = (
                f"`nn.functional.{name}` with arguments as this signature has them: `reduction` is "
                "0 for none, 1 for the mean, 2 for the sum; `cudnn_enabled` has no effect. There:\n"
                f"\n{inspect.getdoc(getattr(F, name))}"
            )


_describe_like_functional()
