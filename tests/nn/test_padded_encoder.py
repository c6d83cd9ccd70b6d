"""Padding in a TransformerEncoder's results: zeros where PyTorch packs sequences, else values."""

from __future__ import annotations

from typing import Any

import pytest

import taeda

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.cpu_only(reason="PyTorch's tensors are on the CPU")

LAYER: dict[str, Any] = {"dim_feedforward": 16, "dropout": 0.1, "batch_first": True}
BEHIND = [[False, False, True, True], [False] * 4, [False, True, True, True]]
WITHIN = [[False, True, False, True], [False] * 4, [False, True, True, True]]


def both(layer: dict, encoder: dict, run: Any, norm: bool = False) -> list[Any]:
    """What `run` makes of PyTorch's encoder and of taeda's with the same weights."""
    results, weights = [], None
    for t in (torch, taeda):
        last = t.nn.LayerNorm(8) if norm else None
        one = t.nn.TransformerEncoderLayer(8, **({"nhead": 2} | LAYER | layer))
        model = t.nn.TransformerEncoder(one, 2, norm=last, **encoder)
        if weights is None:
            weights = {k: v.numpy() for k, v in model.state_dict().items()}
        model.load_state_dict({k: t.from_numpy(v) for k, v in weights.items()})
        x = t.from_numpy(torch.rand(3, 4, 8, generator=torch.manual_seed(1)).numpy())
        results.append(torch.from_dlpack(run(t, model, x).detach()))
    return results


def inference(padding: list) -> Any:
    def run(t: Any, model: Any, x: Any) -> Any:
        with t.no_grad():
            return model.eval()(x, src_key_padding_mask=t.tensor(padding))

    return run


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("padding", [BEHIND, WITHIN, [[False] * 4] * 3])
@pytest.mark.parametrize(
    ("layer", "encoder"),
    [
        ({}, {}),
        ({"activation": "gelu"}, {}),
        ({"norm_first": True}, {}),
        ({"nhead": 1}, {}),
        ({"bias": False}, {}),
        ({}, {"enable_nested_tensor": False}),
    ],
)
def test_inference_gives_zeros_where_pytorch_does(
    layer: dict, encoder: dict, padding: list, norm: bool
) -> None:
    theirs, ours = both(layer, encoder, inference(padding), norm)
    assert torch.allclose(ours, theirs, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_recorded_calls_keep_the_values_of_padding() -> None:
    run = lambda t, model, x: model.eval()(x, src_key_padding_mask=t.tensor(BEHIND))  # noqa: E731
    theirs, ours = both({}, {}, run)
    assert torch.allclose(ours, theirs, atol=1e-5)
    assert ours[0, 3].abs().sum() > 0
