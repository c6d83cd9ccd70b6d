"""The function forms of the optimizers beside PyTorch's: numbers, signatures, refusals."""

import importlib
import inspect
import os

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")

BETAS = {"beta1": 0.9, "beta2": 0.99}
# module -> (state: name -> what it starts with, None where it counts no steps; options)
FORMS = {
    "adadelta": ("zeros zeros step", {"lr": 0.5, "rho": 0.9, "eps": 1e-6, "weight_decay": 0.1}),
    "adagrad": ("zeros step", {"lr": 0.1, "weight_decay": 0.1, "lr_decay": 0.1, "eps": 1e-8}),
    "adam": (
        "zeros zeros zeros step",
        {"amsgrad": True, **BETAS, "lr": 0.1, "weight_decay": 0.1, "eps": 1e-8},
    ),
    "adamw": (
        "zeros zeros none step",
        {"amsgrad": False, **BETAS, "lr": 0.1, "weight_decay": 0.1, "eps": 1e-8},
    ),
    "adamax": ("zeros zeros step", {**BETAS, "lr": 0.1, "weight_decay": 0.1, "eps": 1e-8}),
    "asgd": (
        "zeros one eta step",
        {"lambd": 1e-2, "lr": 0.1, "t0": 1.0, "alpha": 0.75, "weight_decay": 0.1},
    ),
    "nadam": (
        "zeros zeros one step",
        {**BETAS, "lr": 0.1, "weight_decay": 0.1, "momentum_decay": 4e-3, "eps": 1e-8},
    ),
    "radam": ("zeros zeros step", {**BETAS, "lr": 0.1, "weight_decay": 0.1, "eps": 1e-8}),
    "rmsprop": (
        "zeros zeros zeros step",
        {"lr": 0.1, "alpha": 0.9, "eps": 1e-8, "weight_decay": 0.1, "momentum": 0.9,
         "centered": True},
    ),
    "rprop": (
        "zeros tenth step",
        {"step_size_min": 1e-6, "step_size_max": 50, "etaminus": 0.5, "etaplus": 1.2},
    ),
    "sgd": (
        "missing",
        {"weight_decay": 0.1, "momentum": 0.9, "lr": 0.1, "dampening": 0.1, "nesterov": False},
    ),
    "_adafactor": (
        "row column missing step",
        {"d": 1.0, "lr": 0.1, "beta2_decay": -0.8, "weight_decay": 0.1, "eps1": None,
         "eps2": 1e-3},
    ),
    "_muon": (
        "zeros",
        {"lr": 0.1, "weight_decay": 0.1, "momentum": 0.9, "nesterov": True,
         "ns_coefficients": (3.4445, -4.7750, 2.0315), "ns_steps": 5, "eps": 1e-7,
         "adjust_lr_fn": None, "has_complex": False},
    ),
}  # fmt: skip
START = {
    "zeros": lambda lib, p: lib.zeros_like(p),
    "one": lambda lib, p: lib.ones(()),
    "eta": lambda lib, p: lib.tensor(0.1),
    "tenth": lambda lib, p: lib.full_like(p, 0.1),
    "step": lambda lib, p: lib.tensor(0.0),
    "missing": lambda lib, p: None,
    "row": lambda lib, p: lib.zeros(*p.shape[:-1], 1, dtype=p.dtype),
    "column": lambda lib, p: lib.zeros(*p.shape[:-2], 1, p.shape[-1], dtype=p.dtype),
}
NO_COMPLEX = ("_adafactor", "_muon")


def form(lib, module):
    found = importlib.import_module(f"{lib.__name__}.optim.{module}")
    return getattr(found, module.lstrip("_"))


def run(lib, module, dtype=np.float64, steps=4, **flags):
    """Parameters and state after some steps with gradients that change their signs."""
    words, options = FORMS[module]
    rng = np.random.default_rng(3)

    def numbers():
        x = rng.standard_normal((3, 2))
        return (x + 1j * rng.standard_normal((3, 2)) if dtype is np.complex128 else x).astype(dtype)

    params = [lib.tensor(numbers()) for _ in range(2)]
    state = [
        [] if word == "none" else [START[word](lib, p) for p in params] for word in words.split()
    ]
    function = form(lib, module)
    if "maximize" in inspect.signature(function).parameters:
        flags.setdefault("maximize", False)
    for _ in range(steps):
        grads = [lib.tensor(numbers()) for _ in params]
        function(params, grads, *state, **options, **flags)
    return [x.numpy() for row in (params, *state) for x in row if x is not None]


@pytest.mark.parametrize("module", FORMS)
@pytest.mark.parametrize("maximize", [False, True])
def test_numbers_and_state_are_pytorchs(module, maximize):
    flags = {} if module == "_muon" else {"maximize": maximize}
    for own, theirs in zip(run(taeda, module, **flags), run(torch, module, **flags), strict=True):
        np.testing.assert_allclose(own, theirs, rtol=2e-6, atol=1e-12)


@pytest.mark.parametrize("module", [name for name in FORMS if name not in NO_COMPLEX])
def test_complex_parameters_are_pairs_of_real_ones(module):
    own, theirs = (run(lib, module, dtype=np.complex128) for lib in (taeda, torch))
    for x, y in zip(own, theirs, strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-6, atol=1e-12)


@pytest.mark.parametrize("module", FORMS)
def test_signatures_are_pytorchs(module):
    def arguments(lib):
        parameters = inspect.signature(form(lib, module)).parameters.values()
        return [(p.name, p.kind, p.default) for p in parameters]

    assert arguments(taeda) == arguments(torch)


@pytest.mark.parametrize("flags", [{"foreach": True}, {"foreach": False}, {"fused": True}])
@pytest.mark.parametrize("module", ["adam", "adamw", "adagrad", "sgd"])
def test_flags_change_no_numbers(module, flags):
    # Lists on a device round at other steps than the parameters one by one.
    least = 1e-12 if os.environ.get("TAEDA_TEST_DEVICE", "cpu") == "cpu" else 1e-8
    for own, theirs in zip(run(taeda, module, **flags), run(torch, module), strict=True):
        np.testing.assert_allclose(own, theirs, rtol=2e-6, atol=least)


@pytest.mark.parametrize("module", ["adam", "sgd", "adagrad"])
@pytest.mark.parametrize("found_inf", [0.0, 1.0])
def test_fused_forms_divide_by_the_scale_and_skip_what_is_not_finite(module, found_inf):
    def scaled(lib):
        scale, found = lib.tensor(4.0), lib.tensor(found_inf)
        return run(lib, module, fused=True, grad_scale=scale, found_inf=found)

    # PyTorch's skipped first step of SGD leaves buffers behind that nothing has written.
    count = 2 if module == "sgd" else None
    for own, theirs in zip(scaled(taeda)[:count], scaled(torch)[:count], strict=True):
        np.testing.assert_allclose(own, theirs, rtol=2e-6, atol=1e-12)


@pytest.mark.cpu_only(reason="PyTorch's tensors are on the CPU")
@pytest.mark.parametrize(
    "flags",
    [
        {"capturable": True},
        {"foreach": True, "capturable": True},
        {"grad_scale": True},
        {"foreach": True, "differentiable": True},
        {"fused": True, "differentiable": True},
        {"foreach": True, "lr": True},
        {"state_steps": [1.0]},
    ],
)
def test_what_pytorch_refuses_is_refused_in_its_words(flags):
    def message(lib):
        values = {k: lib.tensor(0.5) if v is True and k in ("grad_scale", "lr") else v
                  for k, v in flags.items()}  # fmt: skip
        steps = values.pop("state_steps", [lib.tensor(0.0)])
        options = {**FORMS["adam"][1], "amsgrad": False, "maximize": False} | values
        one = [[lib.ones(2)] for _ in range(4)]
        with pytest.raises((AssertionError, RuntimeError, ValueError)) as error:
            form(lib, "adam")(*one, [], steps, **options)
        return error.type, str(error.value)

    assert message(taeda) == message(torch)


def test_sparse_adam_moves_what_has_gradients():
    def moved(lib):
        from_functional = importlib.import_module(f"{lib.__name__}.optim._functional")
        p, mean, square = lib.ones(4, 2), lib.zeros(4, 2), lib.zeros(4, 2)
        for step in (1, 2):
            values = lib.tensor([[1.0, -2.0], [0.5, step]])
            grad = lib.sparse_coo_tensor(lib.tensor([[2, 0]]), values, (4, 2))
            from_functional.sparse_adam(
                [p], [grad], [mean], [square], [step],
                eps=1e-8, beta1=0.9, beta2=0.99, lr=0.1, maximize=True,
            )  # fmt: skip
        return [x.numpy() for x in (p, mean, square)]

    for own, theirs in zip(moved(taeda), moved(torch), strict=True):
        np.testing.assert_allclose(own, theirs, rtol=1e-6)


def test_functional_has_the_same_functions():
    own, theirs = (
        importlib.import_module(f"{lib.__name__}.optim._functional") for lib in (taeda, torch)
    )
    names = {name for name, value in vars(theirs).items() if inspect.isfunction(value)}
    assert {name for name in names if not name.startswith("_")} <= set(dir(own))


@pytest.mark.cpu_only(reason="PyTorch's tensors are on the CPU")
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("kinds", [["float"], ["float", "int"], ["complex"], [None, "float"]])
def test_the_default_between_fused_and_foreach_is_pytorchs(kinds, fused):
    def chosen(lib):
        kinds_of = {"float": lib.float32, "int": lib.int64, "complex": lib.complex64}
        params = [None if k is None else lib.zeros(2, dtype=kinds_of[k]) for k in kinds]
        helpers = importlib.import_module(f"{lib.__name__}.optim.optimizer")
        return helpers._default_to_fused_or_foreach(params, False, fused)

    assert chosen(taeda) == chosen(torch)


def test_optimizers_of_others_find_their_helpers():
    def train(lib):
        helpers = importlib.import_module(f"{lib.__name__}.optim.optimizer")

        class Descent(lib.optim.Optimizer):
            def __init__(self, params):
                super().__init__(params, {"lr": 0.5, "differentiable": False})

            @helpers._use_grad_for_differentiable
            def step(self):
                assert not lib.is_grad_enabled()
                group = self.param_groups[0]
                rows = [group["params"], [p.grad for p in group["params"]]]
                for (params, grads), _ in self._group_tensors_by_device_and_dtype(rows).values():
                    lib._foreach_add_(params, grads, alpha=-helpers._get_value(group["lr"]))

        p = lib.ones(2, requires_grad=True)
        (p * p).sum().backward()
        Descent([p]).step()
        return p.tolist()

    assert train(taeda) == train(torch) == [0.0, 0.0]
