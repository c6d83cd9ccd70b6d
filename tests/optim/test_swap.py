"""optim.swap_in_optimizer_params_and_state: a step on other parameters, as PyTorch makes it."""

import copy

import pytest

import taeda
from taeda.optim import swap_in_optimizer_params_and_state as swap_in

KINDS = {"SGD": {"momentum": 0.9}, "AdamW": {}, "Adagrad": {}, "RMSprop": {"centered": True}}


def stepped(torch, kind, steps=2):
    """An optimizer of two groups after some steps, and its parameters."""
    a, b = (torch.linspace(0, 1, n, requires_grad=True) for n in (3, 5))
    groups = [{"params": [a]}, {"params": [b], "lr": 0.3}]
    optimizer = getattr(torch.optim, kind)(groups, lr=0.1, **KINDS[kind])
    for _ in range(steps):
        optimizer.zero_grad()
        ((a**2).sum() + (b**3).sum()).backward()
        optimizer.step()
    return optimizer, {"a": a, "b": b}


def others(torch, parameters):
    found = {name: p.detach() * 2 + 1 for name, p in parameters.items()}
    for p in found.values():
        p.grad = p.sin()
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_inside_is_that_of_pytorch_and_leaves_the_optimizer_as_it_was(kind):
    packages = [taeda, pytest.importorskip("torch")]
    results = []
    for torch in packages:
        optimizer, parameters = stepped(torch, kind)
        before = copy.deepcopy(optimizer.state_dict())
        values = {name: p.tolist() for name, p in parameters.items()}
        state, given = copy.deepcopy(optimizer.state_dict()), others(torch, parameters)
        state["param_groups"][0]["lr"] = 0.7
        params = [group["params"] for group in optimizer.param_groups]
        block = torch.optim.swap_in_optimizer_params_and_state(optimizer, given, state)
        with block:
            optimizer.step()
        assert all(g["params"] is p for g, p in zip(optimizer.param_groups, params))
        assert str(optimizer.state_dict()) == str(before)
        assert {name: p.tolist() for name, p in parameters.items()} == values
        results.append([*(p.tolist() for p in given.values()), numbers(state["state"])])
    for mine, theirs in zip(*results):
        assert mine == pytest.approx(theirs, rel=1e-5, abs=1e-6)


def numbers(state):
    """The tensors of a state in one list."""
    entries = (entry for _, values in sorted(state.items()) for _, entry in sorted(values.items()))
    return [x for entry in entries if hasattr(entry, "flatten") for x in entry.flatten().tolist()]


def test_what_raises_inside_puts_everything_back():
    optimizer, parameters = stepped(taeda, "SGD")
    state, given = optimizer.state, others(taeda, parameters)
    with pytest.raises(KeyError), swap_in(optimizer, given, optimizer.state_dict()):
        assert optimizer.param_groups[0]["params"][0] is given["a"]
        raise KeyError
    assert optimizer.state is state and optimizer.param_groups[0]["params"] == [parameters["a"]]


def test_states_that_do_not_fit_are_refused():
    optimizer, parameters = stepped(taeda, "SGD")

    def refused(match, parameters=parameters, optimizer=optimizer, **changes):
        state = copy.deepcopy(optimizer.state_dict()) | changes
        with pytest.raises(RuntimeError, match=match), swap_in(optimizer, parameters, state):
            pass

    groups = optimizer.state_dict()["param_groups"]
    refused("what optimizer.state_dict", state=None)
    refused("1 groups, the optimizer 2", param_groups=groups[:1])
    refused("must be a dict, not list", param_groups=[[], []])
    refused("keys that only one", param_groups=[groups[0] | {"own": 1}, groups[1]])
    refused("must be numbers", param_groups=[groups[0] | {"params": ["a"]}, groups[1]])
    refused("2 parameters, the optimizer's 1", param_groups=[groups[0] | {"params": [0, 1]}] * 2)
    refused(r"entries of no parameter: \[7\]", state={7: {}})
    refused("each parameter must be a dict", state={0: 3})
    refused("1 parameters for groups of 2", {"a": parameters["a"]})
    refused("no state yet", optimizer=stepped(taeda, "AdamW", steps=0)[0])
