"""The AttributeError of a misspelt name, which says what may have been meant.

CPython's traceback suggests names itself, but the exception's text, which notebooks and logs show,
lacks them.
"""

from __future__ import annotations

from taeda._tensor import _FOREIGN_OPERATORS

TYPE_CHECKING = False  # typing's own would load typing
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

# What NumPy, Keras, TensorFlow and JAX call things: PyTorch's name, where an object has it.
_OTHERS = _FOREIGN_OPERATORS | {
    "array": "tensor",
    "convert_to_tensor": "as_tensor",
    "identity": "eye",
    "mod": "remainder",
    "ndarray": "Tensor",
    "BatchNormalization": "BatchNorm2d",
    "Dense": "Linear",
    "LayerNormalization": "LayerNorm",
    "MaxPooling1D": "MaxPool1d",
    "MaxPooling2D": "MaxPool2d",
    "MultiHeadAttention": "MultiheadAttention",
}


def _distance(a: str, b: str) -> int:
    """How far b is from what was typed, a: 0 capitals, 1 two exchanged letters, 2 a letter more,
    3 a letter less or another one, 4 farther."""
    if a.casefold() == b.casefold():
        return 0
    same = 0
    for x, y in zip(a, b):
        if x != y:
            break
        same += 1
    a, b = a[same:], b[same:]
    if a[:2] == b[1::-1] and a[2:] == b[2:]:
        return 1
    return 2 if a == b[1:] else 3 if a[1:] in (b, b[1:]) else 4


def nearest(wrong: str, names: Iterable[str]) -> str | None:
    """The name that is one edit away from `wrong`, or differs in capitals, or what other frameworks
    call so.

    >>> from taeda._near_names import nearest
    >>> nearest("wieght", ["bias", "weight"]), nearest("expand_dims", ["squeeze", "unsqueeze"])
    ('weight', 'unsqueeze')
    """
    if len(wrong) < 3 or wrong.startswith("_"):
        return None
    other = _OTHERS.get(wrong)
    if other:
        names = list(names)
        if other in names:
            return other
    first, most, least = wrong[0].casefold(), len(wrong) + 1, len(wrong) - 1
    near = [n for n in names if n[:1].casefold() == first and least <= len(n) <= most]
    best = min(((_distance(wrong, n), i) for i, n in enumerate(near) if n != wrong), default=(4, 0))
    return near[best[1]] if best[0] < 4 else None


class _Missing(AttributeError):
    """An AttributeError that looks for the name that was meant when its text is asked for: most are
    raised for hasattr and getattr with a default, which ask for none.

    It has a name without an object, or else CPython's traceback would add a second suggestion.
    """

    def __init__(self, text: str, name: str, names: Callable[[], Iterable[str]]):
        super().__init__(text, name=name)
        self._names = names

    def __str__(self) -> str:
        text, wrong, names = self.args[0], str(self.name), [*self._names()]
        meant = nearest(wrong, names)
        if meant is None and len(wrong) > 4 and not wrong.startswith("_"):
            from difflib import get_close_matches

            meant = next(iter(get_close_matches(wrong, names, 1, 0.8)), None)
        return text if meant is None else f"{text}. Did you mean: '{meant}'?"

    def __reduce__(self) -> tuple:
        return AttributeError, (str(self),)


_Missing.__name__ = _Missing.__qualname__ = "AttributeError"
_Missing.__module__ = "builtins"


def no_attribute(owner: str, name: str, names: Callable[[], Iterable[str]]) -> AttributeError:
    """The error "module 'x' has no attribute 'nam'. Did you mean: 'name'?", to be raised; `names`
    gives those that there are."""
    return _Missing(f"{owner} has no attribute '{name}'", name, names)


def of_module(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module that has all its names."""

    def __getattr__(name: str) -> Any:
        from sys import modules

        raise no_attribute(f"module '{module}'", name, lambda: dir(modules[module]))

    return __getattr__
