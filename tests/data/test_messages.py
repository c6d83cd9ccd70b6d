"""What tensors of every kind are after they have travelled from a worker."""

import pickle

import pytest

import taeda
from taeda.utils.data import DataLoader
from taeda.utils.data._utils.messages import dumps, loads

X = taeda.tensor([1 + 2j, -3j])


def tensors():
    yield "conjugate", X.conj()
    yield "negative", X.conj().imag
    yield "plain", taeda.view_as_real(X)
    yield "large", taeda.arange(20_000.0).to(taeda.complex64).mul(1j).conj()
    yield "part", X.expand(4, 2).conj()[1:, 1]
    yield "parameter", taeda.nn.Parameter(X.conj())
    marked = X.conj()
    marked.mark = 3
    yield "with an attribute", marked


@pytest.mark.parametrize("sent", [pytest.param(t[1], id=t[0]) for t in tensors()])
def test_conjugates_and_negatives_read_as_they_did(sent):
    (got,) = DataLoader([sent], batch_size=None, num_workers=1, multiprocessing_context="fork")
    assert got.tolist() == sent.tolist() and got.requires_grad == sent.requires_grad
    assert type(got) is type(sent) and got.dtype == sent.dtype
    assert getattr(got, "mark", None) == getattr(sent, "mark", None)


@pytest.mark.parametrize("layout", [taeda.strided, taeda.jagged])
def test_nested_tensors_travel(layout):
    rows = [taeda.ones(2), taeda.arange(3.0)]
    sent = taeda.nested.nested_tensor(rows, layout=layout)
    (got,) = DataLoader([sent], batch_size=None, num_workers=1, multiprocessing_context="fork")
    assert type(got) is type(sent)
    assert [row.tolist() for row in got.unbind()] == [row.tolist() for row in rows]


def test_plain_tensors_stay_beside_the_pickle():
    x = taeda.arange(1000.0)
    content, items = dumps({"x": x, "half": x[500:]})
    assert len(items) == 2 and len(content) < 300
    assert loads(content, items)["half"].data_ptr() == x[500:].data_ptr()
    assert len(pickle.dumps(x)) > 4000
