"""Figures 1 and 2 of the paper (arXiv 1912.01703), drawn from events of a CUDA driver.

    python bench/device_figures.py            # writes docs/images/host_ahead.svg, allocator.svg
    python bench/device_figures.py --card     # writes docs/gpu/DATE-CARD-host_ahead.svg, ...
    python bench/device_figures.py --out DIR  # there, with the trace for chrome://tracing

The operators and their sizes are those of a ResNet-50, which runs on the device `meta` under a
TorchDispatchMode. The memory comes from the caching allocator, blocks live as long as in training.

Without `--card` the driver is the simulated one and time is virtual: a kernel takes as long as its
bytes and its arithmetic at the rates below, Python a fixed time an operator. With it times are
measured on the current device, but no convolution or product runs there: pointwise kernels stand
for every operator, which move its bytes and compute nothing.
"""

from __future__ import annotations

import argparse
import bisect
import ctypes
import importlib
import json
import math
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import date
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
FLOPS_PER_NS, BYTES_PER_NS, LEAST_NS = 100_000, 2_000, 3_000
PYTHON_NS = 15_000  # the interpreter's part of an operator, beside queueing it
ITERATIONS = 3
COLORS = {"convolution": "#4477aa", "batch_norm": "#66ccee", "relu": "#228833", "add": "#ccbb44",
          "pool": "#aa3377", "linear": "#ee6677", "other": "#999999"}  # fmt: skip
MALLOC, PYTHON = "#dd2222", "#dddddd"
MEMORY_CALLS = {"segment_alloc": "cudaMalloc", "segment_map": "cudaMalloc",
                "segment_free": "cudaFree", "segment_unmap": "cudaFree"}  # fmt: skip


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


def forward_operators(batch: int, size: int) -> list[Operator]:
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
        image = taeda.empty(batch, 3, size, size)
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


# --- the same on a device ---


class Device:
    """The simulated driver and the caching allocator in front of it."""

    where, prefix = "simulated driver, virtual time", ""

    def __init__(self) -> None:
        from tests.simulator import loaded

        import taeda

        self.cuda, self.library = taeda.cuda, loaded().library
        self.library.taeda_sim_write_log.restype = ctypes.c_bool
        self.cuda.synchronize()
        self.stream = ctypes.c_void_p(self.cuda.current_stream().cuda_stream)

    def allocate(self, bytes: int) -> Any:
        """A block: its second part is its size."""
        return self.cuda.caching_allocator_alloc(max(bytes, 1)), bytes

    def free(self, block: Any) -> None:
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

    def start(self) -> None:
        self.library.taeda_sim_keep_log(1)

    def mark(self, name: str) -> None:
        """A record in the log while the device is idle."""
        self.library.taeda_sim_host_works(name.encode(), ctypes.c_int64(0))

    def finish(self) -> list[Any]:
        """The log since `start`, as taeda_sim_write_log writes it."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.json"
            assert self.library.taeda_sim_write_log(str(path).encode())
            self.library.taeda_sim_keep_log(0)
            return json.loads(path.read_text(encoding="utf-8"))


class Card:
    """The current CUDA device and the caching allocator, by the clocks of both sides.

    An operator's time on the device is that between two events. On an idle device this has the
    host's launches in it. Device time lies beside the host's by an event that the host waits for at
    each mark: it is late by what waiting takes, some microseconds.
    """

    def __init__(self) -> None:
        from tests.gpu import report, run

        import taeda

        if reason := run.reason_to_skip():
            raise SystemExit(f"no pictures: {reason}")
        self.cuda, self.torch = taeda.cuda, taeda
        about = {"date": date.today().isoformat(), **run.about_the_device()}
        self.prefix = report.stem(about) + "-"
        self.where = "{card}, driver {driver}, {date}; pointwise stand-ins".format(**about)
        if about["simulated"]:
            self.where = "simulated driver beside the host's time; pointwise stand-ins"
        self.asked: list[int] = []  # when the allocator was asked for memory
        self.move([self.allocate(16)], [self.allocate(32)])  # loads the kernels

    def allocate(self, bytes: int) -> Any:
        self.asked.append(time.perf_counter_ns())
        return [self.torch.empty(bytes // 4, device="cuda"), bytes]

    def free(self, block: Any) -> None:
        block[0] = None

    def launch(self, name: str, ns: int, reads: list[Any], writes: list[Any]) -> None:
        begin, end = (self.cuda.Event(enable_timing=True) for _ in range(2))
        first = time.perf_counter_ns()
        begin.record()
        self.move(reads, writes)
        end.record()
        self.launches.append((name, first, time.perf_counter_ns(), *self.base, begin, end))

    def move(self, reads: list[Any], writes: list[Any]) -> None:
        """Reads all bytes of some blocks and writes those of others, the largest of which is
        written more than once where there is more to read."""
        rest = [block[0] for block in writes]
        largest = max(rest, key=len)
        for source in (block[0] for block in reads):
            while len(source):
                target = rest[0] if rest else largest
                n = min(len(source), len(target))
                self.torch.neg(source[:n], out=target[:n])
                source = source[n:]
                if rest:
                    rest[:1] = [target[n:]] if n < len(target) else []
        for target in rest:
            target.zero_()

    def start(self) -> None:
        self.cuda.empty_cache()
        self.cuda.memory._record_memory_history(context=None, clear_history=True)
        self.launches: list[Any] = []
        self.marks: list[Any] = []

    def mark(self, name: str) -> None:
        event = self.cuda.Event(enable_timing=True)
        event.record()
        event.synchronize()
        self.base = (event, time.perf_counter_ns())
        self.marks.append([name, self.base[1], self.base[1], 0, 0, 0, 0])

    def finish(self) -> list[Any]:
        records = [*self.marks]
        for name, first, last, base, base_ns, *events in self.launches:
            begin, end = (base_ns + round(base.elapsed_time(event) * 1e6) for event in events)
            records.append([name, first, last, 1, begin, end, 0])
        records += self.memory_calls()
        records.sort(key=lambda record: record[1])
        log = records[:1]
        for record in records[1:]:
            if record[0] != "iteration" and record[1] > log[-1][2]:
                log.append(["Python", log[-1][2], record[1], 0, 0, 0, 0])
            log.append(record)
        return log

    def memory_calls(self) -> list[Any]:
        """What the allocator took and gave back, from where it was asked for memory to the time
        that its history has."""
        history = self.cuda.memory._snapshot()["device_traces"][self.cuda.current_device()]
        self.cuda.memory._record_memory_history(None)
        ahead = time.time_ns() - time.perf_counter_ns()  # of two clocks of the host
        calls: list[Any] = []
        for event in history:
            if name := MEMORY_CALLS.get(event["action"]):
                end = event["time_us"] * 1000 + 1000 - ahead  # it was rounded down
                asked = self.asked[bisect.bisect(self.asked, end) - 1]
                begin = max(asked, calls[-1][2]) if calls else asked
                calls.append([name, begin, end, 0, 0, 0, event["size"]])
        return calls


def train(device: Device | Card, operators: list[Operator], iterations: int) -> list[Any]:
    """Runs training steps; the log, with a mark ("iteration", ...) before each of them."""
    parameters = [device.allocate(op.parameters) if op.parameters else None for op in operators]
    device.start()
    for _ in range(iterations):
        device.mark("iteration")
        step(device, operators, parameters)
        device.cuda.synchronize()  # reads the loss
    log = device.finish()
    for block in parameters:
        if block:
            device.free(block)
    return log


def step(device: Device | Card, operators: list[Operator], parameters: list[Any]) -> None:
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
        self.begin, self.end, self.height = begin, end, height
        self.scale = 1000 / (end - begin)
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

    def axis(self, y: int) -> None:
        """With at most 10 intervals."""
        self.line(90, y, 1090, y)
        least = (self.end - self.begin) / 10
        power = 10 ** math.floor(math.log10(least))
        ns, step_ns = 0.0, next(power * n for n in (1, 2, 5, 10) if power * n >= least)
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


def host_ahead(log: list[Any], where: str, count: int) -> str:
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
        f"The host queues ResNet-50 ahead of the device ({where})",
        begin, max(max(r[2], r[5]) for r in kernels), 300,
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
    order = "before" if ahead >= 0 else "after"
    done = f"host done with {count} operators {abs(ahead):.2f} ms {order} the device"
    x = picture.x(kernels[-1][2]) + 10
    picture.text(min(x, 740), 77 if x <= 740 else 48, done)
    picture.legend(265, {"Python": PYTHON, **COLORS})
    picture.axis(215)
    return picture.svg()


def allocator(log: list[Any], where: str) -> str:
    """Figure 2: the first steps; what the driver's memory functions take of the host's time."""
    starts = [i for i, r in enumerate(log) if r[0] == "iteration"]
    records = [r for r in log if r[0] != "iteration"]
    begin, end = records[0][1], max(max(r[2], r[5]) for r in records)
    picture = Picture(
        f"Training steps of ResNet-50: what cudaMalloc takes ({where})", begin, end, 330
    )
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
    picture.axis(250)
    return picture.svg()


def chrome_trace(log: list[Any], where: str) -> dict[str, Any]:
    """The log as chrome://tracing and Perfetto read it, with an arrow for each launch."""
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}
        for pid, name in enumerate(("host", where))
    ]
    for i, (name, first, last, stream, device_first, device_last, bytes_) in enumerate(log):
        if name == "iteration":
            events.append({"ph": "i", "s": "g", "name": name, "pid": 0, "ts": first / 1e3})
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
    parser.add_argument("--card", action="store_true", help="measure on the current CUDA device")
    parser.add_argument("--out", type=Path, help="a folder; docs/images or docs/gpu without traces")
    parser.add_argument("--operators", type=int, default=24, help="of the first figure")
    parser.add_argument("--batch", type=int, help="images of a step; 16, on a card 64 (10 GB)")
    parser.add_argument("--image", type=int, default=224, help="their height and width")
    args = parser.parse_args()
    if args.card:
        os.environ.setdefault("TAEDA_CUDA", "driver")
    elif os.environ.get("TAEDA_CUDA") != "sim":  # the driver is chosen once a process
        environment = {**os.environ, "TAEDA_CUDA": "sim", "TAEDA_SIM_SCHEDULE": "1"}
        os.execve(sys.executable, [sys.executable, __file__, *sys.argv[1:]], environment)
    device = Card() if args.card else Device()
    out = args.out or ROOT / "docs" / ("gpu" if args.card else "images")
    out.mkdir(parents=True, exist_ok=True)
    operators = forward_operators(args.batch or (64 if args.card else 16), args.image)
    log = train(device, operators, ITERATIONS)
    files = {
        "host_ahead.svg": host_ahead(log, device.where, args.operators),
        "allocator.svg": allocator(log, device.where),
    }
    if args.out:
        files["trace.json"] = json.dumps(chrome_trace(log, device.where))
    for name, text in files.items():
        (out / (device.prefix + name)).write_text(text, encoding="utf-8")
    print(f"{len(log)} events; pictures in {out}")


if __name__ == "__main__":
    main()
