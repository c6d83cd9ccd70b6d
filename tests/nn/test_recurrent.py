"""Layers of RNN, GRU and LSTM as one node: against PyTorch, in odd sizes, dtypes and threads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import taeda


def trained(torch, kind, reverse, twice, width=40, batch=3, bias=True):
    """Outputs and gradients, or second gradients, of two layers with large states."""
    torch.manual_seed(0)
    options = {"nonlinearity": "relu"} if kind == "RNN relu" else {}
    layer = getattr(torch.nn, kind.split()[0])(
        5, width, 2, bidirectional=reverse, bias=bias, **options
    )
    x = torch.randn(6, batch, 5, requires_grad=True)
    first = [
        torch.randn(4 if reverse else 2, batch, width, requires_grad=True)
        for _ in range(2 if kind == "LSTM" else 1)
    ]
    y, last = layer(x, tuple(first) if kind == "LSTM" else first[0])
    last = last if kind == "LSTM" else (last,)
    loss = (y * y).sum() + last[0].sum() + (last[-1] ** 3).sum()
    inputs = [x, *first, *layer.parameters()]
    grads = torch.autograd.grad(loss, inputs, create_graph=twice)
    if twice:
        grads = torch.autograd.grad(sum((g * g).sum() for g in grads), inputs)
    return [y, *last, *grads]


RECURRENT = ["LSTM", "GRU", "RNN tanh", "RNN relu"]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("kind", RECURRENT)
def test_gradients_of_recurrent_layers_equal_pytorchs(oracle, kind, reverse, twice):
    for ours, theirs in zip(
        trained(taeda, kind, reverse, twice), trained(oracle.torch, kind, reverse, twice),
        strict=True,
    ):  # fmt: skip
        scale = float(theirs.detach().abs().max())
        oracle.assert_same(ours, theirs, rtol=1e-4, atol=2e-6 * max(scale, 1))


@pytest.mark.parametrize("kind", RECURRENT)
@pytest.mark.parametrize("width, batch, bias", [(1, 1, True), (70, 17, False), (33, 30, True)])
def test_recurrent_layers_of_odd_sizes(oracle, kind, width, batch, bias):
    for ours, theirs in zip(
        trained(taeda, kind, True, False, width, batch, bias),
        trained(oracle.torch, kind, True, False, width, batch, bias),
        strict=True,
    ):
        scale = float(theirs.detach().abs().max())
        oracle.assert_same(ours, theirs, rtol=1e-4, atol=4e-6 * max(scale, 1))


@pytest.mark.parametrize("kind", RECURRENT)
def test_threads_change_no_bit_of_recurrent_layers(kind):
    before = taeda.get_num_threads()
    results = []
    try:
        for threads in (1, 2):
            taeda.set_num_threads(threads)
            results.append(trained(taeda, kind, True, False, 130, 20))
    finally:
        taeda.set_num_threads(before)
    for a, b in zip(*results, strict=True):
        assert taeda.equal(a, b)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("dtype", [taeda.bfloat16, taeda.float16])
def test_recurrent_layers_in_half_precision(kind, dtype):
    taeda.manual_seed(0)
    layer = getattr(taeda.nn, kind)(8, 20, bidirectional=True).to(dtype)
    x = taeda.randn(7, 4, 8).to(dtype).requires_grad_()
    y = layer(x)[0]
    assert y.dtype is dtype
    y.sum().backward()
    wide, copy = layer.float(), x.detach().float().requires_grad_()
    expected = wide(copy)[0]
    expected.sum().backward()
    assert x.grad.dtype is dtype
    assert taeda.allclose(y.float(), expected, atol=2e-2)
    assert taeda.allclose(x.grad.float(), copy.grad, atol=5e-2)


def test_writing_into_the_output_of_a_recurrent_layer():
    layer = taeda.nn.GRU(3, 4)
    y, h = layer(taeda.randn(5, 2, 3))
    y.mul_(2)
    h.mul_(3)
    (y.sum() + h.sum()).backward()
    assert taeda.isfinite(layer.weight_hh_l0.grad).all()


@pytest.mark.skipif("TAEDA_CPU" in os.environ, reason="runs itself")
@pytest.mark.parametrize("cpu", ["baseline", "avx2"])
def test_recurrent_layers_with_other_instruction_sets(cpu):
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, __file__],
        env={**os.environ, "TAEDA_CPU": cpu}, cwd=Path(__file__).parents[2],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]


def test_lstm_has_forward_derivatives():
    import taeda.autograd.forward_ad as forward_ad

    taeda.manual_seed(0)
    layer = taeda.nn.LSTM(3, 4).double()
    x, v = taeda.randn(5, 2, 3).double(), taeda.randn(5, 2, 3).double()
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(layer(forward_ad.make_dual(x, v))[0]).tangent
    step = 1e-6
    expected = (layer(x + step * v)[0] - layer(x - step * v)[0]) / (2 * step)
    assert taeda.allclose(tangent, expected, atol=1e-7)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("options", [{}, {"bidirectional": True}, {"num_layers": 2}], ids=str)
@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.bfloat16])
def test_an_empty_batch_has_outputs_and_gradients(kind, options, dtype):
    layer = getattr(taeda.nn, kind)(3, 5, **options).to(dtype)
    x = taeda.zeros(4, 0, 3, dtype=dtype, requires_grad=True)
    y, state = layer(x)
    directions = 2 if options.get("bidirectional") else 1
    assert y.shape == (4, 0, 5 * directions)
    for s in state if kind == "LSTM" else (state,):
        assert s.shape == (directions * options.get("num_layers", 1), 0, 5)
    y.sum().backward()
    assert x.grad.shape == x.shape
    assert all(not p.grad.any() for p in layer.parameters())


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_sizes_and_flags_are_refused_as_in_pytorch(kind):
    oracle = pytest.importorskip("torch")
    wrong = [
        {"bias": 1},
        {"batch_first": 1},
        {"bias": "x"},
        {"input_size": 0},
        {"input_size": -1},
        {"input_size": 2.5},
        {"hidden_size": 0},
        {"num_layers": 0},
    ]
    for change in wrong:
        arguments = {"input_size": 2, "hidden_size": 3} | change
        raised = []
        for library in (taeda, oracle):
            with pytest.raises((TypeError, ValueError)) as error:
                getattr(library.nn, kind)(**arguments)
            raised.append((error.type, str(error.value)))
        assert raised[0] == raised[1]


@pytest.mark.cpu_only(reason="PyTorch loads no storage of a device that it lacks")
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_a_saved_layer_loads_in_pytorch_and_back(kind, tmp_path):
    oracle = pytest.importorskip("torch")
    file = tmp_path / "layer.pt"
    for source, target in ((taeda, oracle), (oracle, taeda)):
        layer = getattr(source.nn, kind)(3, 4, 2, bidirectional=True)
        source.save(layer, file)
        loaded = target.load(file, weights_only=False)
        x = [[[0.5, -1.0, 2.0]] * 2] * 3
        expected = layer(source.tensor(x))[0].detach().numpy()
        found = loaded(target.tensor(x))[0].detach().numpy()
        assert abs(found - expected).max() < 1e-6
