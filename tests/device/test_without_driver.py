"""What torch.cuda and torch.accelerator say on a machine without a CUDA driver."""

import os
import subprocess
import sys

import pytest

import taeda

FUNCTIONS = """
init current_device set_device(0) synchronize get_device_name get_device_capability
get_device_properties(0) current_stream default_stream mem_get_info can_device_access_peer(0,1)
initial_seed get_rng_state ipc_collect cudart current_blas_handle caching_allocator_alloc(1)
set_per_process_memory_fraction(0.5) get_per_process_memory_fraction get_stream_from_external(1)
""".split()
ANSWERS = """
is_available is_initialized device_count is_bf16_supported is_tf32_supported get_arch_list
get_gencode_flags memory_allocated max_memory_allocated memory_reserved empty_cache manual_seed(1)
manual_seed_all(1) seed seed_all get_rng_state_all set_rng_state_all([]) set_device(-1)
set_stream(None) host_memory_stats default_generators _is_in_bad_fork
""".split()
ACCELERATOR = """
is_available device_count current_accelerator current_device_index set_device_index(0)
current_stream synchronize empty_cache memory_allocated memory_stats get_memory_info
reset_peak_memory_stats get_device_capability Graph set_stream(1) empty_host_cache
""".split()


def ask(module, call: str):
    name, _, arguments = call.partition("(")
    member = getattr(module, name)
    if not callable(member):
        return member
    return member(*eval(f"[{arguments.rstrip(')')}]"))


def outcome(module, call: str):
    try:
        return ask(module, call)
    except Exception as error:
        return type(error)


def cpu_build():
    torch = pytest.importorskip("torch")
    if torch.version.cuda is not None:
        pytest.skip("this PyTorch is not a CPU build")
    return torch


@pytest.fixture(autouse=True)
def no_driver():
    if taeda.cuda.is_available():
        pytest.skip("there is a CUDA device")


@pytest.mark.parametrize("call", [*ANSWERS, *(c for c in FUNCTIONS if c != "set_device(0)")])
def test_cuda_answers_as_pytorchs_cpu_build(call):
    theirs, mine = outcome(cpu_build().cuda, call), outcome(taeda.cuda, call)
    assert mine == theirs


@pytest.mark.parametrize("call", ACCELERATOR)
def test_accelerator_answers_as_pytorchs_cpu_build(call):
    assert outcome(taeda.accelerator, call) == outcome(cpu_build().accelerator, call)


@pytest.mark.parametrize("call", FUNCTIONS)
def test_what_needs_a_device_says_so(call):
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled") as error:
        ask(taeda.cuda, call)
    assert "no CUDA device was found" in str(error.value)
    assert "set TAEDA_CUDA=driver before the program starts" in error.value.__notes__[0]


def test_classes_that_need_a_device_say_how_to_have_one():
    with pytest.raises(TypeError, match="set TAEDA_CUDA=driver"):
        taeda.cuda.FloatTensor([1.0])
    with pytest.raises(RuntimeError) as error:
        taeda.cuda.GreenContext()
    assert "set TAEDA_CUDA=driver" in error.value.__notes__[0]


def test_a_driver_that_is_not_there_is_named():
    program = "import taeda; taeda.cuda.init()"
    env = {**os.environ, "TAEDA_CUDA": "driver", "LD_LIBRARY_PATH": ""}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    if done.returncode == 0:
        pytest.skip("there is a driver")
    assert "TAEDA_CUDA=driver found no driver of NVIDIA's" in done.stderr


def test_a_simulated_driver_that_is_not_there_is_named(tmp_path):
    """As in an installed wheel: there is a libtaeda.so without libtaeda_sim.so beside it."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        library = next(path for *_, path in map(str.split, maps) if path.endswith("/libtaeda.so"))
    (tmp_path / "libtaeda.so").symlink_to(library)
    preloaded = f"{os.environ.get('LD_PRELOAD', '')} {tmp_path / 'libtaeda.so'}"
    env = {**os.environ, "TAEDA_CUDA": "sim:2", "LD_PRELOAD": preloaded, "LD_LIBRARY_PATH": ""}
    program = "import taeda; taeda.cuda.is_available()"
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert done.returncode == 1
    message = "RuntimeError: TAEDA_CUDA=sim: the simulated driver, libtaeda_sim.so, is no part of"
    assert message in done.stderr and "PYTHONPATH" in done.stderr


def test_names_are_pytorchs():
    torch = cpu_build()
    assert all(n.endswith("Tensor") for n in set(torch.cuda.__all__) - set(dir(taeda.cuda)))
    assert set(torch.accelerator.__all__) <= set(dir(taeda.accelerator))
    assert set(torch.cpu.__all__) <= set(dir(taeda.cpu))


def test_importing_opens_no_driver():
    program = """
import taeda, sys
def libraries():
    return [line for line in open("/proc/self/maps") if "libcuda" in line or "taeda_sim" in line]
(taeda.ones(3) + 1).sum().item()
assert "taeda.cuda" not in sys.modules
import taeda.cuda, taeda.accelerator
assert not libraries()
if len(sys.argv) > 1:
    taeda.cuda.is_available()
    assert libraries()
"""
    env = {**os.environ, "TAEDA_CUDA": "sim"}
    subprocess.run([sys.executable, "-c", program, "ask"], env=env, check=True)


@pytest.mark.parametrize(
    "value, expected",
    [
        ("none", "False"),
        ("sim", "True"),
        ("sim:99", "ValueError"),
        ("x", "ValueError"),
        ("", "False"),
    ],
)
def test_environment_chooses_the_driver(value, expected):
    program = """
import taeda
try:
    print(taeda.cuda.is_available())
except Exception as error:
    print(type(error).__name__)
"""
    env = {**os.environ, "TAEDA_CUDA": value}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == expected


def test_nvtx_is_not_built_in():
    with pytest.raises(RuntimeError, match="NVTX functions not installed"):
        taeda.cuda.nvtx.range_push("a")
