"""tools/prune_library.py: a library of C functions, pruned, loaded and called."""

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")

# Each function fills pages of its own; what a call reaches is the product of primes met.
SOURCE = """
#define BULK(n) __asm__(".skip " #n ", 0x90")
static __attribute__((noinline)) int inner(int x) { BULK(20000); return 3 * x; }
__attribute__((noinline)) int exported_inner(int x) { BULK(20000); return 5 * inner(x); }
int unused(int x) { BULK(40000); return 7 * x; }
static int from_table(int x) { BULK(20000); return 11 * x; }
typedef struct { int (*volatile call)(int); char distance[256]; } Table;
static Table table = {from_table};
static int through_two(int x) { BULK(20000); return 19 * x; }
static Table second_table = {through_two};
static struct { Table *volatile next; char distance[256]; } first_table = {&second_table};
static int unused_from_table(int x) { BULK(40000); return 23 * x; }
static Table unused_table = {unused_from_table};
static Table last = {from_table};  // so that no other variable is near
static int by_address(int x) { BULK(20000); return 13 * x; }
int wanted(int x) {
  int (*volatile f)(int) = by_address;
  BULK(20000);
  return f(first_table.next->call(table.call(exported_inner(x))));
}
static int started;
__attribute__((constructor)) static void start(void) { BULK(20000); started = 17; }
int started_with(void) { return started; }
int unused_too(int x) { BULK(40000); return unused_table.call(unused(x)); }
"""


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("prune", ROOT / "tools/prune_library.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["prune"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prune")
    (folder / "sample.c").write_text(SOURCE)
    command = ["gcc", "-O1", "-fPIC", "-shared", "-fno-toplevel-reorder", "-o", "libsample.so"]
    subprocess.run([*command, "sample.c"], cwd=folder, check=True)
    return folder / "libsample.so"


@pytest.fixture(scope="module")
def pruned(tool, library):
    path = library.with_name("libpruned.so")
    path.write_bytes(tool.prune(library, ["wanted", "started_*"]))
    return path


def test_what_is_called_works(pruned):
    loaded = ctypes.CDLL(str(pruned))
    assert loaded.wanted(2) == 2 * 3 * 5 * 11 * 13 * 19
    assert loaded.started_with() == 17


def test_what_is_not_called_is_gone(library, pruned):
    loaded = ctypes.CDLL(str(pruned))
    for name in ("unused", "unused_too"):
        with pytest.raises(AttributeError):
            getattr(loaded, name)
    assert pruned.stat().st_size < library.stat().st_size - 110_000


def test_loads_with_all_symbols_bound(pruned):
    command = [sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(pruned)!r})"]
    subprocess.run(command, env=os.environ | {"LD_BIND_NOW": "1"}, check=True)


def test_section_table_is_readable(pruned):
    if not shutil.which("objdump"):
        pytest.skip("needs objdump")
    text = subprocess.check_output(["objdump", "-d", pruned], text=True)
    assert text.count("section .text:") > 1


def test_a_pattern_without_a_function(tool, library):
    with pytest.raises(ValueError, match="no function wnated"):
        tool.prune(library, ["wnated"])


def test_not_a_library(tool, tmp_path):
    text = tmp_path / "libtext.so"
    text.write_bytes(b"not a library" * 100)
    with pytest.raises(ValueError, match="not a library"):
        tool.prune(text, ["main"])
