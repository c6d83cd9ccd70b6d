"""Recurrences over time, for padded and for packed sequences.

A sequence is a list of time steps; step t has the first ``sizes[t]`` samples of the batch, longest
samples first, so the batch shrinks as time goes on (all sizes are equal for padded sequences).
A state is a tuple of tensors ``(batch, features)``; a step function maps (x, state) to a new state
whose first tensor is the output.
"""

from __future__ import annotations

from collections.abc import Callable

import taeda
from taeda import Tensor
from taeda.nn import functional as F

State = tuple[Tensor, ...]
Step = Callable[[Tensor, State], State]


def run(steps: list[Tensor], sizes: list[int], first: State, step: Step) -> tuple[list, State]:
    """Runs forward in time: (output of each step, last state of each sample)."""
    state = tuple(s[: sizes[0]] for s in first)
    outputs = []
    finished: list[State] = []  # states of samples that ended, shortest first
    for x, size in zip(steps, sizes):
        if size < state[0].size(0):
            finished.append(tuple(s[size:] for s in state))
            state = tuple(s[:size] for s in state)
        state = step(x, state)
        outputs.append(state[0])
    if finished:
        parts = [state, *reversed(finished)]
        state = tuple(taeda.cat([part[i] for part in parts]) for i in range(len(first)))
    return outputs, state


def run_reversed(
    steps: list[Tensor], sizes: list[int], first: State, step: Step
) -> tuple[list, State]:
    """Runs backward in time: each sample starts at its own end."""
    state = tuple(s[: sizes[-1]] for s in first)
    outputs = []
    for x, size in zip(reversed(steps), reversed(sizes)):
        have = state[0].size(0)
        if size > have:
            state = tuple(taeda.cat([s, f[have:size]]) for s, f in zip(state, first))
        state = step(x, state)
        outputs.append(state[0])
    return outputs[::-1], state


def _as_cast(state: State, x: Tensor) -> State:
    """The state in the type of the projected input, where autocast has converted that: on CUDA
    devices it converts all arguments of a cell."""
    if x.is_cuda and state[0].dtype is not x.dtype and taeda.is_autocast_enabled("cuda"):
        return tuple(s.to(x.dtype) for s in state)
    return state


def rnn_step(x: Tensor, state: State, weights: list, activation: Callable) -> State:
    """``h' = activation(x + W_hh h + b_hh)``, with x the projected input."""
    w_hh, b_hh = weights[:2]
    return (activation(x + F.linear(state[0], w_hh, b_hh)),)


def lstm_step(x: Tensor, state: State, weights: list) -> State:
    """Gates in the order input, forget, cell, output; ``w_hr`` projects the output."""
    h, c = _as_cast(state, x)
    w_hh, b_hh, w_hr = weights
    gates = x + F.linear(h, w_hh, b_hh)
    i, f, _, o = gates.sigmoid().chunk(4, 1)  # one call for all costs less than one for each
    size = c.size(1)
    c = f * c + i * gates.narrow(1, 2 * size, size).tanh()
    h = o * c.tanh()
    return (h if w_hr is None else F.linear(h, w_hr)), c


def gru_step(x: Tensor, state: State, weights: list) -> State:
    """Gates in the order reset, update, new: ``h' = n + z (h - n)``."""
    h = _as_cast(state, x)[0]
    w_hh, b_hh = weights[:2]
    x_r, x_z, x_n = x.chunk(3, 1)
    h_r, h_z, h_n = F.linear(h, w_hh, b_hh).chunk(3, 1)
    z = (x_z + h_z).sigmoid()
    n = (x_n + (x_r + h_r).sigmoid() * h_n).tanh()
    return (n + z * (h - n),)
