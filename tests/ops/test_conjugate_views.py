"""Conjugates and negatives as views: is_conj, is_neg, resolve_conj, resolve_neg, beside PyTorch."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import taeda as torch

theirs = pytest.importorskip("torch")
VALUES = (np.arange(12).reshape(3, 4) - 5) + 1j * (np.arange(12)[::-1].reshape(3, 4) % 5 - 2)


def given(framework: Any, dtype: str = "complex128") -> Any:
    return framework.tensor(VALUES.tolist(), dtype=getattr(framework, dtype))


def summary(x: Any) -> tuple:
    """What both must agree on: elements, bits, layout, dtype."""
    plain = x.detach().resolve_conj().resolve_neg()
    bits = (x.is_conj(), x.is_neg())
    return plain.tolist(), bits, tuple(x.shape), x.stride(), str(x.dtype)


VIEWS: dict[str, Callable[[Any], Any]] = {
    "conj": lambda x: x.conj(),
    "conj twice": lambda x: x.conj().conj(),
    "H": lambda x: x.H,
    "mH": lambda x: x.mH,
    "adjoint": lambda x: x.adjoint(),
    "conj imag": lambda x: x.conj().imag,
    "conj real": lambda x: x.conj().real,
    "row": lambda x: x.conj()[1],
    "slice": lambda x: x.conj()[:, ::2],
    "transposed": lambda x: x.conj().t(),
    "view": lambda x: x.conj().view(2, 6),
    "unbind": lambda x: x.conj().unbind(1)[2],
    "split": lambda x: x.conj().split(2, 1)[1],
    "expand": lambda x: x.conj()[:, None].expand(3, 2, 4),
    "diagonal": lambda x: x.conj().diagonal(),
    "detach": lambda x: x.conj().detach(),
    "narrow of imag": lambda x: x.conj().imag.narrow(0, 1, 2),
    "negative of negative": lambda x: x.conj().imag._neg_view(),
    "complex of negative": lambda x: x._neg_view().real,
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_view_has_pytorchs_bits_and_the_memory_of_its_base(view: Callable) -> None:
    x = given(torch)
    y = view(x)
    assert summary(y) == summary(view(given(theirs)))
    assert y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_what_is_written_through_a_view_reaches_the_base(view: Callable) -> None:
    bases = []
    for framework in (torch, theirs):
        x = given(framework)
        y = view(x)
        if "expand" not in str(y.stride()) and 0 not in y.stride():
            y.mul_(2)
            y[0] = 7
            y.add_(y)
        bases.append(x)
    mine, oracle = bases
    assert mine.tolist() == oracle.tolist()


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "add plain": lambda x, y: x.conj() + y,
    "mul": lambda x, y: x.conj() * y.conj(),
    "matmul": lambda x, y: x.conj() @ y.mH,
    "mv": lambda x, y: x.H @ y[:, 0],
    "vdot": lambda x, y: (x[0].conj() * y[0]).sum(),
    "sum": lambda x, y: x.conj().sum(0),
    "abs": lambda x, y: x.conj().abs(),
    "angle": lambda x, y: x.conj().angle(),
    "cat": lambda x, y: (x.conj(), y),
    "imag arithmetic": lambda x, y: x.conj().imag * 2 + y.imag,
    "clone": lambda x, y: x.conj().clone(),
    "contiguous": lambda x, y: x.conj().t().contiguous(),
    "to": lambda x, y: x.conj().to(dtype=x.dtype),
    "reshape": lambda x, y: x.conj().t().reshape(-1),
    "conj_physical": lambda x, y: x.conj().conj_physical(),
    "resolved": lambda x, y: x.conj().resolve_conj(),
    "resolved negative": lambda x, y: x.conj().imag.resolve_neg(),
    "comparison": lambda x, y: x.conj().imag < y.real,
    "index": lambda x, y: x.conj()[[0, 2]],
    "mask": lambda x, y: x.conj()[x.real > 0],
    "sorted": lambda x, y: x.conj().imag.sort()[0],
    "cumulative": lambda x, y: x.conj().cumsum(0),
    "repeat": lambda x, y: x.conj().repeat(2, 1),
    "flip": lambda x, y: x.conj().flip(0),
}


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=OPERATORS)
def test_an_operator_reads_the_elements_and_not_the_memory(operator: Callable) -> None:
    results = []
    for framework in (torch, theirs):
        x = given(framework)
        result = operator(x, x.flip(0) + 1)
        results.append(framework.cat(result) if isinstance(result, tuple) else result)
    mine, oracle = results
    np.testing.assert_allclose(
        mine.resolve_conj().resolve_neg().tolist(), oracle.resolve_conj().resolve_neg().tolist()
    )
    assert mine.is_conj() == oracle.is_conj() and mine.is_neg() == oracle.is_neg()


@pytest.mark.parametrize("name", ["mul", "add", "exp", "zero", "copy"])
def test_in_place_operators_write_through_the_bits(name: str) -> None:
    bases = []
    for framework in (torch, theirs):
        x = given(framework)
        y = x.conj()
        if name == "copy":
            assert y.copy_(x) is y
        elif name in ("mul", "add"):
            assert getattr(y, name + "_")(x) is y
        else:
            getattr(y, name + "_")()
        assert y.is_conj()
        bases.append(x)
    np.testing.assert_allclose(bases[0].tolist(), bases[1].tolist())


def test_out_may_be_a_conjugate() -> None:
    bases = []
    for framework in (torch, theirs):
        x, out = given(framework), given(framework)
        framework.mul(x, 2, out=out.conj())
        framework.exp(x.conj().imag, out=out.imag)
        bases.append(out)
    np.testing.assert_allclose(bases[0].tolist(), bases[1].tolist())


def test_out_with_bits_is_written_through_them_though_no_input_has_any() -> None:
    results = []
    for framework in (torch, theirs):
        x, out = given(framework), given(framework)
        framework.exp(x, out=out.conj())
        part = given(framework).conj().imag
        framework.add(x.real, x.imag, out=part)
        results.append([*out.flatten().tolist(), *part.flatten().tolist()])
    np.testing.assert_allclose(*results)


def test_a_conjugate_can_be_resized() -> None:
    x = given(torch).conj()
    first = x.flatten()[:6].tolist()
    assert x.resize_(2, 3).flatten().tolist() == first and x.is_conj()
    with pytest.warns(UserWarning, match="resized"):
        torch.rsqrt(torch.ones(1), out=x)
    assert x.tolist() == [1] and x.is_conj()


def test_gradients_of_complex_numbers_made_of_parts_pass_conjugates() -> None:
    gradients = []
    for framework in (torch, theirs):
        a = framework.tensor([1.0, 2.0], requires_grad=True)
        b = framework.tensor([0.5, -1.0], requires_grad=True)
        (framework.complex(a, b).conj() * 3j).imag.sum().backward()
        (framework.polar(a, b).conj() @ framework.complex(b, a)).abs().sum().backward()
        gradients.append([*a.grad.tolist(), *b.grad.tolist()])
    np.testing.assert_allclose(*gradients, rtol=1e-5)


def test_a_tangent_may_be_a_conjugate() -> None:
    x, tangent = given(torch), given(torch).flip(0)
    _, moved = torch.func.jvp(lambda t: t.real * t.imag, (x,), (tangent.conj(),))
    expected = tangent.real * x.imag - x.real * tangent.imag
    np.testing.assert_allclose(moved.tolist(), expected.tolist())


def test_sparse_tensors_are_conjugated_at_once() -> None:
    x = given(torch)
    sparse = x.to_sparse()
    assert sparse.conj().to_dense().tolist() == x.conj().tolist()
    assert sparse.mH.to_dense().tolist() == x.mH.tolist()


def test_an_optimizer_steps_a_negative_view() -> None:
    for framework in (torch, theirs):
        weight = framework.nn.Parameter(framework.ones(2, dtype=framework.float64)._neg_view())
        weight.grad = framework.ones(2, dtype=framework.float64)
        framework.optim.SGD([weight], lr=0.5, foreach=False).step()
        assert weight.tolist() == [-1.5, -1.5]


def test_a_replaced_kernel_gets_the_elements() -> None:
    seen = []
    library = torch.library.Library("aten", "IMPL")
    library.impl("exp", lambda t: seen.append(t.is_conj()) or t.sin(), "CPU")
    try:
        x = given(torch)
        assert torch.allclose(x.conj().exp(), x.conj().sin())
        assert seen == [False]
    finally:
        library._destroy()


def test_a_write_counts_as_a_change_of_the_base() -> None:
    x = given(torch)
    version = x._version
    x.conj().mul_(2)
    assert x._version > version


def test_values_are_read_through_the_bits() -> None:
    x = given(torch)
    y = x.conj()
    assert y[0, 1].item() == complex(x[0, 1].item()).conjugate()
    assert complex(y[0, 0]) == complex(x[0, 0]).conjugate()
    assert y.tolist() == [[value.conjugate() for value in row] for row in x.tolist()]
    assert float(y.imag[0, 0]) == -float(x.imag[0, 0])
    assert torch.equal(y, y.clone()) and not torch.equal(y, x)
    assert repr(y) == repr(given(theirs).conj())


def test_numpy_and_dlpack_refuse_memory_that_reads_otherwise() -> None:
    x = given(torch)
    with pytest.raises(RuntimeError, match="Can't call numpy\\(\\) on Tensor that has conjugate"):
        x.conj().numpy()
    with pytest.raises(RuntimeError, match="that has negative bit set"):
        x.conj().imag.numpy()
    assert x.conj().numpy(force=True).tolist() == VALUES.conj().tolist()
    with pytest.raises(BufferError):
        memoryview(x.conj())
    with pytest.raises(BufferError, match="conjugate"):
        np.from_dlpack(x.conj())


def test_view_as_real_and_other_dtypes_are_refused() -> None:
    for framework in (torch, theirs):
        x = given(framework)
        with pytest.raises(RuntimeError, match="unresolved conjugated"):
            framework.view_as_real(x.conj())
        with pytest.raises(RuntimeError, match="conjugate view tensors"):
            x.conj().view(framework.float64)
        with pytest.raises(RuntimeError, match="negative bit"):
            x.conj().imag.view(framework.int64)


@pytest.mark.parametrize("name", [name for name in VIEWS if name != "detach"])
def test_gradients_through_a_view_are_pytorchs(name: str) -> None:
    view = VIEWS[name]
    gradients = []
    for framework in (torch, theirs):
        x = given(framework).requires_grad_()
        y = view(x)
        (y * y * (2 + 1j)).abs().sum().backward()
        gradients.append(x.grad)
    mine, oracle = (g.resolve_conj().resolve_neg().tolist() for g in gradients)
    np.testing.assert_allclose(mine, oracle)


@pytest.mark.parametrize(
    "view", ["conj", "H", "conj imag", "conj real", "slice", "complex of negative"]
)
def test_gradients_through_a_write_into_a_view_are_pytorchs(view: str) -> None:
    gradients = []
    for framework in (torch, theirs):
        x = given(framework).requires_grad_()
        base = x * (1 + 2j)
        y = VIEWS[view](base)
        y.mul_(3)
        late = VIEWS[view](base)
        y.add_(late.detach().abs())
        (base * base).abs().sum().backward(retain_graph=True)
        first = x.grad.clone()
        (y * y).abs().sum().backward()
        gradients.append([first, x.grad])
    for mine, oracle in zip(*gradients):
        np.testing.assert_allclose(mine.resolve_conj().tolist(), oracle.resolve_conj().tolist())


def test_forward_mode_follows_the_bits() -> None:
    x, tangent = given(torch), given(torch).flip(1)
    for name, view in VIEWS.items():
        if name == "detach":
            continue
        _, moved = torch.func.jvp(view, (x,), (tangent,))
        assert summary(moved)[0] == summary(view(tangent))[0], name


def test_gradcheck_holds_of_first_and_second_order() -> None:
    x = given(torch).requires_grad_()
    assert torch.autograd.gradcheck(lambda t: t.conj() * t, (x,))
    assert torch.autograd.gradgradcheck(lambda t: t.conj().imag * t.mH.mH.real, (x,))


def test_vmap_and_functionalize_follow_the_bits() -> None:
    x = given(torch)
    assert torch.func.vmap(lambda row: row.conj().imag + 1)(x).tolist() == (1 - x.imag).tolist()

    def write(t: torch.Tensor) -> torch.Tensor:
        t = t.clone()
        t.conj().mul_(2j)
        t.conj().imag.add_(1)
        return t

    expected = write(x).tolist()
    assert torch.func.functionalize(write)(x).tolist() == expected
    assert torch.func.vmap(write)(x).tolist() == expected


def test_copies_and_files_keep_the_bits() -> None:
    x = given(torch).conj()
    for made in (copy.copy(x), pickle.loads(pickle.dumps(x))):
        assert made.is_conj() and made.tolist() == x.tolist()
    deep = copy.deepcopy(x)  # as PyTorch's, conjugated in memory
    assert not deep.is_conj() and deep.tolist() == x.tolist()
    file = io.BytesIO()
    torch.save({"conj": x, "imag": given(torch).conj().imag, "plain": x.clone()}, file)
    for loads in (torch.load, theirs.load):
        file.seek(0)
        loaded = loads(file)
        assert loaded["conj"].is_conj() and loaded["imag"].is_neg()
        assert not loaded["plain"].is_conj()
        assert loaded["conj"].tolist() == x.tolist() and loaded["imag"].tolist() == x.imag.tolist()


def test_a_mode_sees_the_view_and_the_copy() -> None:
    from taeda.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    x = given(torch)
    with Log():
        x.conj() * x
    assert seen[0] == "aten._conj.default" and "aten.mul.Tensor" in seen


def test_code_of_a_mode_may_conjugate() -> None:
    from taeda.utils._python_dispatch import TorchDispatchMode

    class Squares(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return args[0].conj() * args[0]

    x = given(torch)
    with Squares():
        squares = x + 1
    assert squares.tolist() == (x.real**2 + x.imag**2).to(x.dtype).tolist()


def test_meta_tensors_keep_the_bits() -> None:
    x = torch.empty(2, 3, dtype=torch.complex64, device="meta")
    assert x.conj().is_conj() and x.mH.is_conj() and x.conj().imag.is_neg()
    assert (x.conj() * 2).shape == (2, 3) and not (x.conj() * 2).is_conj()


def test_an_operator_of_a_library_gets_the_elements() -> None:
    library = torch.library.Library("conjugate_views", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda t: torch.view_as_complex(torch.view_as_real(t) * 2), "CPU")
    x = given(torch)
    assert torch.ops.conjugate_views.twice(x.conj()).tolist() == (x.conj() * 2).tolist()


def test_set_takes_the_memory_of_a_tensor_and_not_its_bits() -> None:
    z = torch.tensor([1 + 2j, 3 - 1j])
    x = torch.zeros(1, dtype=torch.complex64)
    x.set_(z.conj())
    assert not x.is_conj() and x.tolist() == z.tolist()
    y = torch.zeros(1, dtype=torch.complex64).conj()
    y.set_(z)
    assert y.is_conj() and y.tolist() == z.conj().tolist()
    assert z.tolist() == [1 + 2j, 3 - 1j]


def test_parts_of_sparse_tensors() -> None:
    z = torch.tensor([[1 + 2j, 0], [0, 3 - 1j]])
    s = z.to_sparse()
    assert s.real.is_sparse and s.imag.is_sparse
    assert s.real.to_dense().tolist() == z.real.tolist()
    assert s.imag.to_dense().tolist() == z.imag.tolist()
