"""The same expression with taeda and with PyTorch: values, errors, gradients side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import taeda
import taeda.distributions

torch = pytest.importorskip("torch")

FRAMEWORKS = (taeda, torch)


class Names:
    """What expressions see: T the framework, D its distributions, t() and p() for tensors."""

    def __init__(self, framework: Any) -> None:
        self.T, self.D = framework, framework.distributions
        self.parameters: list[Any] = []

    def t(self, *values: Any) -> Any:
        return self.T.tensor(values if len(values) != 1 else values[0])

    def p(self, *values: Any) -> Any:
        """A parameter whose gradient is compared."""
        self.parameters.append(self.t(*values).requires_grad_())
        return self.parameters[-1]

    def r(self, *shape: int) -> Any:
        """Normal numbers, a parameter."""
        numbers = np.random.RandomState(sum(shape)).standard_normal(shape).astype("float32")
        self.parameters.append(self.T.from_numpy(numbers).requires_grad_())
        return self.parameters[-1]

    def evaluate(self, expression: str, **more: Any) -> Any:
        names = {"T": self.T, "D": self.D, "t": self.t, "p": self.p, "r": self.r}
        return eval(expression, {**names, **more})


def outcome(call: Any) -> Any:
    """What a call gives, or the type and text of what it raises."""
    try:
        return plain(call())
    except Exception as error:
        return type(error), str(error).replace("taeda.distributions", "torch.distributions")


def plain(value: Any) -> Any:
    if hasattr(value, "detach"):
        return value.detach().numpy()
    if isinstance(value, (tuple, list)) and not isinstance(value, str):
        return tuple(plain(v) for v in value)
    return value


def assert_same(a: Any, b: Any, what: str, rtol: float = 2e-5, atol: float = 2e-6) -> None:
    if isinstance(b, np.ndarray):
        assert isinstance(a, np.ndarray), (what, a, b)
        assert a.dtype == b.dtype and a.shape == b.shape, (what, a.dtype, a.shape, b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=what)
    elif isinstance(b, tuple) and b and not isinstance(b[0], type):
        assert len(a) == len(b), (what, a, b)
        for x, y in zip(a, b):
            assert_same(x, y, what, rtol, atol)
    else:
        assert a == b, what
