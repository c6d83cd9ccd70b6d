"""The report page's pieces."""

import sys
import zlib
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
import report


def test_png_holds_the_pixels():
    rows = [[0, 128, 255], [7, 8, 9]]
    raw = report.png(rows)
    assert raw.startswith(b"\x89PNG\r\n\x1a\n") and raw.endswith(b"IEND\xaeB`\x82")
    start = raw.index(b"IDAT")
    length = int.from_bytes(raw[start - 4 : start], "big")
    body = zlib.decompress(raw[start + 4 : start + 4 + length])
    assert body == b"\0" + bytes(rows[0]) + b"\0" + bytes(rows[1])


@pytest.mark.parametrize(
    "low, high, expected",
    [(0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1.0]), (0.81, 0.94, [0.825, 0.85, 0.875, 0.9, 0.925])],
)
def test_ticks_are_round_numbers(low, high, expected):
    assert report.ticks(low, high) == pytest.approx(expected)


def test_confusion_matrix_counts():
    svg = report.confusion_matrix(["cat", "dog"], [0, 0, 0, 1], [0, 0, 1, 1])
    assert "cat taken for dog: 1" in svg
    assert "cat taken for cat: 2" in svg
    assert "66.7%" in svg and "100.0%" in svg


def test_page_of_a_short_run_is_complete(tmp_path):
    epoch = {"loss": 1.0, "accuracy": 0.5, "test_loss": 0.9, "test_accuracy": 0.5, "rate": 10.0}

    class Image(list):
        def tolist(self):
            return list(self)

    path = report.write(
        str(tmp_path / "page.html"),
        title="A <title>", classes=["a", "b"],
        history={"steps": [], "epochs": [epoch], "seconds": 2.0, "images": 20},
        accuracy=0.5, images=[Image([[0, 1], [2, 3]])] * 2, labels=[0, 1],
        probabilities=[[0.9, 0.1], [0.8, 0.2]], facts={"Framework": "none & nothing"},
    )  # fmt: skip
    text = Path(path).read_text()
    assert "A &lt;title&gt;" in text and "none &amp; nothing" in text
    assert text.count('class="tile wrong"') == 2  # once in order, once among the mistakes
