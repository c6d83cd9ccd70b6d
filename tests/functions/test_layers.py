"""Layers and losses of torch's own beside PyTorch's."""

import inspect

import numpy as np
import pytest

import taeda
from taeda._functions import layers

torch = pytest.importorskip("torch")


def x(lib, *shape, seed=0):
    return lib.tensor(np.random.default_rng(seed).standard_normal(shape))


def positive(lib, *shape, seed=0):
    return x(lib, *shape, seed=seed).abs()


def signs(lib):
    return lib.tensor([1.0, -1.0, 1.0], dtype=lib.float64)


CALLS = {
    "batch_norm": lambda lib: lib.batch_norm(
        x(lib, 4, 3, 5), x(lib, 3), x(lib, 3), lib.zeros(3).double(), lib.ones(3).double(), True,
        0.1, 1e-5, False,
    ),
    "instance_norm": lambda lib: lib.instance_norm(
        x(lib, 4, 3, 5), None, None, None, None, True, 0.1, 1e-5, True
    ),
    "bilinear": lambda lib: lib.bilinear(x(lib, 4, 3), x(lib, 4, 2), x(lib, 5, 3, 2), x(lib, 5)),
    "affine_grid_generator": lambda lib: lib.affine_grid_generator(
        x(lib, 2, 2, 3), [2, 1, 3, 4], False
    ),
    "grid_sampler_2d": lambda lib: lib.grid_sampler_2d(
        x(lib, 1, 2, 4, 4), x(lib, 1, 3, 3, 2), 0, 1, True
    ),
    "grid_sampler_3d": lambda lib: lib.grid_sampler_3d(
        x(lib, 1, 2, 4, 4, 3), x(lib, 1, 3, 3, 2, 3), 1, 0, False
    ),
    "norm_except_dim": lambda lib: lib.norm_except_dim(x(lib, 3, 4, 2), 2, 1),
    "norm of all": lambda lib: lib.norm_except_dim(x(lib, 3, 4), 3, -1),
    "conv_tbc": lambda lib: lib.conv_tbc(x(lib, 6, 2, 3), x(lib, 3, 3, 4), x(lib, 4), 1),
    "rrelu": lambda lib: lib.rrelu(x(lib, 3, 4), 0.1, 0.3),
    "rrelu_": lambda lib: lib.rrelu_(x(lib, 3, 4)),
    "alpha_dropout": lambda lib: lib.alpha_dropout(x(lib, 30), 0.4, True),
    "alpha_dropout_": lambda lib: lib.alpha_dropout_(x(lib, 30), 0.4, True),
    "feature_alpha_dropout": lambda lib: lib.feature_alpha_dropout(x(lib, 3, 9, 2), 0.4, True),
    "feature_alpha_dropout_": lambda lib: lib.feature_alpha_dropout_(x(lib, 3, 9), 0.4, True),
    "feature_dropout": lambda lib: lib.feature_dropout(x(lib, 3, 9, 2), 0.4, True),
    "feature_dropout_": lambda lib: lib.feature_dropout_(x(lib, 3, 9, 2), 0.4, True),
    "dropout's mask": lambda lib: lib.native_dropout(x(lib, 30), 0.4, True)[1],
    "native_dropout": lambda lib: lib.native_dropout(x(lib, 30), 0.4, None)[0],
    "native_dropout in eval": lambda lib: lib.native_dropout(x(lib, 30), 0.4, False)[0],
    "binary_cross_entropy_with_logits": lambda lib: lib.binary_cross_entropy_with_logits(
        x(lib, 3), positive(lib, 3), None, x(lib, 3), 2
    ),
    "cosine_embedding_loss": lambda lib: lib.cosine_embedding_loss(
        x(lib, 3, 4), x(lib, 3, 4, seed=1), signs(lib), 0.1, 0
    ),
    "hinge_embedding_loss": lambda lib: lib.hinge_embedding_loss(x(lib, 3), signs(lib)),
    "kl_div": lambda lib: lib.kl_div(x(lib, 3), positive(lib, 3), 2),
    "kl_div of logarithms": lambda lib: lib.kl_div(x(lib, 3), x(lib, 3, seed=1), log_target=True),
    "margin_ranking_loss": lambda lib: lib.margin_ranking_loss(
        x(lib, 3), x(lib, 3, seed=1), signs(lib), 0.2
    ),
    "poisson_nll_loss": lambda lib: lib.poisson_nll_loss(
        x(lib, 3), positive(lib, 3), True, True, 1e-8, 1
    ),
    "triplet_margin_loss": lambda lib: lib.triplet_margin_loss(
        x(lib, 3, 4), x(lib, 3, 4, seed=1), x(lib, 3, 4, seed=2), swap=True, reduction=0
    ),
    "ctc_loss": lambda lib: lib.ctc_loss(
        x(lib, 6, 2, 4).log_softmax(-1), lib.tensor([[1, 2], [3, 0]]), [6, 5], [2, 1], 0, 2
    ),
    "pixel_shuffle": lambda lib: lib.pixel_shuffle(x(lib, 1, 4, 2, 2), 2),
    "pixel_unshuffle": lambda lib: lib.pixel_unshuffle(x(lib, 1, 1, 4, 4), 2),
    "channel_shuffle": lambda lib: lib.channel_shuffle(x(lib, 1, 4, 2, 2), 2),
    "native_channel_shuffle": lambda lib: lib.native_channel_shuffle(x(lib, 1, 4, 2, 2), 2),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_values(name):
    found = []
    for lib in (taeda, torch):
        lib.manual_seed(3)
        found.append(CALLS[name](lib).numpy())
    np.testing.assert_allclose(*found, 1e-6, 1e-8)


def test_every_function_is_called():
    defined = {n for n, f in vars(layers).items() if inspect.isfunction(f) and n[0] != "_"}
    assert not defined - {"annotations"} - CALLS.keys()


def test_the_same_functions_elsewhere():
    assert taeda.nn.functional.conv_tbc is taeda.conv_tbc
    assert taeda.linalg.matmul(taeda.ones(1, 2), taeda.ones(2, 1)).tolist() == [[2]]


def test_errors():
    with pytest.raises(ValueError, match="not a valid value for reduction"):
        taeda.kl_div(taeda.ones(2), taeda.ones(2), 3)
    with pytest.raises(RuntimeError, match="3 dims"):
        taeda.conv_tbc(taeda.ones(2), taeda.ones(2), taeda.ones(1))
    with pytest.raises(NotImplementedError, match="generator"):
        taeda.rrelu(taeda.ones(2), generator=taeda.Generator())
