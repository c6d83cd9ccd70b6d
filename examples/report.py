"""The report page of the examples: one HTML file that needs nothing from elsewhere.

`write` takes plain Python numbers (and images as anything with `.tolist()`), draws the charts as
inline SVG and the images as embedded PNGs. It knows no framework.
"""

import base64
import html
import math
import os
import struct
import zlib

STYLE = """
:root { color-scheme: light dark;
  --page: #f6f5f1; --card: #ffffff; --ink: #23262b; --soft: #6b7078; --line: #e2e0d9;
  --accent: #2f6f4f; --second: #c8792b; --wrong: #c23b3b; --heat: 47, 111, 79; }
@media (prefers-color-scheme: dark) { :root {
  --page: #15181b; --card: #1d2125; --ink: #e8e6e1; --soft: #9aa0a8; --line: #31363c;
  --accent: #6fc096; --second: #e5a05a; --wrong: #f07a72; --heat: 111, 192, 150; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 48px 24px 64px; }
header { display: flex; flex-wrap: wrap; align-items: end; gap: 16px 48px; margin-bottom: 32px; }
h1 { margin: 0; font-size: 34px; letter-spacing: -.02em; line-height: 1.15; }
h2 { margin: 0 0 4px; font-size: 17px; letter-spacing: -.01em; }
p { margin: 0 0 16px; color: var(--soft); font-size: 13.5px; max-width: 72ch; }
header p { margin: 6px 0 0; font-size: 15px; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr));
  gap: 16px; margin-bottom: 16px; }
.figure, section { background: var(--card); border: 1px solid var(--line); border-radius: 12px; }
.figure { padding: 16px 20px; }
.figure b { display: block; font-size: 30px; font-weight: 650; letter-spacing: -.02em;
  line-height: 1.2; font-variant-numeric: tabular-nums; }
.figure.main b { color: var(--accent); }
.figure span { color: var(--soft); font-size: 13px; }
section { padding: 22px 24px 20px; margin-bottom: 16px; }
.two { display: grid; grid-template-columns: 1fr 1fr; gap: 16px; }
.two section { min-width: 0; }
@media (max-width: 820px) { .two { grid-template-columns: 1fr; } }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { fill: var(--soft); font-size: 11.5px; font-variant-numeric: tabular-nums; }
svg text.name { fill: var(--ink); }
svg text.on { fill: var(--card); font-weight: 600; }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .faint { fill: none; stroke: var(--accent); stroke-width: 1; opacity: .3; }
svg .first { fill: none; stroke: var(--accent); stroke-width: 2.25; stroke-linejoin: round; }
svg .second { fill: none; stroke: var(--second); stroke-width: 2.25; stroke-linejoin: round; }
svg .first-dot { fill: var(--accent); } svg .second-dot { fill: var(--second); }
svg .bar { fill: var(--accent); }
.legend { display: flex; gap: 18px; color: var(--soft); font-size: 12.5px; margin-bottom: 8px; }
.legend i { display: inline-block; width: 14px; height: 3px; border-radius: 2px;
  margin-right: 6px; vertical-align: middle; }
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(84px, 1fr)); gap: 10px; }
.tile { border: 1px solid var(--line); border-radius: 8px; overflow: hidden; font-size: 11.5px;
  line-height: 1.3; }
.tile img { display: block; width: 100%; image-rendering: pixelated; background: #000; }
.tile div { padding: 5px 7px 6px; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.tile small { display: block; color: var(--soft); font-size: 11px; overflow: hidden;
  text-overflow: ellipsis; }
.tile.wrong { border-color: var(--wrong); box-shadow: 0 0 0 1px var(--wrong); }
.tile.wrong b { color: var(--wrong); }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; }
td { padding: 6px 0; border-top: 1px solid var(--line); vertical-align: top; }
td { overflow-wrap: anywhere; }
tr:first-child td { border-top: 0; }
td:first-child { color: var(--soft); width: 130px; padding-right: 16px; }
"""


def processor():
    """The processor's name as the system tells it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return f"{line.split(':', 1)[1].strip()}, {os.cpu_count()} cores"
    except OSError:
        pass
    return f"{os.cpu_count()} cores"


def counted(number, what):
    """'1 epoch', '5 epochs'."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def write(
    path, *, title, classes, history, accuracy, images, labels, probabilities, facts, loss_note=""
):
    """Writes the page and returns its path.

    `history` is {"steps": [(epoch, loss)], "epochs": [{"loss", "accuracy", "test_loss",
    "test_accuracy", "rate"}], "seconds", "images"}; `probabilities` has a row of class
    probabilities for each label; `facts` are the rows of the last table.
    """
    predicted = [max(range(len(row)), key=row.__getitem__) for row in probabilities]
    wrong = [i for i, label in enumerate(labels) if predicted[i] != label]
    rate = history["images"] / history["seconds"]
    figures = [
        ("main", f"{accuracy * 100:.2f} %", "test accuracy"),
        ("", f"{len(wrong):,}", f"mistakes in {len(labels):,} test images"),
        ("", f"{rate:,.0f}", "training images a second"),
        ("", duration(history["seconds"]), f"training, {counted(len(history['epochs']), 'epoch')}"),
    ]

    def tiles(indices):
        return "".join(
            tile(images[i].tolist(), classes, labels[i], predicted[i], probabilities[i])
            for i in indices
        )

    confident = sorted(wrong, key=lambda i: -probabilities[i][predicted[i]])
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}: {accuracy * 100:.2f} %</title><style>{STYLE}</style></head>
<body><main>
<header><div><h1>{html.escape(title)}</h1>
<p>A convolutional network trained with {html.escape(facts["Framework"])}</p></div></header>
<div class="figures">{
        "".join(
            f'<div class="figure {kind}"><b>{value}</b><span>{what}</span></div>'
            for kind, value, what in figures
        )
    }</div>
<div class="two">
<section><h2>Loss</h2><p>Each tenth batch (thin), and the mean of each epoch. {loss_note}</p>
{legend("training", "test")}{loss_chart(history)}</section>
<section><h2>Accuracy</h2><p>Training images are counted while the network still changes.</p>
{legend("training", "test")}{accuracy_chart(history["epochs"])}</section>
</div>
<section><h2>Confusion matrix</h2>
<p>A row is what the image shows, a column what the network said. The bar at the right is the share
of the row that was recognised.</p>{confusion_matrix(classes, labels, predicted)}</section>
<section><h2>The first test images</h2>
<p>In the order of the data set, with the network's answer and its probability. Mistakes have a red
frame and name what the image is.</p>
<div class="tiles">{tiles(range(min(60, len(labels))))}</div></section>
<section><h2>The most confident mistakes</h2>
<p>Wrong answers with the highest probability of all {len(labels):,} test images.</p>
<div class="tiles">{tiles(confident[:20])}</div></section>
<div class="two">
<section><h2>Throughput</h2><p>Training images a second, in each epoch.</p>
{rate_chart(history["epochs"])}</section>
<section><h2>This run</h2><table>{
        "".join(
            f"<tr><td>{html.escape(name)}</td><td>{html.escape(value)}</td></tr>"
            for name, value in facts.items()
        )
    }</table></section>
</div>
</main></body></html>
"""
    with open(path, "w", encoding="utf-8") as file:
        file.write(page)
    return path


def duration(seconds):
    seconds = round(seconds)
    return f"{seconds // 60} min {seconds % 60} s" if seconds >= 60 else f"{seconds} s"


# --- charts ----------------------------------------------------------------------------------


class Axes:
    """A plotting area of 480 x 240 units with ticks, mapping data to its coordinates."""

    WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 480, 240, 44, 26, 8

    def __init__(self, x_range, y_range, label):
        self.x_range, self.y_range, self.label = x_range, y_range, label
        self.shapes = []

    def x(self, value):
        low, high = self.x_range
        return self.LEFT + (value - low) / (high - low) * (self.WIDTH - self.LEFT - 8)

    def y(self, value):
        low, high = self.y_range
        share = min(max((value - low) / (high - low), 0.0), 1.0)
        return self.HEIGHT - self.BOTTOM - share * (self.HEIGHT - self.BOTTOM - self.TOP)

    def line(self, points, kind):
        path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        self.shapes.append(f'<polyline class="{kind}" points="{path}"/>')

    def dots(self, points, kind, form):
        for x, y in points:
            self.shapes.append(
                f'<circle class="{kind}-dot" cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="3.5">'
                f"<title>epoch {x}: {form(y)}</title></circle>"
            )

    def draw(self, x_ticks, y_ticks, form):
        parts = [
            f'<svg viewBox="0 0 {self.WIDTH} {self.HEIGHT}" role="img" aria-label="{self.label}">'
        ]
        for value in y_ticks:
            y = self.y(value)
            parts.append(
                f'<line class="grid" x1="{self.LEFT}" x2="{self.WIDTH - 8}" y1="{y:.1f}" '
                f'y2="{y:.1f}"/><text x="{self.LEFT - 8}" y="{y + 4:.1f}" '
                f'text-anchor="end">{form(value)}</text>'
            )
        for value in x_ticks:
            parts.append(
                f'<text x="{self.x(value):.1f}" y="{self.HEIGHT - 6}" '
                f'text-anchor="middle">{value}</text>'
            )
        return "".join(parts + self.shapes) + "</svg>"


def ticks(low, high, count=6):
    """Round numbers from `low` to `high`, about `count` of them."""
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= raw)
    first = math.ceil(low / step - 1e-9)
    return [step * i for i in range(first, math.floor(high / step + 1e-9) + 1)]


def epoch_ticks(count):
    step = max(1, math.ceil(count / 10))
    return list(range(0, count + 1, step))


def legend(first, second):
    return (
        f'<div class="legend"><span><i style="background:var(--accent)"></i>{first}</span>'
        f'<span><i style="background:var(--second)"></i>{second}</span></div>'
    )


def smooth(points, weight=0.9):
    mean, out = None, []
    for x, y in points:
        mean = y if mean is None else weight * mean + (1 - weight) * y
        out.append((x, mean))
    return out


def loss_chart(history):
    epochs, steps = history["epochs"], history["steps"]
    train = [(i + 1, epoch["loss"]) for i, epoch in enumerate(epochs)]
    test = [(i + 1, epoch["test_loss"]) for i, epoch in enumerate(epochs)]
    values = sorted([y for _, y in steps] + [y for _, y in train + test])
    high = max(values[int(len(values) * 0.985)], train[0][1]) * 1.05
    low = max(0.0, values[0] * 0.9)
    axes = Axes((0, len(epochs)), (low, high), "loss by epoch")
    if steps:
        axes.line(steps, "faint")
    axes.line(train, "first")
    axes.line(test, "second")
    axes.dots(train, "first", "{:.4f}".format)
    axes.dots(test, "second", "{:.4f}".format)
    return axes.draw(epoch_ticks(len(epochs)), ticks(low, high), "{:.2g}".format)


def accuracy_chart(epochs):
    train = [(i + 1, epoch["accuracy"]) for i, epoch in enumerate(epochs)]
    test = [(i + 1, epoch["test_accuracy"]) for i, epoch in enumerate(epochs)]
    values = [y for _, y in train + test]
    margin = max(max(values) - min(values), 0.01) * 0.1
    low, high = max(0.0, min(values) - margin), min(1.0, max(values) + margin)
    axes = Axes((0, len(epochs)), (low, high), "accuracy by epoch")
    axes.line(train, "first")
    axes.line(test, "second")
    axes.dots(train, "first", "{:.4f}".format)
    axes.dots(test, "second", "{:.4f}".format)
    return axes.draw(epoch_ticks(len(epochs)), ticks(low, high), lambda v: f"{v * 100:.3g}%")


def rate_chart(epochs):
    rates = [epoch["rate"] for epoch in epochs]
    high = max(rates) * 1.1
    axes = Axes((0, len(rates)), (0, high), "images a second by epoch")
    width = (axes.x(1) - axes.x(0)) * 0.62
    for i, rate in enumerate(rates):
        top, left = axes.y(rate), axes.x(i + 0.5) - width / 2
        axes.shapes.append(
            f'<rect class="bar" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" rx="3" '
            f'height="{axes.y(0) - top:.1f}"><title>epoch {i + 1}: {rate:,.0f}</title></rect>'
        )
        if len(rates) <= 12:
            axes.shapes.append(
                f'<text x="{axes.x(i + 0.5):.1f}" y="{axes.HEIGHT - 6}" '
                f'text-anchor="middle">{i + 1}</text>'
            )
    return axes.draw([], ticks(0, high, 4), "{:,.0f}".format)


def confusion_matrix(classes, labels, predicted):
    n = len(classes)
    counts = [[0] * n for _ in range(n)]
    for label, guess in zip(labels, predicted):
        counts[label][guess] += 1
    cell_w, cell_h, left, top = 68, 34, 92, 26
    width, height = left + n * cell_w + 160, top + n * cell_h
    parts = [f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="confusion matrix">']
    for j, name in enumerate(classes):
        parts.append(
            f'<text class="name" x="{left + (j + 0.5) * cell_w:.0f}" y="16" '
            f'text-anchor="middle">{html.escape(name)}</text>'
        )
    for i, row in enumerate(counts):
        total = max(sum(row), 1)
        y = top + i * cell_h
        parts.append(
            f'<text class="name" x="{left - 10}" y="{y + cell_h / 2 + 4:.0f}" '
            f'text-anchor="end">{html.escape(classes[i])}</text>'
        )
        for j, count in enumerate(row):
            # The square root keeps rare confusions visible beside the diagonal.
            strength = math.sqrt(count / total)
            colour = "var(--heat)" if i == j else "194, 59, 59"
            ink = ' class="on"' if strength > 0.6 else ""
            title = f"{classes[i]} taken for {classes[j]}: {count}"
            parts.append(
                f'<g><rect x="{left + j * cell_w + 1}" y="{y + 1}" width="{cell_w - 2}" rx="4" '
                f'height="{cell_h - 2}" style="fill:rgba({colour}, {0.05 + 0.85 * strength:.3f})"/>'
                f'<text{ink} x="{left + (j + 0.5) * cell_w:.0f}" y="{y + cell_h / 2 + 4:.0f}" '
                f'text-anchor="middle">{count or ""}</text>'
                f"<title>{html.escape(title)}</title></g>"
            )
        recall = row[i] / total
        x = left + n * cell_w + 14
        parts.append(
            f'<rect x="{x}" y="{y + 12}" width="90" height="{cell_h - 24}" rx="5" '
            f'style="fill:var(--line)"/><rect class="bar" x="{x}" y="{y + 12}" rx="5" '
            f'width="{90 * recall:.1f}" height="{cell_h - 24}"/>'
            f'<text x="{x + 98}" y="{y + cell_h / 2 + 4:.0f}">{recall * 100:.1f}%</text>'
        )
    return "".join(parts) + "</svg>"


# --- images ----------------------------------------------------------------------------------


def png(rows):
    """The bytes of a grey-scale PNG of rows of bytes."""

    def chunk(kind, body):
        checksum = zlib.crc32(kind + body)
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows), 9)
    start = b"\x89PNG\r\n\x1a\n"
    return start + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def save_png(path, rows):
    with open(path, "wb") as file:
        file.write(png(rows))


def tile(rows, classes, label, guess, row):
    right = label == guess
    note = f"{row[guess] * 100:.0f} %" if right else f"is {classes[label]}"
    source = "data:image/png;base64," + base64.b64encode(png(rows)).decode()
    return (
        f'<div class="tile{"" if right else " wrong"}" title="{classes[guess]} '
        f'{row[guess] * 100:.1f} %; is {classes[label]} ({row[label] * 100:.1f} %)">'
        f'<img src="{source}" alt="{html.escape(classes[label])}">'
        f"<div><b>{html.escape(classes[guess])}</b><small>{html.escape(note)}</small></div></div>"
    )
