"""The benchmark tables, in Markdown, made from docs/benchmarks.json."""

from __future__ import annotations

import math
import re
import statistics
import textwrap
from pathlib import Path
from typing import Any

import kernel_cases
import notes

Row = dict[str, Any]
TITLES = {
    "import": "Importing",
    "tiny": "Tiny tensors (2 x 2): what a call costs",
    "kernels": "Kernels against the machine's limit",
    "transforms": "Transforms: samples of a small MLP",
    "processes": "Tensors sent to another process, and an answer back",
    "demo": "Training the demo's network",
    "models": "Models in training: throughput",
    "bf16": "Models in training in bf16: throughput",
    "contention": "Training while another process keeps one core busy",
    "threads": "The same bits with one and with two threads",
    "memory": "Memory",
    "loading": "Loading data",
    "size": "Size",
    "build": "Building",
}
PROFILES = "[Where the time of these rows goes](notes/kernel-profiles.md), function by function."
MOST_FAULTS = 100  # pages that a step of a model may bring in
UNSTEADY = 0.2  # the spread of a row's measurements from which on it is shown
LIMIT = 0.8  # the share of the machine's limit that a kernel must reach
# The largest ratio that this project accepts; a row above it is marked.
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

MEAN_TARGETS = {"models": 1.4, "bf16": 1.0}  # of all models of a suite
# Millions of floating-point operations of the products and convolutions that an image, a token or a
# sample takes, as PyTorch's FlopCounterMode counts them; in MobileNets three times forward's.
MFLOP = {
    "alexnet": 4144, "vgg19": 117_600, "resnet18": 10_650, "resnet50": 24_300,
    "mobilenet_v1": 3412, "mobilenet_v2": 1805, "convnet": 33.8, "vit_tiny": 7464, "gpt": 70.9,
    "gnmt": 82.7, "ncf": 0.64,
}  # fmt: skip
WEIGHTS = {"gpt2_decode": 498, "gpt2_decode_bf16": 249}  # megabytes that a token reads
# What stands above the rows of a suite of models.
MODELS = {
    "models": """Steps of forward, loss, backward and optimizer in f32; the decoders only read.
Programs and sizes are those of bench/models. Here a throughput above 1 means that taeda does more,
and a memory ratio below 1 that its process needs less at its peak. The gain is what two threads
give over one, the faults are pages that a step had the system bring in, and the share is that of
the peak, multiply-adds in registers, as if no algorithm saved any: each in taeda and in PyTorch. A
decoder's is that of the bytes a second that a copy moves: it reads its weights once a token. Each
repetition has a process of its own.""",
    "bf16": """As above, with products and convolutions in bf16: ResNet-50 and BERT under autocast,
the GPT and the LSTM with parameters in bf16. The peak is that of f32, so there is no share of
it.""",
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
    return f"**{text}**" if wanted else text


def line(row: Row) -> str:
    threads = f" ({row['threads']} threads)" if row.get("threads", 1) > 1 else ""
    ratio = f"{row['ratio']:.2f}" if "ratio" in row else ""
    share = f", {row['limit']:.0%} of the limit" if "limit" in row else ""
    ours, theirs = amount(row.get("taeda"), row["unit"]), amount(row.get("torch"), row["unit"])
    numpy = f", numpy {amount(row['numpy'], row['unit'])}" if "numpy" in row else ""
    return f"{row['name']}{threads}: taeda {ours}, torch {theirs}, ratio {ratio}{numpy}{share}"


def target_of(suite: str, row: Row) -> float | None:
    return TARGETS.get(row["name"], TARGETS.get(suite))


def too_slow(suite: str, row: Row) -> bool:
    """Whether the ratio to PyTorch misses its target, or NumPy's time is shorter."""
    if round(row["taeda"] / row.get("numpy", math.inf), 2) > 1:
        return True
    if "ratio" not in row:
        return False
    if suite in MODELS:
        return bool(round(row["ratio"], 2) < MODEL_TARGETS[row["name"]])
    target = target_of(suite, row)
    return target is not None and bool(round(row["ratio"], 2) > target)


def takes_more_memory(row: Row) -> bool:
    return bool(round(row.get("memory_ratio", 0), 2) > 1)


def faults_pages_in(row: Row) -> bool:
    return bool(row.get("faults", {}).get("taeda", 0) > MOST_FAULTS)


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
    if suite in MODELS and (takes_more_memory(row) or faults_pages_in(row)):
        return True
    return too_slow(suite, row) or below_limit(row)


def spread_text(row: Row) -> str:
    return f" ± {row['spread']:.0%}" if row.get("spread", 0) >= UNSTEADY else ""


def mark(suite: str, row: Row) -> str:
    """The ratio, bold if it misses; a row with bounds of its own shows those."""
    bounds = [f"at {word} {row[word]:g}" for word in ("most", "least") if word in row]
    if bounds:
        return bold(bounds[0], misses(suite, row))
    if "ratio" not in row:
        return ""
    spread = spread_text(row)
    if not too_slow(suite, row):
        return f"{row['ratio']:.2f}{spread}"
    if row["taeda"] > row.get("numpy", math.inf):
        return f"{row['ratio']:.2f}{spread} (**NumPy**)"
    return f"**{row['ratio']:.2f}**{spread} (target {target_of(suite, row):g})"


def markdown(suite: str, rows: list[Row]) -> str:
    threads = any("threads" in row for row in rows)
    limits = suite == "kernels"
    more = " NumPy | of the limit | arithmetic |" if limits else ""
    lines = [
        f"| |{' threads |' if threads else ''} taeda | PyTorch | ratio |{more}",
        f"|---|{'---:|' if threads else ''}---:|---:|---:|{'---:|' * 3 * limits}",
    ]
    for row in rows:
        count = f" {row['threads']} |" if threads else ""
        name = f"`{row['name']}`" if suite == "tiny" and "step" not in row["name"] else row["name"]
        if "error" in row:
            why = "; ".join(f"{who}: {what}" for who, what in row["error"].items())
            lines.append(f"| {name} |{count} | | {why.replace('|', '/')} |{' |' * 3 * limits}")
            continue
        ours = amount(row["taeda"], row["unit"])
        theirs = amount(row.get("torch"), row["unit"])
        ratio = mark(suite, row)
        numpy = f" {amount(row.get('numpy'), row['unit'])} |" if limits else ""
        limit = " | |" * limits
        if "limit" in row:
            share = bold(f"{row['limit']:.0%}", below_limit(row))
            arithmetic = f"{row['arithmetic']:.0%}" if "arithmetic" in row else ""
            limit = f" {share} | {arithmetic} |"
        lines.append(f"| {name} |{count} {ours} | {theirs} | {ratio} |{numpy}{limit}")
    return "\n".join(lines)


def model_line(row: Row) -> str:
    if "error" in row:
        return f"{row['name']} ({row['threads']} threads): {row['error']}"
    return (
        f"{row['name']} ({row['threads']} threads): taeda {row['taeda']:.1f}, torch "
        f"{row['torch']:.1f} {row['unit']}, {row['ratio']:.2f} x; memory {row['memory_ratio']:.2f}"
    )


def peak(results: dict[str, Any], threads: int, half: bool = False) -> float:
    """Operations a second of multiply-adds in registers, the median of those that were measured
    beside products, or 0."""
    rows = results.get("kernels", {}).get("rows", [])
    rates = [
        r["best"]
        for r in rows
        if r["name"] in kernel_cases.FLOPS and r["threads"] == threads and "best" in r
        if ("bf16" in r["name"]) == half
    ]
    return statistics.median(rates or [0.0])


def copy_rate(results: dict[str, Any], threads: int) -> float:
    """Bytes a second that the largest copy moves in the better framework, or 0."""
    most = max(kernel_cases.COPIES)
    rates = [
        most / min(r["taeda"], r["torch"]) * 1e6
        for r in results.get("kernels", {}).get("rows", [])
        if r["name"] == kernel_cases.COPIES[most] and r["threads"] == threads and "error" not in r
    ]
    return max(rates, default=0.0)


def models_markdown(results: dict[str, Any], suite: str) -> str:
    rows = results[suite]["rows"]
    lines = [
        MODELS[suite],
        "",
        "| | threads | taeda | PyTorch | throughput | target | memory | gain | faults | share |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    alone = {row["name"]: row for row in rows if row["threads"] == 1 and "error" not in row}
    for row in rows:
        name = row["name"]
        if "error" in row:
            lines.append(f"| {name} | {row['threads']} | | | {row['error']} | | | | | |")
            continue
        target = MODEL_TARGETS[name]
        ratio = bold(f"{row['ratio']:.2f}", too_slow(suite, row)) + spread_text(row)
        memory = bold(f"{row['memory_ratio']:.2f}", takes_more_memory(row))
        gain = ""
        if row["threads"] > 1 and name in alone:
            gain = ", ".join(f"{row[f] / alone[name][f]:.2f}" for f in ("taeda", "torch"))
        share, unit, most = "", MFLOP.get(name, 0.0) * 1e6, peak(results, row["threads"])
        if name in WEIGHTS:
            unit, most = WEIGHTS[name] * 1e6, copy_rate(results, row["threads"])
        if most and unit:
            share = ", ".join(f"{row[f] * unit / most:.0%}" for f in ("taeda", "torch"))
        faults = ", ".join(f"{count:,.0f}" for count in row.get("faults", {}).values())
        faults = bold(faults, faults_pages_in(row))
        lines.append(
            f"| {name} | {row['threads']} | {row['taeda']:,.1f} {row['unit']} | "
            f"{row['torch']:,.1f} {row['unit']} | {ratio}"
            f" | {target:g} | {memory} | {gain} | {faults} | {share} |"
        )
    for threads in sorted({row["threads"] for row in rows}):
        ratios = [r["ratio"] for r in rows if r["threads"] == threads and "error" not in r]
        if not ratios:
            continue
        mean = statistics.geometric_mean(ratios)
        target = MEAN_TARGETS[suite]
        shown = bold(f"{mean:.2f}", round(mean, 2) < target)
        lines.append(f"| geometric mean | {threads} | | | {shown} | {target:g} | | | | |")
    return "\n".join(lines)


def limits(results: dict[str, Any]) -> str:
    """What stands under "of the limit" and "arithmetic"."""
    peaks = [
        f"{threads} thread{'s'[: threads - 1]} {peak(results, threads) / 1e9:.0f} (f32) and "
        f"{peak(results, threads, half=True) / 1e9:.0f} (bf16)"
        for threads in (1, 2)
    ]
    text = f"""A kernel's share of the limit is its rate over that of the better framework's copy of
about as many bytes, or over the peak, multiply-adds in registers (bench/peak.cc), timed between the
kernel's own repetitions. The peak was, in GFLOP/s, on {", on ".join(peaks)}. What works in place,
or on results that are still in the cache, may exceed a copy. Under arithmetic stands which part of
its time a kernel takes where memory does not matter: for a sixteenth of the data, in the caches, on
one thread, as often as it goes into the whole. At 80 % and more it is bound by arithmetic, and its
target is PyTorch's figure instead of 80 % of the limit. Where this part takes less than 20 us, or
the case has none, the cell is empty. Kernels that order, search, count, draw random numbers or
index in any order have no limit here: what they move or compute depends on the data. Their target
is PyTorch's figure."""
    return textwrap.fill(" ".join(text.split()), 100)


def page(results: dict[str, Any]) -> str:
    text = """# taeda against PyTorch

Made by `make bench` (bench/run.py). Both frameworks run on the same machine in one interleaved run:
a measurement of one, then one of the other, in processes of their own on the same cores. The
figures are medians; a ratio below 1 means that taeda takes less. A ratio above what the project
asks of itself is set in bold, with the target. The load is that of the minute before the suite, by
other work; where it is not given, or above a few tenths, PyTorch's two-thread rows suffer most (its
OpenMP threads wait for each other) and the one-thread rows are the ones to believe.

Before each measurement there is a pause, so that threads of the process before (PyTorch's look for
work for milliseconds) do not disturb it.

Where the middle half of either's measurements (of fewer than four, all) is more than 20 % from
their median, the ratio has its spread behind it.
"""
    for suite, title in TITLES.items():
        if suite not in results:
            continue
        result = results[suite]
        names = result["versions"]
        rows = result["rows"]
        load = f", load {result['load']:.1f}" if "load" in result else ""
        if "isa" in result:
            load += f", oneDNN of both limited to {result['isa']}"
        body = models_markdown(results, suite) if suite in MODELS else markdown(suite, rows)
        if suite == "kernels":
            body = f"{limits(results)}\n\n{body}"
        why = notes.below([r["name"] for r in rows if misses(suite, r)])
        text += (
            f"\n## {title}\n\n{result['date']}, {result['machine']}, taeda {names['taeda']}, "
            f"PyTorch {names['torch']}{load}.\n\n{body}\n"
        ) + why
        if why and suite == "kernels":
            text += f"\n{PROFILES}\n"
    return text


def summary(results: dict[str, Any]) -> str:
    """The rows that the README shows."""
    rows: list[str] = ["| | taeda | PyTorch | ratio |", "|---|---:|---:|---:|"]
    shown = [suite for suite in ("import", "tiny", "demo", "size", "build") if suite in results]
    for suite in shown:
        for row in results[suite]["rows"]:
            if "error" in row or row["name"] == "import: modules":
                continue
            if suite == "tiny" and row["threads"] != 1:
                continue
            threads = (
                f", {row['threads']} thread{'s'[: row['threads'] - 1]}" if suite == "demo" else ""
            )
            ratio = mark(suite, row)
            ours = amount(row["taeda"], row["unit"])
            theirs = amount(row.get("torch"), row["unit"])
            rows.append(f"| {row['name']}{threads} | {ours} | {theirs} | {ratio} |")
    if not shown:
        return "Nothing was measured yet."
    last = results[max(shown, key=lambda suite: results[suite]["date"])]
    where = f"Measured {last['date']} on {last['machine']}"
    return f"{where}, against PyTorch {last['versions']['torch']}.\n\n" + "\n".join(rows)


def replace_between(text: str, name: str, new: str) -> str:
    """`text` with what stands between the markers `name` replaced by `new`."""
    pattern = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
    return re.sub(pattern, lambda match: f"{match[1]}{new}\n{match[2]}", text, flags=re.S)


def update_readme(path: Path, results: dict[str, Any]) -> None:
    path.write_text(replace_between(path.read_text(), "benchmarks", summary(results)))
