"""Checkpoints that keep some results, beside PyTorch's."""

from collections import Counter
from functools import partial
from importlib import import_module

import pytest

import taeda

torch = pytest.importorskip("torch")


def run(package, policy_of, again=False):
    """(the gradient, how often exp and sin ran)"""
    tools = import_module(f"{package.__name__}.utils.checkpoint")
    dispatch = import_module(f"{package.__name__}.utils._python_dispatch")
    counts = Counter()

    class Count(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            counts[str(func)] += 1
            return func(*args, **(kwargs or {}))

    x = package.linspace(0, 1, 4, requires_grad=True)
    contexts = partial(tools.create_selective_checkpoint_contexts, policy_of(package, tools))
    with Count():
        y = tools.checkpoint(
            lambda x: x.sin().exp().sin().exp(), x, use_reentrant=False, context_fn=contexts
        )
        y.sum().backward(retain_graph=again)
        if again:
            y.sum().backward()
    return x.grad.tolist(), counts["aten.exp.default"], counts["aten.sin.default"]


POLICIES = {
    "list": lambda p, t: [p.ops.aten.exp.default],
    "both": lambda p, t: [p.ops.aten.exp.default, p.ops.aten.sin.default],
    "policy": lambda p, t: (
        lambda ctx, op, *a, **k: (
            t.CheckpointPolicy.MUST_SAVE
            if op == p.ops.aten.sin.default
            else t.CheckpointPolicy.PREFER_RECOMPUTE
        )
    ),
    "bool": lambda p, t: lambda ctx, op, *a, **k: op == p.ops.aten.exp.default,
    "nothing": lambda p, t: lambda ctx, op, *a, **k: t.CheckpointPolicy.MUST_RECOMPUTE,
}


@pytest.mark.parametrize("name", POLICIES)
def test_only_the_rest_is_computed_again(name):
    ours, theirs = run(taeda, POLICIES[name]), run(torch, POLICIES[name])
    assert ours[0] == pytest.approx(theirs[0]) and ours[1:] == theirs[1:]


WRONG = [
    lambda p, t: [p.ops.aten.exp],
    lambda p, t: [3],
    lambda p, t: 3,
]


@pytest.mark.parametrize("policy", WRONG)
def test_errors(policy):
    with pytest.raises(Exception) as expected:
        run(torch, policy)
    with pytest.raises(expected.type):
        run(taeda, policy)


def test_kept_results_serve_once():
    for package in (torch, taeda):
        with pytest.raises(RuntimeError, match="backward an extra time"):
            run(package, POLICIES["list"], again=True)
