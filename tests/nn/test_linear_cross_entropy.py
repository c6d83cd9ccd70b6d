"""linear_cross_entropy and its module, whole and in chunks, against PyTorch's."""

import pytest

import taeda
from taeda import nn
from taeda.nn import functional as F


def arguments(of, shape, inner=(), classes=7, bias=True, dtype="float64"):
    """x, weight, bias, class weights and targets, one of them ignored."""
    of.manual_seed(0)
    kind = getattr(of, dtype)
    x = of.randn(*shape, 5, dtype=of.float64).to(kind).requires_grad_()
    w = of.randn(classes, *inner, 5, dtype=of.float64).to(kind).requires_grad_()
    b = of.randn(classes, *inner, dtype=of.float64).to(kind).requires_grad_() if bias else None
    class_weights = of.rand(classes, dtype=of.float64).to(kind)
    target = of.randint(classes, (*shape, *inner))
    if target.dim():
        target[0] = 3
    return x, w, b, class_weights, target


def results(of, options, reduction, shape, inner=(), bias=True, weighted=True, **kwargs):
    x, w, b, class_weights, target = arguments(of, shape, inner, bias=bias)
    loss = of.nn.functional.linear_cross_entropy(
        x, w, target, linear_bias=b, weight=class_weights if weighted else None,
        reduction=reduction, options=options, **kwargs,
    )  # fmt: skip
    gy = of.arange(1, loss.numel() + 1, dtype=of.float64).reshape(loss.shape)
    loss.backward(gy)
    return [loss.detach(), x.grad, w.grad, *([b.grad] if bias else [])]


def assert_same(mine, theirs):
    for a, b in zip(mine, theirs, strict=True):
        assert a.shape == b.shape
        assert taeda.allclose(a, taeda.tensor(b.numpy()), rtol=1e-10, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(), (1,), (13,)])
@pytest.mark.parametrize("chunk", [None, 1, 4, 50, "aspect_ratio", "aspect_ratio:2", "auto"])
def test_losses_and_gradients_are_pytorchs(reduction, shape, chunk):
    torch = pytest.importorskip("torch")
    for bias, weighted, ignored in ((True, True, 3), (False, False, None), (True, True, -1)):
        found = []
        for of in (taeda, torch):
            options = None
            if isinstance(chunk, int):
                options = of.nn.LinearCrossEntropyOptions(batch_chunk_size=chunk)
            elif chunk is not None:
                options = of.nn.LinearCrossEntropyOptions(chunking_method=chunk)
            found.append(
                results(of, options, reduction, shape, (), bias, weighted, ignore_index=ignored)
            )
        assert_same(*found)


@pytest.mark.parametrize("inner", [(2,), (2, 3)])
def test_losses_of_several_dimensions(inner):
    torch = pytest.importorskip("torch")
    assert_same(*(results(of, None, "mean", (6,), inner) for of in (taeda, torch)))
    with pytest.warns(UserWarning, match="options`` ignored"):
        chunked = results(taeda, nn.LinearCrossEntropyOptions(), "mean", (6,), inner)
    assert_same(chunked, results(torch, None, "mean", (6,), inner))


def test_probabilities_and_smoothing():
    torch = pytest.importorskip("torch")
    losses = []
    for of in (taeda, torch):
        x, w, *_, target = arguments(of, (6,))
        p = of.rand(6, 7, dtype=of.float64).softmax(1)
        linear = of.nn.functional.linear_cross_entropy
        losses.append(
            [linear(x, w, p).detach(), linear(x, w, target, label_smoothing=0.1).detach()]
        )
        with pytest.raises(RuntimeError, match="target contains probabilities"):
            linear(x, w, p, ignore_index=2)
    assert_same(*losses)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_near_to_float64(dtype):
    x, w, b, _, target = arguments(taeda, (64,), dtype=dtype)
    loss = F.linear_cross_entropy(
        x, w, target, linear_bias=b, options=nn.LinearCrossEntropyOptions()
    )
    loss.backward()
    exact = [t.detach().double().requires_grad_() for t in (x, w, b)]
    F.linear_cross_entropy(exact[0], exact[1], target, linear_bias=exact[2]).backward()
    for given, reference in zip((x, w, b), exact, strict=True):
        assert given.grad.dtype == given.dtype
        error = (given.grad.double() - reference.grad).abs().max() / reference.grad.abs().max()
        assert error < 0.01


def test_backward_once_unless_the_graph_is_to_be_kept():
    x, w, _, _, target = arguments(taeda, (6,))
    loss = F.linear_cross_entropy(x, w, target, options=nn.LinearCrossEntropyOptions())
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="backward called twice"):
        loss.backward()
    options = nn.LinearCrossEntropyOptions(allow_retain_graph=True)
    x.grad = None
    loss = F.linear_cross_entropy(x, w, target, options=options)
    loss.backward(retain_graph=True)
    once = x.grad.clone()
    loss.backward()
    assert taeda.allclose(x.grad, 2 * once)


def test_a_chunk_of_logits_is_held_at_a_time():
    """4,096 rows of 4,096 classes are 67 MB; forward and backward take a few."""
    code_rows, classes = 4096, 4096
    x, w = taeda.randn(code_rows, 16), taeda.randn(classes, 16, requires_grad=True)
    target = taeda.randint(classes, (code_rows,))
    taeda.cpu.reset_peak_memory_stats()
    before = taeda.cpu.memory_allocated()
    loss = F.linear_cross_entropy(x, w, target, options=nn.LinearCrossEntropyOptions())
    loss.backward()
    assert taeda.cpu.max_memory_allocated() - before < 8 << 20


@pytest.mark.parametrize(
    "arguments",
    [{"acc_policy": "x"}, {"chunking_method": "y"}, {"chunking_method": "aspect_ratio:0"},
     {"batch_chunk_size": 0}, {"batch_chunk_size": 1.5}, {"acc_dtype": "int"}],
)  # fmt: skip
def test_options_are_checked(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        nn.LinearCrossEntropyOptions(**arguments)


def test_sizes_are_checked():
    x, w = taeda.zeros(2, 3), taeda.zeros(4, 3)
    target = taeda.zeros(2, dtype=taeda.long)
    for args, text in (
        ((x[None], w, target), "dimensionality 1 or 2, got 3"),
        ((x, w[0], target), "at least 2, got 1"),
        ((x, w[:, :2], target), "got 3 and 2"),
        ((x[0], w[:, None], target), "requires batched input"),
    ):
        with pytest.raises(RuntimeError, match=text):
            F.linear_cross_entropy(*args)
    with pytest.raises(RuntimeError, match=r"linear_bias shape \(4,\), got \(3,\)"):
        F.linear_cross_entropy(x, w, target, linear_bias=taeda.zeros(3))


def test_module():
    torch = pytest.importorskip("torch")
    shown = []
    for of in (taeda, torch):
        of.manual_seed(3)
        layer = of.nn.LinearCrossEntropyLoss(4, 6, out_features=(2,), bias=True, ignore_index=1)
        x, target = of.randn(5, 4), of.randint(6, (5, 2))
        shown.append((layer(x, target).item(), repr(layer), list(layer.state_dict())))
    assert shown[0][0] == pytest.approx(shown[1][0], rel=1e-6)
    assert shown[0][1:] == shown[1][1:]
    with pytest.raises(RuntimeError, match="weight shape"):
        nn.LinearCrossEntropyLoss(4, 6, weight=taeda.ones(5))
