"""torch.distributed.checkpoint.state_dict in one process, as PyTorch's does."""

import pytest
import torch

import taeda

from taeda.distributed.checkpoint import state_dict as ours  # isort: skip
from torch.distributed.checkpoint import state_dict as theirs  # isort: skip

ONE = {"0.weight": [[1.0, 1.0], [1.0, 1.0]]}


def model(t, device=None):
    t.manual_seed(0)
    found = t.nn.Sequential(t.nn.Linear(2, 2), t.nn.BatchNorm1d(2, device=device))
    found[0].bias.requires_grad_(False)
    return found


def values(state):
    return type(state).__name__, {name: value.tolist() for name, value in state.items()}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ignore_frozen_params": True},
        {"full_state_dict": True},
        {"full_state_dict": True, "cpu_offload": True},
    ],
)
def test_reading_a_model(options):
    def read(t, m):
        return m.get_model_state_dict(model(t), options=m.StateDictOptions(**options))

    assert values(read(taeda, ours)) == values(read(torch, theirs))
    assert not any(value.requires_grad for value in read(taeda, ours).values())


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("keep", [True, False])
def test_reading_a_submodule(keep):
    def read(t, m):
        whole = model(t)
        options = m.StateDictOptions(keep_submodule_prefixes=keep)
        return values(m.get_model_state_dict(whole, submodules={whole[0]}, options=options))

    assert read(taeda, ours) == read(torch, theirs)


def written(t, m, given, options, device=None):
    whole = model(t, device)
    state = {name: t.tensor(value) for name, value in given.items()}
    try:
        result = m.set_model_state_dict(whole, state, options=m.StateDictOptions(**options))
    except (RuntimeError, ValueError) as error:
        return type(error).__name__
    own = {n: v.device.type == "meta" or v.tolist() for n, v in whole.state_dict().items()}
    return sorted(result.missing_keys), list(result.unexpected_keys), own, set(state)


@pytest.mark.filterwarnings("ignore:for 1")
@pytest.mark.filterwarnings("ignore:._get_pg_default_device")
@pytest.mark.parametrize("device", [None, "meta"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"strict": False},
        {"full_state_dict": True},
        {"full_state_dict": True, "strict": False},
        {"broadcast_from_rank0": True},
        {"broadcast_from_rank0": True, "full_state_dict": True},
    ],
)
@pytest.mark.parametrize(
    "given",
    [
        {},
        ONE,
        ONE | {"extra": [1.0]},
        {"0.weight": [[1.0, 1.0]]},
        ONE | {f"1.{n}": [2.0, 3.0] for n in ("weight", "bias", "running_mean", "running_var")},
    ],
)
def test_writing_a_model(given, options, device):
    assert written(taeda, ours, given, options, device) == written(
        torch, theirs, given, options, device
    )


def test_a_state_goes_to_the_models_device_and_dtype():
    whole = model(taeda)
    state = {name: value.double() + 1 for name, value in ours.get_model_state_dict(whole).items()}
    ours.set_model_state_dict(whole, dict(state))
    for name, value in whole.state_dict().items():
        assert value.dtype == (taeda.int64 if "num" in name else taeda.float32)
        assert (value == state[name].to(value.dtype)).all()


def test_names_are_those_without_the_compiler():
    whole = model(taeda)
    wrapped = taeda.nn.ModuleDict({"_orig_mod": whole})
    state = ours.get_model_state_dict(wrapped)
    assert list(state) == list(whole.state_dict())
    result = ours.set_model_state_dict(wrapped, {n: v + 1 for n, v in state.items()})
    assert not result.missing_keys and not result.unexpected_keys
