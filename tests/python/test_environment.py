"""Each variable that docs/environment.md says has an effect has it; the others are read nowhere."""

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.error import HTTPError

import pytest
from tests.children import ENVIRONMENT

import taeda
from taeda import hub

ROOT = Path(__file__).parents[2]
PYTORCHS, OWN = (ROOT / "docs" / "environment.md").read_text().split("## taeda's own")
WITH_EFFECT, WITHOUT = PYTORCHS.split("are not read")
READ = re.compile(r"""(?:getenv\(|environ\.get\(|environ\[|names = \(|for \(.*\{)\s*"(\w+)\"""")


def variables(text):
    rows = [row.split("|")[1] for row in text.splitlines() if row.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(\w+\*?)`", row)}


def source_files():
    return [*ROOT.glob("python/taeda/**/*.py"), *ROOT.glob("src/**/*.cc"), *ROOT.glob("src/**/*.h")]


def printed(program, **settings):
    environment = {k: v for k, v in ENVIRONMENT.items() if k not in variables(WITH_EFFECT)}
    return subprocess.check_output(
        [sys.executable, "-c", program], env=environment | settings, text=True
    ).split()


@pytest.mark.parametrize(
    ("settings", "threads"),
    [
        ({"TAEDA_NUM_THREADS": "2", "OMP_NUM_THREADS": "3", "MKL_NUM_THREADS": "5"}, "2"),
        ({"TAEDA_NUM_THREADS": "", "OMP_NUM_THREADS": "3", "MKL_NUM_THREADS": "5"}, "3"),
        ({"TAEDA_NUM_THREADS": "", "MKL_NUM_THREADS": "5"}, "5"),
        ({"TAEDA_NUM_THREADS": "", "OMP_NUM_THREADS": "none", "MKL_NUM_THREADS": "4"}, "4"),
    ],
)
def test_the_first_of_three_sets_the_number_of_threads(settings, threads):
    assert printed("import taeda; print(taeda.get_num_threads())", **settings) == [threads]


def test_launchers_say_which_process_this_is(monkeypatch):
    packages = [taeda.distributed]
    if torch := sys.modules.get("torch"):
        packages.append(torch.distributed)
    for package in packages:
        monkeypatch.delenv("LOCAL_RANK", raising=False)
        monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
        assert not package.is_torchelastic_launched()
        assert package.get_node_local_rank(fallback_rank=7) == 7
        with pytest.raises(RuntimeError, match="LOCAL_RANK"):
            package.get_node_local_rank()
        monkeypatch.setenv("LOCAL_RANK", "3")
        monkeypatch.setenv("TORCHELASTIC_RUN_ID", "run")
        assert package.is_torchelastic_launched()
        assert package.get_node_local_rank(fallback_rank=7) == 3


def test_a_token_is_sent_and_left_out_where_it_does_not_do(monkeypatch):
    sent = []

    def read(request):
        sent.append(request.get_header("Authorization"))
        if sent[-1] == "token stale":
            raise HTTPError(request.full_url, 401, "Unauthorized", None, None)
        return "{}"

    monkeypatch.setattr(hub, "_read_url", read)
    for token in (None, "good", "stale"):
        if token:
            monkeypatch.setenv("GITHUB_TOKEN", token)
        else:
            monkeypatch.delenv("GITHUB_TOKEN", raising=False)
        assert hub._ask_github("https://api.github.com/repos/someone/things") == {}
    assert sent == [None, "token good", "token stale", None]


def test_files_in_folders_that_may_not_be_written_are_collected_among_temporary_ones():
    program = """if True:
    import io, os, sys, taeda
    taeda.save(taeda.ones(3), io.BytesIO())  # its modules may be where only root may read
    file, folder, temporary = sys.argv[1:]
    os.chmod(folder, 0o555)
    if os.geteuid() == 0:
        os.setgid(65534), os.setuid(65534)  # root may write everywhere
    for chosen in (temporary, temporary + "/absent"):
        os.environ["TMPDIR"] = chosen
        try:
            taeda.save(taeda.ones(3), file)
            print(taeda.load(file).sum().item())
        except OSError as error:
            print(type(error).__name__)
    """
    with TemporaryDirectory() as parent:  # pytest's folders are closed to other users
        Path(parent).chmod(0o755)
        folder, temporary = Path(parent, "folder"), Path(parent, "temporary")
        for made in (folder, temporary):
            made.mkdir()
        temporary.chmod(0o777)
        file = folder / "a.pt"
        file.touch()
        file.chmod(0o666)
        done = subprocess.run(
            [sys.executable, "-c", program, str(file), str(folder), str(temporary)],
            env=ENVIRONMENT, capture_output=True, text=True,
        )  # fmt: skip
        folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["3.0", "PermissionError"]


def test_what_is_read_is_listed_and_what_is_listed_as_not_read_is_not():
    shown = {"collect_env.py", "__config__.py"}  # print what is set
    read = {
        name
        for file in source_files()
        if file.name not in shown
        for name in READ.findall(file.read_text())
        if not name.startswith("TAEDA_") and name.isupper() and name != "PYTHONPATH"
    }
    assert "OMP_NUM_THREADS" in variables(WITH_EFFECT)
    assert read - variables(WITH_EFFECT) == set()
    assert read & variables(WITHOUT) == set()


def test_the_table_of_own_variables_lists_those_that_the_sources_read():
    read = {
        name
        for file in source_files()
        for name in READ.findall(file.read_text())
        if re.fullmatch("TAEDA_[A-Z_]+[A-Z]", name)  # not the prefix that taeda.env looks for
    }
    assert "TAEDA_CPU" in read
    assert variables(OWN) == read


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("TAEDA_CPU", "fast", "expected baseline, avx2 or avx512"),
        ("TAEDA_CONTENTION", "some", "expected none, migrate, backoff or both"),
        ("TAEDA_FAIL_ALLOCATION", "soon", "expected a number"),
    ],
)
def test_values_that_the_table_does_not_list_are_reported(name, value, words):
    program = "import taeda; x = taeda.ones(2000, 2000); x + x; x @ x"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=ENVIRONMENT | {name: value, "TAEDA_NUM_THREADS": "2"}, capture_output=True, text=True,
    )  # fmt: skip
    assert words in done.stderr
