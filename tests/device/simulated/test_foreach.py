"""torch._foreach_add and the like on simulated devices: a launch for a list, the CPU's values."""

import subprocess
import sys

import numpy as np
import pytest
from tests.device.simulated.by_kernels import INTEGERS, TOLERANCE, values

import taeda as torch
from taeda import _C

KERNELS = hasattr(_C, "_cuda_has_kernels")
pytestmark = pytest.mark.skipif(not KERNELS, reason="operators have no kernels for CUDA here")
SIZES = [(3,), (5, 7), (), (4096,), (4097,), (0,), (2, 1, 3)]
UNARY = [
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor",
    "frac", "lgamma", "log", "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt",
    "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
]  # fmt: skip
BINARY = ["add", "sub", "mul", "div", "maximum", "minimum", "clamp_min", "clamp_max", "pow"]
FLOATING = ["float16", "bfloat16", "float32", "float64"]


@pytest.fixture(autouse=True)
def no_fallback():
    _C._set_fallback("refuse")
    yield
    _C._set_fallback("warn")


def lists(dtype, seed=0, sizes=SIZES):
    """Numbers above 0 and below 1, on the CPU and on the device."""
    cpu = [values(dtype, s, seed + i).abs().clamp(0.01, 0.99) for i, s in enumerate(sizes)]
    return cpu, [x.to("cuda") for x in cpu]


def assert_same(found, expected, dtype):
    rtol, atol = TOLERANCE[dtype]
    for a, b in zip(found, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        a, b = a.cpu().double().numpy(), b.double().numpy()
        np.testing.assert_allclose(a, b, rtol=2 * rtol, atol=2 * atol)


def launched(simulator, work):
    before = simulator.count("launches")
    result = work()
    return result, simulator.count("launches") - before


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_a_list(simulator, name, dtype):
    cpu, cuda = lists(dtype)
    function = getattr(torch, f"_foreach_{name}")
    found, count = launched(simulator, lambda: function(cuda))
    assert count == 1
    assert_same(found, function(cpu), dtype)
    in_place = getattr(torch, f"_foreach_{name}_")
    _, count = launched(simulator, lambda: in_place(cuda))
    assert count == 1
    in_place(cpu)
    assert_same(cuda, cpu, dtype)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_lists_and_of_numbers(simulator, name, dtype):
    cpu, cuda = lists(dtype)
    cpu2, cuda2 = lists(dtype, 20)
    numbers = [0.5 + i for i in range(len(cpu))]
    function, in_place = (getattr(torch, f"_foreach_{name}{s}") for s in ("", "_"))
    for on_cpu, on_cuda in ((cpu2, cuda2), (0.5, 0.5), (numbers, numbers)):
        found, count = launched(simulator, lambda on=on_cuda: function(cuda, on))
        assert count == 1
        assert_same(found, function(cpu, on_cpu), dtype)
    in_place(cuda, numbers), in_place(cpu, numbers)
    assert_same(cuda, cpu, dtype)


@pytest.mark.parametrize("dtype", FLOATING)
def test_functions_of_three_lists(simulator, dtype):
    cpu, cuda = zip(*(lists(dtype, seed) for seed in (0, 20, 40)))
    numbers = [0.5] * len(SIZES)
    calls = {
        "addcmul": lambda x: torch._foreach_addcmul(*x, value=0.5),
        "addcdiv": lambda x: torch._foreach_addcdiv(*x, numbers),
        "lerp": lambda x: torch._foreach_lerp(*x),
        "lerp by a number": lambda x: torch._foreach_lerp(x[0], x[1], 0.25),
        "add": lambda x: torch._foreach_add(x[0], x[1], alpha=0.5),
        "base": lambda x: torch._foreach_pow(0.5, x[0]),
    }
    for call in calls.values():
        found, count = launched(simulator, lambda call=call: call(cuda))
        assert count == 1
        assert_same(found, call(cpu), dtype)


@pytest.mark.parametrize("dtype", FLOATING)
def test_numbers_of_the_device(simulator, dtype):
    """One for all, and one for each; of float32 whatever the tensors are."""
    cpu, cuda = lists(dtype, sizes=[s for s in SIZES if s])  # what has no dimensions is promoted
    each = [torch.tensor(0.5 + i) for i in range(len(cpu))]
    there = [x.cuda() for x in each]
    for on_cpu, on_cuda in ((each[1], there[1]), (each, there)):
        found, count = launched(simulator, lambda on=on_cuda: torch._foreach_mul(cuda, on))
        assert count == 1
        assert_same(found, torch._foreach_mul(cpu, on_cpu), dtype)


COMPLEX = ["complex64", "complex128"]
# What PyTorch's CUDA functions on lists have kernels of their own for.
OF_INTEGERS = ["add", "sub", "mul", "maximum", "minimum", "clamp_min", "clamp_max", "pow"]
OF_COMPLEX = ["add", "sub", "mul", "div", "pow"]
UNARY_OF_COMPLEX = [
    "acos", "asin", "atan", "cos", "cosh", "exp", "expm1", "log", "log10", "log1p", "log2", "neg",
    "reciprocal", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh",
]  # fmt: skip


def lists_of(dtype, seed=0):
    cpu = [values(dtype, s, seed + i).abs() if dtype in INTEGERS else values(dtype, s, seed + i)
           for i, s in enumerate(SIZES)]  # fmt: skip
    return cpu, [x.to("cuda") for x in cpu]


def assert_equal(found, expected):
    for a, b in zip(found, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        rtol, atol = TOLERANCE.get(str(b.dtype).removeprefix("torch."), (0, 0))
        np.testing.assert_allclose(a.cpu().numpy(), b.numpy(), rtol=2 * rtol, atol=2 * atol)


@pytest.mark.parametrize(
    "name, dtype",
    [(n, t) for n in OF_INTEGERS for t in INTEGERS] + [(n, t) for n in OF_COMPLEX for t in COMPLEX],
)
def test_integers_and_complex_numbers_are_one_launch(simulator, name, dtype):
    (cpu, cuda), (cpu2, cuda2) = lists_of(dtype), lists_of(dtype, 20)
    function, in_place = (getattr(torch, f"_foreach_{name}{s}") for s in ("", "_"))
    numbers = [1 + i for i in range(len(cpu))]
    there = {"list": (cpu2, cuda2), "number": (2, 2), "numbers": (numbers, numbers)}
    if dtype in COMPLEX:
        there["real"] = 0.5, 0.5
    for what, (on_cpu, on_cuda) in there.items():
        found, count = launched(simulator, lambda on=on_cuda: function(cuda, on))
        assert count == 1, what
        assert_equal(found, function(cpu, on_cpu))
    _, count = launched(simulator, lambda: in_place(cuda, cuda2))
    assert count == 1
    in_place(cpu, cpu2)
    assert_equal(cuda, cpu)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_numbers_beside_complex_lists(simulator, dtype):
    """One of complex128 does not fit beside a list, unless it is real."""
    cpu, cuda = lists_of(dtype)
    for number in (0.5 + 2j, complex(0.5, -0.0)):
        found, count = launched(simulator, lambda n=number: torch._foreach_mul(cuda, n))
        assert count == (1 if dtype == "complex64" else len(cuda) - 1)
        assert_equal(found, torch._foreach_mul(cpu, number))


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", UNARY_OF_COMPLEX)
def test_functions_of_complex_lists(simulator, name, dtype):
    cpu, cuda = lists_of(dtype)
    function = getattr(torch, f"_foreach_{name}")
    found, count = launched(simulator, lambda: function(cuda))
    assert count == 1
    assert_equal(found, function(cpu))


@pytest.mark.parametrize("dtype", [*INTEGERS, *COMPLEX])
def test_more_functions_of_other_types(simulator, dtype):
    lists = [lists_of(dtype, seed) for seed in (0, 20, 40)]
    cpu, cuda = ([row[i] for row in lists] for i in (0, 1))
    calls = {
        "addcmul": lambda x: torch._foreach_addcmul(*x, value=2),
        "neg": lambda x: torch._foreach_neg(x[0]),
        "add": lambda x: torch._foreach_add(x[0], x[1], alpha=3),
        "copy": lambda x: torch._foreach_copy_(x[2], x[1]),
    }
    if dtype in COMPLEX:
        calls["addcdiv"] = lambda x: torch._foreach_addcdiv(*x, value=2)
        calls["lerp"] = lambda x: torch._foreach_lerp(x[0], x[1], 0.25)
    else:
        calls["abs"] = lambda x: torch._foreach_abs(x[0])
    for what, call in calls.items():
        found, count = launched(simulator, lambda c=call: c(cuda))
        assert count == 1, what
        assert_equal(found, call(cpu))


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("ord", [2, 1, 0, float("inf"), -float("inf")])
def test_norms_of_a_list(simulator, dtype, ord):
    sizes = [s for s in SIZES if 0 not in s] + [(8192,), (8193,), (70_000,)]
    cpu, cuda = lists(dtype, sizes=sizes)
    found, count = launched(simulator, lambda: torch._foreach_norm(cuda, ord))
    assert count == 2  # what blocks make of chunks is put together by a second
    assert_same(found, torch._foreach_norm(cpu, ord), dtype)
    short = [x for x in cuda if x.numel() <= 8192]
    _, count = launched(simulator, lambda: torch._foreach_norm(short, ord))
    assert count == 1


def test_norms_of_many_and_of_other_lists(simulator):
    cuda = [torch.full((i % 5,), -2.0, device="cuda") for i in range(300)]
    found, count = launched(simulator, lambda: torch._foreach_norm(cuda, 1))
    assert count == 3
    assert [x.item() for x in found] == [2.0 * (i % 5) for i in range(300)]
    types = torch.float32, torch.float16, torch.float64, torch.complex64
    mixed = [torch.full((3,), 2.0, dtype=t, device="cuda") for t in types] * 2
    mixed.append(torch.ones(4, 6, device="cuda")[:, ::2])
    found = torch._foreach_norm(mixed)
    assert [x.dtype for x in found] == [x.abs().dtype for x in mixed]
    np.testing.assert_allclose([x.item() for x in found], 12**0.5, rtol=1e-3)
    wide = torch._foreach_norm(mixed[:2], dtype=torch.float64)
    assert [x.dtype for x in wide] == [torch.float64] * 2
    np.testing.assert_allclose([x.item() for x in wide], 12**0.5)


def test_norms_have_the_same_bits_each_time(bits):
    x = [values("float32", (n,), n).cuda() for n in (3, 8192, 8193, 100_000)]
    found = bits(lambda: torch.stack(torch._foreach_norm(x)))
    expected = [np.linalg.norm(v.cpu().double().numpy()) for v in x]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-7)


def test_norms_keep_their_order_with_what_they_depend_on():
    x = [torch.full((5,), float(i), device="cuda") for i in (3, 4)]
    torch._foreach_mul_(x, 2)
    norms = torch._foreach_norm(x, float("inf"))
    torch._foreach_mul_(x, 0)
    assert [n.item() for n in norms] == [6.0, 8.0]
    nan = torch._foreach_norm([torch.tensor([1.0, float("nan")], device="cuda")], float("inf"))
    assert nan[0].isnan().item()


def test_gradients_flow_through_norms_of_a_list():
    x = [torch.tensor([3.0, 4.0], device="cuda", requires_grad=True) for _ in range(2)]
    sum(torch._foreach_norm(x)).backward()
    assert [[round(g, 5) for g in p.grad.tolist()] for p in x] == [[0.6, 0.8]] * 2


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATING])
def test_largest_elements_of_a_list(simulator, dtype):
    cpu = [values(dtype, s, i) for i, s in enumerate([(3,), (5, 7), (), (9000,)])]
    cuda = [x.cuda() for x in cpu]
    found, count = launched(simulator, lambda: torch._foreach_max(cuda))
    assert count == 2
    assert_equal([x.double() for x in found], [x.max().double() for x in cpu])


def test_gradients_are_clipped_by_launches_for_all(simulator):
    params = [torch.ones(i % 7 + 1, device="cuda", requires_grad=True) for i in range(50)]

    def clip():
        for p in params:
            p.grad = torch.ones_like(p)
        return launched(simulator, lambda: torch.nn.utils.clip_grad_norm_(params, 1.0))

    clip()
    norm, count = clip()
    assert count <= 8
    expected = sum(p.numel() for p in params) ** 0.5
    assert abs(norm.item() - expected) < 1e-4
    assert abs(params[3].grad[0].item() - 1 / expected) < 1e-5


@pytest.mark.parametrize("dtype", ["int16", "float32", "complex128"])
def test_what_is_joined_is_copied_by_few_launches(simulator, dtype):
    cpu = [values(dtype, (i % 3 + 1, 2), i) for i in range(200)]
    cuda = [x.cuda() for x in cpu]
    copies = simulator.count("copies")
    found, count = launched(simulator, lambda: torch.cat(cuda))
    assert count == 2 and simulator.count("copies") == copies
    assert_equal([found], [torch.cat(cpu)])
    rows = [x[0] for x in cuda]
    found, count = launched(simulator, lambda: torch.stack(rows))
    assert count == 2
    assert_equal([found], [torch.stack([x[0] for x in cpu])])
    beside, _ = launched(simulator, lambda: torch.cat(cuda[::3], 1))
    assert_equal([beside], [torch.cat(cpu[::3], 1)])


def test_values_per_tensor_that_a_kernel_holds_divide_a_list(simulator):
    cpu, cuda = lists("float32")
    numbers = [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]
    call = torch._foreach_addcmul
    found, count = launched(simulator, lambda: call(cuda, cuda, cuda, numbers))
    assert count == 2
    assert_same(found, call(cpu, cpu, cpu, numbers), "float32")


def test_long_lists_and_lists_of_several_types(simulator):
    cuda = [torch.full((i % 3 + 1,), float(i), device="cuda") for i in range(300)]
    found, count = launched(simulator, lambda: torch._foreach_add(cuda, 1))
    assert count == 3
    assert [x[0].item() for x in found] == [i + 1.0 for i in range(300)]
    mixed = [x.to(t) for x in cuda[:4] for t in (torch.float32, torch.int64, torch.float64)]
    found = torch._foreach_add(mixed, 1)
    assert [(x.dtype, x[0].item()) for x in found] == [(x.dtype, x[0].item() + 1) for x in mixed]


def test_layouts_and_addresses():
    memory = torch.arange(100.0, device="cuda")
    made = [memory[1:20], memory[32:56].view(4, 6).t(), memory[60:90:3]]
    expected = [x.cpu() * 2 for x in made]
    assert_same(torch._foreach_mul(made, 2), expected, "float32")
    torch._foreach_mul_(made, 2)
    assert_same(made, expected, "float32")
    assert memory[[0, 20, 61]].tolist() == [0.0, 20.0, 61.0]


def test_calls_that_depend_on_each_other_keep_their_order():
    x = torch.ones(5, device="cuda")
    torch._foreach_add_([x, x, x], 1)
    assert x.tolist() == [4.0] * 5
    y = torch.zeros(5, device="cuda")
    torch._foreach_add_([x, y], [x, x])  # y reads what x was written
    assert (x.tolist(), y.tolist()) == ([8.0] * 5, [8.0] * 5)
    torch._foreach_add_([x, y, x], [y, x, y])  # and x what y was
    assert (x.tolist(), y.tolist()) == ([40.0] * 5, [24.0] * 5)
    n = torch.tensor(2.0, device="cuda")
    torch._foreach_mul_([n, x], n)
    assert (n.item(), x[0].item()) == (4.0, 160.0)
    z = torch.arange(6.0, device="cuda")
    torch._foreach_add_([z[1:4], z[2:5]], 10)
    assert z.tolist() == [0, 11, 22, 23, 14, 5]


def test_what_overlaps_in_part_is_read_from_a_copy():
    x = torch.arange(8.0, device="cuda")
    torch._foreach_add_([x[:4], x[4:]], [x[::2], x[::2]])
    assert x.tolist() == [0, 3, 6, 9, 4, 11, 10, 13]


def test_a_reader_in_between_sees_what_came_before():
    """A subclass that looks at what the calls before it have written."""

    class Looks(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(x[0].item())
            return super().__torch_function__(function, types, args, kwargs or {})

    seen = []
    x = torch.ones(3, device="cuda")
    y = torch.ones(3, device="cuda").as_subclass(Looks)
    torch._foreach_add_([x, y], 1)
    assert seen and all(value == 2.0 for value in seen)


def test_streams_in_between():
    x, y = (torch.ones(3, device="cuda") for _ in range(2))
    side = torch.cuda.Stream()

    class Switches(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                x.mul_(10)
            torch.cuda.current_stream().wait_stream(side)
            return super().__torch_function__(function, types, args, kwargs or {})

    torch._foreach_add_([x, y.as_subclass(Switches)], 1)
    assert x[0].item() >= 20.0 and x[0].item() % 10 == 0


def test_an_error_leaves_what_came_before_done():
    x = torch.ones(3, device="cuda")
    with pytest.raises(RuntimeError):
        torch._foreach_add_([x, torch.ones(3, device="cuda")], [x, torch.ones(4, device="cuda")])
    assert x.tolist() == [2.0] * 3
    torch._foreach_add_([x], 1)
    assert x.tolist() == [3.0] * 3


def test_gradients_flow_through_lists():
    x = [torch.full((3,), 2.0, device="cuda", requires_grad=True) for _ in range(3)]
    sum(y.sum() for y in torch._foreach_mul(x, x)).backward()
    assert [p.grad.tolist() for p in x] == [[4.0] * 3] * 3


def test_a_graph_captures_lists():
    x = [torch.ones(n, device="cuda") for n in (3, 5)]
    torch._foreach_add_(x, 1)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch._foreach_mul_(x, 2)
        torch._foreach_add_(x, 1)
    graph.replay(), graph.replay()
    assert [t[0].item() for t in x] == [11.0, 11.0]


def test_a_number_of_the_device_promotes_nothing():
    xs = [torch.tensor(1.0), torch.ones(2), torch.tensor(3), torch.ones(2, dtype=torch.bfloat16)]
    number = torch.tensor(2.5, dtype=torch.float64)
    with_host, with_device = (
        torch._foreach_add([x.to(device) for x in xs], number.to(device))
        for device in ("cpu", "cuda")
    )
    for one, other in zip(with_host, with_device, strict=True):
        assert (one.dtype, one.tolist()) == (other.dtype, other.tolist())
    x = torch.tensor(1.0, device="cuda")
    torch._foreach_add_([x], number.cuda())
    assert x.dtype == torch.float32 and x.item() == 3.5


def test_a_number_of_the_device_is_added_while_work_is_captured():
    xs = [torch.ones(3, device="cuda"), torch.ones(2, 2, device="cuda")]
    number = torch.tensor(2.0, device="cuda")
    torch._foreach_add(xs, number)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        sums = torch._foreach_add(xs, number)
    number.fill_(5)
    graph.replay()
    assert [y.tolist() for y in sums] == [[6.0] * 3, [[6.0, 6.0]] * 2]


STEPS = """
import taeda as torch

parameters = [torch.nn.Parameter(torch.ones(20000, device="cuda")) for _ in range(4)]
side = torch.cuda.Stream()
for _ in range(30):
    with torch.cuda.stream(side):
        batch = torch.ones(20000).pin_memory().to("cuda", non_blocking=True)
    torch.cuda.current_stream().wait_stream(side)
    batch.record_stream(torch.cuda.current_stream())
    for p in parameters:
        p.grad = None
    sum((p * batch).sum() for p in parameters).backward()
    del batch
    norm = torch.nn.utils.clip_grad_norm_(parameters, 1.0)
print(round(norm.item(), 2))
norms = torch._foreach_norm([torch.ones(9000, device="cuda")] * 4200)
print(len(norms), round(norms[-1].item(), 2))
"""


def test_lists_that_allocate_do_not_wait_for_the_allocator():
    """In a process of its own, which would hang."""
    done = subprocess.run(
        [sys.executable, "-c", STEPS], capture_output=True, text=True, timeout=240, check=True
    )
    assert done.stdout.split() == ["282.84", "4200", "94.87"]
