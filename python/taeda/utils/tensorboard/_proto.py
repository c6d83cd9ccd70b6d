"""The protocol buffers of event files, as far as they are written.

A message type is a line of the table: its fields with their numbers and how they are encoded: d
double, f float, i an integer or truth value, s text or bytes, m a message. A list is a repeated
field, packed where its items are numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

_SCHEMA = """
Event wall_time=1d step=2i file_version=3s graph_def=4s summary=5m session_log=7m
    tagged_run_metadata=8m
SessionLog status=1i
TaggedRunMetadata tag=1s run_metadata=2s
Summary value=1m
SummaryValue tag=1s simple_value=2f image=4m histo=5m audio=6m tensor=8m metadata=9m
SummaryImage height=1i width=2i colorspace=3i encoded_image_string=4s
SummaryAudio sample_rate=1f num_channels=2i length_frames=3i encoded_audio_string=4s content_type=5s
HistogramProto min=1d max=2d num=3d sum=4d sum_squares=5d bucket_limit=6d bucket=7d
SummaryMetadata plugin_data=1m display_name=2s summary_description=3s
PluginData plugin_name=1s content=2s
TensorProto dtype=1i tensor_shape=2m float_val=5f double_val=6d int_val=7i string_val=8s
    scomplex_val=9f int64_val=10i bool_val=11i dcomplex_val=12d half_val=13i uint32_val=16i
TensorShapeProto dim=2m
Dim size=1i
PrCurvePluginData version=1i num_thresholds=2i
MeshPluginData version=1i name=2s content_type=3i json_config=5s shape=6i components=7i
Layout version=1i category=2m
Category title=1s chart=2m
Chart title=1s multiline=2m margin=3m
MultilineChartContent tag=1s
MarginChartContent series=1m
Series value=1s lower=2s upper=3s
HParamsPluginData version=1i experiment=2m session_start_info=3m session_end_info=4m
Experiment hparam_infos=4m metric_infos=5m
HParamInfo name=1s type=4i domain_discrete=5m
MetricInfo name=1m
MetricName tag=2s
SessionStartInfo hparams=1m
SessionEndInfo status=1i
HParamEntry key=1s value=2m
Value number_value=2d string_value=3s bool_value=4i
ListValue values=1m
GraphDef node=1m versions=4m
VersionDef producer=1i
NodeDef name=1s op=2s input=3s device=4s attr=5m
AttrEntry key=1s value=2m
AttrValue list=1m s=2s
AttrList shape=7m
RunMetadata step_stats=1m
StepStats dev_stats=1m
DeviceStepStats device=1s
"""


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


_NUMBERS = {
    "d": (1, struct.Struct("<d").pack),
    "f": (5, struct.Struct("<f").pack),
    "i": (0, lambda value: _varint(int(value))),
}


def _delimited(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _bytes_of(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8")
    return value if isinstance(value, bytes) else value.SerializeToString()


def _field(number: int, kind: str, value: Any) -> bytes:
    many = isinstance(value, (list, tuple))
    if kind not in _NUMBERS:
        return b"".join(_delimited(number, _bytes_of(v)) for v in (value if many else [value]))
    wire, encode = _NUMBERS[kind]
    if many:
        return _delimited(number, b"".join(map(encode, value))) if value else b""
    return _varint(number << 3 | wire) + encode(value)


class Message:
    """A message: fields by keyword, ``SerializeToString()`` for its bytes."""

    _fields: dict[str, tuple[int, str]] = {}

    def __init__(self, **fields: Any) -> None:
        unknown = set(fields) - set(self._fields)
        if unknown:
            raise ValueError(f"{type(self).__name__} has no field {unknown.pop()!r}")
        self.__dict__.update(fields)

    def SerializeToString(self) -> bytes:
        values = ((number, kind, self.__dict__.get(name)) for name, (number, kind) in self._items())
        return b"".join(_field(*field) for field in values if field[2] is not None)

    def _items(self) -> Iterable[tuple[str, tuple[int, str]]]:
        return self._fields.items()


def _types() -> dict[str, Any]:
    found = {}
    for line in _SCHEMA.replace("\n    ", " ").strip().splitlines():
        name, *fields = line.split()
        numbers = (field.partition("=") for field in fields)
        table = {field: (int(number[:-1]), number[-1]) for field, _, number in numbers}
        found[name] = type(name, (Message,), {"_fields": table})
    return found


types = _types()
Event: Any = types["Event"]
Summary: Any = types["Summary"]
for _name in ("Value", "Image", "Audio"):
    setattr(Summary, _name, types[f"Summary{_name}"])

# TensorFlow's numbers of dtypes, by their names here.
DTYPES = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7,
    "complex64": 8, "int64": 9, "bool": 10, "bfloat16": 14, "complex128": 18, "float16": 19,
}  # fmt: skip


def shape(sizes: Iterable[int]) -> Any:
    """A TensorShapeProto."""
    return types["TensorShapeProto"](dim=[types["Dim"](size=int(n)) for n in sizes])


def metadata(plugin: str, content: Any = None, **more: Any) -> Any:
    """The SummaryMetadata of a plugin of TensorBoard."""
    data = types["PluginData"](plugin_name=plugin, content=content)
    return types["SummaryMetadata"](plugin_data=data, **more)


def one_value(**fields: Any) -> Any:
    """A Summary of one value."""
    return Summary(value=[Summary.Value(**fields)])
