"""What to change where a layer's input does not fit it: the "Fix: ..." note of an exception."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda
from taeda import Tensor

from .activation import MultiheadAttention
from .batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d, _BatchNorm
from .conv import _ConvNd
from .linear import Linear
from .normalization import LayerNorm
from .rnn import LSTM, RNNBase
from .sparse import Embedding


def advice(module: Any, args: tuple) -> str:
    """One sentence for the first thing that does not fit, "" where nothing is seen.

    >>> layer = torch.nn.Linear(4, 2)
    >>> torch.nn.modules._advice.advice(layer, (torch.ones(3, 5),))
    "in_features is 4 and the input's last size 5: make them equal"
    """
    if not args or not isinstance(args[0], Tensor):
        return ""
    weight = next(module.parameters(), None)
    if weight is not None and weight.device != args[0].device:
        return f"move the input, x.to({str(weight.device)!r}), or the model, model.to(device)"
    for kind, advise in _ADVICE.items():
        if isinstance(module, kind):
            return advise(module, *args[:2])
    return ""


def _equal(name: str, wanted: int, what: str, given: int) -> str:
    return f"{name} is {wanted} and {what} {given}: make them equal" if wanted != given else ""


def _dtype(module: Any, x: Tensor) -> str:
    if module.weight is None:  # a norm without one
        return ""
    wanted = module.weight.dtype
    return f"convert the input, x.to({wanted}), or the model" if x.dtype != wanted else ""


def _linear(module: Any, x: Tensor, *_: Any) -> str:
    size = x.shape[-1] if x.dim() else 1
    return _equal("in_features", module.in_features, "the input's last size", size) or _dtype(
        module, x
    )


def _conv(module: Any, x: Tensor, *_: Any) -> str:
    spatial = len(module.kernel_size)
    if x.dim() not in (spatial + 1, spatial + 2):
        return f"the input has (batch,) channels and {spatial} more dimensions: add one by x[None]"
    channels = x.shape[-spatial - 1]
    if channels != module.in_channels == x.shape[-1]:
        batch, last = x.dim() - spatial - 1, x.dim() - 1
        order = (*range(batch), last, *range(batch, last))
        return f"channels come before the pixels: x.permute{order}"
    fault = _equal("in_channels", module.in_channels, "the input's channels are", channels)
    return fault or _dtype(module, x) or ("" if module.transposed else _kernel(module, x.shape))


def _kernel(module: Any, shape: Any) -> str:
    """Of a convolution whose dilated kernel is larger than the padded input."""
    if isinstance(module.padding, str):
        return ""
    geometry = zip(
        module.kernel_size, module.dilation, module.padding, shape[-len(module.kernel_size) :]
    )
    if all((k - 1) * d < size + 2 * p for k, d, p, size in geometry):
        return ""
    dilated = ", or a smaller dilation" if max(module.dilation) > 1 else ""
    return f"pad the input, or take a smaller kernel{dilated}"


def _batch_norm(module: Any, x: Tensor, *_: Any) -> str:
    if isinstance(module, BatchNorm1d) and x.dim() not in (2, 3):
        add = ": add the batch by x[None]" if x.dim() == 1 else ""
        return f"the input is (batch, channels) or (batch, channels, length){add}"
    for kind, dims in _NORM_INPUTS.items():
        if isinstance(module, kind) and len(dims) + 2 != x.dim():
            fitting = {2: "BatchNorm1d", 3: "BatchNorm1d", 4: "BatchNorm2d", 5: "BatchNorm3d"}
            other = fitting.get(x.dim())
            instead = f"; {other} takes {x.dim()}D input" if other else ""
            return f"the input is (batch, channels, {', '.join(dims)}){instead}"
    channels = x.shape[1] if x.dim() > 1 else 0
    if channels != module.num_features:
        return _equal("num_features", module.num_features, "the input's channels are", channels)
    if module.training and x.numel() == channels:
        return "a batch of 2 or more, drop_last=True in the DataLoader, or eval()"
    return _dtype(module, x)


def _layer_norm(module: Any, x: Tensor, *_: Any) -> str:
    wanted = tuple(module.normalized_shape)
    given = tuple(x.shape[-len(wanted) :])
    if wanted != given:
        return f"normalized_shape is {wanted} and the input's last sizes {given}: make them equal"
    return _dtype(module, x)


def _recurrent(module: Any, x: Tensor, state: Any = None) -> str:
    size = x.shape[-1] if x.dim() else 1
    fault = _equal("input_size", module.input_size, "the input's last size", size)
    if fault or state is None:
        return fault
    if isinstance(state, Tensor) and isinstance(module, LSTM):
        return "the state of an LSTM is a pair of tensors, (h_0, c_0)"
    given = tuple(state[0].shape if isinstance(state, tuple) else state.shape)
    layers = module.num_layers * (2 if module.bidirectional else 1)
    batch = () if x.dim() == 2 else (x.shape[0 if module.batch_first else 1],)
    wanted = (layers, *batch, getattr(module, "proj_size", 0) or module.hidden_size)
    if given != wanted:
        return (
            f"the state is (layers * directions, batch, hidden_size), {wanted} here, and not "
            f"{given}; without one it begins with zeros"
        )
    return ""


_NORM_INPUTS = {BatchNorm2d: ("height", "width"), BatchNorm3d: ("depth", "height", "width")}


def _embedding(module: Any, x: Tensor, *_: Any) -> str:
    if x.is_floating_point():
        return "indices are integers: x.long()"
    if x.dtype not in (taeda.int32, taeda.int64):
        return "indices are int64 or int32: x.long()"
    if bool(((x < 0) | (x >= module.num_embeddings)).any()):
        return f"num_embeddings is {module.num_embeddings}: indices run from 0 to one less"
    return ""


def _attention(module: Any, query: Tensor, key: Any = None) -> str:
    if query.shape[-1] != module.embed_dim:
        return _equal("embed_dim", module.embed_dim, "the query's last size", query.shape[-1])
    if not isinstance(key, Tensor) or not query.dim() == key.dim() == 3:
        return ""
    at = 0 if module.batch_first else 1
    if query.shape[at] == key.shape[at]:
        return ""
    order, other = "(length, batch, embed_dim)", "batch_first=True for (batch, length, embed_dim)"
    if module.batch_first:
        order, other = "(batch, length, embed_dim)", "batch_first=False for (length, batch, ...)"
    return (
        f"query and key are {order} here, with batches of {query.shape[at]} and {key.shape[at]}: "
        f"make them equal, or construct the layer with {other}"
    )


_ADVICE: dict[type, Callable[..., str]] = {
    MultiheadAttention: _attention,
    Linear: _linear,
    _ConvNd: _conv,
    _BatchNorm: _batch_norm,
    LayerNorm: _layer_norm,
    RNNBase: _recurrent,
    Embedding: _embedding,
}
