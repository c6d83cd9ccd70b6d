"""The safetensors format: round trips, a file known byte by byte, and damaged files."""

import json
import random
import struct

import pytest
from tests.io import mutants

import taeda
from taeda import safetensors


def _file(header, data=b""):
    text = json.dumps(header).encode() if not isinstance(header, bytes) else header
    return struct.pack("<Q", len(text)) + text + data


def test_round_trip(tmp_path):
    tensors = {
        "w": taeda.arange(6.0).view(2, 3).t(),
        "b": taeda.tensor([True, False]),
        "h": taeda.tensor([1.5]).to(taeda.bfloat16),
        "i": taeda.tensor(7),
        "e": taeda.zeros(0, 3),
    }
    path = tmp_path / "x.safetensors"
    safetensors.save_file(tensors, path, {"format": "pt"})
    again = safetensors.load_file(path)
    assert set(again) == set(tensors)
    for name, tensor in tensors.items():
        assert again[name].tolist() == tensor.tolist()
        assert again[name].dtype == tensor.dtype and again[name].shape == tensor.shape
    assert safetensors.read_metadata(path) == {"format": "pt"}
    assert safetensors.load(path.read_bytes())["i"].item() == 7
    assert safetensors.save(tensors, {"format": "pt"}) == path.read_bytes()


def test_golden_file():
    header = {"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
    data = _file(header, struct.pack("<2f", 1.5, -2))
    assert safetensors.load(data)["x"].tolist() == [1.5, -2]
    saved = safetensors.save({"x": taeda.tensor([1.5, -2.0])})
    (size,) = struct.unpack_from("<Q", saved)
    assert size % 8 == 0 and json.loads(saved[8 : 8 + size]) == header
    assert saved[8 + size :] == struct.pack("<2f", 1.5, -2)


@pytest.mark.parametrize(
    "header, data",
    [
        (b"", b""),
        (b"[]", b""),
        (b"{", b""),
        (b'{"x":1}', b""),
        (b"[" * 100_000, b""),
        (b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},' * 2, b"12"),
        ({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, b"1234"),
        ({"x": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}, b"12345678"),
        ({"x": {"dtype": "F33", "shape": [2], "data_offsets": [0, 8]}}, b"12345678"),
        ({"x": {"dtype": "U8", "shape": [-1], "data_offsets": [0, 1]}}, b"1"),
        ({"x": {"dtype": "U8", "shape": [2**62, 2**62], "data_offsets": [0, 1]}}, b"1"),
        ({"x": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}}, b"12"),
        ({"x": {"dtype": "U8", "shape": [1.0], "data_offsets": [0, 1]}}, b"1"),
        ({"x": {"dtype": "BOOL", "shape": [1], "data_offsets": [0, 1]}}, b"2"),
        (
            {
                "x": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]},
                "y": {"dtype": "U8", "shape": [2], "data_offsets": [1, 3]},
            },
            b"123",
        ),
        (
            b'{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
            b'"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
            b"1",
        ),
        (b'{"x":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"1"),
        (b'{"x":{"dtype":"U8","shape":[01],"data_offsets":[0,1]}}', b"1"),
        (b'{"\xff":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"1"),
        (b'{"\xed\xa0\x80":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"1"),
        (b'{"\\udc00":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"1"),
        (b'{"__metadata__":{"a":"b","a":"c"}}', b""),
        (b'{"__metadata__":{},"__metadata__":{}}', b""),
    ],
    ids=lambda v: str(v)[:30],
)
def test_lies_raise(header, data):
    with pytest.raises(RuntimeError, match=r"safetensors|bool storage"):
        safetensors.load(_file(header, data))


def test_prefixes_and_mutants():
    data = safetensors.save({"a": taeda.arange(20.0), "b": taeda.ones(2, 3)}, {"k": "v"})
    for end in range(len(data)):
        with pytest.raises(RuntimeError):
            safetensors.load(data[:end])
    rng = random.Random(0)
    good = 0
    for _ in range(3000):
        try:
            safetensors.load(mutants.changed_safetensors(rng, data))
            good += 1
        except RuntimeError:
            pass
    assert 30 < good < 2000


def test_header_cannot_fill_memory():
    for bomb in (
        b'{"x":[' + b"[]," * 2_000_000 + b"0]}",
        b'{"x":{"dtype":"U8","shape":[' + b"0," * 2_000_000 + b'0],"data_offsets":[0,0]}}',
        b"[" * 2_000_000,
        b'{"a":' * 400_000,
        b'{"__metadata__":{"a":' + b"{" * 2_000_000,
    ):
        with pytest.raises(RuntimeError, match="safetensors"):
            safetensors.load(_file(bomb))


def test_many_tensors_return():
    tensors = {f"l{i}": taeda.full((4,), i) for i in range(50_000)}
    data = safetensors.save(tensors, {"many": "yes"})
    back = safetensors.load(data)
    assert len(back) == 50_000 and back["l49999"].tolist() == [49_999] * 4
    metadata = {f"key {i}": "text" for i in range(100_000)}
    assert len(safetensors.load(safetensors.save({}, metadata))) == 0


def test_names_are_any_text():
    names = ["", "é∞😀", 'a"\\\n\x00', " ", "x" * 10_000]
    tensors = {name: taeda.full((1,), i) for i, name in enumerate(names)}
    back = safetensors.load(safetensors.save(tensors, {"ключ": "значение\n"}))
    assert {name: x.item() for name, x in back.items()} == dict(zip(names, range(5)))
    with pytest.raises(ValueError):
        safetensors.save({"\ud800": taeda.ones(1)})
    with pytest.raises(ValueError, match="__metadata__"):
        safetensors.save({"__metadata__": taeda.ones(1)})


def test_a_header_too_large_to_load_is_not_saved():
    with pytest.raises(ValueError, match="the header would have"):
        safetensors.save({"x": taeda.ones(1)}, {"text": "x" * 100_000_000})


def test_bad_input_to_save():
    with pytest.raises(ValueError, match="meta tensor"):
        safetensors.save({"x": taeda.empty(1, device="meta")})
    with pytest.raises(ValueError, match="text to tensors"):
        safetensors.save({1: taeda.ones(1)})
    with pytest.raises(ValueError, match="complex128"):
        safetensors.save({"x": taeda.ones(1, dtype=taeda.complex128)})
