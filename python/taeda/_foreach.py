"""torch._foreach_add and the like: an operator on each tensor of a list.

They are loops over the tensors; those of CUDA devices put off what they launch until it is a kernel
for many (src/kernels/cuda/launch_list.h). In the other arguments, a list gives one value a tensor
and anything else stands for all.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections import deque
from collections.abc import Callable, Iterator
from itertools import repeat, starmap
from typing import Any

from taeda import _C
from taeda._C import (  # type: ignore[attr-defined]
    Tensor,
    _cuda_with_list,
    _torch_dispatch_stack,
)


def _each(name: str, tensors: Any, args: tuple) -> Iterator[tuple]:
    """(tensor, its share of the other arguments) for every tensor."""
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    for arg in args:
        if isinstance(arg, (list, tuple)) and len(arg) != len(tensors):
            raise RuntimeError(
                f"Tensor lists must have the same number of tensors, got {len(tensors)} and "
                f"{len(arg)}"
            )
    columns = [arg if isinstance(arg, (list, tuple)) else repeat(arg) for arg in args]
    return zip(tensors, *columns)


def _operator(name: str) -> Callable:
    """The operator for one tensor: `(x, *args, **options)` -> result."""
    if name == "copy":
        return lambda x, src: src.to(x.dtype).expand_as(x).clone()
    if name in ("maximum", "minimum"):
        return getattr(Tensor, "clamp_min" if name == "maximum" else "clamp_max")
    return Tensor.zero_ if name == "zero" else getattr(Tensor, name)


def _in_place(name: str) -> Callable:
    if name in ("maximum", "minimum"):
        return getattr(Tensor, "clamp_min_" if name == "maximum" else "clamp_max_")
    if name == "abs":
        return _abs_
    operator = _operator(name)
    return getattr(Tensor, name + "_", None) or (lambda x, *rest: x.copy_(operator(x, *rest)))


def _applied(name: str, operator: Callable, each: Iterator[tuple], options: dict) -> Iterator:
    """The operator on each row of arguments; addcmul and addcdiv take value by its name."""
    if name in ("addcmul", "addcdiv"):
        return (operator(x, a, b, value=value) for x, a, b, value in each)
    return starmap(functools.partial(operator, **options) if options else operator, each)


def _run(collect: Callable, tensors: Any, each: Iterator) -> Any:
    """``collect(each)``; what it launches on a CUDA device is one kernel where it can be."""
    return _cuda_with_list(collect, each) if tensors[0].is_cuda else collect(each)


_exhaust: Callable = functools.partial(deque, maxlen=0)


def _abs_(x: Tensor) -> Tensor:
    if x.is_complex():
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return x.abs_()


def _scalars(packed: Tensor) -> list:
    """The numbers of a tensor with one for each tensor of a list."""
    if packed.dim() != 1:
        raise RuntimeError(
            f"Expected packed scalar Tensor to be of dimension 1. Got {packed.dim()} instead."
        )
    return packed.tolist()


@functools.cache
def _forms(name: str) -> tuple[str, ...]:
    """The arguments after the first of each form of an operator, by name and kind: a list of
    tensors, a number, a list of numbers, a tensor. Those in brackets may be left out."""
    if name == "copy":
        return ("src: tensors, [non_blocking: bool]",)
    if name == "zero":
        return ("",)
    parameters = [*inspect.signature(getattr(Tensor, name)).parameters.values()][1:]
    positional = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
    if not positional:
        return ("",)
    if len(positional) == 1:
        named = "exponent" if "exponent" in positional else "other|scalar|scalars"
        forms = tuple(f"{named}: {kind}" for kind in ("number", "tensors", "numbers"))
        return (*forms, f"{named}: tensor") if name in ("add", "mul", "div") else forms
    if any(p.name == "value" for p in parameters):
        lists = "tensor1: tensors, tensor2: tensors"
        last = ("[value: number]", "scalars: numbers", "scalars: tensor")
        return tuple(f"{lists}, {part}" for part in last)
    kinds = ("weights: tensors", "weight: number", "weight: numbers")
    return tuple(f"tensors1: tensors, {kind}" for kind in kinds)


def _is_number(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.dim() == 0 and not value.requires_grad
    return isinstance(value, (int, float, complex)) or _is_numpys(value)


def _is_value(x: Any) -> bool:
    """Whether a tensor stands for its number, which no list's elements are promoted by."""
    return isinstance(x, Tensor) and not x.requires_grad


def _with_value(function: Callable, value: Tensor) -> Callable:
    """The function of tensors and a device's number, which the host does not read: it would have to
    wait for it. A 0-d tensor is not promoted by it either."""
    kind = 0j if value.is_complex() else 0.0 if value.is_floating_point() else 0
    return lambda x, value: function(x, value).to(_C._result_type(x, kind))


def _is_numpys(value: Any) -> bool:
    """Whether it is one of NumPy's numbers; without loading NumPy."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.number, numpy.bool_))


def _are_tensors(value: Any) -> bool:
    if not isinstance(value, (list, tuple)):
        return False
    return _of_tensors(set(map(type, value)))


def _of_tensors(types: set[type]) -> bool:
    """Whether all are classes of tensors: those of a list are few, which its elements are not."""
    return all(issubclass(kind, Tensor) for kind in types)


_KINDS: dict[str, Callable[[Any], bool]] = {
    "tensors": _are_tensors,
    "numbers": lambda v: isinstance(v, (list, tuple)) and all(map(_is_number, v)),
    "number": _is_number,
    "tensor": lambda v: isinstance(v, Tensor),
    "bool": lambda v: isinstance(v, bool),
    "dtype": lambda v: v is None or isinstance(v, _C.dtype),
}


@functools.cache
def _parameters(form: str) -> tuple[tuple[list[str], Callable[[Any], bool], bool], ...]:
    """The names, the test of a value and whether it may be left out, of each of a form's."""
    parts = [part.strip() for part in form.split(",")] if form else []
    split = [[*part.strip("[]").split(": "), part] for part in parts]
    return tuple((n.split("|"), _KINDS[kind], part[0] == "[") for n, kind, part in split)


def _fits(form: str, args: tuple, options: dict) -> tuple | None:
    """The arguments in the form's order, if they are what it takes."""
    parameters = _parameters(form)
    if len(args) + len(options) > len(parameters):
        return None
    if not options and len(args) == len(parameters):
        for arg, (_, is_one, _) in zip(args, parameters):
            if not is_one(arg):
                return None
        return args
    found, named = list(args), dict(options)
    for i, (names, is_one, optional) in enumerate(parameters):
        if i >= len(found):
            given = next((n for n in names if n in named), None)
            if given is None:
                if optional:
                    break
                return None
            found.append(named.pop(given))
        if not is_one(found[i]):
            return None
    return None if named else tuple(found)


def _arguments(name: str, forms: tuple, self: Any, args: tuple, options: dict) -> tuple:
    """A call's arguments after the first, checked against the function's forms."""
    if _are_tensors(self):
        for form in forms:
            if (found := _fits(form, args, options)) is not None:
                return found
    given = ", ".join(
        [type(v).__name__ for v in (self, *args)]
        + [f"{k}={type(v).__name__}" for k, v in options.items()]
    )
    expected = "".join(f"\n * (self: tensors{form and ', '}{form})" for form in forms)
    raise TypeError(
        f"_foreach_{name}() received an invalid combination of arguments - got ({given}), "
        f"but expected one of:{expected}"
    )


def _functions(name: str) -> tuple[Callable, Callable]:
    operator, in_place = _operator(name), _in_place(name)
    takes_alpha = name in ("add", "sub")

    def results(suffix: str, function: Callable, self: Any, args: tuple, options: dict) -> Iterator:
        """The function on each tensor and its share of the arguments; alpha stays an option."""
        alpha = {}
        named = "value" in options  # a tensor by that name is one number
        if takes_alpha and "alpha" in options:
            options = dict(options)
            alpha["alpha"] = options.pop("alpha")
        args = _arguments(name + suffix, _forms(name), self, args, options)
        if name == "copy":
            args = args[:1]
        if name in ("addcmul", "addcdiv") and len(args) == 3 and isinstance(args[2], Tensor):
            packed = args[2]
            args = (*args[:2], packed.item() if named else _scalars(packed))
        elif args and isinstance(args[0], Tensor) and args[0].dim() != 0:
            raise RuntimeError(
                f"scalar tensor expected to be 0 dim but it has {args[0].dim()} dimensions and "
                f"{args[0].numel()} elements."
            )
        if name in ("addcmul", "addcdiv") and len(args) == 2:
            args = (*args, 1)
        if name not in ("mul", "div") and not alpha:  # these take a tensor as one
            if args and _is_value(args[0]) and args[0].is_cuda:
                function = _with_value(function, args[0])
            else:
                args = tuple(x.item() if _is_value(x) else x for x in args)
        each = _each(name, self, args)
        return _applied(name, function, each, alpha) if args else map(function, self)

    def foreach(self: Any, *args: Any, **options: Any) -> tuple[Tensor, ...]:
        if name == "pow" and _is_number(self):  # a base for all the exponents
            self = self.item() if isinstance(self, Tensor) else self
            (exponents,) = _arguments(name, ("exponent: tensors",), [], args, options)
            power = _C._by_owner["torch"]["pow"]
            powers = (power(self, x) for (x,) in _each(name, exponents, ()))
            return _run(tuple, exponents, powers)
        return _run(tuple, self, results("", operator, self, args, options))

    def foreach_(self: Any, *args: Any, **options: Any) -> Any:
        _run(_exhaust, self, results("_", in_place, self, args, options))
        return self

    foreach.__name__ = foreach.__qualname__ = f"_foreach_{name}"
    foreach_.__name__ = foreach_.__qualname__ = f"_foreach_{name}_"
    foreach.__doc__ = f"``Tensor.{name}`` on each tensor of a list."
    foreach_.__doc__ = f"``Tensor.{name}_`` on each tensor of a list."
    return foreach, foreach_


def _for_modes(function: Callable) -> Callable:
    """The function, whose calls a TorchDispatchMode sees as one operator on lists, as in PyTorch;
    those that are differentiated it sees tensor by tensor."""
    name = function.__name__

    @functools.wraps(function)
    def foreach(self: Any, *args: Any, **options: Any) -> Any:
        if not _torch_dispatch_stack() or _C._dual_level():
            return function(self, *args, **options)
        from taeda._library.aten_foreach import seen

        call = seen(name, self, args, options) if self and _are_tensors(self) else None
        if call is None:
            return function(self, *args, **options)
        op, given, named = call
        result = op(*given, **named)
        return self if name.endswith("_") else tuple(result)

    return foreach


for _name in _C._by_owner["foreach"]:  # one that ends in _ is in place only
    _made = [_for_modes(function) for function in _functions(_name.removesuffix("_"))]
    if not _name.endswith("_"):
        globals()[f"_foreach_{_name}"] = _made[0]
    globals()[f"_foreach_{_name.removesuffix('_')}_"] = _made[1]


def _ord_and_dtype(name: str, self: Any, args: tuple, options: dict) -> tuple[Any, Any]:
    if not args and "dtype" in options:
        options = {"ord": 2, **options}
    found = _arguments(name, ("[ord: number], [dtype: dtype]",), self, args, options)
    ord = found[0] if found else 2
    dtype = found[1] if len(found) > 1 else None
    if isinstance(ord, Tensor):
        ord = ord.item()
    if isinstance(ord, bool) and name == "powsum":
        ord = int(ord)
    if isinstance(ord, (bool, complex)):
        raise RuntimeError(f"_foreach_{name} expects ord to be integer or float, got {ord}")
    return ord, dtype


@_for_modes
def _foreach_norm(self: Any, *args: Any, **options: Any) -> tuple[Tensor, ...]:
    """The norm of each tensor of a list: ``_foreach_norm(self, ord=2, dtype=None)``."""
    vector_norm = _C._by_owner["linalg"]["vector_norm"]
    ord, dtype = _ord_and_dtype("norm", self, args, options)
    norms = (vector_norm(x, ord, dtype=dtype) for (x,) in _each("norm", self, ()))
    # What a dtype asks for are copies, which would not live until the kernel of a list reads them.
    return _run(tuple, self, norms) if dtype is None else tuple(norms)


@_for_modes
def _foreach_powsum(self: Any, *args: Any, **options: Any) -> tuple[Tensor, ...]:
    """The sum of the absolute values' powers of each tensor of a list:
    ``_foreach_powsum(self, ord=2, dtype=None)``.

    >>> torch._foreach_powsum([torch.tensor([3.0, -4.0])])
    (tensor(25.),)
    """
    ord, dtype = _ord_and_dtype("powsum", self, args, options)
    if dtype is not None:
        self = [x.to(dtype) for x in self]
    for x in self:
        if not (x.is_floating_point() or x.is_complex()):
            raise NotImplementedError(f"\"powsum_cpu\" not implemented for '{x.type()[6:-6]}'")
    return tuple(x.abs().pow(ord).sum() for (x,) in _each("powsum", self, ()))


@_for_modes
def _foreach_max(self: Any) -> tuple[Tensor, ...]:
    """The largest element of each tensor of a list.

    >>> torch._foreach_max([torch.tensor([3.0, -4.0])])
    (tensor(3.),)
    """
    return _run(tuple, self, (x.max() for (x,) in _each("max", self, ())))


@_for_modes
def _foreach_mm(self: Any, mat2: Any) -> tuple[Tensor, ...]:
    """The product of each matrix of a list with that of another list.

    >>> torch._foreach_mm([torch.eye(2)], [torch.ones(2, 1)])
    (tensor([[1.],
            [1.]]),)
    """
    (mat2,) = _arguments("mm", ("mat2: tensors",), self, (mat2,), {})
    return tuple(x.mm(y) for x, y in _each("mm", self, (mat2,)))


@_for_modes
def _foreach_clone(self: Any, *, memory_format: Any = None) -> tuple[Tensor, ...]:
    """A copy of each tensor of a list.

    >>> torch._foreach_clone([torch.tensor([3.0])])
    (tensor([3.]),)
    """
    if memory_format is None:
        memory_format = _C.preserve_format
    return tuple(x.clone(memory_format=memory_format) for (x,) in _each("clone", self, ()))


def _reductions() -> list[tuple[str, str, Callable]]:
    """Schemas of the functions above, their forms and what computes them."""
    lists, order = "Tensor[] self", "Scalar ord=2, ScalarType? dtype=None"
    of_norms = "[ord: number], [dtype: dtype]"
    rows = (
        (f"_foreach_norm.Scalar({lists}, {order})", of_norms, _foreach_norm),
        (f"_foreach_powsum.Scalar({lists}, {order})", of_norms, _foreach_powsum),
        (f"_foreach_max({lists})", "", _foreach_max),
        (f"_foreach_mm({lists}, Tensor[] mat2)", "mat2: tensors", _foreach_mm),
        (f"_foreach_clone({lists}, *, MemoryFormat? memory_format=None)", "", _foreach_clone),
    )
    return [(f"{text} -> Tensor[]", form, f.__wrapped__) for text, form, f in rows]  # type: ignore[attr-defined]
