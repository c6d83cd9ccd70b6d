# ruff: noqa: E501
"""torch.autocast on the CPU: the dtype of each operator's result is PyTorch's, and so are values."""

import numpy as np
import pytest

import taeda
from taeda.utils.checkpoint import checkpoint

torch = pytest.importorskip("torch")

T = {"taeda": taeda, "torch": torch}
# Calls on x (3x3), y (3x3), v (3), all of one dtype, and integer classes t (3).
CALLS = """
x @ y | torch.mm(x, y) | torch.addmm(x, x, y) | torch.mv(x, v) | torch.dot(v, v) | torch.outer(v, v)
torch.bmm(x[None], y[None]) | torch.baddbmm(x[None], x[None], y[None]) | torch.einsum('ij,jk', x, y)
torch.addbmm(x, x[None], y[None]) | torch.addmv(v, x, v) | torch.matmul(x, v) | torch.chain_matmul(x, y)
F.linear(x, y) | F.linear(x, y, v) | F.conv1d(x[None], x[:, :, None]) | F.conv2d(x[None, None], x[None, None])
F.conv3d(x[None, None, None], x[None, None, None]) | F.conv_transpose1d(x[None], x[:, :, None])
F.conv_transpose2d(x[None, None], x[None, None]) | F.prelu(x, v[:1]) | F.bilinear(x, y, x[None])
F.scaled_dot_product_attention(x[None], y[None], y[None]) | F.softmax(x, 0) | F.layer_norm(x, (3,))
F.mse_loss(x, y) | F.l1_loss(x, y) | F.smooth_l1_loss(x, y) | F.huber_loss(x, y) | F.nll_loss(x, t)
F.cross_entropy(x, t) | F.binary_cross_entropy(x, y) | F.binary_cross_entropy_with_logits(x, y)
F.kl_div(x, y) | F.poisson_nll_loss(x, y) | F.hinge_embedding_loss(x, y) | F.soft_margin_loss(x, y)
F.margin_ranking_loss(v, v, v) | F.cosine_embedding_loss(x, y, v) | F.triplet_margin_loss(x, y, y)
F.multi_margin_loss(x, t) | torch.prod(x) | torch.prod(x, 0) | torch.quantile(x, 0.5) | torch.cdist(x, y)
torch.cat([x, y]) | torch.stack([x, y]) | torch.cat([x, y.float()]) | torch.stack([x.bfloat16(), y.float()])
torch.cat([x.bfloat16(), y.bfloat16()]) | torch.cat([x, y.double()]) | torch.index_copy(x, 0, t, y)
F.avg_pool3d(x[None, None], 1) | F.max_pool3d(x[None, None], 1) | F.adaptive_avg_pool3d(x[None, None], 1)
F.avg_pool2d(x[None], 1) | F.pad(x[None], (1, 1), mode='reflect') | F.pad(x[None], (1, 1), mode='replicate')
F.pad(x, (1, 1)) | x + y | x.bfloat16() + y | x.exp() | x.sum() | x.norm() | x.cumsum(0) | x.log_softmax(0)
x.clone().add_(y) | torch.mm(x, y.double()) | F.gelu(x) | F.embedding(t, x) | torch.relu(x)
"""
CALLS = [call.strip() for line in CALLS.strip().split("\n") for call in line.split("|")]


def result_of(framework, call, dtype, **options):
    lib = T[framework]
    names = {"torch": lib, "F": lib.nn.functional}
    values = np.random.default_rng(3)
    for name, shape in (("x", (3, 3)), ("y", (3, 3)), ("v", (3,))):
        names[name] = lib.tensor(values.uniform(0.1, 0.9, shape).tolist(), dtype=lib.float64)
        names[name] = names[name].to(getattr(lib, dtype))
    names["t"] = lib.tensor([2, 0, 1])
    with lib.autocast("cpu", **options):
        try:
            result = eval(call, names)
        except (RuntimeError, NotImplementedError) as error:
            return type(error).__name__, None
    return str(result.dtype), result.double().tolist()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("call", CALLS)
def test_dtypes_and_values_are_pytorchs(call, dtype):
    ours, theirs = result_of("taeda", call, dtype), result_of("torch", call, dtype)
    assert ours[0] == theirs[0]
    if theirs[1] is not None:
        coarse = "bfloat16" in theirs[0] + dtype or "bilinear" in call  # rounded inside, there
        tolerance = 0.03 if coarse else 1e-5
        np.testing.assert_allclose(ours[1], theirs[1], rtol=tolerance, atol=tolerance)


def test_state_nests_and_returns():
    assert not taeda.is_autocast_enabled("cpu")
    with taeda.autocast("cpu", dtype=taeda.float16):
        assert taeda.is_autocast_enabled("cpu") and taeda.is_autocast_cpu_enabled()
        assert not taeda.is_autocast_enabled()
        assert taeda.get_autocast_dtype("cpu") is taeda.float16
        with taeda.amp.autocast("cpu", enabled=False):
            assert (taeda.ones(2, 2) @ taeda.ones(2, 2)).dtype is taeda.float32
        with taeda.autocast("cpu", cache_enabled=False):
            assert not taeda.is_autocast_cache_enabled()
            assert taeda.get_autocast_dtype("cpu") is taeda.float16
        assert taeda.is_autocast_cache_enabled()
    assert taeda.get_autocast_dtype("cpu") is taeda.bfloat16
    with pytest.raises(KeyError), taeda.autocast("cpu"):
        raise KeyError
    assert not taeda.is_autocast_enabled("cpu")
    with pytest.warns(UserWarning, match="target dtype is not supported"):
        taeda.autocast("cpu", dtype=taeda.float64)
    with pytest.warns(UserWarning, match="CUDA is not available"):
        taeda.autocast("cuda")
    with pytest.raises(RuntimeError, match="unsupported autocast device_type"):
        taeda.autocast("tpu")

    @taeda.autocast("cpu")
    def product(x):
        return x @ x

    assert product(taeda.ones(2, 2)).dtype is taeda.bfloat16


ABSENT = ["cuda", "cuda:0", "mps", "xpu", "hpu", "mtia", "maia", "ipu", "xla"]


@pytest.mark.parametrize("device", ABSENT)
@pytest.mark.filterwarnings("ignore:User provided")
def test_absent_devices_change_nothing(device):
    torch = pytest.importorskip("torch")
    x = taeda.ones(2, 2)

    def products(**options):
        with taeda.autocast(device, **options):
            plain = (x @ x).dtype
            with taeda.autocast("cpu"), taeda.autocast(device, **options):
                inside = (x @ x).dtype
        return plain, inside

    for options in ({}, {"enabled": False}, {"dtype": taeda.bfloat16}):
        assert products(**options) == (taeda.float32, taeda.bfloat16)
    assert taeda.amp.is_autocast_available(device) is torch.amp.is_autocast_available(device)
    assert taeda.is_autocast_enabled(device) is False
    assert str(taeda.get_autocast_dtype(device)) == str(torch.get_autocast_dtype(device))

    class Square(taeda.autograd.Function):
        @staticmethod
        @taeda.amp.custom_fwd(device_type=device, cast_inputs=taeda.float32)
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a @ a

        @staticmethod
        @taeda.amp.custom_bwd(device_type=device)
        def backward(ctx, g):
            return g

    for around in (taeda.autocast(device, enabled=False), taeda.autocast("cpu")):
        y = taeda.ones(2, 2, dtype=taeda.float16, requires_grad=True)
        with around:
            z = Square.apply(y)
        z.sum().backward()
        assert y.grad.dtype is taeda.float16


def test_other_threads_are_not_affected():
    import threading

    seen = []
    with taeda.autocast("cpu"):
        thread = threading.Thread(
            target=lambda: seen.append((taeda.ones(2, 2) @ taeda.ones(2, 2)).dtype)
        )
        thread.start()
        thread.join()
    assert seen == [taeda.float32]


def test_parameters_are_converted_once_in_a_block():
    weight = taeda.ones(2, 2, requires_grad=True)
    x = taeda.ones(2, 2)

    def conversion(y):
        node = y.grad_fn
        while "Copy" not in node.name() and "Dtype" not in node.name() and "To" not in node.name():
            node = next(n for n, _ in node.next_functions if n is not None)
        return node

    with taeda.autocast("cpu"):
        first, second = x @ weight, x @ weight
        assert conversion(first) is conversion(second)
        with taeda.no_grad():
            assert (x @ weight).grad_fn is None
        assert conversion(x @ weight) is not None, "what no_grad converted must not be used here"
        with taeda.no_grad():
            weight.mul_(2)
        assert (x @ weight)[0, 0].item() == 4, "a changed parameter is converted again"
    with taeda.autocast("cpu", cache_enabled=False):
        assert conversion(x @ weight) is not conversion(x @ weight)
    (first + second).sum().backward()
    assert weight.grad.dtype is taeda.float32 and weight.grad.tolist() == [[4, 4], [4, 4]]


def train(lib, use_checkpoint=False):
    """Losses and gradients of a small convolutional model under autocast."""
    lib.manual_seed(0)
    nn = lib.nn
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.LayerNorm(36), nn.Linear(36, 5),
    )  # fmt: skip
    x, t = lib.randn(8, 1, 8, 8), lib.arange(8) % 5
    opt = lib.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(3):
        opt.zero_grad()
        with lib.autocast("cpu", dtype=lib.bfloat16):
            if use_checkpoint:
                logits = checkpoint(model, x, use_reentrant=False)
            else:
                logits = model(x)
            loss = lib.nn.functional.cross_entropy(logits, t)
        assert logits.dtype is lib.bfloat16 and loss.dtype is lib.float32
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses, [p.grad.flatten().tolist() for p in model.parameters()]


def test_training_follows_pytorch():
    ours, theirs = train(taeda), train(torch)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=0.03)
    for mine, yours in zip(ours[1], theirs[1]):
        np.testing.assert_allclose(mine, yours, atol=0.05, rtol=0.1)


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpoint_recomputes_under_autocast(use_reentrant):
    seen = []

    def region(x):
        y = x @ x
        seen.append(y.dtype)
        return y.float().relu()

    x = taeda.ones(2, 2, requires_grad=True)
    with taeda.autocast("cpu"):
        y = checkpoint(region, x, use_reentrant=use_reentrant)
    y.sum().backward()
    assert seen == [taeda.bfloat16, taeda.bfloat16]
    assert x.grad.tolist() == [[4, 4], [4, 4]]


def test_custom_functions():
    class Product(taeda.autograd.Function):
        @staticmethod
        @taeda.amp.custom_fwd(device_type="cpu", cast_inputs=taeda.float32)
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            assert not taeda.is_autocast_enabled("cpu")
            return x @ y

        @staticmethod
        @taeda.amp.custom_bwd(device_type="cpu")
        def backward(ctx, gy):
            x, y = ctx.saved_tensors
            return gy @ y.T, x.T @ gy

    x = taeda.ones(2, 2, dtype=taeda.bfloat16, requires_grad=True)
    with taeda.autocast("cpu"):
        y = Product.apply(x, x)
    assert y.dtype is taeda.float32
    y.sum().backward()
    assert x.grad.tolist() == [[4, 4], [4, 4]]


def scaled_steps(lib, values):
    w = lib.ones(2, requires_grad=True)
    opt = lib.optim.SGD([w], lr=0.5)
    scaler = lib.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    trace = []
    for value in values:
        opt.zero_grad()
        scaler.scale((w * value).sum()).backward()
        scaler.unscale_(opt)
        grad = w.grad.tolist()
        scaler.step(opt)
        scaler.update()
        trace.append((grad, w.tolist(), scaler.get_scale(), scaler.state_dict()))
    return trace


def test_grad_scaler_follows_pytorch():
    values = [1.0, float("inf"), 2.0, 3.0, float("nan"), 1.0]
    assert str(scaled_steps(taeda, values)) == str(scaled_steps(torch, values))
    scaler = taeda.amp.GradScaler("cpu")
    with pytest.raises(AssertionError, match="update but _scale is None"):
        scaler.update()
    opt = taeda.optim.SGD([taeda.ones(1, requires_grad=True)], lr=1)
    with pytest.raises(AssertionError, match="unscale_ but _scale is None"):
        scaler.unscale_(opt)
    scaler.scale(taeda.ones(1))
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.update()
    with pytest.warns(UserWarning, match="Disabling"):
        assert not taeda.amp.GradScaler().is_enabled()
