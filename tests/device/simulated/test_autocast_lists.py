"""torch.autocast("cuda"): what each operator computes in is what PyTorch's lists say."""

import re
from pathlib import Path

import pytest

import taeda
from taeda import _C

oracle = pytest.importorskip("torch")
HEADER = Path(oracle.__file__).parent / "include" / "ATen" / "autocast_mode.h"
pytestmark = pytest.mark.skipif(not HEADER.exists(), reason="PyTorch is without its headers")

# Calls of the operators in PyTorch's lists on x, y (3x3), v (3), z (2x3x4x4), volume, all of one
# dtype, classes t. An entry by several calls is one with several overloads.
CALLS = {
    "_convolution": [], "_scaled_dot_product_flash_attention": [], "convolution": [],
    "_thnn_fused_lstm_cell": [], "_thnn_fused_gru_cell": [], "nll_loss2d": [],
    "conv1d": ["F.conv1d(x[None], x[:, :, None])"],
    "conv2d": ["F.conv2d(x[None, None], x[None, None])"],
    "conv3d": ["F.conv3d(x[None, None, None], x[None, None, None])"],
    "conv_tbc": ["torch.conv_tbc(x[None], x[None], v)"],
    "conv_transpose1d": ["F.conv_transpose1d(x[None], x[:, :, None])"],
    "conv_transpose2d": ["F.conv_transpose2d(x[None, None], x[None, None])"],
    "conv_transpose3d": ["F.conv_transpose3d(x[None, None, None], x[None, None, None])"],
    "prelu": ["F.prelu(x, v[:1])"],
    "addmm": ["torch.addmm(x, x, y)"], "addmv": ["torch.addmv(v, x, v)"],
    "addr": ["torch.addr(x, v, v)"], "matmul": ["torch.matmul(x, v)", "x @ y"],
    "einsum": ["torch.einsum('ij,jk', x, y)"], "mm": ["torch.mm(x, y)"], "mv": ["torch.mv(x, v)"],
    "linalg_vecdot": ["torch.linalg.vecdot(x, y)"], "linear": ["F.linear(x, y, v)"],
    "addbmm": ["torch.addbmm(x, x[None], y[None])"],
    "baddbmm": ["torch.baddbmm(x[None], x[None], y[None])"],
    "bmm": ["torch.bmm(x[None], y[None])"],
    "chain_matmul": ["torch.chain_matmul(x, y)"],
    "linalg_multi_dot": ["torch.linalg.multi_dot([x, y, x])"],
    "lstm_cell": ["torch.lstm_cell(x, (x, x), w, w)[0]"],
    "gru_cell": ["torch.gru_cell(x, x, u, u)"],
    "rnn_tanh_cell": ["torch.rnn_tanh_cell(x, x, y, y)"],
    "rnn_relu_cell": ["torch.rnn_relu_cell(x, x, y, y)"],
    "scaled_dot_product_attention": ["F.scaled_dot_product_attention(x[None], y[None], y[None])"],
    **{name: [f"torch.{name}(x)"] for name in (
        "acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan"
    ).split()},
    "pow": ["x ** 2", "torch.pow(x, y)", "torch.pow(2, x)"], "softplus": ["F.softplus(x)"],
    "layer_norm": ["F.layer_norm(x, (3,))"],
    "native_layer_norm": ["torch.native_layer_norm(x, (3,), None, None, 1e-5)[0]"],
    "rms_norm": ["F.rms_norm(x, (3,))"], "group_norm": ["F.group_norm(z, 3)"],
    "frobenius_norm": ["torch.frobenius_norm(x, (0, 1))"],
    "nuclear_norm": ["torch.nuclear_norm(x)"],
    "cosine_similarity": ["F.cosine_similarity(x, y)"],
    "poisson_nll_loss": ["F.poisson_nll_loss(x, y)"],
    "cosine_embedding_loss": ["F.cosine_embedding_loss(x, y, v)"],
    "nll_loss": ["F.nll_loss(x, t)"], "hinge_embedding_loss": ["F.hinge_embedding_loss(x, y)"],
    "kl_div": ["F.kl_div(x, y)"], "l1_loss": ["F.l1_loss(x, y)"],
    "smooth_l1_loss": ["F.smooth_l1_loss(x, y)"], "huber_loss": ["F.huber_loss(x, y)"],
    "mse_loss": ["F.mse_loss(x, y)"], "margin_ranking_loss": ["F.margin_ranking_loss(v, v, v)"],
    "multilabel_margin_loss": ["F.multilabel_margin_loss(x, t.expand(3, 3))"],
    "soft_margin_loss": ["F.soft_margin_loss(x, y)"],
    "triplet_margin_loss": ["F.triplet_margin_loss(x, y, y)"],
    "multi_margin_loss": ["F.multi_margin_loss(x, t)"],
    "binary_cross_entropy_with_logits": ["F.binary_cross_entropy_with_logits(x, y)"],
    "dist": ["torch.dist(x, y)"], "pdist": ["torch.pdist(x)"], "cdist": ["torch.cdist(x, y)"],
    "renorm": ["torch.renorm(x, 2, 0, 1.0)"], "logsumexp": ["torch.logsumexp(x, 0)"],
    **{f"{exact}upsample_nearest{'_exact' * bool(exact)}{n}d":
       [f"F.interpolate({of}, scale_factor=2, mode='nearest{'-exact' * bool(exact)}')"]
       for exact in ("", "_") for n, of in ((1, "x[None]"), (2, "z"), (3, "volume"))},
    "upsample_linear1d": ["F.interpolate(x[None], scale_factor=2, mode='linear')"],
    "upsample_bilinear2d": ["F.interpolate(z, scale_factor=2, mode='bilinear')"],
    "_upsample_bilinear2d_aa": [
        "F.interpolate(z, scale_factor=2, mode='bilinear', antialias=True)"
    ],
    "upsample_trilinear3d": ["F.interpolate(volume, scale_factor=2, mode='trilinear')"],
    "upsample_bicubic2d": ["F.interpolate(z, scale_factor=2, mode='bicubic')"],
    "_upsample_bicubic2d_aa": ["F.interpolate(z, scale_factor=2, mode='bicubic', antialias=True)"],
    "prod": ["torch.prod(x)", "torch.prod(x, 0)"], "softmax": ["F.softmax(x, 0)", "x.softmax(0)"],
    "log_softmax": ["F.log_softmax(x, 0)"], "cumprod": ["x.cumprod(0)"], "cumsum": ["x.cumsum(0)"],
    "linalg_vector_norm": ["torch.linalg.vector_norm(x)"],
    "linalg_matrix_norm": ["torch.linalg.matrix_norm(x)", "torch.linalg.matrix_norm(x, 1)"],
    "sum": ["x.sum()", "x.sum(0)"], "norm": ["torch.norm(x)", "torch.norm(x, dim=0)"],
    "addcdiv": ["torch.addcdiv(x, x, {})"], "addcmul": ["torch.addcmul(x, x, {})"],
    "atan2": ["torch.atan2(x, {})"], "bilinear": ["F.bilinear(x, x, {}[None])"],
    "cross": ["torch.cross(x, {}, 0)"], "dot": ["torch.dot(v, {}[0])"],
    "vdot": ["torch.vdot(v, {}[0])"], "grid_sampler": ["F.grid_sample(z, {}[None, None, :2, :2]"
    ".expand(2, 2, 2, 2), align_corners=False)"],
    "index_put": ["torch.index_put(x, (t,), {}[0])"],
    "tensordot": ["torch.tensordot(x, {}, 1)"],
    "scatter_add": ["torch.scatter_add(x, 0, t[None], {})"],
}  # fmt: skip
LISTS = {
    "AT_FORALL_LOWER_PRECISION_FP": "lower",
    "AT_FORALL_FP32": "float32",
    "AT_FORALL_FP32_SET_OPT_DTYPE": "float32",
    "AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE": "float32",
    "AT_FORALL_PROMOTE": "widest",
}
# Those that no list has compute in what they are given.
OTHERS = [
    "x + y", "torch.relu(x)", "F.gelu(x)", "torch.cat([x, y])", "torch.stack([x, y])", "x.mean()",
    "torch.sigmoid(x)", "F.avg_pool2d(z, 2)", "F.avg_pool3d(volume, 1)",
    "F.max_pool3d(volume, 1)", "torch.sqrt(x)", "F.pad(x[None], (1, 1), mode='reflect')",
    "torch.index_copy(x, 0, t, y)", "F.batch_norm(x, None, None, training=True)",
]  # fmt: skip


def listed():
    """(name, rule) of all that PyTorch's header lists."""
    found = []
    for part in HEADER.read_text().split("#define ")[1:]:
        macro = part[: part.index("(")]
        if macro in LISTS:
            body = part.split("\n\n")[0]
            names = re.findall(r"_\((?:ADD_NS\()?(\w+)", body)
            found += [(name, LISTS[macro]) for name in dict.fromkeys(names)]
    return found


@pytest.fixture(autouse=True)
def quiet():
    _C._set_fallback("quiet")
    yield
    _C._set_fallback("warn")


def names(dtype):
    def made(*shape):
        numbers = oracle.rand(*shape, generator=oracle.Generator().manual_seed(1)) * 0.8 + 0.1
        return taeda.tensor(numbers.numpy()).to(dtype).cuda()

    return {
        "torch": taeda, "F": taeda.nn.functional, "x": made(3, 3), "y": made(3, 3), "v": made(3),
        "w": made(12, 3), "u": made(9, 3), "z": made(2, 3, 4, 4), "volume": made(1, 1, 3, 3, 3),
        "t": taeda.tensor([2, 0, 1], device="cuda"),
    }  # fmt: skip


def dtype_of(call, given, **options):
    with taeda.autocast("cuda", **options):
        return eval(call, names(given)).dtype


def test_every_listed_operator_has_a_call():
    rows = listed()
    assert len(rows) > 100
    assert {name for name, _ in rows} == CALLS.keys()


FIXED = [(c, rule) for name, rule in listed() if rule != "widest" for c in CALLS[name]]


@pytest.mark.parametrize("call, rule", FIXED)
def test_dtypes_of_the_lists(call, rule):
    half, brain, single, double = taeda.float16, taeda.bfloat16, taeda.float32, taeda.float64
    for given in (half, single):
        assert dtype_of(call, given) is (half if rule == "lower" else single)
    assert dtype_of(call, single, dtype=brain) is (brain if rule == "lower" else single)
    assert dtype_of(call, double) is double
    with taeda.autocast("cpu"):
        assert eval(call, names(single)).dtype is single


WIDEST = [c for name, rule in listed() if rule == "widest" for c in CALLS[name]]


@pytest.mark.parametrize("call", WIDEST)
def test_the_widest_of_the_arguments(call):
    half, single = taeda.float16, taeda.float32
    assert dtype_of(call.format("y"), half) is half
    assert dtype_of(call.format("y"), single) is single
    assert dtype_of(call.format("y.float()"), half) is single
    assert dtype_of(call.format("y.half()"), single) is single
    with pytest.raises(RuntimeError, match="Unexpected floating ScalarType"):
        dtype_of(call.format("y.bfloat16()"), half)


@pytest.mark.parametrize("call", OTHERS)
def test_dtypes_beside_the_lists(call):
    for dtype in (taeda.float16, taeda.float32, taeda.float64):
        assert dtype_of(call, dtype) is dtype


def test_a_dtype_that_the_call_gives_is_taken():
    half = taeda.float16
    assert dtype_of("x.sum(dtype=torch.float16)", half) is half
    assert dtype_of("x.softmax(0, dtype=torch.float16)", half) is half
    assert dtype_of("x.cumsum(0, dtype=torch.float64)", half) is taeda.float64
    assert dtype_of("t.sum()", half) is taeda.int64


def test_binary_cross_entropy_is_refused():
    for call in ("F.binary_cross_entropy(x, y)", "torch.nn.BCELoss()(x, y)"):
        for dtype in (taeda.float16, taeda.float32):
            with pytest.raises(RuntimeError, match=r"BCELoss are unsafe to autocast.*with_logits"):
                dtype_of(call, dtype)
        assert dtype_of(call, taeda.float32, enabled=False) is taeda.float32
    x = taeda.rand(3)
    with taeda.autocast("cuda"):
        assert taeda.nn.functional.binary_cross_entropy(x, x).dtype is taeda.float32


def test_values_in_place_stay():
    x = taeda.ones(3, dtype=taeda.float16, device="cuda")
    with taeda.autocast("cuda"):
        assert x.exp_().dtype is taeda.float16
        assert x.softmax(0).sum().item() == pytest.approx(1, abs=1e-3)
