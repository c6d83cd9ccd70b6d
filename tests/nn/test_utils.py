"""nn.utils and nn.init against PyTorch's, and functional_call."""

import subprocess
import sys
import warnings

import pytest

import taeda
from taeda import nn
from taeda.nn import utils


def _model(torch):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))


def _gradients(torch, model):
    model(torch.arange(12.0).view(4, 3) / 7).pow(2).sum().backward()
    return list(model.parameters())


@pytest.mark.parametrize("norm_type", [2.0, 1.0, float("inf")])
def test_clip_grad_norm_equals_pytorchs(oracle, norm_type):
    torch = oracle.torch
    theirs = _gradients(torch, _model(torch))
    ours = _gradients(taeda, _model(taeda))
    expected = torch.nn.utils.clip_grad_norm_(theirs, 0.5, norm_type)
    oracle.assert_same(utils.clip_grad_norm_(ours, 0.5, norm_type), expected)
    for p, e in zip(ours, theirs):
        oracle.assert_same(p.grad, e.grad)
    total = utils.get_total_norm([p.grad for p in ours], norm_type).item()
    assert total == pytest.approx(0.5, rel=1e-4)


def test_clip_grad_value_and_errors():
    p = nn.Parameter(taeda.zeros(3))
    p.grad = taeda.tensor([-5.0, 0.5, 5.0])
    utils.clip_grad_value_([p], 1.0)
    assert p.grad.tolist() == [-1.0, 0.5, 1.0]
    p.grad = taeda.tensor([float("nan"), 0.0, 0.0])
    with pytest.raises(RuntimeError, match="is non-finite, so it cannot be clipped"):
        utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)


def test_parameters_to_vector_and_back():
    model = _model(taeda)
    vector = utils.parameters_to_vector(model.parameters())
    assert vector.shape == (3 * 4 + 4 + 4 * 2 + 2,)
    utils.vector_to_parameters(taeda.arange(26.0), model.parameters())
    assert model[0].weight[0].tolist() == [0, 1, 2] and model[2].bias.tolist() == [24, 25]


def test_submodules_do_not_hide_the_functions_of_their_names():
    program = (
        "import taeda.nn as nn, taeda.nn.utils.weight_norm\n"
        "nn.utils.remove_spectral_norm\n"
        "assert callable(nn.utils.weight_norm) and callable(nn.utils.spectral_norm)\n"
        "from taeda.nn.utils.weight_norm import WeightNorm"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_weight_norm_equals_pytorchs(oracle):
    torch = oracle.torch

    def run(torch, apply):
        torch.manual_seed(0)
        layer = apply(torch.nn.Conv1d(3, 2, 2))
        y = layer(torch.ones(1, 3, 4))
        y.sum().backward()
        return [y, *(p.grad for p in layer.parameters())], layer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, _ = run(torch, torch.nn.utils.weight_norm)
        actual, layer = run(taeda, utils.weight_norm)
    oracle.assert_same(actual, expected)
    assert [n for n, _ in layer.named_parameters()] == ["bias", "weight_g", "weight_v"]
    utils.remove_weight_norm(layer)
    assert [n for n, _ in layer.named_parameters()] == ["bias", "weight"]
    expected, _ = run(torch, torch.nn.utils.parametrizations.weight_norm)
    actual, layer = run(taeda, utils.parametrizations.weight_norm)
    oracle.assert_same(actual, expected)
    assert "parametrizations.weight.original0" in dict(layer.named_parameters())


def test_parametrized_weight_norm_loads_the_older_names():
    old = utils.weight_norm(nn.Linear(3, 4))
    new = nn.Sequential(utils.parametrizations.weight_norm(nn.Linear(3, 4)))
    state = {f"0.{name}": value for name, value in old.state_dict().items()}
    assert {"0.weight_g", "0.weight_v"} < set(state)
    new.load_state_dict(state)
    x = taeda.randn(2, 3)
    assert taeda.equal(new(x), old(x))
    new.load_state_dict(new.state_dict())


def test_spectral_norm_equals_pytorchs(oracle):
    torch = oracle.torch

    def run(torch, apply):
        torch.manual_seed(0)
        layer = apply(torch.nn.Linear(3, 4))
        outputs = [layer(torch.ones(1, 3)) for _ in range(3)]
        outputs[-1].sum().backward()
        return outputs + [p.grad for p in layer.parameters()] + [layer.eval()(torch.ones(1, 3))]

    for name in ("spectral_norm", "parametrizations.spectral_norm"):
        apply = [torch.nn.utils, utils]
        for part in name.split("."):
            apply = [getattr(a, part) for a in apply]
        oracle.assert_same(run(taeda, apply[1]), run(torch, apply[0]), rtol=1e-4)


class Double(nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, x):
        return x / 2


def test_parametrize():
    from taeda.nn.utils import parametrize

    layer = nn.Linear(2, 1, bias=False)
    before = layer.weight.tolist()
    parametrize.register_parametrization(layer, "weight", Double())
    assert parametrize.is_parametrized(layer, "weight")
    assert layer.weight.tolist() == before
    assert type(layer).__name__ == "ParametrizedLinear" and isinstance(layer, nn.Linear)
    assert list(layer.state_dict()) == ["parametrizations.weight.original"]
    layer.weight = taeda.ones(1, 2)
    assert layer.parametrizations.weight.original.tolist() == [[0.5, 0.5]]
    with parametrize.cached():
        assert layer.weight is layer.weight
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and layer.weight.tolist() == [[1, 1]]
    with pytest.raises(ValueError, match="does not have a parameter"):
        parametrize.register_parametrization(layer, "nothing", Double())


def test_fusion_keeps_the_output():
    taeda.manual_seed(0)
    conv, norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
    x = taeda.randn(8, 3, 6, 6)
    norm(conv(x))
    conv.eval(), norm.eval()
    fused = utils.fuse_conv_bn_eval(conv, norm)
    assert taeda.allclose(fused(x), norm(conv(x)), atol=1e-5)
    linear, norm = nn.Linear(3, 4), nn.BatchNorm1d(4)
    x = taeda.randn(8, 3)
    norm(linear(x))
    linear.eval(), norm.eval()
    assert taeda.allclose(utils.fuse_linear_bn_eval(linear, norm)(x), norm(linear(x)), atol=1e-5)


def test_functional_call():
    from taeda.func import functional_call, stack_module_state

    layer = nn.Linear(2, 1)
    weights = {"weight": taeda.ones(1, 2, requires_grad=True), "bias": taeda.zeros(1)}
    y = functional_call(layer, weights, taeda.tensor([[1.0, 2.0]]))
    y.sum().backward()
    assert y.item() == 3 and weights["weight"].grad.tolist() == [[1, 2]]
    assert layer.weight.grad is None and layer.weight is not weights["weight"]
    with pytest.raises(RuntimeError, match="Missing key"):
        functional_call(layer, {"weight": taeda.ones(1, 2)}, taeda.ones(1, 2), strict=True)
    with pytest.raises(RuntimeError, match="Unexpected key"):
        functional_call(layer, {**weights, "more": taeda.ones(1)}, taeda.ones(1, 2), strict=True)
    more = {**weights, "more": taeda.ones(1)}  # passed over, and gone after the call
    assert functional_call(layer, more, taeda.tensor([[1.0, 2.0]])).item() == 3
    assert not hasattr(layer, "more")
    shared = nn.Sequential(layer)
    shared.add_module("again", nn.Sequential(layer))
    params, _ = stack_module_state([nn.Linear(2, 1), nn.Linear(2, 1)])
    assert params["weight"].shape == (2, 1, 2)


def test_sequences_equal_pytorchs(oracle):
    torch = oracle.torch
    theirs = [torch.arange(float(n * 2)).view(n, 2) for n in (2, 4, 1)]
    ours = [oracle.ours(t) for t in theirs]
    for kwargs in ({}, {"batch_first": True, "padding_value": -1.0}, {"padding_side": "left"}):
        expected = torch.nn.utils.rnn.pad_sequence(theirs, **kwargs)
        oracle.assert_same(utils.rnn.pad_sequence(ours, **kwargs), expected)
    packed = utils.rnn.pack_sequence(ours, enforce_sorted=False)
    expected = torch.nn.utils.rnn.pack_sequence(theirs, enforce_sorted=False)
    oracle.assert_same(tuple(packed), tuple(expected))
    for a, e in zip(utils.rnn.unpack_sequence(packed), theirs):
        oracle.assert_same(a, e)
    with pytest.raises(RuntimeError, match="sorted in decreasing order"):
        utils.rnn.pack_sequence(ours)


INITS = [
    ("uniform_", (-1, 2), (3, 4)),
    ("normal_", (1.0, 2.0), (3, 4)),
    ("trunc_normal_", (0.0, 1.0, -0.5, 1.5), (3, 4)),
    ("trunc_normal_", (0.0, 1.0, 2.0, 3.0), (30, 4)),
    ("constant_", (3.5,), (3, 4)),
    ("ones_", (), (3,)),
    ("zeros_", (), (3,)),
    ("eye_", (), (3, 4)),
    ("dirac_", (), (4, 3, 3)),
    ("dirac_", (2,), (4, 2, 3, 3)),
    ("xavier_uniform_", (2.0,), (3, 4, 2)),
    ("xavier_normal_", (), (3, 4)),
    ("kaiming_uniform_", (0.1, "fan_out", "leaky_relu"), (3, 4)),
    ("kaiming_normal_", (0, "fan_in", "relu"), (3, 4, 3, 3)),
    ("orthogonal_", (), (5, 3)),
    ("orthogonal_", (2.0,), (3, 2, 4)),
    ("sparse_", (0.4,), (10, 3)),
]


@pytest.mark.parametrize("name, args, shape", INITS)
def test_init_equals_pytorchs(oracle, name, args, shape):
    torch = oracle.torch
    torch.manual_seed(4)
    expected = getattr(torch.nn.init, name)(torch.empty(shape), *args)
    after = torch.rand(2)
    taeda.manual_seed(4)
    x = taeda.empty(shape, requires_grad=True)
    actual = getattr(nn.init, name)(x, *args)
    assert actual is x and x.is_leaf and x.requires_grad
    oracle.assert_same(actual, expected, rtol=1e-5, atol=1e-6)
    oracle.assert_same(taeda.rand(2), after)  # as many numbers were drawn


def test_init_errors():
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        nn.init.xavier_uniform_(taeda.empty(3))
    with pytest.raises(ValueError, match="Unsupported nonlinearity"):
        nn.init.calculate_gain("nothing")
    with pytest.raises(ValueError, match="Mode fan not supported"):
        nn.init.kaiming_uniform_(taeda.empty(3, 3), mode="fan")
    with pytest.warns(UserWarning, match="zero-element"):
        nn.init.kaiming_uniform_(taeda.empty(0, 3))
    with pytest.warns(FutureWarning, match="deprecated"):
        nn.init.constant(taeda.empty(1), 1.0)


def test_data_parallel_without_gpus_is_the_module():
    if taeda.cuda.is_available():
        pytest.skip("needs a machine without a GPU")
    layer, x = nn.Linear(2, 1), taeda.ones(1, 2)
    wrapped = nn.DataParallel(layer)
    assert wrapped(x).tolist() == layer(x).tolist()
    assert list(wrapped.state_dict()) == ["module.weight", "module.bias"]
    assert nn.parallel.data_parallel(layer, x).tolist() == layer(x).tolist()
    with pytest.raises(
        NotImplementedError, match=r"no process groups yet; run .* the module itself"
    ):
        nn.parallel.DistributedDataParallel(layer)


@pytest.mark.parametrize("given, error", [("a", ValueError), (None, TypeError), ([1], TypeError)])
def test_clip_grad_norm_refuses_what_is_no_number_without_gradients_too(given, error):
    p = nn.Parameter(taeda.zeros(2))
    with pytest.raises(error, match="float"):
        utils.clip_grad_norm_(p, given)
    p.grad = taeda.ones(2)
    with pytest.raises(error, match="float"):
        utils.clip_grad_norm_(p, given)
