"""Wrong arguments, made of the databases' right ones.

The databases have wrong arguments for a third of the operators. Here every operator gets some: in
its first sample, and in the one with the most arguments, each argument in turn is replaced by what
has another type, shape, dtype, device or range; `out=` of such kinds, too many and too few
arguments and a keyword that no function has are tried. Some of these calls are right for some
operators: what is compared is which calls are refused, and by which class of exceptions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from tests.parity import databases

DTYPES = (torch.float32, torch.float64, torch.int64, torch.complex64, torch.bool)
OTHER_DTYPES = (torch.bool, torch.int64, torch.float16, torch.float64, torch.complex64)
SAMPLES = 8  # among which the one with the most arguments is looked for
HUGE = 1 << 63  # the first integer beyond int64
FAR = 1000  # out of the range of dimensions and indices
MANY = (2,) * 12  # more arguments than any function takes

# What PyTorch says where it has no contract: an assertion about itself, or a lack of memory, which
# is the machine's.
_NO_CONTRACT = re.compile(r"INTERNAL ASSERT|allocate memory|std::bad_alloc|not enough memory")


def tells_nothing(error: BaseException | None) -> bool:
    """Whether a call that PyTorch answered so is left out, as are those in which it dies: it has no
    contract there, or a line of its Python code asked an object of the wrong type for a tensor's
    attribute before anything looked at the type."""
    return isinstance(error, AttributeError) or bool(_NO_CONTRACT.search(str(error)))


@dataclass(frozen=True)
class Sample:
    """Arguments of a call, as the databases' samples have them."""

    input: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def replaced(self, where: Any, value: Any) -> Sample:
        """With another argument: None is the first one, a number one behind it, or a keyword."""
        if where is None:
            return Sample(value, self.args, self.kwargs)
        if isinstance(where, str):
            return self.with_keyword(where, value)
        args = (*self.args[:where], value, *self.args[where + 1 :])
        return Sample(self.input, args, self.kwargs)

    def with_keyword(self, name: str, value: Any) -> Sample:
        return Sample(self.input, self.args, self.kwargs | {name: value})

    def without(self, name: str) -> Sample:
        return Sample(self.input, self.args, {k: v for k, v in self.kwargs.items() if k != name})


def _right(info: Any) -> list[Sample]:
    """The first sample, and that with the most arguments, in a dtype that the operator takes."""
    dtypes = [d for d in DTYPES if d in info.dtypes] or sorted(info.dtypes, key=str)
    found = [
        Sample(given.input, tuple(given.args), dict(given.kwargs))
        for dtype in dtypes[:1]
        for given in islice(databases.samples(info, dtype, False, False, 0), SAMPLES)
    ]
    most = max(found, key=lambda sample: len(sample.args) + len(sample.kwargs), default=None)
    return [sample for i, sample in enumerate(found) if i == 0 or sample is most]


def _tensors(given: torch.Tensor) -> Iterator[Any]:
    yield from ("a", None, 2)
    if given.layout != torch.strided:
        return
    longer = [*given.shape[:-1], given.shape[-1] + 1] if given.dim() else [2]
    for shape in ([7, 5, 3], [], [0], longer):
        yield torch.ones(shape, dtype=given.dtype)
    for dtype in OTHER_DTYPES:
        if dtype != given.dtype:
            yield given.to(dtype)
    yield given.to("meta")


def _instead_of(given: Any) -> Iterator[Any]:
    """What may be wrong in the place of an argument."""
    if isinstance(given, torch.Tensor):
        yield from _tensors(given)
    elif isinstance(given, bool):
        yield from ("a", 2.5, [True])
    elif isinstance(given, int):
        yield from ("a", 1.5, 1j, [given, "a"], HUGE, FAR, -FAR)
    elif isinstance(given, (float, complex)):
        yield from ("a", [given, "a"], None)
    elif isinstance(given, str):
        yield from (3, "no such word")
    elif isinstance(given, (tuple, list)) and given:
        yield from ("a", [], [*given] * 3, ["a", *given[1:]])
        if isinstance(given[0], int):
            yield from ([number, *given[1:]] for number in (1.5, -FAR, HUGE))
    elif isinstance(given, torch.dtype):
        yield from ("a", 3)
    elif given is None:
        yield "a"


def _outs() -> Iterator[Any]:
    yield from ("a", torch.empty(0, dtype=torch.int32), torch.empty(0, device="meta"))
    yield [torch.empty(0), 3]


def calls(info: Any) -> Iterator[Sample]:
    for right in _right(info):
        given = [(None, right.input), *enumerate(right.args), *right.kwargs.items()]
        for where, value in given:
            for wrong in _instead_of(value):
                yield right.replaced(where, wrong)
        if "out" not in right.kwargs:
            yield from (right.with_keyword("out", out) for out in _outs())
        yield right.with_keyword("no_such_argument", 1)
        yield Sample(right.input, (*right.args, *MANY), right.kwargs)
        if right.args:
            yield Sample(right.input, right.args[:-1], right.kwargs)
        yield from map(right.without, right.kwargs)
