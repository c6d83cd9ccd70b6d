"""Initial values. Each function fills its tensor in place, outside autograd, and returns it.

Random numbers are drawn in PyTorch's order, so the same seed gives the same weights.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from typing import Any, Literal

import taeda
from taeda import _C, Tensor, _near_names

__all__ = [
    "calculate_gain",
    "uniform_",
    "normal_",
    "trunc_normal_",
    "constant_",
    "ones_",
    "zeros_",
    "eye_",
    "dirac_",
    "xavier_uniform_",
    "xavier_normal_",
    "kaiming_uniform_",
    "kaiming_normal_",
    "orthogonal_",
    "sparse_",
    "uniform",
    "normal",
    "constant",
    "eye",
    "dirac",
    "xavier_uniform",
    "xavier_normal",
    "kaiming_uniform",
    "kaiming_normal",
    "orthogonal",
    "sparse",
]

_FanMode = Literal["fan_in", "fan_out"]
_NonlinearityType = str  # those that calculate_gain knows
_UNIT_GAIN = re.compile(r"linear|sigmoid|conv(_transpose)?[123]d")


def _no_grad_uniform_(tensor: Tensor, a: float, b: float, generator: Any = None) -> Tensor:
    with taeda.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def _no_grad_normal_(tensor: Tensor, mean: float, std: float, generator: Any = None) -> Tensor:
    with taeda.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def _no_grad_fill_(tensor: Tensor, val: float) -> Tensor:
    with taeda.no_grad():
        return tensor.fill_(val)


def _no_grad_zero_(tensor: Tensor) -> Tensor:
    with taeda.no_grad():
        return tensor.zero_()


@_C._hint_keywords
def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which weights grow to keep the variance through a nonlinearity.

    1 for linear, convolutions and sigmoid; 5/3 for tanh; sqrt(2) for relu;
    sqrt(2 / (1 + param^2)) for leaky_relu; 3/4 for selu.

    Args:
        nonlinearity: its name in nn.functional.
        param: the slope of ``leaky_relu`` below 0; None: 0.01.

    Raises:
        ValueError: another name, or a slope that is no number.

    >>> torch.nn.init.calculate_gain("leaky_relu", 0.2)
    1.3867504905630728
    """
    if _UNIT_GAIN.fullmatch(nonlinearity):
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, (int, float)) and not isinstance(param, bool):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


@_C._overridable
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fills the tensor with numbers that are uniform in ``[a, b)``.

    Args:
        tensor: what is filled; nothing is recorded for its gradient.
        a, b: the bounds.
        generator: of the random numbers; None: the default one.

    >>> w = torch.nn.init.uniform_(torch.empty(3, 5), -1, 1)
    >>> bool((w.abs() <= 1).all())
    True
    """
    return _no_grad_uniform_(tensor, a, b, generator)


@_C._overridable
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fills the tensor with normally distributed numbers.

    Args:
        tensor: what is filled; nothing is recorded for its gradient.
        mean: their mean.
        std: their standard deviation.
        generator: of the random numbers; None: the default one.

    >>> torch.nn.init.normal_(torch.empty(2, 3), mean=5, std=0)
    tensor([[5., 5., 5.],
            [5., 5., 5.]])
    """
    return _no_grad_normal_(tensor, mean, std, generator)


def _no_grad_trunc_normal_(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any = None
) -> Tensor:
    if tensor.is_meta:
        return tensor
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=3,
        )

    def cdf(x: float) -> float:
        return (1.0 + math.erf((x - mean) / std / math.sqrt(2.0))) / 2.0

    with taeda.no_grad():
        if cdf(b) - cdf(a) > 0.3:
            return _reject_normal(tensor, mean, std, a, b, generator)
        return _reject_uniform(tensor, mean, std, a, b, generator)


@_C._hint_keywords
def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Fills the tensor with normally distributed numbers, of which those outside of ``[a, b]`` are
    drawn again. This is best where the mean lies between the bounds.

    Args:
        tensor: what is filled; nothing is recorded for its gradient.
        mean: the mean before the restriction.
        std: the standard deviation before the restriction.
        a, b: the bounds, absolute and not counted in standard deviations.
        generator: of the random numbers; None: the default one.

    >>> w = torch.nn.init.trunc_normal_(torch.empty(100), std=0.02, a=-0.04, b=0.04)
    >>> bool((w.abs() <= 0.04).all())
    True
    """
    return _no_grad_trunc_normal_(tensor, mean, std, a, b, generator)


def _reject_normal(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any
) -> Tensor:
    """Draws normal values again until all lie between the bounds: for bounds that are wide."""
    low, high = tensor.new_tensor(a).item(), tensor.new_tensor(b).item()  # as the dtype has them
    tensor.normal_(mean, std, generator=generator)
    while True:
        outside = (tensor < low) | (tensor > high)
        if not bool(outside.any()):
            return tensor
        again = taeda.empty_like(tensor).normal_(mean, std, generator=generator)
        tensor.copy_(taeda.where(outside, again, tensor))


def _reject_uniform(
    tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any
) -> Tensor:
    """Draws uniform values and keeps each with its density over the peak's: for narrow bounds."""
    mode = max(a, min(mean, b))
    log_peak = -0.5 * ((mode - mean) / std) ** 2
    pending = taeda.ones(tensor.shape, dtype=taeda.bool, device=tensor.device)
    candidates, chance = taeda.empty_like(tensor), taeda.empty_like(tensor)
    while bool(pending.any()):
        candidates.uniform_(a, b, generator=generator)
        tensor.copy_(taeda.where(pending, candidates, tensor))
        log_density = candidates.sub_(mean).div_(std).pow_(2).mul_(-0.5).sub_(log_peak)
        pending &= chance.uniform_(generator=generator).log_() > log_density
    return tensor


@_C._overridable
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills the tensor with the number ``val``, outside of autograd.

    >>> torch.nn.init.constant_(torch.empty(3), 0.3)
    tensor([0.3000, 0.3000, 0.3000])
    """
    return _no_grad_fill_(tensor, val)


@_C._hint_keywords
def ones_(tensor: Tensor) -> Tensor:
    """Fills the tensor with ones, outside of autograd: the scale of a normalization.

    >>> torch.nn.init.ones_(torch.empty(3))
    tensor([1., 1., 1.])
    """
    return _no_grad_fill_(tensor, 1.0)


@_C._hint_keywords
def zeros_(tensor: Tensor) -> Tensor:
    """Fills the tensor with zeros, outside of autograd: as most layers' biases begin.

    >>> torch.nn.init.zeros_(torch.empty(3))
    tensor([0., 0., 0.])
    """
    return _no_grad_zero_(tensor)


@_C._hint_keywords
def eye_(tensor: Tensor) -> Tensor:
    """Fills a matrix with the identity, so that a linear layer begins by passing its inputs
    through; of a matrix that is not square, as many of them as fit.

    Raises:
        ValueError: the tensor has not two dimensions.

    >>> torch.nn.init.eye_(torch.empty(2, 3))
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with taeda.no_grad():
        tensor.zero_()
        tensor.diagonal().fill_(1)
    return tensor


@_C._hint_keywords
def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fills a convolution's weight with kernels that have a 1 in the middle, so that it begins by
    passing as many channels through unchanged as there are.

    Args:
        tensor: a weight with 3, 4 or 5 dimensions.
        groups: those of the convolution, each of which passes its own channels through.

    Raises:
        ValueError: other numbers of dimensions, or output channels that ``groups`` does not
            divide.

    >>> torch.nn.init.dirac_(torch.empty(2, 2, 3))
    tensor([[[0., 1., 0.],
             [0., 0., 0.]],
    <BLANKLINE>
            [[0., 0., 0.],
             [0., 1., 0.]]])
    """
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tensor.size()
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = sizes[0] // groups
    centre = tuple(size // 2 for size in sizes[2:])
    with taeda.no_grad():
        tensor.zero_()
        for g in range(groups):
            for d in range(min(per_group, sizes[1])):
                tensor[(g * per_group + d, d, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    sizes = tensor.size()
    receptive_field = math.prod(sizes[2:])
    return sizes[1] * receptive_field, sizes[0] * receptive_field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


@_C._hint_keywords
def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fills a weight with numbers from ``U(-a, a)``, ``a = gain sqrt(6 / (fan_in + fan_out))``:
    signals and gradients keep their variance through a linear layer (Glorot and Bengio 2010).

    Args:
        tensor: a weight ``(out, in, ...)`` with at least two dimensions; ``fan_in`` counts the
        inputs that make one output, ``fan_out`` the outputs that one input reaches.
        gain: a factor for the nonlinearity that follows, see `calculate_gain`.
        generator: of the random numbers; None: the default one.

    >>> gain = torch.nn.init.calculate_gain("tanh")
    >>> torch.nn.init.xavier_uniform_(torch.empty(3, 5), gain).shape
    torch.Size([3, 5])
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    bound = math.sqrt(3.0) * std
    return _no_grad_uniform_(tensor, -bound, bound, generator)


@_C._hint_keywords
def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fills a weight with numbers from ``N(0, std^2)``, ``std = gain sqrt(2 / (fan_in +
    fan_out))``: signals and gradients keep their variance through a linear layer (Glorot and
    Bengio 2010).

    Args:
        tensor: a weight ``(out, in, ...)`` with at least two dimensions; ``fan_in`` counts the
        inputs that make one output, ``fan_out`` the outputs that one input reaches.
        gain: a factor for the nonlinearity that follows, see `calculate_gain`.
        generator: of the random numbers; None: the default one.

    >>> gain = torch.nn.init.calculate_gain("tanh")
    >>> torch.nn.init.xavier_normal_(torch.empty(3, 5), gain).shape
    torch.Size([3, 5])
    """
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return _no_grad_normal_(tensor, 0.0, std, generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    """The standard deviation, or None for an empty tensor."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


@_C._overridable
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Fills a weight with numbers from ``U(-b, b)``, ``b = gain sqrt(3 / fan)``: signals keep
    their variance through layers with rectifiers (He, Zhang, Ren and Sun 2015).

    Args:
        tensor: a weight ``(out, in, ...)`` with at least two dimensions.
        a: the slope of the rectifier that follows for numbers below 0; only ``leaky_relu``
            reads it.
        mode: ``"fan_in"`` keeps the variance of what goes forward, ``"fan_out"`` that of
            gradients.
        nonlinearity: whose gain it is, see `calculate_gain`.
        generator: of the random numbers; None: the default one.

    >>> torch.nn.init.kaiming_uniform_(torch.empty(3, 5), nonlinearity="relu").shape
    torch.Size([3, 5])
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return _no_grad_uniform_(tensor, -bound, bound, generator)


@_C._hint_keywords
def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """Fills a weight with numbers from ``N(0, std^2)``, ``std = gain / sqrt(fan)``: signals keep
    their variance through layers with rectifiers (He, Zhang, Ren and Sun 2015).

    Args:
        tensor: a weight ``(out, in, ...)`` with at least two dimensions.
        a: the slope of the rectifier that follows for numbers below 0; only ``leaky_relu``
            reads it.
        mode: ``"fan_in"`` keeps the variance of what goes forward, ``"fan_out"`` that of
            gradients.
        nonlinearity: whose gain it is, see `calculate_gain`.
        generator: of the random numbers; None: the default one.

    >>> torch.nn.init.kaiming_normal_(torch.empty(3, 5), nonlinearity="relu").shape
    torch.Size([3, 5])
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    return _no_grad_normal_(tensor, 0.0, std, generator)


@_C._hint_keywords
def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fills a weight with a random matrix whose rows, or columns where there are fewer of them,
    are orthonormal (Saxe, McClelland and Ganguli 2013).

    Args:
        tensor: at least two dimensions, of which all but the first count as columns.
        gain: a factor for the whole matrix.
        generator: of the random numbers; None: the default one.

    >>> w = torch.nn.init.orthogonal_(torch.empty(3, 5))
    >>> torch.allclose(w @ w.T, torch.eye(3), atol=1e-6)
    True
    """
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    with taeda.no_grad():
        drawn = tensor.new_empty((rows, cols)).normal_(0, 1, generator=generator)
        wide = rows < cols
        q = _orthonormal(drawn.t() if wide else drawn)
        q = q.t() if wide else q
        tensor.view(q.shape).copy_(q)
        tensor.mul_(gain)
    return tensor


def _orthonormal(a: Tensor) -> Tensor:
    """The Q of QR with a positive diagonal of R, which is uniformly distributed (Mezzadri, 2006).

    Gram-Schmidt, done twice for each column, in double precision.
    """
    a = a.to(taeda.float64)
    q = taeda.zeros_like(a)
    for k in range(a.size(1)):
        column, before = a[:, k], q[:, :k]
        for _ in range(2):
            column = column - before @ (before.t() @ column)
        q[:, k] = column / column.norm()
    return q


@_C._hint_keywords
def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fills a matrix with normally distributed numbers of mean 0, and sets a fraction ``sparsity``
    of each column to 0 (Martens 2010).

    Args:
        tensor: a matrix; nothing is recorded for its gradient.
        sparsity: which fraction of a column, rounded up to whole elements, is 0.
        std: the standard deviation of the others.
        generator: of the random numbers; None: the default one.

    >>> w = torch.nn.init.sparse_(torch.empty(10, 2), sparsity=0.3)
    >>> (w == 0).sum(0)
    tensor([3, 3])
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, cols = tensor.shape
    num_zeros = math.ceil(sparsity * rows)
    with taeda.no_grad():
        tensor.normal_(0, std, generator=generator)
        for col in range(cols):
            tensor[taeda.randperm(rows)[:num_zeros], col] = 0
    return tensor


def _make_deprecate(function: Callable) -> Callable:
    new_name = function.__name__
    old_name = new_name[:-1]

    def renamed(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(
            f"`nn.init.{old_name}` is now deprecated in favor of `nn.init.{new_name}`.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    renamed.__name__ = renamed.__qualname__ = old_name
    renamed.__doc__ = (
        f"The old name of `{new_name}`; warns that it is deprecated.\n\n{function.__doc__}"
    )
    return renamed


uniform = _make_deprecate(uniform_)
normal = _make_deprecate(normal_)
constant = _make_deprecate(constant_)
eye = _make_deprecate(eye_)
dirac = _make_deprecate(dirac_)
xavier_uniform = _make_deprecate(xavier_uniform_)
xavier_normal = _make_deprecate(xavier_normal_)
kaiming_uniform = _make_deprecate(kaiming_uniform_)
kaiming_normal = _make_deprecate(kaiming_normal_)
orthogonal = _make_deprecate(orthogonal_)
sparse = _make_deprecate(sparse_)

__getattr__ = _near_names.of_module(__name__)
