"""Recurrent networks as functions of their weights: torch.lstm, gru, rnn_tanh, rnn_relu and cells.

The weights are those of a module (`torch.nn.LSTM`), layer by layer, direction by direction: input
to gates, state to gates, the two biases and, with a projection, state to output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda.nn import GRU, LSTM, RNN
from taeda.nn import functional as F
from taeda.nn.modules import _recurrence
from taeda.nn.utils.rnn import PackedSequence

_WEIGHTS = "params has_biases num_layers dropout train bidirectional"
_PADDED = f"input hx {_WEIGHTS} batch_first".split()
_PACKED = f"data batch_sizes hx {_WEIGHTS}".split()


def _network(name: str, kind: Callable[..., Any], gates: int, is_pair: bool) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        is_packed = "data" in kwargs or "batch_sizes" in kwargs
        is_packed |= len(args) > 2 and isinstance(args[1 if is_pair else 2], Tensor)
        names = _PACKED if is_packed else _PADDED
        given = dict(zip(names, args, strict=False)) | kwargs
        if len(args) > len(names) or set(given) != set(names):
            raise TypeError(f"{name}() takes the arguments {', '.join(names)}")
        x, params = given["data" if is_packed else "input"], list(given["params"])
        if is_packed:
            x = PackedSequence(x, given["batch_sizes"])
        module = _module(given, x, params)
        hx = tuple(given["hx"]) if is_pair else given["hx"]
        names = [weight for layer in module._all_weights for weight in layer]
        weights = dict(zip(names, params, strict=True))
        output, last = taeda.func.functional_call(module, weights, (x, hx))
        output = output.data if is_packed else output
        return (output, *last) if is_pair else (output, last)

    def _module(given: dict[str, Any], x: Any, params: list[Tensor]) -> Any:
        size, out = params[0].size(0) // gates, params[1].size(1)
        layers, has_biases = given["num_layers"], bool(given["has_biases"])
        projected = {"proj_size": out} if is_pair and out != size else {}
        each = 2 + 2 * has_biases + len(projected)
        if len(params) != each * layers * (2 if given["bidirectional"] else 1):
            raise RuntimeError(f"{name}: got an incorrect number of RNN parameters")
        module = kind(
            params[0].size(1),
            size,
            layers,
            bias=has_biases,
            batch_first=bool(given.get("batch_first", False)),
            dropout=given["dropout"] if layers > 1 else 0.0,
            bidirectional=bool(given["bidirectional"]),
            device="meta",
            **projected,
        )
        return module.train(bool(given["train"]))

    run.__name__ = run.__qualname__ = name
    run.__doc__ = f"""The network of `torch.nn.{kind.__name__}` with the weights `params`.

    Called as {name}({", ".join(_PADDED)}) or, for the rows of a packed sequence, as
    {name}({", ".join(_PACKED)}). Gives the output and the last state{"s h and c" * is_pair}.
    """
    return _C._overridable(run)


def _rnn_of(nonlinearity: str) -> Callable[..., Any]:
    def RNN_(*args: Any, **options: Any) -> RNN:
        return RNN(*args, **{"nonlinearity": nonlinearity, **options})

    RNN_.__name__ = "RNN"
    return RNN_


lstm = _network("lstm", LSTM, 4, True)
gru = _network("gru", GRU, 3, False)
rnn_tanh = _network("rnn_tanh", _rnn_of("tanh"), 1, False)
rnn_relu = _network("rnn_relu", _rnn_of("relu"), 1, False)


@_C._overridable
def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One step of an LSTM: the states h and c after it."""
    h, c = _recurrence.lstm_step(F.linear(input, w_ih, b_ih), tuple(hx), [w_hh, b_hh, None])
    return h, c


def _cell(name: str, step: Callable[..., Any]) -> Callable[..., Tensor]:
    def cell(
        input: Tensor,
        hx: Tensor,
        w_ih: Tensor,
        w_hh: Tensor,
        b_ih: Tensor | None = None,
        b_hh: Tensor | None = None,
    ) -> Tensor:
        return step(F.linear(input, w_ih, b_ih), (hx,), [w_hh, b_hh])[0]

    cell.__name__ = cell.__qualname__ = name
    cell.__doc__ = "One step of the network: the state after it."
    return _C._overridable(cell)


gru_cell = _cell("gru_cell", _recurrence.gru_step)
rnn_tanh_cell = _cell("rnn_tanh_cell", partial(_recurrence.rnn_step, activation=taeda.tanh))
rnn_relu_cell = _cell("rnn_relu_cell", partial(_recurrence.rnn_step, activation=taeda.relu))
