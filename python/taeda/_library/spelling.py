"""How operators of the table are shown to a `__torch_dispatch__`: the registry of spellings."""

from __future__ import annotations

import dis
import itertools
import re
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda.utils._mode_utils import no_dispatch

aten, ours = taeda.ops.aten, taeda.ops.taeda
#: Of the table's operators: their arguments -> (operator, args, kwargs, what makes the table's
#: results of the operator's, or None).
SPELLINGS: dict[str, Callable[..., tuple[Any, tuple, dict, Any]]] = {}


def spells(name: str) -> Callable:
    """A decorator: how calls of `name` are shown, "taeda::" or "aten::" and an overload with it."""

    def register(function: Callable) -> Callable:
        SPELLINGS[name if "::" in name else f"taeda::{name}"] = function
        return function

    return register


_CALL = re.compile(r"(\w+)(?:\.(\w+))?\((.*)\)(?:\[(\d)\])?$")


def _without_defaults(op: Any, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The arguments as a program would write them."""
    schema = {argument.name: argument for argument in op._schema.arguments}

    def is_default(argument: Any, value: Any) -> bool:
        known = argument.has_default_value() and not isinstance(value, Tensor)
        return known and argument.default_value == value

    count, arguments = len(args), [*schema.values()]
    while count and is_default(arguments[count - 1], args[count - 1]):
        count -= 1
    return args[:count], {k: v for k, v in kwargs.items() if not is_default(schema[k], v)}


class _Call:
    """A call as the table writes it."""

    def __init__(self, text: str, where: str):
        condition, _, text = text.rpartition(" => ")
        match = _CALL.match(text)
        assert match, text
        self.name, overload, arguments, index = match.groups()
        self.overload = overload or "default"
        self.condition = compile(condition or "True", where, "eval")
        self.arguments = compile(f"call({arguments})", where, "eval")
        self.restore = None if index is None else itemgetter(int(index))

    def __call__(self, given: dict) -> tuple[Any, tuple, dict, Any]:
        shown = getattr(getattr(aten, self.name), self.overload)
        args, kwargs = eval(self.arguments, _NAMES, given)
        return shown, *_without_defaults(shown, args, kwargs), self.restore


#: What the table's conditions and calls may use besides the operator's arguments.
_NAMES = {
    "call": lambda *args, **kwargs: (args, kwargs),
    "like": lambda x, sizes: like(x, sizes),
    "known": lambda scale: scale or None,  # 0 stands for a scale that follows from the sizes
    "is_number": lambda x: not isinstance(x, Tensor),
    "reduction_number": lambda *given: reduction_number(*given),
}

#: A loss's `reduction` as a number, as PyTorch's operators have it.
REDUCTIONS = ("none", "mean", "sum")


def reduction_number(
    name: str, size_average: bool | None = None, reduce: bool | None = None
) -> int:
    """The number of a reduction; the two older arguments overrule the name."""
    if size_average is not None or reduce is not None:
        name = "none" if reduce is False else "sum" if size_average is False else "mean"
    if name not in REDUCTIONS:
        raise ValueError(f"{name} is not a valid value for reduction")
    return REDUCTIONS.index(name)


def from_table(op: Any, text: str) -> Callable:
    """How calls of an operator are shown, from its `seen_as` in the table."""
    calls = [_Call(line, f"<seen_as of {op}>") for line in text.split("\n")]
    defaults = {a.name: a.default_value for a in op._schema.arguments}

    def spell(*args: Any, **kwargs: Any) -> tuple[Any, tuple, dict, Any]:
        given = defaults | dict(zip(defaults, args)) | kwargs
        for call in calls:
            if eval(call.condition, _NAMES, given):
                return call(given)
        return op, args, kwargs, None

    spell.shows = {call.name for call in calls}  # type: ignore[attr-defined]
    return spell


def shown_by(name: str, on_the_way: bool) -> list[str]:
    """The operators of the table, some of whose calls may be shown as PyTorch's `name`; with
    `on_the_way` also those whose spelling calls it."""
    return [own for own, spell in SPELLINGS.items() if name in _names_in(spell, on_the_way)]


def _names_in(spell: Any, on_the_way: bool) -> set[str]:
    """The names of operators in a spelling's text, or in its code, its defaults and the variables
    that it closes over."""
    if hasattr(spell, "shows"):
        return spell.shows
    code = spell.__code__
    values = [spell.__globals__.get(name) for name in code.co_names]
    values += [cell.cell_contents for cell in spell.__closure__ or ()]
    values += [*(spell.__defaults__ or ()), *(spell.__kwdefaults__ or {}).values()]
    found = {v for v in values if isinstance(v, str)}
    found.update(v._schema.name.partition("::")[2] for v in values if hasattr(v, "_schema"))
    steps = [*dis.get_instructions(code)]
    found.update(y.argval for x, y in itertools.pairwise(steps) if x.argval == "aten")
    return found.union(code.co_names) if on_the_way else found


_FUNCTIONS: dict[int, Callable] = {}  # by the id of the operator, which lives on


def define(schema: str, recorded: Callable | None = None) -> Callable:
    """A decorator: an operator of PyTorch's as a composition of the table's. Modes see what it
    calls; with `recorded`, which autograd calls in its place, they see the operator."""
    kernels = () if recorded is None else (recorded,)

    def add(function: Callable) -> Any:
        run = _FUNCTIONS.get(id(function), function)
        op = _C._define_composite(f"aten::{schema}", run, *kernels)
        _FUNCTIONS[id(op)] = run  # for another schema of the same function
        return op

    return add


def define_out(op: Any) -> Any:
    """Its overload that writes into tensors, named as its results are."""
    schema = op._schema
    names = [result.name for result in schema.returns]
    outs = ", ".join(f"Tensor({letter}!) {name}" for letter, name in zip("abcd", names))
    call = str(schema).partition("::")[2].partition(" -> ")[0].removesuffix(")")
    name, _, parameters = call.partition("(")
    star = "" if "*, " in parameters else "*, "

    def write(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        written = [kwargs.pop(name) for name in names]
        for out, result in zip(written, op(*args, **kwargs)):
            if out.dtype != result.dtype:
                raise RuntimeError(
                    f"{schema.name}: expected an out tensor of {result.dtype}, got {out.dtype}"
                )
            if out.shape != result.shape:
                out.resize_(result.shape).as_strided_(result.shape, result.stride())
            out.copy_(result)
        return tuple(written)

    return define(f"{name}.{names[0]}({parameters}, {star}{outs}) -> ({outs})")(write)


def functional(name: str) -> Any:
    """A function of torch.nn.functional."""
    return getattr(taeda.nn.functional, name)


def like(x: Any, sizes: Any) -> Tensor:
    """A tensor of which only the sizes are read."""
    if hasattr(x, "fake_mode"):
        return x._sized(sizes)
    with no_dispatch():
        return taeda.empty((), dtype=x.dtype, device=x.device).expand(sizes)
