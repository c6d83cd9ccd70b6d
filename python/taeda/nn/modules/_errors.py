"""Names the module in which an exception was raised, without changing the exception's type."""

from __future__ import annotations

from typing import Any

import taeda

_TRAIL = "_taeda_module_trail"


def note_module(error: BaseException, module: Any, args: tuple, kwargs: dict) -> None:
    """Adds to ``error``, or extends, the note that says where in the model it was raised.

    Called by each enclosing module as the exception passes, innermost first: the path grows to the
    left until the outermost module is reached.
    """
    trail = getattr(error, _TRAIL, None)
    if trail is None:
        trail = _Trail(module, args, kwargs)
        try:
            setattr(error, _TRAIL, trail)
        except AttributeError:
            return
        fixes = _without_fixes(error)
        error.add_note(trail.text())
        if isinstance(error, RuntimeError | ValueError | IndexError):
            fixes = _layer_fix(module, args) or fixes
        for fix in fixes:
            error.add_note(fix)
        return
    before = trail.text()
    trail.enter(module)
    notes = getattr(error, "__notes__", [])
    if before in notes:
        notes[notes.index(before)] = trail.text()


def _without_fixes(error: BaseException) -> list[str]:
    """Takes the note that says what to do from an operator's error: it comes last. Notes that
    programs have added stay."""
    notes, fix = getattr(error, "__notes__", []), getattr(error, "_taeda_fix", "")
    if fix not in notes:
        return []
    notes.remove(fix)
    return [fix]


def _layer_fix(module: Any, args: tuple) -> list[str]:
    """The note that says what to change, where the module's kind is one that `advice` knows."""
    from ._advice import advice

    try:
        text = advice(module, args)
    except Exception:  # the input or the module is odder than the advice expects
        return []
    return [f"Fix: {text}"] if text else []


class _Trail:
    """The path from the outermost module seen so far down to the one that raised."""

    def __init__(self, module: Any, args: tuple, kwargs: dict) -> None:
        self.leaf = _first_line(module)
        self.arguments = _describe_arguments(args, kwargs)
        self.outermost = module
        self.path = ""

    def enter(self, parent: Any) -> None:
        if parent is self.outermost:
            return
        for name, child in parent.named_modules():
            if child is self.outermost:
                self.path = f"{name}.{self.path}" if self.path else name
                break
        self.outermost = parent

    def text(self) -> str:
        place = type(self.outermost).__name__
        if self.path:
            place = f"'{self.path}' of {place}: {self.leaf}"
        else:
            place = self.leaf
        return f"In module {place}, called with ({self.arguments})"


def _first_line(module: Any) -> str:
    try:
        text = repr(module)
    except Exception:  # a broken extra_repr must not hide the error being reported
        return type(module).__name__
    return text if "\n" not in text else type(module).__name__


def _describe_arguments(args: tuple, kwargs: dict) -> str:
    parts = [_describe(value) for value in args]
    parts += [f"{name}={_describe(value)}" for name, value in kwargs.items()]
    return ", ".join(parts)


def _describe(value: Any) -> str:
    if isinstance(value, taeda.Tensor):
        try:
            where = "" if value.device.type == "cpu" else f" {value.device}"
            return f"{list(value.shape)} {str(value.dtype).rpartition('.')[2]}{where}"
        except Exception:  # a tensor without a shape
            return type(value).__name__
    if isinstance(value, (bool, int, float, str, type(None))):
        return repr(value) if len(repr(value)) <= 40 else type(value).__name__
    if isinstance(value, (tuple, list)) and len(value) <= 4:
        inner = ", ".join(_describe(item) for item in value)
        inner += "," if isinstance(value, tuple) and len(value) == 1 else ""
        return f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
    return type(value).__name__
