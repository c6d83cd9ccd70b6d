"""Fake quantization, observers and quantization-aware training give PyTorch's numbers."""

from __future__ import annotations

import copy
import importlib
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(0)
NUMBERS = (RNG.standard_normal((5, 6, 4)) * 3).astype(np.float32)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def close(a: Any, b: Any, tolerance: float = 1e-6) -> None:
    assert tuple(a.shape) == tuple(b.shape)
    assert str(a.dtype) == str(b.dtype)
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), tolerance, tolerance)


def both(function: Any) -> None:
    """A function of a library gives lists of tensors that agree."""
    for a, b in zip(function(taeda), function(torch), strict=True):
        close(a, b)


def with_gradient(library: Any, x: np.ndarray, function: Any) -> list[Any]:
    x = library.tensor(x, requires_grad=True)
    y = function(x)
    (y * library.arange(y.numel(), dtype=library.float32).reshape(y.shape)).sum().backward()
    return [y, x.grad]


@pytest.mark.parametrize(("low", "high", "point"), [(0, 255, 3), (-8, 7, 0), (0, 15, 15)])
def test_numbers_are_rounded_and_gradients_pass_straight_through(low, high, point):
    both(
        lambda t: with_gradient(
            t,
            NUMBERS[0],
            lambda x: t.fake_quantize_per_tensor_affine(x, 0.11, point, low, high),
        )
    )


def test_scales_of_channels_and_float_zero_points():
    def run(t: Any) -> list[Any]:
        scale = t.tensor([0.1, 0.2, 0.3, 0.4])
        whole = t.tensor([3, 0, 1, 5], dtype=t.int32)
        first = with_gradient(
            t, NUMBERS[0], lambda x: t.fake_quantize_per_channel_affine(x, scale, whole, 1, 0, 20)
        )
        points = t.tensor([0.5, 2.5, 3.2, 1.0])
        return first + with_gradient(
            t, NUMBERS[0], lambda x: t.fake_quantize_per_channel_affine(x, scale, points, 1, 0, 20)
        )

    both(run)


def test_learned_scales_get_gradients():
    def run(t: Any) -> list[Any]:
        scale = t.tensor([0.2, 0.3, 0.4, 0.5, 0.6, 0.7], requires_grad=True)
        point = t.tensor([2.3, 0.0, 1.0, 4.0, 5.0, 19.0], requires_grad=True)
        learn = t._fake_quantize_learnable_per_channel_affine
        found = with_gradient(t, NUMBERS[0], lambda x: learn(x, scale, point, 0, 0, 20, 0.5))
        return [*found, scale.grad, point.grad]

    for a, b in zip(run(taeda), run(torch), strict=True):
        close(a, b, 1e-4)


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
def test_moving_averages_choose_scales_in_one_function(rows, symmetric):
    low, high = (-128, 127) if symmetric else (0, 255)

    def run(t: Any) -> list[Any]:
        start = ([], []) if rows else (float("inf"), float("-inf"))
        least, most = (t.tensor(s) for s in start)
        scale, point = t.tensor([1.0]), t.tensor([0], dtype=t.int32)
        on = t.tensor([1])
        found = []
        for step in range(3):
            x = NUMBERS[step]
            found += with_gradient(
                t, x, lambda x: t.fused_moving_avg_obs_fake_quant(
                    x, on, on, least, most, scale, point, 0.1, low, high, 0, rows, symmetric
                ),
            )  # fmt: skip
            found += [v.clone() for v in (least, most, scale, point)]
        return found

    both(run)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((0.1, 0, 10, 5), RuntimeError),
        ((0.1, 300, 0, 255), RuntimeError),
    ],
)
def test_ranges_that_do_not_fit_are_refused_in_pytorchs_words(arguments, error):
    words = []
    for t in (taeda, torch):
        with pytest.raises(error) as caught:
            t.fake_quantize_per_tensor_affine(t.ones(2), *arguments)
        words.append(" ".join(str(caught.value).split()))
    assert words[0] == words[1]


def settings(t: Any) -> dict[str, Any]:
    q = t.ao.quantization
    signed = {"dtype": t.qint8, "qscheme": t.per_tensor_symmetric}
    rows = {"dtype": t.qint8, "qscheme": t.per_channel_symmetric}
    return {
        "range": q.MinMaxObserver(),
        "signed": q.MinMaxObserver(**signed),
        "narrow": q.MinMaxObserver(quant_min=0, quant_max=15),
        "reduced": q.MinMaxObserver(reduce_range=True),
        "wide": q.MinMaxObserver(dtype=t.qint32),
        "average": q.MovingAverageMinMaxObserver(averaging_constant=0.2),
        "channels": q.PerChannelMinMaxObserver(ch_axis=1),
        "signed channels": q.PerChannelMinMaxObserver(**rows),
        "float points": q.PerChannelMinMaxObserver(
            dtype=t.quint8, qscheme=t.per_channel_affine_float_qparams
        ),
        "channels' averages": q.MovingAveragePerChannelMinMaxObserver(0.2, ch_axis=0),
        "histogram": q.HistogramObserver(),
        "few bins": q.HistogramObserver(bins=100, **signed),
        "fixed": q.FixedQParamsObserver(0.25, 7),
    }


@pytest.mark.parametrize("name", settings(torch))
def test_observers_choose_pytorchs_parameters(name):
    def run(t: Any) -> list[Any]:
        observer = settings(t)[name]
        for i, x in enumerate(NUMBERS):
            observer(t.tensor(x) * (1 + i))
        return [*observer.calculate_qparams(), *observer.state_dict().values()]

    for a, b in zip(run(taeda), run(torch), strict=True):
        close(a, b, 1e-5)


@pytest.mark.parametrize("name", ["range", "channels", "histogram"])
def test_observers_read_pytorchs_state(name):
    theirs = settings(torch)[name]
    theirs(torch.tensor(NUMBERS[0]))
    ours = settings(taeda)[name]
    ours.load_state_dict({k: taeda.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    for a, b in zip(ours.calculate_qparams(), theirs.calculate_qparams()):
        close(a, b)


# --- training ---


def perceptron(t: Any) -> Any:
    q, nn = t.ao.quantization, t.nn
    layers = [nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4), nn.Sigmoid()]
    return nn.Sequential(q.QuantStub(), *layers, q.DeQuantStub())


def convolutions(t: Any) -> Any:
    q, nn = t.ao.quantization, t.nn
    layers = [
        nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.Conv2d(3, 2, 1), nn.ReLU(),
        nn.Flatten(), nn.Linear(2 * 24, 4), nn.ReLU(),
    ]  # fmt: skip
    model = nn.Sequential(q.QuantStub(), nn.Unflatten(0, (5, 1)), *layers, q.DeQuantStub())
    return q.fuse_modules_qat(model, [["2", "3", "4"], ["5", "6"], ["8", "9"]])


def fill(t: Any, model: Any) -> None:
    """The same parameters in either library."""
    rng = np.random.default_rng(1)
    with t.no_grad():
        for p in model.parameters():
            p.copy_(t.tensor(rng.standard_normal(tuple(p.shape)).astype(np.float32) * 0.4))


def train(t: Any, make: Any, backend: str, version: int) -> tuple[list[float], Any]:
    model = make(t)
    fill(t, model)
    model.qconfig = t.ao.quantization.get_default_qat_qconfig(backend, version)
    model = t.ao.quantization.prepare_qat(model.train())
    optimizer = t.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for step in range(6):
        y = model(t.tensor(NUMBERS) if make is convolutions else t.tensor(NUMBERS[:, 0]))
        loss = ((y - 0.3) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step == 3:
            model.apply(t.ao.quantization.disable_observer)
    return losses, model


@pytest.mark.parametrize("make", [perceptron, convolutions])
@pytest.mark.parametrize(("backend", "version"), [("x86", 1), ("qnnpack", 1), ("fbgemm", 0)])
def test_models_train_as_pytorchs(make, backend, version):
    ours, model = train(taeda, make, backend, version)
    losses, theirs = train(torch, make, backend, version)
    np.testing.assert_allclose(ours, losses, 1e-4)
    assert list(model.state_dict()) == list(theirs.state_dict())
    for name, value in model.state_dict().items():
        close(value, theirs.state_dict()[name], 2e-3)


def test_fused_layers_fold_norms_for_evaluation():
    def run(t: Any) -> list[Any]:
        model = t.nn.Sequential(t.nn.Conv2d(1, 2, 3), t.nn.BatchNorm2d(2), t.nn.ReLU())
        fill(t, model)
        model[1].running_var.fill_(0.7)
        fused = t.ao.quantization.fuse_modules(model.eval(), ["0", "1", "2"])
        assert type(fused[0]).__name__ == "ConvReLU2d"
        return [fused(t.tensor(NUMBERS[:, None]))]

    for a, b in zip(run(taeda), run(torch)):
        close(a, b, 1e-5)


def test_layers_without_fake_quantization_keep_the_weights():
    _, model = train(taeda, perceptron, "x86", 1)
    layer = model[1].to_float()
    assert type(layer) is taeda.nn.Linear
    close(layer.weight, torch.tensor(model[1].weight.detach().numpy()))
    with pytest.raises(NotImplementedError, match="no quantized tensors"):
        taeda.ao.quantization.convert(model.eval())


def test_arithmetic_as_modules_is_observed():
    class Sum(taeda.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.plus = taeda.nn.quantized.FloatFunctional()

        def forward(self, x: Any) -> Any:
            return self.plus.add_relu(x, x)

    model = Sum()
    model.qconfig = taeda.ao.quantization.default_qat_qconfig
    model = taeda.ao.quantization.prepare_qat(model.train())
    y = model(taeda.tensor([-1.0, 0.333, 2.0]))
    seen = model.plus.activation_post_process
    assert seen.activation_post_process.max_val == 4.0
    step = float(seen.scale)
    np.testing.assert_allclose(y.numpy() / step, np.round(y.numpy() / step), atol=1e-4)


def test_configurations_are_equal_by_what_they_make():
    q = taeda.ao.quantization
    assert q.qconfig.qconfig_equals(
        q.get_default_qat_qconfig("x86"), q.get_default_qat_qconfig("fbgemm")
    )
    assert not q.qconfig.qconfig_equals(
        q.get_default_qat_qconfig("x86"), q.get_default_qat_qconfig("qnnpack")
    )
    with pytest.raises(ValueError, match="observer instance"):
        q.QConfig(activation=q.MinMaxObserver(), weight=q.MinMaxObserver)


def numbers_and_gradients(library: Any, function: Any) -> list[Any]:
    x = library.tensor([[float("nan"), 0.4, 99.0]], requires_grad=True)
    scale = library.tensor([0.1], requires_grad=True)
    point = library.tensor([3.0], requires_grad=True)
    y = function(library, x, scale, point)
    y.sum().backward()
    return [v for v in (y, x.grad, scale.grad, point.grad) if v is not None]


@pytest.mark.parametrize(
    "function",
    [
        lambda t, x, s, p: t.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 255),
        lambda t, x, s, p: t.fake_quantize_per_channel_affine(x, s.detach(), p.detach(), 0, 0, 255),
        lambda t, x, s, p: t._fake_quantize_learnable_per_tensor_affine(x, s, p, 0, 255),
        lambda t, x, s, p: t._fake_quantize_learnable_per_channel_affine(x, s, p, 0, 0, 255),
    ],
)
def test_nan_becomes_the_least_number(function):
    expected = numbers_and_gradients(torch, function)
    found = numbers_and_gradients(taeda, function)
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        close(a, b)


def fused(t: Any, rows: list, running: Any, symmetric: bool, per_row: bool) -> list[Any]:
    count = len(rows) if per_row else 1
    state = [t.full((count,), running), t.full((count,), -running), t.ones(count)]
    point = t.zeros(count, dtype=t.int32)
    on, axis = t.tensor([1]), 0 if per_row else -1
    settings = (0.01, 0, 255, axis, per_row, symmetric)
    try:
        y = t.fused_moving_avg_obs_fake_quant(t.tensor(rows), on, on, *state, point, *settings)
    except RuntimeError as error:
        return [str(error), *state, point]
    return [y, *state, point]


@pytest.mark.parametrize("per_row", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("running", [float("inf"), 1.0])
@pytest.mark.parametrize(
    "row", [["nan", 1], [-1, "inf"], ["-inf", 1], ["-inf", "inf"], ["nan", "nan"], [-1, 1]]
)
def test_a_number_that_is_not_finite_does_not_end_training(row, running, symmetric, per_row):
    rows = [[*map(float, row), 0.5], [-2.0, 2.0, 0.5]]
    results = [fused(t, rows, running, symmetric, per_row) for t in (taeda, torch)]
    for found, expected in zip(*results, strict=True):
        if isinstance(expected, str):
            assert found == expected
        else:
            close(found, expected)


def test_scales_are_single_numbers():
    for t in (taeda, torch):  # 127.5 is rounded to 128, and 1 / float32(2 / 255) is less
        assert fused(t, [[-1.0, 1.0, 0.5]], float("inf"), False, False)[-1].item() == 127


def made(t: Any) -> list[Any]:
    q = importlib.import_module(f"{t.__name__}.ao.quantization")
    names = "fake_quant fixed_qparams_range_0to1_fake_quant fused_wt_fake_quant"
    kinds = importlib.import_module(f"{t.__name__}.ao.quantization.fake_quantize")
    return [q.FakeQuantize()] + [getattr(kinds, f"default_{name}")() for name in names.split()]


def test_fake_quantization_is_printed_as_pytorchs():
    for ours, theirs in zip(made(taeda), made(torch), strict=True):
        assert repr(ours) == repr(theirs)


def test_schemes_observers_and_configurations_are_pickled():
    from taeda.ao.quantization import MinMaxObserver, get_default_qat_qconfig

    scheme = taeda.per_channel_symmetric
    assert pickle.loads(pickle.dumps(scheme)) is copy.deepcopy(scheme) is scheme
    for module in (*made(taeda), MinMaxObserver()):
        assert repr(pickle.loads(pickle.dumps(module))) == repr(module)
    config = get_default_qat_qconfig()
    assert pickle.loads(pickle.dumps(config.weight.p.keywords)) == config.weight.p.keywords


def test_fused_layers_have_their_old_module():
    from taeda.nn.intrinsic.qat import ConvBn2d, LinearReLU, update_bn_stats

    from taeda.ao.nn.intrinsic import qat

    found = (ConvBn2d, LinearReLU, update_bn_stats)
    assert found == (qat.ConvBn2d, qat.LinearReLU, qat.update_bn_stats)
