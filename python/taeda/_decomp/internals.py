"""Operators that PyTorch's functions are made of, which programs call by names that begin with _,
and those of its libraries for convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda._library.spelling import define, define_out

from .registry import new

_functional: Any = taeda.nn.functional

# --- linear algebra: results with the decomposition that gave them ---


def _factors(A: Tensor) -> tuple[Tensor, Tensor]:
    """LU and pivots of a matrix, or of its transpose where that is what lies column by column."""
    A = A.detach()
    with_rows = A.is_contiguous() and not A.is_complex()
    return tuple(taeda.linalg.lu_factor_ex(A.mT if with_rows else A)[:2])  # type: ignore


@define("_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)")
def _linalg_det(A: Tensor) -> tuple[Tensor, ...]:
    """The determinant."""
    return taeda.linalg.det(A), *_factors(A)


@define("_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots)")
def _linalg_slogdet(A: Tensor) -> tuple[Tensor, ...]:
    """The sign of the determinant and the logarithm of its absolute value."""
    return *taeda.linalg.slogdet(A), *_factors(A)


@define(
    "_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> "
    "(Tensor result, Tensor LU, Tensor pivots, Tensor info)"
)
def _linalg_solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False
) -> tuple[Tensor, ...]:
    """The solution of a linear system, and whether it has one."""
    result, info = taeda.linalg.solve_ex(A, B, left=left, check_errors=check_errors)
    LU, pivots = taeda.linalg.lu_factor_ex(A.detach())[:2]
    return result, LU, pivots, info


for _op in (_linalg_det, _linalg_slogdet, _linalg_solve_ex):
    define_out(_op)

# What a nonzero info of LAPACK's means, by how the functions' names begin.
_UNCONVERGED = (
    "The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
    "repeated {} (error code: {{}})."
)
_FAILURES = {
    "inv": "The diagonal element {} is zero, the inversion could not be completed because the "
    "input matrix is singular.",
    "cholesky": "The factorization could not be completed because the input is not positive-"
    "definite (the leading minor of order {} is not positive-definite).",
    "solve": "The solver failed because the input matrix is singular.",
    "svd": _UNCONVERGED.format("singular values"),
    "eig": _UNCONVERGED.format("eigenvalues"),
    "lstsq": "The least squares solution could not be computed because the input matrix does not "
    "have full rank (error code: {}).",
    "lu_factor": "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero.",
}


@define("_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()")
def _linalg_check_errors(info: Tensor, api_name: str, *, is_matrix: bool) -> None:
    """Raises what a nonzero element of `info` means, naming the function and the matrix."""
    codes = [info.item()] if is_matrix else info.reshape(-1).tolist()
    at, code = next(((i, code) for i, code in enumerate(codes) if code), (0, 0))
    if not code:
        return
    where = f"{api_name}: " if is_matrix else f"{api_name}: (Batch element {at}): "
    name = api_name.removeprefix("torch.").removeprefix("linalg.")
    kind = next((kind for kind in _FAILURES if name.startswith(kind)), None)
    if code < 0 or kind is None:
        raise RuntimeError(f"{where}Unknown error code: {code}.")
    error: Any = RuntimeError if kind == "lu_factor" else taeda.linalg.LinAlgError
    raise error(where + _FAILURES[kind].format(code))


# --- histograms ---

_COUNTS = "*, float[]? range=None, Tensor? weight=None, bool density=False"


@define(f"_histogramdd_bin_edges(Tensor self, int[] bins, {_COUNTS}) -> Tensor[]")
def _histogramdd_bin_edges(self: Tensor, bins: Any, **options: Any) -> list[Tensor]:
    """The edges of histogramdd's bins."""
    return [*taeda.histogramdd(self, bins, **options).bin_edges]


@define(f"_histogramdd_from_bin_cts(Tensor self, int[] bins, {_COUNTS}) -> Tensor")
@define(
    "_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, "
    "bool density=False) -> Tensor"
)
def _histogramdd_counts(self: Tensor, bins: Any, **options: Any) -> Tensor:
    """The counts of histogramdd's bins."""
    return taeda.histogramdd(self, bins, **options).hist


# --- losses ---


def _log_alpha(
    log_probs: Tensor, labels: Tensor, inputs: Tensor, lengths: Tensor, blank: int
) -> Tensor:
    """(batch, frames, 2 labels + 1): the logarithms of the probabilities with which the labels up
    to one, with blanks between and around them, are read from the frames up to one; -inf behind
    the end of a sequence."""
    frames, batch, _ = log_probs.shape
    count = 2 * int(lengths.max()) + 1
    read = labels.new_full((batch, count), blank)
    read[:, 1::2] = labels[:, : count // 2]
    may_skip = (read[:, 2:] != blank) & (read[:, 2:] != read[:, :-2])
    never = log_probs.new_full((batch, 2), -taeda.inf)
    at = taeda.arange(count, device=log_probs.device)
    ways = taeda.where(at < 2, 0.0, -taeda.inf).to(log_probs.dtype).expand(batch, count)
    rows: list[Tensor] = []
    for frame in range(frames):
        if frame:
            last = taeda.cat([never, rows[-1]], 1)
            skipped = taeda.where(may_skip, last[:, 2:-2], -taeda.inf)
            two = taeda.cat([never, skipped], 1)[:, :count]
            ways = taeda.stack([last[:, 2:], last[:, 1:-1], two]).logsumexp(0)
        rows.append(ways + log_probs[frame].gather(1, read))
    inside = taeda.arange(frames, device=log_probs.device) < inputs.unsqueeze(1)
    inside = inside.unsqueeze(2) & (at <= 2 * lengths.unsqueeze(1)).unsqueeze(1)
    return taeda.stack(rows, 1).masked_fill(~inside, -taeda.inf)


_CTC_LOSS = "int blank=0, bool zero_infinity=False) -> (Tensor, Tensor)"


@new(
    "_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, "
    + _CTC_LOSS
)
@new(
    "_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, "
    f"Tensor target_lengths, {_CTC_LOSS}"
)
def _ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    zero_infinity: bool = False,
) -> tuple[Tensor, Tensor]:
    """The loss of each sequence, and what its recursion over frames has found."""
    if log_probs.dim() != 3:
        raise RuntimeError(
            f"_ctc_loss: expected log_probs of 3 dimensions, got {log_probs.dim()} dimensions"
        )
    if targets.is_floating_point() or targets.is_complex():
        raise RuntimeError(f"_ctc_loss: expected targets of integers, got {targets.dtype}")
    inputs, lengths = (
        taeda.as_tensor(given, device=log_probs.device).long()
        for given in (input_lengths, target_lengths)
    )
    losses, labels = _C._by_owner["torch"]["_ctc_losses"](
        log_probs, targets, inputs, lengths, blank, False
    )  # zero_infinity is of the gradient, which is 0 in either case
    return losses, _log_alpha(log_probs.detach(), labels, inputs, lengths, blank)


# --- sums of products ---


@new(
    "_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, "
    "int[] sumdim, int unroll_dim=1) -> Tensor"
)
def _trilinear(
    i1: Tensor,
    i2: Tensor,
    i3: Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Tensor:
    """The products of three tensors, each of size 1 in new dimensions, summed over `sumdim`."""
    count = i1.dim() + len(expand1)
    if not 0 <= unroll_dim < count:
        raise RuntimeError(f"unroll_dim must be in [0,{count - 1}], but got {unroll_dim}")
    expand1, expand2, expand3, sumdim = (
        [d % count for d in dims] for dims in (expand1, expand2, expand3, sumdim)
    )
    operands: list[Any] = []
    for tensor, new_dims in ((i1, expand1), (i2, expand2), (i3, expand3)):
        dims = [d for d in range(count) if d not in new_dims]
        if len(dims) != tensor.dim():
            raise RuntimeError(
                f"_trilinear: expected tensors of {count} dimensions with the new ones, but got "
                f"{tensor.dim()} and {len(new_dims)} new ones"
            )
        if not (i1.numel() and i2.numel() and i3.numel()):
            tensor = tensor.to(i1.dtype)  # nothing is multiplied
        operands += [tensor, dims]
    kept = [d for d in range(count) if d not in sumdim]
    found = {d for dims in operands[1::2] for d in dims}
    result = taeda.einsum(*operands, [d for d in kept if d in found])
    for at, d in enumerate(kept):
        result = result if d in found else result.unsqueeze(at)
    if not taeda.can_cast(result.dtype, i1.dtype):
        raise RuntimeError(f"_trilinear: {result.dtype} can't be cast to {i1.dtype}, i1's dtype")
    return result.to(i1.dtype)


# --- optimizers ---

_LISTS = "Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, Tensor{}[] state_steps"
_ADAGRAD = (
    "float lr_decay, float weight_decay, float eps, bool maximize, Tensor? grad_scale=None, "
    "Tensor? found_inf=None) -> ()"
)


@new(f"_fused_adagrad_({_LISTS.format('(d!)')}, *, float lr, {_ADAGRAD}")
@new(f"_fused_adagrad_.tensor_lr({_LISTS.format('')}, *, Tensor lr, {_ADAGRAD}")
def _fused_adagrad_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    state_sums: Sequence[Tensor],
    state_steps: Sequence[Tensor],
    *,
    lr: Any,
    lr_decay: float,
    weight_decay: float,
    eps: float,
    maximize: bool,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None:
    """A step of Adagrad (Duchi, Hazan and Singer, 2011), its counters advanced by the caller."""
    if found_inf is not None and found_inf.item():
        return
    with taeda.no_grad():
        for p, gradient, total, step in zip(params, grads, state_sums, state_steps, strict=True):
            g = gradient if grad_scale is None else gradient.div_(grad_scale)
            g = -g if maximize else g
            g = g.add(p, alpha=weight_decay) if weight_decay else g
            total.addcmul_(g, g)
            p.sub_(lr / (1 + (step - 1) * lr_decay) * g / (total.sqrt() + eps))


# --- copies of views ---


@new("_conj_copy(Tensor self) -> Tensor")
def _conj_copy(x: Tensor) -> Tensor:
    """The conjugates."""
    return x.conj_physical() if x.is_complex() else x.clone()


@new("_neg_view_copy(Tensor self) -> Tensor")
def _neg_view_copy(x: Tensor) -> Tensor:
    """The negatives."""
    return x.neg()


@new("_reshape_alias_copy(Tensor self, SymInt[] size, SymInt[] stride) -> Tensor")
def _reshape_alias_copy(x: Tensor, size: Sequence[int], stride: Sequence[int]) -> Tensor:
    """Elements by the strides of a view."""
    return x.as_strided(size, stride).clone(memory_format=taeda.contiguous_format)


# --- layers: convolutions without groups or with one a channel, padding by its number ---

_WEIGHT = "Tensor self, Tensor weight, SymInt[{n}] kernel_size, Tensor? bias"
_STEPS = "SymInt[{n}] stride=1, SymInt[{n}] padding=0"


def _convolutions(n: int) -> None:
    convolve = getattr(_functional, f"conv{n}d")
    transposed = getattr(_functional, f"conv_transpose{n}d")
    weight, steps = _WEIGHT.format(n=n), _STEPS.format(n=n)

    @new(f"slow_conv_dilated{n}d({weight}=None, {steps}, SymInt[{n}] dilation=1) -> Tensor")
    def dilated(
        x: Tensor, w: Tensor, size: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1,
    ) -> Tensor:  # fmt: skip
        """A convolution."""
        return convolve(x, w, bias, stride, padding, dilation)

    @new(
        f"slow_conv_transpose{n}d({weight}=None, {steps}, SymInt[{n}] output_padding=0, "
        f"SymInt[{n}] dilation=1) -> Tensor"
    )
    def transpose(
        x: Tensor, w: Tensor, size: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, dilation: Any = 1,
    ) -> Tensor:  # fmt: skip
        """A transposed convolution."""
        return transposed(x, w, bias, stride, padding, output_padding, 1, dilation)

    name = "_conv_depthwise2d" if n == 2 else "conv_depthwise3d"
    rest = ", ".join(f"SymInt[{n}] {word}" for word in ("stride", "padding", "dilation"))

    @new(f"{name}({weight}, {rest}) -> Tensor")
    def depthwise(
        x: Tensor, w: Tensor, size: Any, bias: Any, stride: Any, padding: Any, dilation: Any
    ) -> Tensor:
        """A convolution of each channel for itself."""
        return convolve(x, w, bias, stride, padding, dilation, x.size(-n - 1))


for _n in (2, 3):
    _convolutions(_n)


@new("_pad_enum(Tensor self, SymInt[] pad, int mode, float? value=None) -> Tensor")
def _pad_enum(x: Tensor, pad: Sequence[int], mode: int, value: float | None = None) -> Tensor:
    """Padding, `mode` 0 to 3: "reflect", "replicate", "circular", "constant"."""
    if not 0 <= mode <= 3:
        raise RuntimeError(f"Unrecognised padding mode {mode}")
    return _functional.pad(x, pad, ("reflect", "replicate", "circular", "constant")[mode], value)


@define(
    "rrelu_with_noise_(Tensor(a!) self, Tensor(b!) noise, Scalar lower=0.125, "
    "Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) -> "
    "Tensor(a!)"
)
def rrelu_with_noise_(x: Tensor, noise: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """rrelu_with_noise into the tensor."""
    return x.copy_(taeda.ops.aten.rrelu_with_noise(x.clone(), noise, *args, **kwargs))
