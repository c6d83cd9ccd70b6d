"""Calls whose arguments come in less usual forms, compared with PyTorch by value."""

import pytest
from tests.ops.calls import compare

import taeda

CALLS = """
torch.std_mean(x, unbiased=False)
torch.std_mean(x, 1, False, True)
torch.std_mean(x, True)
torch.var_mean(x, dim=(0, 1), unbiased=True, keepdim=True)
torch.var_mean(x, dim=None, correction=0)
torch.diff(x, prepend=torch.zeros(2, 3, 1))
torch.diff(x, dim=0, append=torch.ones(1, 3, 4))
torch.diff(x, n=2, dim=1, prepend=x, append=torch.ones(2, 1, 4))
torch.diff(T([True, False]), prepend=T([True]))
torch.diff(v, n=0, prepend=T([1.]))
torch.diff(v, prepend=T(1.))
torch.tensor_split(x, T([1, 3]), dim=2)
torch.tensor_split(x, T(3), -1)
torch.tensor_split(x, tensor_indices_or_sections=T([1]))
torch.tensor_split(x, indices=[1], dim=1)
torch.tensor_split(x, sections=5, dim=1)
torch.tensor_split(x, T([1.]))
torch.tensor_split(x, T([[1]]))
torch.tensor_split(T(1.), [1])
torch.isclose(b, ~b)
torch.isclose(b, b, equal_nan=True)
torch.allclose(b, b)
torch.square(b)
torch.take_along_dim(x, T([[[0, -1]]]), dim=2)
torch.take_along_dim(v, T([0, -4, 5]), 0)
torch.take_along_dim(v, T([0, -1]))
torch.zeros([THREE])
torch.zeros(THREE, 2)
torch.zeros([True])
torch.full((THREE,), 1)
torch.eye(THREE)
torch.arange(THREE)
x.reshape(THREE, -1)
x[THREE.__index__() - 2]
torch.complex(T([1., 2.]), T(3.))
torch.complex(torch.ones(2, 1), torch.ones(3))
torch.polar(torch.ones(2, 1), torch.zeros(3))
torch.complex(torch.ones(2), torch.ones(2, dtype=torch.float64))
torch.triu_indices(3, 4, dtype=torch.int32)
torch.tril_indices(3, 4, -1, dtype=torch.int32)
torch.tril_indices(4, 3, offset=-9)
torch.triu_indices(4, 3, offset=9)
torch.tril_indices(3, 3, dtype=torch.uint8)
torch.tril_indices(3, 3, device="meta")
torch.triu_indices(0, 3)
torch.tril_indices(3, 0)
torch.tril_indices(2, 5, 2)
torch.triu_indices(5, 2, -3)
torch.tril_indices(2**62, 3, -(2**62) + 2)
torch.arange(0.5, 3.7, dtype=torch.int64)
torch.arange(-1.5, 2.5, dtype=torch.int64)
torch.arange(5.5, dtype=torch.int64)
torch.arange(5.5, 1, -1.5, dtype=torch.int32)
torch.arange(5, 1.5, -1.5, dtype=torch.int64)
torch.arange(0, 10, 2.5, dtype=torch.int64)
torch.arange(0, 5, 0.5, dtype=torch.int32)
torch.arange(0, 2.5, 0.5, dtype=torch.int64)
torch.arange(1.2, 1.9, dtype=torch.int64)
torch.arange(2.7, dtype=torch.uint8)
torch.arange(300, dtype=torch.uint8)
torch.arange(0, 1e30, dtype=torch.int64)
torch.arange(0, 2.5, dtype=torch.bool)
torch.range(1.5, 4.6, dtype=torch.int64)
torch.where(b, 300, u)
torch.where(b, u, -300)
torch.where(b, -200, u)
torch.where(b, 200, u.to(torch.int8))
torch.where(b, T(300), u)
u.pow(300)
torch.clamp(u, min=-5)
torch.clamp(u, -300, 3)
torch.poisson(T([[0., 1., 5.], [10., 30., 1000.]]))
torch.poisson(torch.rand(50, dtype=torch.float64) * 40)
torch.poisson((torch.rand(5, 4) * 20).t())
torch.poisson(T([-1.]))
torch.poisson(T([3.], dtype=torch.float16))
torch.poisson(T([3]))
torch.poisson(T([3.]), generator=torch.Generator().manual_seed(7))
torch.binomial(T([10., 100., 1000., 5., -1., 2.]), T([.5, .1, .9, 0., .5, 2.]))
torch.binomial(T([40.]), torch.rand(40, 1).expand(40, 3))
torch.binomial(T([1000.]), torch.rand(50))
torch.binomial(T([10.]), T([nan]))
torch.binomial(T([10]), T([.5]))
torch.binomial(T([10.]), T([.5], dtype=torch.float64))
""".strip().split("\n")
# Numbers and dtypes that were once others than PyTorch's.
VALUES = """
torch.linalg.vector_norm(T([1000., 2000., 300.]).half(), 3)
torch.linalg.vector_norm(T([1000., 2000., 300.]).half().view(1, 3), 4.5, dim=1)
torch.linalg.vector_norm(T([1000., 2000., 300.]).half(), -3)
torch.linalg.vector_norm(T([1000., 2000., 300.]).bfloat16(), 5)
torch.norm(T([1000., 2000., 300.]).half(), 8)
torch.dist(T([1000., 2000.]).half(), T([-1., -2.]).half(), 3)
F.normalize(T([[1000., 2000., 300.]]).half(), 3, 1)
F.pairwise_distance(T([[1000., 2000.]]).half(), T([[1., 2.]]).half(), 4)
F.pad(x, (-1, 1), mode="circular")
F.pad(x, (2, -1), mode="circular")
F.pad(x, (1, -2), mode="circular")
F.pad(x[None], (-1, 2, -1, 2), mode="circular")
F.pad(x[None], (2, -1, 0, 1), mode="circular")
F.pad(x[None, None], (1, -1, -1, 1, 0, -1), mode="circular")
x.requires_grad_(); F.pad(x, (-1, 2), mode="circular").square().sum().backward(); result = x.grad
torch.linspace(-2.5, 3.5, 7, dtype=torch.int8)
torch.linspace(-2, 3, 6, dtype=torch.uint8)
torch.linspace(9.9, 0.5, 4, dtype=torch.uint8)
torch.linspace(0.5, 300., 3, dtype=torch.uint8)
torch.linspace(-0.5, 3., 3, dtype=torch.uint8)
torch.linspace(0.1, 7.3, 3, dtype=torch.bool)
torch.linspace(2**53 + 1, 2**53 + 3, 3, dtype=torch.int64)
torch.linspace(T(0.5), T(5.5), 6, dtype=torch.int32)
torch.linspace(0, 1j, 3)
torch.linspace(0, 1j, 3, dtype=torch.float32)
torch.logspace(0, 1j, 3)
torch.logspace(1.5, 4.5, 4, base=2.9, dtype=torch.int64)
torch.logspace(0, 2, 3, dtype=torch.bool)
torch.logspace(0, 2, 3, device="meta").device.type
F.margin_ranking_loss(u * 60, u.flip(0), u // u, reduction="none")
F.margin_ranking_loss(u * 60, u.flip(0), u, margin=1.5, reduction="sum")
F.margin_ranking_loss(u.int(), u.flip(0).int(), u.int(), margin=2)
F.margin_ranking_loss(u * 60, u.flip(0), T([1., -1., 1.]), reduction="none")
F.prelu(T(-2.), T([0.25]))
F.prelu(T(2.), T(0.25))
w = T([0.25], requires_grad=True); F.prelu(T(-2.), w).backward(); result = w.grad
torch.einsum("ij->i", i)
torch.einsum("ij->", i.int())
torch.einsum("ij->j", i.to(torch.uint8))
torch.einsum("ij->j", i > 0)
torch.einsum("ij->ji", i.int())
torch.einsum("ii->", i[:, :2].int())
torch.einsum("ij,ij->", i.int(), i.int())
torch.einsum("ij,jk->", i.int(), i.t().int())
torch.einsum("ij,k->", i.int(), u.int())
torch.einsum("ij,ij->ij", i.int(), i)
torch.einsum("ij,ij->ij", i > 0, i > 1)
torch.einsum("i,j->ij", u, i[0])
torch.einsum("ij,kj->ik", i.int(), i)
torch.addr(b[None], b, b)
torch.addr(~b[None], ~b, b, beta=0)
torch.addr(b[None], b, ~b, beta=2, alpha=-1)
torch.addr(b[None], b, ~b, beta=False, alpha=True)
torch.addr(b[None], b, b.int())
torch.addr(b[None].float(), b, b.int())
torch.addr(b[None].long(), u * 80, u * 2)
torch.addr(b[None], b, b, beta=1.5)
torch.addr(i[:, :2], i[0, :2], i[1, :2], alpha=2.5)
torch.addr(i[:, :2], i[0, :2], i[1, :2], beta=True)
torch.zeros(3, 3, dtype=torch.bool).addr_(b, b)
b.sum_to_size(1)
b.sum_to_size(3)
T(True).sum_to_size()
T(3, dtype=torch.uint8).sum_to_size(())
T(3.).sum_to_size(())
torch.clamp(i, T(0.5, dtype=torch.float64))
torch.clamp(i, min=T(0.5, dtype=torch.float64), max=T(1))
torch.clamp(i, max=T(0.5))
torch.clamp(i, T(0.5, dtype=torch.float64), 1)
torch.clamp(T(3.), T(0.5, dtype=torch.float64))
torch.clip(i, T(0.5, dtype=torch.float64))
i.clamp(T(1), T([2]))
v.clamp(T(0.5, dtype=torch.float64))
v.clone().clamp_(T(0.5, dtype=torch.float64))
v.scatter(0, i[0], T(2.))
v.masked_fill(v > 0, T(2.))
torch.result_type(v, T(1j, dtype=torch.complex128))
torch.result_type(v, T(1j))
torch.result_type(v.bfloat16(), T(1j, dtype=torch.complex128))
torch.result_type(v.double(), T(1j))
torch.result_type(T(1, dtype=torch.complex128), v)
torch.result_type(i, 2.5)
torch.result_type(T(2), 1j)
torch.result_type(3, 2.5)
torch.result_type(u, True)
torch.result_type(v, 1j)
torch.result_type(v, "x")
torch.native_layer_norm(x.half(), [4], None, None, 1e-5)
torch.native_layer_norm(x.bfloat16(), [3, 4], x[0].bfloat16(), x[1].bfloat16(), 1e-5)[1]
torch.native_layer_norm(x.half(), [4], torch.ones(4), torch.zeros(4), 1e-5)[1:]
torch.native_layer_norm(x.half(), [4], v.half(), None, 1e-5)[1].dtype
torch.native_layer_norm(x.double(), [4], None, v.double(), 1e-5)
torch.native_group_norm(x, None, None, 2, 3, 4, 3, 1e-5)
torch.native_group_norm(x.half(), None, None, 2, 3, 4, 1, 1e-5)[1:]
torch.native_group_norm(x.bfloat16(), torch.ones(3), torch.ones(3), 2, 3, 4, 3, 1e-5)[1].dtype
torch.native_group_norm(x, torch.ones(2), None, 3, 2, 4, 2, 1e-5)
torch.native_group_norm(x, None, None, 2, 3, 5, 3, 1e-5)
torch.native_group_norm(x, None, None, 2, 3, 4, 2, 1e-5)
torch.native_group_norm(x, None, None, 2, 3, 4, 0, 1e-5)
torch.native_group_norm(x[:0], None, None, 0, 3, 4, 3, 1e-5)
torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)
torch.native_batch_norm(x, torch.ones(3), None, torch.zeros(3), torch.ones(3), False, 0.1, 1e-5)
torch.native_batch_norm(x.half(), None, None, v[:3] * 0, v[:3] * 0, True, 0.1, 1e-5)[1].dtype
torch.native_batch_norm(x.half(), None, None, None, None, True, 0.1, 1e-5)[1:]
torch.native_batch_norm(x.bfloat16(), torch.ones(3), None, None, None, True, 0.1, 1e-5)[2].dtype
torch.native_batch_norm(x[:0], None, None, None, None, True, 0.1, 1e-5)
torch.ones(3, 2).index_reduce(0, T([0, 2, 0]), torch.full((3, 2), 3.), "mean")
torch.ones(3, 2).index_reduce(0, T([0, 2, 0]), torch.full((3, 2), 3.), "mean", include_self=False)
torch.ones(3, 2).index_reduce_(-1, T([1, 1], dtype=torch.int32), torch.full((3, 2), 3.), "prod")
torch.index_reduce(T(2.), 0, T(0), T(3.), "prod")
torch.index_reduce(T(2.), 0, T([0]), T(3.), "amax")
torch.index_reduce(T([5, 5]), 0, T([0, 0]), T([-4, -4]), "mean")
torch.index_reduce(x, 0, T([0, 1]), x, "sum")
torch.index_reduce(x, 0, T([0., 1.]), x, "prod")
torch.index_reduce(x, 0, T([[0, 1]]), x, "prod")
torch.index_reduce(x, 0, T([0, 1]), x.double(), "prod")
torch.index_reduce(x, 0, T([0, 2]), x, "prod")
torch.index_reduce(x, 0, T([0, -1]), x, "prod")
torch.index_reduce(x, 0, T([0]), x, "prod")
torch.index_reduce(x, 0, T([0, 1]), x[:, :1], "prod")
torch.linalg.solve_ex(torch.eye(2), torch.ones(2))
torch.full((2,), -2.5, dtype=torch.uint8)
torch.full((2,), 127.5, dtype=torch.int8)
torch.full((2,), 126.5, dtype=torch.int8)
torch.full((2,), -2, dtype=torch.uint8)
torch.zeros(2, dtype=torch.uint8).fill_(255.5)
torch.zeros(2, dtype=torch.int16).masked_fill(T([True, False]), 4e4)
""".strip().split("\n")
SPACED = [
    f"torch.{function}({ends}, dtype=torch.{dtype})"
    for function in ("linspace", "logspace")
    for ends in ("0.5, 5.5, 6", "0.9, 1.9, 10", "2.9, 0.2, 5", "0.7, 0.7, 1", "1, 2, 4")
    for dtype in ("uint8", "int8", "int16", "int32", "int64", "float32", "complex64")
]
REFUSALS = """
torch.arange(5, 1)
torch.arange(1, 5, 0)
torch.arange(0, inf)
torch.range(1, 0)
torch.diff(T(1.))
torch.diff(v, prepend=torch.zeros(2, 2))
torch.tensor_split(v, T([1], dtype=torch.int32))
torch.binomial(T([10]), T([.5]))
torch.where(b, 300, u)
""".strip().split("\n")
SET = """
torch.zeros(2).set_(v)
torch.zeros(2).set_(x.view(4, 6).t()).stride()
torch.zeros(2).set_(v[1:]).storage_offset()
torch.zeros(2).set_(v.untyped_storage(), 1, (2,))
torch.zeros(2).set_(source=x, storage_offset=1, size=(2, 2), stride=(2, 1))
torch.zeros(2).set_()
torch.zeros(2).set_(T([1]))
torch.zeros(2, requires_grad=True).set_(v)
y = torch.zeros(2); a = y._version; y.set_(v).add_(1); result = v, y._version - a
with torch.no_grad(): result = torch.zeros(2, requires_grad=True).set_(v)
""".strip().split("\n")


@pytest.mark.parametrize("text", CALLS + VALUES + SPACED + SET)
def test_call(text):
    compare(text)


@pytest.mark.parametrize("text", REFUSALS)
def test_refusal_in_the_same_words(text):
    compare(text, message=True)


@pytest.mark.parametrize("option", ["align_corners=False", "align_corners=True", "antialias=True"])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_images_of_bytes_are_resized_as_pytorchs(mode, option):
    compare(
        "result = []\n"
        "for c in (1, 3, 4, 5):\n"
        "    image = torch.randint(256, (2, c, 37, 41), dtype=torch.uint8)\n"
        "    for size in ((11, 13), (64, 80), (37, 20), (2, 3)):\n"
        f"        result.append(F.interpolate(image, size, mode='{mode}', {option}))\n"
        f"    result.append(F.interpolate(image, scale_factor=1.7, mode='{mode}', {option}))\n"
    )


def test_set_shares_memory_and_grows_it():
    memory = taeda.zeros(3)
    view = taeda.ones(2).set_(memory)
    view.fill_(5)
    assert memory.tolist() == [5, 5, 5]
    with pytest.raises(NotImplementedError, match="set_"):
        taeda.zeros(2).set_(taeda.ones(2, requires_grad=True))
    grown = taeda.zeros(0).set_(taeda.zeros(2).untyped_storage(), 0, (3, 4))
    assert grown.fill_(1).sum() == 12


@pytest.mark.parametrize("p", [0.02, 0.3, 0.5, 0.77, 0.98])
@pytest.mark.parametrize("n", [1, 25, 400, 1e6])
def test_binomial_moments(n, p):
    taeda.manual_seed(1)
    drawn = taeda.binomial(taeda.full((20000,), n, dtype=taeda.float64), taeda.tensor(p).double())
    deviation = (n * p * (1 - p)) ** 0.5
    assert abs(drawn.mean() - n * p) < 5 * deviation / 20000**0.5
    assert abs(drawn.std() - deviation) < 0.05 * deviation
    assert drawn.min() >= 0 and drawn.max() <= n


@pytest.mark.parametrize("rate", [0.1, 3.0, 9.9, 10.1, 70.0, 1e6])
def test_poisson_moments(rate):
    taeda.manual_seed(1)
    drawn = taeda.poisson(taeda.full((20000,), rate, dtype=taeda.float64))
    assert abs(drawn.mean() - rate) < 5 * (rate / 20000) ** 0.5
    assert abs(drawn.var() - rate) < 0.06 * rate
