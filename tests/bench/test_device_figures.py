"""The paper's figures 1 and 2 on the simulated driver: what they show is so."""

import itertools
import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from tests.children import ENVIRONMENT

SCRIPT = Path(__file__).parents[2] / "bench" / "device_figures.py"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    environment = {k: v for k, v in ENVIRONMENT.items() if k != "TAEDA_CUDA"}
    subprocess.run([sys.executable, SCRIPT, "--out", folder], env=environment, check=True)
    return folder


def test_the_pictures_are_svg(drawn):
    for name in ("host_ahead", "allocator"):
        root = ElementTree.parse(drawn / f"{name}.svg").getroot()
        assert root.tag.endswith("svg") and len(root) > 20


def test_the_host_is_ahead_and_memory_is_taken_once(drawn):
    events = json.loads((drawn / "trace.json").read_text())["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    host = [e for e in spans if e["pid"] == 0]
    device = [e for e in spans if e["pid"] == 1]
    end = max(e["ts"] + e["dur"] for e in device)
    calls = [e["ts"] for e in host if e["name"] in ("cudaMalloc", "cudaFree")]
    assert len(calls) > 50
    assert max(calls) < end / 2  # of three steps all are in the first
    # Each kernel starts after the host has queued it; the last ones long after.
    starts = {e["id"]: e["ts"] for e in events if e["ph"] == "s"}
    lags = [e["ts"] - starts[e["id"]] for e in events if e["ph"] == "f"]
    assert min(lags) >= 0
    assert lags[-1] > 500  # microseconds
    # One stream: kernels follow each other.
    ordered = sorted(device, key=lambda e: e["ts"])
    for a, b in itertools.pairwise(ordered):
        assert b["ts"] >= a["ts"] + a["dur"] - 1e-6
