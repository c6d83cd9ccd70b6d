"""A layer of LSTM over a padded sequence as one node of the graph.

The loop over time does only what depends on the step before: forward, a product with the recurrent
weight and the cell; backward, that product transposed. The derivatives of the gates and the
gradient of the recurrent weight are taken for all steps at once. ``_recurrence.lstm_step`` is the
definition; it also gives the gradient of the gradient.
"""

from __future__ import annotations

from typing import Any

import taeda
from taeda import _C, Tensor
from taeda.autograd import Function

from . import _recurrence


def usable(projected: Tensor, sizes: list[int], weights: list[Any]) -> bool:
    """Whether `lstm_layer` takes these: one length, no projection, CPU tensors of one type."""
    w_hh, _, w_hr = weights
    return (
        w_hr is None
        and projected.is_cpu
        and projected.dtype is w_hh.dtype
        and sizes[0] == sizes[-1]
        and _C._dual_level() == 0
    )


def lstm_layer(
    projected: Tensor, sizes: list[int], first: tuple, weights: list[Any], reverse: bool
) -> tuple[Tensor, tuple]:
    """Rows ``(l * n, 4 h)``, biases included, to outputs ``(l * n, h)`` and the last (h, c)."""
    x = projected.view(len(sizes), sizes[0], projected.size(-1))
    h, c = first
    y, h, c = _LSTMLayer.apply(x.flip(0) if reverse else x, h, c, weights[0])
    y = y.flip(0) if reverse else y
    return y.reshape(projected.size(0), -1), (h, c)


def _by_steps(x: Tensor, h: Tensor, c: Tensor, w_hh: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    sizes = [x.size(1)] * x.size(0)
    weights = [w_hh, None, None]
    outputs, last = _recurrence.run(
        list(x.unbind(0)), sizes, (h, c), lambda x, s: _recurrence.lstm_step(x, s, weights)
    )
    return taeda.stack(outputs), *last


class _LSTMLayer(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, h0: Tensor, c0: Tensor, w_hh: Tensor) -> Any:
        length, batch, width = x.shape
        n = width // 4
        gates, tanh_c = taeda.empty_like(x), x.new_empty((length, batch, n))
        # The states before each step; the outputs are those after it.
        h, c = x.new_empty((length + 1, batch, n)), x.new_empty((length + 1, batch, n))
        h[0], c[0] = h0, c0
        transposed = w_hh.t()
        for t in range(length):
            gate, c_next = gates[t], c[t + 1]
            taeda.addmm(x[t], h[t], transposed, out=gate)
            i, f, g, o = gate.chunk(4, 1)
            gate[:, : 2 * n].sigmoid_()
            g.tanh_()
            o.sigmoid_()
            taeda.mul(f, c[t], out=c_next)
            c_next.addcmul_(i, g)
            taeda.tanh(c_next, out=tanh_c[t])
            taeda.mul(o, tanh_c[t], out=h[t + 1])
        ctx.save_for_backward(x, h0, c0, w_hh)
        ctx.states = (gates, tanh_c, h, c)
        return h[1:].clone(), h[length].clone(), c[length].clone()

    @staticmethod
    def backward(ctx: Any, gy: Tensor, gh: Tensor, gc: Tensor) -> Any:
        if taeda.is_grad_enabled():
            inputs = ctx.saved_tensors
            wanted = [a for a, needed in zip(inputs, ctx.needs_input_grad) if needed]
            found = iter(
                taeda.autograd.grad(_by_steps(*inputs), wanted, (gy, gh, gc), create_graph=True)
            )
            return tuple(next(found) if needed else None for needed in ctx.needs_input_grad)
        _, _, _, w_hh = ctx.saved_tensors
        gates, tanh_c, h, c = ctx.states
        length, batch, n = tanh_c.shape
        i, f, g, o = gates.chunk(4, 2)
        # What the gradients of c (for i, f, g) and of h (for o) are multiplied by.
        slopes = taeda.cat(
            [g * i * (1 - i), c[:length] * f * (1 - f), i * (1 - g * g), tanh_c * o * (1 - o)], 2
        ).view(length, batch, 4, n)
        through = o * (1 - tanh_c * tanh_c)
        gx = taeda.empty_like(gates)
        gh, gc = gh.clone(), gc.clone()
        for t in range(length - 1, -1, -1):
            gh.add_(gy[t])
            gc.addcmul_(gh, through[t])
            step = gx[t].view(batch, 4, n)
            taeda.mul(slopes[t, :, :3], gc.unsqueeze(1), out=step[:, :3])
            taeda.mul(slopes[t, :, 3], gh, out=step[:, 3])
            gc.mul_(f[t])
            taeda.mm(gx[t], w_hh, out=gh)
        rows = gx.view(length * batch, 4 * n)
        gw = rows.t() @ h[:length].view(length * batch, n) if ctx.needs_input_grad[3] else None
        return gx, gh, gc, gw
