"""The AttributeError of a misspelt name, which says what may have been meant.

CPython's traceback suggests names itself, but the exception's text, which notebooks and logs show,
lacks them.
"""

from __future__ import annotations

from collections.abc import Iterable

# What NumPy, Keras, TensorFlow and JAX call things: PyTorch's name, where an object has it.
_OTHERS = {
    "array": "tensor",
    "convert_to_tensor": "as_tensor",
    "copy": "clone",
    "expand_dims": "unsqueeze",
    "identity": "eye",
    "mod": "remainder",
    "ndarray": "Tensor",
    "power": "pow",
    "reduce_max": "amax",
    "reduce_mean": "mean",
    "reduce_min": "amin",
    "reduce_prod": "prod",
    "reduce_sum": "sum",
    "stop_gradient": "detach",
    "BatchNormalization": "BatchNorm2d",
    "Dense": "Linear",
    "LayerNormalization": "LayerNorm",
    "MaxPooling1D": "MaxPool1d",
    "MaxPooling2D": "MaxPool2d",
    "MultiHeadAttention": "MultiheadAttention",
}


def _one_edit(a: str, b: str) -> bool:
    """Whether a letter more, less or other, or two exchanged neighbours, lead from a to b."""
    same = 0
    for x, y in zip(a, b):
        if x != y:
            break
        same += 1
    a, b = a[same:], b[same:]
    swapped = a[:2] == b[1::-1] and a[2:] == b[2:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or swapped


def nearest(wrong: str, names: Iterable[str]) -> str | None:
    """The name that is one edit away from `wrong`, or what other frameworks call so.

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
    first, most, least = wrong[0], len(wrong) + 1, len(wrong) - 1
    near = [n for n in names if n[:1] == first and least <= len(n) <= most]
    return next((n for n in near if n != wrong and _one_edit(wrong, n)), None)


def no_attribute(owner: str, name: str, names: Iterable[str]) -> AttributeError:
    """The error "module 'x' has no attribute 'nam'. Did you mean: 'name'?", to be raised.

    With a suggestion it has a name without an object, or else CPython's traceback would add one
    more.
    """
    text = f"{owner} has no attribute '{name}'"
    near = nearest(name, names)
    if near is None:
        return AttributeError(text)
    return AttributeError(f"{text}. Did you mean: '{near}'?", name=name)
