"""Calls everything that is written in C with Python objects that lie, raise and change.

    python -m tests.python.hostile_objects CALLS SEED LOG [NAMES]

CALLS calls of each function, method, property and operator of taeda._C, some names at a time in a
forked process of their own, whose last call stands at the end of LOG when it dies.
"""

from __future__ import annotations

import copy
import operator
import os
import pickle
import random
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
from tests.children import limit_child

import taeda as torch
from taeda import _C

DUNDERS = """__index__ __int__ __float__ __complex__ __bool__ __len__ __iter__ __next__ __getitem__
__setitem__ __contains__ __call__ __eq__ __lt__ __gt__ __hash__ __add__ __radd__ __mul__ __rmul__
__str__ __repr__ __format__ __array__ __dlpack__ __torch_function__ __enter__ __exit__ __get__
__reduce_ex__ __instancecheck__ __subclasscheck__ __getattr__ __copy__ __deepcopy__""".split()


def raising(name: str) -> Callable:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise ValueError(name) if name != "__getattr__" else AttributeError(name)

    return method


def answering(answer: Callable[[], Any]) -> Callable:
    def method(self: Any = None, *args: Any, **kwargs: Any) -> Any:
        return answer()

    return method


Raises = type("Raises", (), {name: raising(name) for name in DUNDERS})
RaisesSome = type("RaisesSome", (), {name: raising(name) for name in DUNDERS[:11]})
GivesNone = type("GivesNone", (), {name: answering(lambda: None) for name in DUNDERS[:-3]})
GivesText = type("GivesText", (), {name: answering(lambda: "\ud800") for name in DUNDERS[:-3]})


class Endless:
    """As long as it says, or not: an iterator (nearly) without end, of itself."""

    def __init__(self, length: int) -> None:
        self.length, self.left = length, 1 << 20

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Endless:
        return self

    def __next__(self) -> Endless:
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return self

    def __getitem__(self, key: Any) -> Endless:
        return self


class Number:
    """A number that changes a list whenever it is asked."""

    def __init__(self, value: Any, seen: list, new: list) -> None:
        self.value, self.seen, self.new = value, seen, new

    def answer(self, *args: Any) -> Any:
        self.seen[:] = self.new
        return self.value

    __index__ = __int__ = __float__ = __bool__ = __len__ = __hash__ = __complex__ = answer

    def __eq__(self, other: object) -> Any:
        return self.answer()


class OwnTorchFunction:
    """What __torch_function__ of a class returns is anything."""

    result: Any = None

    @classmethod
    def __torch_function__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.result


class Sub(torch.Tensor):
    pass


class LyingSub(torch.Tensor):
    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return [NotImplemented, None, -5, "x", types, CYCLE][len(repr(args)) % 6]


class SubOfAnotherClass(torch.Tensor):
    __class__ = property(lambda self: int)  # type: ignore[assignment]


class Slotted(torch.Tensor):
    __slots__ = ("a",)


class Text(str):
    def __eq__(self, other: object) -> Any:
        raise ValueError("eq")

    __hash__ = str.__hash__


class Whole(int):
    def __index__(self) -> int:
        raise ValueError("index")


class Pair(tuple):
    def __iter__(self) -> Iterator:
        return iter(Endless(3))

    def __len__(self) -> int:
        return 7


class Row(list):
    def __iter__(self) -> Iterator:
        return iter(Endless(3))


CYCLE: list = [1]
CYCLE.append(CYCLE)
CYCLIC_TUPLE = ([],)
CYCLIC_TUPLE[0].append(CYCLIC_TUPLE)


def changing(value: Any, size: int, new: Callable[[], list]) -> list:
    """A list of numbers that replace the list's items as they are converted."""
    items: list = []
    items[:] = [Number(value, items, new()) for _ in range(size)]
    return items


def changed_by_another() -> list:
    items = [torch.ones(2), torch.ones(2)]
    CHANGERS.append(Number(0, items, [1, 2]))
    return items


CHANGERS: list = []


def subclass_instance(result: Any) -> Any:
    return type("Own", (OwnTorchFunction,), {"result": result})()


def tensors() -> list[Callable[[], Any]]:
    return [
        lambda: torch.ones(3),
        lambda: torch.ones(2, 3),
        lambda: torch.tensor(2.5),
        lambda: torch.tensor(3),
        lambda: torch.empty(0),
        lambda: torch.empty(2, 0, 3),
        lambda: torch.ones(3, requires_grad=True),
        lambda: torch.ones(3, requires_grad=True) * 2,
        lambda: torch.ones(2, device="meta"),
        lambda: torch.tensor([True, False, True]),
        lambda: torch.tensor([2**40, -5, 0]),
        lambda: torch.tensor([1 + 2j]),
        lambda: torch.ones(1).expand(3, 3),
        lambda: torch.ones(3, dtype=torch.bfloat16),
        lambda: torch.ones(3, dtype=torch.uint8),
        lambda: torch.ones(3).as_subclass(Sub),
        lambda: torch.ones(3).as_subclass(LyingSub),
        lambda: torch.ones(3).as_subclass(SubOfAnotherClass),
        lambda: torch.ones(3).as_subclass(Slotted),
        lambda: torch.from_numpy(np.ones(3)),
    ]


def objects() -> list[Callable[[], Any]]:
    constants = [
        None, True, 0, 1, -1, 3, 2**31, 2**62, 2**63 - 1, -(2**63), 2**63, 2**64, -(2**100),
        2**10000,
        0.0, -0.0, 1.5, float("nan"), float("inf"), 1e308, 1j, complex("nan"),
        "", "sum", "float32", "\ud800", "a\0b", "x" * 10000, "cpu", "cuda:99999999999", Text("cpu"),
        b"", b"abc", bytearray(b"12345678"), memoryview(b"12345678"),
        (), [], {}, set(), (0,), [0, 1], (2**63,), [1.5, None], [[1], [1, 2]], {"dim": 0}, Ellipsis,
        slice(None), slice(2**100, None, -1), slice("a", 1.5), range(3), range(2**62),
        Raises, Raises(), RaisesSome(), GivesNone(), GivesText(), Endless(2), Endless(2**62),
        Endless(0),
        CYCLE, CYCLIC_TUPLE, Whole(3), Pair((1, 2)), Row([1, 2]), Decimal("1.5"), NotImplemented,
        torch.float32, torch.device("cpu"), torch.strided, torch.channels_last, torch.Size((2, 3)),
        torch.Tensor, torch.dtype, Sub, int, float, object, type, len, print, torch.add, torch, sys,
        object(), lambda *a, **k: None, types.SimpleNamespace(shape=3), Exception("x"),
        np.ones(3), np.array(None), np.array(["a"]), np.array([1, "a", None], dtype=object),
        np.datetime64("2020"), np.float32(2), np.bool_(True), np.zeros(2, dtype="V8"),
        np.ones((2, 2))[::-1], np.ones(3, dtype=">f4"), np.zeros(0), np.zeros(2, dtype="M8[s]"),
    ]  # fmt: skip
    fresh: list[Callable[[], Any]] = [
        lambda: torch.Generator(),
        lambda: torch.UntypedStorage(16),
        lambda: (torch.ones(2, requires_grad=True) * 2).grad_fn,
        lambda: torch.ones(3).__dlpack__(),
        lambda: weakref.proxy(torch.Tensor),
        lambda: iter([1, 2]),
        lambda: (i for i in (1, 2)),
        lambda: [torch.ones(2), torch.ones(2)],
        lambda: (torch.ones(2), None),
        lambda: [torch.ones(2), 5],
        changed_by_another,
        lambda: CHANGERS[-1] if CHANGERS else 0,
        lambda: changing(1, 3, list),
        lambda: changing(1, 1000, lambda: [None]),
        lambda: changing(2**70, 3, lambda: [torch.ones(2)] * 5),
        lambda: changing(1.5, 3, list),
        lambda: [1, *changing(1, 100, list)],
        lambda: subclass_instance(NotImplemented),
        lambda: subclass_instance(None),
        lambda: subclass_instance(CYCLE),
        lambda: subclass_instance(-3),
        lambda: [subclass_instance("x"), torch.ones(2)],
        lambda: torch.autograd.graph.get_gradient_edge(torch.ones(1, requires_grad=True)),
        lambda: torch.max(torch.ones(2, 2), 0),
    ]
    return [lambda c=c: c for c in constants] + fresh + tensors()


def operators() -> dict[str, Callable]:
    names = """add sub mul truediv floordiv mod pow matmul lshift rshift and_ or_ xor eq ne lt le gt
    ge getitem contains iadd isub imul itruediv ifloordiv imod ipow ilshift irshift iand ior
    ixor""".split()
    found: dict[str, Callable] = {name: getattr(operator, name) for name in names}
    for name in names:
        found["r" + name] = lambda a, b, f=found[name]: f(b, a)
    found |= {
        "setitem": operator.setitem, "delitem": operator.delitem, "pow3": pow, "divmod": divmod,
        "hash": hash, "repr": repr, "str": str, "format": format, "len": len, "iter": iter,
        "int": int,
        "float": float, "complex": complex, "bool": bool, "bytes": bytes, "memoryview": memoryview,
        "reversed": reversed, "isinstance": isinstance, "getattr": getattr, "setattr": setattr,
        "copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": pickle.dumps, "list": list,
        "index": operator.index, "round": round, "next": lambda x: next(iter(x)), "dir": dir,
        "__class__": lambda x, c: setattr(x, "__class__", c), "asarray": np.asarray,
    }  # fmt: skip
    return found


CLASSES = {
    "Tensor": (torch.Tensor, tensors()),
    "Sub": (Sub, [lambda: torch.ones(3).as_subclass(Sub)]),
    "UntypedStorage": (torch.UntypedStorage, [lambda: torch.ones(4).untyped_storage()]),
    "Generator": (torch.Generator, [torch.Generator]),
    "Size": (torch.Size, [lambda: torch.Size((2, 3)), lambda: torch.Size(())]),
    "dtype": (torch.dtype, [lambda: torch.float32]),
    "device": (torch.device, [lambda: torch.device("cpu"), lambda: torch.device("cuda:1")]),
    "layout": (torch.layout, [lambda: torch.strided]),
    "memory_format": (torch.memory_format, [lambda: torch.channels_last]),
    "Node": (_C._Node, [lambda: (torch.ones(2, requires_grad=True) * 2).grad_fn]),
    "_ContextBase": (_C._ContextBase, [_C._ContextBase]),
    "max": (torch.return_types.max, [lambda: torch.max(torch.ones(2, 2), 0)]),
    "overridable": (type(torch.unique), [lambda: torch.unique]),
}
# What ends the process or reads raw addresses because it is asked to.
LEFT_OUT = {"_cpu_set_memory_limit"}
# What leaves the process in another state, in which the makers of arguments may fail.
ALONE = ("_C._", "_C.set", "_ContextBase", "device.__enter__", "device.__exit__")


def targets() -> Iterator[tuple[str, Callable, list[Callable[[], Any]] | None]]:
    """(name, function, makers of its first argument)."""
    for name, function in vars(_C).items():
        if callable(function) and name not in LEFT_OUT:
            yield f"_C.{name}", function, None
    for owner, functions in _C._by_owner.items():
        for name, function in functions.items():
            yield f"{owner}.{name}", function, None
    for owner, (kind, makers) in CLASSES.items():
        for name, attribute in vars(kind).items():
            if callable(attribute):
                yield f"{owner}.{name}", attribute, makers
            elif isinstance(attribute, staticmethod | classmethod):
                yield f"{owner}.{name}", getattr(kind, name), None
            elif hasattr(attribute, "__get__"):
                yield f"get {owner}.{name}", lambda x, n=name: getattr(x, n), makers
                yield f"set {owner}.{name}", lambda x, v=None, n=name: setattr(x, n, v), makers
                yield f"del {owner}.{name}", lambda x, n=name: delattr(x, n), makers
        for name, function in operators().items():
            yield f"{owner} {name}", function, makers


def groups(all_targets: list) -> Iterator[list]:
    """What may leave a state behind by itself, the others many at a time."""
    yield from ([t] for t in all_targets if t[0].startswith(ALONE))
    others = [t for t in all_targets if not t[0].startswith(ALONE)]
    yield from (others[i : i + 40] for i in range(0, len(others), 40))


class Log:
    """The last call, in a file that survives the process."""

    def __init__(self, path: str) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(self, text: str) -> None:
        os.write(self.file, text.encode("utf-8", "backslashreplace") + b"\n")


def shown(value: Any) -> str:
    kind = type(value)
    if kind in (list, tuple):
        return kind.__name__ + "[" + ", ".join(type(v).__name__ for v in list(value)[:4]) + "]"
    return repr(value)[:60] if kind in (int, float, str, bytes, bool, type(None)) else kind.__name__


def attack(
    function: Callable, first: list | None, calls: int, chance: random.Random, log: Log
) -> None:
    makers, keywords = (
        objects(),
        ["dim", "out", "dtype", "size", "input", "other", "generator", "x"],
    )
    for number in range(calls):
        args = [chance.choice(first)()] if first else []
        args += [chance.choice(makers)() for _ in range(chance.choice((0, 1, 1, 1, 2, 2, 3)))]
        kwargs = {}
        if chance.random() < 0.15:
            kwargs[chance.choice(keywords)] = chance.choice(makers)()
        log.write(f"  {number}: {', '.join(map(shown, args))} {list(kwargs)}")
        try:
            result = function(*args, **kwargs)
            if number % 4 == 0:
                str(result)
        except SystemError as error:  # an error was set and not returned, or the other way around
            log.write(f"SystemError: {error}")
            os._exit(3)
        except BaseException:
            pass


def attack_in_child(group: list, calls: int, seed: str, log: Log) -> int:
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    limit_child(cpu_seconds=60)
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    try:
        for name, function, first in group:
            log.write(name)
            attack(function, first, calls, random.Random(seed + name), log)
        os._exit(0)
    except BaseException as error:  # of this program, not of what it calls
        log.write(f"  {error!r} at line {error.__traceback__.tb_next.tb_lineno}")
        os._exit(0 if group[0][0].startswith(ALONE) else 4)


def main() -> int:
    calls, seed, path = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    wanted = sys.argv[4:]
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    count = deaths = 0
    for group in groups([t for t in targets() if not wanted or t[0] in wanted]):
        open(path, "w").close()
        status = attack_in_child(group, calls, seed, Log(path))
        count += calls * len(group)
        if status:
            deaths += 1
            with open(path) as log:
                lines = log.read().splitlines()
            name = [line for line in lines if not line.startswith(("  ", "SystemError"))][-1]
            print(f"{name}: status {status}, last call {lines[-1]}", flush=True)
    print(f"{count} calls, {deaths} deaths")
    return deaths


if __name__ == "__main__":
    sys.exit(min(main(), 100))
