"""docs/benchmarks.md and the README's table: one row an idea, made from what bench/run.py measured.

The page keeps the rows of suites that a run did not measure, each with its own date, so the raw
measurements (build/bench/benchmarks.json) need not be kept.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import kernel_cases
from families import FAMILIES, family

Row = dict[str, Any]
UNSTEADY = 0.2  # the spread of a row's measurements from which on it is shown
LIMIT = 0.8  # the share of the machine's limit that a kernel must reach
MOST_FAULTS = 100  # pages that a step of a model may bring in
# The largest ratio of times that this project accepts; a row above it is marked.
TARGETS = {
    "import: time": 0.15,
    "tiny": 0.35,
    "kernels": 1.0,
    "transforms": 1.0,
    "processes": 1.0,
    "queue, 4 floats": 0.5,
    "queue, 1 KiB": 0.5,
    "demo": 1.0,
    "contention": 1.0,
}
# PyTorch's throughput times this is what the project asks of itself for each model.
MODEL_TARGETS = {
    "alexnet": 1.3, "vgg19": 1.15, "resnet18": 1.4, "resnet50": 1.4, "mobilenet_v1": 1.8,
    "mobilenet_v2": 1.8, "convnet": 1.5, "vit_tiny": 1.2, "gpt": 1.15, "gnmt": 1.3, "ncf": 1.5,
    "resnet50_bf16": 1.0, "gpt_bf16": 1.0, "bert_bf16": 1.0, "lstm_bf16": 1.0,
    "gpt2_decode": 1.1, "gpt2_decode_bf16": 1.5,
}  # fmt: skip
MODELS = ("models", "bf16")  # suites whose ratio is one of throughputs

INTRODUCTION = """# taeda against PyTorch

Made by `make bench` (bench/run.py). Both frameworks run on the same machine in one interleaved run:
a measurement of one, then one of the other, in processes of their own on the same cores. The
figures are medians. A ratio in bold misses what the project asks of itself, or NumPy takes less;
where the middle half of a row's measurements is more than 20 % from their median, the spread stands
behind. Absolute figures are those of one thread where both were measured. The raw measurements of
the last run, every case of every suite, are in `build/bench/benchmarks.json`.
"""
# Title -> the suites whose rows stand there, the columns, and what they mean.
SECTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "Importing, size, building": (
        ("import", "size", "build"),
        ("taeda", "PyTorch", "ratio", "measured"),
        "A ratio below 1 means that taeda takes less.",
    ),
    "What a call costs": (
        ("tiny",),
        ("taeda", "PyTorch", "ratio", "2 threads", "measured"),
        "Tensors of 2 x 2, from Python. A ratio below 1 means that taeda takes less.",
    ),
    "Kernels": (
        ("kernels",),
        ("cases", "ratio", "2 threads", "closest to PyTorch or slower", "measured"),
        "Geometric means of a family's ratios of times (below 1: taeda takes less), and its case\n"
        "with the largest ratio.",
    ),
    "Training": (
        ("models", "bf16"),
        ("taeda", "PyTorch", "throughput", "2 threads", "memory", "measured"),
        "Steps of forward, loss, backward and optimizer of bench/models; the decoders only read.\n"
        "A throughput above 1 means that taeda does more, a memory ratio below 1 that its process\n"
        "needs less at its peak.",
    ),
    "Other programs": (
        ("demo", "transforms", "contention"),
        ("taeda", "PyTorch", "ratio", "2 threads", "measured"),
        "Times; the rows with an image or a token of a model ran while another process kept one "
        "core busy.",
    ),
    "Loading data, tensors between processes": (
        ("loading", "processes"),
        ("taeda", "PyTorch", "ratio", "2 threads", "wanted", "measured"),
        "Workers of a DataLoader; tensors sent to another process, and an answer back.",
    ),
    "Memory, and the same bits with one thread and with two": (
        ("memory", "threads"),
        ("taeda", "PyTorch", "wanted", "measured"),
        "",
    ),
}
# Rows that another one stands for: they are in benchmarks.json, not on the page.
LEFT_OUT = {
    "import: modules", "1,000 images, this process", "`w + b, with gradient`",
    "`a * 2.0`", "`a.view(-1)`", "`a.add_(b)`", "`relu(a)`", "`zeros(2)`", "`stack([a, b])`",
    "`empty_like(a)`", "`a.reshape(4)`", "`a.t()`", "`a[:, 0]`", "`a > b`", "`a.mean(1)`",
    "`a.clone()`", "`a.double()`", "`tensor([1., 2.])`", "`randn(2, 2)`",
    "`LSTMCell(4, 4)(x, state)`",
    *(f"queue, {size}" for size in ("1 KiB", "64 KiB", "1 MiB")),
    # docs/notes/multiprocessing.md has what sharing buys.
    *(f"as bytes, {size}" for size in ("4 floats", "1 KiB", "64 KiB", "1 MiB")),
}  # fmt: skip
# What the README shows: a suite's row and its words for it.
README_ROWS = {
    ("import", "import: time"): "`import`",
    ("import", "import: memory"): "memory after `import`",
    ("tiny", "a + b"): "`a + b` on 2 x 2",
    ("tiny", "MLP training step, Adam"): "training step of a small MLP, Adam",
    ("demo", "Fashion-MNIST training, an image"): "training on Fashion-MNIST, an image",
    ("models", "resnet50"): "training ResNet-50",
    ("models", "gpt"): "training a GPT",
    ("size", "installed"): "installed size",
}


def amount(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    if unit == "us" and value < 1:
        value, unit = value * 1000, "ns"
    elif unit == "us" and value >= 1000:
        value, unit = value / 1000, "ms"
    digits = 0 if value >= 100 or not unit else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}".strip()


def bold(text: str, wanted: bool) -> str:
    return f"**{text}**" if wanted and text else text


def line(row: Row) -> str:
    """A row as the terminal shows it while the suite runs."""
    threads = f" ({row['threads']} threads)" if row.get("threads", 1) > 1 else ""
    ratio = f"{row['ratio']:.2f}" if "ratio" in row else ""
    share = f", {row['limit']:.0%} of the limit" if "limit" in row else ""
    ours, theirs = amount(row.get("taeda"), row["unit"]), amount(row.get("torch"), row["unit"])
    numpy = f", numpy {amount(row['numpy'], row['unit'])}" if "numpy" in row else ""
    return f"{row['name']}{threads}: taeda {ours}, torch {theirs}, ratio {ratio}{numpy}{share}"


def model_line(row: Row) -> str:
    if "error" in row:
        return f"{row['name']} ({row['threads']} threads): {row['error']}"
    return (
        f"{row['name']} ({row['threads']} threads): taeda {row['taeda']:.1f}, torch "
        f"{row['torch']:.1f} {row['unit']}, {row['ratio']:.2f} x; memory {row['memory_ratio']:.2f}"
    )


# --- what misses its target ----------------------------------------------------------------------


def too_slow(suite: str, row: Row) -> bool:
    """Whether the ratio to PyTorch misses its target, or NumPy's time is shorter."""
    if round(row["taeda"] / row.get("numpy", math.inf), 2) > 1:
        return True
    if "ratio" not in row:
        return False
    if suite in MODELS:
        return bool(round(row["ratio"], 2) < MODEL_TARGETS[row["name"]])
    target = TARGETS.get(row["name"], TARGETS.get(suite))
    return target is not None and bool(round(row["ratio"], 2) > target)


def takes_more_memory(row: Row) -> bool:
    return bool(round(row.get("memory_ratio", 0), 2) > 1)


def bound_by_arithmetic(row: Row) -> bool:
    """Whether a kernel is a product, or as slow where its data is in the caches."""
    share = row.get("arithmetic", 0)
    return row["name"] in kernel_cases.FLOPS or bool(round(share, 2) >= LIMIT)


def below_limit(row: Row) -> bool:
    """Whether a kernel misses its share of what the machine can do; one that is bound by arithmetic
    may be at PyTorch's figure instead."""
    if "limit" not in row or (bound_by_arithmetic(row) and not too_slow("kernels", row)):
        return False
    return bool(round(row["limit"], 2) < LIMIT)


def misses(suite: str, row: Row) -> bool:
    if "most" in row or "least" in row:
        return not row.get("least", -math.inf) <= row["taeda"] <= row.get("most", math.inf)
    faults = row.get("faults", {}).get("taeda", 0)
    if suite in MODELS and (takes_more_memory(row) or faults > MOST_FAULTS):
        return True
    return too_slow(suite, row) or below_limit(row)


# --- rows ----------------------------------------------------------------------------------------


def ratio_cell(suite: str, row: Row | None) -> str:
    """A ratio, bold if it misses its target, with its spread if it is unsteady."""
    if row is None or "ratio" not in row:
        return ""
    spread = f" ± {row['spread']:.0%}" if row.get("spread", 0) >= UNSTEADY else ""
    return bold(f"{row['ratio']:.2f}", too_slow(suite, row)) + spread


def by_threads(rows: Iterable[Row]) -> dict[str, dict[int, Row]]:
    found: dict[str, dict[int, Row]] = defaultdict(dict)
    for row in rows:
        found[row["name"]][row.get("threads", 1)] = row
    return found


def timed(suite: str, row: Row, two: Row | None, when: str) -> dict[str, str]:
    wanted = [f"at {word} {row[word]:g}" for word in ("most", "least") if word in row]
    memory = f"{row['memory_ratio']:.2f}" if "memory_ratio" in row else ""
    return {
        "taeda": amount(row["taeda"], row["unit"]),
        "PyTorch": amount(row.get("torch"), row["unit"]),
        "ratio": ratio_cell(suite, row),
        "throughput": ratio_cell(suite, row),
        "2 threads": ratio_cell(suite, two),
        "memory": bold(memory, takes_more_memory(row)),
        "wanted": bold("".join(wanted), misses(suite, row)),
        "measured": when,
    }


def timed_rows(suite: str, rows: list[Row], when: str) -> dict[str, dict[str, str]]:
    """Name -> cells, those of one thread and of two in one row."""
    cells = {}
    for name, found in by_threads(rows).items():
        first = found[min(found)]
        wrong = next((row["error"] for row in found.values() if "error" in row), None)
        if wrong:
            why = "; ".join(f"{who}: {what}" for who, what in wrong.items())
            cells[name] = {"taeda": why.replace("|", "/"), "measured": when}
        else:
            cells[name] = timed(suite, first, found.get(2) if first.get("threads") == 1 else None,
                                when)  # fmt: skip
    return cells


def mean_cell(rows: list[Row]) -> str:
    ratios = [row["ratio"] for row in rows]
    if not ratios:
        return ""
    mean = statistics.geometric_mean(ratios)
    return bold(f"{mean:.2f}", round(mean, 2) > TARGETS["kernels"])


def family_rows(suite: str, rows: list[Row], when: str) -> dict[str, dict[str, str]]:
    """Family -> cells: geometric means of its cases' ratios and the case with the largest."""
    measured: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if "ratio" in row:
            measured[family(row["name"])].append(row)
    cells = {}
    for title in [*FAMILIES, "others"]:
        found = measured.get(title)
        if not found:
            continue
        worst = max(found, key=lambda row: float(row["ratio"]))
        cells[title] = {
            "cases": str(len({row["name"] for row in found})),
            "ratio": mean_cell([row for row in found if row["threads"] == 1]),
            "2 threads": mean_cell([row for row in found if row["threads"] == 2]),
            "closest to PyTorch or slower": f"{worst['name']}: {ratio_cell(suite, worst)}",
            "measured": when,
        }
    return cells


ROWS: dict[str, Callable[[str, list[Row], str], dict[str, dict[str, str]]]] = {
    "kernels": family_rows
}


# --- the page ------------------------------------------------------------------------------------


def read_rows(text: str) -> dict[str, dict[str, dict[str, str]]]:
    """Title -> name -> cells of the tables of an earlier page."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for part in text.split("\n## ")[1:]:
        title = part.split("\n", 1)[0]
        table = [row.strip("| ") for row in part.split("\n") if row.startswith("|")]
        if len(table) < 2:
            continue
        columns = [cell.strip() for cell in table[0].split("|")]
        found[title] = {}
        for row in table[2:]:
            name, *cells = (cell.strip() for cell in f"{row} ".split(" |"))
            found[title][name] = dict(zip(columns, cells))
    return found


def shown_name(suite: str, name: str) -> str:
    return f"`{name}`" if suite == "tiny" and "step" not in name else name


def page(results: dict[str, Any], earlier: str = "") -> str:
    """The page: rows of `results`, and those of an earlier page whose suite was not measured."""
    kept = read_rows(earlier)
    text = INTRODUCTION
    for title, (suites, columns, meaning) in SECTIONS.items():
        rows = dict(kept.get(title, {}))
        for suite in suites:
            if suite not in results:
                continue
            result = results[suite]
            when = f"{result['date']}, {result['machine'].split(',')[0]}"
            new = ROWS.get(suite, timed_rows)(suite, result["rows"], when)
            rows |= {shown_name(suite, name): cells for name, cells in new.items()}
        rows = {name: cells for name, cells in rows.items() if name not in LEFT_OUT}
        if not rows:
            continue
        text += f"\n## {title}\n\n" + (f"{meaning}\n\n" if meaning else "")
        text += f"| | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}\n"
        for name, cells in rows.items():
            text += f"| {name} | {' | '.join(cells.get(column, '') for column in columns)} |\n"
    return text


def summary(page_text: str) -> str:
    """The README's table: eight rows of the page."""
    rows = read_rows(page_text)
    title_of = {suite: title for title, (suites, *_) in SECTIONS.items() for suite in suites}
    lines = ["| | taeda | PyTorch | |", "|---|---:|---:|---|"]
    for (suite, name), words in README_ROWS.items():
        cells = rows.get(title_of[suite], {}).get(shown_name(suite, name))
        if cells is None:
            continue
        ratio = cells["throughput" if suite in MODELS else "ratio"].replace("*", "")
        ratio += " times as fast" if suite in MODELS else " of PyTorch's"
        lines.append(f"| {words} | {cells['taeda']} | {cells['PyTorch']} | {ratio} |")
    return "\n".join(lines)


def replace_between(text: str, name: str, new: str) -> str:
    """`text` with what stands between the markers `name` replaced by `new`."""
    pattern = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
    return re.sub(pattern, lambda match: f"{match[1]}{new}\n{match[2]}", text, flags=re.S)


def write(folder: Path, results: dict[str, Any]) -> str:
    """Writes the page into a folder, on top of the one that is there."""
    path = folder / "benchmarks.md"
    text = page(results, path.read_text() if path.exists() else "")
    path.write_text(text)
    return text


def update_readme(path: Path, page_text: str) -> None:
    path.write_text(replace_between(path.read_text(), "benchmarks", summary(page_text)))
