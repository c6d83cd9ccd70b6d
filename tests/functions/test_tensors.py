"""Functions on tensors of torch's own beside PyTorch's."""

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")


def x(lib, *shape):
    return lib.tensor(np.random.default_rng(0).standard_normal(shape), requires_grad=True)


def check(call, gradient=True):
    found = []
    for lib in (taeda, torch):
        leaf = x(lib, 6, 5)
        results = call(lib, leaf)
        results = results if isinstance(results, tuple | list) else [results]
        if gradient:
            sum(lib.nan_to_num(r, 0, 0, 0).sin().sum() for r in results).backward()
            results = [*results, leaf.grad]
        found.append([r.detach().numpy() for r in results])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-9, 1e-12)


@pytest.mark.parametrize("name", ["detach_", "zero_", "is_neg", "is_signed", "is_distributed"])
def test_methods_as_functions(name):
    ours, theirs = (getattr(lib, name)(lib.ones(3)) for lib in (taeda, torch))
    assert ours == theirs if isinstance(theirs, bool) else ours.tolist() == theirs.tolist()


def test_methods_that_are_seldom_called():
    for ask in (
        "lu()[1].tolist()", "polygamma(1).tolist()", "dequantize().dtype", "is_same_size(x[0])",
        "is_distributed()", "storage_type().__name__", "map2_(x, x, lambda a, b, c: a + b * c)",
        "double().dequantize().dtype", "_typed_storage().tolist()",
    ):  # fmt: skip
        x = {lib: lib.tensor([[1.0, 2.0], [4.0, 4.0]]) for lib in (taeda, torch)}
        ours, theirs = (eval(f"x.{ask}", {"x": x[lib]}) for lib in (taeda, torch))
        assert str(ours) == str(theirs), ask
    assert taeda._shape_as_tensor(taeda.ones(2, 3)).tolist() == [2, 3]
    assert taeda.ByteStorage._from_buffer(b"\x01\x02").tolist() == [1, 2]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", None])
def test_products_of_float8_matrices(dtype):
    draw = np.random.default_rng(0)
    a, b = (draw.standard_normal((16, 16)).astype(np.float32) for _ in range(2))
    rows, columns = draw.random((16, 1), np.float32), draw.random((1, 16), np.float32)
    found = []
    for lib in (taeda, torch):
        x, y = (lib.tensor(v).to(lib.float8_e4m3fn) for v in (a, b))
        options = {} if dtype is None else {"out_dtype": getattr(lib, dtype)}
        result = lib._scaled_mm(x, y.t(), lib.tensor(rows), lib.tensor(columns), **options)
        assert result.dtype == options.get("out_dtype", lib.float8_e4m3fn)
        found.append(result.float().numpy())
    tolerance = {"float32": 1e-5, "bfloat16": 0.02, None: 0.15}[dtype]
    np.testing.assert_allclose(*found, tolerance, tolerance)


FLOAT8_CALLS = {
    "addmm": lambda lib, c, a, b: lib.addmm(c, a, b),
    "addmm with numbers": lambda lib, c, a, b: lib.addmm(c, a, b, beta=2, alpha=0.5),
    "addmm without c": lambda lib, c, a, b: lib.addmm(c, a, b, beta=0),
    "addmm of a row": lambda lib, c, a, b: lib.addmm(c[0], a, b.t().contiguous().t()),
    "addmm_": lambda lib, c, a, b: c.addmm_(a, b),
    "addbmm": lambda lib, c, a, b: lib.addbmm(c, a[None], b[None]),
    "mm": lambda lib, c, a, b: lib.mm(a, b),
    "linear": lambda lib, c, a, b: lib.nn.functional.linear(a, b.t()),
    "linear with bias": lambda lib, c, a, b: lib.nn.functional.linear(a, b.t(), c[0]),
    "linear of a row": lambda lib, c, a, b: lib.nn.functional.linear(a[0], b.t(), c[0]),
    "index_put": lambda lib, c, a, b: c.index_put(
        (lib.tensor([0, 2, 2, 0]),), c[[1, 1, 3, 3]], accumulate=True
    ),
    "index_add": lambda lib, c, a, b: c.index_add(0, lib.tensor([0]), c[:1]),
    "index_reduce": lambda lib, c, a, b: c.index_reduce(0, lib.tensor([0]), c[:1], "amax"),
    "mv": lambda lib, c, a, b: lib.mv(a, b[:, 0]),
}


@pytest.mark.parametrize(
    "dtype",
    ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"],
)
@pytest.mark.parametrize("name", FLOAT8_CALLS)
def test_float8_is_multiplied_and_added_as_pytorchs(name, dtype):
    draw = np.random.default_rng(0)
    values = [draw.standard_normal(sizes).astype(np.float32) for sizes in ((4, 3), (4, 5), (5, 3))]
    if dtype == "float8_e8m0fnu":
        values = [np.exp2(np.round(v)) for v in values]
    found = []
    for lib in (taeda, torch):
        given = [lib.tensor(v).to(getattr(lib, dtype)) for v in values]
        try:
            result = FLOAT8_CALLS[name](lib, *given)
        except NotImplementedError:
            found.append(None)
            continue
        found.append(result.float().numpy())
        assert str(result.dtype).endswith(dtype)
    if found[1] is None:
        assert found[0] is None or (name, dtype) == ("index_put", "float8_e8m0fnu")
    else:
        step = {"4": 2**-3, "5": 2**-2}[dtype[len("float8_e")]]  # of a rounding
        np.testing.assert_allclose(*found, rtol=step, atol=1e-2)


def test_products_need_float8():
    with pytest.raises(ValueError, match="Float8"):
        taeda._scaled_mm(taeda.ones(2, 2), taeda.ones(2, 2), taeda.tensor(1.0), taeda.tensor(1.0))


def test_assertions_on_tensors():
    found = {}
    for lib in (taeda, torch):
        for values in (1, [True], 0.0, [0], [], [1, 2]):
            for message in ((), ("wrong",)):
                try:
                    result = lib._assert_async(lib.tensor(values), *message)
                except RuntimeError as error:
                    result = str(error)
                found.setdefault((str(values), message), []).append(result)
        with pytest.raises(TypeError, match=r"argument 'input' .* must be Tensor, not int"):
            lib._assert_async(1)
    assert all(ours == theirs for ours, theirs in found.values()), found


def test_methods_with_arguments():
    t = taeda.zeros(3)
    assert taeda.fill_(t, 2) is t
    assert taeda.index_put_(t, (taeda.tensor([1]),), taeda.tensor(5.0)).tolist() == [2, 5, 2]
    assert taeda.resize_as_(t, taeda.ones(2)).shape == (2,)
    assert taeda.get_device(t) == -1


@pytest.mark.parametrize("dim", [0, (1,), (0, 1), ()])
def test_frobenius_norm(dim):
    check(lambda lib, t: lib.frobenius_norm(t, dim, keepdim=True))


def test_nuclear_norm():
    check(lambda lib, t: lib.nuclear_norm(t))
    check(lambda lib, t: lib.nuclear_norm(t[None] * 2, (1, 2), keepdim=True))
    with pytest.raises(RuntimeError, match="2 dimensions"):
        taeda.nuclear_norm(taeda.ones(3))


def test_lu():
    check(lambda lib, t: lib.lu(t.detach()[:5]), gradient=False)
    check(lambda lib, t: lib.lu(t.detach()[:5], get_infos=True), gradient=False)
    check(lambda lib, t: t.detach()[:5].lu(), gradient=False)


@pytest.mark.parametrize("initial", [None, 2.0])
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "amax", "amin", "prod"])
def test_segment_reduce(reduce, initial):
    lengths = [[2, 0, 3, 1], [[3, 2]] * 6]
    for axis, values in enumerate(lengths):
        check(
            lambda lib, t, axis=axis, values=values: lib.segment_reduce(
                t, reduce, lengths=lib.tensor(values), axis=axis, initial=initial
            )
        )
    check(lambda lib, t: lib.segment_reduce(t, reduce, offsets=lib.tensor([0, 2, 2, 6])))


def test_segments_must_fit():
    t = taeda.ones(3)
    for wrong in ({"lengths": taeda.tensor([1, 1])}, {"lengths": taeda.tensor([4, -1])}, {}):
        with pytest.raises(RuntimeError):
            taeda.segment_reduce(t, "sum", **wrong)
    with pytest.raises(RuntimeError, match="reduce argument must be"):
        taeda.segment_reduce(t, "median", lengths=taeda.tensor([3]))


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient(edge_order):
    options = {"edge_order": edge_order}
    check(lambda lib, t: lib.gradient(t, **options))
    check(lambda lib, t: lib.gradient(t, spacing=0.5, dim=-1, **options))
    check(lambda lib, t: lib.gradient(t, spacing=[0.5, 2.0], **options))
    check(lambda lib, t: lib.gradient(t, spacing=[2, 3], dim=(1, 0), **options))
    coordinates = [0.0, 1.0, 1.5, 4.0, 9.0, 10.0]
    check(
        lambda lib, t: lib.gradient(
            t, spacing=(lib.tensor(coordinates, dtype=lib.float64),), dim=0, **options
        )
    )


def test_gradient_of_integers_and_errors():
    ours, theirs = (lib.gradient(lib.tensor([1, 4, 9, 16]))[0] for lib in (taeda, torch))
    assert ours.tolist() == theirs.tolist()
    assert str(ours.dtype) == str(theirs.dtype)
    with pytest.raises(RuntimeError, match="edge_order"):
        taeda.gradient(taeda.ones(5), edge_order=3)
    with pytest.raises(RuntimeError, match="at least edge_order"):
        taeda.gradient(taeda.ones(1))
    with pytest.raises(IndexError):
        taeda.gradient(taeda.ones(5), dim=2)


@pytest.mark.parametrize("name", ["eig", "lstsq", "matrix_rank", "solve", "symeig"])
def test_removed_functions_say_so(name):
    for lib in (taeda, torch):
        with pytest.raises(RuntimeError, match="and is now removed"):
            getattr(lib, name)(lib.ones(2, 2), lib.ones(2, 2))


def test_the_build_is_told():
    for name in ("has_lapack", "legacy_contiguous_format"):
        assert str(getattr(taeda, name)) == str(getattr(torch, name))
    for name in ("compiled_with_cxx11_abi", "is_vulkan_available"):
        assert getattr(taeda, name)() == getattr(torch, name)()
    assert {t for t in dir(taeda.Tag) if t[0] != "_"} <= {t for t in dir(torch.Tag) if t[0] != "_"}


def test_from_file_maps_the_elements_of_a_file(tmp_path):
    path = tmp_path / "numbers"
    np.arange(6, dtype=np.float32).tofile(path)
    own = taeda.from_file(str(path), size=4)
    assert own.tolist() == [0, 1, 2, 3] and own.dtype == taeda.float32
    own[0] = 9  # not in the file
    shared = taeda.from_file(str(path), shared=True, size=8, dtype=taeda.float32)
    assert shared.tolist() == [0, 1, 2, 3, 4, 5, 0, 0]  # the file has grown
    shared[0] = 7
    assert np.fromfile(path, np.float32)[0] == 7
    with pytest.raises(RuntimeError, match="has 32 bytes, not 36"):
        taeda.from_file(str(path), size=9)
    with pytest.raises(RuntimeError, match="size must not be negative"):
        taeda.from_file(str(path), size=-1)


def test_gradient_beside_infinities_is_spoilt_where_pytorchs_is():
    torch = pytest.importorskip("torch")
    inf, nan = float("inf"), float("nan")
    for values in ([1.0, inf, 2.0, -inf, 5.0, 3.0, 1.0], [2.0, nan, 4.0, 1.0, inf, inf, 7.0]):
        for options in ({}, {"spacing": 2.0}, {"edge_order": 2}, {"spacing": 0.5, "edge_order": 2}):
            mine, theirs = (t.gradient(t.tensor(values), **options)[0] for t in (taeda, torch))
            np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-6)
    for order in (1, 2):
        mine, theirs = (
            t.gradient(
                t.tensor([1.0, 4.0, 9.0, 16.0, 3.0, 8.0]),
                spacing=[t.tensor([0.0, 1.0, 3.0, 4.0, 6.0, 6.5], dtype=t.float64)],
                edge_order=order,
            )[0]
            for t in (taeda, torch)
        )
        assert str(mine.dtype) == "torch.float64"
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-12)


def test_copies_of_views_without_history():
    source = taeda.ones(2, requires_grad=True)
    copied = taeda.detach_copy(source)
    assert copied.requires_grad
    with pytest.raises(RuntimeError, match="detach_copy is not implemented"):
        copied.sum().backward()
    out = taeda.empty(0, dtype=taeda.int32)
    assert taeda.view_copy(source.detach(), taeda.int32, out=out) is out
    assert out.tolist() == [0x3F800000] * 2
    with pytest.raises(RuntimeError, match="out"):
        taeda.view_copy(source.detach(), dtype=taeda.int32, out=taeda.empty(2))
