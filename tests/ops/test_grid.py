"""Every table operator on its samples: values against PyTorch over dtypes and layouts, in-place and
out= forms, shapes on the meta device, first and second gradients by finite differences, forward
mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gen.table import Op, load
from tests.ops import samples as grid

import taeda

OPS = [
    op for op in load(Path(__file__).resolve().parents[2] / "ops") if op.python and grid.samples(op)
]
IDS = [op.ident for op in OPS]
SPECIAL = [op for op in OPS if op.body == "pointwise" and op.test.get("special", True)]
DIFFERENTIABLE = [
    op
    for op in OPS
    if op.grad != {}
    and not (op.grad and all(str(f).startswith("not_implemented(") for f in op.grad.values()))
    and op.types not in ("bool", "integral", "integral_bool")
    and op.promote != "bool"
    and any(a.is_tensor or a.is_tensor_list for a in op.sig.args)
    and "grad" not in op.test
]
DERIVATIVES = [
    pytest.param(op, dtype, id=op.ident + ("" if dtype == "float64" else "-complex"))
    for op in DIFFERENTIABLE
    for dtype in ("float64", "complex128")
    if dtype in grid.dtypes(op) or (dtype == "float64" and not grid.is_complex_only(op))
]


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


def flat(result: Any) -> list[Any]:
    """The tensors and numbers in a result, also those in lists inside of it."""
    listed = isinstance(result, (tuple, list))
    return [leaf for part in result for leaf in flat(part)] if listed else [result]


def without_nan(x: Any) -> Any:
    return x.nan_to_num() if x.is_floating_point() or x.is_complex() else x


def assert_same(got: Any, expected: Any, context: str, least: float = 1e-9) -> None:
    """Equal dtype, shape and values to the tolerances that PyTorch's own tests use."""
    for mine, theirs in zip(flat(got), flat(expected), strict=True):
        if not isinstance(mine, taeda.Tensor):
            assert mine == theirs or (mine != mine and theirs != theirs), context
            continue
        assert str(mine.dtype) == str(theirs.dtype), context
        assert tuple(mine.shape) == tuple(theirs.shape), context
        tolerances = {
            "torch.float16": 2e-3,
            "torch.bfloat16": 2e-2,
            "torch.float32": 2e-5,
            "torch.complex64": 2e-5,
        }
        tolerance = max(tolerances.get(str(theirs.dtype), 1e-9), least)
        if "float16" in str(theirs.dtype):
            mine, theirs = mine.float(), theirs.float()
        a, b = (t.detach().cpu().resolve_conj().resolve_neg().numpy() for t in (mine, theirs))
        import numpy

        numpy.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=context)


def call(op: Op, framework: Any, dtype: str, layout: str, sample: str, **kwargs: Any) -> Any:
    args, options = grid.maker(op, framework, dtype, layout, sample, **kwargs).arguments(sample)
    return grid.place(op, framework)(*args, **options)


def both(
    op: Op, torch: Any, dtype: str, layout: str, sample: str, **kwargs: Any
) -> tuple[Any, Any]:
    """Results of both frameworks; where PyTorch raises, taeda must raise the same kind."""
    try:
        expected = call(op, torch, dtype, layout, sample, **kwargs)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        if "not implemented for" in str(error):
            return None, None  # PyTorch lacks the dtype: nothing to compare with
        with pytest.raises((type(error), RuntimeError)):
            call(op, taeda, dtype, layout, sample, **kwargs)
            if taeda.cuda.is_available():
                taeda.cuda.synchronize()  # what a kernel found in the data is raised here
        return None, None
    return call(op, taeda, dtype, layout, sample, **kwargs), expected


@pytest.mark.parametrize("op", OPS, ids=IDS)
def test_values(op: Op, torch: Any) -> None:
    if grid.place(op, torch) is None:
        pytest.skip("PyTorch has no such function")
    for sample in grid.samples(op):
        for dtype in grid.dtypes(op):
            for layout in op.test.get("layouts", grid.LAYOUTS):
                got, expected = both(op, torch, dtype, layout, sample)
                if expected is not None:
                    least = op.test.get("tolerance", 0) if "32" in dtype else 1e-9
                    assert_same(got, expected, f"{op.name}({sample}) {dtype} {layout}", least)


@pytest.mark.parametrize(
    "op",
    SPECIAL,
    ids=[op.ident for op in SPECIAL],
)
def test_special_values(op: Op, torch: Any) -> None:
    if grid.place(op, torch) is None:
        pytest.skip("PyTorch has no such function")
    if op.types in ("bool", "integral", "integral_bool"):
        pytest.skip("no floating values")
    for sample in grid.samples(op):
        got, expected = both(op, torch, "float32", "plain", sample, special=True)
        if expected is not None:
            assert_same(got, expected, f"{op.name}({sample}) with nan, inf, -inf, -0")


@pytest.mark.parametrize("op", OPS, ids=IDS)
def test_forms(op: Op) -> None:
    """Method, in-place and out= give what the function gives."""
    dtype = next(
        (d for d in ("float32", "int64", "bool") if d in grid.dtypes(op)), grid.dtypes(op)[0]
    )
    for sample in grid.samples(op):
        expected = call(op, taeda, dtype, "plain", sample)
        if not isinstance(expected, taeda.Tensor):
            continue
        args, options = grid.maker(op, taeda, dtype, sample=sample).arguments(sample)
        methods = [p.removeprefix("Tensor.") for p in op.python if p.startswith("Tensor.")]
        if methods and isinstance(args[0], taeda.Tensor):
            assert taeda.equal(
                without_nan(getattr(args[0], methods[0])(*args[1:], **options)),
                without_nan(expected),
            )
        if op.out_python and "out" in op.variants and "torch." + op.name in op.python:
            out = taeda.empty(0, dtype=expected.dtype, device=expected.device)
            given = {*options, *(a.name for a in op.sig.args[: len(args)])}
            if {*op.out_needs} <= given:
                assert getattr(taeda, op.name)(*args, **options, out=out) is out
                assert taeda.equal(without_nan(out), without_nan(expected))
            else:
                with pytest.raises(TypeError):
                    getattr(taeda, op.name)(*args, **options, out=out)
        if (
            "inplace" in op.variants
            and isinstance(args[0], taeda.Tensor)
            and expected.dtype == args[0].dtype
            and expected.shape == args[0].shape
            and f"Tensor.{op.name}" in op.python
        ):
            target, version = args[0].clone(), args[0].clone()._version
            assert getattr(target, op.name + "_")(*args[1:], **options) is target
            assert taeda.equal(without_nan(target), without_nan(expected))
            assert target._version > version


@pytest.mark.parametrize("op", OPS, ids=IDS)
def test_meta_shapes(op: Op) -> None:
    """The shape-only version knows size and dtype of the real result."""
    if op.test.get("meta", True) is False:
        pytest.skip("the shape depends on the data")
    dtype = next(
        (d for d in ("float32", "int64", "bool") if d in grid.dtypes(op)), grid.dtypes(op)[0]
    )
    for sample in grid.samples(op):
        expected = call(op, taeda, dtype, "plain", sample)
        args, options = grid.maker(op, taeda, dtype, sample=sample).arguments(sample)

        def to_meta(value: Any) -> Any:
            if isinstance(value, taeda.Tensor):
                return value.to("meta")
            return (
                type(value)(to_meta(v) for v in value)
                if isinstance(value, (list, tuple))
                else value
            )

        got = grid.place(op, taeda)(*to_meta(args), **{k: to_meta(v) for k, v in options.items()})
        for mine, real in zip(flat(got), flat(expected), strict=True):
            if isinstance(real, taeda.Tensor) and mine.is_meta:
                assert (mine.shape, mine.dtype) == (real.shape, real.dtype), f"{op.name}({sample})"


def gradient_case(op: Op, sample: str, dtype: str = "float64") -> tuple[Any, list[Any]]:
    """A function of the tensors alone, and those tensors."""
    source = grid.maker(op, taeda, dtype, sample=sample, requires_grad=True)
    args, options = source.arguments(sample)
    function = grid.place(op, taeda)
    inputs = [t for t in source.made if t.requires_grad]

    def f(*tensors: Any) -> Any:
        replaced = {id(old): new for old, new in zip(inputs, tensors)}

        def swap(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return type(value)(swap(v) for v in value)
            return replaced.get(id(value), value)

        given = swap(args)
        if op.mutates:  # what requires grad may not be written itself
            given = (given[0].clone(), *given[1:])
        result = function(*given, **{k: swap(v) for k, v in options.items()})
        return tuple(r for r in flat(result) if r.is_floating_point() or r.is_complex())

    return f, inputs


@pytest.mark.parametrize(("op", "dtype"), DERIVATIVES)
def test_gradients(op: Op, dtype: str) -> None:
    """Backward, forward mode, backward and forward mode through backward: by finite differences."""
    tried = 0
    forward = op.jvp != "none" and "forward_ad" not in op.test
    for sample in grid.samples(op):
        f, inputs = gradient_case(op, sample, dtype)
        if not inputs or sum(t.numel() for t in inputs) > 40:
            continue
        tried += 1
        taeda.autograd.gradcheck(f, inputs, check_forward_ad=forward)
        if "gradgrad" not in op.test:
            taeda.autograd.gradgradcheck(f, inputs, check_fwd_over_rev=forward)
    assert tried, "no sample is small enough to differentiate"


@pytest.mark.parametrize("op", [op for op in OPS if op.dual], ids=lambda op: op.ident)
def test_third_derivatives(op: Op) -> None:
    """Beyond the first derivative, which dual numbers give, the formula serves at any order."""
    sample = next(s for s in grid.samples(op) if "3, 4" in s)
    f, inputs = gradient_case(op, sample)

    def second(*xs: taeda.Tensor) -> tuple[taeda.Tensor, ...]:
        results = list(f(*xs))
        for _ in range(2):
            results = [y for y in results if y.requires_grad]
            if not results:
                return ()
            total = sum(y.sum() for y in results)
            results = taeda.autograd.grad(total, xs, create_graph=True, materialize_grads=True)
        return tuple(y for y in results if y.requires_grad)

    if not second(*inputs):
        pytest.skip("piecewise linear: the second derivative is 0")
    taeda.autograd.gradcheck(second, inputs)


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=[op.ident for op in DIFFERENTIABLE])
def test_gradient_of_one_input_alone(op: Op) -> None:
    """A node that saves less, because less is wanted, gives the same gradients."""
    tried = 0
    for sample in grid.samples(op):
        f, inputs = gradient_case(op, sample)
        if len(inputs) < 2:
            continue
        results = [y for y in f(*inputs) if y.requires_grad]
        together = taeda.autograd.grad(
            results, inputs, [taeda.ones_like(y) for y in results], allow_unused=True
        )
        for i, expected in enumerate(together):
            alone = [t.detach() for t in inputs]
            alone[i].requires_grad_()
            results = [y for y in f(*alone) if y.requires_grad]
            if expected is None or not results:
                continue
            tried += 1
            (got,) = taeda.autograd.grad(
                results, [alone[i]], [taeda.ones_like(y) for y in results], allow_unused=True
            )
            taeda.testing.assert_close(got, expected, equal_nan=True)
    if not tried:
        pytest.skip("at most one input that has a gradient")
