"""Recurrent layers: RNN, LSTM, GRU and their single-step cells."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import taeda
from taeda import Tensor
from taeda.nn import functional as F
from taeda.nn import init
from taeda.nn.parameter import Parameter
from taeda.nn.utils.rnn import PackedSequence

from . import _layer, _recurrence
from .module import Module

__all__ = ["RNNBase", "RNN", "LSTM", "GRU", "RNNCellBase", "RNNCell", "LSTMCell", "GRUCell"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _permute(tensor: Tensor, permutation: Tensor | None, dim: int = 1) -> Tensor:
    return tensor if permutation is None else tensor.index_select(dim, permutation)


class RNNBase(Module):
    """What `RNN`, `LSTM` and `GRU` share: parameters, their names, packed sequences.

    Args:
        mode: "RNN_TANH", "RNN_RELU", "LSTM" or "GRU".
        input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size:
            as for `LSTM`.
        device, dtype: of the parameters.

    >>> nn.RNNBase("GRU", 4, 3).weight_ih_l0.shape
    torch.Size([9, 4])
    """

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_arguments(dropout)
        self._check_types()
        options = {"device": device, "dtype": dtype}
        gate_size = _GATES[mode] * hidden_size
        output_size = proj_size if proj_size > 0 else hidden_size
        directions = 2 if bidirectional else 1
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for direction in range(directions):
                inputs = input_size if layer == 0 else output_size * directions
                shapes: dict[str, tuple] = {
                    "weight_ih": (gate_size, inputs),
                    "weight_hh": (gate_size, output_size),
                }
                if bias:
                    shapes["bias_ih"] = shapes["bias_hh"] = (gate_size,)
                if proj_size > 0:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                suffix = f"_l{layer}" + ("_reverse" if direction == 1 else "")
                for name, shape in shapes.items():
                    setattr(self, name + suffix, Parameter(taeda.empty(shape, **options)))
                self._all_weights.append([name + suffix for name in shapes])
        self.reset_parameters()

    def _check_arguments(self, dropout: Any) -> None:
        if (
            not isinstance(dropout, numbers.Real)
            or isinstance(dropout, bool)
            or not 0 <= float(dropout) <= 1
        ):
            raise ValueError(
                "dropout should be a number in range [0, 1] "
                "representing the probability of an element being "
                "zeroed"
            )
        if self.dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last "
                "recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={self.num_layers}",
                stacklevel=4,
            )
        if not isinstance(self.hidden_size, int):
            raise TypeError(
                f"hidden_size should be of type int, got: {type(self.hidden_size).__name__}"
            )
        if not isinstance(self.input_size, int):
            raise TypeError(
                f"input_size should be of type int, got: {type(self.input_size).__name__}"
            )
        if self.input_size <= 0:
            raise ValueError("input_size must be greater than zero")
        if self.hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError(
                "proj_size should be a positive integer or zero to disable projections"
            )
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + self.mode)

    def _check_types(self) -> None:
        for name in ("bias", "batch_first", "bidirectional"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise TypeError(f"{name} should be of type bool, got: {type(value).__name__}")

    def __getstate__(self) -> dict:
        # PyTorch keeps the parameters in these lists too, and reads them from files.
        state = self.__dict__.copy()
        state["_flat_weights_names"] = self._flat_weights_names
        state["_flat_weights"] = self._flat_weights
        return state

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(
            {k: v for k, v in state.items() if k not in ("_flat_weights", "_flat_weights_names")}
        )

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters, one list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        """The parameters' names in one list."""
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Tensor]:
        """The parameters in one list, as functions of ``torch._VF`` take them."""
        return [getattr(self, name) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights: Sequence[Tensor]) -> None:
        for name, weight in zip(self._flat_weights_names, weights, strict=True):
            if getattr(self, name, None) is not weight:
                setattr(self, name, weight)

    def flatten_parameters(self) -> None:
        """Nothing to do here: there is no fused buffer of weights."""

    def reset_parameters(self) -> None:
        """Draws new values, uniform in +-1/sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        weight = getattr(self, self._all_weights[0][0])
        if input.dtype != weight.dtype:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). "
                f"Convert input: input.to({weight.dtype}), "
                f"or convert model: model.to({input.dtype})"
            )
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. "
                f"Expected {self.input_size}, got {input.size(-1)}"
            )

    def _hidden_shape(self, batch: int, cell: bool = False) -> tuple[int, int, int]:
        directions = 2 if self.bidirectional else 1
        size = self.hidden_size if cell or self.proj_size == 0 else self.proj_size
        return (self.num_layers * directions, batch, size)

    def get_expected_hidden_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The sizes of the state for an input, of a packed sequence where `batch_sizes` is given:
        ``(D num_layers, N, features of the output)``."""
        return self._hidden_shape(self._batch(input, batch_sizes))

    def _batch(self, input: Tensor, batch_sizes: Tensor | None) -> int:
        if batch_sizes is not None:
            return int(batch_sizes[0])
        return input.size(0 if self.batch_first else 1)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Errors for an input or a state of other sizes than the layer takes."""
        self.check_input(input, batch_sizes)
        state = hidden if isinstance(hidden, tuple) else (hidden,)
        self._check_state(state, self._batch(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The states with their batch in another order."""
        if isinstance(hx, tuple):
            return tuple(_permute(h, permutation) for h in hx)
        return _permute(hx, permutation)

    def check_hidden_size(
        self, hx: Tensor, expected: tuple, msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        if tuple(hx.size()) != expected:
            raise RuntimeError(msg.format(expected, list(hx.size())))

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            text += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            text += f", bidirectional={self.bidirectional}"
        return text

    # --- the loops ---

    def _step(self, x: Tensor, state: tuple, weights: list) -> tuple:
        raise NotImplementedError

    def _run_layer(
        self, data: Tensor, sizes: list[int], names: list[str], first: tuple, reverse: bool
    ) -> tuple[Tensor, tuple]:
        """One layer in one direction over packed rows ``(total, features)``."""
        by_kind = {name.split("_l")[0]: getattr(self, name) for name in names}
        b_ih, b_hh = by_kind.get("bias_ih"), by_kind.get("bias_hh")
        recurrent = [by_kind["weight_hh"], b_hh, by_kind.get("weight_hr")]
        if _layer.usable(data, sizes, recurrent):
            if b_ih is not None and self.mode != "GRU":
                b_ih, recurrent[1] = b_ih + b_hh, None
            projected = F.linear(data, by_kind["weight_ih"], b_ih)
            return _layer.run(projected, sizes, first, recurrent, self.mode, reverse)
        projected = F.linear(data, by_kind["weight_ih"], b_ih)
        loop = _recurrence.run_reversed if reverse else _recurrence.run
        outputs, last = loop(
            list(projected.split(sizes)),
            sizes,
            first,
            lambda x, state: self._step(x, state, recurrent),
        )
        return taeda.cat(outputs), last

    def _run_layers(self, data: Tensor, sizes: list[int], hx: tuple) -> tuple[Tensor, tuple]:
        directions = 2 if self.bidirectional else 1
        finals = []
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(directions):
                index = layer * directions + direction
                output, last = self._run_layer(
                    data,
                    sizes,
                    self._all_weights[index],
                    tuple(h[index] for h in hx),
                    reverse=direction == 1,
                )
                outputs.append(output)
                finals.append(last)
            data = outputs[0] if directions == 1 else taeda.cat(outputs, -1)
            if self.dropout > 0 and self.training and layer < self.num_layers - 1:
                data = F.dropout(data, self.dropout, True)
        return data, tuple(taeda.stack([f[i] for f in finals]) for i in range(len(hx)))

    def _zero_state(self, input: Tensor, batch: int) -> tuple:
        zeros = taeda.zeros(self._hidden_shape(batch), dtype=input.dtype, device=input.device)
        return (zeros,)

    def _check_state(self, hx: tuple, batch: int) -> None:
        self.check_hidden_size(hx[0], self._hidden_shape(batch))

    def _forward(self, input: Any, hx: tuple | None) -> tuple[Any, tuple]:
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            raise ValueError(
                f"{self._kind()}: Expected input to be 2D or 3D, got {input.dim()}D instead"
            )
        batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(batch_dim)
        self._check_state_rank(hx, batched)
        batch = input.size(batch_dim)
        if hx is None:
            hx = self._zero_state(input, batch)
        elif not batched:
            hx = tuple(h.unsqueeze(1) for h in hx)
        self.check_input(input, None)
        self._check_state(hx, batch)
        if self.batch_first:
            input = input.transpose(0, 1)
        length = input.size(0)
        if length == 0:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
        output, last = self._run_layers(
            input.reshape(length * batch, input.size(2)), [batch] * length, hx
        )
        output = output.view(length, batch, output.size(-1))
        if self.batch_first:
            output = output.transpose(0, 1)
        if not batched:
            return output.squeeze(batch_dim), tuple(h.squeeze(1) for h in last)
        return output, last

    def _forward_packed(self, input: PackedSequence, hx: tuple | None) -> tuple[Any, tuple]:
        data, batch_sizes, sorted_indices, unsorted_indices = input
        sizes = batch_sizes.tolist()
        batch = sizes[0]
        if hx is None:
            hx = self._zero_state(data, batch)
        else:
            hx = tuple(_permute(h, sorted_indices) for h in hx)
        self.check_input(data, batch_sizes)
        self._check_state(hx, batch)
        output, last = self._run_layers(data, sizes, hx)
        packed = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
        return packed, tuple(_permute(h, unsorted_indices) for h in last)

    def _kind(self) -> str:
        return "RNN" if self.mode.startswith("RNN") else self.mode

    def _check_state_rank(self, hx: tuple | None, batched: bool) -> None:
        if hx is None:
            return
        ndim = 3 if batched else 2
        kind = "batched 3-D" if batched else "unbatched 2-D"
        if any(h.dim() != ndim for h in hx):
            got = ", ".join(f"{h.dim()}-D" for h in hx)
            raise RuntimeError(f"For {kind} input, hx should also be {ndim}-D but got {got} tensor")


def _refuse_projection(proj_size: Any) -> None:
    if proj_size is not None:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """A recurrent network of Elman's kind.

        h_t = tanh(W_ih x_t + b_ih + W_hh h_(t-1) + b_hh)

    Args:
        input_size: features of an element of the sequence.
        hidden_size: H, features of the state.
        num_layers: layers, each reading the states of the one below.
        nonlinearity: "tanh" or "relu".
        bias: whether there are biases ``b_ih`` and ``b_hh``.
        batch_first: whether the batch is the first dimension instead of the second.
        dropout: the probability that a feature between two layers is dropped in training.
        bidirectional: adds layers that read the sequence backwards; states are side by side.
        proj_size: of `LSTM` only; anything but None raises ValueError.
        device, dtype: of the parameters.

    Shape:
        input: ``(L, N, input_size)``, ``(N, L, input_size)`` with ``batch_first``, ``(L,
            input_size)`` without a batch, or a `PackedSequence` of sequences of different lengths.
        h_0: ``(D num_layers, N, H)``; zeros if it is not given.
        output: the last layer's states ``(L, N, D H)``, D being 2 if bidirectional, else 1; and the
            last state.

    Attributes:
        weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0: ``(H, input_size)``, ``(H, H)``,
            ``(H,)`` of the first layer, and so on; ``_reverse`` for the other direction. At first
            uniform in ``+-1 / sqrt(H)``.

    >>> rnn = nn.RNN(4, 3, num_layers=2)
    >>> output, last = rnn(torch.rand(5, 2, 4))
    >>> output.shape, last.shape
    (torch.Size([5, 2, 3]), torch.Size([2, 2, 3]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        _refuse_projection(proj_size)
        self.nonlinearity = nonlinearity
        modes = {"tanh": "RNN_TANH", "relu": "RNN_RELU"}
        if self.nonlinearity not in modes:
            raise ValueError(
                f"Unknown nonlinearity '{self.nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(
            modes[self.nonlinearity],
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            device=device,
            dtype=dtype,
        )

    def _step(self, x: Tensor, state: tuple, weights: list) -> tuple:
        activation = taeda.tanh if self.mode == "RNN_TANH" else taeda.relu
        return _recurrence.rnn_step(x, state, weights, activation)

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        output, last = self._forward(input, None if hx is None else (hx,))
        return output, last[0]


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber 1997).

        i = sigmoid(W_ii x_t + b_ii + W_hi h + b_hi)      what is let in
        f = sigmoid(W_if x_t + b_if + W_hf h + b_hf)      what is kept
        g = tanh(W_ig x_t + b_ig + W_hg h + b_hg)         what is new
        o = sigmoid(W_io x_t + b_io + W_ho h + b_ho)      what is shown
        c = f c + i g;  h = o tanh(c)

    Args:
        input_size: features of an element of the sequence.
        hidden_size: H, features of the state.
        num_layers: layers, each reading the states of the one below.
        bias: whether there are biases ``b_ih`` and ``b_hh``.
        batch_first: whether the batch is the first dimension instead of the second.
        dropout: the probability that a feature between two layers is dropped in training.
        bidirectional: adds layers that read the sequence backwards; states are side by side.
        proj_size: where not 0, h is projected to this size before it is used (arXiv 1402.1128).
        device, dtype: of the parameters.

    Shape:
        input: ``(L, N, input_size)``, ``(N, L, input_size)`` with ``batch_first``, ``(L,
            input_size)`` without a batch, or a `PackedSequence` of sequences of different lengths.
        (h_0, c_0): each ``(D num_layers, N, H)`` (h of ``proj_size``); zeros if not given.
        output: the last layer's states ``(L, N, D H)``, D being 2 if bidirectional, else 1; and the
            last state.

    Attributes:
        weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0: ``(4 H, input_size)``, ``(4 H, H)``,
            ``(4 H,)`` of the first layer, and so on; ``_reverse`` for the other direction. At first
            uniform in ``+-1 / sqrt(H)``.

    The rows of the weights are those of i, f, g and o, in this order.

    >>> lstm = nn.LSTM(4, 3, batch_first=True, bidirectional=True)
    >>> output, (h, c) = lstm(torch.rand(2, 5, 4))
    >>> output.shape, h.shape, c.shape
    (torch.Size([2, 5, 6]), torch.Size([2, 2, 3]), torch.Size([2, 2, 3]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "LSTM",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            proj_size,
            device,
            dtype,
        )

    def _step(self, x: Tensor, state: tuple, weights: list) -> tuple:
        return _recurrence.lstm_step(x, state, weights)

    def _zero_state(self, input: Tensor, batch: int) -> tuple:
        options: dict[str, Any] = {"dtype": input.dtype, "device": input.device}
        return (
            taeda.zeros(self._hidden_shape(batch), **options),
            taeda.zeros(self._hidden_shape(batch, cell=True), **options),
        )

    def get_expected_cell_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The sizes of the second state: ``(D num_layers, N, hidden_size)``."""
        return self._hidden_shape(self._batch(input, batch_sizes), cell=True)

    def _check_state(self, hx: tuple, batch: int) -> None:
        self.check_hidden_size(
            hx[0], self._hidden_shape(batch), "Expected hidden[0] size {}, got {}"
        )
        self.check_hidden_size(
            hx[1], self._hidden_shape(batch, cell=True), "Expected hidden[1] size {}, got {}"
        )

    def _check_state_rank(self, hx: tuple | None, batched: bool) -> None:
        if hx is None:
            return
        ndim = 3 if batched else 2
        if hx[0].dim() != ndim or hx[1].dim() != ndim:
            raise RuntimeError(
                f"For {'batched 3-D' if batched else 'unbatched 2-D'} input, hx and cx should "
                f"also be {ndim}-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )

    def forward(
        self, input: Any, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Any, tuple[Tensor, Tensor]]:
        if isinstance(hx, Tensor):  # two states stacked
            hx = (hx[0], hx[1])
        return self._forward(input, None if hx is None else tuple(hx))


class GRU(RNNBase):
    """Gated recurrent unit. arXiv 1406.1078

        r = sigmoid(W_ir x_t + b_ir + W_hr h + b_hr)          what of the state is read
        z = sigmoid(W_iz x_t + b_iz + W_hz h + b_hz)          what of the state is kept
        n = tanh(W_in x_t + b_in + r (W_hn h + b_hn))         what is new
        h = (1 - z) n + z h

    Args:
        input_size: features of an element of the sequence.
        hidden_size: H, features of the state.
        num_layers: layers, each reading the states of the one below.
        bias: whether there are biases ``b_ih`` and ``b_hh``.
        batch_first: whether the batch is the first dimension instead of the second.
        dropout: the probability that a feature between two layers is dropped in training.
        bidirectional: adds layers that read the sequence backwards; states are side by side.
        proj_size: of `LSTM` only; anything but None raises ValueError.
        device, dtype: of the parameters.

    Shape:
        input: ``(L, N, input_size)``, ``(N, L, input_size)`` with ``batch_first``, ``(L,
            input_size)`` without a batch, or a `PackedSequence` of sequences of different lengths.
        h_0: ``(D num_layers, N, H)``; zeros if it is not given.
        output: the last layer's states ``(L, N, D H)``, D being 2 if bidirectional, else 1; and the
            last state.

    Attributes:
        weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0: ``(3 H, input_size)``, ``(3 H, H)``,
            ``(3 H,)`` of the first layer, and so on; ``_reverse`` for the other direction. At first
            uniform in ``+-1 / sqrt(H)``.

    The rows of the weights are those of r, z and n, in this order. r is applied after the product,
    as in cuDNN, not before as in the paper.

    >>> gru = nn.GRU(4, 3)
    >>> output, last = gru(torch.rand(5, 2, 4))
    >>> output.shape, last.shape
    (torch.Size([5, 2, 3]), torch.Size([1, 2, 3]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        _refuse_projection(proj_size)
        super().__init__(
            "GRU",
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            device=device,
            dtype=dtype,
        )

    def _step(self, x: Tensor, state: tuple, weights: list) -> tuple:
        return _recurrence.gru_step(x, state, weights)

    def forward(self, input: Any, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        output, last = self._forward(input, None if hx is None else (hx,))
        return output, last[0]


class RNNCellBase(Module):
    """What `RNNCell`, `LSTMCell` and `GRUCell` share: the parameters of one step.

    Args:
        input_size, hidden_size, bias: those of the cells.
        num_chunks: the number of gates, and so of blocks of rows of the weights.
        device, dtype: of the parameters.

    >>> nn.RNNCellBase(4, 3, True, num_chunks=2).weight_ih.shape
    torch.Size([6, 4])
    """

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = {"device": device, "dtype": dtype}
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gate_size = num_chunks * hidden_size
        self.weight_ih = Parameter(taeda.empty((gate_size, input_size), **options))
        self.weight_hh = Parameter(taeda.empty((gate_size, hidden_size), **options))
        if bias:
            self.bias_ih = Parameter(taeda.empty(gate_size, **options))
            self.bias_hh = Parameter(taeda.empty(gate_size, **options))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new values, uniform in +-1/sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        return text if nonlinearity == "tanh" else f"{text}, nonlinearity={nonlinearity}"

    def _run(self, input: Tensor, state: tuple | None, step: Any, count: int) -> Iterator[Tensor]:
        """One step with the batch dimension added and removed as needed."""
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        if state is not None:
            for i, h in enumerate(state):
                if h.dim() not in (1, 2):
                    what = "hidden" if count == 1 else f"hx[{i}]"
                    raise ValueError(
                        f"{name}: Expected {what} to be 1D or 2D, got {h.dim()}D instead"
                    )
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if state is None:
            zeros = taeda.zeros(
                (input.size(0), self.hidden_size), dtype=input.dtype, device=input.device
            )
            state = (zeros,) * count
        elif not batched:
            state = tuple(h.unsqueeze(0) for h in state)
        if input.size(1) != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.size(1)} expected {self.input_size}"
            )
        for i, h in enumerate(state):
            if h.size(0) != input.size(0):
                raise RuntimeError(
                    f"Input batch size {input.size(0)} doesn't match hidden{i} batch size "
                    f"{h.size(0)}"
                )
            if h.size(1) != self.hidden_size:
                raise RuntimeError(
                    f"hidden{i} has inconsistent hidden_size: got {h.size(1)}, "
                    f"expected {self.hidden_size}"
                )
        # Looked up directly, unless another object took the name (a parametrization).
        own = self._parameters
        w_ih, b_ih, w_hh, b_hh = (
            own[n] if n in own else getattr(self, n)
            for n in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
        )
        x = F.linear(input, w_ih, b_ih)
        new = step(x, state, [w_hh, b_hh, None])
        return (h if batched else h.squeeze(0) for h in new)


class RNNCell(RNNCellBase):
    """One step of an `RNN`: ``h' = tanh(W_ih x + b_ih + W_hh h + b_hh)``.

    Args:
        input_size: features of the input.
        hidden_size: H, features of the state.
        bias: whether there are biases.
        nonlinearity: "tanh" or "relu".
        device, dtype: of the parameters.

    Shape:
        input: ``(N, input_size)`` or ``(input_size,)``.
        h: ``(N, H)`` or ``(H,)``, zeros if not given; the output alike.

    >>> cell, h = nn.RNNCell(4, 3), torch.zeros(2, 3)
    >>> for x in torch.rand(5, 2, 4):
    ...     h = cell(x, h)
    >>> h.shape
    torch.Size([2, 3])
    """

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        activation = taeda.tanh if self.nonlinearity == "tanh" else taeda.relu

        def step(x: Tensor, state: tuple, weights: list) -> tuple:
            return _recurrence.rnn_step(x, state, weights, activation)

        (h,) = self._run(input, None if hx is None else (hx,), step, 1)
        return h


class LSTMCell(RNNCellBase):
    """One step of an `LSTM`: ``c' = f c + i g``, ``h' = o tanh(c')``.

    The gates i, f, g, o are those of `LSTM`, and so are the parameters.

    Args:
        input_size: features of the input.
        hidden_size: H, features of the state.
        bias: whether there are biases.
        device, dtype: of the parameters.

    Shape:
        input: ``(N, input_size)`` or ``(input_size,)``.
        (h, c): each ``(N, H)`` or ``(H,)``, zeros if not given; the output alike.

    >>> cell, state = nn.LSTMCell(4, 3), None
    >>> for x in torch.rand(5, 2, 4):
    ...     state = cell(x, state)
    >>> state[0].shape, state[1].shape
    (torch.Size([2, 3]), torch.Size([2, 3]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        if isinstance(hx, Tensor):
            error = TypeError(
                "lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not Tensor"
            )
            error._taeda_fix = "Fix: the state of an LSTM is a pair of tensors, (h_0, c_0)"  # type: ignore[attr-defined]
            error.add_note(error._taeda_fix)  # type: ignore[attr-defined]
            raise error
        state = None if hx is None else tuple(hx)
        h, c = self._run(input, state, _recurrence.lstm_step, 2)
        return h, c


class GRUCell(RNNCellBase):
    """One step of a `GRU`: ``h' = (1 - z) n + z h``.

    The gates r, z and n are those of `GRU`, and so are the parameters.

    Args:
        input_size: features of the input.
        hidden_size: H, features of the state.
        bias: whether there are biases.
        device, dtype: of the parameters.

    Shape:
        input: ``(N, input_size)`` or ``(input_size,)``.
        h: ``(N, H)`` or ``(H,)``, zeros if not given; the output alike.

    >>> nn.GRUCell(4, 3)(torch.rand(2, 4)).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        (h,) = self._run(input, None if hx is None else (hx,), _recurrence.gru_step, 1)
        return h
