"""Modules that packages make when they are read, and those that libraries name, import as PyTorch's
do: with an import statement in a fresh process, under taeda's name and under torch's."""

import subprocess
import sys
import warnings

import pytest
from tests.children import ENVIRONMENT

import taeda

MODULES = (
    "ops _C._autograd _C._nn _C._linalg _C._fft _C._special _C._functorch _higher_order_ops.wrap "
    "_higher_order_ops.cond _higher_order_ops.map _higher_order_ops.while_loop "
    "_higher_order_ops.out_dtype backends.cudnn.rnn cuda.jiterator export.unflatten "
    "ao.quantization.quantize ao.quantization.fuse_modules quantization.quantize"
).split()
PROGRAM = """
import importlib, types
import {root}
for name in {modules!r}:
    found = importlib.import_module("{root}." + name)
    assert isinstance(found, types.ModuleType), name
from {root}._C._functorch import is_batchedtensor
from {root}.export.unflatten import unflatten
from {root}._higher_order_ops.cond import cond
assert not is_batchedtensor({root}.ones(1))
# The functions of the same names stay what packages show.
assert cond is {root}._higher_order_ops.cond is {root}.cond
assert unflatten is {root}.export.unflatten
assert callable({root}.ao.quantization.quantize)
print("imported")
"""


def run(*arguments):
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=120, env=ENVIRONMENT
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(("root", "launcher"), [("taeda", ()), ("torch", ("-m", "taeda"))])
def test_modules_without_files_are_imported_by_a_statement(root, launcher):
    code, out, error = run(*launcher, "-c", PROGRAM.format(root=root, modules=MODULES))
    assert code == 0, error
    assert out == "imported\n"


def test_the_launcher_runs_modules_of_torch():
    code, out, error = run("-m", "taeda", "-m", "torch.utils.collect_env")
    assert code == 0, error
    assert "PyTorch version: 2.13" in out
    code, _, error = run("-m", "taeda", "-m", "torch.utils.benchmark")
    assert code != 0 and "'torch.utils.benchmark' is a package" in error
    code, _, error = run("-m", "taeda", "-m", "torch.distributed.run")
    assert code != 0 and "NotImplementedError: torch.distributed.run" in error


def test_names_that_torchao_imports_are_there():
    from taeda._inductor.lowering import register_lowering  # noqa: F401
    from taeda.ao.quantization.fx._decomposed import quantized_decomposed_lib  # noqa: F401
    from taeda.fx.experimental.symbolic_shapes import has_free_symbols
    from taeda.sparse._triton_ops_meta import get_meta
    from taeda.testing._internal.composite_compliance import check_with_mode, is_inplace  # noqa: F401

    from taeda._dynamo.utils import warn_once

    assert is_inplace(taeda.ops.aten.add_.Tensor)
    assert not is_inplace(taeda.ops.aten.add.Tensor)
    with pytest.raises(NotImplementedError, match="Triton"):
        get_meta("mm", ())
    assert has_free_symbols((2, 3)) is False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_once("a warning of this test")
        warn_once("a warning of this test")
    assert [str(w.message) for w in caught] == ["a warning of this test"]


def test_operators_in_place_and_views_are_told_apart():
    from taeda._library.in_place import is_inplace, is_inplace_view_fn, is_view_fn

    aten = taeda.ops.aten
    for op in (aten.transpose.int, aten.split.Tensor, aten.detach.default):
        assert is_view_fn(op) and not is_inplace(op) and not is_inplace_view_fn(op)
    for op in (aten.transpose_.default, aten.unsqueeze_.default, aten.detach_.default):
        assert is_inplace_view_fn(op) and is_inplace(op) and not is_view_fn(op)
    assert not is_inplace_view_fn(aten.add_.Tensor) and not is_view_fn(aten.add.Tensor)


def test_an_ordered_set_keeps_its_order():
    from taeda.utils._ordered_set import OrderedSet

    letters = OrderedSet("banana")
    assert list(letters) == ["b", "a", "n"] and list(reversed(letters)) == ["n", "a", "b"]
    assert list(letters | OrderedSet("cab")) == ["b", "a", "n", "c"]
    assert list(letters.difference("a", "n")) == ["b"]
    assert list(letters.intersection("na")) == ["a", "n"]
    assert letters == {"a", "b", "n"} and letters.issuperset(OrderedSet("ab"))
    assert letters.pop() == "n" and len(letters) == 2
    letters.discard("z")
    letters.update("xb", "y")
    assert list(letters) == ["b", "a", "x", "y"]


def test_overloads_of_to_share_or_copy_as_the_method_does():
    x = taeda.ones(2, requires_grad=True)
    to = taeda.ops.aten.to
    assert to.dtype(x, taeda.float32) is x
    assert to.dtype(x, taeda.float32, copy=True) is not x
    y = to.dtype_layout(x, dtype=taeda.float64)
    y.sum().backward()
    assert y.dtype == taeda.float64 and x.grad.tolist() == [1, 1]
    assert to.other(x, taeda.ones(1, dtype=taeda.float16)).dtype == taeda.float16
    assert to.device(x, taeda.device("cpu"), taeda.float64).dtype == taeda.float64
    with pytest.raises(RuntimeError, match="layout"):
        to.dtype_layout(x, layout=taeda.sparse_csr)


def test_questions_are_operators_too():
    aten, x = taeda.ops.aten, taeda.arange(6.0).reshape(2, 3)
    assert aten.dim.default(x) == 2 and not aten.is_pinned.default(x)
    assert aten.is_contiguous.default(x) and not aten.is_contiguous.default(x.t())
    assert aten.is_same_size.default(x, x + 1) and not aten.is_same_size.default(x, x.t())
    assert aten.numpy_T.default(x).tolist() == x.t().tolist()
    csr = x.to_sparse_csr()
    assert aten._nnz.default(csr) == 5
    assert aten.values.default(csr).tolist() == [1, 2, 3, 4, 5]
    assert aten.crow_indices.default(csr).tolist() == [0, 2, 5]
    assert aten.col_indices.default(csr).tolist() == [1, 2, 0, 1, 2]


def test_collectives_have_names_and_raise():
    ops = taeda.ops._c10d_functional
    x = taeda.ones(2)
    assert ops.wait_tensor.default(x) is x
    with pytest.raises(NotImplementedError, match="one process"):
        ops.all_reduce.default(x, "sum", "0")


def test_whether_a_transform_is_at_work_is_known():
    active = taeda._C._are_functorch_transforms_active
    seen = []

    def square(x):
        seen.append(active())
        return (x * x).sum()

    assert not active()
    taeda.func.grad(square)(taeda.ones(2))
    taeda.vmap(square)(taeda.ones(2, 3))
    assert seen == [True, True] and not active()


def test_blocks_of_profiles_are_entered_and_left_by_both_pairs():
    profiler = taeda.ops.profiler
    handle = profiler._record_function_enter_new.default("block")
    profiler._record_function_exit._RecordFunction(handle)
    profiler._record_function_exit.default(profiler._record_function_enter.default("block"))
