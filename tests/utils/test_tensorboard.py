"""Event files: read back by hand, and beside PyTorch's where ``tensorboard`` is installed."""

import io
import struct
import sys
import zlib
from importlib import import_module

import numpy as np
import pytest

import taeda
from taeda.utils import tensorboard
from taeda.utils.tensorboard import _events, summary


@pytest.fixture
def own_writer(monkeypatch):
    """As where the package is not installed."""
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto.event_pb2", None)


def records_of(folder):
    """The records of the only event file in a folder, checksums verified."""
    (path,) = folder.glob("events.out.tfevents.*")
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        assert data[at + 8 : at + 12] == _events._masked_crc(data[at : at + 8])
        content = data[at + 12 : at + 12 + length]
        assert data[at + 12 + length : at + 16 + length] == _events._masked_crc(content)
        found.append(content)
        at += 16 + length
    return found


def decode(data):
    """{field: [values]} of a message: numbers as integers, the rest as bytes."""
    at, found = 0, {}

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        size = {0: None, 1: 8, 5: 4}.get(key & 7) if key & 7 != 2 else varint()
        value = varint() if size is None else data[at : at + size]
        at += size or 0
        found.setdefault(key >> 3, []).append(value)
    return found


def test_checksum():
    assert _events.crc32c(b"123456789") == 0xE3069283  # the check value of CRC-32C's definition


def test_scalars_are_written(own_writer, tmp_path):
    with tensorboard.SummaryWriter(tmp_path, max_queue=2) as writer:
        for step, value in enumerate((0.5, taeda.tensor(2.0), np.float64(3), 4)):
            writer.add_scalar("loss", value, step, walltime=1.5)
        assert len(records_of(tmp_path)) >= 5  # two wait at most
    first, *rest = map(decode, records_of(tmp_path))
    assert first[3] == [b"brain.Event:2"]
    values = []
    for event in rest:
        assert struct.unpack("<d", event[1][0]) == (1.5,)
        value = decode(decode(event[5][0])[1][0])
        assert value[1] == [b"loss"]
        values.append((event[2][0], struct.unpack("<f", value[2][0])[0]))
    assert values == [(0, 0.5), (1, 2.0), (2, 3.0), (3, 4.0)]


def test_pictures(own_writer, tmp_path):
    pixels = taeda.rand(3, 4, 5)
    with tensorboard.SummaryWriter(tmp_path) as writer:
        writer.add_image("x", pixels)
    image = decode(decode(decode(decode(records_of(tmp_path)[1])[5][0])[1][0])[4][0])
    assert (image[1], image[2], image[3]) == ([4], [5], [3])
    png = image[4][0]
    start = png.index(b"IDAT") + 4
    (length,) = struct.unpack(">I", png[start - 8 : start - 4])
    lines = np.frombuffer(zlib.decompress(png[start : start + length]), np.uint8).reshape(4, 16)
    expected = (pixels.numpy().transpose(1, 2, 0) * np.float32(255)).astype(np.uint8)
    assert (lines[:, 0] == 0).all() and (lines[:, 1:].reshape(4, 5, 3) == expected).all()


def test_histograms():
    values = np.random.default_rng(3).standard_normal(1000)
    proto = summary.make_histogram(values, np.linspace(-10, 10, 201))
    assert proto.num == 1000 and sum(proto.bucket) == 1000 and proto.bucket[0] == 0
    assert len(proto.bucket) == len(proto.bucket_limit)
    for limit, upto in zip(proto.bucket_limit, np.cumsum(proto.bucket), strict=True):
        assert upto == (values < limit).sum()
    assert proto.sum_squares == pytest.approx((values**2).sum())


def test_errors(tmp_path):
    with tensorboard.SummaryWriter(tmp_path) as writer:
        with pytest.raises(AssertionError, match="one element"):
            writer.add_scalar("x", taeda.ones(2))
        with pytest.raises(TypeError, match="should be dictionary"):
            writer.add_hparams([], {})
        with pytest.raises(ValueError, match="no element"):
            writer.add_histogram("x", taeda.ones(0))
        with pytest.raises(NotImplementedError, match="numpy array or torch tensor"):
            writer.add_image("x", [1])
        with pytest.raises(ValueError, match="value should be one of"):
            writer.add_hparams({"a": object()}, {})
        with pytest.raises(TypeError, match="list of same type"):
            writer.add_hparams({"a": 1}, {}, {"a": ["x"]})


def test_files_after_close(own_writer, tmp_path):
    writer = tensorboard.SummaryWriter(tmp_path, purge_step=7)
    writer.close()
    assert decode(decode(records_of(tmp_path)[2])[7][0]) == {1: [1]}
    writer.add_scalar("x", 1)
    assert len(list(tmp_path.glob("events*"))) == 2
    writer.close()


# --- beside PyTorch ---


class Net:
    """A network of either package."""

    @staticmethod
    def of(torch):
        layers = [torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2)]
        return torch.nn.Sequential(*layers)


CALLS = {
    "scalar": lambda w, t: w.add_scalar("a", t.tensor([1.5]), 3, 2.0),
    "new": lambda w, t: w.add_scalar("a", 0.1, new_style=True, walltime=2.0),
    "double": lambda w, t: w.add_scalar("a", 0.1, new_style=True, double_precision=True),
    "scalars": lambda w, t: w.add_scalars("a/b", {"x": 1, "y": t.tensor(2)}, 3),
    "histogram": lambda w, t: w.add_histogram("h", t.arange(100) ** 2 / 7, 1),
    "bins": lambda w, t: w.add_histogram("h", t.arange(100) ** 2 / 7, bins="auto"),
    "max_bins": lambda w, t: w.add_histogram("h", t.arange(100.0), bins=20, max_bins=6),
    "raw": lambda w, t: w.add_histogram_raw("h", 0, 3, 4, 5.5, 6, [1, 2], [3, 1]),
    "image": lambda w, t: w.add_image("i", t.arange(60).reshape(3, 4, 5) / 60),
    "bytes": lambda w, t: w.add_image("i", np.arange(20, dtype=np.uint8).reshape(4, 5), 1,
                                      dataformats="HW"),
    "one": lambda w, t: w.add_image("i", t.rand(4, 5, 1) * 0, dataformats="HWC"),
    "images": lambda w, t: w.add_images("i", t.arange(11 * 12).reshape(11, 1, 4, 3) / 132),
    "boxes": lambda w, t: w.add_image_with_boxes(
        "i", t.zeros(3, 30, 30), t.tensor([[2.0, 3.0, 20.0, 25.0]]), labels="cat"),
    "audio": lambda w, t: w.add_audio("s", t.linspace(-1, 1, 50).reshape(1, 50), 2, 8000),
    "text": lambda w, t: w.add_text("t", "**bold** ü", 5),
    "pr": lambda w, t: w.add_pr_curve("p", t.tensor([0, 1, 1, 0, 1]),
                                      t.tensor([0.1, 0.9, 0.4, 0.6, 1.0]), 1, num_thresholds=9),
    "weights": lambda w, t: w.add_pr_curve("p", np.array([0, 1]), np.array([0.2, 0.7]),
                                           weights=np.array([2.0, 3.0])),
    "pr_raw": lambda w, t: w.add_pr_curve_raw("p", *[t.arange(3.0) + i for i in range(6)]),
    "tensor": lambda w, t: w.add_tensor("x", t.arange(6.0).reshape(2, 3), 1),
    "int": lambda w, t: w.add_tensor("x", t.arange(6)),
    "half": lambda w, t: w.add_tensor("x", t.arange(3, dtype=t.bfloat16)),
    "complex": lambda w, t: w.add_tensor("x", t.ones(2, dtype=t.complex64)),
    "hparams": lambda w, t: w.add_hparams(
        {"lr": 0.1, "opt": "sgd", "n": 3, "x": t.tensor([2.0]), "none": None, "b": True},
        {"acc": 0.5}, {"opt": ["sgd", "adam"]}, run_name="run"),
    "custom": lambda w, t: w.add_custom_scalars(
        {"c": {"m": ["Multiline", ["a", "b"]], "g": ["Margin", ["a", "b", "c"]]}}),
    "multi": lambda w, t: w.add_custom_scalars_multilinechart(["a", "b"]),
    "margin": lambda w, t: w.add_custom_scalars_marginchart(["a", "b", "c"]),
    "mesh": lambda w, t: w.add_mesh("m", t.rand(1, 4, 3) * 0, t.ones(1, 4, 3), t.zeros(1, 2, 3),
                                    {"material": {"size": 1}}, 2),
    "embedding": lambda w, t: w.add_embedding(
        t.arange(6.0).reshape(3, 2), ["a", "b", "c"], t.rand(3, 3, 4, 4) * 0, 7, tag="x/y"),
    "columns": lambda w, t: w.add_embedding(
        t.arange(4.0).reshape(2, 2), [["a", 1], ["b", 2]], metadata_header=["l", "n"]),
}  # fmt: skip


def content_of(folder):
    """{file: events or bytes} under a folder, without times and machine-dependent names."""
    from PIL import Image
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    def pixels(png):
        with Image.open(io.BytesIO(png)) as image:
            return np.asarray(image).tolist()

    found = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = str(path.relative_to(folder).with_name(path.name.partition("tfevents")[0]))
        if path.suffix == ".png":
            found[name] = pixels(path.read_bytes())
        elif "tfevents" not in path.name:
            found[name] = path.read_bytes()
        else:
            events = list(EventFileLoader(str(path)).Load())
            for event in events:
                event.wall_time = 0
                event.ClearField("source_metadata")
                for value in event.summary.value:
                    plugin = value.metadata.plugin_data
                    if plugin.plugin_name == "hparams":  # a map, in any order
                        found[name + value.tag] = str(HParamsPluginData.FromString(plugin.content))
                        plugin.content = b""
                    if value.HasField("image"):
                        found[name + value.tag] = pixels(value.image.encoded_image_string)
                        value.image.encoded_image_string = b""
                    if value.HasField("tensor") and value.tensor.string_val[2:]:
                        found[name + value.tag] = pixels(value.tensor.string_val[2])
                        value.tensor.string_val[2] = b""
            found[name] = [str(event) for event in events]
    return found


@pytest.mark.parametrize("own", [False, True], ids=["tensorboard", "own"])
@pytest.mark.parametrize("name", CALLS)
def test_files_are_pytorchs(name, own, tmp_path, monkeypatch, capsys):
    pytest.importorskip("tensorboard")
    torch = pytest.importorskip("torch")
    theirs = import_module("torch.utils.tensorboard")
    with theirs.SummaryWriter(tmp_path / "theirs") as writer:
        CALLS[name](writer, torch)
    with monkeypatch.context() as patch:
        if own:
            patch.setitem(sys.modules, "tensorboard.compat.proto.event_pb2", None)
        with tensorboard.SummaryWriter(tmp_path / "ours") as writer:
            CALLS[name](writer, taeda)
    assert content_of(tmp_path / "ours") == content_of(tmp_path / "theirs")


def test_graphs_have_scopes(tmp_path, own_writer):
    with tensorboard.SummaryWriter(tmp_path) as writer:
        writer.add_graph(Net.of(taeda), taeda.ones(1, 4))
    graph = decode(decode(records_of(tmp_path)[1])[4][0])
    nodes = {}
    for node in map(decode, graph[1]):
        inputs = [name.decode() for name in node.get(3, [])]
        nodes[node[1][0].decode()] = (node[2][0].decode(), inputs)
    assert nodes["input/input_0"] == ("IO Node", [])
    scope = "Sequential/Linear[0]"
    assert nodes[f"{scope}/weight"] == ("prim::GetAttr", [])
    (first,) = [n for n, (op, inputs) in nodes.items() if f"{scope}/weight" in inputs]
    assert {"input/input_0", f"{scope}/bias"} <= set(nodes[first][1])
    (relu,) = [n for n, (op, _) in nodes.items() if op == "aten::relu"]
    assert relu.startswith("Sequential/ReLU[1]/") and nodes[relu][1] == [first]
    (sink,) = nodes["output/output.1"][1]
    assert sink.startswith("Sequential/Linear[2]/")
