"""L-BFGS (Nocedal & Wright, Numerical Optimization, chapters 3 and 7)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import taeda
from taeda import Tensor

from .optimizer import Optimizer, ParamsT, check_lr

__all__ = ["LBFGS"]


def _cubic_minimum(
    x1: Any, f1: float, g1: Any, x2: Any, f2: float, g2: Any, bounds: Any = None
) -> Any:
    """The minimum of the cubic through two points with given slopes, within ``bounds``."""
    low, high = bounds if bounds is not None else (min(x1, x2), max(x1, x2))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if square < 0:
        return (low + high) / 2.0
    d2 = square**0.5
    if x1 <= x2:
        position = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        position = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(position, low), high)


# What a call of step leaves to the next one, beside the counts and `al`, a workspace.
_KNOWN = ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")


class _Point:
    """A step length with loss, gradient and slope there; lengths that were computed from slopes are
    tensors, as in PyTorch, whose state has them."""

    def __init__(self, t: Any, loss: float, grad: Tensor, slope: Tensor) -> None:
        self.t, self.loss, self.grad, self.slope = t, loss, grad, slope


def _strong_wolfe(
    evaluate: Callable[[Any], _Point],
    start: _Point,
    t: float | Tensor,
    direction_size: float,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
    max_ls: int = 25,
) -> tuple[_Point, int]:
    """A step that satisfies the strong Wolfe conditions, and the evaluations that it took."""
    new = evaluate(t)
    evaluations = 1
    previous = start
    iteration = 0
    bracket: list[_Point] = []
    done = False
    while iteration < max_ls:  # widen until a minimum is bracketed
        too_high = new.loss > start.loss + c1 * new.t * start.slope
        if too_high or (iteration > 1 and new.loss >= previous.loss):
            bracket = [previous, new]
            break
        if abs(new.slope) <= -c2 * start.slope:
            bracket, done = [new], True
            break
        if new.slope >= 0:
            bracket = [previous, new]
            break
        bounds = (new.t + 0.01 * (new.t - previous.t), new.t * 10)
        t = _cubic_minimum(
            previous.t, previous.loss, previous.slope, new.t, new.loss, new.slope, bounds
        )
        previous = new
        new = evaluate(t)
        evaluations += 1
        iteration += 1
    if iteration == max_ls:
        bracket = [start, new]
    low, high = (0, -1) if bracket[0].loss <= bracket[-1].loss else (1, 0)
    if done:
        return bracket[low], evaluations
    insufficient = False
    while not done and iteration < max_ls:  # shrink the bracket
        a, b = bracket
        if abs(b.t - a.t) * direction_size < tolerance_change:
            break
        t = _cubic_minimum(a.t, a.loss, a.slope, b.t, b.loss, b.slope)
        smallest, largest = min(a.t, b.t), max(a.t, b.t)
        margin = 0.1 * (largest - smallest)
        if min(largest - t, t - smallest) < margin:
            # Too close to an end twice, or outside: move away from it.
            if insufficient or t >= largest or t <= smallest:
                near_end = abs(t - largest) < abs(t - smallest)
                t = largest - margin if near_end else smallest + margin
                insufficient = False
            else:
                insufficient = True
        else:
            insufficient = False
        new = evaluate(t)
        evaluations += 1
        iteration += 1
        too_high = new.loss > start.loss + c1 * t * start.slope
        if too_high or new.loss >= bracket[low].loss:
            bracket[high] = new
            low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
        else:
            if abs(new.slope) <= -c2 * start.slope:
                done = True
            elif new.slope * (bracket[high].t - bracket[low].t) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = new
    return bracket[low], evaluations


class LBFGS(Optimizer):
    """Quasi-Newton steps from the last gradient changes, for full batches.

    The direction is ``-H g``, H an approximation of the inverse Hessian that is made of the last
    ``history_size`` pairs of steps and gradient changes (Nocedal 1980). ``step`` needs a closure
    that clears the gradients, computes the loss, calls backward and returns the loss; it is called
    several times a step. One group only.

    Args:
        params: tensors.
        lr: the length of steps, 1 unless given.
        max_iter: iterations in a call of ``step``.
        max_eval: evaluations in a call; None: ``max_iter * 5 / 4``.
        tolerance_grad, tolerance_change: ends below these largest gradients and changes.
        history_size: pairs that are kept, each as large as the parameters.
        line_search_fn: None takes steps of ``lr``; "strong_wolfe" searches their length.

    >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
    >>> optimizer = torch.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((w - 3) ** 4).sum()
    ...     loss.backward()
    ...     return loss
    >>> first = optimizer.step(closure)
    >>> closure().item() < 1e-6 * first.item()
    True
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_lr(lr)
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        super().__init__(
            params,
            {
                "lr": lr,
                "max_iter": max_iter,
                "max_eval": max_eval,
                "tolerance_grad": tolerance_grad,
                "tolerance_change": tolerance_change,
                "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def _gather_flat_grad(self) -> Tensor:
        views = []
        for p in self._params:
            grad = taeda.zeros_like(p) if p.grad is None else p.grad
            grad = grad.detach()
            views.append(
                (taeda.view_as_real(grad.resolve_conj()) if grad.is_complex() else grad).reshape(-1)
            )
        return taeda.cat(views)

    def _add_direction(self, step: Any, direction: Tensor) -> None:
        offset = 0
        for p in self._params:
            real = taeda.view_as_real(p) if p.is_complex() else p
            count = real.numel()
            real.add_(direction[offset : offset + count].view_as(real), alpha=step)
            offset += count

    def _evaluate_at(
        self, closure: Callable, start: list[Tensor], direction: Tensor, t: Any
    ) -> _Point:
        """Loss and gradient a step ``t`` along ``direction``; the parameters stay in place."""
        self._add_direction(t, direction)
        loss = float(closure())
        grad = self._gather_flat_grad()
        for p, value in zip(self._params, start):
            p.copy_(value)
        return _Point(t, loss, grad, grad.dot(direction))

    @staticmethod
    def _direction(
        state: dict[str, Any], known: dict[str, Any], grad: Tensor, history_size: int
    ) -> Tensor:
        """Two-loop recursion: minus the approximate inverse Hessian times the gradient."""
        if state["n_iter"] == 1:
            known["old_dirs"], known["old_stps"], known["ro"] = [], [], []
            known["H_diag"] = 1
            return grad.neg()
        y = grad.sub(known["prev_flat_grad"])
        s = known["d"].mul(known["t"])
        ys = y.dot(s)
        old_y, old_s, ro = known["old_dirs"], known["old_stps"], known["ro"]
        if ys > 1e-10:
            if len(old_y) == history_size:
                del old_y[0], old_s[0], ro[0]
            old_y.append(y)
            old_s.append(s)
            ro.append(1.0 / ys)
            known["H_diag"] = ys / y.dot(y)
        q = grad.neg()
        al = state.setdefault("al", [None] * history_size)
        for i in range(len(old_y) - 1, -1, -1):
            al[i] = old_s[i].dot(q) * ro[i]
            q.add_(old_y[i], alpha=-al[i])
        r = q.mul(known["H_diag"])
        for i in range(len(old_y)):
            be = old_y[i].dot(r) * ro[i]
            r.add_(old_s[i], alpha=al[i] - be)
        return r

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Up to ``max_iter`` iterations; ``closure`` computes loss and gradients. First loss."""

        def evaluate() -> Any:
            with taeda.enable_grad():
                return closure()

        with taeda.no_grad():
            return self._step(evaluate)

    def _step(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        lr = group["lr"]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = closure()
        loss = float(first_loss)
        evaluations = 1
        state["func_evals"] += 1
        grad = self._gather_flat_grad()
        if float(grad.abs().max()) <= group["tolerance_grad"]:
            return first_loss
        known = {name: state.get(name) for name in _KNOWN}
        iterations = 0
        while iterations < group["max_iter"]:
            iterations += 1
            state["n_iter"] += 1
            direction = self._direction(state, known, grad, group["history_size"])
            known["prev_flat_grad"] = grad.clone(memory_format=taeda.contiguous_format)
            known["prev_loss"] = loss
            known["d"] = direction
            first = state["n_iter"] == 1
            t = known["t"] = min(1.0, 1.0 / grad.abs().sum()) * lr if first else lr
            slope = grad.dot(direction)
            if slope > -group["tolerance_change"]:
                break
            used = 0
            previous_loss = loss
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                start = [p.clone(memory_format=taeda.contiguous_format) for p in self._params]
                point, used = _strong_wolfe(
                    functools.partial(self._evaluate_at, closure, start, direction),
                    _Point(0, loss, grad, slope),
                    t,
                    float(direction.abs().max()),
                )
                t, loss, grad = point.t, point.loss, point.grad
                self._add_direction(t, direction)
            else:
                self._add_direction(t, direction)
                if iterations != group["max_iter"]:
                    loss = float(closure())
                    grad = self._gather_flat_grad()
                    used = 1
            known["t"] = t
            evaluations += used
            state["func_evals"] += used
            if (
                iterations == group["max_iter"]
                or evaluations >= group["max_eval"]
                or float(grad.abs().max()) <= group["tolerance_grad"]
                or float(direction.mul(t).abs().max()) <= group["tolerance_change"]
                or abs(loss - previous_loss) < group["tolerance_change"]
            ):
                break
        state.update(known)
        return first_loss
