"""torch.ops.load_library: operators that a shared library registers in C++."""

import pathlib
import shutil
import subprocess

import pytest

import taeda

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(taeda._C.__file__).resolve().parents[2]
COMPILER = shutil.which("c++")
pytestmark = pytest.mark.skipif(
    COMPILER is None or not (BUILD / "lib" / "libtaeda.so").exists(),
    reason="needs a C++ compiler and a build folder",
)
PROGRAM = """
#include "taeda/operator.h"
using namespace taeda;
Tensor same(const Tensor& x, double) { return x; }
TD_LIBRARY(test_load_%s, library) {
  library.define("before(Tensor x, float factor) -> Tensor");
  library.implement("before", KernelKind::kComposite, same);
  library.define("scale(Tensor x, %s factor) -> Tensor");
  library.implement("scale", KernelKind::kComposite, same);
}
"""


def compiled(folder, namespace, factor):
    """A library whose operator `scale` takes a factor of that type; its function takes a double."""
    source, library = folder / "operators.cc", folder / "operators.so"
    source.write_text(PROGRAM % (namespace, factor))
    includes = [f"-I{SOURCE}/include", f"-I{BUILD}/generated/include"]
    flags = ["-std=c++20", "-shared", "-fPIC", "-DTAEDA_WITHOUT_OPERATOR_METHODS"]
    command = [COMPILER, *flags, *includes, source, BUILD / "lib" / "libtaeda.so", "-o", library]
    subprocess.run(command, check=True)
    return library


def test_operators_of_a_library_can_be_called(tmp_path):
    library = compiled(tmp_path, "good", "float")
    taeda.ops.load_library(library)
    assert taeda.ops.test_load_good.scale(taeda.ones(2), 2.0).tolist() == [1.0, 1.0]
    assert str(library) in taeda.ops.loaded_libraries


def test_a_function_of_other_types_than_its_schema_raises(tmp_path):
    library = compiled(tmp_path, "bad", "int")
    wrong = (
        r"the C\+\+ function for 'test_load_bad::scale\(Tensor x, int factor\) -> Tensor' has the "
        r"types \(Tensor, float\) -> \(Tensor\)"
    )
    for _ in range(2):  # the library stays in the process; it is as wrong the second time
        with pytest.raises(RuntimeError, match=wrong):
            taeda.ops.load_library(library)
    assert not hasattr(taeda.ops.test_load_bad, "scale")
    assert not hasattr(taeda.ops.test_load_bad, "before")
    assert str(library) not in taeda.ops.loaded_libraries


@pytest.mark.parametrize("text", [None, b"no library"])
def test_a_file_that_is_no_library_raises(tmp_path, text):
    path = tmp_path / "operators.so"
    if text is not None:
        path.write_bytes(text)
    with pytest.raises(OSError, match=r"operators\.so"):
        taeda.ops.load_library(path)
