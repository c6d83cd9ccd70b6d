"""The name torch: in modules and classes under `python -m taeda`, and as a distribution."""

import subprocess
import sys
import textwrap
from importlib import metadata
from pathlib import Path

import pytest

import taeda
from taeda import version

BUILD = Path(taeda.__file__).parent.parent


def run(*command, ok=True, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, **options)
    assert not ok or done.returncode == 0, done.stderr
    return done


def launched(code, **options):
    return run(sys.executable, "-m", "taeda", "-c", textwrap.dedent(code), **options).stdout


NAMED = {
    "modules": "torch, torch.nn, torch.nn.functional, torch.optim, torch.utils.data, torch.version",
    "classes": "torch.Tensor, torch.Size, torch.device, torch.dtype, torch.nn.Linear, "
    "torch.no_grad, torch.optim.SGD, torch.nn.Parameter, torch.finfo, torch.utils.data.DataLoader, "
    "torch.autograd.Function, torch.layout",
    "functions": "torch.add, torch.save, torch.nn.functional.relu, torch.einsum",
    "results": "type(torch.ones(2, 2).max(0)), torch.float32",
}


@pytest.mark.parametrize("kind", NAMED)
def test_names_are_torchs(kind):
    """As PyTorch's, which runs the same line."""
    names = "x.__name__" if kind == "modules" else "x.__module__"
    code = f"import torch, torch.utils.data\nprint([{names} for x in ({NAMED[kind]})])"
    mine = launched(code)
    assert "taeda" not in mine
    if kind != "functions":
        pytest.importorskip("torch")
        assert mine == run(sys.executable, "-c", code).stdout


def test_without_the_launcher_names_are_taedas():
    assert taeda.nn.Linear.__module__ == "taeda.nn.modules.linear"
    assert taeda.Tensor.__module__ == taeda.__name__ == "taeda"


def test_pickles_of_a_launched_program_name_torch_alone():
    code = """
    import io, pickle, torch
    things = [torch.nn.Linear(2, 2), torch.add, torch.float32, torch.Tensor, torch.Size([2]),
              torch.nn.functional.relu, torch.einsum, torch.ones(2, 2).max(0)]
    for copy, thing in zip(pickle.loads(pickle.dumps(things)), things):
        assert type(copy) is type(thing), thing
    file = io.BytesIO()
    torch.save(things[0], file)
    file.seek(0)
    print(torch.load(file, weights_only=False), b"taeda" in file.getvalue())
    """
    assert launched(code) == "Linear(in_features=2, out_features=2, bias=True) False\n"


def test_missing_names_say_torch():
    code = """
    import torch, torch.distributed.rpc as rpc
    print(rpc.__name__, rpc.RRef.__module__)
    for get in (lambda: torch.zz, lambda: torch.nn.zz, lambda: rpc.zz):
        try:
            get()
        except AttributeError as error:
            print(error)
    """
    assert launched(code).splitlines() == [
        "torch.distributed.rpc torch.distributed.rpc.api",
        "module 'torch' has no attribute 'zz'",
        "module 'torch.nn' has no attribute 'zz'",
        "module 'torch.distributed.rpc' has no attribute 'zz'",
    ]


METADATA = """
from importlib import metadata, util
print(metadata.version("torch"), util.find_spec("torch") is not None, metadata.requires("torch"),
      "torch" in metadata.packages_distributions())
"""
ANSWER = f"{version.__version__} True ['taeda'] True"


def test_metadata_under_the_launcher_and_in_children():
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {METADATA!r}])"
    assert launched(METADATA + child).splitlines() == [ANSWER, ANSWER]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A virtual environment with taeda, by a .pth file and the metadata of an installed wheel."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "taeda.pth").write_text(f"{BUILD}\n")
    info = site / f"taeda-{version.taeda}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: taeda\nVersion: {version.taeda}\n"
    )
    return folder / "bin" / "python", site


def pip(python, *arguments, **options):
    pytest.importorskip("pip")
    return run(sys.executable, "-m", "pip", "--python", str(python), *arguments, **options)


def test_shim(environment, tmp_path):
    python, site = environment
    before = sorted(site.iterdir())
    assert "every process" in run(python, "-m", "taeda", "install-shim").stdout
    assert "already" in run(python, "-m", "taeda", "install-shim").stdout
    code = "import torch.nn as nn, torch, taeda; print(torch is taeda, nn.Linear.__module__)"
    for flags in ((), ("-I",), ("-E",)):
        done = run(python, *flags, "-c", code, cwd=tmp_path)
        assert done.stdout == "True torch.nn.modules.linear\n"
    assert run(python, "-I", "-c", METADATA).stdout.strip() == ANSWER
    isolated = f"import subprocess, sys; subprocess.run([sys.executable, '-I', '-c', {code!r}])"
    assert run(python, "-m", "taeda", "-c", isolated).stdout.startswith("True")
    names = [str(file) for file in metadata.Distribution.at(next(site.glob("torch-*"))).files]
    assert "torch/__init__.py" in names and all((site / name).exists() for name in names)
    files = [file for file in site.glob("torch*/**/*") if file.is_file()]
    assert sum(file.stat().st_size for file in files if "__pycache__" not in str(file)) < 32768
    code = (site / "torch" / "__init__.py").read_bytes() + b"".join(
        file.read_bytes() for file in site.glob("torch-*/*") if file.name != "RECORD"
    )
    assert len(code) < 1536
    run(python, "-m", "taeda", "uninstall-shim")
    assert sorted(site.iterdir()) == before
    assert "is not in" in run(python, "-m", "taeda", "uninstall-shim", ok=False).stderr


def test_under_the_launcher_there_is_one_distribution_named_torch(environment):
    python, _ = environment
    code = """
import importlib.metadata as m
print(m.packages_distributions()["torch"], len(list(m.distributions(name="torch"))))
"""
    run(python, "-m", "taeda", "install-shim")
    try:
        assert run(python, "-m", "taeda", "-c", code).stdout == "['torch'] 1\n"
        assert run(python, "-c", code).stdout == "['torch'] 1\n"
    finally:
        run(python, "-m", "taeda", "uninstall-shim")


def test_pip_knows_the_shim(environment):
    python, site = environment
    before = sorted(site.iterdir())
    run(python, "-m", "taeda", "install-shim")
    assert "No broken requirements" in pip(python, "check").stdout
    assert f"torch=={version.__version__}" in pip(python, "freeze").stdout.replace(" ", "")
    pip(python, "uninstall", "-y", "torch")
    assert sorted(site.iterdir()) == before


def test_taeda_in_a_folder_is_not_required(environment):
    """pip would look for a distribution named taeda, find none and fetch PyTorch in its place."""
    python, site = environment
    info = site / f"taeda-{version.taeda}.dist-info"
    hidden = info.rename(site / "hidden")
    try:
        run(python, "-m", "taeda", "install-shim")
        assert "No broken requirements" in pip(python, "check").stdout
        assert run(python, "-c", METADATA).stdout.strip() == ANSWER.replace("['taeda']", "None")
        run(python, "-m", "taeda", "uninstall-shim")
    finally:
        hidden.rename(info)


def test_another_torch_is_left_alone(environment):
    python, site = environment
    (site / "torch").mkdir()
    try:
        done = run(python, "-m", "taeda", "install-shim", ok=False)
    finally:
        (site / "torch").rmdir()
    assert done.returncode == 1 and "there is a torch in" in done.stderr


def test_functorch_is_there_beside_torch():
    code = """
    import functorch, torch
    from functorch.experimental import chunk_vmap
    from functorch.compile import aot_function
    f, params = functorch.make_functional(torch.nn.Linear(2, 1))
    grads = functorch.vmap(functorch.grad(lambda x: (x**2).sum()))(torch.ones(2, 2))
    print(grads.tolist(), chunk_vmap(torch.sum)(torch.ones(2, 2)).tolist(), len(params))
    try:
        aot_function(f, None)
    except NotImplementedError as error:
        print(error)
    """
    assert launched(code).splitlines() == [
        "[[2.0, 2.0], [2.0, 2.0]] [2.0, 2.0] 2",
        "functorch.compile.aot_function: taeda runs programs eagerly; call the function or module "
        "itself",
    ]
