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


def bags(lib):
    """Rows, indices and where their bags begin, one of which is empty."""
    return x(lib, 5, 3), lib.tensor([0, 2, 2, 4, 1, 2]), lib.tensor([0, 2, 2, 5])


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
    "rrelu in training": lambda lib: lib.rrelu(
        x(lib, 3, 4), 0.1, 0.3, True, lib.Generator().manual_seed(5)
    ),
    "rrelu_ in training": lambda lib: lib.rrelu_(x(lib, 3, 4), training=True),
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
    "embedding_bag": lambda lib: lib.cat(
        [r.flatten().double() for r in lib.embedding_bag(*bags(lib), mode=2)]
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
    weight, index, offsets = taeda.ones(3, 2), taeda.tensor([0, 1]), taeda.tensor([0])
    with pytest.raises(RuntimeError, match="mode must be 0"):
        taeda.embedding_bag(weight, index, offsets, mode=3)
    with pytest.raises(RuntimeError, match="input has to be a 1D Tensor"):
        taeda.embedding_bag(weight, index[None], offsets)
    with pytest.raises(RuntimeError, match="per_sample_weights only supported"):
        taeda.embedding_bag(weight, index, offsets, mode=1, per_sample_weights=taeda.ones(2))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("padding", [None, 2, -2])
@pytest.mark.parametrize("last", [False, True])
def test_what_embedding_bag_keeps(dtype, mode, padding, last):
    found = []
    for lib in (taeda, torch):
        weight, index, offsets = bags(lib)
        weight = weight.to(getattr(lib, dtype)).requires_grad_()
        offsets = lib.cat([offsets, lib.tensor([6])]) if last else offsets
        result = lib.embedding_bag(weight, index, offsets, False, mode, False, None, last, padding)
        result[0].float().square().sum().backward()
        found.append([(str(r.dtype)[6:], r.shape, r.tolist()) for r in result[1:]])
        found[-1].append([result[0].tolist(), weight.grad.tolist()])
        assert [r.requires_grad for r in result] == [True, False, False, False]
    assert found[0][:-1] == found[1][:-1]
    for mine, theirs in zip(found[0][-1], found[1][-1]):
        np.testing.assert_allclose(mine, theirs, 2e-2 if dtype == "bfloat16" else 1e-6)


def test_embedding_bag_of_other_integers_and_of_columns():
    for change in (
        lambda w, i, o: (w, i.int(), o.int()),
        lambda w, i, o: (w, i.int(), o),
        lambda w, i, o: (w.float().t().contiguous().t(), i, o),
        lambda w, i, o: (w.float(), i[:0], o[:1]),
    ):
        found = []
        for lib in (taeda, torch):
            results = lib.embedding_bag(*change(*bags(lib)))
            found.append([(str(r.dtype)[6:], r.tolist()) for r in results[1:]])
        assert found[0] == found[1]
