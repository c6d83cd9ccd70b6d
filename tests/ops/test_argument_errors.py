"""Errors and warnings whose words programs match, against PyTorch's."""

import re
import warnings

import pytest

import taeda

ERRORS = {
    "diff of rows of another length": (
        lambda t: t.ones(2, 3).diff(dim=0, prepend=t.tensor([[0.0, 1.0]])),
        "diff expects the shape of tensor to prepend or append to match that of input",
    ),
    "a scan into another dtype": (
        lambda t: t.logcumsumexp(t.ones(3, dtype=t.float64), 0, out=t.empty(0)),
        "expected scalar_type Double but found Float",
    ),
    "a running maximum into another dtype": (
        lambda t: t.cummax(
            t.ones(3), 0, out=(t.empty(0, dtype=t.int16), t.empty(0, dtype=t.int64))
        ),
        "expected scalar_type Float but found Short",
    ),
    "a row of no rows": (
        lambda t: t.ones(0, 3).index_select(0, t.tensor([0])),
        "self indexing axis dim should be positive",
    ),
    "a column too many": (
        lambda t: t.ones(2, 3).index_select(1, t.tensor([5])),
        "INDICES element is out of DATA bounds",
    ),
    "a row too many": (
        lambda t: t.ones(2, 3).index_select(0, t.tensor([5])),
        "index out of range in self",
    ),
    "a sparse tensor in a memory format": (
        lambda t: t.empty_like(t.ones(2, 2).to_sparse(), memory_format=t.preserve_format),
        "memory format option is only supported by strided tensors",
    ),
    "no arguments": (lambda t: t.tensor(), 'missing 1 required positional arguments: "data"'),
    "an embedding of no matrix": (
        lambda t: t.nn.functional.embedding_bag(t.tensor([0]), t.ones(3)),
        "weight has to be a 2D Tensor",
    ),
}
WARNINGS = {
    "index_fill_": (
        lambda t, x: x.index_fill_(0, t.tensor([0]), 2.0),
        "index_fill_ on expanded tensors",
    ),
    "index_put_": (
        lambda t, x: x.index_put_((t.tensor([0]),), t.tensor([2.0])),
        "index_put_ on expanded tensors",
    ),
    "masked_fill_": (
        lambda t, x: x.masked_fill_(t.tensor([True, False, True]), 2.0),
        "masked_fill_ on expanded tensors",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    call, words = ERRORS[name]
    kinds = []
    for t in (taeda, torch):
        with pytest.raises(Exception, match=re.escape(words)) as error:
            call(t)
        kinds.append(error.type)
    assert kinds[0] is kinds[1]


@pytest.mark.parametrize("name", WARNINGS)
def test_writes_into_expanded_tensors_warn(name):
    torch = pytest.importorskip("torch")
    write, words = WARNINGS[name]
    found = []
    for t in (taeda, torch):
        x = t.ones(1).expand(3)
        with pytest.warns(UserWarning, match=re.escape(words)):
            write(t, x)
        found.append(x.tolist())
    assert found[0] == found[1]


def test_results_of_no_shape_take_the_order_of_the_arguments():
    torch = pytest.importorskip("torch")
    for order in ((0, 2, 1), (2, 1, 0), (1, 0, 2)):
        strides = []
        for t in (taeda, torch):
            x = t.arange(24.0).reshape(2, 3, 4).permute(order)
            out = t.add(x, x[0, 0], out=t.empty(0))
            assert out.tolist() == (x + x[0, 0]).tolist()
            strides.append((out.stride(), t.exp(x, out=t.empty(0)).stride()))
        assert strides[0] == strides[1]


@pytest.mark.parametrize("target", [0, [0]])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_margin_losses_have_the_shape_of_their_targets(shape, target):
    torch = pytest.importorskip("torch")
    shapes = []
    for t in (taeda, torch):
        x, y = t.ones(shape), t.tensor(target)
        shapes.append([tuple(t.nn.functional.multi_margin_loss(x, y, reduction="none").shape)])
        if len(shape) < 2:
            loss = t.nn.functional.multilabel_margin_loss(x, y, reduction="none")
            shapes[-1].append(tuple(loss.shape))
    assert shapes[0] == shapes[1]


def test_half_precision_complex_numbers_are_announced_as_experimental():
    taeda.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="ComplexHalf support is experimental"):
            taeda.zeros(2, dtype=taeda.chalf)
    finally:
        taeda.set_warn_always(False)


def test_arrays_that_cannot_be_written_warn_again_when_asked_to():
    numpy = pytest.importorskip("numpy")
    array = numpy.arange(3)
    array.flags.writeable = False
    taeda.set_warn_always(True)
    try:
        for _ in range(2):
            with pytest.warns(UserWarning, match="not writable"):
                taeda.from_numpy(array)
    finally:
        taeda.set_warn_always(False)


def test_a_bag_of_rows_takes_its_arguments_in_the_old_order():
    torch = pytest.importorskip("torch")
    found = []
    for t in (taeda, torch):
        weight, rows = t.arange(6.0).reshape(3, 2), t.tensor([0, 2, 1])
        with pytest.warns(UserWarning, match="Argument order"):
            found.append(t.nn.functional.embedding_bag(weight, rows, t.tensor([0, 2])).tolist())
    assert found[0] == found[1]


def test_overlap_is_told_from_sizes_and_strides():
    torch = pytest.importorskip("torch")
    makers = [
        lambda t: t.zeros(3, 3),
        lambda t: t.zeros(1, 3).expand(4, 3),
        lambda t: t.zeros(10).as_strided([2, 1, 5], [1, 0, 2]),
        lambda t: t.zeros(2, 1, 10)[::2].as_strided((2, 1, 5), (10, 0, 2)),
        lambda t: t.zeros(3, 4).t(),
    ]
    for make in makers:
        ours, theirs = (t._debug_has_internal_overlap(make(t)) for t in (taeda, torch))
        assert ours == theirs


def test_views_are_made_anew_of_another_base():
    torch = pytest.importorskip("torch")
    makers = [
        lambda t, x: x[1:, ::2],
        lambda t, x: x.t(),
        lambda t, x: t.view_as_complex(x),
        lambda t, x: t.view_as_complex(x).conj(),
    ]
    for make in makers:
        found = []
        for t in (taeda, torch):
            x = t.arange(6.0).reshape(3, 2).clone()
            found.append(make(t, x)._view_func(x * 10).tolist())
        assert found[0] == found[1]


def test_typed_storages_warn_once():
    storage = taeda.storage
    storage._reset_warn_typed_storage_removal()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        first = taeda.FloatStorage(3)
        first.fill_(1)
        taeda.ones(2).storage()
    assert len(caught) == 1 and caught[0].filename == __file__
    assert str(caught[0].message).startswith("TypedStorage is deprecated")


def test_typed_storages_warn_each_time_when_asked_to_and_their_twins_never():
    storage = taeda.storage
    s = taeda.ones(3)._typed_storage()
    loud = [
        lambda: taeda.FloatStorage(), lambda: taeda.FloatStorage.dtype, lambda: s.fill_(0),
        lambda: s.is_cuda, lambda: s.untyped(), lambda: len(s), lambda: s[0], lambda: s.dtype,
    ]  # fmt: skip
    silent = [
        lambda: taeda.FloatStorage(_internal=True), lambda: taeda.FloatStorage._dtype,
        lambda: s._size(), lambda: s._setitem(0, 1), lambda: s._deepcopy({}),
        lambda: s._nbytes(), lambda: s._pickle_storage_type(), lambda: s._untyped_storage,
    ]  # fmt: skip
    before = storage._get_always_warn_typed_storage_removal()
    storage._set_always_warn_typed_storage_removal(True)
    try:
        for use in loud:
            with pytest.warns(UserWarning, match="^TypedStorage is deprecated") as caught:
                use()
            assert len(caught) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for use in silent:
                use()
    finally:
        storage._set_always_warn_typed_storage_removal(before)
