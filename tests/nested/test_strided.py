"""Nested tensors of the strided layout beside PyTorch's."""

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

ROWS = [[[0.5, 1.0, 2.0], [3.0, 4.0, 5.0]], [[1.0, 1.0, 0.0]]]


def nested(lib):
    return lib.nested.nested_tensor([lib.tensor(r) for r in ROWS])


OPERATIONS = {
    "itself": lambda lib, x: x,
    "add": lambda lib, x: x + x,
    "scalar": lambda lib, x: x * 2,
    "relu": lambda lib, x: lib.nn.functional.relu(x),
    "linear": lambda lib, x: lib.nn.functional.linear(x, lib.ones(2, 3), lib.ones(2)),
    "softmax": lambda lib, x: x.softmax(-1),
    "matmul": lambda lib, x: lib.matmul(x, x.transpose(1, 2)),
    "padded": lambda lib, x: x.to_padded_tensor(-1.0),
    "wider": lambda lib, x: lib.nested.to_padded_tensor(x, 0.0, (2, 3, 4)),
    "values": lambda lib, x: x.values(),
    "index": lambda lib, x: x[1],
    "sizes": lambda lib, x: x._nested_tensor_size(),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_values(name):
    ours, theirs = (OPERATIONS[name](lib, nested(lib)) for lib in (taeda, torch))
    assert ours.is_nested == theirs.is_nested
    found = [t.unbind() if t.is_nested else [t] for t in (ours, theirs)]
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-6)


def test_what_it_is_asked():
    for ask in ("dim()", "size(0)", "size(2)", "numel()", "layout", "is_nested"):
        ours, theirs = (eval(f"x.{ask}", {"x": nested(lib)}) for lib in (taeda, torch))
        assert str(ours) == str(theirs), ask
    assert repr(nested(taeda)) == repr(nested(torch))
    for lib in (taeda, torch):
        with pytest.raises(RuntimeError, match="Given dimension 1 is irregular"):
            nested(lib).size(1)


def test_gradients_lead_to_the_parts():
    part = taeda.ones(2, 3, requires_grad=True)
    x = taeda.nested.as_nested_tensor([part, taeda.ones(1, 3)])
    (x * 3).to_padded_tensor(0.0).sum().backward()
    assert part.grad.tolist() == [[3.0] * 3] * 2
