"""The checks of torch's namespace, and unravel_index, beside PyTorch's."""

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")


def outcome(call):
    try:
        return call()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize(
    "name", ["_check_index", "_check_value", "_check_type", "_check_not_implemented"]
)
def test_a_condition_raises_its_kind(name):
    for arguments in ((True,), (False, lambda: "why"), (3,), (False, "why")):
        ours, theirs = (
            outcome(lambda a=arguments, m=m: getattr(m, name)(*a)) for m in (taeda, torch)
        )
        assert ours == theirs
    assert (
        outcome(lambda: getattr(taeda, name)(False))[0]
        is outcome(lambda: getattr(torch, name)(False))[0]
    )


def test_all_elements_are_checked():
    for values, dtype in (([True, True], "bool"), ([True, False], "bool"), ([1, 0], "int64")):
        ours, theirs = (
            outcome(
                lambda m=m, v=values, d=dtype: m._check_tensor_all(
                    m.tensor(v, dtype=getattr(m, d)), lambda: "no"
                )
            )
            for m in (taeda, torch)
        )
        assert ours == theirs
    assert outcome(lambda: taeda._check_tensor_all(True))[0] is TypeError


@pytest.mark.parametrize("shape", [(3, 4, 5), (7,), 60, (60, 1)])
def test_unravel_index_is_pytorchs(shape):
    values = np.array([[0, 59], [7, 33]]) % np.prod(shape)
    ours, theirs = (m.unravel_index(m.from_numpy(values), shape) for m in (taeda, torch))
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    for kind in ("uint8", "int16"):
        ours, theirs = (
            m.unravel_index(m.from_numpy(values).to(getattr(m, kind)), shape)
            for m in (taeda, torch)
        )
        for a, b in zip(ours, theirs, strict=True):
            assert str(a.dtype).split(".")[1] == str(b.dtype).split(".")[1]
            np.testing.assert_array_equal(a.numpy(), b.numpy())
    for bad in (
        lambda m: (m.ones(2), (2,)),
        lambda m: (m.tensor([0]), (-1,)),
        lambda m: (m.tensor([True]), (2,)),
        lambda m: (m.tensor([0]), m.tensor([2])),
        lambda m: (m.tensor([0]), (2.0,)),
    ):
        kinds = {outcome(lambda m=m, bad=bad: m.unravel_index(*bad(m)))[0] for m in (taeda, torch)}
        assert len(kinds) == 1
