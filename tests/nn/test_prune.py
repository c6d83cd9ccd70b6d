"""Pruning beside PyTorch's: the same masks, values, gradients and errors."""

import pytest

import taeda
from taeda.nn.utils import prune

torch = pytest.importorskip("torch")
theirs = pytest.importorskip("torch.nn.utils.prune")

PAIRS = [(taeda, prune), (torch, theirs)]


def network(package):
    layers = [package.nn.Conv2d(2, 3, 3), package.nn.ReLU(), package.nn.Conv2d(3, 2, 2)]
    model = package.nn.Sequential(*layers)
    with package.no_grad():
        for i, parameter in enumerate(model.parameters()):
            values = package.arange(parameter.numel()) * 37 % 101 - 50.25 + i / 100
            parameter.copy_(values.reshape(parameter.shape) / 50)
    return model


STEPS = {
    "identity": lambda m, p, t: p.identity(m[0], "bias"),
    "l1": lambda m, p, t: p.l1_unstructured(m[0], "weight", 0.3),
    "count": lambda m, p, t: p.l1_unstructured(m[0], "weight", 7),
    "none": lambda m, p, t: p.l1_unstructured(m[0], "weight", 0),
    "scores": lambda m, p, t: p.l1_unstructured(
        m[0], "bias", 1, importance_scores=t.tensor([3.0, 0.1, 2.0])),
    "ln": lambda m, p, t: p.ln_structured(m[0], "weight", 1, n=2, dim=0),
    "ln_last": lambda m, p, t: p.ln_structured(m[0], "weight", 0.5, n=1, dim=-1),
    "ln_inf": lambda m, p, t: p.ln_structured(m[2], "weight", 2, n=float("inf"), dim=1),
    "mask": lambda m, p, t: p.custom_from_mask(m[0], "bias", t.tensor([0, 1, 0])),
    "twice": lambda m, p, t: (p.l1_unstructured(m[0], "weight", 0.5),
                              p.l1_unstructured(m[0], "weight", 0.5)),
    "mixed": lambda m, p, t: (p.ln_structured(m[0], "weight", 1, 2, 0),
                              p.l1_unstructured(m[0], "weight", 9),
                              p.ln_structured(m[0], "weight", 1, 2, 1)),
    "global": lambda m, p, t: p.global_unstructured(
        [(m[0], "weight"), (m[2], "weight"), (m[0], "bias")],
        pruning_method=p.L1Unstructured, amount=0.4),
    "global_twice": lambda m, p, t: [p.global_unstructured(
        [(m[0], "weight"), (m[2], "weight")], p.L1Unstructured, amount=0.4) for _ in range(2)],
    "random": lambda m, p, t: p.random_unstructured(m[0], "weight", 0.3),
    "channels": lambda m, p, t: p.random_structured(m[0], "weight", 1, dim=1),
    "removed": lambda m, p, t: (p.l1_unstructured(m[0], "weight", 0.3), p.remove(m[0], "weight")),
}  # fmt: skip


@pytest.mark.cpu_only(reason="masks are drawn on the device, with numbers of its own")
@pytest.mark.parametrize("name", STEPS)
def test_masks_values_and_gradients(name):
    found = []
    for package, pruning in PAIRS:
        package.manual_seed(3)
        model = network(package)
        STEPS[name](model, pruning, package)
        model(package.linspace(-1, 1, 50).reshape(1, 2, 5, 5)).square().sum().backward()
        state = {k: v.tolist() for k, v in model.state_dict().items()}
        gradients = {k: v.grad.flatten().tolist() for k, v in model.named_parameters()}
        hooks = [type(h).__name__ for m in model for h in m._forward_pre_hooks.values()]
        found.append((state, gradients, hooks, pruning.is_pruned(model)))
    ours, expected = found
    assert ours[0] == expected[0] and ours[2:] == expected[2:]
    assert list(ours[1]) == list(expected[1])
    for key, values in ours[1].items():
        assert values == pytest.approx(expected[1][key], rel=1e-4, abs=1e-5)


ERRORS = [
    lambda m, p, t: p.l1_unstructured(m[0], "weight", -1),
    lambda m, p, t: p.l1_unstructured(m[0], "weight", 1.5),
    lambda m, p, t: p.l1_unstructured(m[0], "weight", "x"),
    lambda m, p, t: p.l1_unstructured(m[0], "weight", 1000),
    lambda m, p, t: p.l1_unstructured(m[0], "weight", 1, importance_scores=t.ones(2)),
    lambda m, p, t: p.ln_structured(m[0], "bias", 1, 2, 0),
    lambda m, p, t: p.ln_structured(m[0], "weight", 1, 2, 4),
    lambda m, p, t: p.global_unstructured([(m[0], "weight")], p.LnStructured, amount=1, n=2),
    lambda m, p, t: p.global_unstructured(3, p.L1Unstructured, amount=1),
    lambda m, p, t: p.remove(m[1], "weight"),
    lambda m, p, t: p.PruningContainer().add_pruning_method(3),
    lambda m, p, t: p.custom_from_mask(m[0], "bias", t.ones(4)),
]


@pytest.mark.parametrize("function", ERRORS)
def test_errors(function):
    texts = []
    for package, pruning in PAIRS:
        model = network(package)
        with pytest.raises(Exception) as raised:
            function(model, pruning, package)
        texts.append((raised.type, str(raised.value).replace("taeda", "torch")))
        assert [name for name, _ in model.named_parameters()][:2] == ["0.weight", "0.bias"] or (
            sorted(model[0]._parameters) == ["bias", "weight"]
        )
    assert texts[0] == texts[1]


def test_methods_on_their_own():
    for package, pruning in PAIRS:
        kept = pruning.L1Unstructured(2).prune(package.tensor([3.0, -1.0, 2.0, 0.5]))
        assert kept.tolist() == [3.0, 0.0, 2.0, 0.0]

    class Every(prune.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t, default_mask):
            mask = default_mask.clone()
            mask.view(-1)[::2] = 0
            return mask

    layer = taeda.nn.Linear(3, 2)
    Every.apply(layer, "weight")
    assert layer.weight_mask.tolist() == [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    with pytest.raises(TypeError, match="abstract"):
        prune.BasePruningMethod()
