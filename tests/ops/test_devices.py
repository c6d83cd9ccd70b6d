"""Tensors of several devices in one call; here the second device is meta."""

import warnings

import pytest

import taeda


def meta(*sizes):
    return taeda.ones(*sizes, device="meta")


@pytest.mark.parametrize(
    "call",
    [
        lambda x, m: taeda.add(x, x, out=m),
        lambda x, m: taeda.exp(x, out=m),
        lambda x, m: taeda.cat([x, m]),
        lambda x, m: taeda.stack([x, m], -1),
        lambda x, m: x.index_put_((taeda.tensor([1]),), m[:1]),
        lambda x, m: taeda.searchsorted(x, m),
        lambda x, m: x.masked_scatter_(x > 0, m),
    ],
)
def test_devices_that_do_not_meet(call):
    with pytest.raises(RuntimeError, match=r"device|on meta"):
        call(taeda.ones(3), meta(3))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda m: m.nonzero(), "nonzero: the result's sizes depend on data"),
        (lambda m: taeda.unique(m), "unique.*: the result's sizes depend on data"),
        (lambda m: m[m > 0], "the result's sizes depend on data"),
        (lambda m: taeda.bincount(m.long()), "bincount: the result's sizes depend on data"),
        (lambda m: m.tolist(), "Cannot copy out of meta tensor"),
        (lambda m: taeda.zeros(3).copy_(m), "Cannot copy out of meta tensor"),
        (lambda m: m.to("cpu"), "Cannot copy out of meta tensor"),
    ],
)
def test_meta_tensors_have_no_elements(call, message):
    with pytest.raises(NotImplementedError, match=message):
        call(meta(3))


@pytest.mark.parametrize(
    "call, shape",
    [
        (lambda m: taeda.nn.functional.batch_norm(m, None, None, training=True), (4, 2, 3, 3)),
        (lambda m: taeda.nn.functional.conv2d(m, meta(5, 2, 3, 3)), (4, 5, 1, 1)),
        (lambda m: m[0, 1].matrix_exp(), (3, 3)),
        (lambda m: m.view(-1)[taeda.tensor([1, 2])], (2,)),
        (lambda m: m.double(), (4, 2, 3, 3)),
        (lambda m: taeda.rand_like(m).bernoulli_(), (4, 2, 3, 3)),
        (lambda m: taeda.multinomial(m.view(8, 9), 4), (8, 4)),
        (lambda m: taeda.nn.functional.dropout(m, 0.5), (4, 2, 3, 3)),
    ],
)
def test_meta_works_out_shapes(call, shape):
    result = call(meta(4, 2, 3, 3))
    assert result.device.type == "meta"
    assert tuple(result.shape) == shape


def test_moving_keeps_history():
    x = taeda.ones(3, requires_grad=True)
    y = x.to("meta")
    assert y.device.type == "meta"
    assert "ToCopyBackward0" in str(y.grad_fn)


def test_absent_devices_say_so():
    if taeda.cuda.is_available():
        pytest.skip("a CUDA device is there")
    for call in (lambda: taeda.ones(1, device="cuda"), lambda: taeda.ones(1).to("cuda:0")):
        with pytest.raises(AssertionError, match="no CUDA device was found"):
            call()


def test_meta_tensors_are_laid_out_and_counted_as_others():
    x, y = taeda.empty(2, 3).t(), taeda.empty(2, 3, device="meta").t()
    for run in (lambda x: x + 1, taeda.exp, lambda x: x * x, lambda x: x + x[0]):
        assert run(y).stride() == run(x).stride()
    version = y._version
    y.add_(1)
    assert y._version == version + 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        taeda.var(taeda.empty(1, device="meta"))  # no values, no degrees of freedom to miss
