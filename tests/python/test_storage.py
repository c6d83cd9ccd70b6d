"""Methods of UntypedStorage and TypedStorage, against PyTorch's."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import taeda


def untyped(t: Any, *values: int) -> Any:
    return t.UntypedStorage(list(values))


def typed(t: Any, *values: float, dtype: str = "float32") -> Any:
    return t.tensor(values, dtype=getattr(t, dtype)).storage()


CASTS = (
    "bool byte char short int long half bfloat16 float double complex_float complex_double".split()
)
CASES: dict[str, Callable[[Any], Any]] = {
    "sequence": lambda t: untyped(t, 1, 2, 300, -1),
    "sequence of floats": lambda t: t.UntypedStorage([1.5]),
    "tuple": lambda t: t.UntypedStorage((3, 4)),
    "iterated": lambda t: list(untyped(t, 1, 2)),
    "filled": lambda t: untyped(t, 1, 2).fill_(300),
    "filled below zero": lambda t: untyped(t, 1, 2).fill_(-1),
    "filled with a bool": lambda t: untyped(t, 1, 2).fill_(True),
    "filled with a float": lambda t: untyped(t, 1, 2).fill_(1.5),
    "copied": lambda t: untyped(t, 1, 2).copy_(untyped(t, 3, 4)),
    "copied from another size": lambda t: untyped(t, 1, 2).copy_(untyped(t, 3)),
    "copied from a typed one": lambda t: untyped(t, *range(8)).copy_(typed(t, 1, 2)),
    "copied from a tensor": lambda t: untyped(t, 1, 2).copy_(t.ones(2, dtype=t.uint8)),
    "copied typed": lambda t: typed(t, 1, 2).copy_(typed(t, 3, 4)),
    "copied typed from another size": lambda t: typed(t, 1, 2).copy_(typed(t, 3, 4, 5)),
    "new": lambda t: untyped(t, 1, 2).new(),
    "type": lambda t: untyped(t, 1).type(),
    "kind of a pickle": lambda t: typed(t, 1, dtype="int16").pickle_storage_type(),
    "swapped": lambda t: next(s for s in [untyped(t, *range(8))] if s.byteswap(t.float32) is None),
    "swapped complex": lambda t: next(
        s for s in [untyped(t, *range(8))] if s.byteswap(t.complex64) is None
    ),
    "swapped odd": lambda t: untyped(t, 1, 2, 3).byteswap(t.float32),
    "resized": lambda t: next(
        (len(s), s[0], s[1]) for s in [typed(t, 1, 2)] if s.resize_(3) is None
    ),
    "from a number": lambda t: len(t.TypedStorage(3, dtype=t.int32)),
    "from values": lambda t: t.TypedStorage([1, 2], dtype=t.int32),
    "shared": lambda t: [typed(t, 1).is_shared(), typed(t, 1).share_memory_().is_shared()],
    **{f"untyped to {c}": lambda t, c=c: getattr(untyped(t, 0, 1, 200), c)() for c in CASTS},
    **{f"typed to {c}": lambda t, c=c: getattr(typed(t, 0, 1.5, 3), c)() for c in CASTS},
}
for kind, make in (("untyped", untyped), ("typed", typed)):
    for name in ("filename", "is_cuda", "is_sparse"):
        CASES[f"{kind} {name}"] = lambda t, make=make, name=name: getattr(make(t, 1), name)
    for name in ("element_size", "get_device", "is_pinned", "resizable", "nbytes"):
        CASES[f"{kind} {name}"] = lambda t, make=make, name=name: getattr(make(t, 1), name)()
    CASES[f"{kind} cpu"] = lambda t, make=make: make(t, 1, 2).cpu()
    CASES[f"{kind} to"] = lambda t, make=make: make(t, 1, 2).to(device="cpu")


def outcome(t: Any, function: Callable[[Any], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = function(t)
        except Exception as e:
            return type(e).__name__, str(e)
        if hasattr(value, "nbytes"):
            return type(value).__name__, str(getattr(value, "dtype", None)), value.tolist()
        return value


@pytest.mark.parametrize("name", CASES)
def test_like_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    assert outcome(taeda, CASES[name]) == outcome(torch, CASES[name])


def test_copies_are_apart() -> None:
    storage = taeda.tensor([1.0, 2.0]).storage()
    storage.float()[0] = 5.0
    assert storage.tolist() == [1, 2]
    untyped_one = storage.untyped()
    assert untyped_one.untyped() is untyped_one and untyped_one.cpu() is untyped_one


def test_views_see_what_is_written() -> None:
    x = taeda.ones(2)
    x.untyped_storage().fill_(0)
    assert x.tolist() == [0, 0]
    x.storage().copy_(taeda.tensor([3.0, 4.0]).storage())
    assert x.tolist() == [3, 4]


def test_from_file(tmp_path: Any) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(6)))
    storage = taeda.UntypedStorage.from_file(str(path), True, 4)
    assert storage.tolist() == [0, 1, 2, 3]
    storage.fill_(9)
    del storage
    assert path.read_bytes() == bytes([9, 9, 9, 9, 4, 5])


@pytest.mark.parametrize("method", ["cuda", "pin_memory"])
def test_devices_that_are_not_there(method: str) -> None:
    if taeda.cuda.is_available():
        pytest.skip("the device is there")
    for storage in (taeda.UntypedStorage(2), taeda.ones(2).storage()):
        with pytest.raises((RuntimeError, AssertionError)):
            getattr(storage, method)()


def test_methods_are_there_from_the_start() -> None:
    code = "import taeda, sys; assert list(taeda.UntypedStorage([1, 2]).fill_(7)) == [7, 7]"
    code += "; assert 'taeda.storage' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool"])
def test_tensors_of_storages(dtype):
    x = taeda.tensor([[1, 0], [1, 1]]).to(getattr(taeda, dtype))
    for storage in (x.storage(), x.untyped_storage()):
        copy = taeda.tensor(storage, dtype=x.dtype)
        assert copy.tolist() == x.flatten().tolist()
        assert copy.data_ptr() != x.data_ptr()
    kind = getattr(taeda, x.type().rpartition(".")[2])
    for storage in (x.storage(), x.untyped_storage()):
        shared = kind(storage)
        assert shared.data_ptr() == x.data_ptr()
        assert shared.shape == (4,)
    other = x.to(taeda.float64).storage()
    for make in (kind, lambda s: taeda.tensor(s, dtype=x.dtype)):
        with pytest.raises(RuntimeError, match="Expected a Storage of type"):
            make(other)


def test_names_of_the_classes_of_storages():
    from taeda import storage

    names = storage._dtype_to_storage_type_map()
    assert names[taeda.float32] == "FloatStorage"
    assert storage._storage_type_to_dtype_map()["LongStorage"] is taeda.int64
    assert all(getattr(taeda, name).dtype is dtype for dtype, name in names.items())


def test_storages_without_memory_have_no_values():
    storage = taeda.TypedStorage(4, dtype=taeda.int16, device="meta")
    assert (storage.size(), storage.nbytes()) == (4, 8)
    with pytest.raises(NotImplementedError, match="Not available"):
        storage[0]
    with pytest.raises(NotImplementedError, match="Not available"):
        storage[0] = 1
    with pytest.raises(NotImplementedError, match="Not available"):
        storage.untyped()[0]


def test_the_class_of_all_old_storages_has_no_instances() -> None:
    for arguments in ((), (1,)):
        with pytest.raises(RuntimeError, match="Only child classes of _LegacyStorage"):
            taeda.storage._LegacyStorage(*arguments)


def test_tensors_of_a_meta_storage_let_it_grow() -> None:
    storage = taeda.storage.TypedStorage(
        wrap_storage=taeda.UntypedStorage(0, device="meta"), dtype=taeda.float32, _internal=True
    )
    x = taeda._utils._rebuild_tensor_v2(storage, 1, (2, 2), (2, 1), False, {})
    assert x.is_meta and x.shape == (2, 2) and x.storage_offset() == 1
    assert x.untyped_storage().nbytes() == storage.untyped().nbytes() == 20


def constructions(t: Any) -> dict[str, Callable[[], Any]]:
    """Calls of the classes of storages, most of them wrong."""
    old, new, dtype = t.FloatStorage, t.TypedStorage, t.float32
    memory = t.UntypedStorage(8)
    return {
        "old of nothing": lambda: len(old()),
        "old of a number": lambda: len(old(3)),
        "old of values": lambda: old([1, 2]).tolist(),
        "old of memory": lambda: len(old(wrap_storage=memory)),
        "old with a device": lambda: old(device="cpu"),
        "old with a dtype": lambda: old(dtype=t.float32),
        "old with another name": lambda: old(other=1),
        "old of two": lambda: old(0, 0),
        "old of a tensor": lambda: old(t.tensor([])),
        "old of a float": lambda: old(1.5),
        "old of a number and memory": lambda: old(0, wrap_storage=memory),
        "old of a typed storage": lambda: old(wrap_storage=old()),
        "old of memory elsewhere": lambda: old(wrap_storage=t.UntypedStorage(8, device="meta")),
        "new of nothing": lambda: len(new()),
        "new of memory": lambda: len(new(wrap_storage=memory, dtype=dtype)),
        "new of memory without dtype": lambda: new(wrap_storage=memory),
        "new of memory and a wrong dtype": lambda: new(wrap_storage=memory, dtype=0),
        "new of memory and a device": lambda: new(wrap_storage=memory, dtype=dtype, device="cpu"),
        "new of a typed storage": lambda: new(wrap_storage=old(), dtype=dtype),
        "new of a number and memory": lambda: new(0, wrap_storage=memory, dtype=dtype),
        "new of a tensor": lambda: new(t.tensor([]), dtype=dtype),
        "new of two": lambda: new(0, 0, dtype=dtype),
        "new on a device that nobody knows": lambda: new(dtype=dtype, device="xla"),
        "new with a wrong dtype": lambda: len(new(dtype=3)),
        "filled with a storage": lambda: old(2).fill_(old(2)),
    }


@pytest.mark.parametrize("name", constructions(taeda))
def test_constructors_take_and_refuse_what_pytorchs_do(name: str) -> None:
    torch = pytest.importorskip("torch")
    mine, theirs = (outcome(t, lambda t: constructions(t)[name]()) for t in (taeda, torch))
    assert str(mine).replace("taeda", "torch") == str(theirs)


def test_the_types_of_storages_are_listed() -> None:
    torch = pytest.importorskip("torch")
    names = {kind.__name__ for kind in taeda._storage_classes}
    assert {taeda.UntypedStorage, taeda.TypedStorage, taeda.FloatStorage} <= taeda._storage_classes
    assert names <= {kind.__name__ for kind in torch._storage_classes}


def test_set_refuses_storages_of_another_dtype() -> None:
    torch = pytest.importorskip("torch")
    for t in (taeda, torch):
        with pytest.raises(RuntimeError, match="Expected a Storage of type"):
            t.ones(1, dtype=t.int64).set_(t.FloatStorage(2))


@pytest.mark.parametrize("number", [np.int64(3), np.uint8(3), True])
def test_storages_are_made_of_numbers_that_are_indices(number):
    assert taeda.FloatStorage(number).size() == number
    assert taeda.storage.TypedStorage(number, dtype=taeda.float64).nbytes() == 8 * number


@pytest.mark.parametrize("number", [np.float32(3), 3.0, np.array(3)])
def test_storages_are_not_made_of_other_numbers(number):
    with pytest.raises(TypeError, match="Argument type not recognized"):
        taeda.FloatStorage(number)
