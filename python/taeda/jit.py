"""TorchScript's names. There is no compiler yet: what compiles raises, what marks code works."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from taeda import _C

Function = TypeVar("Function", bound=Callable)
Final = Any


def is_scripting() -> bool:
    """Whether the code runs inside a compiled script: never."""
    return False


class TracerWarning(Warning):
    """A traced function made a Python value of a tensor: the trace keeps what it was."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Hides those that come from this package's own code."""
        warnings.filterwarnings("ignore", category=TracerWarning, module="taeda.(?!jit)")


def is_tracing() -> bool:
    """Whether a trace is being recorded."""
    return _C._is_tracing()


def ignore(fn: Any = None, drop: bool = False) -> Any:
    """Marks a method that scripts leave to Python."""
    return fn if callable(fn) else lambda function: function


unused = ignore


def export(fn: Function) -> Function:
    """Marks a method for compilation."""
    return fn


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value, whose type a script compiler would note."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """As the builtin."""
    import builtins

    return builtins.isinstance(obj, target_type)


def script(obj: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError("torch.jit.script: there is no script compiler yet")


def trace(func: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError("torch.jit.trace: there is no tracer yet")


def load(f: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError("torch.jit.load: script archives cannot be read yet")


def save(m: Any, f: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError("torch.jit.save: script archives cannot be written yet")
