"""grad_fn of common operators is of PyTorch's class, and so are the nodes behind it."""

import pytest

import taeda

torch = pytest.importorskip("torch")

# With x and y of shape (3, 4), positive, m of shape (4, 4), i and i3 indices, g a grid.
SAME_CHAIN = """
x + y | x - y | x * y | x / y | x ** y | -x | abs(x) | x @ m | x % y | x.exp() | x.log()
x.log1p() | x.log2() | x.log10() | x.expm1() | x.exp2() | x.sqrt() | x.rsqrt() | x.sin() | x.cos()
x.tan() | x.asin() | x.acos() | x.atan() | x.sinh() | x.cosh() | x.tanh() | x.asinh() | x.atanh()
x.sigmoid() | x.relu() | x.erf() | x.erfc() | x.reciprocal() | x.square() | x.abs() | x.sign()
x.floor() | x.ceil() | x.round() | x.trunc() | x.lgamma() | x.digamma() | x.frac() | x.sum()
x.sum(0) | x.sum((0, 1)) | x.mean() | x.mean(0) | x.std() | x.var(0) | x.prod() | x.prod(0)
x.norm() | x.norm(dim=0) | x.max(0)[0] | x.min(0)[0] | x.amax(0) | x.amin(0) | x.median()
x.median(0)[0] | x.cumsum(0) | x.cumprod(0) | x.logsumexp(0) | x.logcumsumexp(0)
x.kthvalue(1, 0)[0] | x.mode(0)[0] | x.sort(0)[0] | x.topk(2)[0] | x.cummax(0)[0] | x.T
x.transpose(0, 1) | x.permute(1, 0) | x.view(4, 3) | x.reshape(-1) | x.flatten() | x.squeeze()
x.unsqueeze(0) | x.expand(2, 3, 4) | x.contiguous() | x.clone() | x[0] | x[:, 1:3] | x[..., None]
x[[0, 2]] | x[x > 0.5] | x.select(0, 1) | x.narrow(0, 0, 2) | x.index_select(0, i) | x.take(i)
x.gather(0, x.argsort(0)) | x.masked_fill(x > 0.5, 0) | x.masked_select(x > 0.5) | x.diagonal()
x.tril() | x.triu() | x.flip(0) | x.unbind(0)[0] | x.split(2)[0] | x.chunk(2)[0]
x.unfold(0, 2, 1) | x.movedim(0, 1) | torch.cat([x, y]) | torch.stack([x, y])
torch.where(x > y, x, y) | torch.maximum(x, y) | torch.minimum(x, y) | torch.atan2(x, y)
torch.hypot(x, y) | torch.addmm(x, x, m) | torch.mm(x, m) | torch.mv(x, m[0])
torch.dot(x[0], y[0]) | torch.bmm(x[None], m[None]) | torch.matmul(x, m) | torch.addcmul(x, x, y)
torch.baddbmm(x[None], x[None], m[None]) | torch.addcdiv(x, x, y) | torch.linalg.det(m)
torch.linalg.inv(m) | torch.linalg.qr(m)[0] | torch.linalg.svd(m)[1] | torch.linalg.pinv(m)
torch.linalg.vector_norm(x) | torch.linalg.slogdet(m)[1] | torch.linalg.matrix_exp(m)
torch.linalg.eigh(m + m.T)[0] | torch.view_as_complex(x.view(3, 2, 2)) | x.to(torch.float64)
x.double() | x.half() | F.relu(x) | F.gelu(x) | F.silu(x) | F.elu(x) | F.selu(x) | F.leaky_relu(x)
F.hardtanh(x) | F.hardswish(x) | F.hardsigmoid(x) | F.mish(x) | F.softplus(x) | F.softshrink(x)
F.hardshrink(x) | F.logsigmoid(x) | F.celu(x) | F.softmax(x, 1) | F.relu6(x) | F.log_softmax(x, 1)
F.layer_norm(x, (4,)) | F.layer_norm(x, (4,), m[0], m[1])
F.batch_norm(x, None, None, training=True) | F.group_norm(x, 2) | F.embedding(i, m)
F.conv1d(x[None], m[None, :3, :2]) | F.conv2d(x[None, None], m[None, None, :2, :2])
F.conv_transpose2d(x[None, None], m[None, None]) | F.max_pool2d(x[None, None], 2)
F.avg_pool2d(x[None, None], 2) | F.adaptive_avg_pool2d(x[None, None], 2) | F.pad(x, (1, 1))
F.grid_sample(x[None, None], g) | x.mul_(2) | x.add_(y) | x.exp_() | x.relu_() | x.zero_()
x.sub_(y) | x.div_(y) | x.sigmoid_() | x.tanh_() | x.masked_fill_(x > 0.5, 0) | x.copy_(y)
torch.fft.fft(x) | torch.fft.rfft(x) | x.nan_to_num() | torch.special.entr(x)
F.linear(x, m) | F.linear(x, m, m[0]) | F.linear(x[None], m) | F.linear(x[None], m, m[0])
torch.special.xlog1py(x, y) | torch.lerp(x, y, y) | torch.view_as_complex(x.view(3, 2, 2)).angle()
"""
# The node itself has PyTorch's class, what is behind it is recorded in other steps.
SAME_NODE = """
x ** 2 | 2 ** x | x % 2 | x.clamp(0.2, 0.8) | torch.lerp(x, y, 0.5) | torch.outer(x[0], y[0])
x.scatter(0, x.argsort(0), y) | x.index_add(0, i, y[:2]) | x.scatter_add(0, x.argsort(0), y)
x.index_copy(0, i, y[:2]) | F.prelu(x, m[0, :1]) | F.normalize(x) | F.cosine_similarity(x, y)
F.cross_entropy(x, i3) | F.rms_norm(x, (4,)) | F.dropout(x, 0.5)
F.scaled_dot_product_attention(x[None, None], y[None, None], y[None, None])
x.max() | x.min() | x.bernoulli() | torch.linalg.norm(x) | x.softmax(0)
F.interpolate(x[None], scale_factor=2) | F.interpolate(x[None, None], 5)
F.interpolate(x[None, None, None], scale_factor=2.5) | F.interpolate(x[None], 5, mode="linear")
F.interpolate(x[None, None], scale_factor=2, mode="bilinear")
F.interpolate(x[None, None, None], (3, 2, 5), mode="trilinear")
F.interpolate(x[None, None], 7, mode="bicubic") | F.interpolate(x[None], 7, mode="nearest-exact")
F.interpolate(x[None, None], 7, mode="nearest-exact")
F.interpolate(x[None, None, None], 7, mode="nearest-exact")
F.interpolate(x[None, None], (2, 2), mode="bilinear", antialias=True)
F.interpolate(x[None, None], (2, 2), mode="bicubic", antialias=True)
torch.nn.LSTM(4, 3)(x)[0] | torch.nn.MultiheadAttention(4, 1)(x, x, x)[0]
1 - x | 1 / x | F.adaptive_avg_pool2d(x[None], 1) | F.adaptive_avg_pool3d(x[None, None], 1)
F.adaptive_avg_pool1d(x, 2) | F.adaptive_max_pool1d(x, 2) | F.max_pool1d(x, 2) | F.avg_pool1d(x, 2)
F.cross_entropy(x, i3, reduction="none") | F.cross_entropy(x, i3, label_smoothing=0.1)
torch.linalg.solve(m, x.T) | F.batch_norm(x, torch.zeros(4), torch.ones(4))
torch.einsum('ij,jk->ik', x, m) | F.mse_loss(x, y) | torch.fft.fft2(x) | x.roll(1) | F.glu(x)
x.repeat(2, 1) | F.nll_loss(x, i3) | F.pad(x[None], (1, 1), mode='reflect')
"""
# Ours where it is another one, and why.
OTHER_NODE = {
    "torch.amax(x)": ("MaxBackward1", "of all elements max() and amax() are one function"),
    "F.scaled_dot_product_attention(x[None], x[None], x[None])": (
        "SqueezeBackward1", "the kernel wants a dimension of heads, where PyTorch multiplies",
    ),
}  # fmt: skip

# What PyTorch's node shows as _saved_NAME and ours does not, and why; nodes of other expressions
# show all that PyTorch's do.
_LAYOUT = "PyTorch keeps it for gradients of sparse products"
_NOT_READ = "ours is another formula, or another argument says it"
LACKING = {
    "x @ m": ("mat2_sym_sizes mat2_sym_strides self_sym_sizes self_sym_strides", _LAYOUT),
    "torch.addmm(x, x, m)": (
        "mat1_sym_sizes mat1_sym_strides mat2_sym_sizes mat2_sym_strides", _LAYOUT,
    ),
    "x.mean()": ("self_sym_numel", _NOT_READ),
    "x.mean(0)": ("self_sym_numel", _NOT_READ),
    "F.cross_entropy(x, i3)": ("self total_weight", "one step: scores are kept, not logarithms"),
    "F.conv2d(x[None, None], m[None, None, :2, :2])": ("bias_sym_sizes_opt", _NOT_READ),
    "F.batch_norm(x, None, None, training=True)": (
        "result1 result2 running_mean running_var training", "the variance is kept, not its root",
    ),
    "F.layer_norm(x, (4,))": ("bias", _NOT_READ),
    "F.group_norm(x, 2)": ("C HxW N", "the sizes of input"),
    "F.embedding(i, m)": ("weight_sym_argsize_0", "weight_sym_sizes[0]"),
    "F.dropout(x)": ("other self", "the mask and p are kept, not what multiplies"),
    "x.clamp(0)": ("max", "one bound is a step of its own"),
    "F.interpolate(x[None, None], scale_factor=2)": (
        "output_size scales_h scales_w self_sym_sizes", "one step for all modes: scale_h, ...",
    ),
    "x.gather(0, i[None])": ("self sparse_grad", "its sizes are kept, not the tensor"),
    "x.split(1)[0]": ("self_sym_sizes split_size", "one step for split, chunk and their kin"),
    "F.max_pool2d(x[None, None], 2)": ("result1 self", "a byte a window is kept, not the input"),
    "torch.linalg.svd(m)[1]": ("S_sym_argsize_minus_1 full_matrices", _NOT_READ),
}  # fmt: skip
SHOWN = """
x + y | x * y | x ** 2 | x / y | -x | x.exp() | x.log() | x.abs() | x.sigmoid() | x.sum() | x.sum(0)
x.max(0)[0] | x.max() | x.var() | x.std() | x.prod() | x.norm() | x.view(12) | x[0]
x[i] | torch.cat([x, y]) | torch.stack([x, y]) | F.softmax(x, 0) | F.log_softmax(x, 0) | F.gelu(x)
F.silu(x) | F.leaky_relu(x) | x.permute(1, 0) | x.transpose(0, 1) | x.clone() | x.double()
torch.where(x > y, x, y) | F.pad(x, (1, 1)) | x.expand(2, 3, 4) | x.unsqueeze(0) | x.topk(1)[0]
x.sort()[0] | x.cumsum(0) | x.masked_fill(x > 0, 0) | x.index_select(0, i) | x.squeeze()
x.logsumexp(0) | F.relu(x) | torch.linalg.inv(m) | F.linear(x, m, m[0])
"""


def listed(text):
    return [e.strip() for line in text.strip().split("\n") for e in line.split("|")]


def classes_behind(node, depth=3):
    """The classes of a node and of those behind it."""
    if node is None or depth < 0:
        return [None]
    found = [type(node).__name__]
    for following, _ in node.next_functions:
        found += classes_behind(following, depth - 1)
    return found


def result_of(library, expression):
    """What the expression gives with the same numbers in either library."""
    values = torch.rand(40, generator=torch.Generator().manual_seed(3)).tolist()
    values = [0.1 + 0.8 * v for v in values]

    def made(start, *shape):
        leaf = library.tensor(values[start : start + shape[0] * shape[1]]).reshape(shape)
        return leaf.requires_grad_(True) * 1  # a result, so that it may be written

    scope = {
        "torch": library,
        "F": library.nn.functional,
        "x": made(0, 3, 4),
        "y": made(12, 3, 4),
        "m": made(24, 4, 4) + library.eye(4),
        "i": library.tensor([0, 2]),
        "i3": library.tensor([0, 2, 1]),
        "g": library.zeros(1, 2, 2, 2),
    }
    return eval(expression, scope)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", listed(SAME_CHAIN))
def test_the_nodes_have_the_classes_that_they_have_in_pytorch(expression):
    ours, theirs = (result_of(library, expression).grad_fn for library in (taeda, torch))
    assert classes_behind(ours) == classes_behind(theirs)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", listed(SAME_NODE))
def test_the_node_has_the_class_that_it_has_in_pytorch(expression):
    ours, theirs = (result_of(library, expression).grad_fn for library in (taeda, torch))
    assert type(ours).__name__ == type(theirs).__name__


@pytest.mark.parametrize("expression", OTHER_NODE)
def test_nodes_that_are_of_another_class_are_listed_with_the_reason(expression):
    ours, theirs = (result_of(library, expression).grad_fn for library in (taeda, torch))
    name, reason = OTHER_NODE[expression]
    assert type(ours).__name__ == name != type(theirs).__name__ and reason


def saved(node):
    return {name.removeprefix("_saved_") for name in dir(node) if name.startswith("_saved_")}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", [*listed(SHOWN), *LACKING])
def test_nodes_show_what_pytorchs_show_but_for_what_is_listed(expression):
    ours, theirs = (saved(result_of(library, expression).grad_fn) for library in (taeda, torch))
    assert theirs - ours == set(LACKING.get(expression, ("",))[0].split())


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("F.layer_norm(x, (4,))", ["result1", "result2", "normalized_shape"]),
        ("F.group_norm(x, 2)", ["result1", "result2", "group", "eps"]),
    ],
)
def test_statistics_have_the_names_and_values_that_they_have_in_pytorch(expression, names):
    ours, theirs = (result_of(library, expression).grad_fn for library in (taeda, torch))
    for name in names:
        got, expected = (getattr(node, f"_saved_{name}") for node in (ours, theirs))
        if hasattr(got, "flatten"):
            got, expected = got.flatten().tolist(), pytest.approx(expected.flatten().tolist())
        assert got == expected
