"""docs/coverage.md counts what works, not what only raises."""

import sys
from pathlib import Path

import pytest

import taeda

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def coverage(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import coverage

    yield coverage
    for name in ("coverage", "table"):
        sys.modules.pop(name, None)


@pytest.fixture
def lookup(coverage):
    return coverage.lookup


def test_imported_names_are_sorted_by_state(coverage, monkeypatch):
    listed = (
        "torch.nn.Linear torch.distributed.fsdp.FullyShardedDataParallel torch.zz torch.nn.zz.z"
    )
    rows = [{"api": name, "programs": "2"} for name in listed.split()]
    monkeypatch.setattr(coverage, "read", lambda name: rows)
    assert coverage.imported(taeda) == {
        "works": ["`torch.nn.Linear` (2)"],
        "raises": ["`torch.distributed.fsdp.FullyShardedDataParallel` (2)"],
        "missing": ["`torch.zz` (2)", "`torch.nn.zz.z` (2)"],
    }


@pytest.mark.parametrize("name", ["cuda.Stream", "accelerator.synchronize", "Stream", "nn.Linear"])
def test_what_is_there_counts(lookup, name):
    assert lookup(taeda, name)


@pytest.mark.parametrize(
    "name",
    [
        "cuda.CUDAPluggableAllocator",
        "cuda.GreenContext",
        "cuda.change_current_allocator",
        "cuda.current_blas_handle",
        "zz",
        "distributed.rpc",
        "distributed.rpc.init_rpc",
        "distributed.rpc.RRef",
        "distributed.rpc.BackendType.TENSORPIPE",
        "distributed.rpc.functions.async_execution",
    ],
)
def test_what_only_raises_does_not(lookup, name):
    assert not lookup(taeda, name)


def test_sparse_layouts_are_in_no_number_of_what_agrees(coverage, monkeypatch):
    import parity_page

    results = {
        "date": "",
        "pytorch": "",
        "calls": 9,
        "operators": {
            "sum": {"function:float": [4, 0], "wrong": [2, 1]},
            "neg": {"function:float": [3, 0], "wrong": [1, 0]},
            "sparse.mm": {"wrong": [3, 0]},
        },
        "mismatches": [["sum", "wrong class", 1]],
    }
    monkeypatch.setattr(parity_page, "read", lambda: results)
    monkeypatch.setattr(parity_page, "reasons", lambda: [])
    named = (("sum", "reduction"), ("neg", "pointwise-unary"), ("sparse.mm", "sparse"))
    page = parity_page.page([{"name": name, "group": group} for name, group in named])
    assert "2 of 2 rows (100.0 %) pass by PyTorch's databases" in page
    assert "1 of 2 (50.0 %)" in page
    assert "\n|sparse.mm|" not in page and "not compared: `sparse.mm`" in page
