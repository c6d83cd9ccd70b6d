"""What `save` pickles: Python's opcodes for plain data, in every protocol; and all returns."""

from __future__ import annotations

import collections
import copyreg
import enum
import functools
import io
import pickle
import pickletools
import random
import time
import zipfile
from typing import Any

import pytest

import taeda
from taeda import nn

PROTOCOLS = range(6)


def saved(obj: Any, protocol: int) -> bytes:
    file = io.BytesIO()
    taeda.save(obj, file, pickle_protocol=protocol)
    return file.getvalue()


def pickled(obj: Any, protocol: int) -> bytes:
    with zipfile.ZipFile(io.BytesIO(saved(obj, protocol))) as archive:
        return archive.read("archive/data.pkl")


def round_trip(obj: Any, protocol: int, **options: Any) -> Any:
    return taeda.load(io.BytesIO(saved(obj, protocol)), **options)


def opcodes(data: bytes) -> list[tuple]:
    """All but frames, of which we write none."""
    return [(op.name, arg) for op, arg, _ in pickletools.genops(data) if op.name != "FRAME"]


INTEGERS = [
    n + d
    for k in (0, 7, 8, 15, 16, 31, 32, 63, 64, 2000, 2100)
    for n in (1 << k, -1 << k)
    for d in (-1, 0, 1)
]
TEXTS = ["", "a", "é", "∞", "\U0001f600", "\ud800", "a\\b\n\r\x1a\0'\"", "x" * 300, "\\u0041"]
FLOATS = [0.0, -0.0, 1.5, 1e300, 5e-324, float("inf"), -float("inf"), 0.1]
PLAIN: dict[str, Any] = {
    "integers": INTEGERS,
    "texts": TEXTS,
    "floats": FLOATS,
    "constants": [None, True, False],
    "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), ((),)],
    "lists": [[], [1], [[]], list(range(1000)), list(range(2345))],
    "dicts": [{}, {1: 2}, {"a": {}}, {i: str(i) for i in range(2345)}],
    "what is there twice": [x := [1], x, (t := (1, "a")), t, TEXTS[7], TEXTS[7]],
    "complex numbers": [1j, 2 - 3j],
    "bytes": [b"a", b"\0\xff" * 200, b"x" * 70_000],
    "byte arrays": [bytearray(b"abc"), bytearray()],
    "sets": [{1}, frozenset([1]), {frozenset([(1, 2)])}],
    "ordered": [collections.OrderedDict(a=1, b=[]), collections.Counter("hello")],
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", PLAIN)
def test_plain_data_is_pickled_as_python_does_and_returns(name: str, protocol: int) -> None:
    value = PLAIN[name]
    assert opcodes(pickled(value, protocol)) == opcodes(pickle.dumps(value, protocol))
    back = round_trip(value, protocol)
    assert shown(back) == shown(value)
    if name == "what is there twice":
        assert back[0] is back[1] and back[2] is back[3]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_empty_bytes_and_nan_return(protocol: int) -> None:
    assert (
        repr(round_trip([b"", float("nan"), bytearray()], protocol)) == "[b'', nan, bytearray(b'')]"
    )
    assert taeda.load(io.BytesIO(_archive(pickle.dumps([b"", b""], protocol)))) == [b"", b""]


def _archive(data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", data)
    return file.getvalue()


def shown(value: Any) -> Any:
    """Its repr, but for the order of sets."""
    if isinstance(value, (set, frozenset)):
        return type(value), sorted(map(repr, map(shown, value)))
    if isinstance(value, dict):
        return type(value), [(shown(k), shown(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [shown(part) for part in value]
    return repr(value)


def _random_value(rng: random.Random, depth: int = 0) -> Any:
    atoms = (INTEGERS, TEXTS, FLOATS, [None, True, False, b"b", b"", 1j, taeda.int8])
    kind = rng.randrange(9 if depth < 4 else 4)
    if kind < 4:
        return rng.choice(atoms[kind])
    parts = [_random_value(rng, depth + 1) for _ in range(rng.randrange(6))]
    if kind < 7:
        return (list, tuple, lambda p: p * 2)[kind - 4](parts)
    keys = [rng.choice([*INTEGERS[:9], "k", "l", (1, "m"), 2.5, None]) for _ in parts]
    return dict(zip(keys, parts)) if kind == 7 else set(keys)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_random_values_return(protocol: int) -> None:
    rng = random.Random(protocol)
    for _ in range(100):
        value = _random_value(rng)
        assert shown(round_trip(value, protocol)) == shown(value)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_tensors_return(protocol: int) -> None:
    base = taeda.arange(12.0)
    value = {
        "views": [base.reshape(3, 4).t(), base[2:5], base.new_empty(0, 3), taeda.tensor(True)],
        "wide": taeda.zeros(1, 1, 1, 1, 1),
        "parameter": nn.Parameter(base.clone()),
        "wants gradients": taeda.ones(2, requires_grad=True) * 2,
        "meta": taeda.ones(2, device="meta"),
        "storages": [base.untyped_storage(), taeda.ones(3).storage()],
        "size": base.shape,
        "dtype": taeda.bfloat16,
        "device": taeda.device("cpu"),
        "model": nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).state_dict(),
    }
    value["views"][1].note = [1]
    for safe in (True, False):
        back = round_trip(value, protocol, weights_only=safe)
        for ours, theirs in zip(back["views"], value["views"]):
            assert ours.tolist() == theirs.tolist() and ours.stride() == theirs.stride()
        back["views"][1][0] = 100
        assert back["views"][0].t().reshape(-1)[2] == 100 and back["views"][1].note == [1]
        assert back["wide"].shape == (1,) * 5 and type(back["parameter"]) is nn.Parameter
        assert back["wants gradients"].requires_grad and back["meta"].device.type == "meta"
        assert back["storages"][0].nbytes() == 48 and list(back["storages"][1]) == [1, 1, 1]
        assert back["storages"][0].data_ptr() == back["views"][0].data_ptr()
        for name in ("size", "dtype", "device"):
            assert back[name] == value[name] and type(back[name]) is type(value[name])
        assert str(back["model"]) == str(value["model"])
        assert back["model"]._metadata == value["model"]._metadata


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_pytorch_reads_them(protocol: int) -> None:
    torch = pytest.importorskip("torch")
    model = nn.Linear(2, 3)
    value = {"x": taeda.ones(2, 3).t(), "p": nn.Parameter(taeda.zeros(1)), "n": [1, 2**70, "é"]}
    value |= {"s": taeda.ones(2).storage(), "d": taeda.float64, "m": model.state_dict()}
    back = torch.load(io.BytesIO(saved(value, protocol)), weights_only=False)
    assert back["x"].tolist() == [[1.0, 1.0]] * 3 and back["x"].stride() == (1, 3)
    assert type(back["p"]) is torch.nn.Parameter and back["n"] == value["n"]
    assert list(back["s"]) == [1, 1] and back["d"] is torch.float64
    torch.nn.Linear(2, 3).load_state_dict(back["m"])


@pytest.mark.parametrize("new_format", [True, False])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_pytorchs_files_of_every_protocol_load(protocol: int, new_format: bool) -> None:
    """Those of protocol 0 too, which PyTorch does not read itself: its ids are texts there."""
    torch = pytest.importorskip("torch")
    base = torch.arange(6.0)
    value = {
        "x": base.reshape(2, 3).t(),
        "y": base[1:3],
        "n": [1, -(2**70), 2.5, "é\n", b"b", None],
    }
    value |= {"b": torch.tensor([True]), "p": torch.nn.Parameter(torch.ones(2).double())}
    file = io.BytesIO()
    torch.save(value, file, pickle_protocol=protocol, _use_new_zipfile_serialization=new_format)
    file.seek(0)
    back = taeda.load(file)
    assert back["x"].tolist() == value["x"].tolist() and back["x"].stride() == (1, 3)
    assert back["y"].data_ptr() == back["x"].data_ptr() + 4 and back["n"] == value["n"]
    assert back["b"].tolist() == [True] and back["p"].dtype == taeda.float64


# --- objects of classes ---


class Point:
    def __init__(self, x: Any, y: Any) -> None:
        self.x, self.y = x, y

    def __eq__(self, other: Any) -> bool:
        return type(other) is type(self) and vars(self) == vars(other)


class Slotted:
    __slots__ = ("a", "b")

    def __eq__(self, other: Any) -> bool:
        return self.a == other.a


class WithState(Point):
    def __getstate__(self) -> Any:
        return [self.x]

    def __setstate__(self, state: Any) -> None:
        self.x, self.y = state[0], "restored"


class Named(collections.namedtuple("Named", "a b")):
    pass


class Numbers(list):
    pass


class Table(dict):
    pass


class Whole(int):
    pass


class Keyed:
    def __new__(cls, *, key: Any) -> Keyed:
        self = super().__new__(cls)
        self.key = key
        return self

    def __getnewargs_ex__(self) -> Any:
        return (), {"key": self.key}


class Outer:
    class Inner(Point):
        pass


class Color(enum.Enum):
    RED = 1


class Registered:
    def __init__(self, value: int) -> None:
        self.value = value


copyreg.pickle(Registered, lambda obj: (Registered, (obj.value,)))

CLASSES = [Point, Slotted, WithState, Named, Numbers, Table, Whole, Outer.Inner, Registered, Color]
KEYS: list[Any] = [Color.RED, frozenset([1, (2, 3)]), taeda.int8, taeda.device("cpu"), None, 1j]


def objects() -> list[Any]:
    slotted, numbers, table = Slotted(), Numbers([1, 2]), Table(a=1)
    slotted.a = 1
    numbers.note = table.note = "note"
    point = Point(1, [taeda.ones(1).item()])
    point.me = [1]
    return [point, WithState(1, 2), numbers, table, Whole(7), Outer.Inner(1, 2), Registered(3),
            *([slotted]), Named(1, b=[2]), Color.RED]  # fmt: skip


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_objects_of_allowed_classes_return(protocol: int) -> None:
    for value in objects():
        if protocol < 2 and type(value) is Slotted:
            with pytest.raises(TypeError, match="slots"):
                saved(value, protocol)
            continue
        if type(value) is Outer.Inner and protocol < 4:  # its class is getattr(Outer, "Inner")
            continue
        with taeda.serialization.safe_globals(CLASSES):
            back = round_trip(value, protocol)
        trusted = round_trip(value, protocol, weights_only=False)
        for again in (back, trusted):
            assert type(again) is type(value)
            if type(value) is WithState:
                assert (again.x, again.y) == (1, "restored")
            elif type(value) is Registered:
                assert again.value == 3
            else:
                assert again == value and getattr(again, "note", 0) == getattr(value, "note", 0)
    if protocol < 4:
        back = round_trip(Outer.Inner(1, 2), protocol, weights_only=False)
        assert back == Outer.Inner(1, 2)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_keys_return(protocol: int) -> None:
    with taeda.serialization.safe_globals([Color]):
        value = [dict.fromkeys(KEYS, 1), set(KEYS[1:])]
        assert round_trip(value, protocol) == value


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_keywords_of_new(protocol: int) -> None:
    assert round_trip(Keyed(key=3), protocol, weights_only=False).key == 3
    if protocol >= 4:
        with taeda.serialization.safe_globals([Keyed]):
            assert round_trip(Keyed(key=3), protocol).key == 3


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_refers_to_itself_returns(protocol: int) -> None:
    numbers: list = [1]
    numbers.append(numbers)
    back = round_trip(numbers, protocol)
    assert back[1] is back and back[0] == 1
    pair: tuple = ([], 1, 2, 3)
    pair[0].append(pair)
    back = round_trip(pair, protocol)
    assert back[0][0] is back
    point = Point(1, 2)
    point.me = (point, {"again": point})
    back = round_trip(point, protocol, weights_only=False)
    assert back.me[0] is back and back.me[1]["again"] is back


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_functions_and_classes_are_named(protocol: int) -> None:
    value = [nn.Linear, nn.functional.relu, taeda.add, len, Point, functools.reduce, type(None)]
    back = round_trip(value, protocol, weights_only=False)
    assert all(a is b for a, b in zip(back, value))
    assert b"taeda" not in pickled(value[:3], protocol)


def test_what_cannot_be_pickled_is_named() -> None:
    class Local:
        pass

    for value in (lambda: 1, Local, Local(), [Local()]):
        with pytest.raises(
            (pickle.PicklingError, AttributeError), match=r"<locals>|<lambda>|Local"
        ):
            saved(value, 2)
    with pytest.raises(TypeError, match="generator"):
        saved((i for i in ()), 2)
    with pytest.raises(ValueError, match="protocol"):
        saved(1, 6)
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RecursionError):
        saved(deep, 2)
    for wrong in (7, (len,), (len, 1), (1, ()), (len, (), 1, 2, 3, 4, 5)):
        with pytest.raises(pickle.PicklingError):
            saved(type("Wrong", (), {"__reduce__": lambda self, w=wrong: w})(), 2)


def test_what_changes_while_it_is_saved_is_an_exception_or_ends() -> None:
    class Changes:
        def __init__(self, change: Any) -> None:
            self.change = change

        def __reduce__(self) -> Any:
            self.change()
            return (len, ((),))

    items: list = []
    items += [Changes(items.clear) for _ in range(3000)]
    saved(items, 2)
    items += [Changes(lambda: items.append(1)) for _ in range(3000)]
    saved(items, 2)
    grows: list = []
    grows.append(Changes(lambda: grows.append(grows[0])))
    for protocol in PROTOCOLS:  # not for ever
        saved(grows, protocol)
    table: dict = {}
    table[1] = Changes(lambda: table.update({i: i for i in range(99)}))
    table[2] = 2
    with pytest.raises(RuntimeError, match="changed size"):
        saved(table, 2)
    table.clear()
    table[1] = Changes(table.clear)
    with pytest.raises(RuntimeError, match="changed size"):
        saved(table, 2)


@pytest.mark.parametrize("protocol", [2, 4])
def test_saving_plain_data_takes_the_time_of_pythons_c_pickler(protocol: int) -> None:
    value = [[i / 7 for i in range(200_000)], {f"word{i}": i for i in range(50_000)}]

    def seconds(function: Any) -> float:
        times = []
        for _ in range(5):
            begin = time.process_time()
            function()
            times.append(time.process_time() - begin)
        return min(times)

    ours = seconds(lambda: saved(value, protocol))
    theirs = seconds(lambda: pickle.dumps(value, protocol))
    assert ours < 4 * theirs + 0.01, (ours, theirs)  # 40 times as long when the pickler is Python's
