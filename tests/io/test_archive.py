"""Archives by their records and the options of torch.serialization, beside PyTorch's."""

import io
import mmap
from fractions import Fraction
from uuid import UUID

import pytest

import taeda
from taeda import serialization
from taeda.serialization._archive import PyTorchFileReader, PyTorchFileWriter

torch = pytest.importorskip("torch")


def test_reader_and_pytorchs_agree(tmp_path):
    torch.save({"a": torch.arange(3.0), "b": torch.ones(2, dtype=torch.int64)}, tmp_path / "x.pt")
    ours = PyTorchFileReader(tmp_path / "x.pt")
    theirs = torch._C.PyTorchFileReader(str(tmp_path / "x.pt"))
    assert taeda._C.PyTorchFileReader is PyTorchFileReader
    assert sorted(ours.get_all_records()) == sorted(theirs.get_all_records())
    for name in ours.get_all_records():
        assert ours.get_record(name) == theirs.get_record(name)
        assert ours.get_record_offset(name) == theirs.get_record_offset(name)
    assert ours.get_storage_from_record("data/0", 3, taeda.float32).tolist() == [0.0, 1.0, 2.0]
    assert ours.serialization_id() == theirs.serialization_id()
    assert ours.has_record("data/1") and not ours.has_record("data/2")
    with pytest.raises(RuntimeError, match="failed locating file nothing"):
        ours.get_record("nothing")


def test_pytorch_reads_what_is_written(tmp_path):
    writer = PyTorchFileWriter(str(tmp_path / "own.pt"))
    writer.write_record("text", b"hello", 3)
    writer.write_record("numbers", taeda.ones(2).untyped_storage(), 8)
    assert writer.get_all_written_records() == {"text", "numbers"}
    assert writer.archive_name() == "own"
    with pytest.raises(RuntimeError, match="written already"):
        writer.write_record("text", b"x", 1)
    writer.write_end_of_file()
    theirs = torch._C.PyTorchFileReader(str(tmp_path / "own.pt"))
    assert theirs.get_record("text") == b"hel"
    assert bytes(theirs.get_record("numbers")) == taeda.ones(2).numpy().tobytes()
    assert len(theirs.serialization_id()) == 40


@pytest.mark.parametrize("protocol", [2, 4])
def test_unsafe_globals(protocol):
    value = {"w": taeda.ones(1), "f": Fraction(1, 2), "e": UUID(int=3)}
    file = io.BytesIO()
    taeda.save(value, file, pickle_protocol=protocol)
    found = serialization.get_unsafe_globals_in_checkpoint(file)
    assert found == ["fractions.Fraction", "uuid.UUID"]
    with serialization.safe_globals([Fraction]):
        file.seek(0)
        found = serialization.get_unsafe_globals_in_checkpoint(file)
        assert found == ["uuid.UUID"]
    with pytest.raises(ValueError, match=r"checkpoint returned by torch.save"):
        serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(b"1234"))


def test_shared_maps_write_to_the_file(tmp_path):
    path = tmp_path / "x.pt"
    taeda.save(taeda.zeros(3), path)
    taeda.load(path, mmap=True)[0] = 5
    assert taeda.load(path).tolist() == [0.0, 0.0, 0.0]
    with serialization.set_default_mmap_options(mmap.MAP_SHARED):
        taeda.load(path, mmap=True)[1] = 5
    assert serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    assert taeda.load(path, mmap=True).tolist() == [0.0, 5.0, 0.0]
    with pytest.raises(RuntimeError, match="checksum"):
        taeda.load(path)
    with pytest.raises(ValueError, match=r"MAP_PRIVATE or mmap.MAP_SHARED"):
        serialization.set_default_mmap_options(77)


def test_byte_order_of_files_without_one(tmp_path, monkeypatch):
    file = io.BytesIO()
    swapped = taeda.tensor([i << 24 for i in range(3)], dtype=taeda.int32)
    taeda.save(swapped, file, _disable_byteorder_record=True)
    file.seek(0)
    monkeypatch.setattr(taeda.utils.serialization.config.load, "endianness", None)
    serialization.set_default_load_endianness(serialization.LoadEndianness.BIG)
    assert taeda.load(file).tolist() == [0, 1, 2]
    with pytest.raises(TypeError):
        serialization.set_default_load_endianness("big")


def test_locations_of_ones_own(monkeypatch):
    monkeypatch.setattr("taeda.serialization._more._packages", [])
    serialization.register_package(
        5,
        lambda storage: "attic:0" if storage.nbytes() == 12 else None,
        lambda storage, location: storage.clone() if location.startswith("attic") else None,
    )
    assert serialization.location_tag(taeda.ones(3).untyped_storage()) == "attic:0"
    assert serialization.location_tag(taeda.ones(2).untyped_storage()) == "cpu"
    file = io.BytesIO()
    taeda.save(taeda.ones(3), file)
    file.seek(0)
    assert taeda.load(file, map_location="attic:0").tolist() == [1.0, 1.0, 1.0]
