"""A layer of an RNN, GRU or LSTM over a padded sequence as one node of the graph.

The kernel (``_rnn_layer``) does only what depends on the step before; the gradient of the recurrent
weight is one product over all steps. ``_recurrence`` has the definition, which also gives the
gradient of the gradient.
"""

from __future__ import annotations

from typing import Any

import taeda
from taeda import _C, Tensor
from taeda.autograd import Function

from . import _recurrence

_forward, _backward = (_C._by_owner["torch"][n] for n in ("_rnn_layer", "_rnn_layer_backward"))


def usable(projected: Tensor, sizes: list[int], weights: list[Any]) -> bool:
    """Whether `run` takes these: one length, no projection, CPU tensors up to single precision."""
    w_hh, _, w_hr = weights
    return (
        w_hr is None
        and projected.is_cpu
        and projected.dtype is w_hh.dtype
        and projected.dtype in (taeda.float32, taeda.bfloat16, taeda.float16)
        and sizes[0] == sizes[-1]
        and _C._dual_level() == 0
    )


def run(
    projected: Tensor, sizes: list[int], first: tuple, weights: list[Any], mode: str, reverse: bool
) -> tuple[Tensor, tuple]:
    """Projected rows ``(l * n, gates * h)`` to outputs ``(l * n, h)`` and the last state."""
    x = projected.view(len(sizes), sizes[0], projected.size(-1))
    c0 = first[1] if mode == "LSTM" else None
    inputs = [None if t is None else t.float() for t in (x, first[0], c0, *weights[:2])]
    y, h, c, *_ = _Layer.apply(*inputs, mode, reverse)
    last = (h, c) if mode == "LSTM" else (h,)
    return y.to(projected.dtype).flatten(0, 1), tuple(t.to(projected.dtype) for t in last)


def _step(mode: str, weights: list[Any]) -> _recurrence.Step:
    if mode == "LSTM":
        return lambda x, s: _recurrence.lstm_step(x, s, [*weights, None])
    if mode == "GRU":
        return lambda x, s: _recurrence.gru_step(x, s, weights)
    activation = taeda.tanh if mode == "RNN_TANH" else taeda.relu
    return lambda x, s: _recurrence.rnn_step(x, s, weights, activation)


def _by_steps(inputs: tuple, mode: str, back: bool) -> tuple:
    x, h, c, w_hh, b_hh = inputs
    loop = _recurrence.run_reversed if back else _recurrence.run
    first = (h,) if c is None else (h, c)
    outputs, last = loop(
        list(x.unbind(0)), [x.size(1)] * x.size(0), first, _step(mode, [w_hh, b_hh])
    )
    return taeda.stack(outputs), *last


class _Layer(Function):
    """Outputs, last state, last cell (of an LSTM), and what the kernel keeps for backward."""

    generate_vmap_rule = True

    @staticmethod
    def forward(
        x: Tensor, h0: Tensor, c0: Any, w_hh: Tensor, b_hh: Any, mode: str, reverse: bool
    ) -> Any:
        states, cells, saved = _forward(x, h0, c0, w_hh, b_hh, mode, reverse)
        last = 0 if reverse else -1
        y = states[:-1] if reverse else states[1:]
        c = cells[last].clone() if mode == "LSTM" else None
        return y.clone(), states[last].clone(), c, states, cells, saved

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
        *tensors, ctx.mode, ctx.reverse = inputs
        inner = output[3:]
        ctx.mark_non_differentiable(*inner)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors, *inner)

    @staticmethod
    def backward(ctx: Any, gy: Any, gh: Any, gc: Any, *_: Any) -> Any:
        *inputs, states, cells, saved = ctx.saved_tensors
        needed = ctx.needs_input_grad[:5]
        before = states[1:] if ctx.reverse else states[:-1]
        gy = taeda.zeros_like(before) if gy is None else gy
        gh = taeda.zeros_like(before[0]) if gh is None else gh
        if ctx.mode == "LSTM" and gc is None:
            gc = taeda.zeros_like(gh)
        if taeda.is_grad_enabled():
            wanted = [a for a, n in zip(inputs, needed) if n]
            grads = (gy, gh) if gc is None else (gy, gh, gc)
            outputs = _by_steps(tuple(inputs), ctx.mode, ctx.reverse)
            found = iter(taeda.autograd.grad(outputs, wanted, grads, create_graph=True))
            return *(next(found) if n else None for n in needed), None, None
        w_hh = inputs[3]
        kept = (states, cells, saved, ctx.mode, ctx.reverse)
        gx, gsums, gh0, gc0 = _backward(gy, gh, gc, w_hh, *kept)
        rows = (gsums if ctx.mode == "GRU" else gx).flatten(0, 1)
        gw = rows.t() @ before.flatten(0, 1) if needed[3] else None
        gb = rows.sum(0) if needed[4] else None
        return gx, gh0, gc0 if gc is not None else None, gw, gb, None, None
