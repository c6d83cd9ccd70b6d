"""The small modules of torch.utils and their neighbours."""

import gc
import subprocess
import sys
import threading

import pytest

import taeda
from taeda.utils import collect_env, mkldnn, mobile_optimizer, swap_tensors
from taeda.utils._traceback import CapturedTraceback
from taeda.utils.file_baton import FileBaton
from taeda.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakIdRef

torch = pytest.importorskip("torch")


def test_environments_are_described():
    text = collect_env.get_pretty_env_info()
    assert f"PyTorch version: {taeda.__version__}" in text and "OS: " in text
    assert f"Is CUDA available: {taeda.cuda.is_available()}" in text
    report = collect_env.get_env_info()
    assert report.python_version.startswith(sys.version.split()[0])
    theirs = torch.utils.collect_env.SystemEnv._fields
    assert set(collect_env.SystemEnv._fields) <= set(theirs) | {"caching_allocator_config"}
    done = subprocess.run(
        [sys.executable, "-m", "taeda.utils.collect_env"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Python platform" in done.stdout


@pytest.mark.parametrize("name", ["gcc", "clang", "cmake", "nvidia_driver"])
def test_versions_in_what_programs_print(name):
    printed = {
        "gcc --version": "gcc (Debian 12.2.0-14) 12.2.0\nCopyright",
        "clang --version": "Debian clang version 14.0.6\nTarget: x86",
        "cmake --version": "cmake version 3.25.1\n",
        "nvidia-smi": "| NVIDIA-SMI 1  Driver Version: 550.54 CUDA Version: 12 |",
    }
    for run in (lambda c: (0, printed.get(c, ""), ""), lambda c: (127, "", "command not found")):
        ours = getattr(collect_env, f"get_{name}_version")(run)
        assert ours == getattr(torch.utils.collect_env, f"get_{name}_version")(run)
    assert ours is None


def test_processors_and_devices():
    devices = "GPU 0: A (UUID: GPU-1)\nGPU 1: B (UUID: GPU-2)"
    assert collect_env.get_gpu_info(lambda c: (0, devices, "")) == "GPU 0: A\nGPU 1: B"
    assert collect_env.get_gpu_info(lambda c: (127, "", "none")) is None
    assert collect_env.get_cpu_info(lambda c: (0, "Model name: X", "")) == "Model name: X"


def test_builds_are_described():
    assert str(taeda.__version__) in taeda.__config__.show()
    assert f"{taeda.get_num_threads()}" in taeda.__config__.parallel_info()


def test_weak_dictionaries():
    x, y = taeda.ones(2), taeda.ones(2)
    table = WeakIdKeyDictionary({x: 1})
    table[y] = 2
    assert (table[x], table[y], len(table)) == (1, 2, 2)
    assert taeda.ones(2) not in table and 3 not in table
    assert {id(k) for k in table} == {id(x), id(y)}
    assert dict(table.copy().items())[x] == 1
    with pytest.raises(KeyError):
        table[taeda.ones(2)]
    del x
    gc.collect()
    assert len(table) == 1
    del table[y]
    assert len(table) == 0
    reference = TensorWeakRef(y)
    assert reference() is y and WeakIdRef(y) == WeakIdRef(y)
    del y
    assert reference() is None
    with pytest.raises(AssertionError, match="expected torch"):
        TensorWeakRef(3)


def test_tracebacks():
    captured = CapturedTraceback.extract()
    assert "test_tracebacks" in captured.format()[-1]


def test_batons(tmp_path):
    path = str(tmp_path / "lock")
    first, second = FileBaton(path), FileBaton(path, wait_seconds=0.01)
    assert first.try_acquire() and not second.try_acquire()
    timer = threading.Timer(0.05, first.release)
    timer.start()
    second.wait()
    assert second.try_acquire()
    second.release()
    timer.join()


def test_tensors_are_swapped():
    for package, swap in ((taeda, swap_tensors), (torch, torch.utils.swap_tensors)):
        a = package.nn.Parameter(package.ones(2))
        b = package.zeros(3, dtype=package.float64)
        a.mark, a.grad = "a", package.full((2,), 5.0)
        swap(a, b)
        assert isinstance(b, package.nn.Parameter) and not isinstance(a, package.nn.Parameter)
        assert a.shape == (3,) and a.dtype == package.float64 and b.tolist() == [1.0, 1.0]
        assert b.requires_grad and not a.requires_grad and b.mark == "a"
        assert b.grad.tolist() == [5.0, 5.0] and a.grad is None
    with pytest.raises(RuntimeError, match="leaves"):
        swap_tensors(taeda.ones(1, requires_grad=True) * 2, taeda.ones(1))


def test_deterministic_modes():
    for mode in (0, 1, 2, "default", "warn", "error"):
        taeda.set_deterministic_debug_mode(mode)
        torch.set_deterministic_debug_mode(mode)
        assert taeda.get_deterministic_debug_mode() == torch.get_deterministic_debug_mode()
    for wrong in (3, "x", 1.5):
        with pytest.raises(Exception) as expected:
            torch.set_deterministic_debug_mode(wrong)
        with pytest.raises(expected.type) as got:
            taeda.set_deterministic_debug_mode(wrong)
        assert str(got.value) == str(expected.value)
    for package in (taeda, torch):
        package.set_deterministic_debug_mode(0)


@pytest.fixture
def deterministic():
    taeda.use_deterministic_algorithms(True)
    yield taeda.utils.deterministic
    taeda.utils.deterministic.fill_uninitialized_memory = True
    taeda.use_deterministic_algorithms(False)


EMPTY = [
    lambda t, dtype: t.empty(3, 2, dtype=dtype),
    lambda t, dtype: t.empty(1, 2, 3, 3, dtype=dtype, memory_format=t.channels_last),
    lambda t, dtype: t.empty_strided((2, 3), (1, 2), dtype=dtype),
    lambda t, dtype: t.empty_like(t.ones(3, dtype=dtype)),
    lambda t, dtype: t.ones(3, dtype=dtype).new_empty(2),
    lambda t, dtype: t.ones(3, dtype=dtype).resize_(7),
]


@pytest.mark.parametrize("make", EMPTY)
@pytest.mark.parametrize("dtype", "bool uint8 int16 int64 bfloat16 float32 complex64".split())
def test_memory_is_filled_as_pytorch_fills_it(deterministic, make, dtype):
    torch.use_deterministic_algorithms(True)
    try:
        expected = make(torch, getattr(torch, dtype))
    finally:
        torch.use_deterministic_algorithms(False)
    assert repr(make(taeda, getattr(taeda, dtype)).tolist()) == repr(expected.tolist())


def test_memory_is_filled_only_where_asked(deterministic):
    assert deterministic.fill_uninitialized_memory is True
    deterministic.fill_uninitialized_memory = False
    ones = [taeda.ones(1000) for _ in range(8)]
    del ones
    assert not taeda.empty(1000).isnan().any()
    with pytest.raises(TypeError, match="expected type 'bool'"):
        deterministic.fill_uninitialized_memory = 1


def test_what_is_not_there():
    with pytest.raises(NotImplementedError, match="oneDNN"):
        mkldnn.to_mkldnn(taeda.nn.Linear(1, 1))
    with pytest.raises(NotImplementedError, match="TorchScript"):
        mobile_optimizer.optimize_for_mobile(None)
