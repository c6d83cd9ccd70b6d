"""torch.onnx: writing ONNX files, which raises, and the questions and registers around it."""

from __future__ import annotations

from collections.abc import Callable as _Callable

from taeda import _missing

_custom_symbolics: dict[tuple[str, int], _Callable] = {}


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: never."""
    return False


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: _Callable, opset_version: int
) -> None:
    """Keeps how an operator is exported from an opset version on."""
    _checked(symbolic_name)
    _custom_symbolics[symbolic_name, opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Forgets it."""
    _custom_symbolics.pop((_checked(symbolic_name), opset_version), None)


def _checked(symbolic_name: str) -> str:
    if symbolic_name.startswith("::"):
        symbolic_name = f"aten{symbolic_name}"
    domain, separator, name = symbolic_name.partition("::")
    if not (domain and separator and name):
        raise ValueError(
            f"Failed to register operator {symbolic_name}. The symbolic name must match the "
            "format domain::name, and should start with a letter and contain only alphanumerical "
            "characters"
        )
    return symbolic_name


__getattr__, __dir__ = _missing.attributes(__name__)
