"""One call of a function under autograd, by a transform."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda.autograd.grad_mode import differentiating, recording
from taeda.autograd.graph import without_hooks_of
from taeda.utils._pytree import tree_map

__all__ = ["Run", "gradients", "level"]


class _Levels(threading.local):
    depth = 0


_levels = _C._carry_thread_local(_Levels())


@contextmanager
def level() -> Iterator[None]:
    """A transform at work, which records whatever the mode outside. A checkpoint outside keeps
    nothing of its graph, which is gone before the checkpoint's region ends."""
    checkpoint = sys.modules.get("taeda.utils.checkpoint")
    _levels.depth += 1
    try:
        with recording(), without_hooks_of(checkpoint._Hooks) if checkpoint else nullcontext():
            yield
    finally:
        _levels.depth -= 1


def _start(x: Tensor) -> Tensor:
    """The tensor to differentiate by: connected to x where x is differentiated outside. In vmap it
    is the level's own, so that nothing outside of the level is recorded for it."""
    x = _C._lift(x)
    return x.view_as(x) if x.requires_grad else _C._fresh_leaf(x).requires_grad_()


def _with_tangents(tensors: list) -> Iterator[Tensor]:
    """The tensors, their tangents at the levels outside, the tangents of those."""
    for x in tensors:
        yield x
        yield from _with_tangents(_C._tangents(x))


class Run:
    """A function's inputs, a list of tensors, that are differentiated by."""

    def __init__(self, given: list) -> None:
        self.recording = taeda.is_grad_enabled()  # outside of the transform
        self.nested = _levels.depth > 0
        self.given = given
        self.inputs = [_start(x) for x in given]

    def keep_history(self, outputs: list) -> bool:
        """Whether gradients are recorded. Before they are known, a tangent may yet lead to what is
        differentiated outside."""
        return self.recording and (_C._dual_level() != 0 or self.leads_outside(outputs))

    def follows(self, cotangents: list) -> bool:
        """Whether what is computed from these is recorded though the function itself is not."""
        return self.recording and (
            _C._dual_level() != 0
            or any(isinstance(c, Tensor) and c.requires_grad for c in cotangents)
        )

    def leads_outside(self, outputs: list, known: list | None = None) -> bool:
        """Whether the outputs depend on what is differentiated outside of the transform; ``known``
        are leaves of the transform besides its inputs."""
        if self.nested or any(x.requires_grad for x in self.given):
            return True
        if any(_C._is_differentiated_below(y) for y in outputs):
            return True
        return _C._reaches_other_leaves(outputs, [*self.inputs, *(known or [])])

    def finish(self, tree: Any, history: bool, known: list | None = None) -> Any:
        """Results for the caller: without history where it leads nowhere."""
        if history and _C._dual_level() == 0:
            return tree
        settle = (lambda x: self._settled(x, known)) if history else _C._cut_history
        return tree_map(lambda x: settle(x) if isinstance(x, Tensor) else x, tree)

    def _settled(self, x: Tensor, known: list | None) -> Tensor:
        if self.leads_outside([x], known):
            return x
        tangents = list(_with_tangents(_C._tangents(x)))
        leads = self.leads_outside(tangents, known)
        return _C._fresh_leaf(x) if leads else _C._cut_history(x)

    def gradients(self, outputs: list, cotangents: Any, history: bool, keep: bool = False) -> list:
        """One gradient an input, zeros where the outputs do not depend on it."""
        return gradients(outputs, self.inputs, cotangents, history, keep)


def gradients(outputs: list, inputs: list, cotangents: Any, history: bool, keep: bool) -> list:
    """One gradient an input, zeros where the outputs do not depend on it."""
    pairs = [(y, c) for y, c in zip(outputs, cotangents) if y.requires_grad]
    wanted = [x for x in inputs if x.requires_grad]
    if not pairs or not wanted:
        return [taeda.zeros_like(x) for x in inputs]
    ys, cs = zip(*pairs)
    with differentiating():
        found = iter(
            taeda.autograd.grad(
                ys, wanted, cs, create_graph=history, retain_graph=keep or history,
                allow_unused=True,
            )
        )  # fmt: skip
    grads = [next(found) if x.requires_grad else None for x in inputs]
    return [taeda.zeros_like(x) if g is None else g for g, x in zip(grads, inputs)]
