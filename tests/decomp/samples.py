"""Calls of ATen operators, by overload, over arguments that `case` makes for either library.

``x(2, 3)`` is a tensor of normal numbers, ``u`` of numbers in (0, 1), ``i(5, ...)`` of integers
below 5, ``b`` of truth values. Equal names and sizes give equal numbers; a digit behind the name
makes other ones: ``x1(2, 3)``.
"""

from __future__ import annotations

import functools
import re
import zlib
from typing import Any

import numpy as np

CALLS = """
silu x(3,4)
silu_backward x(3,4), x1(3,4)
gelu x(3,4)
gelu x(3,4), approximate='tanh'
gelu_backward x(3,4), x1(3,4)
gelu_backward x(3,4), x1(3,4), approximate='tanh'
hardsigmoid 4*x(3,4)
hardsigmoid_backward x(3,4), 4*x1(3,4)
hardswish 4*x(3,4)
hardswish_backward x(3,4), 4*x1(3,4)
hardtanh x(3,4), -0.5, 0.7
hardtanh_backward x(3,4), x1(3,4), -0.5, 0.7
leaky_relu x(3,4), 0.2
leaky_relu_backward x(3,4), x1(3,4), 0.2, False
elu x(3,4), 0.5, 2., 1.5
elu_backward x(3,4), 0.5, 2., 1.5, False, x1(3,4)
elu_backward x(3,4), 0.5, 2., 1.5, True, x1(3,4)
selu x(3,4)
celu x(3,4), 0.5
softplus 9*x(3,4), 2., 10.
softplus_backward x(3,4), 9*x1(3,4), 2., 10.
mish x(3,4)
mish_backward x(3,4), x1(3,4)
sigmoid_backward x(3,4), u(3,4)
tanh_backward x(3,4), u(3,4)
threshold x(3,4), 0.3, 9.
threshold_backward x(3,4), x1(3,4), 0.3
hardshrink x(3,4), 0.4
softshrink x(3,4), 0.4
log_sigmoid_forward x(3,4)
log_sigmoid_backward x(3,4), x1(3,4), (-x1(3,4).abs()).exp()
_prelu_kernel x(3,4), x1(4)
_prelu_kernel_backward x(3,4), x1(3,4), x2(3,4)
glu x(3,4), 1
glu_backward x(3,2), x1(3,4), 1
relu6 4*x(3,4)
rrelu_with_noise x(3,4), x1(3,4)
_softmax x(3,4), 1, False
_log_softmax x(3,4), 0, False
_safe_softmax x(3,4), 1
_softmax_backward_data x(3,4), u(3,4), 1, T.float32
_log_softmax_backward_data x(3,4), -u(3,4), 1, T.float32
softmax.int x(3,4), -1
log_softmax.int x(3,4), -1
mse_loss x(3,4), x1(3,4)
mse_loss x(3,4), x1(3,4), 2
mse_loss_backward s(), x(3,4), x1(3,4), 1
mse_loss_backward x2(3,4), x(3,4), x1(3,4), 0
l1_loss x(3,4), x1(3,4)
smooth_l1_loss x(3,4), x1(3,4), 1, 0.5
smooth_l1_loss_backward s(), x(3,4), x1(3,4), 1, 0.5
huber_loss x(3,4), x1(3,4), 0, 0.5
huber_loss_backward s(), x(3,4), x1(3,4), 1, 0.5
binary_cross_entropy u(3,4), u1(3,4)
binary_cross_entropy u(3,4), u1(3,4), u2(4), 2
binary_cross_entropy_backward s(), u(3,4), u1(3,4), u2(4), 1
binary_cross_entropy_with_logits x(3,4), u1(3,4), u2(4), u3(4), 1
soft_margin_loss x(3,4), x1(3,4).sign(), 1
soft_margin_loss_backward s(), x(3,4), x1(3,4).sign(), 1
nll_loss_forward x(3,4), i(4,3), None, 1, -100
nll_loss_forward x(3,4), i(4,3), u(4), 1, 1
nll_loss_forward x(3,4), i(4,3), u(4), 2, 1
nll_loss_forward x(3,4), i(4,3), None, 0, -100
nll_loss_backward s(), x(3,4), i(4,3), u(4), 1, 1, s()
nll_loss_backward x1(3), x(3,4), i(4,3), None, 0, -100, s()
nll_loss2d_forward x(2,4,3,3), i(4,2,3,3), u(4), 1, -100
nll_loss2d_forward x(2,4,3,3), i(4,2,3,3), None, 0, 2
nll_loss2d_backward s(), x(2,4,3,3), i(4,2,3,3), u(4), 1, 2, s()
nll_loss_nd x(3,4), i(4,3)
cross_entropy_loss x(3,4), i(4,3), None, 1, -100, 0.1
multilabel_margin_loss_forward x(3,4), i(5,3,4)-1, 1
kl_div x(3,4), u(3,4)
hinge_embedding_loss x(3,4), x1(3,4).sign()
margin_ranking_loss x(3), x1(3), x2(3).sign()
cosine_embedding_loss x(3,4), x1(3,4), x2(3).sign()
triplet_margin_loss x(3,4), x1(3,4), x2(3,4)
native_layer_norm x(3,4), [4], u(4), x1(4), 1e-5
native_layer_norm x(3,4,2), [4,2], None, None, 1e-5
native_layer_norm_backward x(3,4), x1(3,4), [4], x2(3,1), u(3,1), u(4), x(4), [True,True,True]
_fused_rms_norm x(3,4), [4], u(4), None
native_group_norm x(2,4,3), u(4), x1(4), 2, 4, 3, 2, 1e-5
native_group_norm_backward x(2,4,3), x1(2,4,3), x2(2,2), u(2,2), u(4), 2, 4, 3, 2, [True,True,True]
native_batch_norm x(3,4,2), u(4), x1(4), x2(4), u(4), True, 0.1, 1e-5
native_batch_norm x(3,4,2), u(4), x1(4), x2(4), u(4), False, 0.1, 1e-5
_native_batch_norm_legit x(3,4,2), u(4), x1(4), x2(4), u(4), True, 0.1, 1e-5
_native_batch_norm_legit.no_stats x(3,4,2), u(4), x1(4), True, 0.1, 1e-5
_native_batch_norm_legit_no_training x(3,4,2), u(4), x1(4), x2(4), u(4), 0.1, 1e-5
_native_batch_norm_legit_functional x(3,4,2), u(4), x1(4), x2(4), u(4), True, 0.1, 1e-5
_batch_norm_with_update x(3,4,2), u(4), x1(4), x2(4), u(4), 0.1, 1e-5
_batch_norm_no_update x(3,4,2), u(4), x1(4), x2(4), u(4), 0.1, 1e-5
native_batch_norm_backward x(3,4), x1(3,4), u(4), x(4), u1(4), x2(4), u2(4), True, 1e-5, [True,True,True]
native_batch_norm_backward x(3,4), x1(3,4), u(4), x(4), u1(4), x(0), x(0), False, 1e-5, [True,True,True]
native_dropout_backward x(3,4), b(3,4), 2.
_weight_norm_interface x(3,4), u(3,1)
norm_except_dim x(3,4,2), 2, 1
renorm x(3,4), 2., 0, 1.
addcmul x(3,4), x1(3,4), x2(4), value=0.5
addcdiv x(3,4), x1(3,4), u(4), value=0.5
lerp.Scalar x(3,4), x1(3,4), 0.7
lerp.Tensor x(3,4), x1(3,4), u(3,4)
rsub.Tensor x(3,4), x1(3,4), alpha=2
rsub.Scalar x(3,4), 2., 3.
xlogy.Tensor x(3,4), u(3,4)
xlogy.Scalar_Other x(3,4), 2.
xlogy.Scalar_Self 2., u(3,4)
special_xlog1py x(3,4), u(3,4)
special_entr x(3,4)
frac 3*x(3,4)
sinc x(3,4)
floor_divide 9*x(3,4), x1(3,4)
heaviside x(3,4), x1(4)
sgn x(3,4)
isfinite x(3,4)
isposinf x(3,4)
isneginf x(3,4)
nan_to_num x(3,4)
logaddexp x(3,4), x1(3,4)
logaddexp2 x(3,4), x1(3,4)
logsumexp x(3,4), [1], True
clamp_min x(3,4), 0.2
clamp_max.Tensor x(3,4), x1(4)
masked_fill.Scalar x(3,4), b(3,4), 9.
masked_fill.Tensor x(3,4), b(4), s()
logit u(3,4), 0.2
logit_backward x(3,4), u(3,4), 0.2
logit_backward x(3,4), u(3,4)
addmm x(3,5), x1(3,4), x2(4,5), beta=0.5, alpha=2
baddbmm x(2,3,5), x1(2,3,4), x2(2,4,5), beta=0.5, alpha=2
addmv x(3), x1(3,4), x2(4), beta=0.5, alpha=2
addr x(3,4), x1(3), x2(4), beta=0.5, alpha=2
mv x(3,4), x1(4)
dot x(4), x1(4)
vdot x(4), x1(4)
sum x(3,4)
all b(3,4)
all.dim b(3,4), 1, True
all.dims b(3,4), [0,1]
aminmax x(3,4), dim=1
std.correction x(3,4), [1], correction=0, keepdim=True
std_mean.correction x(3,4), [1], correction=0
var.correction x(3,4), [0], correction=1
var_mean.correction x(3,4), [0], correction=2
_euclidean_dist x(3,4), x1(2,4)
linear x(3,4), x1(2,4), x2(2)
linalg_vector_norm x(3,4), 3., [1]
cumprod x(3,4), 1
count_nonzero i(2,3,4)
nansum x(3,4), [1]
t x(3,4)
transpose.int x(3,4,2), -1, 0
squeeze x(3,1,2)
squeeze.dim x(3,1,2), 1
stack [x(3,4), x1(3,4)], -1
unbind.int x(3,4), 1
split.Tensor x(5,4), 2
split_with_sizes x(5,4), [2,3], 0
split_with_sizes_copy x(5,4), [2,3]
unsafe_split.Tensor x(5,4), 2
unbind_copy.int x(3,4), 1
narrow_copy x(3,4), 1, 1, 2
squeeze_copy.dim x(3,1), 1
expand_copy x(3,1), [3,4]
permute_copy x(3,4), [1,0]
transpose_copy.int x(3,4), 0, 1
t_copy x(3,4)
view_copy x(3,4), [12]
slice_copy.Tensor x(3,4), 1, 0, 4, 2
select_copy.int x(3,4), 1, 2
diagonal_copy x(3,4), 1
unfold_copy x(3,4), 1, 2, 1
fill.Scalar x(3,4), 2.
fill.Tensor x(3,4), s()
zero x(3,4)
tril x(3,4), 1
triu x(3,4), -1
diag_embed x(3,4), 1
diagonal_backward x(3), [3,4], 1, 0, 1
diagonal_scatter x(3,4), x1(3), 1
select_scatter x(3,4), x1(3), 1, -1
slice_scatter x(3,4), x1(3,2), 1, 0, 4, 2
select_backward x(3), [3,4], 1, 2
slice_backward x(3,2), [3,4], 1, 0, 4, 2
unfold_backward x(3,3,2), [3,4], 1, 2, 1
as_strided_scatter x(3,4), x1(2,2), [2,2], [4,2], 1
index_add x(3,4), 1, i(4,5), x1(3,5), alpha=2
index_copy x(3,4), 1, T.tensor([2,0]), x1(3,2)
index_fill.int_Scalar x(3,4), 1, T.tensor([2,0]), 9.
index_fill.int_Tensor x(3,4), 1, T.tensor([2,0]), s()
index_select x(3,4), 1, i(4,3)
_unsafe_index.Tensor x(3,4), [None, i(4,2)]
_unsafe_index_put x(3,4), [i(3,2)], x1(2,4), True
_unsafe_masked_index x(3,4), b(2), [i(3,2), i(4,2)], 7.
_unsafe_masked_index_put_accumulate x(3,4), b(2), [i(3,2), i(4,2)], x1(2)
take x(3,4), i(12,5)
embedding x(5,4), i(5,2,3)
embedding_dense_backward x(2,3,4), i(5,2,3), 5, 1, False
embedding_dense_backward x(2,3,4), i(5,2,3), 5, -1, True
pixel_shuffle x(2,8,3,3), 2
pixel_unshuffle x(2,2,4,6), 2
channel_shuffle x(2,6,3,3), 3
block_diag [x(2,3), x1(4), x2(1,2)]
column_stack [x(3), x1(3,2)]
roll x(3,4), [1,2], [0,1]
trace_backward s(), [3,4]
index_select_backward x(3,2), [3,4], 1, i(4,2)
value_selecting_reduction_backward x(3), 1, i(4,3), [3,4], False
masked_select_backward x(12), x1(3,4), b(3,4)
isin.Tensor_Tensor i(5,3,4), T.tensor([1,3])
zeros [3,4]
ones [3,4], dtype=T.int64
zeros_like x(3,4)
ones_like x(3,4)
new_zeros x(3,4), [2]
new_full x(3,4), [2], 3.
arange 5
arange.start 1., 4.
eye 3
eye.m 3, 4
linspace -1., 2., 7
reflection_pad1d x(2,3,4), [2,1]
reflection_pad2d x(2,4,4), [1,2,0,3]
reflection_pad3d x(2,3,3,3), [1,2,0,2,1,1]
replication_pad1d x(2,3,4), [2,1]
replication_pad2d x(2,4,4), [1,2,0,3]
replication_pad3d x(2,3,3,3), [1,2,0,2,1,1]
reflection_pad1d_backward x(3,7), x1(3,4), [2,1]
reflection_pad2d_backward x(2,7,7), x1(2,4,4), [1,2,0,3]
replication_pad2d_backward x(2,7,7), x1(2,4,4), [1,2,0,3]
constant_pad_nd x(3,4), [1,-1,2,0], 5.
upsample_nearest1d x(2,3,4), [7]
upsample_nearest2d x(2,3,4,5), [7,3]
upsample_nearest2d.vec x(2,3,4,5), None, [1.5,2.]
upsample_nearest3d x(1,2,3,4,5), [2,6,5]
_upsample_nearest_exact1d x(2,3,4), [7]
_upsample_nearest_exact2d x(2,3,4,5), [7,3]
_upsample_nearest_exact2d.vec x(2,3,4,5), None, [1.5,2.]
upsample_linear1d x(2,3,4), [7], False
upsample_bilinear2d x(2,3,4,5), [7,3], True
upsample_bilinear2d.vec x(2,3,4,5), None, False, [1.5,2.]
upsample_trilinear3d x(1,2,3,4,5), [2,6,5], False
upsample_bicubic2d.vec x(1,2,4,5), [7,6], True, None
affine_grid_generator x(2,2,3), [2,1,4,5], True
max_unpool2d x(1,1,2,2), T.tensor([[[[0,3],[8,15]]]]), [4,4]
max_pool2d_with_indices_backward x(1,1,2,2), x1(1,1,4,4), [2,2], [2,2], [0,0], [1,1], False, T.tensor([[[[0,3],[8,15]]]])
_adaptive_avg_pool2d x(2,3,5,7), [3,2]
avg_pool1d x(2,3,8), [3], [2], [1]
adaptive_avg_pool1d x(2,3,7), [3]
col2im x(2,12,20), [5,6], [2,2], [1,1], [0,0], [1,1]
col2im x(12,9), [5,6], [2,2], [2,1], [1,0], [2,2]
upsample_bicubic2d x(1,2,4,5), [7,3], False
im2col x(2,3,5,6), [2,3], [1,1], [1,0], [2,1]
_embedding_bag x(5,4), i(5,6), T.tensor([0,2,5])
_embedding_bag x(5,4), i(5,6), T.tensor([0,2,5]), False, 1
embedding_bag x(5,4), i(5,6), T.tensor([0,2,5])
embedding_bag.padding_idx x(5,4), i(5,6), T.tensor([0,2,5]), False, 2, False, None, False, 1
_trilinear x(3,4), x1(3,2), x2(5,4,2), [1,3], [1,2], [0], [2,3]
_ctc_loss x(6,2,4).log_softmax(-1), T.tensor([[1,2],[3,3]]), [6,6], [2,2]
_ctc_loss.Tensor x(6,2,4).log_softmax(-1), T.tensor([1,2,3,3]), T.tensor([6,6]), T.tensor([2,2]), 0, True
_fused_adagrad_ [x(3,4)], [x1(3,4)], [u(3,4)], [T.tensor(2.)], lr=0.1, lr_decay=0.2, weight_decay=0.3, eps=1e-8, maximize=True
_conj_copy T.complex(x(3,4), x1(3,4))
_neg_view_copy x(3,4)
_reshape_alias_copy x(3,4), [4,3], [1,4]
slow_conv_dilated2d x(1,2,6,5), x1(3,2,2,2), [2,2], x(3), [1,2], [1,0], [2,1]
slow_conv_transpose2d x(1,2,4,5), x1(2,3,2,2), [2,2], x(3), [2,2], [1,0], [1,0], [1,1]
slow_conv_transpose3d x(1,2,3,4,5), x1(2,3,2,2,2), [2,2,2]
_pad_enum x(1,2,4,5), [1,2,1,1], 0
_pad_enum x(1,2,4,5), [1,2,1,1], 1
_pad_enum x(1,2,4,5), [1,2,1,1], 2
_pad_enum x(1,2,4,5), [1,2,1,1], 3, 2.5
lstm.input x(5,2,3), [x1(1,2,4), x2(1,2,4)], [x(16,3), x(16,4), x(16), x1(16)], True, 1, 0., False, False, False
gru.input x(5,2,3), x1(1,2,4), [x(12,3), x(12,4), x(12), x1(12)], True, 1, 0., False, False, False
lstm_cell x(2,3), [x1(2,4), x2(2,4)], x(16,3), x(16,4), x(16), x1(16)
gru_cell x(2,3), x1(2,4), x(12,3), x(12,4), x(12), x1(12)
rnn_tanh_cell x(2,3), x1(2,4), x(4,3), x(4,4), x3(4), x1(4)
multilabel_margin_loss x(3,4), i(5,3,4)-1, 2
nll_loss2d x(2,4,3,3), i(4,2,3,3)
fake_quantize_per_tensor_affine x(3,4), 0.1, 3, 0, 20
fake_quantize_per_tensor_affine_cachemask x(3,4), 0.1, 3, 0, 20
fake_quantize_per_channel_affine x(3,4), u(4), T.tensor([0,1,2,3]).int(), 1, 0, 9
absolute x(3,4)
clip x(3,4), 0., 1.
divide.Tensor x(3,4), x1(3,4)
multiply.Scalar x(3,4), 2.
subtract.Tensor x(3,4), x1(3,4), alpha=2
special_expit x(3,4)
special_xlogy.other_scalar x(3,4), 3.
special_log_softmax x(3,4), 1
greater_equal.Scalar x(3,4), 0.
arctan2 x(3,4), x1(3,4)
trapz.dx x(3,4)
matrix_exp x(3,3)
"""  # noqa: E501


def lines() -> list[str]:
    """One call each."""
    return CALLS.strip().splitlines()


@functools.cache
def _numbers(kind: str, count: int, shape: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(zlib.crc32(repr((kind, shape)).encode()))
    match kind[0]:
        case "u":
            return rng.uniform(0.05, 0.95, shape).astype(np.float32)
        case "i":
            return rng.integers(0, count, shape)
        case "b":
            return rng.integers(0, 2, shape).astype(bool)
    return rng.standard_normal(shape).astype(np.float32)


def case(line: str, library: Any) -> tuple[str, tuple, dict]:
    """The overload of a line and its arguments as the library's tensors."""
    name, _, text = line.partition(" ")

    def tensor(kind: str) -> Any:
        def make(*shape: int) -> Any:
            count, shape = (shape[0], shape[1:]) if kind[0] == "i" else (0, shape)
            return library.tensor(_numbers(kind, count, shape))

        return make

    known = {k: tensor(k) for k in re.findall(r"\b([xuib]\d?)\(", text)}
    known |= {"T": library, "s": lambda: library.tensor(0.7)}
    args, kwargs = eval(f"(lambda *a, **k: (a, k))({text})", known)
    return name, args, kwargs


def overload(library: Any, name: str) -> Any:
    """ "lerp.Scalar" of torch.ops.aten."""
    packet, _, rest = name.partition(".")
    return getattr(getattr(library.ops.aten, packet), rest or "default")
