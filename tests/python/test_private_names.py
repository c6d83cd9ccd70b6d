"""Names of torch._utils and torch._tensor_str that libraries use, beside PyTorch's."""

import os
import subprocess
import sys

import pytest

import taeda
from taeda import _tensor_str, _utils

torch = pytest.importorskip("torch")


def tensors(package):
    return [package.ones(2, 3), package.arange(3), package.zeros(2), package.arange(2) + 5]


CALLS = [
    lambda u, p: u._flatten_dense_tensors([p.ones(2, 3), p.zeros(2)]).tolist(),
    lambda u, p: [t.tolist() for t in u._unflatten_dense_tensors(p.arange(8), tensors(p)[:1])],
    lambda u, p: [t.tolist() for t in u._reorder_tensors_as(tensors(p), tensors(p)[::-1])],
    lambda u, p: [[t.tolist() for t in g] for g in u._take_tensors(tensors(p) * 2, 30)],
    lambda u, p: u._get_device_index(p.device("cuda", 3)),
    lambda u, p: u._get_device_index(2),
    lambda u, p: u._get_device_index("cpu", allow_cpu=True),
    lambda u, p: u._get_all_device_indices() if p is taeda else [],
    lambda u, p: u._import_dotted_name("os.path.join").__name__,
]


@pytest.mark.parametrize("call", CALLS)
def test_functions_are_pytorchs(call):
    assert call(_utils, taeda) == call(torch._utils, torch)


@pytest.mark.parametrize("device", ["cpu", None])
def test_devices_without_number(device):
    for utils in (_utils, torch._utils):
        with pytest.raises(ValueError, match="Expected a"):
            utils._get_device_index(device)


@pytest.mark.parametrize("kind", [ValueError, KeyError, UnicodeDecodeError])
def test_exceptions_travel(kind):
    texts = []
    for utils in (_utils, torch._utils):
        try:
            raise kind("utf-8", b"", 0, 1, "why") if kind is UnicodeDecodeError else kind("why")
        except kind:
            wrapped = utils.ExceptionWrapper(where="in worker 0")
        with pytest.raises(Exception) as raised:
            wrapped.reraise()
        texts.append((raised.type, str(raised.value).splitlines()[0]))
    assert texts[0] == texts[1]


def test_properties_of_classes():
    class Thing:
        @_utils.classproperty
        def name(cls):
            return cls.__name__.lower()

    assert Thing.name == Thing().name == "thing"


def test_texts():
    x, y = taeda.arange(6.0).reshape(2, 3), torch.arange(6.0).reshape(2, 3)
    assert _tensor_str._tensor_str(x, 4) == torch._tensor_str._tensor_str(y, 4)
    assert _tensor_str._str_intern(x) == torch._tensor_str._str_intern(y)
    for force in (False, True):
        for suffixes in ([], ["dtype=x", "y" * 90, "z"]):
            arguments = ("tensor([1]", suffixes, 7, force)
            expected = torch._tensor_str._add_suffixes(*arguments)
            assert _tensor_str._add_suffixes(*arguments) == expected


def test_private_modules_are_attributes_without_an_import():
    names = (
        "_custom_ops _jit_internal _library _lowrank _ops _tensor _tensor_str _utils "
        "_utils_internal"
    ).split()
    code = f"import sys, taeda; [getattr(taeda, n).__name__ for n in {names}]"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert all(hasattr(torch, name) for name in names)


def test_paths_of_files():
    for name in ("get_file_path", "get_file_path_2"):
        assert getattr(taeda._utils_internal, name)("a", "b").endswith("a/b")
        assert getattr(torch._utils_internal, name)("a", "b").endswith("a/b")
    assert taeda._utils_internal.get_file_path_2("a", "b") == "a/b"
    assert os.path.isabs(taeda._utils_internal.get_file_path("a"))
    assert taeda.get_file_path is taeda._utils_internal.get_file_path
