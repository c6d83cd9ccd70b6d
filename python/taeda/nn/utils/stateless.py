"""Calling a module with other parameters than its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from taeda import Tensor
from taeda.nn.modules.module import Module

__all__ = ["functional_call"]


_MISSING = object()


def _table(module: Module, name: str) -> dict[str, Any] | None:
    """The table of ``module`` that holds the tensor ``name``."""
    for table in (module._parameters, module._buffers):
        if name in table:
            return table
    return None


def _tied_names(module: Module) -> dict[int, list[str]]:
    """The names of each tensor of the module that has more than one."""
    names: dict[int, list[str]] = {}
    tensor: Tensor
    for name, tensor in module.named_parameters(remove_duplicate=False):
        names.setdefault(id(tensor), []).append(name)
    for name, tensor in module.named_buffers(remove_duplicate=False):
        names.setdefault(id(tensor), []).append(name)
    return names


@contextmanager
def _reparametrize_module(
    module: Module,
    values: dict[str, Tensor],
    *,
    tie_weights: bool = False,
    strict: bool = False,
) -> Iterator[None]:
    """Puts ``values`` in the place of the module's tensors until the end of the context."""
    groups = list(_tied_names(module).values())
    known = {name for group in groups for name in group}
    wanted = dict(values)
    if tie_weights:
        for group in groups:
            given = [values[name] for name in group if name in values]
            if any(value is not given[0] for value in given):
                raise ValueError(
                    f"functional_call got multiple values for keys {sorted(group)}, which are "
                    "tied. Consider using tie_weights=False"
                )
            if given:
                wanted.update(dict.fromkeys(group, given[0]))
    if strict and set(wanted) != known:
        unexpected, missing = sorted(set(wanted) - known), sorted(known - set(wanted))
        parts = []
        if unexpected:
            parts.append(f"Unexpected key(s): {', '.join(map(repr, unexpected))}.")
        if missing:
            parts.append(f"Missing key(s): {', '.join(map(repr, missing))}.")
        raise RuntimeError(
            f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(parts)
        )
    saved: list[tuple[dict[str, Any], str, Any]] = []
    try:
        for path, value in wanted.items():
            parent_path, _, name = path.rpartition(".")
            parent = module.get_submodule(parent_path)
            table = _table(parent, name)
            if table is None:  # an attribute, for as long as the call lasts
                table = vars(parent)
            saved.append((table, name, table.get(name, _MISSING)))
            table[name] = value
        yield
    finally:
        for table, name, value in reversed(saved):
            if value is _MISSING:
                del table[name]
            else:
                table[name] = value


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The older name of ``torch.func.functional_call``."""
    return _functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def _functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any,
    kwargs: dict[str, Any] | None,
    *,
    tie_weights: bool,
    strict: bool,
) -> Any:
    if isinstance(parameters_and_buffers, dict):
        values = parameters_and_buffers
    elif isinstance(parameters_and_buffers, (list, tuple)):
        values = {}
        for part in parameters_and_buffers:
            if not isinstance(part, dict):
                raise ValueError(
                    "Expected all elements of parameters_and_buffers to be dictionaries"
                )
            repeated = values.keys() & part.keys()
            if repeated:
                raise ValueError(
                    f"{', '.join(sorted(repeated))} appeared in multiple dictionaries; "
                    "behavior of functional call is ambiguous"
                )
            values = {**values, **part}
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, "
            f"but got {type(parameters_and_buffers)}"
        )
    if kwargs is None:
        kwargs = {}
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _reparametrize_module(module, values, tie_weights=tie_weights, strict=strict):
        return module(*args, **kwargs)
