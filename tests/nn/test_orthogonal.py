"""parametrizations.orthogonal keeps weights orthogonal, with PyTorch's numbers."""

import pytest

import taeda

torch = pytest.importorskip("torch")

SHAPES = [(3, 3), (5, 3), (3, 5)]
MAPS = [None, "matrix_exp", "cayley", "householder"]


def made(framework, shape, kind, trivialize):
    framework.manual_seed(0)
    layer = framework.nn.Linear(shape[1], shape[0]).double()
    utils = framework.nn.utils.parametrizations
    return utils.orthogonal(layer, orthogonal_map=kind, use_trivialization=trivialize)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", MAPS, ids=str)
@pytest.mark.parametrize("trivialize", [True, False])
def test_weights_and_gradients(shape, kind, trivialize):
    results = []
    for framework in (taeda, torch):
        try:
            layer = made(framework, shape, kind, trivialize)
        except NotImplementedError as error:
            results.append(str(error))
            continue
        original = layer.parametrizations.weight.original
        with framework.no_grad():
            numbers = framework.arange(float(original.numel())).reshape(original.shape)
            if kind in ("matrix_exp", "cayley"):
                original.add_(0.1 * numbers.to(original))
        weight = layer.weight
        (weight * framework.arange(float(weight.numel())).reshape(shape)).sum().backward()
        product = weight @ weight.mT if shape[0] < shape[1] else weight.mT @ weight
        identity = framework.eye(min(shape), dtype=weight.dtype)
        assert framework.allclose(product, identity, atol=1e-10)
        results.append((weight.detach().numpy(), original.grad.numpy()))
    if isinstance(results[1], str):
        assert results[0] == results[1]
    else:
        for a, b in zip(*results):
            assert abs(a - b).max() < 1e-8


def test_assignment():
    for framework in (taeda, torch):
        layer = made(framework, (4, 3), None, True)
        framework.manual_seed(1)
        target = framework.linalg.qr(framework.randn(4, 3).double())[0]
        layer.weight = target
        assert framework.allclose(layer.weight, target)
        with pytest.raises(ValueError, match="Expected a matrix or batch of matrices of shape"):
            layer.weight = target.T


@pytest.mark.parametrize(
    "call",
    [
        "o(T.nn.Linear(2, 2), 'nothing')",
        "o(T.nn.Linear(2, 2), 'bias')",
        "o(T.nn.Linear(2, 2), orthogonal_map='x')",
        "o(T.nn.Linear(2, 2, dtype=T.complex64), orthogonal_map='householder')",
    ],
)
def test_errors(call):
    errors = []
    for framework in (taeda, torch):
        with pytest.raises(ValueError) as error:
            eval(call, {"T": framework, "o": framework.nn.utils.parametrizations.orthogonal})
        errors.append(str(error.value))
    assert errors[0] == errors[1]
