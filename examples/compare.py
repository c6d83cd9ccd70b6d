"""The demo's network under taeda and under PyTorch, side by side: a second page beside the report.

    python examples/compare.py --out runs/fashion_mnist

Each framework trains the same lines on the same images from the same seed, in a process of its own:
the same random numbers give the same first weights, order and mirrored images, so the losses should
lie on one another. Without PyTorch in the environment it says so and writes nothing.
"""

import argparse
import html
import importlib.util
import os
import re
import sys
import time

import datasets
import report

FRAMEWORKS = {"taeda": "taeda", "torch": "PyTorch"}
LEAST_IMAGES = 1280  # ten steps, of which the last one's loss is kept


def measure(framework, folder, data, images):
    """Trains for an epoch in a process of its own; its losses, rates and peak memory."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fashion_mnist.py")
    os.makedirs(folder, exist_ok=True)
    command = [sys.executable, script, "--framework", framework, "--data", data, "--out", folder]
    command += ["--epochs", "1", "--limit", str(images)]
    log = os.path.join(folder, "output.txt")
    start = time.perf_counter()
    with open(log, "w", encoding="utf-8") as file:
        child = os.posix_spawn(
            command[0], command, os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, file.fileno(), 1)],
        )  # fmt: skip
        _, status, usage = os.wait4(child, 0)
    with open(log, encoding="utf-8") as file:
        output = file.read()
    if status:
        code = os.waitstatus_to_exitcode(status)
        sys.exit(f"{framework} ended with exit code {code}:\n{output}")
    accuracy, rate = re.findall(r"test accuracy ([\d.]+), (\d+) images/s", output)[-1]
    return {
        "version": re.search(rf"^{framework} (\S+),", output, re.M)[1],
        "accuracy": float(accuracy),
        "rate": int(rate),
        "memory": usage.ru_maxrss / 1024,
        "seconds": time.perf_counter() - start,
        "checkpoint": os.path.join(folder, "checkpoint.pt"),
    }


def loss_chart(curves):
    """Each tenth step's loss, of both; where they agree one line hides the other."""
    values = [loss for points in curves.values() for _, loss in points]
    low, high = 0.0, max(values) * 1.05
    axes = report.Axes((0, 1), (low, high), "loss by share of the epoch")
    for (name, points), kind in zip(curves.items(), ("first", "second")):
        axes.line(points, kind)
        axes.dots(points[-1:], kind, f"{FRAMEWORKS[name]} {{:.4f}}".format)
    return axes.draw([0, 1], report.ticks(low, high), "{:.2g}".format)


def bar_chart(values, form):
    """One bar a framework, the longest full."""
    top = max(values.values())
    parts = ['<svg viewBox="0 0 480 84" role="img">']
    for i, (name, value) in enumerate(values.items()):
        y = 8 + 40 * i
        width = 300 * value / top
        colour = "var(--accent)" if i == 0 else "var(--second)"
        parts.append(
            f'<text class="name" x="0" y="{y + 17}">{FRAMEWORKS[name]}</text>'
            f'<rect x="70" y="{y}" width="{width:.1f}" height="26" rx="5" style="fill:{colour}"/>'
            f'<text x="{width + 78:.1f}" y="{y + 17}">{form(value)}</text>'
        )
    return "".join(parts) + "</svg>"


def write(path, title, found, curves, images):
    """Writes the page; `found` and `curves` by framework, taeda first."""
    ours, theirs = found["taeda"], found["torch"]
    steps = list(zip(curves["taeda"], curves["torch"]))
    apart = max(abs(a - b) / b for (_, a), (_, b) in steps)
    first = abs(steps[0][0][1] - steps[0][1][1]) / steps[0][1][1]
    figures = [
        ("main", f"{ours['rate'] / theirs['rate']:.2f} x", "training images a second"),
        ("", f"{ours['memory'] / theirs['memory']:.2f} x", "peak memory of the process"),
        ("", f"{first:.1e}", "relative difference of the tenth loss"),
        ("", f"{abs(ours['accuracy'] - theirs['accuracy']):.4f}", "difference in test accuracy"),
    ]
    rows = "".join(
        f"<tr><td>{FRAMEWORKS[name]} {html.escape(m['version'])}</td><td>{m['rate']:,} images/s, "
        f"{m['memory']:,.0f} MB, test accuracy {m['accuracy']:.4f}, {m['seconds']:.1f} s with "
        "start, test and report</td></tr>"
        for name, m in found.items()
    )
    cells = "".join(
        f'<div class="figure {kind}"><b>{value}</b><span>{what}</span></div>'
        for kind, value, what in figures
    )
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}: taeda and PyTorch</title><style>{report.STYLE}</style></head>
<body><main>
<header><div><h1>taeda and PyTorch</h1><p>The same program, {images:,} images of
{html.escape(title)}, the same seed, one after the other</p></div></header>
<div class="figures">{cells}</div>
<div class="two">
<section><h2>Loss</h2><p>Each tenth batch. The same seed gives the same numbers, so the lines differ
by rounding only, at most {apart:.1%} here: training enlarges last digits.</p>
{report.legend("taeda", "PyTorch")}{loss_chart(curves)}</section>
<section><h2>Images a second</h2><p>More is better.</p>
{bar_chart({name: m["rate"] for name, m in found.items()}, "{:,.0f}".format)}
<h2>Peak memory</h2><p>Less is better.</p>
{bar_chart({name: m["memory"] for name, m in found.items()}, "{:,.0f} MB".format)}</section>
</div>
<section><h2>The two runs</h2><table>{rows}
<tr><td>Processor</td><td>{html.escape(report.processor())}</td></tr>
<tr><td>Other work</td><td>load {os.getloadavg()[2]:.1f} in 15 minutes; far above the number
of threads, the rates say little</td></tr></table></section>
</main></body></html>
"""
    with open(path, "w", encoding="utf-8") as file:
        file.write(page)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=datasets.FASHION_MNIST, help="folder of the IDX files")
    parser.add_argument(
        "--images", type=int, default=12800, help=f"training images of each, from {LEAST_IMAGES} on"
    )
    parser.add_argument("--out", default="runs/fashion_mnist", help="folder of the page")
    args = parser.parse_args()
    if args.images < LEAST_IMAGES:
        parser.error(f"argument --images: expected at least {LEAST_IMAGES}, got {args.images}")
    if importlib.util.find_spec("torch") is None:
        print("PyTorch is not installed here: nothing to compare with")
        return 0
    found, curves = {}, {}
    for framework in FRAMEWORKS:
        print(f"training under {FRAMEWORKS[framework]} ...", flush=True)
        folder = os.path.join(args.out, "compare", framework)
        found[framework] = measure(framework, folder, args.data, args.images)
    import taeda

    title = datasets.load(taeda, args.data)[0]
    for framework, m in found.items():
        curves[framework] = taeda.load(m["checkpoint"])["history"]["steps"]
        print(f"{FRAMEWORKS[framework]:8} {m['rate']:,} images/s, {m['memory']:,.0f} MB")
    page = write(os.path.join(args.out, "compare.html"), title, found, curves, args.images)
    print(f"comparison with PyTorch: {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
