"""taeda against PyTorch, in one interleaved run: `make bench`.

    python bench/run.py [--suite tiny] [--repetitions 9]
    python bench/run.py --suite models --only gpt --out FOLDER
    python bench/run.py --suite kernels --cases "linear algebra|^fft" --minutes 5 --out FOLDER

Each measurement of one framework is followed by one of the other, in separate processes that wait
while the other works; a row shows the medians and their ratio, so that a busy machine slows both.
Every row goes to build/bench/benchmarks.json, and one row an idea to docs/benchmarks.md, which
keeps the rows of suites that were not run, with their date (a part of a suite goes to another
folder).
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import cases
import families
import kernel_cases
import loading
import memory
import table
from limits import Arithmetic, Yardsticks
from process import FRAMEWORKS, ROOT, Model, Worker, machine, pinned_python
from table import Row

SUITES = [
    "import", "tiny", "kernels", "transforms", "processes", "demo", "models", "bf16", "contention",
    "threads", "memory", "loading", "size", "build",
]  # fmt: skip
RAW = ROOT / "build" / "bench"
CONTENTION = ["convnet", "gpt"]  # the models trained while another process computes
SAME_BITS, STEPS = ["resnet18", "gpt"], 20  # those trained with one and with two threads
PROCESSES = {"resnet50": 5}  # that train a model, 3 for others: PyTorch's differ most by this one
MODELS = [
    "alexnet", "vgg19", "resnet18", "resnet50", "mobilenet_v1", "mobilenet_v2", "convnet",
    "vit_tiny", "gpt", "gnmt", "ncf", "gpt2_decode", "gpt2_decode_bf16",
]  # fmt: skip
BF16_TRAINING = ["resnet50_bf16", "gpt_bf16", "bert_bf16", "lstm_bf16"]
# Runs in a fresh interpreter: seconds, resident megabytes and modules of one import.
IMPORT = """
import sys, time
before = len(sys.modules)
start = time.perf_counter()
import {0}
seconds = time.perf_counter() - start
rss = next(line for line in open("/proc/self/status") if line.startswith("VmRSS"))
print(seconds, int(rss.split()[1]) / 1024, len(sys.modules) - before)
"""

THREADS = [n for n in (1, 2) if n <= len(os.sched_getaffinity(0))]


def thread_counts() -> list[int]:
    return THREADS


def spread(times: list[float]) -> float:
    """Half the range of the middle half of some measurements (of all, if there are fewer than
    four), relative to their median."""
    if len(times) < 4:
        return (max(times) - min(times)) / 2 / (statistics.median(times) or 1)
    first, middle, third = statistics.quantiles(times, n=4)
    return (third - first) / 2 / middle


STEADY = 0.1  # a case whose measurements spread more is measured up to twice as often


def row(name: str, unit: str, ours: list[float], theirs: list[float], **more: Any) -> Row:
    """Medians of both, and their ratio."""
    a, b = statistics.median(ours), statistics.median(theirs)
    result = {"name": name, "unit": unit, "taeda": a, "torch": b, "ratio": a / b}
    return result | {"spread": max(spread(ours), spread(theirs))} | more


def measure_cases(
    suite: str, repetitions: int, only: str = "", until: float = math.inf
) -> list[Row]:
    """Rows of the cases whose name or family `only` finds; begins none after the time `until`."""
    rows = []
    names = [
        name
        for name in cases.CASES[suite]
        if re.search(only, name) or re.search(only, families.family(name))
    ]
    used = {f for name in names for f in cases.frameworks(suite, name)}
    for threads in thread_counts():
        workers = {f: Worker(f, threads) for f in used}
        yardsticks = Yardsticks(threads) if suite == "kernels" else None
        arithmetic = Arithmetic() if suite == "kernels" else None
        for i, name in enumerate(names):
            if time.monotonic() > until:
                print(f"  no time left for {len(names) - i} cases ({threads} threads)", flush=True)
                break
            frameworks = cases.frameworks(suite, name)
            loops: dict[str, Any] = {f: workers[f].ask(suite, name, 0) for f in frameworks}
            errors = {f: n for f, n in loops.items() if isinstance(n, str)}
            if errors:
                rows.append({"name": name, "threads": threads, "error": errors})
                print(f"  {name}: {errors}", flush=True)
                for framework in errors:
                    if workers[framework].process.poll() is not None:
                        workers[framework] = Worker(framework, threads)
                continue
            times: dict[str, list[float]] = {f: [] for f in frameworks}
            if yardsticks:
                yardsticks.prepare(name)
            for done in range(2 * repetitions):
                if done >= repetitions and all(spread(t) <= STEADY for t in times.values()):
                    break
                if yardsticks:
                    yardsticks.measure()
                for f in frameworks:
                    took = workers[f].ask(suite, name, int(loops[f]))
                    assert isinstance(took, float), took
                    times[f].append(took / loops[f] * 1e6)
            more: Row = {"threads": threads}
            if "numpy" in times:
                more["numpy"] = statistics.median(times["numpy"])
            if yardsticks:
                took = statistics.median(times["taeda"])
                more |= yardsticks.limit(name, took)
                if arithmetic and name in kernel_cases.BYTES:
                    more |= arithmetic.share(name, took, threads)
            rows.append(row(name, "us", times["taeda"], times["torch"], **more))
            print(f"  {table.line(rows[-1])}", flush=True)
        for worker in workers.values():
            worker.close()
        for helper in (yardsticks, arithmetic):
            if helper:
                helper.close()
    return rows


def measure_kernels(repetitions: int, only: str, until: float) -> list[Row]:
    rows = measure_cases("kernels", repetitions, only, until)
    return rows + compare_pairs(rows)


def compare_pairs(rows: list[Row]) -> list[Row]:
    """The time of one kernel over that of another, where one is to cost no more."""
    found = {(r["name"], r["threads"]): r for r in rows if "error" not in r}
    return [
        {"name": name, "threads": n, "unit": "x", "most": most}
        | {f: found[first, n][f] / found[second, n][f] for f in FRAMEWORKS}
        for n in thread_counts()
        for name, (first, second, most) in kernel_cases.PAIRS.items()
        if (first, n) in found and (second, n) in found
    ]


def measure_import(repetitions: int) -> list[Row]:
    found: dict[str, list[list[float]]] = {f: [] for f in FRAMEWORKS}
    for _ in range(repetitions):
        for f in FRAMEWORKS:
            command = [sys.executable, "-c", IMPORT.format(f)]
            output = subprocess.check_output(command, text=True)
            found[f].append([float(value) for value in output.split()])
    rows = []
    for i, (name, unit) in enumerate([("time", "ms"), ("memory", "MB"), ("modules", "")]):
        scale = 1000 if i == 0 else 1
        ours, theirs = ([values[i] * scale for values in found[f]] for f in FRAMEWORKS)
        rows.append(row(f"import: {name}", unit, ours, theirs))
        print(f"  {table.line(rows[-1])}", flush=True)
    return rows


def measure_demo(repetitions: int) -> list[Row]:
    rows = []
    for threads in thread_counts():
        rates: dict[str, list[float]] = {f: [] for f in FRAMEWORKS}
        for _ in range(min(repetitions, 3)):
            for f in FRAMEWORKS:
                rates[f].append(demo_rate(f, threads))
        # A ratio of times, as everywhere: below 1 is faster than PyTorch.
        ours, theirs = ([1e6 / rate for rate in rates[f]] for f in FRAMEWORKS)
        rows.append(row("Fashion-MNIST training, an image", "us", ours, theirs, threads=threads))
        print(f"  {table.line(rows[-1])}", flush=True)
    return rows


def demo_rate(framework: str, threads: int) -> float:
    """Training images a second of the demo, on part of the images."""
    command = pinned_python(threads)
    with tempfile.TemporaryDirectory() as folder:
        command += [str(ROOT / "examples" / "fashion_mnist.py"), "--framework", framework]
        command += ["--limit", "12800", "--epochs", "1", "--out", folder]
        output = subprocess.check_output(command, text=True)
    match = re.search(r"test accuracy [\d.]+, (\d+) images/s", output)
    assert match, output
    return float(match[1])


def measure_model(name: str, threads: int, repetitions: int) -> Row:
    """Rates in the model's units, and the processes' peak memory; `ratio` is one of rates. Each
    repetition is a process of its own: some models vary more between processes than within."""
    rates: dict[str, list[float]] = {f: [] for f in FRAMEWORKS}
    memory: dict[str, list[float]] = {f: [] for f in FRAMEWORKS}
    faults: dict[str, list[float]] = {f: [] for f in FRAMEWORKS}
    for _ in range(repetitions):
        for f in FRAMEWORKS:
            model = Model(f, name, threads)
            model.seconds(2)  # the first steps fill caches and compile kernels
            took = model.seconds(1)
            steps = max(1, min(200, round(0.5 / took)))
            if steps > 1:
                took = model.seconds(steps) / steps
            rates[f].append(model.units / took)
            memory[f].append(model.megabytes)
            faults[f].append(model.faults)
            unit = f"{model.unit}/s"
            model.close()
    megabytes = {f: statistics.median(values) for f, values in memory.items()}
    return row(
        name, unit, rates["taeda"], rates["torch"], threads=threads,
        memory=megabytes, memory_ratio=megabytes["taeda"] / megabytes["torch"],
        faults={f: statistics.median(values) for f, values in faults.items()},
    )  # fmt: skip


def measure_models(repetitions: int, only: list[str]) -> list[Row]:
    rows = []
    for threads in thread_counts():
        for name in only:
            try:
                found = measure_model(name, threads, min(repetitions, PROCESSES.get(name, 3)))
            except RuntimeError as error:
                found = {"name": name, "threads": threads, "error": {"model": str(error)}}
            rows.append(found)
            print(f"  {table.model_line(found)}", flush=True)
    return rows


@contextlib.contextmanager
def busy_core() -> Iterator[None]:
    """Another process computes on the last of the cores meanwhile."""
    core = max(os.sched_getaffinity(0))
    other = subprocess.Popen(["taskset", "-c", str(core), sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        other.kill()
        other.wait()


def measure_contention(repetitions: int) -> list[Row]:
    """Training on all cores while one of them is shared; time for an image or a token."""
    rows = []
    for name in CONTENTION:
        with busy_core():
            rates = measure_model(name, thread_counts()[-1], min(repetitions, 3))
        ours, theirs = ([1e6 / rates[f]] for f in FRAMEWORKS)
        unit = rates["unit"].removesuffix("s/s")
        rows.append(row(f"{name}, {unit}", "us", ours, theirs, threads=rates["threads"]))
        print(f"  {table.line(rows[-1])}", flush=True)
    return rows


def measure_threads(_: int) -> list[Row]:
    """Steps of training whose losses have the same bits with one and with two threads; one step
    more if the weights after them have, too."""
    rows: list[Row] = []
    for name in SAME_BITS:
        same: dict[str, int] = {}
        for f in FRAMEWORKS:
            one, two = (trained(f, name, threads) for threads in (1, 2))
            same[f] = sum(a == b for a, b in zip(one["exact"], two["exact"], strict=True))
            same[f] += one["trained"] == two["trained"]
        title = f"{name}, {STEPS} losses and the weights after them: equal"
        rows.append({"name": title, "unit": "", "least": STEPS + 1} | same)
        print(f"  {table.line(rows[-1])}", flush=True)
    return rows


def trained(framework: str, name: str, threads: int) -> Row:
    """The losses of STEPS steps of a model in full size, and the weights' hash after them."""
    command = [*pinned_python(threads), str(ROOT / "bench" / "models" / "worker.py"), "--full"]
    command += ["--framework", framework, "--model", name, "--threads", str(threads)]
    return dict(json.loads(subprocess.check_output([*command, "--check", str(STEPS)], text=True)))


def measure_memory(repetitions: int) -> list[Row]:
    return measure_program("memory.py", memory.MEASURES, min(repetitions, 3))


def measure_loading(repetitions: int) -> list[Row]:
    return measure_program("loading.py", loading.MEASURES, min(repetitions, 3))


def measure_program(name: str, measures: list, repetitions: int) -> list[Row]:
    """What a program that measures one framework prints, for both in turn."""
    threads = thread_counts()[-1]
    script = str(ROOT / "bench" / name)
    found: dict[str, list[list[float]]] = {f: [] for f in FRAMEWORKS}
    for _ in range(repetitions):
        for f in FRAMEWORKS:
            output = subprocess.check_output(
                [*pinned_python(threads), script, f, str(threads)], text=True
            )
            found[f].append(json.loads(output))
    rows: list[Row] = []
    for i, (title, unit, most, _) in enumerate(measures):
        medians = {f: statistics.median(values[i] for values in found[f]) for f in FRAMEWORKS}
        rows.append({"name": title, "unit": unit, "most": most} | medians)
        print(f"  {table.line(rows[-1])}", flush=True)
    return rows


def measure_size(_: int) -> list[Row]:
    rows: list[Row] = []
    wheels = list((ROOT / "dist").glob("taeda-*.whl"))
    torch_folder = Path(sysconfig.get_path("purelib")) / "torch"
    if not wheels:
        print("  no wheel in dist/: run `make wheel` first")
        return rows
    import zipfile

    with zipfile.ZipFile(wheels[0]) as archive:
        unpacked = sum(item.file_size for item in archive.infolist()) / 1e6
    torch_disk = sum(f.stat().st_size for f in torch_folder.rglob("*") if f.is_file()) / 1e6
    # PyTorch's wheel is not kept after installing it; its size is that of the published CPU build.
    rows.append(row("wheel", "MB", [wheels[0].stat().st_size / 1e6], [192.0]))
    rows.append(row("installed", "MB", [unpacked], [torch_disk]))
    return rows


def measure_build(_: int) -> list[Row]:
    """A clean build without a compiler cache, and what a small C++ program takes to compile."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        configure = ["cmake", "-G", "Ninja", "-S", str(ROOT), "-B", folder, "-Wno-dev"]
        configure += [f"-DPython_EXECUTABLE={sys.executable}", "-DTAEDA_CCACHE="]
        for command in (configure, ["ninja", "-C", folder, "-j", "2"]):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        minutes = (time.perf_counter() - start) / 60
    rows.append({"name": "clean build, two cores", "unit": "min", "taeda": minutes})
    includes = [ROOT / "include", ROOT / "build" / "generated" / "include"]
    ours = [compile_seconds(ROOT / "examples" / "cpp" / "hello.cc", includes) for _ in range(3)]
    torch_include = Path(sysconfig.get_path("purelib")) / "torch" / "include"
    torch_includes = [torch_include, torch_include / "torch" / "csrc" / "api" / "include"]
    name, unit = "C++ hello world, compiling", "s"
    if torch_include.exists():
        theirs = [compile_seconds(ROOT / "bench" / "hello_torch.cc", torch_includes)]
        rows.append(row(name, unit, ours, theirs))
    else:
        rows.append({"name": name, "unit": unit, "taeda": statistics.median(ours)})
    return rows


def compile_seconds(source: Path, includes: list[Path]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        command = ["g++", "-std=c++20", "-O2", "-c", str(source), "-o", f"{folder}/hello.o"]
        command += [f"-I{path}" for path in includes]
        start = time.perf_counter()
        subprocess.run(command, check=True)
        return time.perf_counter() - start


def versions() -> dict[str, str]:
    code = "import {0}; print({0}.__version__)"
    return {
        f: subprocess.check_output([sys.executable, "-c", code.format(f)], text=True).strip()
        for f in FRAMEWORKS
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", action="append", choices=SUITES, help="default: all but build")
    parser.add_argument(
        "--only", action="append", choices=MODELS + BF16_TRAINING, help="of a suite of models"
    )
    parser.add_argument("--repetitions", type=int, default=9, help="models and demo: less")
    parser.add_argument(
        "--cases", default="", help="only those whose name or family this expression finds"
    )
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="after which no case of a suite begins"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "docs")
    args = parser.parse_args()
    part = args.only or args.cases or args.minutes < math.inf
    if part and args.out == ROOT / "docs":
        parser.error("--only, --cases and --minutes leave out rows: name a folder by --out")
    if not shutil.which("taskset"):
        sys.exit("taskset (util-linux) is needed")
    try:
        found = versions()
    except subprocess.CalledProcessError:
        sys.exit("both taeda and PyTorch must be installed in .venv for a comparison")

    args.out.mkdir(exist_ok=True)
    path = (RAW if args.out == ROOT / "docs" else args.out) / "benchmarks.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    results = json.loads(path.read_text()) if path.exists() else {}
    results = {suite: results[suite] for suite in SUITES if suite in results}

    def measured(suite: str) -> Callable[[int], list[Row]]:
        measure = measure_kernels if suite == "kernels" else partial(measure_cases, suite)
        return lambda n: measure(n, args.cases, time.monotonic() + 60 * args.minutes)

    def wanted(models: list[str]) -> list[str]:
        return [name for name in models if name in (args.only or models)]

    measures = {
        "import": measure_import,
        **{suite: measured(suite) for suite in ("tiny", "kernels", "transforms", "processes")},
        "demo": measure_demo,
        "models": lambda n: measure_models(n, wanted(MODELS)),
        "bf16": lambda n: measure_models(n, wanted(BF16_TRAINING)),
        "contention": measure_contention,
        "threads": measure_threads,
        "memory": measure_memory,
        "loading": measure_loading,
        "size": measure_size,
        "build": measure_build,
    }
    for suite in args.suite or [name for name in SUITES if name != "build"]:
        print(f"{suite}:", flush=True)
        load = os.getloadavg()[0]
        rows = measures[suite](args.repetitions)
        results[suite] = {
            "date": datetime.date.today().isoformat(),
            "machine": machine(),
            "versions": found,
            "load": load,
            "rows": rows,
        } | ({"isa": isa} if (isa := os.environ.get("ONEDNN_MAX_CPU_ISA")) else {})
        path.write_text(json.dumps(results, indent=1) + "\n")
        page = table.write(args.out, {suite: results[suite]})
        if args.out == ROOT / "docs":  # the README shows these results, not those of a trial
            table.update_readme(ROOT / "README.md", page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
