"""torch._C._nn, and functions of torch whose names begin with _, against PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import taeda
from taeda import _C

torch = pytest.importorskip("torch")

NAMES = {name for name in dir(torch._C._nn) if not name.startswith("__")}
#: What has no operator here: other libraries' layouts, PyTorch's own tests.
ABSENT = {
    "_test_ambiguous_defaults", "_test_optional_filled_intlist", "_test_optional_floatlist",
    "_test_optional_intlist", "_test_string_default", "_test_warn_in_autograd",
    "_upsample_lanczos2d_aa", "mkldnn_linear", "mkldnn_reorder_conv2d_weight",
    "mkldnn_reorder_conv3d_weight",
}  # fmt: skip


def x(lib: Any, *shape: int, seed: int = 0) -> Any:
    return lib.tensor(np.random.default_rng(seed).standard_normal(shape))


CALLS = {
    "glu": lambda nn, t: nn.glu(x(t, 3, 4)),
    "glu by name": lambda nn, t: nn.glu(input=x(t, 3, 4), dim=1),
    "glu into a tensor": lambda nn, t: nn.glu(x(t, 3, 4), out=t.empty(0, dtype=t.float64)),
    "im2col": lambda nn, t: nn.im2col(x(t, 1, 2, 5, 4), [2, 2], [1, 1], [0, 1], [2, 1]),
    "col2im": lambda nn, t: nn.col2im(x(t, 1, 8, 6), [3, 4], [2, 2], [1, 1], [0, 0], [1, 1]),
    "max_unpool2d": lambda nn, t: nn.max_unpool2d(
        x(t, 1, 1, 2, 2), t.tensor([[[[0, 3], [8, 15]]]]), [4, 4]
    ),
    "max_unpool3d": lambda nn, t: nn.max_unpool3d(
        x(t, 1, 1, 1, 1, 2), t.tensor([[[[[0, 7]]]]]), [2, 2, 2], [2, 2, 2], [0, 0, 0]
    ),
    "nll_loss": lambda nn, t: nn.nll_loss(x(t, 3, 4), t.tensor([0, 3, 1]), None, 2, -100),
    "nll_loss2d": lambda nn, t: nn.nll_loss2d(x(t, 1, 3, 2, 1), t.tensor([[[0], [2]]])),
    "nll_loss_nd": lambda nn, t: nn.nll_loss_nd(x(t, 3, 4), t.tensor([0, 3, 1]), None, 0),
    "cross_entropy_loss": lambda nn, t: nn.cross_entropy_loss(x(t, 3, 4), t.tensor([0, 3, 1])),
    "mse_loss": lambda nn, t: nn.mse_loss(x(t, 3), x(t, 3, seed=1), 0),
    "l1_loss": lambda nn, t: nn.l1_loss(x(t, 3), x(t, 3, seed=1), reduction=2),
    "smooth_l1_loss": lambda nn, t: nn.smooth_l1_loss(x(t, 3), x(t, 3, seed=1), 1, 0.5),
    "huber_loss": lambda nn, t: nn.huber_loss(x(t, 3), x(t, 3, seed=1), 2, 0.5),
    "soft_margin_loss": lambda nn, t: nn.soft_margin_loss(x(t, 3), x(t, 3, seed=1).sign(), 0),
    "multi_margin_loss": lambda nn, t: nn.multi_margin_loss(x(t, 2, 3), t.tensor([1, 2])),
    "multilabel_margin_loss": lambda nn, t: nn.multilabel_margin_loss(
        x(t, 1, 3), t.tensor([[1, -1, 0]]), 2
    ),
    "binary_cross_entropy": lambda nn, t: nn.binary_cross_entropy(
        x(t, 3).sigmoid(), x(t, 3, seed=1).sigmoid(), None, 2
    ),
    "reflection_pad2d": lambda nn, t: nn.reflection_pad2d(x(t, 1, 3, 4), [1, 2, 0, 1]),
    "replication_pad1d": lambda nn, t: nn.replication_pad1d(x(t, 1, 3), [1, 2]),
    "_pad_circular": lambda nn, t: nn._pad_circular(x(t, 1, 3), [1, 2]),
    "log_sigmoid": lambda nn, t: nn.log_sigmoid(x(t, 3)),
    "leaky_relu_": lambda nn, t: nn.leaky_relu_(x(t, 3), 0.2),
    "rrelu_with_noise": lambda nn, t: nn.rrelu_with_noise(
        x(t, 9), t.empty(9, dtype=t.float64), 0.1, 0.3, True
    ),
    "rrelu_with_noise_": lambda nn, t: nn.rrelu_with_noise_(x(t, 9), x(t, 9), 0.1, 0.3, True),
    "slow_conv3d": lambda nn, t: nn.slow_conv3d(
        x(t, 1, 2, 3, 3, 3), x(t, 2, 2, 2, 2, 2), [2, 2, 2]
    ),
    "thnn_conv2d": lambda nn, t: nn.thnn_conv2d(x(t, 1, 2, 3, 3), x(t, 2, 2, 2, 2), [2, 2]),
    "slow_conv_dilated3d": lambda nn, t: nn.slow_conv_dilated3d(
        x(t, 1, 2, 3, 3, 3), x(t, 2, 2, 2, 2, 2), [2, 2, 2], None, 1, 1, 2
    ),
    "upsample_nearest2d": lambda nn, t: nn.upsample_nearest2d(x(t, 1, 1, 2, 2), [3, 3]),
    "upsample_nearest2d by factors": lambda nn, t: nn.upsample_nearest2d(
        x(t, 1, 1, 2, 2), None, [2.0, 1.5]
    ),
    "pad_sequence": lambda nn, t: nn.pad_sequence([x(t, 2), x(t, 3)], True, -1.0),
    "flatten_dense_tensors": lambda nn, t: nn.flatten_dense_tensors([x(t, 2), x(t, 2, 2)]),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_operators(name: str) -> None:
    found = []
    for lib in (taeda, torch):
        lib.manual_seed(0)
        found.append(CALLS[name](lib._C._nn, lib).numpy())
    np.testing.assert_allclose(*found, 1e-6, 1e-12)


def test_every_name_is_there() -> None:
    names = {*dir(_C._nn)}
    assert {name for name in NAMES if not hasattr(_C._nn, name)} == ABSENT
    assert names >= NAMES - ABSENT
    assert all(callable(getattr(_C._nn, name)) for name in names if not name.startswith("__"))


def test_what_is_no_operator_of_a_layer() -> None:
    for name in ("linalg_inv", "special_ndtr", "glu_backward", "sum", "nothing"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
            getattr(_C._nn, name)
    with pytest.raises(TypeError, match="glu"):
        _C._nn.glu("text")


def test_subclasses_are_asked() -> None:
    class Named(taeda.Tensor):
        asked: list[str] = []

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            cls.asked.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    _C._nn.glu(taeda.ones(4).as_subclass(Named))
    assert "glu" in Named.asked


@pytest.mark.parametrize("name", ["_linalg_det", "_linalg_slogdet", "_linalg_solve_ex"])
@pytest.mark.parametrize("kind", ["float64", "complex128"])
@pytest.mark.parametrize("turned", [False, True])
def test_determinants_with_their_factors(name: str, kind: str, turned: bool) -> None:
    found = []
    for lib in (taeda, torch):
        A = x(lib, 2, 3, 3).to(getattr(lib, kind))
        A = (A.mT if turned else A).requires_grad_()
        results = getattr(lib, name)(A, *[x(lib, 2, 3, 1, seed=1).to(A)][: name.endswith("ex")])
        results[name == "_linalg_slogdet"].abs().sum().backward()
        assert [r.requires_grad for r in results[-2:]] == [False, False]
        assert results.LU is results[-2 if name != "_linalg_solve_ex" else -3]
        found.append([type(results).__name__])
        found[-1] += [r.detach().numpy() for r in (*results, A.grad)]
    assert found[0][0] == found[1][0]
    for mine, theirs in zip(found[0][1:], found[1][1:], strict=True):
        np.testing.assert_allclose(mine, theirs, 1e-9, 1e-12)


def test_ctc_loss_keeps_its_recursion() -> None:
    found = []
    for lib in (taeda, torch):
        log_p = x(lib, 6, 2, 4).log_softmax(-1).requires_grad_()
        labels = lib.tensor([[1, 1, 3], [2, 0, 0]])
        loss, alpha = lib._ctc_loss(log_p, labels, [6, 4], [3, 1])
        loss.sum().backward()
        parts = loss.detach(), alpha[0], alpha[1, :4, :3], log_p.grad
        found.append([part.numpy() for part in parts])
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine, theirs, 1e-9, 1e-12)


def test_ctc_loss_that_no_alignment_fits() -> None:
    for lib in (taeda, torch):
        log_p, labels = lib.zeros(2, 1, 4).log_softmax(2), lib.tensor([[1, 1]])
        assert lib._ctc_loss(log_p, labels, [2], [2], 0, True)[0].tolist() == [float("inf")]
        with pytest.raises(RuntimeError):
            lib._ctc_loss(log_p, labels.float(), [2], [2])


CASES = [([0], [1], [], [2]), ([0, 1], [2], [1], [3]), ([1], [], [0], []), ([-4], [1], [], [-2])]


@pytest.mark.parametrize("case", CASES)
def test_trilinear(case: tuple) -> None:
    *expand, summed = case
    count = 4
    found = []
    for lib in (taeda, torch):
        tensors = [
            x(
                lib,
                *(n for d, n in enumerate((2, 3, 4, 5)) if d not in dims and d - 4 not in dims),
                seed=i,
            )
            for i, dims in enumerate(expand)
        ]
        found.append(lib._trilinear(*tensors, *expand, summed, count - 2).numpy())
    np.testing.assert_allclose(*found, 1e-9)


def test_trilinear_refuses() -> None:
    with pytest.raises(RuntimeError, match="unroll_dim must be in"):
        taeda._trilinear(*[taeda.ones(2)] * 3, [], [], [], [0], 1)
    with pytest.raises(RuntimeError, match="expected tensors of 1 dimensions"):
        taeda._trilinear(taeda.ones(2), taeda.ones(2), taeda.ones(2, 2), [], [], [], [0], 0)


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
def test_fused_adagrad(maximize: bool, scaled: bool) -> None:
    found = []
    for lib in (taeda, torch):
        p, g, total = (x(lib, 4, seed=i).abs().float() for i in range(3))
        p.requires_grad_()
        extra = {"grad_scale": lib.tensor(2.0), "found_inf": lib.tensor(0.0)} if scaled else {}
        options = {"lr": 0.1, "lr_decay": 0.3, "weight_decay": 0.2, "eps": 1e-6}
        step = lib.tensor(3.0)
        with lib.no_grad():
            lib._fused_adagrad_([p], [g], [total], [step], maximize=maximize, **options, **extra)
        found.append([t.detach().numpy() for t in (p, g, total, step)])
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine, theirs, 1e-5)
    p, g, total, step = (taeda.ones(2) for _ in range(4))
    taeda._fused_adagrad_(
        [p], [g], [total], [step], maximize=maximize, **options, found_inf=taeda.tensor(1.0)
    )
    assert p.tolist() == total.tolist() == [1, 1]


ATEN = {
    "batch_norm": lambda t, aten: aten.batch_norm(
        x(t, 4, 3), x(t, 3), x(t, 3, seed=1), x(t, 3), x(t, 3).abs(), False, 0.1, 1e-5, False
    ),
    "instance_norm": lambda t, aten: aten.instance_norm(
        x(t, 2, 3, 4), x(t, 3), x(t, 3, seed=1), None, None, True, 0.1, 1e-5, False
    ),
    "nll_loss": lambda t, aten: aten.nll_loss(x(t, 3, 4), t.tensor([0, 3, 1]), None, 2, -100),
    "l1_loss": lambda t, aten: aten.l1_loss(x(t, 3), x(t, 3, seed=1), 2),
    "kl_div": lambda t, aten: aten.kl_div(x(t, 3), x(t, 3, seed=1), 0, log_target=True),
    "poisson_nll_loss": lambda t, aten: aten.poisson_nll_loss(
        x(t, 3), x(t, 3).abs(), True, True, 1e-8, 1
    ),
    "hinge_embedding_loss": lambda t, aten: aten.hinge_embedding_loss(
        x(t, 3), x(t, 3).sign(), 0.5, 0
    ),
    "margin_ranking_loss": lambda t, aten: aten.margin_ranking_loss(
        x(t, 3), x(t, 3, seed=1), x(t, 3).sign(), 0.1
    ),
    "cosine_embedding_loss": lambda t, aten: aten.cosine_embedding_loss(
        x(t, 3, 2), x(t, 3, 2, seed=1), x(t, 3).sign(), 0.1, 2
    ),
    "triplet_margin_loss": lambda t, aten: aten.triplet_margin_loss(
        x(t, 3, 2), x(t, 3, 2, seed=1), x(t, 3, 2, seed=2), 0.5, swap=True
    ),
}


@pytest.mark.parametrize("name", ATEN)
def test_operators_take_their_arguments_in_pytorchs_order(name: str) -> None:
    mine, theirs = (ATEN[name](lib, lib.ops.aten).numpy() for lib in (taeda, torch))
    np.testing.assert_allclose(mine, theirs, 1e-6, 1e-12)
