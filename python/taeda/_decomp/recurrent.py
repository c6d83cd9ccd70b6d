"""Recurrent layers and cells, as PyTorch's table calls them."""

from __future__ import annotations

from typing import Any

from taeda import _VF

from .registry import new

_SETTINGS = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train"
_WEIGHTS = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"


def _layer(name: str) -> None:
    run = getattr(_VF, name)
    state, results = "Tensor hx", "(Tensor, Tensor)"
    if name == "lstm":
        state, results = "Tensor[] hx", "(Tensor, Tensor, Tensor)"
    tail = f"{state}, {_SETTINGS}, bool bidirectional"

    @new(f"{name}.input(Tensor input, {tail}, bool batch_first) -> {results}")
    def _of_batch(*args: Any) -> Any:
        return run(*args)

    @new(f"{name}.data(Tensor data, Tensor batch_sizes, {tail}) -> {results}")
    def _of_packed(*args: Any) -> Any:
        return run(*args)


def _cell(name: str) -> None:
    run = getattr(_VF, f"{name}_cell")
    state, results = "Tensor hx", "Tensor"
    if name == "lstm":
        state, results = "Tensor[] hx", "(Tensor, Tensor)"

    @new(f"{name}_cell(Tensor input, {state}, {_WEIGHTS}) -> {results}")
    def _of_step(*args: Any) -> Any:
        return run(*args)


for _name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
    _layer(_name)
    _cell(_name)
