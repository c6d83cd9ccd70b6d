"""The code of the README and of docs runs, and prints what the comments beside `print` say."""

import ast
import contextlib
import io
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import taeda

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("tutorials/*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
BUILD = Path(taeda._C.__file__).resolve().parents[2]


def blocks(page, language):
    return [code for name, code in BLOCK.findall(page.read_text()) if name == language]


def with_code(language):
    found = [page for page in PAGES if blocks(page, language)]
    return [pytest.param(page, id=str(page.relative_to(ROOT))) for page in found]


def printed(code, names):
    """(what a statement printed, the comments beside it) for each statement that prints."""
    lines = code.split("\n")
    for statement in ast.parse(code).body:
        output = io.StringIO()
        module = ast.Module([statement], [])
        with contextlib.redirect_stdout(output):
            exec(compile(module, "snippet", "exec"), names)
        following = statement.end_lineno
        while following < len(lines) and lines[following].lstrip().startswith("#"):
            following += 1
        source = lines[statement.lineno - 1 : following]
        comments = [c for line in source if (c := line.partition("# ")[2])]
        if output.getvalue():
            yield output.getvalue().rstrip("\n").split("\n"), comments


@pytest.mark.parametrize("page", with_code("python"))
def test_python_of_a_page_prints_what_it_says(page):
    names = {"__name__": "snippet", "torch": taeda}
    for code in blocks(page, "python"):
        for shown, comments in printed(code, names):
            assert comments, f"{page.name} does not say what it prints: {shown}"
            for line, comment in zip(shown, comments):
                value = comment.rpartition(": ")[0]  # "3.0: why" says 3.0
                said = line.startswith(comment) or (bool(value) and line.startswith(value))
                assert said, (page.name, line, comment)


@pytest.mark.parametrize("page", with_code("cpp"))
def test_cpp_of_a_page_compiles_and_ends_well(page, tmp_path):
    library = BUILD / "lib" / "libtaeda.so"
    if not shutil.which("g++") or not library.exists():
        pytest.skip("needs g++ and a build folder")
    for i, code in enumerate(c for c in blocks(page, "cpp") if "int main(" in c):
        source, program = tmp_path / f"{i}.cc", tmp_path / f"{i}"
        source.write_text(code)
        command = ["g++", "-std=c++20", "-o", str(program), str(source)]
        command += [f"-I{ROOT / 'include'}", f"-I{BUILD / 'generated' / 'include'}"]
        command += [str(library), f"-Wl,-rpath,{library.parent}"]
        subprocess.run(command, check=True)
        assert subprocess.run([program], stdout=subprocess.DEVNULL, cwd=tmp_path).returncode == 0


def test_every_page_that_a_newcomer_reads_has_code_that_runs():
    shown = {param.id for param in with_code("python")}
    wanted = {"README.md", "docs/quickstart.md", "docs/coming-from-pytorch.md"}
    wanted |= {
        f"docs/tutorials/{n}.md" for n in ("training", "data", "autograd", "custom-operator")
    }
    assert wanted <= shown
    assert {"README.md", "docs/tutorials/cpp.md"} <= {param.id for param in with_code("cpp")}


# Code of other kinds, and where it runs or why it does not.
ELSEWHERE = {
    "docs/errors.md": {"py": "tests/errors"},
    "docs/adding-an-operator.md": {"yaml": "keys", "diff": "tests/tools/test_generated_text.py"},
    "docs/coming-from-pytorch.md": {"sh": "tests/python/test_main.py"},
    "docs/install.md": {"sh": "builds wheels; tools/try_wheel.py"},
    "docs/tutorials/cpp.md": {"cmake": "tools/try_wheel.py", "sh": "tools/try_wheel.py"},
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_that_does_not_run_here_is_known(page):
    kinds = {name for name, _ in BLOCK.findall(page.read_text())} - {"python", "cpp", "text"}
    assert kinds == set(ELSEWHERE.get(str(page.relative_to(ROOT)), {}))
    assert all("int main(" in code for code in blocks(page, "cpp"))


NEW_FILE = re.compile(r"^--- /dev/null\n\+\+\+ b/(\S+)\n((?:\+.*\n)+)", re.M)


def test_whole_files_of_the_note_on_kernels_are_the_repositorys():
    shown = NEW_FILE.findall((DOCS / "notes" / "cuda-kernels.md").read_text(encoding="utf-8"))
    assert len(shown) == 3
    for path, added in shown:
        text = "".join(line[1:] + "\n" for line in added.splitlines())
        assert text == (ROOT / path).read_text(encoding="utf-8"), path
