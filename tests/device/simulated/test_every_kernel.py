"""Each kernel is launched by some test of this folder: looked at when all of them have run."""

from pathlib import Path

import pytest

from taeda import _C

FOLDER = Path(__file__).parent


@pytest.fixture
def all_tests(request):
    """Skips the test where others were left out."""
    chosen = request.config.option
    files = {item.path.name for item in request.session.items if item.path.parent == FOLDER}
    if chosen.keyword or files != {file.name for file in FOLDER.glob("test_*.py")}:
        pytest.skip("not all tests of the folder run")


def test_each_kernel_is_launched(simulator, all_tests):
    never = [kernel for kernel in _C._cuda_kernel_names() if not simulator.runs(kernel)]
    assert not never, f"{len(never)} kernels: {' '.join(never)}"
