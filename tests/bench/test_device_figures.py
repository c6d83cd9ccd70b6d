"""The paper's figures 1 and 2 on the simulated driver: what they show is so. Those of a card are
drawn there, too, from the simulator's events beside the host's clock, in small."""

import itertools
import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from bench import device_figures
from tests.children import ENVIRONMENT

import taeda

SCRIPT = Path(__file__).parents[2] / "bench" / "device_figures.py"


SMALL = ["--batch=1", "--image=32"]


def draw(folder, *options, **env):
    environment = {k: v for k, v in ENVIRONMENT.items() if k != "TAEDA_CUDA"} | env
    subprocess.run([sys.executable, SCRIPT, "--out", folder, *options], env=environment, check=True)
    return folder


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return draw(tmp_path_factory.mktemp("figures"))


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    return draw(tmp_path_factory.mktemp("card"), "--card", *SMALL, TAEDA_CUDA="sim")


def events_of(file):
    return json.loads(file.read_text(encoding="utf-8"))["traceEvents"]


def host_and_device(events):
    spans = [e for e in events if e["ph"] == "X"]
    return [[e for e in spans if e["pid"] == side] for side in (0, 1)]


def memory_calls(host):
    return [e for e in host if e["name"] in ("cudaMalloc", "cudaFree")]


def test_the_pictures_are_svg(drawn):
    for name in ("host_ahead", "allocator"):
        root = ElementTree.parse(drawn / f"{name}.svg").getroot()
        assert root.tag.endswith("svg") and len(root) > 20


def test_the_host_is_ahead_and_memory_is_taken_once(drawn):
    events = events_of(drawn / "trace.json")
    host, device = host_and_device(events)
    end = max(e["ts"] + e["dur"] for e in device)
    calls = [e["ts"] for e in memory_calls(host)]
    assert len(calls) > 50
    assert max(calls) < end / 2  # of three steps all are in the first
    # Each kernel starts after the host has queued it; the last ones long after.
    starts = {e["id"]: e["ts"] for e in events if e["ph"] == "s"}
    lags = [e["ts"] - starts[e["id"]] for e in events if e["ph"] == "f"]
    assert min(lags) >= 0
    assert lags[-1] > 500  # microseconds
    # One stream: kernels follow each other.
    assert_in_turn(device, slack=1e-6)


def assert_in_turn(spans, slack):
    for a, b in itertools.pairwise(sorted(spans, key=lambda e: e["ts"])):
        assert b["ts"] >= a["ts"] + a["dur"] - slack


def test_pictures_of_a_card_name_what_they_were_measured_on(measured):
    for name in ("host_ahead", "allocator"):
        (file,) = measured.glob(f"*-simulated-cuda-device-{name}.svg")
        root = ElementTree.parse(file).getroot()
        title = next(root.iter("{http://www.w3.org/2000/svg}text")).text
        assert "simulated driver" in title and "pointwise stand-ins" in title
        assert len(root) > 20


def test_steps_on_a_card_are_measured_from_its_events_and_its_history(measured):
    (file,) = measured.glob("*-trace.json")
    events = events_of(file)
    first, second, third = (e["ts"] for e in events if e["ph"] == "i")
    host, device = host_and_device(events)
    calls = memory_calls(host)
    # The weights' gradients are in memory all at once: 25.5 million floats.
    assert sum(e["args"]["bytes"] for e in calls) > 100e6
    assert all(first < e["ts"] and e["ts"] + e["dur"] < second for e in calls)
    assert_in_turn(host, slack=0.01)  # of microseconds since the machine was started
    assert_in_turn(device, slack=0.01)
    assert all(e["dur"] > 0 for e in device)
    steps = [Counter(), Counter(), Counter()]
    for e in device:
        steps[(e["ts"] >= second) + (e["ts"] >= third)][e["name"]] += 1
    assert steps[0] == steps[1] == steps[2]
    assert steps[0]["convolution"] == steps[0]["convolution backward"] == 53


def test_operators_and_lifetimes_on_a_card_are_those_of_virtual_time(measured, tmp_path):
    """So the allocator takes the same segments."""
    (file,) = measured.glob("*-trace.json")
    found = []
    for trace in (file, draw(tmp_path, *SMALL) / "trace.json"):
        host, device = host_and_device(events_of(trace))
        segments = [(e["name"], e["args"]["bytes"]) for e in memory_calls(host)]
        found.append((segments, [e["name"] for e in device]))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "reads, writes",
    [
        ((8,), (8,)),
        ((8, 3), (8,)),
        ((3,), (8,)),
        ((9,), (4, 2)),
        ((5, 5), (5, 2)),
        ((2, 7), (3, 9)),
    ],
)
def test_a_stand_in_moves_all_bytes(reads, writes):
    seen = []

    def neg(source, out):
        seen.extend(source.tolist())
        taeda.neg(source, out=out)

    values = taeda.arange(1.0, sum(reads) + 1)
    targets = [taeda.full((n,), float("nan")) for n in writes]
    fake = SimpleNamespace(torch=SimpleNamespace(neg=neg))
    device_figures.Card.move(fake, [[v] for v in values.split(reads)], [[t] for t in targets])
    assert seen == values.tolist()
    written = taeda.cat(targets).tolist()
    assert all(v <= 0 for v in written)
    assert written.count(0) == max(0, sum(writes) - sum(reads))
