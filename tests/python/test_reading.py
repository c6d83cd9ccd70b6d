"""python -m taeda --check: what a program needs and taeda lacks, without running it."""

import subprocess
import sys
import textwrap

import pytest

import taeda


def check(*paths, cwd):
    done = subprocess.run(
        [sys.executable, "-m", "taeda", "--check", *paths],
        capture_output=True, text=True, timeout=60, cwd=cwd,
    )  # fmt: skip
    return done.returncode, done.stdout.splitlines(), done.stderr


def write(folder, **files):
    for name, text in files.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))


def test_names_that_are_missing(tmp_path):
    write(
        tmp_path,
        program="""
        import torch, torch.nn as nn
        from torch.no_part import thing
        from torch.nn import functional as F, NoLayer as Other
        raise SystemExit("this never runs")
        def f(x):
            y = torch.no_such(x).anything + F.relu(x)
            return nn.modules.no_layer.X(y), torch.float32.itemsize, torch.Tensor.no_method
        """,
    )
    code, lines, _ = check("program.py", cwd=tmp_path)
    assert code == 1
    assert lines == [
        "program.py:3: torch.no_part.thing is missing",
        "program.py:4: torch.nn.NoLayer is missing",
        "program.py:7: torch.no_such is missing",
        "program.py:8: torch.nn.modules.no_layer.X is missing",
        "program.py:8: torch.Tensor.no_method is missing",
        "5 names of torch that taeda lacks",
    ]


def test_methods_of_what_is_evidently_a_tensor(tmp_path):
    write(
        tmp_path,
        program="""
        import torch
        from torch import Tensor
        def f(x: Tensor, y: torch.Tensor, z, w: Tensor):
            a = torch.ones(2)
            b, c = z, x
            x.int_repr(), y.view(-1).qscheme(), z.q_scale(), a.q_zero_point()
            (a + 1).to_mkldnn(), b.int_repr(), x.attribute_of_the_program
            w = z
            w.qscheme(), a.max(0).indices, x.sum().item()
            for a in z:
                a.q_scale()
            return torch.zeros(1).ipu()
        def g(x):
            return x.int_repr()
        """,
    )
    code, lines, _ = check("program.py", cwd=tmp_path)
    assert code == 1
    found = [line.split(": ")[1].split()[0].rpartition(".")[2] for line in lines[:-1]]
    assert found == ["int_repr", "qscheme", "q_zero_point", "to_mkldnn", "ipu"]


def test_names_that_are_not_torchs(tmp_path):
    write(
        tmp_path,
        program="""
        import torch, torch.nn.functional as F
        from torch.distributions import transforms
        def f(x, F):
            transforms = []
            transforms.append(F.its_own)
            torch.ops.my_library.f(x), torch.classes.my_library.C(x)
        def g(x):
            return transforms.no_such, torch.ops.aten.no_such
        """,
    )
    code, lines, _ = check("program.py", cwd=tmp_path)
    assert code == 1
    assert [line.split()[1] for line in lines[:-1]] == [
        "torch.distributions.transforms.no_such", "torch.ops.aten.no_such"
    ]  # fmt: skip


def test_the_methods_that_tensors_lack():
    torch = pytest.importorskip("torch")
    lacks = {name for name in set(dir(torch.Tensor)) - set(dir(taeda.Tensor)) if name[0] != "_"}
    assert lacks == set()


def test_names_that_only_raise(tmp_path):
    write(
        tmp_path,
        program="""
        import torch
        from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, ShardingStrategy
        from torch.jit import load
        print(isinstance(torch.nn, FSDP), ShardingStrategy.FULL_SHARD, FSDP | None)
        FSDP(torch.nn.Linear(2, 2))
        map(load, "ab")
        class Derived(FSDP): ...
        @torch.cuda.caching_allocator_enable
        def f(): ...
        FSDP.state_dict_type()
        """,
    )
    code, lines, _ = check("program.py", cwd=tmp_path)
    assert code == 1
    name = "torch.distributed.fsdp.FullyShardedDataParallel"
    assert lines[:-1] == [
        f"program.py:{line} raises when called"
        for line in (
            f"6: {name}", "7: torch.jit.load", f"8: {name}",
            "9: torch.cuda.caching_allocator_enable",
            f"11: {name}.state_dict_type",
        )
    ]  # fmt: skip


def test_what_is_asked_for_before(tmp_path):
    write(
        tmp_path,
        program="""
        import torch
        import torch.distributed as dist
        if dist.is_available() and dist.is_initialized():
            dist.barrier()
        rank = dist.get_rank() if torch.distributed.is_initialized() else 0
        if torch.npu.is_available() or torch.xpu.is_available():
            torch.npu.empty_cache(), torch.xpu.FloatTensor, torch.xpu.Stream()
        if torch.cuda.is_available():
            torch.cuda.cudart()
        if not dist.is_initialized():
            dist.init_process_group()
        """,
    )
    code, lines, _ = check("program.py", cwd=tmp_path)
    assert code == 1
    assert [line.split()[1] for line in lines[:-1]] == [
        "torch.cuda.cudart", "torch.distributed.init_process_group"
    ]  # fmt: skip


def test_what_a_program_expects_to_miss(tmp_path):
    write(
        tmp_path,
        program="""
        import torch
        try:
            from torch.no_part import thing
            torch.no_such()
        except (ImportError, AttributeError):
            thing = None
        try:
            f = torch.ones
        except AttributeError:
            f = torch.name_of_an_old_version
        if hasattr(torch, "newer"):
            torch.newer()
        x = torch.later if hasattr(torch, "later") else torch.ones(2)
        """,
    )
    assert check("program.py", cwd=tmp_path)[:2] == (0, ["nothing is missing"])


def test_what_takes_the_place_of_what_is_missing(tmp_path):
    write(
        tmp_path,
        program="""
        import torch
        try:
            f = torch.no_such
        except AttributeError:
            f = torch.nor_this
        """,
    )
    code, lines, _ = check("program.py", cwd=tmp_path)
    assert code == 1 and lines[0] == "program.py:6: torch.nor_this is missing"


def test_imported_files_and_folders(tmp_path):
    write(
        tmp_path,
        **{
            "program": "import package.part\nfrom helper import f\nimport json\n",
            "helper": "import torch\nf = torch.no_a\n",
            "package/__init__": "from . import beside\n",
            "package/part": "from torch import no_b\n",
            "package/beside": "from torch import no_c\n",
            "other/unrelated": "from torch import no_d\n",
            "broken/one": "def (:\n",
        },
    )
    code, lines, _ = check("program.py", cwd=tmp_path)
    assert code == 1
    assert {line.rpartition(": ")[2].split()[0] for line in lines[:-1]} == {
        "torch.no_a", "torch.no_b", "torch.no_c"
    }  # fmt: skip
    code, lines, _ = check("helper.py", "other", cwd=tmp_path)
    assert [line.split()[1] for line in lines[:-1]] == ["torch.no_a", "torch.no_d"]
    code, lines, _ = check("broken", cwd=tmp_path)
    assert code == 1 and "cannot be read" in lines[0]


def test_usage(tmp_path):
    assert check(cwd=tmp_path)[0] == 2
    code, _, error = check("nothing.py", cwd=tmp_path)
    assert code == 2 and "usage" in error


def test_other_names_of_modules_are_followed(tmp_path):
    write(
        tmp_path,
        program="""
        import torch
        nnF = torch.nn.functional
        T = torch
        nnF.relu(nnF.no_such)
        T.nothing.at_all
        def f(T):
            return T.zzz
        def g():
            local = torch.linalg
            return local.no_such
        def h():
            T = object()
            return T.zzz
        local.zzz
        T = object()
        T.zzz
        for nnF in []:
            nnF.zzz
        dtype = torch.float32
        dtype.zzz
        """,
    )
    _, lines, _ = check("program.py", cwd=tmp_path)
    assert lines == [
        "program.py:5: torch.nn.functional.no_such is missing",
        "program.py:6: torch.nothing.at_all is missing",
        "program.py:11: torch.linalg.no_such is missing",
        "3 names of torch that taeda lacks",
    ]


def test_names_that_a_program_gives_a_value_are_its_own(tmp_path):
    write(
        tmp_path,
        program="""
        import torch
        torch.early
        torch.own = 3
        torch.own, torch.own.part
        torch.nn.Module.describe = lambda self: 1
        torch.nn.Module.describe(1)
        torch.nn.Module.described
        """,
    )
    _, lines, _ = check("program.py", cwd=tmp_path)
    assert lines == [
        "program.py:3: torch.early is missing",
        "program.py:8: torch.nn.Module.described is missing",
        "2 names of torch that taeda lacks",
    ]


def test_getattr_with_a_literal_name_is_a_name(tmp_path):
    write(
        tmp_path,
        program="""
        import torch
        name = "abs"
        getattr(torch, name)(1)
        getattr(torch, "abs")(getattr(torch.nn, "NoLayer"))
        getattr(torch, "no_such", None)
        getattr(torch, "export").export(1)
        """,
    )
    _, lines, _ = check("program.py", cwd=tmp_path)
    assert lines == [
        "program.py:5: torch.nn.NoLayer is missing",
        "program.py:7: torch.export.export raises when called",
        "2 names of torch that taeda lacks",
    ]
