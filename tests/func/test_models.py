"""Transforms of models: gradients of samples, ensembles, functions with rules of their own."""

import numpy as np
import pytest
from tests.func.test_vmap import Transformer

import taeda
from taeda import nn
from taeda.func import (
    functional_call,
    grad,
    grad_and_value,
    jacrev,
    jvp,
    replace_all_batch_norm_modules_,
    stack_module_state,
    vjp,
    vmap,
)


def convolutional():
    return nn.Sequential(
        nn.Conv2d(2, 6, 3, padding=1), nn.GroupNorm(2, 6), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 4, 3, stride=2), nn.Tanh(), nn.Flatten(), nn.Linear(4 * 3 * 3, 5),
    )  # fmt: skip


def batch_of(kind, count=3):
    taeda.manual_seed(0)
    if kind == "convolutional":
        return convolutional(), taeda.randn(count, 2, 15, 15), taeda.randint(0, 5, (count,))
    return Transformer(), taeda.randint(0, 11, (count, 6)), taeda.randint(0, 5, (count,))


def detached(model):
    return {name: p.detach() for name, p in model.named_parameters()}


def sample_loss(model):
    def loss(params, x, label):
        scores = functional_call(model, params, (x.unsqueeze(0),))
        return nn.functional.cross_entropy(scores, label.unsqueeze(0))

    return loss


@pytest.mark.parametrize("chunk_size", [None, 2])
@pytest.mark.parametrize("kind", ["convolutional", "transformer"])
def test_gradients_of_single_samples_are_those_of_a_loop(kind, chunk_size):
    model, x, labels = batch_of(kind)
    params, loss = detached(model), sample_loss(model)
    found, losses = vmap(grad_and_value(loss), (None, 0, 0), chunk_size=chunk_size)(
        params, x, labels
    )
    assert not any(g.requires_grad for g in found.values()) and not losses.requires_grad
    for i in range(len(x)):
        leaves = {name: p.clone().requires_grad_() for name, p in params.items()}
        value = loss(leaves, x[i], labels[i])
        value.backward()
        assert losses[i].item() == pytest.approx(value.item(), rel=1e-5)
        for name, leaf in leaves.items():
            np.testing.assert_allclose(
                found[name][i].tolist(), leaf.grad.tolist(), rtol=1e-3, atol=1e-6, err_msg=name
            )


def test_gradients_of_single_samples_are_differentiated_outside():
    """The norm of a sample's gradient, by the parameters: what a gradient penalty needs."""
    taeda.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), taeda.randn(5, 3)

    def penalty(params, x):
        slope = grad(lambda x: functional_call(model, params, (x,)).sum())
        return (vmap(slope)(x) ** 2).sum()

    params = {k: p.detach().double() for k, p in model.named_parameters()}
    x = x.double()
    found = grad(penalty)(params, x)
    for name, p in params.items():
        h = 1e-6
        for i in range(0, p.numel(), 3):
            ahead, behind = p.clone(), p.clone()
            ahead.view(-1)[i] += h
            behind.view(-1)[i] -= h
            slope = penalty({**params, name: ahead}, x) - penalty({**params, name: behind}, x)
            assert found[name].view(-1)[i].item() == pytest.approx(
                slope.item() / (2 * h), rel=1e-5, abs=1e-8
            )


def test_parameters_of_the_model_itself_are_reached_through_vmap():
    taeda.manual_seed(0)
    model, x = nn.Linear(3, 2), taeda.randn(4, 3)
    vmap(model)(x).pow(2).sum().backward()
    found = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    model(x).pow(2).sum().backward()
    for a, p in zip(found, model.parameters()):
        assert taeda.allclose(a, p.grad, rtol=1e-5)


def test_ensembles_are_their_members():
    taeda.manual_seed(0)
    models = [nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)) for _ in range(5)]
    params, buffers = stack_module_state(models)
    x = taeda.randn(6, 4)

    def call(params, buffers, x):
        return functional_call(models[0], (params, buffers), (x,))

    same_input = vmap(call, (0, 0, None))(params, buffers, x)
    own_input = vmap(call)(params, buffers, x[:5].unsqueeze(1))
    assert same_input.requires_grad
    for i, model in enumerate(models):
        assert taeda.allclose(same_input[i], model(x), atol=1e-6)
        assert taeda.allclose(own_input[i], model(x[i : i + 1]), atol=1e-6)
    same_input.sum().backward()
    models[2](x).sum().backward()
    assert taeda.allclose(params["0.weight"].grad[2], models[2][0].weight.grad, atol=1e-5)


def test_batch_norms_without_statistics():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
    assert replace_all_batch_norm_modules_(model) is model
    assert model[1].running_mean is None and not model[1].track_running_stats
    assert not dict(model.named_buffers())
    x = taeda.randn(3, 4, 1, 6, 6)
    found = vmap(model)(x)
    for i in range(3):
        assert taeda.allclose(found[i], model(x[i]), atol=1e-5)


class Cube(taeda.autograd.Function):
    """With every rule written by hand."""

    calls: list = []

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, gy):
        (x,) = ctx.saved_tensors
        return gy * 3 * x * x

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return tangent * 3 * x * x

    @staticmethod
    def vmap(info, in_dims, x):
        Cube.calls.append((info.batch_size, info.randomness, in_dims))
        return Cube.apply(x), in_dims[0]


class Generated(Cube):
    """With a rule of vmap from those of forward, backward and jvp."""

    generate_vmap_rule = True
    vmap = staticmethod(taeda.autograd.Function.vmap)


class Silent(Cube):
    vmap = staticmethod(taeda.autograd.Function.vmap)


X = [0.5, -1.0, 2.0]


@pytest.mark.parametrize("function", [Cube, Generated], ids=lambda f: f.__name__)
def test_functions_with_rules_of_their_own_nest(function):
    x = taeda.tensor(X, dtype=taeda.float64)
    f = function.apply
    slope, second = 3 * x**2, 6 * x
    total = lambda x: f(x).sum()  # noqa: E731
    compositions = {
        "grad": (grad(total)(x), slope),
        "grad of grad": (grad(lambda x: grad(total)(x).sum())(x), second),
        "vmap": (vmap(f)(x), x**3),
        "vmap of grad": (vmap(grad(f))(x), slope),
        "grad of vmap": (grad(lambda x: vmap(f)(x).sum())(x), slope),
        "vmap of grad of grad": (vmap(grad(grad(f)))(x), second),
        "vmap of vmap": (vmap(vmap(f))(x.view(3, 1)), (x**3).view(3, 1)),
        "jvp": (jvp(f, (x,), (taeda.ones_like(x),))[1], slope),
        "vjp": (vjp(f, x)[1](taeda.ones_like(x))[0], slope),
        "jacrev": (jacrev(f)(x), taeda.diag(slope)),
    }
    for name, (found, expected) in compositions.items():
        assert taeda.allclose(found, expected), name


def test_the_rule_of_vmap_is_told_about_the_batch():
    Cube.calls.clear()
    vmap(Cube.apply, in_dims=1, randomness="same")(taeda.ones(2, 3))
    assert Cube.calls == [(3, "same", (1,))] or Cube.calls == [(3, "same", (0,))]


def test_functions_without_a_rule_say_what_is_missing():
    with pytest.raises(RuntimeError, match="vmap"):
        vmap(Silent.apply)(taeda.ones(2, 3))
