"""The calls that an entry of a database gives, and what is found when each is made."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

import torch
from tests.parity import (
    databases,
    definitions,
    derivatives,
    differences,
    judge,
    modes,
    rounding,
    truths,
    wrong,
)
from tests.parity.mirror import Lifted, Moved
from tests.parity.sides import Side
from tests.parity.translate import Missing, NotMirrored


@dataclass(frozen=True)
class Mode:
    """A way of calling. `free`: what PyTorch refuses may work."""

    run: Callable[[Any], Any]
    rules: judge.Rules = field(default_factory=judge.Rules)
    grad: bool = False
    free: bool = False


_RECORDED = judge.Rules(grad=True)
_VALUES = judge.Rules(strides=False)
_ZEROS = judge.Rules(strides=False, zeros=True)
MODES = {
    "function": Mode(modes.function, _RECORDED),
    "permuted": Mode(modes.permuted, _RECORDED, grad=True, free=True),
    "method": Mode(modes.method, _RECORDED, grad=True),
    "in-place": Mode(modes.in_place, _RECORDED),
    "out": Mode(modes.out),
    "out strided": Mode(modes.out_strided),
    "out resized": Mode(modes.out_resized),
    "out dtype": Mode(modes.out_dtype),
    "out cast": Mode(modes.out_cast),
    "out aliased": Mode(modes.out_aliased, free=True),
    "out absent": Mode(modes.out_absent),
    "vmap": Mode(modes.vmap, _VALUES, free=True),
    "gradient": Mode(derivatives.gradient, _VALUES, grad=True, free=True),
    "double gradient": Mode(derivatives.double_gradient, _ZEROS, grad=True, free=True),
    "forward": Mode(derivatives.forward, _ZEROS, grad=True, free=True),
    "forward over reverse": Mode(derivatives.forward_over_reverse, _ZEROS, grad=True, free=True),
}
DERIVATIVES = ("gradient", "double gradient", "forward", "forward over reverse")
FEW_ELEMENTS = 30  # of which finite differences are taken at many inputs
# Operators whose results, or what they are resized by, nobody has written to.
UNDEFINED = re.compile(r"(new_)?empty(_like|_permuted|_strided)?$|resize_(as_)?$")


@dataclass
class Call:
    """One sample called in one mode."""

    mode: str
    sample: int
    run: Callable[[Any], Any]
    side: Callable[..., Any]
    rules: judge.Rules
    free: bool = False
    words: str = ""
    opinions: tuple[Callable[[], Any], ...] = ()  # what else may say which value is right

    def theirs(self, double: bool = False) -> judge.Outcome:
        return judge.observe(lambda: self.run(self.side("torch", double=double)))

    def ours(self) -> judge.Outcome:
        return judge.observe(lambda: self.run(self.side("taeda")))


# A call that says nothing: PyTorch has no such variant, or does not do it itself.
SKIPPED = (modes.NotApplicable, NotMirrored)


def skipped(call: Call, theirs: judge.Outcome) -> bool:
    if isinstance(theirs.error, SKIPPED):
        return True
    if call.mode == "wrong" and wrong.tells_nothing(theirs.error):
        return True
    unable = "does not support automatic differentiation" in str(theirs.error)
    return theirs.error is not None and (call.free or unable)


def compare(call: Call, theirs: judge.Outcome, ours: judge.Outcome) -> judge.Findings:
    if isinstance(ours.error, Missing):
        return [("missing", str(ours.error))]
    if isinstance(ours.error, modes.NotApplicable) and call.rules.zeros and _empty(theirs.value):
        return []  # there is nothing to differentiate by
    if theirs.error is not None or ours.error is not None:
        found = judge.errors(theirs, ours)
        text = str(ours.error)
        if call.words and not found and not re.search(call.words, text):
            found = [("words", f"{text.splitlines()[0][:90]} | PyTorch: {call.words[:90]}")]
        return found
    exact = lambda: call.theirs(double=True).value  # noqa: E731
    found = judge.values(ours.value, theirs.value, exact, call.rules)
    if found and all(kind == "dtype" for kind, _ in found) and call.mode == "forward":
        theirs.value = _of_their_dtypes(call, theirs.value)
        found = judge.values(ours.value, theirs.value, exact, call.rules)
    doubted = ("value", "structure") if call.rules.zeros else ("value",)
    if found and all(kind in doubted for kind, _ in found):
        found = [] if _confirmed(call, ours.value, theirs.value) else found
    if found and call.mode == "vmap" and _as_a_loop(call, ours.value):
        return []
    return found


def _empty(value: Any) -> bool:
    return all(leaf is None or not leaf.numel() for leaf in judge.flat(value))


def _of_their_dtypes(call: Call, tangents: list[Any]) -> list[Any]:
    """PyTorch's tangents in the dtypes of their tensors, as make_dual() demands them."""
    dtypes = derivatives.dtypes_of_duals(call.side("torch"))
    return [t if t is None else t.to(d) for t, d in zip(tangents, dtypes, strict=True)]


def _confirmed(call: Call, value: Any, theirs: Any) -> bool:
    """Whether other opinions than PyTorch's are what taeda says."""
    said = (judge.observe(opinion) for opinion in call.opinions)
    truths = (outcome.value for outcome in said if outcome.error is None)
    if call.mode in DERIVATIVES:
        exact = call.theirs(double=True).value
        return judge.united(value, theirs, exact, truths, call.rules)
    return any(judge.agrees(value, truth, call.rules) for truth in truths)


def _as_a_loop(call: Call, value: Any) -> bool:
    """Whether vmap gave what PyTorch gives for one sample after another, of the same dtypes."""
    loop = lambda double=False: call.run(call.side("torch", double, kind=truths.LoopSide))  # noqa: E731
    outcome = judge.observe(loop)
    exact = lambda: judge.observe(lambda: loop(True)).value  # noqa: E731
    return outcome.error is None and not judge.values(value, outcome.value, exact, call.rules)


def _modes(info: Any, dtype: torch.dtype) -> Iterator[tuple[str, Mode]]:
    differentiable = dtype.is_floating_point or dtype.is_complex
    for name, mode in MODES.items():
        if name not in DERIVATIVES or (differentiable and info.supports_autograd):
            yield name, mode


def operator_calls(
    info: Any, dtype: torch.dtype, start: int, count: int, cycle: int = 0
) -> Iterator[Call]:
    """All modes of `count` samples from that of index `start` on. Other cycles draw other numbers,
    and each sample's turn of layouts and dtypes is the next one."""
    requires_grad = (dtype.is_floating_point or dtype.is_complex) and info.supports_autograd
    found = databases.samples(info, dtype, requires_grad, more=True, seed=cycle)
    undefined = bool(UNDEFINED.match(info.name))
    for index, sample in enumerate(islice(found, start, start + count), start):
        for name, mode in _modes(info, dtype):
            rules = replace(mode.rules, values=mode.rules.values and not undefined)
            side = _side_of(info, sample, mode.grad, index + cycle)
            opinions = tuple(_opinions(info, dtype, name, mode, sample, index + cycle))
            yield Call(name, index, mode.run, side, rules, mode.free, opinions=opinions)


def _side_of(
    info: Any, sample: Any, grad: bool, seed: int, usual: type[Side] = Side
) -> Callable[..., Side]:
    def side(
        library: str,
        double: bool = False,
        moved: Moved | Lifted | None = None,
        kind: type[Side] = usual,
    ) -> Side:
        made = kind(library, info, sample, grad, double, moved)
        made.seed = seed
        return made

    return side


def _opinions(
    info: Any, dtype: torch.dtype, name: str, mode: Mode, sample: Any, seed: int
) -> Iterator[Callable[[], Any]]:
    for kind in truths.references(info, dtype, name):
        side = _side_of(info, sample, mode.grad, seed, kind)
        yield lambda side=side, double=kind is truths.ReferenceSide: mode.run(side("torch", double))
    if name not in DERIVATIVES:
        return
    side = _side_of(info, sample, True, seed)
    by_parts = _side_of(info, sample, True, seed, definitions.DefinedSide)
    defined = info.name in definitions.DEFINITIONS
    if defined:
        yield lambda: mode.run(by_parts("torch", True))
    yield lambda: rounding.derivative(mode.run, side, dtype)
    if name == "forward":
        yield lambda: rounding.derivative(derivatives.forward_by_reverse, side, dtype)
    if defined:
        yield lambda: rounding.derivative(mode.run, by_parts, dtype)
    yield lambda: differences.derivative(name, side("torch", double=True))
    by_differences = partial(differences.derivative, name, most=FEW_ELEMENTS)
    yield lambda: rounding.derivative(by_differences, side, dtype)
    yield lambda: rounding.limit(mode.run, side)


def error_calls(info: Any, dtype: Any, start: int, count: int, cycle: int = 0) -> Iterator[Call]:
    """What PyTorch refuses, with the words that its own tests look for."""
    if info.error_inputs_func is None:
        return
    with databases.seeded(databases.title(info), "errors"):
        found = info.error_inputs("cpu")
        for index, item in enumerate(islice(found, start, start + count), start):
            side = _side_of(info, item.sample_input, False, index)
            yield Call("error", index, modes.function, side, judge.Rules(), words=item.error_regex)


def _accepted(side: Side) -> Any:
    """None, or NotImplemented, a binary operator's way to refuse."""
    result = side.call()
    return result if result is NotImplemented else None


def wrong_calls(info: Any, dtype: Any, start: int, count: int, cycle: int = 0) -> Iterator[Call]:
    """Which calls with a wrong argument are refused, and by which class of exceptions."""
    for index, sample in enumerate(islice(wrong.calls(info), start, start + count), start):
        yield Call("wrong", index, _accepted, _side_of(info, sample, False, index), judge.Rules())
