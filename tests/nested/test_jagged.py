"""Nested tensors of the jagged layout beside PyTorch's: shapes, values, gradients, errors."""

import copy
import io
import pickle
import re

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

ROWS = [np.random.default_rng(0).standard_normal((n, 3)).astype(np.float32) for n in (2, 3, 1)]
WEIGHT = np.random.default_rng(1).standard_normal((4, 3)).astype(np.float32)


def nested(lib, **options):
    return lib.nested.nested_tensor(list(map(lib.tensor, ROWS)), layout=lib.jagged, **options)


def heads(lib):
    parts = [lib.tensor(r).unsqueeze(1) * lib.tensor([[1.0], [2.0]]) for r in ROWS]
    return lib.nested.as_nested_tensor(parts, layout=lib.jagged).transpose(1, 2)


def w(lib):
    return lib.tensor(WEIGHT)


def F(lib):
    return lib.nn.functional


DIFFERENTIABLE = {
    "add": lambda lib, x: x + x,
    "scalar": lambda lib, x: (1 - x) * 2 / 3,
    "row": lambda lib, x: x + lib.tensor([1.0, 2.0, 3.0]),
    "dense": lambda lib, x: x * lib.full((3, 1, 3), 2.0),
    "pointwise": lambda lib, x: F(lib).gelu(x.sin()).exp(),
    "dropout": lambda lib, x: F(lib).dropout(x, 0.5, False),
    "where": lambda lib, x: lib.where(x > 0, x, 0.0),
    "sum": lambda lib, x: x.sum(),
    "mean": lambda lib, x: x.mean(),
    "amax": lambda lib, x: x.amax(1),
    "linear": lambda lib, x: F(lib).linear(x, w(lib), lib.ones(4)),
    "matmul": lambda lib, x: x @ w(lib).t(),
    "layer_norm": lambda lib, x: F(lib).layer_norm(x, (3,)),
    "softmax": lambda lib, x: x.softmax(-1),
    "transpose": lambda lib, x: x.transpose(1, 2).sin().transpose(1, 2),
    "unsqueeze": lambda lib, x: x.unsqueeze(-1),
    "view": lambda lib, x: x.view(3, -1, 3, 1),
    "unflatten": lambda lib, x: x.unflatten(-1, (3, 1)).flatten(-2),
    "squeeze": lambda lib, x: x.unsqueeze(-1).squeeze(-1),
    "chunk": lambda lib, x: x.chunk(3, -1)[1],
    "cat": lambda lib, x: lib.cat([x, x.sin()], -1),
    "unbind": lambda lib, x: x.unbind()[1],
    "index": lambda lib, x: x[2],
    "padded": lambda lib, x: x.to_padded_tensor(0.5),
    "wider": lambda lib, x: lib.nested.to_padded_tensor(x, 0.0, (3, 5, 3)),
    "double": lambda lib, x: x.to(lib.float64),
    "clone": lambda lib, x: x.clone(),
}
OTHERS = {  # of which PyTorch has no gradient, or none is asked for
    "sum of ragged": lambda lib, x: x.sum(1),
    "keepdim": lambda lib, x: x.sum(1, keepdim=True),
    "log_softmax": lambda lib, x: F(lib).log_softmax(x, -1),
    "select": lambda lib, x: x.select(-1, 0),
    "slice": lambda lib, x: x[..., :2],
    "narrow": lambda lib, x: x.narrow(-1, 0, 2),
    "split": lambda lib, x: x.split([1, 2], -1)[1],
    "mean of rows": lambda lib, x: x.mean(1),
    "sum of elements": lambda lib, x: x.sum(-1),
    "softmax of ragged": lambda lib, x: x.softmax(1),
    "argmax": lambda lib, x: x.argmax(-1),
    "rms_norm": lambda lib, x: F(lib).rms_norm(x, (3,)),
    "written": lambda lib, x: x.clone().mul_(2),
    "copied": lambda lib, x: lib.zeros_like(x).copy_(x),
    "ones": lambda lib, x: lib.ones_like(x),
    "any": lambda lib, x: (x > 1).any(),
    "detach": lambda lib, x: x.detach(),
    "attention": lambda lib, x: (
        F(lib).scaled_dot_product_attention(heads(lib), heads(lib), heads(lib)).transpose(1, 2)
    ),
    "integers": lambda lib, x: lib.nested.nested_tensor(
        [lib.tensor(r) for r in ROWS], layout=lib.jagged, dtype=lib.int64
    ),
    "lists": lambda lib, x: lib.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=lib.jagged),
    "rows of a tensor": lambda lib, x: lib.nested.as_nested_tensor(w(lib), layout=lib.jagged),
    "another ragged dimension": lambda lib, x: lib.nested.nested_tensor(
        [lib.ones(2, 3), lib.zeros(2, 4)], layout=lib.jagged
    ),
    "embedding": lambda lib, x: F(lib).embedding(
        lib.nested.nested_tensor([lib.tensor([0, 1]), lib.tensor([3])], layout=lib.jagged), w(lib)
    ),
    "from offsets": lambda lib, x: lib.nested.nested_tensor_from_jagged(
        w(lib), lib.tensor([0, 1, 4])
    ),
    "from lengths": lambda lib, x: lib.nested.nested_tensor_from_jagged(
        w(lib), lengths=lib.tensor([3, 1])
    ),
    "with holes": lambda lib, x: lib.nested.nested_tensor_from_jagged(
        w(lib), lib.tensor([0, 2, 4]), lib.tensor([1, 2])
    ),
    "narrowed": lambda lib, x: lib.nested.narrow(
        w(lib), 1, lib.tensor([0, 1, 2, 0]), lib.tensor([2, 2, 1, 3]), layout=lib.jagged
    ),
    "masked_select": lambda lib, x: lib.nested.masked_select(w(lib), w(lib) > 0),
}


def parts(value):
    """The arrays of a result, one for each tensor of a nested one."""
    tensors = value.unbind() if value.is_nested else [value]
    return [t.detach().numpy() for t in tensors]


def shape(value):
    return [re.sub(r"j\d+", "j", str(n)) for n in value.shape]


@pytest.mark.parametrize("name", [*DIFFERENTIABLE, *OTHERS])
def test_values(name):
    ours, theirs = ((DIFFERENTIABLE | OTHERS)[name](lib, nested(lib)) for lib in (taeda, torch))
    assert shape(ours) == shape(theirs)
    assert str(ours.dtype) == str(theirs.dtype)
    assert ours.is_nested == theirs.is_nested
    for a, b in zip(parts(ours), parts(theirs), strict=True):
        np.testing.assert_allclose(a, b, 1e-5, 1e-6)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name):
    gradients = []
    for lib in (taeda, torch):
        x = nested(lib, requires_grad=True)
        y = DIFFERENTIABLE[name](lib, x)
        (y * 0.5).sin().sum().backward()
        gradients.append(x.grad.values().numpy())
    np.testing.assert_allclose(*gradients, 1e-4, 1e-6)


OF_ROWS = {
    "sum of ragged": lambda x: x.sum(0),
    "keepdim": lambda x: x.sum(0, keepdim=True),
    "mean of rows": lambda x: x.mean(0),
    "sum of elements": lambda x: x.sum(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "softmax of ragged": lambda x: x.softmax(0),
    "select": lambda x: x[:, 0],
    "slice": lambda x: x[:, :2],
    "narrow": lambda x: x[:, :2],
    "split": lambda x: x[:, 1:],
}


@pytest.mark.parametrize("name", OF_ROWS)
def test_gradients_are_those_of_each_tensor(name):
    x = nested(taeda, requires_grad=True)
    OTHERS[name](taeda, x).sin().sum().backward()
    rows = [torch.tensor(r, requires_grad=True) for r in ROWS]
    sum(OF_ROWS[name](row).sin().sum() for row in rows).backward()
    for ours, row in zip(x.grad.unbind(), rows, strict=True):
        np.testing.assert_allclose(ours.numpy(), row.grad.numpy(), 1e-5, 1e-6)


def test_a_module_is_trained():
    gradients = []
    for lib in (taeda, torch):
        layer = lib.nn.Linear(3, 4, bias=False)
        layer.weight.data.copy_(w(lib))
        layer(nested(lib)).relu().values().sum().backward()
        gradients.append(layer.weight.grad.numpy())
    np.testing.assert_allclose(*gradients, 1e-5, 1e-6)


def test_gradients_lead_to_the_parts():
    part = taeda.ones(2, 3, requires_grad=True)
    x = taeda.nested.as_nested_tensor([part, taeda.ones(1, 3)], layout=taeda.jagged)
    (x * 3).sum().backward()
    assert part.grad.tolist() == [[3.0] * 3] * 2


def test_what_a_tensor_is_asked():
    for ask in (
        "dim()", "ndim", "size(0)", "size(-1)", "numel()", "layout", "is_nested", "dtype", "device",
        "is_contiguous()", "requires_grad", "is_floating_point()", "lengths()", "_max_seqlen",
        "_min_seqlen", "__len__()", "offsets().tolist()",
    ):  # fmt: skip
        ours, theirs = (eval(f"x.{ask}", {"x": nested(lib)}) for lib in (taeda, torch))
        assert str(ours) == str(theirs), ask
    ours, theirs = (re.sub(r"j\d+", "j", repr(nested(lib))) for lib in (taeda, torch))
    assert ours == theirs


def test_shapes_are_equal_where_offsets_are_shared():
    x = nested(taeda)
    assert x.shape == (x + 1).shape
    assert x.size() != nested(taeda).size()
    with pytest.raises(RuntimeError, match="no size that is a number"):
        int(x.size(1))


ERRORS = {
    "ragged sizes": lambda lib, x: x + nested(lib),
    "batch": lambda lib, x: x.sum(0),
    "ragged and more": lambda lib, x: x.sum((1, 2)),
    "empty": lambda lib, x: lib.nested.nested_tensor([], layout=lib.jagged),
    "dimensions": lambda lib, x: lib.nested.nested_tensor(
        [lib.ones(2), lib.ones(2, 2)], layout=lib.jagged
    ),
    "numbers": lambda lib, x: lib.nested.nested_tensor([lib.tensor(1.0)], layout=lib.jagged),
    "neither": lambda lib, x: lib.nested.nested_tensor_from_jagged(w(lib)),
    "dim": lambda lib, x: lib.nested.nested_tensor_from_jagged(
        w(lib), lib.tensor([0, 4]), jagged_dim=0
    ),
    "no tensors": lambda lib, x: lib.nested.as_nested_tensor(3),
    "list": lambda lib, x: x.tolist(),
    "array": lambda lib, x: x.numpy(),
    "item": lambda lib, x: x.item(),
    "stack": lambda lib, x: lib.stack([x, x]),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    kinds = []
    for lib in (taeda, torch):
        with pytest.raises((RuntimeError, ValueError, TypeError)) as raised:
            ERRORS[name](lib, nested(lib))
        kinds.append(raised.type)
    assert kinds[0] is kinds[1]


def test_what_has_no_rule_raises():
    with pytest.raises(NotImplementedError, match="cumsum"):
        nested(taeda).cumsum(-1)


def test_copies():
    x = nested(taeda, requires_grad=True)
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert [p.tolist() for p in other.unbind()] == [p.tolist() for p in x.unbind()]
        assert other.requires_grad


def saved(of, value, **kwargs):
    """What `of` reads of what it has written."""
    file = io.BytesIO()
    of.save(value, file)
    return of.load(io.BytesIO(file.getvalue()), **kwargs), file.getvalue()


@pytest.mark.parametrize("layout", ["jagged", "strided"])
def test_files_are_read_without_running_code(layout):
    torch = pytest.importorskip("torch")
    made = []
    for of in (taeda, torch):
        parts = [of.arange(6.0).view(3, 2), of.arange(4.0).view(2, 2)]
        made.append(of.nested.nested_tensor(parts, layout=getattr(of, layout)))
    mine, data = saved(taeda, {"x": made[0]})
    assert [p.tolist() for p in mine["x"].unbind()] == [p.tolist() for p in made[1].unbind()]
    theirs = torch.load(io.BytesIO(data))["x"]
    assert theirs.layout == getattr(torch, layout)
    assert [p.tolist() for p in theirs.unbind()] == [p.tolist() for p in made[1].unbind()]
    if layout == "jagged":  # PyTorch's have notes of its compiler in them
        return
    read = taeda.load(io.BytesIO(saved(torch, made[1])[1]))
    assert [p.tolist() for p in read.unbind()] == [p.tolist() for p in made[1].unbind()]


@pytest.mark.parametrize(
    "parts",
    [
        {"values": 1, "offsets": 2},
        {"values": taeda.ones(3)},
        {"values": taeda.ones(3), "offsets": taeda.tensor([0, 4])},
        {"values": taeda.ones(3), "offsets": taeda.tensor([2, 1])},
        {"values": taeda.ones(3), "offsets": taeda.tensor([0.0, 1.0])},
        {"values": taeda.ones(3), "offsets": taeda.tensor([0, 1]), "_ragged_idx": 7},
        {"values": taeda.ones(3), "offsets": taeda.tensor([0, 1]), "lengths": taeda.tensor([5])},
        {"values": taeda.ones(3), "offsets": taeda.tensor([0, 1]), "other": 1},
    ],
)
def test_damaged_parts_in_files_are_refused(parts):
    from taeda.nested._internal import nested_tensor

    class Damaged:
        def __reduce__(self):
            return nested_tensor._rebuild_njt, (parts,)

    file = io.BytesIO()
    taeda.save(Damaged(), file)
    with pytest.raises(pickle.UnpicklingError, match="a nested tensor has"):
        taeda.load(io.BytesIO(file.getvalue()))
