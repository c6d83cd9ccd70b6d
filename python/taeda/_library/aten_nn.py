"""PyTorch's spellings of layers: linear, softmax, dropout, attention, pooling, activations."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor

from .spelling import REDUCTIONS, aten, define, functional, like, ours, spells

# --- linear layers: a product with the transposed weight ---


@spells("aten::linear")
def _(x: Any, weight: Any, bias: Any = None) -> tuple:
    if x.dim() == 0 or weight.dim() != 2 or (bias is not None and bias.dim() != 1):
        return aten.linear.default, (x, weight, *(() if bias is None else (bias,))), {}, None
    # Recorded by nobody here: a product of rows with the transposed weight.
    rows = x if x.dim() == 2 else x.reshape(-1, x.shape[-1])
    columns = weight.t()
    sizes = (*x.shape[:-1], weight.shape[0])
    restore = None if x.dim() == 2 else lambda y: y.view(sizes)
    if bias is None:
        return aten.mm.default, (rows, columns), {}, restore
    return aten.addmm.default, (bias, rows, columns), {}, restore


# --- softmax ---


def _softmax(name: str) -> None:
    own = getattr(aten, name).int
    op = define(f"_{name}(Tensor self, int dim, bool half_to_float) -> Tensor")(
        lambda self, dim, half_to_float: own(self, dim, taeda.float32 if half_to_float else None)
    )

    @spells(f"aten::{name}.int")
    def _(self: Any, dim: int, dtype: Any = None) -> tuple:
        return op, (self if dtype is None else self.to(dtype), dim, False), {}, None


for _name in ("softmax", "log_softmax"):
    _softmax(_name)


_safe_softmax = define("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")(
    lambda self, dim, dtype=None: ours._safe_softmax(self if dtype is None else self.to(dtype), dim)
)


@spells("_safe_softmax")
def _(self: Any, dim: int) -> tuple:
    return _safe_softmax, (self, dim), {}, None


# --- dropout ---


@define("native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)")
def _native_dropout(x: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """In one operator where there are numbers to draw."""
    is_drawn = train is not False and 0 < p < 1 and x.numel() > 0
    return ours._fused_dropout(x, p) if is_drawn else taeda.native_dropout(x, p, train)


@define("native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor")
def _dropout_gradient(gy: Tensor, mask: Tensor, scale: float) -> Tensor:
    """In one operator where the arguments are those of native_dropout's backward."""
    usual = mask.dtype == taeda.bool and gy.shape == mask.shape
    usual = usual and gy.is_floating_point()
    return ours._dropout_backward(gy, mask, scale) if usual else gy * mask * scale


@spells("_fused_dropout")
def _(x: Any, p: float, generator: Any = None) -> tuple:
    if generator is not None:
        return ours._fused_dropout.default, (x, p), {"generator": generator}, None
    return _native_dropout, (x, p, True), {}, None


@spells("_dropout_backward")
def _(gy: Any, mask: Any, scale: float) -> tuple:
    return _dropout_gradient, (gy, mask, scale), {}, None


# --- attention ---

_GRADIENTS = "(Tensor grad_query, Tensor grad_key, Tensor grad_value)"


@define(
    "_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, "
    "Tensor key, Tensor value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, "
    f"Tensor? attn_mask=None, float? scale=None) -> {_GRADIENTS}"
)
def _attention_backward(*args: Any, attn_mask: Any = None, scale: float | None = None) -> tuple:
    *tensors, _, causal = args
    scale = tensors[1].shape[-1] ** -0.5 if scale is None else scale
    backward = ours._scaled_dot_product_flash_attention_for_cpu_backward
    return backward(*tensors, attn_mask, causal, scale, False)[:3]


@spells("_scaled_dot_product_flash_attention_for_cpu_backward")
def _(*args: Any) -> tuple:
    *tensors, mask, causal, scale, of_mask = args
    if of_mask:
        own = ours._scaled_dot_product_flash_attention_for_cpu_backward.default
        return own, args, {}, None
    kwargs = {"attn_mask": mask, "scale": scale}
    empty = tensors[1]  # in the place of the mask's gradient, which nobody reads
    return _attention_backward, (*tensors, 0.0, causal), kwargs, lambda r: (*r, like(empty, (0,)))


@define(
    "_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, "
    "Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, "
    "Tensor? dropout_mask=None, *, float? scale=None, bool enable_gqa=False) -> (Tensor, Tensor)"
)
def _attention_math(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, p: float = 0.0,
                    causal: bool = False, dropout_mask: Tensor | None = None, *,
                    scale: float | None = None, enable_gqa: bool = False) -> tuple:  # fmt: skip
    """The outputs and the weights, as dropout leaves them."""
    if enable_gqa:
        k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        mask = taeda.ones(scores.shape[-2:], dtype=taeda.bool, device=q.device).tril()
        mask = taeda.zeros(mask.shape, dtype=q.dtype, device=q.device).masked_fill(
            ~mask, -taeda.inf
        )
    if mask is not None:
        scores = scores + mask
    weights = _safe_softmax(scores, -1) if mask is not None else scores.softmax(-1)
    if dropout_mask is not None:
        weights = weights.masked_fill(~dropout_mask, 0.0)
        return weights @ (v / (1 - p)), weights
    weights = functional("dropout")(weights, p) if p else weights
    return weights @ v, weights


_CUDA_RESULTS = (
    "(Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, "
    "SymInt max_k, Tensor philox_seed, Tensor philox_offset, Tensor debug_attn_mask)"
)
#: PyTorch's operators for CUDA devices, which lists of what a checkpoint keeps name.
_ON_CUDA = {
    "flash": "float dropout_p=0.0, bool is_causal=False, bool return_debug_mask=False, *, "
    f"float? scale=None) -> {_CUDA_RESULTS}",
    "cudnn": "Tensor? attn_bias, bool compute_log_sumexp, float dropout_p=0.0, "
    "bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> "
    f"{_CUDA_RESULTS}",
    "efficient": "Tensor? attn_bias, bool compute_log_sumexp, float dropout_p=0.0, "
    "bool is_causal=False, *, float? scale=None) -> "
    "(Tensor output, Tensor log_sumexp, Tensor philox_seed, Tensor philox_offset)",
}


def _on_cuda(kind: str) -> None:
    name = f"_scaled_dot_product_{kind}_attention"

    @define(f"{name}(Tensor query, Tensor key, Tensor value, {_ON_CUDA[kind]}")
    def _(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"aten::{name}: an operator of PyTorch's for CUDA devices; "
            "torch.nn.functional.scaled_dot_product_attention runs on every device"
        )


for _name in _ON_CUDA:
    _on_cuda(_name)


# --- losses ---

_NLL_LOSS = (
    "(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> "
    "(Tensor output, Tensor total_weight)"
)


@define(f"nll_loss2d_forward{_NLL_LOSS}")
@define(f"nll_loss_forward{_NLL_LOSS}")
def _nll_loss_forward(
    x: Tensor, target: Tensor, weight: Any, reduction: int, ignored: int
) -> tuple:
    """The loss, and the sum of the weights of the targets that count."""
    name = REDUCTIONS[reduction]
    loss = functional("nll_loss")(x, target, weight, ignore_index=ignored, reduction=name)
    if name == "none":
        return loss, x.new_zeros(())
    kept = target != ignored
    each = x.new_ones(()).expand_as(kept) if weight is None else weight[target.where(kept, 0)]
    return loss, (each * kept).sum()


@spells("_cross_entropy")
def _(x: Any, target: Any, weight: Any, ignored: int, how: str, smoothing: float) -> tuple:
    """The loss of the logarithms of the probabilities; the gradient reads log(sum(exp(row))) and
    the sum of the targets' weights."""
    recorded = taeda.is_grad_enabled() and x.requires_grad
    if smoothing:
        own = ours._cross_entropy.default
        return own, (x, target, weight, ignored, how, smoothing), {}, None
    log_p = aten._log_softmax(x, 1, False)
    args = (log_p, target, weight, REDUCTIONS.index(how), ignored)

    def restore(results: Any) -> tuple:
        loss, total = results
        wider = taeda.float64 if x.dtype is taeda.float64 else taeda.float32
        lse = aten.logsumexp(x, [1]) if recorded else like(total, (x.shape[0],))
        return loss, lse.to(wider), total.to(wider)

    return aten.nll_loss_forward.default, args, {}, restore


@spells("cross_entropy_backward")
def _(
    gy: Any,
    x: Any,
    target: Any,
    weight: Any,
    lse: Any,
    total: Any,
    ignored: int,
    how: str,
    smoothing: float,
) -> tuple:
    """The two steps of PyTorch's; the logarithms of the probabilities are made again."""
    if smoothing:
        given = (gy, x, target, weight, lse, total, ignored, how, smoothing)
        return ours.cross_entropy_backward.default, given, {}, None
    log_p = aten.sub.Tensor(x, aten.unsqueeze(lse.to(x.dtype), 1))
    args = (gy, log_p, target, weight, REDUCTIONS.index(how), ignored, total.to(x.dtype))

    def restore(gradient: Any) -> Any:
        return aten._log_softmax_backward_data(gradient, log_p, 1, x.dtype)

    return aten.nll_loss_backward.default, args, {}, restore


@spells("_move_running_")
def _(average: Any, value: Any, momentum: float, scale: float) -> tuple:
    """Two operators that write the running average."""
    aten.mul_.Tensor(average, 1 - momentum)
    return aten.add_.Tensor, (average, value), {"alpha": momentum * scale}, None


def _loss(name: str, schema: str, tensors: str = "Tensor self, Tensor target") -> None:
    """PyTorch's operator of a loss whose `reduction` is a number."""

    @define(f"{name}({tensors}, {schema}) -> Tensor")
    def _(*args: Any, **kwargs: Any) -> Tensor:
        given = dict(zip(names, args[count:])) | kwargs
        how = REDUCTIONS[given.pop("reduction", 1)]
        return getattr(taeda.nn.functional, name)(*args[:count], reduction=how, **given)

    names = [argument.split("=")[0].split()[-1] for argument in schema.split(", ")]
    count = tensors.count("Tensor")


_loss("l1_loss", "int reduction=1")
_loss("nll_loss", "Tensor? weight=None, int reduction=1, SymInt ignore_index=-100")
_loss("kl_div", "int reduction=1, *, bool log_target=False")
_loss("hinge_embedding_loss", "float margin=1.0, int reduction=1")
_loss(
    "poisson_nll_loss",
    "bool log_input, bool full, float eps, int reduction",
    "Tensor input, Tensor target",
)
for _name in ("margin_ranking_loss", "cosine_embedding_loss"):
    _inputs = "Tensor input1, Tensor input2, Tensor target"
    _loss(_name, "float margin=0.0, int reduction=1", _inputs)
_loss(
    "triplet_margin_loss",
    "float margin=1.0, float p=2, float eps=1e-06, bool swap=False, int reduction=1",
    "Tensor anchor, Tensor positive, Tensor negative",
)
_loss("mse_loss", "int reduction=1")
_loss("smooth_l1_loss", "int reduction=1, float beta=1.0")
_loss("huber_loss", "int reduction=1, float delta=1.0")
_loss("binary_cross_entropy", "Tensor? weight=None, int reduction=1")
_loss(
    "binary_cross_entropy_with_logits",
    "Tensor? weight=None, Tensor? pos_weight=None, int reduction=1",
)
_loss("soft_margin_loss", "int reduction=1")
_loss("multi_margin_loss", "Scalar p=1, Scalar margin=1, Tensor? weight=None, int reduction=1")


# --- pooling ---

_pool = define("_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor")(
    lambda x, sizes: ours._adaptive_avg_pool2d(x, sizes)
)
_pool_gradient = define("_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor")(
    lambda gy, x: ours.adaptive_avg_pool2d_backward(gy, x.shape)
)
define("_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor")(
    lambda x, sizes: aten.adaptive_avg_pool3d(x, sizes)
)


def _row(sizes: Any, of_height: int) -> list:
    """A vector's setting as that of a matrix of one row; nothing stays nothing."""
    return [of_height, *sizes] if len(sizes) else []


@spells("aten::avg_pool1d")
def _(x: Any, kernel: Any, stride: Any = (), padding: Any = (0,), *rest: Any) -> tuple:
    args = (x.unsqueeze(-2), _row(kernel, 1), _row(stride, 1), _row(padding, 0), *rest)
    return aten.avg_pool2d.default, args, {}, lambda y: y.squeeze(-2)


@spells("aten::adaptive_avg_pool1d")
def _(x: Any, sizes: Any) -> tuple:
    return _pool, (x.unsqueeze(-2), _row(sizes, 1)), {}, lambda y: y.squeeze(-2)


@spells("aten::adaptive_max_pool1d")
def _(x: Any, sizes: Any) -> tuple:
    restore = lambda r: tuple(y.squeeze(-2) for y in r)  # noqa: E731
    return aten.adaptive_max_pool2d.default, (x.unsqueeze(-2), _row(sizes, 1)), {}, restore


@spells("_adaptive_avg_pool2d")
def _(x: Any, sizes: Any) -> tuple:
    if all(size == 1 for size in sizes):
        return aten.mean.dim, (x, [-1, -2], True), {}, None
    return _pool, (x, sizes), {}, None


@spells("adaptive_avg_pool2d_backward")
def _(gy: Any, sizes: Any) -> tuple:
    return _pool_gradient, (gy, like(gy, sizes)), {}, None


# --- activations ---


@define(
    "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, "
    "bool self_is_result) -> Tensor"
)
def _leaky_relu_backward(gy: Tensor, x: Tensor, slope: Any, is_result: bool) -> Tensor:
    return ours.leaky_relu_grad0(gy, x, negative_slope=slope)


@spells("leaky_relu_grad0")
def _(gy: Any, x: Any, *, negative_slope: Any = 0.01) -> tuple:
    return _leaky_relu_backward, (gy, x, negative_slope, False), {}, None


@define(
    "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor"
)
def _softplus_backward(gy: Tensor, x: Tensor, beta: Any, threshold: Any) -> Tensor:
    return ours.softplus_grad0(gy, x, beta=beta, threshold=threshold)


@spells("softplus_grad0")
def _(gy: Any, x: Any, *, beta: Any = 1, threshold: Any = 20) -> tuple:
    return _softplus_backward, (gy, x, beta, threshold), {}, None


define("_prelu_kernel(Tensor self, Tensor weight) -> Tensor")(
    lambda x, weight: ours.prelu_broadcast(x, weight)
)

define("log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)")(
    lambda x: (ours.logsigmoid(x), x.new_empty(0))
)
_log_sigmoid_backward = define(
    "log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor"
)(lambda gy, x, buffer: ours.logsigmoid_grad0(gy, x))


@spells("logsigmoid_grad0")
def _(gy: Any, x: Any) -> tuple:
    return _log_sigmoid_backward, (gy, x, like(x, (0,))), {}, None


@define(
    "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, "
    "bool is_result, Tensor self_or_result) -> Tensor"
)
def _elu_backward(gy: Tensor, alpha: Any, scale: Any, input_scale: Any, is_result: bool,
                  x: Tensor) -> Tensor:  # fmt: skip
    if is_result:
        negative = gy * input_scale * (x + alpha * scale)
        return negative.where(x <= 0, gy * scale)
    return ours.elu_grad0(gy, x, alpha=alpha, scale=scale, input_scale=input_scale)


@spells("elu_grad0")
def _(gy: Any, x: Any, *, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> tuple:
    return _elu_backward, (gy, alpha, scale, input_scale, False, x), {}, None
