"""Operators that PyTorch's table has in forms which taeda's lacks: outs, and what is a function or
a method here. Each gives what PyTorch's gives, and has a decomposition."""

import pytest

import taeda
from taeda._decomp import core_aten_decompositions

torch = pytest.importorskip("torch")

X = [[0.5, -1.0, 2.0, 0.25], [1.5, 0.0, -0.75, 3.0]]
PICTURE = [[[[float(i + 4 * j) / 7 for i in range(4)] for j in range(4)]]]


def tensors(lib):
    return {
        "x": lib.tensor(X),
        "y": lib.tensor(X).flip(1).contiguous(),
        "p": lib.tensor(PICTURE),
        "n": lib.tensor([[1, 3], [2, 0]]),
        "o": lib.empty(0),
    }


OUTS = {
    "mse_loss.out": lambda aten, x, y, o, **_: aten.mse_loss.out(x, y, out=o),
    "huber_loss.out": lambda aten, x, y, o, **_: aten.huber_loss.out(x, y, 1, 0.5, out=o),
    "pixel_shuffle.out": lambda aten, p, o, **_: aten.pixel_shuffle.out(
        p.repeat(1, 4, 1, 1), 2, out=o
    ),
    "glu.out": lambda aten, x, o, **_: aten.glu.out(x, 1, out=o),
    "reflection_pad2d.out": lambda aten, p, o, **_: aten.reflection_pad2d.out(
        p, [1, 1, 2, 0], out=o
    ),
    "zeros_like.out": lambda aten, x, o, **_: aten.zeros_like.out(x, out=o),
    "new_full.out": lambda aten, x, o, **_: aten.new_full.out(x, [2, 2], 3.0, out=o),
    "special_xlog1py.self_scalar_out": lambda aten, p, o, **_: aten.special_xlog1py.self_scalar_out(
        2.0, p, out=o
    ),
    "squeeze_copy.dim_out": lambda aten, p, o, **_: aten.squeeze_copy.dim_out(p, 0, out=o),
    "block_diag.out": lambda aten, x, y, o, **_: aten.block_diag.out([x, y], out=o),
    "tanh_backward.grad_input": lambda aten, x, y, o, **_: aten.tanh_backward.grad_input(
        x, y.tanh(), grad_input=o
    ),
    "sigmoid_backward.grad_input": lambda aten, x, y, o, **_: aten.sigmoid_backward.grad_input(
        x, y.sigmoid(), grad_input=o
    ),
}
COMPOSITES = {
    "atleast_2d.Sequence": lambda aten, x, y, **_: aten.atleast_2d.Sequence([x[0], y])[0],
    "combinations": lambda aten, x, **_: aten.combinations(x[0]),
    "flatten_dense_tensors": lambda aten, x, p, **_: aten.flatten_dense_tensors([x, p]),
    "unflatten_dense_tensors": lambda aten, x, p, **_: aten.unflatten_dense_tensors(
        aten.flatten_dense_tensors([x, p]), [x, p]
    )[1],
    "frobenius_norm.dim": lambda aten, x, **_: aten.frobenius_norm.dim(x, [1]),
    "nuclear_norm": lambda aten, x, **_: aten.nuclear_norm(x),
    "isin.Tensor_Scalar": lambda aten, x, **_: aten.isin.Tensor_Scalar(x, 0.5),
    "isin.Scalar_Tensor": lambda aten, x, **_: aten.isin.Scalar_Tensor(0.5, x),
    "pad_sequence": lambda aten, x, **_: aten.pad_sequence([x[0], x[1, :2]], True, -1.0),
    "thnn_conv2d": lambda aten, p, **_: aten.thnn_conv2d(p, p[..., :2, :2].contiguous(), [2, 2]),
    "rrelu": lambda aten, x, **_: aten.rrelu(x),
    "special_ndtr": lambda aten, x, **_: aten.special_ndtr(x),
    "type_as": lambda aten, x, n, **_: aten.type_as(n, x),
    "_cast_Double": lambda aten, x, **_: aten._cast_Double(x),
    "__and__.Tensor": lambda aten, n, **_: aten.__and__.Tensor(n, n + 1),
    "__xor__.Scalar": lambda aten, n, **_: aten.__xor__.Scalar(n, 5),
    "cummaxmin_backward": lambda aten, x, **_: aten.cummaxmin_backward(
        x, x, x.cummax(1).indices, 1
    ),
    "gather_backward": lambda aten, x, n, **_: aten.gather_backward(n * 1.0, x, 1, n, False),
    "embedding_backward": lambda aten, p, n, **_: aten.embedding_backward(
        p[0, 0].reshape(2, 2, 4), n, 5, -1, False, False
    ),
    "infinitely_differentiable_gelu_backward": lambda aten, x, y, **_: (
        aten.infinitely_differentiable_gelu_backward(x, y)
    ),
    "_upsample_bilinear2d_aa.vec": lambda aten, p, **_: aten._upsample_bilinear2d_aa.vec(
        p, None, False, [0.5, 0.75]
    ),
    "_upsample_bicubic2d_aa.vec": lambda aten, p, **_: aten._upsample_bicubic2d_aa.vec(
        p, [2, 3], False, None
    ),
    "to_dense": lambda aten, x, **_: aten.to_dense(x.to_sparse()),
    "_convolution_mode": lambda aten, p, **_: aten._convolution_mode(
        p, p[..., :3, :3].contiguous(), None, [1, 1], "same", [1, 1], 1
    ),
}


def close(ours, theirs):
    assert str(ours.dtype) == str(theirs.dtype)
    assert taeda.allclose(ours, taeda.tensor(theirs.tolist(), dtype=ours.dtype), atol=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*OUTS, *COMPOSITES])
def test_a_form_gives_what_pytorchs_does(name):
    call = (OUTS | COMPOSITES)[name]
    core_aten_decompositions()  # defines what only PyTorch's table has
    close(call(taeda.ops.aten, **tensors(taeda)), call(torch.ops.aten, **tensors(torch)))


@pytest.mark.parametrize("name", [*OUTS, *COMPOSITES])
def test_a_form_is_in_pytorchs_table_and_ours(name):
    from torch._decomp import core_aten_decompositions as pytorchs

    operator, _, overload = name.partition(".")
    for lib, table in ((taeda, core_aten_decompositions()), (torch, pytorchs())):
        op = getattr(getattr(lib.ops.aten, operator), overload or "default")
        assert op in table


def test_a_form_into_an_out_runs_by_its_decomposition():
    out = taeda.empty(3)
    x, y = taeda.tensor(X), taeda.zeros(2, 4)
    run = core_aten_decompositions()[taeda.ops.aten.mse_loss.out]
    found = run(x, y, 0, out=out)
    assert found is out and taeda.equal(out, x * x)


def test_questions_about_tensors_are_operators():
    core_aten_decompositions()
    aten, x = taeda.ops.aten, taeda.ones(2, 3)
    assert aten.is_floating_point(x) and not aten.is_complex(x) and aten.size.int(x, 1) == 3
    assert aten.stride.int(x, 0) == 3 and aten.item(x.sum()) == 6.0
    assert aten.promote_types(taeda.int32, taeda.float16) == taeda.float16
    assert aten.result_type.Scalar(x, 2.5) == taeda.float32 and aten._is_zerotensor(x) is False
