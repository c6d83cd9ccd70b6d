"""Fused optimizer steps against PyTorch's optimizers, and their contracts."""

import pytest

import taeda

torch = pytest.importorskip("torch")

SHAPES = [(3,), (5, 7), (), (200, 101), (0,)]


def both(seed):
    """The same random tensors for taeda and PyTorch."""
    torch.manual_seed(seed)
    theirs = [torch.randn(s, dtype=torch.float64) for s in SHAPES]
    return [taeda.tensor(t.tolist(), dtype=taeda.float64).reshape(t.shape) for t in theirs], theirs


def assert_close(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        got = torch.tensor(a.tolist(), dtype=torch.float64).reshape(b.shape)
        torch.testing.assert_close(got, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("decoupled", [False, True])
def test_adam(decoupled, amsgrad):
    params, expected = both(0)
    state = [[taeda.zeros_like(p) for p in params] for _ in range(3)]
    steps = [taeda.zeros(()) for _ in params]
    expected = [torch.nn.Parameter(p) for p in expected]
    kind = torch.optim.AdamW if decoupled else torch.optim.Adam
    optimizer = kind(expected, lr=0.01, betas=(0.8, 0.9), weight_decay=0.1, amsgrad=amsgrad)
    step = taeda._fused_adamw_ if decoupled else taeda._fused_adam_
    for i in range(3):
        grads, theirs = both(i + 1)
        for p, g in zip(expected, theirs, strict=True):
            p.grad = g
        optimizer.step()
        taeda._add_one_(steps)
        assert step(
            params,
            grads,
            state[0],
            state[1],
            state[2] if amsgrad else [],
            steps,
            lr=0.01,
            beta1=0.8,
            beta2=0.9,
            weight_decay=0.1,
            eps=1e-8,
            amsgrad=amsgrad,
            maximize=False,
        )
    assert_close(params, [p.detach() for p in expected])


@pytest.mark.parametrize("nesterov", [False, True])
def test_sgd(nesterov):
    params, expected = both(0)
    buffers = [taeda.zeros_like(p) for p in params]
    expected = [torch.nn.Parameter(p) for p in expected]
    optimizer = torch.optim.SGD(
        expected, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=nesterov
    )
    for i in range(3):
        grads, theirs = both(i + 1)
        for p, g in zip(expected, theirs, strict=True):
            p.grad = g
        optimizer.step()
        taeda._fused_sgd_(
            params,
            grads,
            buffers,
            weight_decay=0.01,
            momentum=0.9,
            lr=0.1,
            dampening=0.0,
            nesterov=nesterov,
            maximize=False,
            is_first_step=i == 0,
        )
    assert_close(params, [p.detach() for p in expected])


def sgd(params, grads, **options):
    return taeda._fused_sgd_(
        params,
        grads,
        [],
        weight_decay=0.0,
        momentum=0.0,
        lr=1.0,
        dampening=0.0,
        nesterov=False,
        maximize=False,
        is_first_step=False,
        **options,
    )


def test_any_layout():
    p = taeda.arange(6.0).reshape(2, 3)
    for param in (p.clone().t(), taeda.zeros(3, 4)[:, 1:3].copy_(p.t())):
        before = param.tolist()
        assert sgd([param], [p.t().contiguous()])
        assert param.tolist() == [[a - a for a in row] for row in before]


def test_scale_and_overflow():
    p, g = taeda.ones(3), taeda.full((3,), 8.0)
    assert sgd([p], [g], grad_scale=taeda.tensor(4.0))
    assert p.tolist() == [-1.0] * 3
    assert not sgd([p], [g], found_inf=taeda.tensor(1.0))
    assert p.tolist() == [-1.0] * 3


def test_the_version_advances():
    p = taeda.ones(3, requires_grad=True)
    y = (p * p).sum()
    sgd([p], [taeda.ones(3)])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_contracts():
    ones = taeda.ones
    for params, grads in [
        ([ones(3)], []),
        ([ones(3)], [ones(4)]),
        ([ones(3)], [ones(3, dtype=taeda.float64)]),
        ([ones(3, dtype=taeda.int64)], [ones(3, dtype=taeda.int64)]),
        ([ones(1).expand(3)], [ones(3)]),
    ]:
        with pytest.raises(RuntimeError):
            sgd(params, grads)
    assert sgd([], [])


def test_a_learning_rate_in_a_tensor_stands_for_the_number():
    options = dict(weight_decay=0.0, momentum=0.0, dampening=0.0, nesterov=False, maximize=False)
    found = []
    for rate in ({"lr": 0.25}, {"lr": 9.0, "lr_tensor": taeda.tensor(0.25)}):
        p = taeda.ones(3)
        taeda._fused_sgd_([p], [p.clone()], [], is_first_step=False, **rate, **options)
        found.append(p.tolist())
    assert found == [[0.75] * 3] * 2


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.float16, taeda.bfloat16])
def test_unscaling(dtype):
    grads = [taeda.arange(float(n)).to(dtype) for n in (3, 0, 5)]
    grads.append(taeda.ones(4, 3, dtype=dtype).T)
    found = taeda.zeros(())
    assert taeda._unscale_(grads, found, taeda.tensor(0.5))
    assert found.item() == 0
    assert [g.flatten().tolist() for g in grads] == [
        [0, 0.5, 1], [], [0, 0.5, 1, 1.5, 2], [0.5] * 12
    ]  # fmt: skip
    grads[2][1] = float("inf")
    taeda._unscale_(grads, found, taeda.tensor(0.5))
    assert found.item() == 1
    assert grads[0].tolist() == [0, 0.25, 0.5]
    with pytest.raises(RuntimeError, match="_unscale_: expected float32 tensors of one element"):
        taeda._unscale_(grads, taeda.zeros(2), taeda.tensor(0.5))
