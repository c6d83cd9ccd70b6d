"""python -m taeda: PyTorch programs run on taeda; and what importing costs."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.children import SANITIZED

import taeda


def run(*arguments, cwd=None, ok=True):
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=cwd, timeout=60,
        env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"),
    )  # fmt: skip
    if ok:
        assert done.returncode == 0, done.stderr
    return done


def test_script_with_arguments(tmp_path):
    (tmp_path / "helper.py").write_text("import torch\nname = torch.__name__\n")
    (tmp_path / "script.py").write_text(
        textwrap.dedent("""
        import sys
        import torch
        import torch.version
        from torch import Tensor
        from torch.overrides import is_tensor_like
        import torch.backends.cudnn as cudnn
        import taeda, taeda.version, helper
        assert torch is taeda and torch.version is taeda.version
        assert helper.name == "torch" and __name__ == "__main__"
        assert __file__.endswith("script.py")
        print(sys.argv[1:], isinstance(torch.tensor(1), Tensor), cudnn.benchmark)
        """)
    )
    done = run("-m", "taeda", str(tmp_path / "script.py"), "a", "--b=c")
    assert done.stdout.strip() == "['a', '--b=c'] True False"


def test_module_and_code(tmp_path):
    (tmp_path / "program.py").write_text("import torch, sys; print(torch.__name__, sys.argv[1:])\n")
    assert run("-m", "taeda", "-m", "program", "x", cwd=tmp_path).stdout.strip() == "torch ['x']"
    code = "import torch, sys; print(torch.__name__, sys.argv)"
    assert run("-m", "taeda", "-c", code, "x").stdout.strip() == "torch ['-c', 'x']"


def test_exit_codes_and_errors(tmp_path):
    assert run("-m", "taeda", "-c", "raise SystemExit(3)", ok=False).returncode == 3
    failed = run("-m", "taeda", "-c", "import torch; torch.tensor('a')", ok=False)
    assert failed.returncode == 1
    assert "TypeError" in failed.stderr
    assert run("-m", "taeda", "missing.py", ok=False).returncode != 0
    assert run("-m", "taeda", ok=False).returncode == 2


def test_program_from_standard_input():
    done = subprocess.run(
        [sys.executable, "-m", "taeda", "-", "x"],
        input="import sys, torch\nprint(torch.__name__, sys.argv, __name__)\n",
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.strip() == "torch ['-', 'x'] __main__"


FAILURES = {
    "exception": "import os\ndef f():\n    raise ValueError('no')\nf()\n",
    "syntax": "import os\nx = = 1\n",
    "cause": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError(3) from e\n",
    "exit text": "raise SystemExit('bye')\n",
    "exit code": "import sys\nsys.exit(7)\n",
    "interrupt": "raise KeyboardInterrupt\n",
    "hook": "import sys\nsys.excepthook = lambda k, v, t: print(k, t.tb_lineno)\n1 / 0\n",
    "atexit": "import atexit\natexit.register(print, 'done')\nraise ValueError\n",
    "names": "import sys\nprint(__file__, sys.argv, sys.modules['__main__'].__dict__ is globals(), "
    "__spec__, __package__, sys.path[0])\n",
}


@pytest.mark.parametrize("text", FAILURES.values(), ids=FAILURES)
def test_a_program_ends_as_under_python(tmp_path, text):
    (tmp_path / "program.py").write_text(text)
    mine = run("-m", "taeda", "program.py", "a", cwd=tmp_path, ok=False)
    theirs = run("program.py", "a", cwd=tmp_path, ok=False)
    assert (mine.returncode, mine.stdout, mine.stderr) == (
        theirs.returncode,
        theirs.stdout,
        theirs.stderr,
    )


def test_missing_submodule_is_an_import_error():
    code = "import torch.no_such_part"
    failed = run("-m", "taeda", "-c", code, ok=False)
    assert "ModuleNotFoundError" in failed.stderr


def test_cmake_dir_and_version():
    folder = Path(run("-m", "taeda", "--cmake-dir").stdout.strip())
    assert (folder / "taedaConfig.cmake").exists()
    assert (folder / "taedaTargets.cmake").exists()
    assert "2.13" in run("-m", "taeda", "--version").stdout


def test_env_report(monkeypatch):
    monkeypatch.setenv("TAEDA_CPU", "avx2")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    text = run("-m", "taeda.env").stdout
    parts = ("taeda", "Python", "system", "CPU", "CPU features", "threads", "memory", "CUDA")
    for part in (*parts, "packages", "build", "libraries", "environment"):
        assert f"\n{part}: " in f"\n{text}" or f"\n{part}:\n" in text, part
    assert "CPUs, " in text and " GiB available" in text and "C library glibc" in text
    assert "-std=c++20, " in text and "libtaeda.so" in text
    assert "  OMP_NUM_THREADS=1\n" in text and "  TAEDA_CPU=avx2" in text


def test_import_is_light():
    code = (
        "import sys; before = set(sys.modules); import taeda; "
        "print(*sorted(set(sys.modules) - before))"
    )
    loaded = run("-c", code).stdout.split()
    assert len(loaded) <= 30, loaded
    for heavy in (
        "numpy",
        "typing",
        "inspect",
        "dataclasses",
        "taeda.nn",
        "taeda.optim",
        "logging",
    ):
        assert heavy not in loaded


@pytest.mark.skipif(SANITIZED, reason="the sanitizers' own memory counts too")
def test_import_memory():
    code = (
        "import taeda; "
        "print(next(l for l in open('/proc/self/status') if l.startswith('VmRSS')).split()[1])"
    )
    assert int(run("-c", code).stdout) <= 45 * 1024


def test_version_comparisons():
    import taeda as torch

    version = torch.__version__
    assert version >= "1.10"
    assert version > "2.2"
    assert version < "3"
    assert version >= (2, 0)
    assert version.startswith("2.13.0")
    assert tuple(int(v) for v in version.split("+")[0].split(".")[:2]) == (2, 13)
    assert [int(v) for v in version.split(".")[:2]] == [2, 13]
    packaging = pytest.importorskip("packaging.version")
    assert packaging.parse(version) > packaging.parse("2.0")


def test_absent_devices_say_so():
    import taeda as torch

    assert not torch.cuda.is_available()
    assert torch.cuda.device_count() == 0
    assert not torch.backends.mps.is_available()
    assert not torch.distributed.is_available()
    torch.cuda.manual_seed_all(0)
    torch.cuda.empty_cache()
    assert torch.cuda.memory_allocated() == 0


CUDA_CALLS = {
    "synchronize": lambda torch: torch.cuda.synchronize(),
    "current_device": lambda torch: torch.cuda.current_device(),
    "get_device_name": lambda torch: torch.cuda.get_device_name(),
    "mem_get_info": lambda torch: torch.cuda.mem_get_info(),
    "Stream": lambda torch: torch.cuda.Stream(),
    "device": lambda torch: torch.cuda.device(0).__enter__(),
    "FloatTensor": lambda torch: torch.cuda.FloatTensor(2),
    "Generator": lambda torch: torch.Generator(device="cuda"),
    "Tensor.cuda": lambda torch: torch.ones(2).cuda(),
    "Tensor.to": lambda torch: torch.ones(2).to("cuda:0"),
    "zeros": lambda torch: torch.zeros(2, device="cuda"),
    "tensor": lambda torch: torch.tensor([1.0], device="cuda"),
    "randn": lambda torch: torch.randn(2, device="cuda"),
    "new_zeros": lambda torch: torch.ones(2).new_zeros(2, device="cuda"),
    "Module.cuda": lambda torch: torch.nn.Linear(2, 2).cuda(),
    "Module.to": lambda torch: torch.nn.Linear(2, 2).to("cuda"),
}


@pytest.mark.parametrize("call", CUDA_CALLS.values(), ids=CUDA_CALLS)
def test_cuda_calls_raise_what_a_pytorch_without_cuda_raises(call):
    import taeda

    with pytest.raises((AssertionError, RuntimeError, TypeError), match=r"CUDA|cuda") as mine:
        call(taeda)
    torch = pytest.importorskip("torch")
    if torch.version.cuda is not None:
        pytest.skip("PyTorch has CUDA")
    with pytest.raises((AssertionError, RuntimeError, TypeError)) as theirs:
        call(torch)
    assert mine.type is theirs.type


def test_cuda_programs_run_without_a_device():
    import taeda as torch

    with pytest.warns(UserWarning, match="CUDA is not available"):
        scaler = torch.cuda.amp.GradScaler()
    with torch.cuda.amp.autocast(enabled=False):
        loss = scaler.scale(torch.ones(1))
    assert loss.item() == 1.0
    assert not scaler.is_enabled()
    assert not isinstance(loss, torch.cuda.FloatTensor)
    with pytest.warns(UserWarning, match="CUDA is not available"), torch.autocast("cuda"):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.float32


def test_unknown_names():
    import taeda as torch

    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        torch.no_such_name  # noqa: B018
    with pytest.raises(AttributeError):
        torch.NoSuchTensor  # noqa: B018


CHILD = """
import torch.nn.functional as F
import sys, torch, torch.nn
from torch.utils.data import DataLoader
import taeda
assert torch is taeda is sys.modules["torch"] and F is taeda.nn.functional
"""


def test_children_import_taeda_too(tmp_path):
    (tmp_path / "child.py").write_text(CHILD + "print('child', torch.ones(2).sum().item())\n")
    (tmp_path / "parent.py").write_text(
        textwrap.dedent("""
        import subprocess, sys
        start = "import subprocess, sys; subprocess.run([sys.executable, 'child.py'], check=True)"
        exec(start)
        subprocess.run([sys.executable, "-c", start], check=True)  # a child of a child
        """)
    )
    assert run("-m", "taeda", "parent.py", cwd=tmp_path).stdout.split() == ["child", "2.0"] * 2


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_import_taeda_too(tmp_path, method):
    (tmp_path / "parent.py").write_text(
        CHILD
        + textwrap.dedent(f"""
        import multiprocessing
        import torch.multiprocessing as mp

        def work(queue, x):
            queue.put((sys.modules["torch"].__name__, (x + 1).tolist()))

        def spawned(index, x):
            x[index] = taeda.ones(()).item()

        if __name__ == "__main__":
            context = multiprocessing.get_context("{method}")
            queue = context.Queue()
            worker = context.Process(target=work, args=(queue, torch.ones(2)))
            worker.start()
            assert queue.get() == ("torch", [2.0, 2.0])
            worker.join()
            assert worker.exitcode == 0
            shared = torch.zeros(2).share_memory_()
            mp.spawn(spawned, (shared,), nprocs=2)
            print(shared.tolist())
        """)
    )
    assert run("-m", "taeda", "parent.py", cwd=tmp_path).stdout.strip() == "[1.0, 1.0]"


def test_children_find_taeda_from_other_folders(tmp_path):
    """`python -m` finds taeda in the working folder; a child may work elsewhere."""
    import taeda

    (tmp_path / "child.py").write_text(CHILD)
    code = (
        "import subprocess, sys; subprocess.run([sys.executable, sys.argv[1]], cwd='/', check=True)"
    )
    done = subprocess.run(
        [sys.executable, "-m", "taeda", "-c", code, str(tmp_path / "child.py")],
        cwd=os.path.dirname(os.path.dirname(taeda.__file__)), capture_output=True, text=True,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"}, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_child_with_another_python_says_so(tmp_path):
    """Played by a package whose core has another version's name, and a Python without taeda."""
    import taeda

    package = tmp_path / "taeda"
    package.mkdir()
    for file in Path(taeda.__file__).resolve().parent.iterdir():
        if file.name != "__pycache__":
            (package / file.name).symlink_to(file)
    (package / "_C.cpython-309-x86_64-linux-gnu.so").write_bytes(b"")
    for code in ("import torch", "import taeda"):
        done = subprocess.run(
            [sys.executable, "-S", "-c", code], capture_output=True, text=True, timeout=60,
            env={"PYTHONPATH": f"{tmp_path}/taeda/_as_torch:{tmp_path}"},
        )  # fmt: skip
        assert done.returncode == 1
        assert (
            "ImportError: taeda in" in done.stderr and "is built for another Python" in done.stderr
        )


@pytest.mark.skipif(SANITIZED, reason="an isolated child finds another build")
def test_an_isolated_child_of_an_ordinary_child_imports_taeda_as_torch(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.customized = 'too'\n")
    (tmp_path / "child.py").write_text(
        "import subprocess, sys\n"
        "shown = 'import torch, sys; print(torch.__version__, sys.argv)'\n"
        "command = [sys.executable, '-I', '-c', shown, 'x']\n"
        "print(subprocess.run(command, capture_output=True, text=True).stdout, customized)\n"
    )
    code = (
        "import os, subprocess, sys\n"
        f"os.environ['PYTHONPATH'] += os.pathsep + {str(tmp_path)!r}\n"
        "subprocess.run([sys.executable, 'child.py'])\n"
    )
    done = run("-m", "taeda", "-c", code, cwd=tmp_path)
    from taeda import __version__ as version

    assert done.stdout == f"{version} ['-c', 'x']\n too\n", done.stderr


@pytest.mark.skipif(SANITIZED, reason="an isolated child finds another build")
@pytest.mark.parametrize("flag", ["-I", "-E", "-sI"])
def test_an_isolated_child_imports_taeda_as_torch(tmp_path, flag):
    (tmp_path / "child.py").write_text(
        "from torch.nn import functional\n"
        "import sys, torch\n"
        "print(torch.__version__, __name__, sys.argv)\n"
    )
    (tmp_path / "plain.py").write_text("print('no torch in here')\n")
    code = f"""
import subprocess, sys
shown = "import os; import torch, sys; print(torch.__version__, sys.argv)"
for program in (["child.py", "x"], ["-W", "ignore", "-X", "utf8", "child.py"], ["-c", shown, "-I"],
                ["plain.py"], ["-m", "taeda", "-c", shown]):
    done = subprocess.run([sys.executable, "{flag}", *program], capture_output=True, text=True)
    print(done.stdout, done.stderr, done.args[1:3], end="|")
print(subprocess.run([sys.executable, "{flag}", "-c", "import sys; sys.exit(3)"]).returncode)
"""
    done = run("-m", "taeda", "-c", code, cwd=tmp_path)
    from taeda import __version__ as version

    assert done.stdout.split("|") == [
        f"{version} __main__ ['child.py', 'x']\n  ['{flag}', 'child.py']",
        f"{version} __main__ ['child.py']\n  ['{flag}', '-W']",
        f"{version} ['-c', '-I']\n  ['{flag}', '-c']",
        f"no torch in here\n  ['{flag}', 'plain.py']",
        f"{version} ['-c']\n  ['{flag}', '-m']",
        "3\n",
    ], done.stderr


@pytest.mark.skipif(SANITIZED, reason="an isolated child finds another build")
@pytest.mark.skipif(SANITIZED, reason="a child without variables finds another build")
@pytest.mark.parametrize("path", [None, "/elsewhere"])
def test_a_child_with_an_environment_of_its_own_imports_taeda_as_torch(tmp_path, path):
    """The dictionary that the program gives stays as it is."""
    (tmp_path / "child.py").write_text(
        "import sys, torch\nprint(torch.__version__, sys.argv[1:], __name__)\n"
    )
    (tmp_path / "program.py").write_text(
        textwrap.dedent(f"""
        import subprocess, sys
        env = {{}} if {path!r} is None else {{"PYTHONPATH": {path!r}}}
        before = dict(env)
        subprocess.run([sys.executable, "child.py", "a"], env=env)
        subprocess.run(f"{{sys.executable}} child.py", shell=True, env=env)
        assert env == before
        """)
    )
    done = run("-m", "taeda", "program.py", cwd=tmp_path)
    line = f"{taeda.__version__} [{{}}] __main__"
    assert done.stdout.splitlines() == [line.format("'a'"), line.format("")], done.stderr


def test_an_isolated_child_of_a_shell_imports_taeda_where_the_command_is_plain():
    code = """
import subprocess, sys
isolated = f"{sys.executable} -I -c 'import sys, torch; print(torch.__version__, sys.argv[1:])' a"
for command in (isolated, isolated + " 'b c'", f"{sys.executable} -I -c 'print(1)' | cat"):
    print(subprocess.run(command, shell=True, capture_output=True, text=True).stdout, end="")
"""
    from taeda import __version__ as version

    assert run("-m", "taeda", "-c", code).stdout.splitlines() == [
        f"{version} ['a']", f"{version} ['a', 'b c']", "1"
    ]  # fmt: skip


def test_a_report_of_the_machine_names_the_commit_and_all_of_the_cpus_instructions():
    text = run("-m", "taeda.env").stdout
    root = Path(__file__).resolve().parents[2]
    asked = ["git", "-C", str(root), "rev-parse", "HEAD"]
    head = subprocess.run(asked, capture_output=True, text=True).stdout.strip()
    in_a_clone = (Path(taeda.__file__).resolve().parents[2] / ".git").exists()
    assert re.search(rf"^commit: +{head if in_a_clone else 'unknown'}", text, re.M)
    with open("/proc/cpuinfo") as file:
        flags = set(next(line for line in file if line.startswith("flags")).split())
    shown = set(re.search(r"^CPU features: +\w+ in use; of (.*)$", text, re.M)[1].split())
    assert shown <= flags and {f for f in flags if f.startswith("avx")} <= shown


def test_a_report_of_the_machine_ends_quietly_where_its_reader_goes_away():
    command = [sys.executable, "-m", "taeda.env"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 0


SUBINTERPRETER = """
import sys
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
if sys.argv[1] == "after":
    import taeda
other = interpreters.create()
text = "try:\\n    import taeda\\nexcept ImportError as error:\\n    print(error)"
interpreters.run_string(other, "import sys\\nsys.path[:] = " + repr(sys.path) + "\\n" + text)
import taeda, importlib
print(taeda.ones(2).sum().item())
del sys.modules["taeda._C"]
core = importlib.import_module("taeda._C")
print(core.Tensor is taeda.Tensor)
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_subinterpreters_are_refused(when):
    pytest.importorskip("_xxsubinterpreters" if sys.version_info < (3, 13) else "_interpreters")
    done = run("-c", SUBINTERPRETER, when)
    assert "taeda does not support subinterpreters" in done.stdout
    assert done.stdout.split("\n")[-3:] == ["2.0", "True", ""]


def test_an_import_finds_the_mock_that_a_test_put_for_a_module(tmp_path):
    (tmp_path / "script.py").write_text(
        textwrap.dedent("""
        import sys
        from unittest.mock import Mock
        import torch
        sys.modules["torch.distributed.run"] = mock = Mock()
        import torch.distributed.run as torchrun
        assert torchrun is mock
        torchrun.main(["program.py"])
        print(mock.main.call_args.args)
        """)
    )
    done = run("-m", "taeda", str(tmp_path / "script.py"))
    assert done.stdout.strip() == "(['program.py'],)"


def test_imports_warn_of_nothing(tmp_path):
    names = (
        "nn.functional distributions optim utils.data fx nested sparse fft linalg special amp jit "
        "autograd.functional nn.utils.parametrizations utils.checkpoint _prims_common _refs _decomp"
    )
    (tmp_path / "script.py").write_text(
        "\n".join(f"import torch.{name}" for name in names.split()) + "\nprint('done')\n"
    )
    done = run("-W", "error", "-m", "taeda", str(tmp_path / "script.py"))
    assert done.stdout.strip() == "done"


def test_a_command_that_is_not_whole_fails_as_under_python():
    code = """
import subprocess, sys
for command in (["-c"], ["-I", "-c"], ["-m"], ["-E", "-m"]):
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
    print(done.returncode, done.stderr.splitlines()[0])
for command in ([], [sys.executable, 3], [None]):
    try:
        subprocess.run(command)
    except (IndexError, TypeError) as error:
        print(error)
"""
    plain, launched = run("-c", code), run("-m", "taeda", "-c", code)
    assert launched.stdout == plain.stdout
    assert plain.stdout.count("2 Argument expected for the -") == 4
