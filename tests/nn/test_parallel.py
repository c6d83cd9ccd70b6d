"""DataParallel and its parts on the CPU, per-sample gradients."""

from collections import namedtuple

import pytest

import taeda
from taeda.nn import parallel
from taeda.nn.utils._per_sample_grad import call_for_per_sample_grads

Pair = namedtuple("Pair", "x y")
DEVICES = ["cpu", "cpu"]


def test_scatter_and_gather():
    x = taeda.arange(10.0).reshape(5, 2)
    inputs = (x, {"a": Pair(x + 1, 3)}, [x.long()], None)
    first, second = parallel.scatter(inputs, DEVICES)
    assert first[0].tolist() == x[:3].tolist() and second[0].tolist() == x[3:].tolist()
    assert isinstance(first[1]["a"], Pair) and first[1]["a"].y == 3 and second[3] is None
    joined = parallel.gather([first[1]["a"]._replace(y=None), second[1]["a"]._replace(y=None)], -1)
    assert joined.x.tolist() == (x + 1).tolist() and joined.y is None
    assert parallel.gather([taeda.tensor(1.0), taeda.tensor(2.0)], -1).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="same number of keys"):
        parallel.gather([{"a": x}, {}], -1)
    args, kwargs = parallel.scatter_gather.scatter_kwargs((x,), {}, DEVICES)
    assert len(args) == len(kwargs) == 2 and kwargs == ({}, {})


@pytest.mark.cpu_only(reason="the devices are called by their names")
def test_replicas_train_the_original():
    model = taeda.nn.Sequential(taeda.nn.Linear(3, 2), taeda.nn.BatchNorm1d(2)).eval()
    x = taeda.arange(12.0).reshape(4, 3)
    replicas = parallel.replicate(model, DEVICES)
    parts = [(part,) for part in parallel.scatter(x, DEVICES)]
    outputs = parallel.parallel_apply(replicas, parts)
    result = parallel.gather(outputs, "cpu")
    assert taeda.allclose(result, model(x))
    result.sum().backward()
    summed = model[0].weight.grad.clone()
    model.zero_grad()
    model(x).sum().backward()
    assert taeda.allclose(summed, model[0].weight.grad)
    detached = parallel.replicate(model, ["cpu"], detach=True)[0]
    assert not detached(x).requires_grad


def test_errors_of_threads_are_raised():
    def fails(x):
        raise KeyError("in the module")

    with pytest.raises(KeyError, match="in the module"):
        parallel.parallel_apply([fails, fails], [(1,), (2,)])
    with pytest.raises(AssertionError, match="not equal"):
        parallel.parallel_apply([fails], [])


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_gradients_of_samples(reduction):
    conv = [taeda.nn.Conv2d(2, 3, 3), taeda.nn.ReLU(), taeda.nn.Flatten()]
    model = taeda.nn.Sequential(*conv, taeda.nn.Linear(27, 2))
    x = taeda.randn(4, 2, 5, 5)
    loss = call_for_per_sample_grads(model, loss_reduction=reduction)(x).square().sum(1)
    (loss.sum() if reduction == "sum" else loss.mean()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is None
        for i in range(4):
            one = taeda.autograd.grad(model(x[i : i + 1]).square().sum(), parameter)[0]
            assert taeda.allclose(parameter.grad_sample[i], one, atol=1e-5), name
    with pytest.raises(RuntimeError, match="grad_sample"):
        call_for_per_sample_grads(model)
