"""Files that are no checkpoint: `load` says what they are, and keeps PyTorch's exceptions."""

import gzip
import io
import json
import pickle

import numpy as np
import pytest

import taeda


def notes_of(content, **options):
    with pytest.raises((pickle.UnpicklingError, EOFError)) as caught:
        taeda.load(io.BytesIO(content), **options)
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])


def array() -> bytes:
    file = io.BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


def safetensors() -> bytes:
    head = json.dumps({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    return len(head).to_bytes(8, "little") + head + bytes(4)


OTHERS = {
    "a text": b"import torch\nprint(1)\n",
    "a web page": b"<!DOCTYPE html><html>Not found</html>",
    "Git LFS": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n",
    "gzip": gzip.compress(b"x" * 100),
    "NumPy": array(),
    "safetensors": safetensors(),
}


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("kind", OTHERS)
def test_what_a_file_is_instead_stands_in_a_note(kind, weights_only):
    found = notes_of(OTHERS[kind], weights_only=weights_only)
    assert f"{kind}" in found and "no checkpoint" in found
    assert found.splitlines()[-1].startswith("Fix: give the file that torch.save has written")


def test_an_empty_file_is_called_empty():
    assert "the file is empty" in notes_of(b"")


def test_a_pickle_that_is_refused_is_called_nothing_else():
    assert "no checkpoint" not in notes_of(pickle.dumps(pytest.raises, protocol=2))


def test_a_text_in_another_language_is_a_text():
    assert "a text" in notes_of(("Übung " * 2000).encode())
