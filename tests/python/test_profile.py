"""taeda._C._profile_start and _profile_stop: the records of operators."""

import pytest

import taeda
from taeda import _C


def stop():
    """The records, each (name, shapes, start, end, thread, frame, bytes, bytes, is_block)."""
    profile, dropped = _C._profile_stop()
    assert dropped == 0
    return _C._profile_rows(profile)


def test_operators_are_recorded_with_shapes_and_times():
    x = taeda.ones(2, 3)
    _C._profile_start()
    taeda.cat([x, x])
    x + x
    records = stop()
    x + x
    names = [r[0] for r in records]
    assert "aten::cat" in names
    assert names[-1] == "aten::add.Tensor"
    _, shapes, start, end, thread, frame, _, _, is_block = records[-1]
    assert shapes == [(2, 3), (2, 3)]
    assert 0 < start <= end
    assert thread > 0
    assert frame == "" and not is_block


def test_the_python_frame_if_asked():
    x = taeda.ones(2)
    _C._profile_start(False, True)
    x * x
    ((_, shapes, _, _, _, frame, *_),) = stop()
    assert shapes == []
    assert frame.split(":")[0].endswith("test_profile.py")
    assert frame.endswith("test_the_python_frame_if_asked")


def test_backward_is_recorded():
    x = taeda.ones(2, requires_grad=True)
    _C._profile_start()
    (x * x).sum().backward()
    records = stop()
    assert [r[0] for r in records].count("aten::mul.Tensor") == 3


def test_operators_of_a_program_are_recorded():
    library = taeda.library.Library("test_profile", "DEF")
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x + 1, "CPU")
    _C._profile_start()
    taeda.ops.test_profile.f(taeda.ones(1))
    records = stop()
    assert [r[0] for r in records][-2:] == ["test_profile::f", "aten::add.Tensor"]


def test_blocks_and_memory():
    _C._profile_start(False, False, 100, True)
    block = _C._profile_begin_block("my \u00e9")
    x = taeda.empty(1000)
    _C._profile_end_block(block)
    del x
    _C._profile_begin_block("no end")
    (first, empty, last) = stop()
    assert (first[0], first[-1], last[0]) == ("my \u00e9", True, "no end")
    assert first[2] <= empty[2] <= empty[3] <= first[3] <= last[2]
    assert first[7] - first[6] == empty[7] - empty[6] == 4000
    _C._profile_end_block(block)  # nobody records: nothing happens


def test_wrong_use():
    with pytest.raises(ValueError, match="PyCapsule"):
        _C._profile_rows(3)
    with pytest.raises(RuntimeError, match="not being profiled"):
        _C._profile_stop()
    with pytest.raises(ValueError, match="capacity"):
        _C._profile_start(True, True, 0)
