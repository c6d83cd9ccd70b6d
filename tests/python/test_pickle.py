"""Plain pickles of tensors: they open here and in PyTorch, whichever is there."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import sysconfig
from typing import Any

import pytest

import taeda
from taeda import nn

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
DTYPES = (
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
).split()


def samples(torch: Any) -> dict[str, Any]:
    """Tensors that taeda and PyTorch both make, in every form that a pickle tells apart."""
    x = torch.arange(6.0).reshape(2, 3)
    tagged, weight = x.clone(), torch.nn.Parameter(x.clone())
    tagged.tag = [1, "a"]
    weight.tag = "b"
    made = {dtype: torch.tensor([0, 1, 3]).to(getattr(torch, dtype)) for dtype in DTYPES}
    return made | {
        "transposed": x.t(),
        "part": x[1:, ::2],
        "empty": torch.empty(0, 3),
        "scalar": torch.tensor(2.5),
        "leaf": x.clone().requires_grad_(),
        "result": x.clone().requires_grad_() * 2,
        "parameter": torch.nn.Parameter(x.clone(), requires_grad=False),
        "tagged": tagged,
        "tagged parameter": weight,
        "meta": torch.empty_strided((2, 3), (1, 2), device="meta"),
        "shared": [x, x[0], x.view(-1)],
        "storage": x.untyped_storage(),
        "typed storage": x.storage() if torch is taeda else x._typed_storage(),
    }


def described(value: Any) -> Any:
    if isinstance(value, list):
        shared = {v.untyped_storage().data_ptr() for v in value}
        return [described(v) for v in value], len(shared)
    kind = type(value).__name__
    if "Storage" in kind:
        return kind, list(value.tolist()), str(getattr(value, "dtype", ""))
    values = None if value.is_meta else value.tolist()
    layout = tuple(value.shape), value.stride(), value.storage_offset(), str(value.dtype)
    return kind, value.requires_grad, layout, values, dict(value.__dict__)


# What a program with a pickle in NAME does; it prints where the result came from.
OPEN = """
import pickle, sys
value = pickle.loads(open(sys.argv[1], "rb").read())
"""
SHOW = """
import json
first = value[0] if isinstance(value, list) else value
print(json.dumps([type(first).__module__.partition(".")[0], repr(described(value))]))
"""


def opened_by(program: str, path: Any, *options: str) -> list:
    import inspect
    import json

    text = program.replace("OPEN", OPEN) + inspect.getsource(described).replace("Any", "object")
    script = path.with_suffix(".py")
    script.write_text(text + SHOW)
    command = [sys.executable, *options, str(script), str(path)]
    environment = dict(os.environ)
    if "-S" in options:  # without what would be found beside the libraries
        environment.pop("PYTHONPATH", None)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


WITHOUT_TAEDA = f"""
import importlib.util, sys
sys.path.append({sysconfig.get_path("purelib")!r})
assert importlib.util.find_spec("taeda") is None
OPEN
"""


@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_pytorch_opens_them(tmp_path, protocol):
    torch = pytest.importorskip("torch")
    theirs = samples(torch)
    ours = samples(taeda)
    path = tmp_path / "all.pickle"
    path.write_bytes(pickle.dumps(list(ours.items()), protocol))
    program = WITHOUT_TAEDA + "value = [v for _, v in value if type(v) is not list][:-2]\n"
    module, text = opened_by(program, path, "-S")
    assert module == "torch"
    expected = [v for v in theirs.values() if type(v) is not list][:-2]
    assert eval(text)[0] == [described(v) for v in expected]


@pytest.mark.parametrize("name", ["shared", "storage", "typed storage"])
def test_pytorch_opens_storages(tmp_path, name):
    torch = pytest.importorskip("torch")
    path = tmp_path / "one.pickle"
    path.write_bytes(pickle.dumps(samples(taeda)[name]))
    module, text = opened_by(WITHOUT_TAEDA, path, "-S")
    assert module == "torch"
    assert eval(text) == described(samples(torch)[name])


def test_pytorchs_open_where_torch_means_taeda(tmp_path):
    torch = pytest.importorskip("torch")
    theirs = {k: v for k, v in samples(torch).items() if k not in ("shared", "storage")}
    for name, value in theirs.items():
        if "storage" in name:
            continue
        path = tmp_path / f"{name}.pickle"
        path.write_bytes(pickle.dumps(value))
    path = tmp_path / "all.pickle"
    path.write_bytes(pickle.dumps(list(theirs.values())[:-1]))
    module, text = opened_by("OPEN", path, "-m", "taeda")
    assert module == "torch"
    assert eval(text)[0] == [described(v) for v in list(theirs.values())[:-1]]


@pytest.mark.parametrize(
    "before, expected",
    [("", "taeda"), ("import torch", "torch"), ("import taeda", "taeda")],
)
def test_what_is_imported_decides(tmp_path, before, expected):
    pytest.importorskip("torch")
    path = tmp_path / "one.pickle"
    path.write_bytes(pickle.dumps(taeda.ones(2)))
    module, _ = opened_by(f"{before}\nOPEN", path)
    assert module == expected


class Tagged(taeda.Tensor):
    """A class of the program's own."""


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_they_open_here(protocol):
    ours = samples(taeda)
    for name, value in ours.items():
        again = pickle.loads(pickle.dumps(value, protocol))
        assert described(again) == described(value), name
    own = taeda.arange(3.0).as_subclass(Tagged)
    own.tag = 7
    again = pickle.loads(pickle.dumps(own, protocol))
    assert type(again) is Tagged and again.tag == 7 and again.tolist() == [0.0, 1.0, 2.0]
    buffer = nn.Buffer(taeda.ones(2))
    assert type(pickle.loads(pickle.dumps(buffer, protocol))) is type(buffer)


def test_copies_do_not_go_through_bytes():
    for name, value in samples(taeda).items():
        if isinstance(value, taeda.Tensor) and value.is_leaf:
            assert described(copy.copy(value)) == described(value), name
            # PyTorch's parameters lose their attributes.
            kept = -1 if type(value) is nn.Parameter else None
            assert described(copy.deepcopy(value))[:kept] == described(value)[:kept], name
            shares = copy.copy(value).data_ptr() == value.data_ptr()
            assert shares or value.numel() == 0
    x = taeda.arange(4.0)
    storage = copy.deepcopy(x.untyped_storage())
    typed = copy.deepcopy(x.storage())
    x.zero_()
    assert typed.tolist() == [0.0, 1.0, 2.0, 3.0] and storage.nbytes() == 16
    pair = copy.deepcopy([x.untyped_storage(), x.untyped_storage()])
    assert pair[0] is pair[1] is not x.untyped_storage()
    module = copy.deepcopy(nn.Linear(2, 3))
    assert pickle.loads(pickle.dumps(module)).weight.tolist() == module.weight.tolist()


FAULTS = """
import pickle, resource, sys
import taeda
x = taeda.ones(1 << 20)
def faults(run):
    for _ in range(3):
        run()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        run()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
content = pickle.dumps(x)
if sys.argv[1] == "write":
    print(faults(lambda: pickle.dumps(x)))
else:
    print(faults(lambda: pickle.loads(bytearray(content)).sum().item()))
"""


@pytest.mark.parametrize("way", ["write", "read"])
def test_buffers_of_large_pickles_are_not_had_anew_each_time(way: str) -> None:
    if not hasattr(os, "confstr") or not (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("g"):
        pytest.skip("another malloc than glibc's")
    answer = subprocess.run(
        [sys.executable, "-c", FAULTS, way], capture_output=True, text=True, check=True
    )
    assert int(answer.stdout) < 10 * (4 << 20) // 4096 / 4  # a quarter of one buffer's pages
