"""Files in the format before zip archives, read by PyTorch and by taeda; saving without data."""

import io
import pickle

import pytest

import taeda

torch = pytest.importorskip("torch")


def saved(value, **options):
    file = io.BytesIO()
    taeda.save(value, file, _use_new_zipfile_serialization=False, **options)
    return io.BytesIO(file.getvalue())


def state(lib):
    base = lib.arange(12, dtype=lib.float32).reshape(3, 4)
    return {
        "whole": base,
        "view": base[1:, ::2],
        "half": lib.tensor([1.5, -2.0], dtype=lib.bfloat16),
        "bools": lib.tensor([True, False, True]),
        "complex": lib.tensor([1 + 2j]),
        "empty": lib.empty(0, 3),
        "number": lib.tensor(7),
        "parameter": lib.nn.Parameter(lib.ones(2)),
        "plain": [1, "two", (3.0, None)],
    }


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("reader", [taeda, torch], ids=["taeda", "torch"])
def test_what_is_written_is_read(reader, weights_only, protocol):
    if reader is torch and weights_only and protocol > 2:
        pytest.skip("PyTorch reads no other protocol without running code")
    file = saved(state(taeda), pickle_protocol=protocol)
    found = reader.load(file, weights_only=weights_only)
    for name, value in state(reader).items():
        if not isinstance(value, reader.Tensor):
            assert found[name] == value
            continue
        assert found[name].dtype == value.dtype
        assert found[name].stride() == value.stride()
        assert found[name].tolist() == value.tolist()
    shared = found["whole"].untyped_storage().data_ptr()
    assert found["view"].untyped_storage().data_ptr() == shared
    assert type(found["parameter"]) is reader.nn.Parameter


def test_it_is_the_old_format():
    assert pickle.load(saved(taeda.ones(2))) == 0x1950A86A20F9469CFC6C
    for ours in (saved([taeda.ones(2)]), saved([])):
        theirs = torch.load(ours, weights_only=True)
        assert [t.tolist() for t in theirs] in ([[1.0, 1.0]], [])


def test_a_path_and_a_model(tmp_path):
    model = taeda.nn.Linear(3, 2)
    taeda.save(model.state_dict(), tmp_path / "m.bin", _use_new_zipfile_serialization=False)
    theirs = torch.nn.Linear(3, 2)
    theirs.load_state_dict(torch.load(tmp_path / "m.bin"))
    assert theirs.weight.tolist() == model.weight.tolist()
    with pytest.raises(RuntimeError, match="mmap can only be used"):
        taeda.load(tmp_path / "m.bin", mmap=True)


def test_storages():
    storage = taeda.load(saved(taeda.ones(3).storage()), weights_only=False)
    assert storage.tolist() == [1.0] * 3


def test_data_is_skipped():
    with taeda.serialization.skip_data():
        file = io.BytesIO()
        taeda.save({"a": taeda.ones(3)}, file)
    file.seek(0)
    assert torch.load(file)["a"].tolist() == [0.0] * 3
    full = io.BytesIO()
    taeda.save({"a": taeda.ones(3)}, full)
    full.seek(0)
    with taeda.serialization.skip_data():
        assert taeda.load(full)["a"].shape == (3,)
    full.seek(0)
    assert taeda.load(full)["a"].tolist() == [1.0] * 3
