"""Figures 1 and 2 of the paper (arXiv 1912.01703), drawn from events of the simulated CUDA driver.

    python bench/device_figures.py            # writes docs/images/host_ahead.svg, allocator.svg
    python bench/device_figures.py --out DIR  # there, with the traces for chrome://tracing

The operators and their sizes are those of a ResNet-50, which runs on the device `meta` under a
TorchDispatchMode. The memory comes from the caching allocator, blocks live as long as in training;
the order of events is the driver's. Time is virtual: a kernel takes as long as its bytes and its
arithmetic at the rates below, Python a fixed time an operator. Nothing here was measured on a card.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib
import json
import math
import os
import sys
import tempfile
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
FLOPS_PER_NS, BYTES_PER_NS, LEAST_NS = 100_000, 2_000, 3_000
PYTHON_NS = 15_000  # the interpreter's part of an operator, beside queueing it
BATCH, IMAGE, ITERATIONS = 16, 224, 3
COLORS = {"convolution": "#4477aa", "batch_norm": "#66ccee", "relu": "#228833", "add": "#ccbb44",
          "pool": "#aa3377", "linear": "#ee6677", "other": "#999999"}  # fmt: skip
MALLOC, PYTHON = "#dd2222", "#dddddd"


@dataclass
class Operator:
    """One of the forward pass, by what it reads, writes and computes."""

    name: str
    inputs: list[int]  # bytes
    output: int
    parameters: int
    flops: int
    in_place: bool

    @property
    def kind(self) -> str:
        return next((kind for kind in COLORS if kind in self.name), "other")

    def ns(self, passes: int = 1) -> int:
        moved = sum(self.inputs) + self.output + self.parameters
        return LEAST_NS + passes * int(max(self.flops / FLOPS_PER_NS, moved / BYTES_PER_NS))


# --- what a ResNet-50 does ---


def forward_operators() -> list[Operator]:
    """The operators of the forward pass, as they are called."""

    import taeda
    from taeda import _hook
    from taeda.utils._python_dispatch import TorchDispatchMode

    _hook.install()  # the models import torch
    models = importlib.import_module("bench.models.vision")
    found: list[Operator] = []

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = func(*args, **(kwargs or {}))
            out = result[0] if isinstance(result, (tuple, list)) else result
            name = func.name().split("::")[1].split(".")[0]
            in_place = name.endswith("_")
            if isinstance(out, taeda.Tensor) and (in_place or not _is_view(out, list(args))):
                found.append(_operator(name, list(args), out))
            return result

    with taeda.device("meta"):
        model = models.ResNet(models.Bottleneck, (3, 4, 6, 3)).eval()
        image = taeda.empty(BATCH, 3, IMAGE, IMAGE)
    with taeda.no_grad(), Recorder():
        model(image)
    return found


def _is_view(out: Any, args: list[Any]) -> bool:
    """Whether a tensor lies in the memory of an argument."""
    import taeda

    storages = [a.untyped_storage()._cdata for a in args if isinstance(a, taeda.Tensor)]
    return out.untyped_storage()._cdata in storages


def _operator(name: str, args: list[Any], out: Any) -> Operator:
    import taeda

    tensors = [a for a in args if isinstance(a, taeda.Tensor)]
    sizes = [t.numel() * t.element_size() for t in tensors]
    heavy = "conv" in name or "mm" in name or "linear" in name
    if "conv" in name:
        flops = 2 * out.numel() * math.prod(tensors[1].shape[1:])
    elif heavy:
        flops = 2 * out.numel() * tensors[0].shape[-1]
    else:
        flops = 0
    few = 1 if heavy or "norm" in name else len(sizes)
    kind = {"conv2d": "convolution", "addmm": "linear", "mean": "pool", "relu_": "relu_"}
    return Operator(
        kind.get(name, name), sizes[:few], out.numel() * out.element_size(), sum(sizes[few:]),
        flops, name.endswith("_"),
    )  # fmt: skip


# --- the same on a simulated device ---


class Device:
    """The simulated driver and the caching allocator in front of it."""

    def __init__(self) -> None:
        from tests.simulator import loaded

        import taeda

        self.cuda, self.library = taeda.cuda, loaded().library
        self.library.taeda_sim_write_log.restype = ctypes.c_bool
        self.cuda.synchronize()
        self.stream = ctypes.c_void_p(self.cuda.current_stream().cuda_stream)

    def allocate(self, bytes: int) -> tuple[int, int]:
        return self.cuda.caching_allocator_alloc(max(bytes, 1)), bytes

    def free(self, block: tuple[int, int]) -> None:
        self.cuda.caching_allocator_delete(block[0])

    def launch(self, name: str, ns: int, reads: list[Any], writes: list[Any]) -> None:
        self.library.taeda_sim_host_works(b"Python", ctypes.c_int64(PYTHON_NS))
        blocks = [*reads, *writes]
        begins = (ctypes.c_void_p * len(blocks))(*(b[0] for b in blocks))
        bytes_ = (ctypes.c_int64 * len(blocks))(*(b[1] for b in blocks))
        status = self.library.taeda_sim_launch(
            self.stream, name.encode(), ctypes.c_int64(ns), begins, bytes_, len(blocks), len(reads)
        )
        if status:
            raise RuntimeError(f"{name}: the simulated driver returned {status}")

    def log(self) -> list[Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.json"
            assert self.library.taeda_sim_write_log(str(path).encode())
            return json.loads(path.read_text())


def train(device: Device, operators: list[Operator], iterations: int) -> list[Any]:
    """Runs training steps; the log, with a mark ("iteration", ...) between them."""
    parameters = [device.allocate(op.parameters) if op.parameters else None for op in operators]
    device.library.taeda_sim_keep_log(1)
    marks = []
    for _ in range(iterations):
        marks.append(len(device.log()))
        step(device, operators, parameters)
        device.cuda.synchronize()  # reads the loss
    log = device.log()
    device.library.taeda_sim_keep_log(0)
    for i, at in reversed(list(enumerate(marks))):
        log.insert(at, ["iteration", log[at][1] if at < len(log) else 0, 0, 0, 0, 0, i])
    for block in parameters:
        if block:
            device.free(block)
    return log


def step(device: Device, operators: list[Operator], parameters: list[Any]) -> None:
    activations = [device.allocate(operators[0].inputs[0])]
    saved: list[Any] = []  # what each operator read and wrote
    for op, weight in zip(operators, parameters, strict=True):
        out = activations[-1] if op.in_place else device.allocate(op.output)
        reads = [activations[-1]] + ([weight] if weight else [])
        device.launch(op.name, op.ns(), reads, [out])
        saved.append((activations[-1], out))
        if not op.in_place:
            activations.append(out)
    gradient = device.allocate(operators[-1].output)
    device.launch("other: loss", LEAST_NS, [activations[-1]], [gradient])
    weights: list[Any] = []
    for op, weight, (given, out) in reversed(list(zip(operators, parameters, saved, strict=True))):
        below = gradient if op.in_place else device.allocate(given[1])
        writes = [below]
        if weight:
            weights.append(device.allocate(op.parameters))
            writes.append(weights[-1])
        device.launch(op.name + " backward", op.ns(2 if op.flops else 1), [given, gradient], writes)
        if not op.in_place:
            device.free(gradient)
            device.free(out)
            gradient = below
    device.free(gradient)
    device.free(activations[0])
    with_gradients = [p for p in reversed(parameters) if p]
    for weight, change in zip(with_gradients, weights, strict=True):
        device.launch("other: sgd", LEAST_NS, [change], [weight])
    for change in weights:
        device.free(change)


# --- drawing ---


def color(name: str) -> str:
    return next((c for kind, c in COLORS.items() if kind in name), COLORS["other"])


class Picture:
    """An SVG of boxes and lines along an axis of time."""

    def __init__(self, title: str, begin: float, end: float, height: int) -> None:
        self.begin, self.scale, self.height = begin, 1000 / (end - begin), height
        self.boxes: dict[str, list[str]] = {}  # by color
        self.parts = [f'<text x="20" y="24" font-size="16">{escape(title)}</text>']

    def x(self, ns: float) -> float:
        return 90 + (ns - self.begin) * self.scale

    def box(self, row: int, begin: float, end: float, fill: str) -> None:
        x, width = self.x(begin), max((end - begin) * self.scale, 0.4)
        self.boxes.setdefault(fill, []).append(f"M{x:.1f} {row}h{width:.1f}v34h-{width:.1f}z")

    def line(self, x1: float, y1: float, x2: float, y2: float, stroke: str = "#555555") -> None:
        self.parts.append(
            f'<line x1="{x1:.2f}" y1="{y1}" x2="{x2:.2f}" y2="{y2}" stroke="{stroke}" '
            'stroke-width="0.7"/>'
        )

    def text(self, x: float, y: float, text: str, size: int = 12) -> None:
        self.parts.append(f'<text x="{x:.1f}" y="{y}" font-size="{size}">{escape(text)}</text>')

    def legend(self, y: int, entries: dict[str, str]) -> None:
        x = 90
        for name, fill in entries.items():
            self.parts.append(f'<rect x="{x}" y="{y}" width="12" height="12" fill="{fill}"/>')
            self.text(x + 17, y + 11, name)
            x += 40 + 7 * len(name)

    def axis(self, y: int, step_ns: float) -> None:
        self.line(90, y, 1090, y)
        ns = 0.0
        while self.x(self.begin + ns) <= 1091:
            x = self.x(self.begin + ns)
            self.line(x, y, x, y + 5)
            self.text(x - 8, y + 18, f"{ns / 1e6:g}", 11)
            ns += step_ns
        self.text(1096, y + 5, "ms")

    def svg(self) -> str:
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1130 {self.height}" '
            f'font-family="sans-serif">\n<rect width="1130" height="{self.height}" fill="white"/>\n'
            + "".join(
                f'<path fill="{fill}" d="{"".join(shapes)}"/>\n'
                for fill, shapes in self.boxes.items()
            )
            + "\n".join(self.parts)
            + "\n</svg>\n"
        )


def host_ahead(log: list[Any], count: int) -> str:
    """Figure 1: the first operators of a step that allocates nothing any more."""
    start = [i for i, r in enumerate(log) if r[0] == "iteration"][-1]
    kernels: list[Any] = []
    rest: list[Any] = []
    for record in log[start + 1 :]:
        if record[3] and len(kernels) == count:
            break
        (kernels if record[3] else rest).append(record)
    begin = log[start + 1][1]
    rest = [r for r in rest if r[2] <= kernels[-1][2]]
    picture = Picture(
        "The host queues ResNet-50 ahead of the device (simulated driver, virtual time)",
        begin, max(r[5] for r in kernels), 300,
    )  # fmt: skip
    picture.text(20, 77, "Host")
    picture.text(20, 187, "Device")
    for name, first, last, *_ in rest:
        picture.box(55, first, last, PYTHON if name == "Python" else MALLOC)
    for name, first, last, _, device_first, device_last, _ in kernels:
        picture.box(55, first, last, color(name))
        picture.box(165, device_first, device_last, color(name))
        picture.line(picture.x((first + last) / 2), 89, picture.x(device_first), 165)
    ahead = (max(r[5] for r in kernels) - kernels[-1][2]) / 1e6
    done = f"host done with {count} operators {ahead:.2f} ms before the device"
    picture.text(picture.x(kernels[-1][2]) + 10, 77, done)
    picture.legend(265, {"Python": PYTHON, **COLORS})
    picture.axis(215, 0.1e6)
    return picture.svg()


def allocator(log: list[Any]) -> str:
    """Figure 2: the first steps; what the driver's memory functions take of the host's time."""
    starts = [i for i, r in enumerate(log) if r[0] == "iteration"]
    records = [r for r in log if r[0] != "iteration"]
    begin, end = records[0][1], max(max(r[2], r[5]) for r in records)
    picture = Picture(
        "Training steps of ResNet-50: what cudaMalloc takes (simulated driver, virtual time)",
        begin, end, 330,
    )  # fmt: skip
    picture.text(20, 77, "Host")
    picture.text(20, 137, "Device")
    picture.text(20, 205, "Reserved")
    reserved, curve = 0, [(begin, 0)]
    for name, first, last, stream, device_first, device_last, bytes_ in records:
        memory = name in ("cudaMalloc", "cudaFree")
        picture.box(
            55, first, last, MALLOC if memory else PYTHON if name == "Python" else color(name)
        )
        if stream:
            picture.box(115, device_first, device_last, color(name))
        elif memory:
            curve.append((last, reserved))
            reserved += bytes_ if name == "cudaMalloc" else -bytes_
            curve.append((last, reserved))
    most = max(bytes_ for _, bytes_ in curve)
    curve.append((end, reserved))
    points = " ".join(f"{picture.x(ns):.1f},{240 - 60 * b / most:.1f}" for ns, b in curve)
    picture.parts.append(f'<polyline points="{points}" fill="none" stroke="{MALLOC}"/>')
    picture.text(20, 222, f"{most / (1 << 30):.2f} GiB", 11)
    for number, (start, stop) in enumerate(zip(starts, [*starts[1:], len(log)], strict=True)):
        part = log[start + 1 : stop]
        memory_ns = sum(r[2] - r[1] for r in part if r[0] in ("cudaMalloc", "cudaFree"))
        calls = sum(r[0] in ("cudaMalloc", "cudaFree") for r in part)
        at, until = part[0][1], max(max(r[2], r[5]) for r in part)
        picture.line(picture.x(at), 40, picture.x(at), 245, "#000000")
        picture.text(picture.x(at) + 4, 48, f"step {number + 1}: {(until - at) / 1e6:.1f} ms")
        picture.text(picture.x(at) + 4, 105, f"{calls} memory calls, {memory_ns / 1e6:.1f} ms", 11)
    picture.legend(300, {"cudaMalloc, cudaFree": MALLOC, "Python": PYTHON, **COLORS})
    picture.axis(250, 5e6)
    return picture.svg()


def chrome_trace(log: list[Any]) -> dict[str, Any]:
    """The log as chrome://tracing and Perfetto read it, with an arrow for each launch."""
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}
        for pid, name in enumerate(("host", "simulated device"))
    ]
    for i, (name, first, last, stream, device_first, device_last, bytes_) in enumerate(log):
        if name == "iteration":
            continue
        span = {"ph": "X", "name": name, "pid": 0, "tid": 0, "ts": first / 1e3}
        events.append({**span, "dur": (last - first) / 1e3, "args": {"bytes": bytes_}})
        if stream:
            events.append({**span, "pid": 1, "tid": stream, "ts": device_first / 1e3,
                           "dur": (device_last - device_first) / 1e3})  # fmt: skip
            arrow = {"cat": "launch", "name": "launch", "id": i}
            events.append({**arrow, "ph": "s", "pid": 0, "tid": 0, "ts": last / 1e3})
            events.append({**arrow, "ph": "f", "bp": "e", "pid": 1, "tid": stream,
                           "ts": device_first / 1e3})  # fmt: skip
    return {"traceEvents": events}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, help="a folder; docs/images without traces")
    parser.add_argument("--operators", type=int, default=24, help="of the first figure")
    args = parser.parse_args()
    if os.environ.get("TAEDA_CUDA") != "sim":  # the driver is chosen once a process
        environment = {**os.environ, "TAEDA_CUDA": "sim", "TAEDA_SIM_SCHEDULE": "1"}
        os.execve(sys.executable, [sys.executable, __file__, *sys.argv[1:]], environment)
    out = args.out or ROOT / "docs" / "images"
    out.mkdir(parents=True, exist_ok=True)
    log = train(Device(), forward_operators(), ITERATIONS)
    (out / "host_ahead.svg").write_text(host_ahead(log, args.operators))
    (out / "allocator.svg").write_text(allocator(log))
    if args.out:
        (out / "trace.json").write_text(json.dumps(chrome_trace(log)))
    print(f"{len(log)} events; pictures in {out}")


if __name__ == "__main__":
    main()
