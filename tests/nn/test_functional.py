"""nn.functional against PyTorch's: losses with all reductions, and what no layer calls."""

import inspect
import warnings

import numpy as np
import pytest

import taeda
from taeda.nn import functional as F
from taeda.utils._python_dispatch import TorchDispatchMode

REDUCTIONS = ["mean", "sum", "none"]


def _inputs(torch):
    torch.manual_seed(0)
    x, y = torch.randn(4, 5), torch.randn(4, 5)
    return {
        "x": x,
        "y": y,
        "p": torch.sigmoid(x),
        "q": torch.softmax(y, 1),
        "logp": torch.log_softmax(x, 1),
        "sign": torch.sign(y[:, 0]),
        "signs": torch.sign(y),
        "classes": torch.tensor([1, 0, 4, 2]),
        "ignored": torch.tensor([1, -100, 4, 2]),
        "bits": (y > 0).float(),
        "w": torch.rand(5) + 0.5,
        "v": torch.rand(4, 5) + 0.5,
        "labels": torch.tensor(
            [[0, 2, -1, 1, 0], [3, -1, 0, 0, 0], [1, 2, 3, 4, 0], [-1, 0, 0, 0, 0]]
        ),
    }


LOSSES = [
    ("mse_loss", "xy", {}),
    ("mse_loss", "xy", {"weight": "v"}),
    ("l1_loss", "xy", {}),
    ("smooth_l1_loss", "xy", {"beta": 0.5}),
    ("smooth_l1_loss", "xy", {"beta": 0.0}),
    ("huber_loss", "xy", {"delta": 0.5}),
    ("nll_loss", ("logp", "classes"), {}),
    ("nll_loss", ("logp", "ignored"), {"weight": "w"}),
    ("cross_entropy", ("x", "classes"), {}),
    ("cross_entropy", ("x", "ignored"), {"weight": "w", "label_smoothing": 0.1}),
    ("cross_entropy", ("x", "q"), {"label_smoothing": 0.2}),
    ("cross_entropy", ("x", "classes"), {"ignore_index": 4}),
    ("binary_cross_entropy", ("p", "bits"), {}),
    ("binary_cross_entropy", ("p", "bits"), {"weight": "w"}),
    ("binary_cross_entropy_with_logits", ("x", "bits"), {"pos_weight": "w"}),
    ("kl_div", ("logp", "q"), {}),
    ("poisson_nll_loss", ("x", "q"), {"full": True}),
    ("gaussian_nll_loss", ("x", "y", "v"), {"full": True}),
    ("hinge_embedding_loss", ("x", "signs"), {"margin": 0.5}),
    ("soft_margin_loss", ("x", "signs"), {}),
    ("multilabel_margin_loss", ("x", "labels"), {}),
    ("multilabel_soft_margin_loss", ("x", "bits"), {"weight": "w"}),
    ("cosine_embedding_loss", ("x", "y", "sign"), {"margin": 0.1}),
    ("margin_ranking_loss", ("x", "y", "signs"), {"margin": 0.1}),
    ("multi_margin_loss", ("x", "classes"), {"p": 2, "weight": "w"}),
    ("triplet_margin_loss", ("x", "y", "q"), {"swap": True}),
    ("triplet_margin_with_distance_loss", ("x", "y", "q"), {"swap": True}),
]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name, inputs, options", LOSSES, ids=str)
def test_losses_equal_pytorchs(oracle, name, inputs, options, reduction):
    torch = oracle.torch
    tensors = _inputs(torch)

    def run(F, wrap):
        args = [wrap(tensors[i]) for i in inputs]
        args[0].requires_grad_()
        kwargs = {k: wrap(tensors[v]) if v in tensors else v for k, v in options.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loss = getattr(F, name)(*args, reduction=reduction, **kwargs)
        loss.sum().backward()
        return loss, args[0].grad

    expected = run(torch.nn.functional, lambda t: t.clone())
    oracle.assert_same(run(F, oracle.ours), expected, rtol=1e-4, atol=1e-5)


def test_deprecated_reduction_flags():
    x, y = taeda.tensor([1.0, 2.0]), taeda.tensor([2.0, 4.0])
    with pytest.warns(UserWarning, match="please use reduction='sum' instead"):
        assert F.mse_loss(x, y, size_average=False).item() == 5
    with pytest.raises(ValueError, match="is not a valid value for reduction"):
        F.mse_loss(x, y, reduction="nothing")


def test_loss_sizes_are_checked():
    with pytest.warns(UserWarning, match="different to the input size"):
        F.mse_loss(taeda.ones(2, 1), taeda.ones(2))
    with pytest.raises(ValueError, match="must be the same as input size"):
        F.binary_cross_entropy_with_logits(taeda.ones(2, 1), taeda.ones(2))


INPLACE = ["relu", "elu", "selu", "celu", "leaky_relu", "silu", "mish", "hardswish", "hardsigmoid"]


@pytest.mark.parametrize("name", [*INPLACE, "hardtanh", "relu6"])
def test_inplace_activations(name):
    values = [[-2.0, -0.5, 0.0, 0.5, 2.0]]
    x = taeda.tensor(values, requires_grad=True)
    expected = getattr(F, name)(x)
    expected.sum().backward()
    z = taeda.tensor(values, requires_grad=True)
    base = z * 1
    result = getattr(F, name)(base, inplace=True)
    assert result is base
    assert result.flatten().tolist() == pytest.approx(expected.flatten().tolist())
    result.sum().backward()
    assert z.grad.flatten().tolist() == pytest.approx(x.grad.flatten().tolist())


def test_gumbel_softmax_equals_pytorchs(oracle):
    torch = oracle.torch
    x = torch.randn(3, 4)
    for hard in (False, True):
        torch.manual_seed(0)
        expected = torch.nn.functional.gumbel_softmax(x, tau=0.5, hard=hard)
        taeda.manual_seed(0)
        oracle.assert_same(F.gumbel_softmax(oracle.ours(x), tau=0.5, hard=hard), expected)


def test_softmax_without_dim_warns(oracle):
    torch = oracle.torch
    x = torch.randn(2, 3)
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax"):
        actual = F.softmax(oracle.ours(x))
    oracle.assert_same(actual, torch.softmax(x, 1))


def test_softmax_computes_in_another_dtype(oracle):
    torch = oracle.torch
    x = torch.randn(2, 3)
    actual = F.log_softmax(oracle.ours(x), -1, dtype=taeda.float64)
    oracle.assert_same(actual, torch.nn.functional.log_softmax(x, -1, dtype=torch.float64))


ATTENTION = [
    {},
    {"is_causal": True},
    {"scale": 0.3},
    {"attn_mask": [[True, False, True, True]] * 3},
    {"attn_mask": [[0.0, float("-inf"), 1.0, 0.5]] * 3},
]


@pytest.mark.parametrize("options", ATTENTION, ids=str)
def test_attention_equals_pytorchs(oracle, options):
    torch = oracle.torch
    q, k, v = torch.randn(2, 2, 3, 4), torch.randn(2, 2, 4, 4), torch.randn(2, 2, 4, 5)

    def run(torch, F, wrap):
        kwargs = dict(options)
        if "attn_mask" in kwargs:
            kwargs["attn_mask"] = torch.tensor(kwargs["attn_mask"])
        return F.scaled_dot_product_attention(wrap(q), wrap(k), wrap(v), **kwargs)

    expected = run(torch, torch.nn.functional, lambda t: t)
    oracle.assert_same(run(taeda, F, oracle.ours), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("batched", [True, False])
def test_attention_heads_may_be_projected_to_another_width(oracle, need_weights, batched):
    torch = oracle.torch
    shape = (3, 2, 8) if batched else (3, 8)
    x, w, b = torch.randn(shape), torch.randn(24, 8), torch.randn(24)
    out_w, out_b = torch.randn(5, 8), torch.randn(5)

    def run(functional, wrap):
        q = wrap(x)
        parameters = wrap(w), wrap(b), None, None, False, 0.0, wrap(out_w), wrap(out_b)
        return functional.multi_head_attention_forward(
            q, q, q, 8, 2, *parameters, need_weights=need_weights
        )

    ours, weights = run(F, oracle.ours)
    expected, expected_weights = run(torch.nn.functional, lambda t: t)
    assert ours.shape == (*shape[:-1], 5)
    oracle.assert_same(ours, expected, rtol=1e-4, atol=1e-5)
    assert (weights is None) == (expected_weights is None)


@pytest.mark.parametrize(
    "size, options",
    [
        ((2, 3, 4), {"scale_factor": 2}),
        ((2, 3, 4, 5), {"size": (7, 3)}),
        ((2, 3, 4, 5), {"size": 6, "mode": "bilinear"}),
        ((2, 3, 4, 5), {"scale_factor": (1.5, 2.0), "mode": "bilinear", "align_corners": True}),
        ((2, 3, 8, 6), {"scale_factor": 0.5, "mode": "area"}),
        ((2, 3, 4, 5), {"scale_factor": 2.0, "mode": "bicubic"}),
        ((2, 3, 4), {"size": 9, "mode": "linear"}),
        ((1, 2, 3, 4, 5), {"scale_factor": 2, "mode": "trilinear"}),
        ((2, 3, 4, 5), {"scale_factor": 1.7, "mode": "nearest-exact"}),
        # The scale, not the sizes, says what is nearest, but for images.
        ((2, 3, 4), {"scale_factor": 1.2}),
        ((2, 3, 4), {"scale_factor": 2.2}),
        ((2, 3, 4, 4), {"scale_factor": 1.2}),
        ((2, 3, 4, 4), {"scale_factor": (2.2, 1.2)}),
        ((2, 3, 4, 4, 4), {"scale_factor": (1.2, 2.2, 1.0)}),
        ((2, 3, 4, 4, 4), {"scale_factor": 1.24, "mode": "nearest-exact"}),
    ],
    ids=str,
)
def test_interpolate_equals_pytorchs(oracle, size, options):
    torch = oracle.torch
    x = torch.randn(size)
    expected = torch.nn.functional.interpolate(x, **options)
    oracle.assert_same(F.interpolate(oracle.ours(x), **options), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("channels", [3, 5])
def test_nearest_volumes_in_channels_last_are_pytorchs(oracle, channels):
    torch = oracle.torch
    x = torch.randn(1, channels, 4, 4, 4).contiguous(memory_format=torch.channels_last_3d)
    expected = torch.nn.functional.interpolate(x, scale_factor=1.2)
    ours = oracle.ours(x).contiguous(memory_format=taeda.channels_last_3d)
    oracle.assert_same(F.interpolate(ours, scale_factor=1.2), expected)


@pytest.mark.parametrize("size", [(1, 1, 4), (1, 1, 4, 4), (1, 1, 4, 4, 4)])
def test_nearest_gradients_are_pytorchs(oracle, size):
    torch = oracle.torch
    x = torch.randn(size, requires_grad=True)
    y = oracle.ours(x.detach()).requires_grad_()
    torch.nn.functional.interpolate(x, scale_factor=2.2).square().sum().backward()
    F.interpolate(y, scale_factor=2.2).square().sum().backward()
    oracle.assert_same(y.grad, x.grad, rtol=1e-5, atol=1e-6)


def test_max_unpool_puts_values_back(oracle):
    torch = oracle.torch
    x = torch.randn(2, 3, 6, 6)
    expected = torch.nn.functional.max_unpool2d(
        *torch.nn.functional.max_pool2d(x, 2, return_indices=True), 2
    )
    actual = F.max_unpool2d(*F.max_pool2d(oracle.ours(x), 2, return_indices=True), 2)
    oracle.assert_same(actual, expected)


@pytest.mark.cpu_only(reason="devices find wrong indices where the host waits")
@pytest.mark.parametrize("index", [999, -1])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_max_unpool_names_an_index_out_of_range_as_pytorch(oracle, n, index):
    texts = []
    for t in (oracle.torch, taeda):
        unpool = getattr(t.nn.functional, f"max_unpool{n}d")
        shape = (2, 1, *range(2, 2 + n))
        with pytest.raises(RuntimeError) as info:
            unpool(t.ones(shape), t.full(shape, index), 2)
        texts.append(str(info.value))
        with pytest.raises(RuntimeError) as info:
            t.vmap(lambda x, i, f=unpool: f(x, i, 2))(t.ones(shape), t.full(shape, index))
        texts.append(str(info.value))
    assert texts[2:] == texts[:2]


def test_max_unpool_passes_on_what_is_no_invalid_index():
    class Full(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if "scatter" in str(function):
                raise taeda.OutOfMemoryError("no memory")
            return function(*args, **(kwargs or {}))

    x, indices = taeda.ones(1, 1, 2, 2), taeda.zeros(1, 1, 2, 2, dtype=taeda.int64)
    with Full(), pytest.raises(taeda.OutOfMemoryError, match="no memory"):
        F.max_unpool2d(x, indices, 2)


@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("align", [True, False])
def test_grid_sample_equals_pytorchs(oracle, mode, padding_mode, align):
    torch = oracle.torch
    for size in ((2, 3, 5, 4), (2, 2, 3, 4, 5)):
        n = len(size) - 2
        theta = torch.randn(2, n, n + 1)
        expected_grid = torch.nn.functional.affine_grid(theta, size, align)
        oracle.assert_same(F.affine_grid(oracle.ours(theta), size, align), expected_grid)
        x = torch.randn(size)
        options = {"mode": mode, "padding_mode": padding_mode, "align_corners": align}
        expected = torch.nn.functional.grid_sample(x, expected_grid, **options)
        actual = F.grid_sample(oracle.ours(x), oracle.ours(expected_grid), **options)
        oracle.assert_same(actual, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("distances", [F.pdist, lambda x, p: taeda.cdist(x, x, p)])
def test_distances_of_order_0_count_and_have_a_gradient_of_zeros(distances):
    x = taeda.tensor([[1.0, 2.0], [1.0, 3.0], [float("nan"), 3.0]], requires_grad=True)
    y = distances(x, p=0.0)
    assert set(y.flatten().tolist()) <= {0.0, 1.0, 2.0} and y.sum().item() > 0
    y.sum().backward()
    assert taeda.equal(x.grad, taeda.zeros(3, 2))


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("shape", [(5, 3), (2, 1), (1, 4), (0, 2), (6, 0), (33, 200), (70, 5)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_pdist_is_numpys(p, shape, dtype):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    x[:, ::2] = np.round(x[:, ::2])  # equal elements
    first, second = np.triu_indices(shape[0], 1)
    differences = np.abs(x.astype("float64")[first] - x.astype("float64")[second])
    if p == 0:
        expected = (differences != 0).sum(1)
    elif p == float("inf"):
        expected = differences.max(1, initial=0)
    else:
        expected = (differences**p).sum(1) ** (1 / p)
    bound = 2e-6 if dtype == "float32" else 1e-14
    for given in (taeda.from_numpy(x), taeda.from_numpy(x.T.copy()).T):
        found = F.pdist(given, p).numpy()
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=bound)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize(
    "shapes", [((5, 3), (7, 3)), ((2, 1, 33, 70), (3, 9, 70)), ((40, 2), (1, 2)), ((3, 0), (2, 0)),
               ((0, 3), (4, 3)), ((2, 20, 4), (2, 0, 4))],
)  # fmt: skip
def test_cdist_is_numpys(p, shapes):
    random = np.random.default_rng(0)
    x, y = (random.integers(-9, 9, shape) / 4 for shape in shapes)
    differences = np.abs(x[..., :, None, :] - y[..., None, :, :])
    if p == 0:
        expected = (differences != 0).sum(-1)
    elif p == float("inf"):
        expected = differences.max(-1, initial=0)
    else:
        expected = (differences**p).sum(-1) ** (1 / p)
    for dtype, bound in (("float32", 2e-6), ("float64", 1e-14)):
        first, second = (taeda.from_numpy(a.astype(dtype)) for a in (x, y))
        exact = "donot_use_mm_for_euclid_dist"
        found = taeda.cdist(first, second, p, compute_mode=exact).numpy()
        assert found.dtype == dtype
        np.testing.assert_allclose(found, expected, rtol=bound)


@pytest.mark.parametrize("p", [1.0, 2.0, 2.5, float("inf")])
def test_pdist_of_nan_and_infinities_and_its_gradient_are_pytorchs(p, oracle):
    torch = oracle.torch
    x = torch.randn(9, 4)
    x[1, 2], x[4, 0], x[5, 3] = float("nan"), float("inf"), -float("inf")
    ours = F.pdist(oracle.ours(x), p).numpy()
    np.testing.assert_allclose(ours, torch.pdist(x, p).numpy(), rtol=1e-5)
    found = []
    for library in (taeda, torch):
        y = library.tensor(torch.randn(5, 3, generator=torch.Generator().manual_seed(0)).tolist())
        y.requires_grad_()
        weights = library.arange(10) + 1.0
        (library.nn.functional.pdist(y, p) * weights).sum().backward()
        found.append(y.grad.numpy())
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-6)


def test_dropout_arguments():
    with pytest.raises(
        ValueError, match="dropout probability has to be between 0 and 1, but got 2"
    ):
        F.dropout(taeda.ones(1), p=2)
    x = taeda.ones(4)
    assert F.dropout(x, 0.5, training=False).tolist() == [1, 1, 1, 1]
    assert F.dropout(x, 1.0).tolist() == [0, 0, 0, 0]
    assert F.dropout(x, 0.5, inplace=True) is x and set(x.tolist()) <= {0.0, 2.0}


@pytest.mark.parametrize("channels", [0, 3])
def test_batch_norm_needs_more_than_one_value(channels):
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        F.batch_norm(taeda.ones(1, channels), None, None, training=True)


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.bfloat16])
@pytest.mark.parametrize("size", [(0, 3), (0, 3, 4), (2, 3, 0, 4)])
def test_batch_norm_learns_nothing_from_nothing(size, dtype):
    x = taeda.ones(size, dtype=dtype, requires_grad=True)
    weight, bias = taeda.ones(3, requires_grad=True), taeda.zeros(3, requires_grad=True)
    mean, var = taeda.full((3,), 2.0), taeda.full((3,), 4.0)
    y = F.batch_norm(x, mean, var, weight, bias, training=True)
    assert y.shape == x.shape and y.dtype == dtype
    assert mean.tolist() == [2] * 3 and var.tolist() == [4] * 3
    y.sum().backward()
    assert x.grad.shape == x.shape
    assert weight.grad.tolist() == bias.grad.tolist() == [0] * 3


@pytest.mark.parametrize("size", [(0, 3, 4), (2, 3, 0), (0, 3, 4, 4)])
def test_instance_norm_of_nothing_is_nothing(size):
    assert F.instance_norm(taeda.ones(size)).shape == size


@pytest.mark.parametrize("size", [(0, 3, 1), (2, 3, 1)])
def test_instance_norm_needs_more_than_one_position(size):
    with pytest.raises(ValueError, match="Expected more than 1 spatial element"):
        F.instance_norm(taeda.ones(size))


def test_names_of_pytorchs_module_are_here(oracle):
    import torch.nn.functional as theirs

    internal = {
        "grad",
        "math",
        "warnings",
        "torch",
        "np",
        "importlib",
        "dataclasses",
        "annotations",
    }
    # Not there: PyTorch's own helpers.
    helpers = set("boolean_dispatch assert_int_or_pair handle_torch_function".split())
    names = {
        n
        for n in dir(theirs)
        if n.islower() and not n.startswith(("_", "has_torch")) and callable(getattr(theirs, n))
    }
    absent = sorted(n for n in names - internal - helpers if not hasattr(F, n))
    assert absent == []


WITH_A_SIGNATURE = """
    batch_norm binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss
    cross_entropy embedding fold hinge_embedding_loss huber_loss instance_norm kl_div l1_loss
    local_response_norm log_softmax margin_ranking_loss mse_loss multi_margin_loss
    multilabel_soft_margin_loss nll_loss pad poisson_nll_loss rms_norm smooth_l1_loss
    soft_margin_loss softmax softmin softsign tanhshrink unfold
""".split()


@pytest.mark.parametrize("name", WITH_A_SIGNATURE)
def test_signatures_are_pytorchs(name):
    torch = pytest.importorskip("torch")

    def parameters(function):
        return [
            (p.name, p.default, p.kind) for p in inspect.signature(function).parameters.values()
        ]

    assert parameters(getattr(F, name)) == parameters(getattr(torch.nn.functional, name))
    assert not getattr(F, name).__doc__.startswith(f"{name}(input,")


def test_grid_sample_of_a_side_that_floats_do_not_count() -> None:
    width = (1 << 24) + 4
    image = taeda.zeros(1, 1, 2, width)
    image[0, 0, 1, 0] = 5.0
    grid = taeda.tensor([[[[1.0, -1.0], [1.0, 1.0]]]])
    got = taeda.nn.functional.grid_sample(image, grid, mode="nearest", align_corners=True)
    assert got.flatten().tolist() == [0.0, 0.0]
