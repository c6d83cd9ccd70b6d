"""torch.autocast by type of device: tensors on other devices stay as they are."""

import numpy as np
import pytest

import taeda
from taeda import _C
from taeda.utils.checkpoint import checkpoint


@pytest.fixture(autouse=True)
def quiet():
    _C._set_fallback("quiet")


def products(*devices):
    dtypes = []
    for device in devices:
        x = taeda.ones(2, 2, device=device)
        dtypes.append((x @ x).dtype)
    return dtypes


def test_a_block_is_for_one_type_of_device():
    with taeda.autocast("cuda"):
        assert products("cuda", "cpu") == [taeda.float16, taeda.float32]
        with taeda.autocast("cpu"):
            assert products("cuda", "cpu") == [taeda.float16, taeda.bfloat16]
            with taeda.autocast("cuda", enabled=False):
                assert products("cuda", "cpu") == [taeda.float32, taeda.bfloat16]
        with taeda.autocast("cuda", dtype=taeda.bfloat16):
            assert products("cuda", "cpu") == [taeda.bfloat16, taeda.float32]
        assert taeda.is_autocast_enabled("cuda") and not taeda.is_autocast_enabled("cpu")
    with taeda.autocast("cpu"):
        assert products("cuda", "cpu") == [taeda.float32, taeda.bfloat16]
    assert products("cuda", "cpu") == [taeda.float32, taeda.float32]


def test_rules_hold_there():
    x = taeda.ones(2, 2, device="cuda")
    with taeda.autocast("cuda"):
        low = x @ x
        assert taeda.nn.functional.mse_loss(low, low).dtype is taeda.float32
        assert taeda.cat([low, x]).dtype is taeda.float32
        assert taeda.cat([low, low]).dtype is taeda.float16
        assert (x.double() @ x.double()).dtype is taeda.float64


@pytest.mark.parametrize("reentrant", [False, True])
def test_parameters_have_gradients_and_checkpoints_run_again_alike(reentrant):
    layer = taeda.nn.Linear(3, 3).to("cuda")
    x = taeda.ones(2, 3, device="cuda", requires_grad=True)
    seen = []

    def f(x):
        seen.append((x @ x.mT).dtype)
        return layer(x)

    with taeda.autocast("cuda"):
        y = checkpoint(f, x, use_reentrant=reentrant)
    y.float().sum().backward()
    assert seen == [taeda.float16] * 2
    assert layer.weight.grad.dtype is taeda.float32
    np.testing.assert_allclose(layer.weight.grad.cpu().numpy(), np.full((3, 3), 2.0))
