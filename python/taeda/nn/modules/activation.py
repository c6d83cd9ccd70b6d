"""Activations, element by element and along a dimension."""

from __future__ import annotations

import warnings
from typing import Any

import taeda
from taeda import Tensor
from taeda.nn import functional as F
from taeda.nn import init
from taeda.nn.init import constant_, xavier_normal_, xavier_uniform_  # noqa: F401
from taeda.nn.parameter import Parameter

from .linear import NonDynamicallyQuantizableLinear
from .module import Module

__all__ = [
    "Threshold",
    "ReLU",
    "RReLU",
    "Hardtanh",
    "ReLU6",
    "Sigmoid",
    "Hardsigmoid",
    "Tanh",
    "SiLU",
    "Mish",
    "Hardswish",
    "ELU",
    "CELU",
    "SELU",
    "GLU",
    "GELU",
    "Hardshrink",
    "LeakyReLU",
    "LogSigmoid",
    "Softplus",
    "Softshrink",
    "MultiheadAttention",
    "PReLU",
    "Softsign",
    "Tanhshrink",
    "Softmin",
    "Softmax",
    "Softmax2d",
    "LogSoftmax",
]


class _InplaceActivation(Module):
    """An activation whose only option is ``inplace``."""

    __constants__ = ["inplace"]

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Threshold(Module):
    """Replaces what is not above a threshold.

        y = x for x > threshold, else value

    Args:
        threshold: the bound.
        value: what stands in place of smaller numbers.
        inplace: whether the input itself is written.

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.Threshold(1.0, -1.0)(torch.tensor([-2., 0., 3.]))
    tensor([-1., -1.,  3.])
    """

    __constants__ = ["threshold", "value", "inplace"]

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        inplace = ", inplace=True" if self.inplace else ""
        return f"threshold={self.threshold}, value={self.value}{inplace}"


class ReLU(_InplaceActivation):
    """The positive part.

        y = max(0, x)

    Args:
        inplace: whether the input itself is written.

    The derivative at 0 is 0. NaN stays.

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.ReLU()(torch.tensor([-2., 0., 3.]))
    tensor([0., 0., 3.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.relu(input, inplace=self.inplace)


class RReLU(Module):
    """LeakyReLU with a random slope for each element in training. arXiv 1505.00853

        y = x for x >= 0, else a x,  a uniform in [lower, upper]; (lower + upper) / 2 in evaluation

    Args:
        lower, upper: the bounds of the slopes.
        inplace: whether the input itself is written.

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.RReLU().eval()(torch.tensor([-2., 0., 3.]))
    tensor([-0.4583,  0.0000,  3.0000])
    """

    __constants__ = ["lower", "upper", "inplace"]

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        inplace = ", inplace=True" if self.inplace else ""
        return f"lower={self.lower}, upper={self.upper}{inplace}"


class Hardtanh(Module):
    """Cuts off at two bounds.

        y = min(max(x, min_val), max_val)

    Args:
        min_val, max_val: the bounds.
        inplace: whether the input itself is written.
        min_value, max_value: older names of the bounds.

    The derivative at a bound is 0.

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.Hardtanh()(torch.tensor([-2., 0., 3.]))
    tensor([-1.,  0.,  1.])
    """

    __constants__ = ["min_val", "max_val", "inplace"]

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        if min_value is not None:
            warnings.warn(
                "keyword argument `min_value` is deprecated and rename to `min_val`",
                FutureWarning,
                stacklevel=2,
            )
            min_val = min_value
        if max_value is not None:
            warnings.warn(
                "keyword argument `max_value` is deprecated and rename to `max_val`",
                FutureWarning,
                stacklevel=2,
            )
            max_val = max_value
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError("max_val must be larger than min_val")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        inplace = ", inplace=True" if self.inplace else ""
        return f"min_val={self.min_val}, max_val={self.max_val}{inplace}"


class ReLU6(Hardtanh):
    """The positive part, cut off at 6.

        y = min(max(0, x), 6)

    Args:
        inplace: whether the input itself is written.

    Bounded, for networks that are computed in few bits (MobileNets).

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.ReLU6()(torch.tensor([-2., 3., 8.]))
    tensor([0., 3., 6.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class Sigmoid(Module):
    """The logistic function: any number to a probability.

        y = 1 / (1 + exp(-x))

    Where it ends a classifier, `BCEWithLogitsLoss` on the numbers before it is more exact.

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.Sigmoid()(torch.tensor([-2., 0., 3.]))
    tensor([0.1192, 0.5000, 0.9526])
    """

    def forward(self, input: Tensor) -> Tensor:
        return taeda.sigmoid(input)


class Hardsigmoid(_InplaceActivation):
    """A line for the logistic function, without exponentials.

        y = 0 for x <= -3, 1 for x >= 3, else x / 6 + 1 / 2

    Args:
        inplace: whether the input itself is written.

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.Hardsigmoid()(torch.tensor([-2., 0., 3.]))
    tensor([0.1667, 0.5000, 1.0000])
    """

    def extra_repr(self) -> str:
        return ""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class Tanh(Module):
    """The hyperbolic tangent: any number to one between -1 and 1.

        y = (exp(x) - exp(-x)) / (exp(x) + exp(-x))

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.Tanh()(torch.tensor([-2., 0., 3.]))
    tensor([-0.9640,  0.0000,  0.9951])
    """

    def forward(self, input: Tensor) -> Tensor:
        return taeda.tanh(input)


class SiLU(_InplaceActivation):
    """The input times its logistic function, also called swish. arXiv 1702.03118

        y = x / (1 + exp(-x))

    Args:
        inplace: whether the input itself is written.

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.SiLU()(torch.tensor([-2., 0., 3.]))
    tensor([-0.2384,  0.0000,  2.8577])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, inplace=self.inplace)


class Mish(_InplaceActivation):
    """The input times the tanh of its softplus. arXiv 1908.08681

        y = x tanh(log(1 + exp(x)))

    Args:
        inplace: whether the input itself is written.

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.Mish()(torch.tensor([-2., 0., 3.]))
    tensor([-0.2525,  0.0000,  2.9865])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, inplace=self.inplace)


class Hardswish(_InplaceActivation):
    """A piecewise polynomial for SiLU, without exponentials. arXiv 1905.02244

        y = x min(max(x + 3, 0), 6) / 6

    Args:
        inplace: whether the input itself is written.

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.Hardswish()(torch.tensor([-2., 0., 3.]))
    tensor([-0.3333,  0.0000,  3.0000])
    """

    def extra_repr(self) -> str:
        return ""

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class ELU(Module):
    """Exponential linear unit. arXiv 1511.07289

        y = x for x > 0, else alpha (exp(x) - 1)

    Args:
        alpha: minus the limit for small x.
        inplace: whether the input itself is written.

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.ELU()(torch.tensor([-2., 0., 3.]))
    tensor([-0.8647,  0.0000,  3.0000])
    """

    __constants__ = ["alpha", "inplace"]

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class CELU(ELU):
    """Exponential linear unit with a continuous derivative. arXiv 1704.07483

        y = max(0, x) + min(0, alpha (exp(x / alpha) - 1))

    Args:
        alpha: minus the limit for small x.
        inplace: whether the input itself is written.

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.CELU()(torch.tensor([-2., 0., 3.]))
    tensor([-0.8647,  0.0000,  3.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class SELU(_InplaceActivation):
    """Scaled exponential linear unit, which drives layers to mean 0 and variance 1. arXiv
    1706.02515

        y = 1.0507 x for x > 0, else 1.0507 * 1.6733 (exp(x) - 1)

    Args:
        inplace: whether the input itself is written.

    Use it with `AlphaDropout` and ``init.kaiming_normal_(weight, nonlinearity="linear")``.

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.SELU()(torch.tensor([-2., 0., 3.]))
    tensor([-1.5202,  0.0000,  3.1521])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class GLU(Module):
    """Gated linear unit: one half of a dimension lets the other through. arXiv 1612.08083

        y = a sigmoid(b),  a and b the halves of x along dim

    Args:
        dim: the dimension that is halved, of even size.

    Shape:
        input: ``(*, 2 n, *)``.
        output: ``(*, n, *)``.

    >>> nn.GLU()(torch.tensor([1., 2., 0., 100.]))
    tensor([0.5000, 2.0000])
    """

    __constants__ = ["dim"]

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class GELU(Module):
    """The input times the probability that a normal number is less. arXiv 1606.08415

        y = x Phi(x),  Phi(x) = (1 + erf(x / sqrt(2))) / 2

    Args:
        approximate: "none" computes this; "tanh" computes
            ``x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2``, as GPT-2 does.

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.GELU()(torch.tensor([-1., 0., 1.]))
    tensor([-0.1587,  0.0000,  0.8413])
    """

    __constants__ = ["approximate"]

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Hardshrink(Module):
    """Sets small numbers to zero.

        y = x where |x| > lambd, else 0

    Args:
        lambd: the bound, not negative.

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.Hardshrink()(torch.tensor([-2., 0.3, 3.]))
    tensor([-2.,  0.,  3.])
    """

    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class LeakyReLU(Module):
    """The positive part, and a little of the negative.

        y = x for x >= 0, else negative_slope x

    Args:
        negative_slope: the slope for negative x.
        inplace: whether the input itself is written.

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.LeakyReLU()(torch.tensor([-2., 0., 3.]))
    tensor([-0.0200,  0.0000,  3.0000])
    """

    __constants__ = ["inplace", "negative_slope"]

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        inplace = ", inplace=True" if self.inplace else ""
        return f"negative_slope={self.negative_slope}{inplace}"


class LogSigmoid(Module):
    """The logarithm of the logistic function, exact far from 0.

        y = -log(1 + exp(-x))

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.LogSigmoid()(torch.tensor([-2., 0., 3.]))
    tensor([-2.1269, -0.6931, -0.0486])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softplus(Module):
    """A smooth positive part.

        y = log(1 + exp(beta x)) / beta

    Args:
        beta: how sharp the bend is.
        threshold: where ``beta x`` exceeds it, y is x.

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.Softplus()(torch.tensor([-2., 0., 3.]))
    tensor([0.1269, 0.6931, 3.0486])
    """

    __constants__ = ["beta", "threshold"]

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Softshrink(Module):
    """Moves numbers towards zero, small ones to it.

        y = sign(x) max(|x| - lambd, 0)

    Args:
        lambd: by how much, not negative.

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.Softshrink()(torch.tensor([-2., 0.3, 3.]))
    tensor([-1.5000,  0.0000,  2.5000])
    """

    __constants__ = ["lambd"]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class PReLU(Module):
    """LeakyReLU whose slope is learnt. arXiv 1502.01852

        y = x for x >= 0, else weight x

    Args:
        num_parameters: 1 slope for all, or one for each channel (dimension 1).
        init: the slopes' first value.
        device, dtype: of the slopes.

    Weight decay pulls the slopes to 0; leave them out of it.

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.PReLU()(torch.tensor([-2., 0., 3.]))
    tensor([-0.5000,  0.0000,  3.0000], grad_fn=<PreluKernelBackward0>)
    """

    __constants__ = ["num_parameters"]

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(taeda.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the slopes to their first value."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softsign(Module):
    """The input over one more than its size: between -1 and 1.

        y = x / (1 + |x|)

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.Softsign()(torch.tensor([-2., 0., 3.]))
    tensor([-0.6667,  0.0000,  0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """What tanh takes away.

        y = x - tanh(x)

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.Tanhshrink()(torch.tensor([-2., 0., 3.]))
    tensor([-1.0360,  0.0000,  2.0049])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class _AlongDim(Module):
    __constants__ = ["dim"]

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmin(_AlongDim):
    """`Softmax` of the negated input: the smallest gets most.

        y_i = exp(-x_i) / sum_j exp(-x_j)

    Args:
        dim: the dimension that adds up to one; give it: None chooses by the number of dimensions
            and warns.

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.Softmin(dim=0)(torch.tensor([1., 3.]))
    tensor([0.8808, 0.1192])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, _stacklevel=5)


class Softmax(_AlongDim):
    """Numbers along a dimension to probabilities.

        y_i = exp(x_i) / sum_j exp(x_j)

    The largest is subtracted first, so nothing overflows; a row of minus infinities is NaN. Before
    a loss use `CrossEntropyLoss` on the numbers themselves, or `LogSoftmax`.

    Args:
        dim: the dimension that adds up to one; give it: None chooses by the number of dimensions
            and warns.

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.Softmax(dim=1)(torch.tensor([[0., 0.], [1., 3.]]))
    tensor([[0.5000, 0.5000],
            [0.1192, 0.8808]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """`Softmax` over the channels of images, at each pixel.

        y[n, c, h, w] = exp(x[n, c, h, w]) / sum over c of the same

    Shape:
        input: ``(N, C, H, W)`` or ``(C, H, W)``.
        output: the same.

    >>> nn.Softmax2d()(torch.zeros(1, 4, 1, 2)).flatten()[:3]
    tensor([0.2500, 0.2500, 0.2500])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead"
            )
        return F.softmax(input, -3, _stacklevel=5)


class LogSoftmax(_AlongDim):
    """The logarithm of `Softmax`, exact where the probabilities underflow.

        y_i = x_i - log(sum_j exp(x_j))

    With `NLLLoss` it is `CrossEntropyLoss` in two parts.

    Args:
        dim: the dimension that adds up to one; give it: None chooses by the number of dimensions
            and warns.

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.LogSoftmax(dim=0)(torch.tensor([0., 1000.]))
    tensor([-1000.,     0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, _stacklevel=5)


class MultiheadAttention(Module):
    """Attention of several heads side by side, with projections in and out. arXiv 1706.03762

        head_i = softmax(Q W_i^Q (K W_i^K)^T / sqrt(embed_dim / num_heads)) V W_i^V
        output = concat(head_1, ..., head_h) W^O

    Args:
        embed_dim: E, the size of a token.
        num_heads: h; must divide ``embed_dim``.
        dropout: the probability that a weight is dropped in training.
        bias: whether the projections have biases.
        add_bias_kv: adds a learnt key and value to each sequence.
        add_zero_attn: adds a key and value of zeros.
        kdim, vdim: sizes of keys and values; None: ``embed_dim``.
        batch_first: whether the batch is the first dimension instead of the second.
        device, dtype: of the parameters.

    Shape:
        query: ``(L, N, E)``, key: ``(S, N, kdim)``, value: ``(S, N, vdim)``; ``(N, L, E)`` and so
            on with ``batch_first``; without N for one sequence.
        key_padding_mask: ``(N, S)``, true where a key is padding.
        attn_mask: ``(L, S)`` or ``(N h, L, S)``, true where it must not be looked at, or numbers
            that are added to the scores.
        output: the query's shape, and the weights ``(N, L, S)``, averaged over the heads; None with
            ``need_weights=False``, which is faster.

    >>> attention = nn.MultiheadAttention(8, num_heads=2, batch_first=True)
    >>> x = torch.rand(3, 5, 8)
    >>> output, weights = attention(x, x, x)
    >>> output.shape, weights.shape
    (torch.Size([3, 5, 8]), torch.Size([3, 5, 5]))
    """

    __constants__ = ["batch_first"]
    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0,"
                f" got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        options = {"device": device, "dtype": dtype}
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            error = AssertionError("embed_dim must be divisible by num_heads")
            fitting = [str(n) for n in range(1, min(embed_dim, 256) + 1) if embed_dim % n == 0]
            error.add_note(f"embed_dim is {embed_dim} and num_heads {num_heads}")
            error.add_note(f"Fix: num_heads may be {', '.join(fitting)}")
            raise error
        if not self._qkv_same_embed_dim:
            self.q_proj_weight = Parameter(taeda.empty((embed_dim, embed_dim), **options))
            self.k_proj_weight = Parameter(taeda.empty((embed_dim, self.kdim), **options))
            self.v_proj_weight = Parameter(taeda.empty((embed_dim, self.vdim), **options))
            self.register_parameter("in_proj_weight", None)
        else:
            self.in_proj_weight = Parameter(taeda.empty((3 * embed_dim, embed_dim), **options))
            self.register_parameter("q_proj_weight", None)
            self.register_parameter("k_proj_weight", None)
            self.register_parameter("v_proj_weight", None)
        if bias:
            self.in_proj_bias = Parameter(taeda.empty(3 * embed_dim, **options))
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **options)
        if add_bias_kv:
            self.bias_k = Parameter(taeda.empty((1, 1, embed_dim), **options))
            self.bias_v = Parameter(taeda.empty((1, 1, embed_dim), **options))
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            init.xavier_uniform_(self.q_proj_weight)
            init.xavier_uniform_(self.k_proj_weight)
            init.xavier_uniform_(self.v_proj_weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        if self.bias_k is not None:
            init.xavier_normal_(self.bias_k)
        if self.bias_v is not None:
            init.xavier_normal_(self.bias_v)

    def __setstate__(self, state: dict) -> None:
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        batched = query.dim() == 3
        if self.batch_first and batched:
            # The same tensor must stay the same: self-attention projects it once.
            if key is value:
                if query is key:
                    query = key = value = query.transpose(1, 0)
                else:
                    query, key = query.transpose(1, 0), key.transpose(1, 0)
                    value = key
            else:
                query, key, value = (x.transpose(1, 0) for x in (query, key, value))
        separate: dict = {}
        if not self._qkv_same_embed_dim:
            separate = {
                "use_separate_proj_weight": True,
                "q_proj_weight": self.q_proj_weight,
                "k_proj_weight": self.k_proj_weight,
                "v_proj_weight": self.v_proj_weight,
            }
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
            **separate,
        )
        if self.batch_first and batched:
            return output.transpose(1, 0), weights
        return output, weights
