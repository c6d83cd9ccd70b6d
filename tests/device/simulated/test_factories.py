"""Factories on a simulated device, by its kernels: the CPU's bits, also in CUDA graphs."""

import numpy as np
import pytest
from tests.device.simulated.by_kernels import FLOATING, INTEGERS

import taeda
from taeda import _C

F = taeda.nn.functional


@pytest.fixture(autouse=True)
def no_fallback():
    _C._set_fallback("refuse")
    yield
    _C._set_fallback("warn")


def dtypes(*names):
    return [getattr(taeda, name) for name in names]


NUMBERS = dtypes(*INTEGERS, *FLOATING)
COMPLEX = dtypes("complex64", "complex128")
# Calls by name; each with `device`, and a dtype where the name has one.
CALLS = {
    "arange": lambda **to: taeda.arange(11, **to),
    "arange from": lambda **to: taeda.arange(3, 60, 7, **to),
    "arange down": lambda **to: taeda.arange(5.5, -4, -0.7, **to),
    "arange of none": lambda **to: taeda.arange(3, 3, **to),
    "arange of many": lambda **to: taeda.arange(0, 1, 1e-4, **to),
    "range": lambda **to: taeda.range(0, 1, 0.1, **to),
    "eye": lambda **to: taeda.eye(3, 5, **to),
    "full": lambda **to: taeda.full((2, 3), 7, **to),
    "tril_indices": lambda **to: taeda.tril_indices(4, 6, 1, **to),
    "tril_indices below": lambda **to: taeda.tril_indices(5, 3, -2, **to),
    "tril_indices of none": lambda **to: taeda.tril_indices(2, 3, -7, **to),
    "triu_indices": lambda **to: taeda.triu_indices(4, 6, 2, **to),
    "triu_indices below": lambda **to: taeda.triu_indices(40, 31, -3, **to),
    "triu_indices of none": lambda **to: taeda.triu_indices(2, 3, 9, **to),
    "one_hot": lambda device: F.one_hot(taeda.arange(6, device=device).view(2, 3), 7),
    "meshgrid": lambda **to: taeda.meshgrid(
        taeda.arange(3.0, **to), taeda.linspace(0, 1, 4, **to), indexing="xy"
    )[1],
    "cartesian_prod": lambda **to: taeda.cartesian_prod(
        taeda.arange(3, **to), taeda.arange(4, **to)
    ),
    **{
        f"linspace {dtype}": lambda dtype=dtype, **to: taeda.linspace(3, 40, 9, dtype=dtype, **to)
        for dtype in NUMBERS + COMPLEX
    },
    **{
        f"arange {dtype}": lambda dtype=dtype, **to: taeda.arange(1, 99, 4, dtype=dtype, **to)
        for dtype in NUMBERS
    },
    "linspace of one": lambda **to: taeda.linspace(2, 5, 1, **to),
    "linspace of none": lambda **to: taeda.linspace(2, 5, 0, **to),
    "linspace of many": lambda **to: taeda.linspace(-1, 1, 1001, **to),
    "linspace of doubles": lambda **to: taeda.linspace(-1, 1.3, 777, dtype=taeda.float64, **to),
    "linspace of numbers": lambda **to: taeda.linspace(0.5 + 1j, 2 - 3j, 7, **to),
}  # fmt: skip
# Functions of the C library decide their last bits: on a card those are others.
ROUNDED = {
    "logspace": lambda **to: taeda.logspace(-2, 3, 17, **to),
    "logspace int": lambda **to: taeda.logspace(0, 5, 6, 2.0, dtype=taeda.int32, **to),
    "logspace of one": lambda **to: taeda.logspace(1.5, 3, 1, **to),
    "logspace of doubles": lambda **to: taeda.logspace(0, 1, 33, 0.3, dtype=taeda.float64, **to),
    "logspace of numbers": lambda **to: taeda.logspace(0.5 + 1j, 2 - 3j, 7, **to),
    "logspace of a negative base": lambda **to: taeda.logspace(1j, 2, 5, -2.0, **to),
    **{
        f"{name} {n} {periodic} {dtype}": lambda f=f, n=n, p=periodic, d=dtype, **to: f(
            n, periodic=p, dtype=d, **to
        )
        for name, f in {
            "hann": taeda.hann_window, "hamming": taeda.hamming_window,
            "blackman": taeda.blackman_window, "bartlett": taeda.bartlett_window,
            "kaiser": taeda.kaiser_window,
        }.items()
        for n in (0, 1, 7, 300)
        for periodic in (True, False)
        for dtype in dtypes("float32", "float64", "bfloat16", "float16")
        if n == 300 or dtype in dtypes("float32", "float64")
    },
    "kaiser of a large beta": lambda **to: taeda.kaiser_window(50, True, 90.0, **to),
}  # fmt: skip


def bits(t):
    t = t.cpu().contiguous()
    t = taeda.view_as_real(t) if t.is_complex() else t
    return t.reshape(-1).view(taeda.uint8).tolist() if t.numel() else []


def assert_same(name, mine, expected):
    assert mine.device.type == "cuda"
    assert (mine.dtype, mine.shape, mine.stride()) == (
        expected.dtype, expected.shape, expected.stride(),
    )  # fmt: skip
    if name in CALLS or _C._cuda_is_simulated():
        assert bits(mine) == bits(expected)
    elif expected.is_complex():
        np.testing.assert_allclose(mine.cpu().numpy(), expected.numpy(), rtol=1e-5)
    else:
        rtol = 1e-14 if expected.dtype == taeda.float64 else taeda.finfo(taeda.float32).eps
        a, b = (t.double().numpy() for t in (mine.cpu(), expected))
        np.testing.assert_allclose(a, b, rtol=max(rtol, 1e-2 * (expected.itemsize == 2)), atol=rtol)


@pytest.mark.filterwarnings("ignore:torch.range")
@pytest.mark.parametrize("name", [*CALLS, *ROUNDED])
def test_values_are_the_cpus(name):
    call = (CALLS | ROUNDED)[name]
    assert_same(name, call(device="cuda"), call(device="cpu"))


@pytest.mark.filterwarnings("ignore:torch.range")
@pytest.mark.parametrize("name", [n for n in [*CALLS, *ROUNDED] if " of none" not in n])
def test_they_are_captured_in_graphs(name):
    call = (CALLS | ROUNDED)[name]
    expected = call(device="cpu")
    if expected.numel() == 0:
        return
    graph = taeda.cuda.CUDAGraph()
    with taeda.cuda.graph(graph):
        found = call(device="cuda")
    graph.replay()
    assert_same(name, found, expected)


def test_they_wait_for_nothing(simulator, late):
    taeda.zeros(1, device="cuda")
    before = simulator.count("synchronizations")
    results = [call(device="cuda") for name, call in CALLS.items() if name != "range"]
    assert simulator.count("synchronizations") == before
    assert len(results) > 20


def test_requires_grad_and_the_second_device():
    x = taeda.linspace(0, 1, 3, device="cuda:1", requires_grad=True)
    assert x.requires_grad and x.is_leaf and x.device == taeda.device("cuda:1")
    assert taeda.arange(2, device="cuda:1").tolist() == [0, 1]


def test_what_cannot_be_made_is_refused_as_on_the_cpu():
    for device in ("cpu", "cuda"):
        for call, error in (
            (lambda to: taeda.arange(0, 3, -1, device=to), RuntimeError),
            (lambda to: taeda.arange(3, dtype=taeda.bool, device=to), NotImplementedError),
            (lambda to: taeda.linspace(0, 1, -1, device=to), RuntimeError),
            (lambda to: taeda.linspace(0, 1, 3, dtype=taeda.bool, device=to), NotImplementedError),
            (lambda to: taeda.hann_window(4, dtype=taeda.int64, device=to), RuntimeError),
            (lambda to: taeda.tril_indices(2, 2, dtype=taeda.half, device=to), NotImplementedError),
            (lambda to: taeda.randperm(-1, device=to), RuntimeError),
            (lambda to: taeda.randperm(300, dtype=taeda.uint8, device=to), RuntimeError),
        ):  # fmt: skip
            with pytest.raises(error):
                call(device)


# --- affine_grid, embedding_bag ---


def test_affine_grid():
    for sizes, align in (((2, 1, 3, 4), True), ((2, 1, 3, 4), False), ((1, 2, 2, 3, 4), False)):
        n = len(sizes) - 2
        theta = taeda.randn(sizes[0], n, n + 1)

        def gradients(device, theta=theta, sizes=sizes, align=align):
            t = theta.to(device).requires_grad_()
            grid = F.affine_grid(t, sizes, align_corners=align)
            (grid * taeda.arange(grid.numel(), device=device).view(grid.shape)).sum().backward()
            return grid, t.grad

        for mine, expected in zip(gradients("cuda"), gradients("cpu"), strict=True):
            assert mine.shape == expected.shape
            a, b = mine.detach().cpu().numpy(), expected.detach().numpy()
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    with pytest.raises(RuntimeError):
        F.affine_grid(taeda.ones(1, 2, 3, device="cuda"), (2, 1, 3, 4), align_corners=True)


@pytest.mark.parametrize("options", [
    {"mode": "sum"}, {"mode": "mean"}, {"mode": "max"}, {"mode": "mean", "padding_idx": 1},
    {"mode": "sum", "padding_idx": 1}, {"mode": "max", "padding_idx": 1},
    {"mode": "mean", "include_last_offset": True}, {"mode": "sum", "scale_grad_by_freq": True},
], ids=str)  # fmt: skip
def test_bags_and_grids_are_captured_in_graphs(options):
    weight = taeda.arange(15.0).view(5, 3)
    index, offsets = taeda.tensor([1, 0, 4, 1, 2, 2]), taeda.tensor([0, 2, 2, 6])
    theta = taeda.arange(6.0).view(1, 2, 3)

    def work(device):
        given = (t.to(device) for t in (index, weight, offsets))
        return given, theta.to(device)

    def both(given, theta):
        index, weight, offsets = given
        bags = F.embedding_bag(index, weight, offsets, **options)
        return bags, F.affine_grid(theta, (1, 1, 2, 3), align_corners=False)

    expected = both(*work("cpu"))
    given, on_cuda = work("cuda")
    given = [*given]
    graph = taeda.cuda.CUDAGraph()
    with taeda.cuda.graph(graph):
        found = both(given, on_cuda)
    graph.replay()
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.cpu().numpy(), b.numpy(), rtol=1e-6)


# --- randperm ---


def test_permutations():
    for n in (0, 1, 2, 7, 1000):
        for dtype in dtypes("int64", "int32", "int16", "float32", "float64"):
            x = taeda.randperm(n, dtype=dtype, device="cuda")
            assert x.dtype == dtype and sorted(x.tolist()) == [*range(n)]
    taeda.cuda.manual_seed(3)
    first, second = (taeda.randperm(50, device="cuda").tolist() for _ in range(2))
    assert first != second
    taeda.cuda.manual_seed(3)
    assert taeda.randperm(50, device="cuda").tolist() == first
    g = taeda.Generator(device="cuda").manual_seed(3)
    assert taeda.randperm(50, generator=g, device="cuda").tolist() == first
    with pytest.raises(RuntimeError, match="generator"):
        taeda.randperm(5, generator=taeda.Generator(), device="cuda")


def test_keys_that_are_equal_leave_no_order():
    """Every permutation of three comes about as often, though their keys have 6 bits."""
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(600):
        drawn = tuple(taeda.randperm(3, device="cuda").tolist())
        counts[drawn] = counts.get(drawn, 0) + 1
    assert len(counts) == 6
    assert sum((n - 100) ** 2 / 100 for n in counts.values()) < 25  # chi-square of 5: 1 in 7,000


def test_each_replay_permutes_anew():
    graph = taeda.cuda.CUDAGraph()
    with taeda.cuda.graph(graph):
        x = taeda.randperm(30, device="cuda")
    drawn = []
    for _ in range(3):
        graph.replay()
        drawn.append(tuple(x.tolist()))
    assert len({*drawn}) == 3 and all(sorted(d) == [*range(30)] for d in drawn)
