"""The source checks of tools/: they pass here, and they find what they are for."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


sys.path.insert(0, str(ROOT / "tools"))  # the checks import each other's table


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


layers = tool("check_layers")
links = tool("check_links")
dependencies = tool("check_dependencies")
lists = tool("check_operator_lists")
kernels = tool("check_kernels")


def test_includes_point_one_way():
    assert layers.check(ROOT) == []


def test_no_file_lists_operators():
    assert lists.check(ROOT) == []


def test_only_generated_code_calls_kernels(tmp_path):
    assert kernels.check(ROOT) == []
    for folder in ("ops", "src/ops", "src/kernels/cpu"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "ops" / "some.yaml").write_text("- op: f(Tensor x) -> Tensor\n  kernel: f_rows\n")
    (tmp_path / "src/kernels/cpu/f.cc").write_text("cpu::f_rows(out, x);\n")
    (tmp_path / "src/ops/f.cc").write_text("cpu::copy(out, x);\ncpu::f_rows(out, x);\n")
    calls = "cpu::bincount(view_of(x));\ncpu::bincount(host_view(x));\n"
    (tmp_path / "src/ops/g.cc").write_text(calls)
    assert kernels.check(tmp_path) == [
        "src/ops/f.cc:1: calls cpu::copy, which knows one device",
        "src/ops/f.cc:2: calls the kernel f_rows of the table",
        "src/ops/g.cc:1: gives cpu:: a view_of, which may be a device's",
    ]


@pytest.mark.parametrize(
    "text, message",
    [
        ("cpu ::f_rows(out, x);", "calls cpu::f_rows"),
        ("kernels\n  ::f(out, x);", "calls the kernel f of the table"),
        ("/* why */ cpu::/* so */copy(out, x);", "calls cpu::copy"),
        ("using namespace taeda::cpu;", "hides the namespace"),
        ("using namespace cpu ;", "hides the namespace"),
        ("namespace k = taeda::kernels;", "hides the namespace"),
        ("f(view_of(x));", "calls the kernel f without kernels::"),
        ("f_launched(1, host_view(x));", "calls the kernel f_launched without kernels::"),
        ("if (x.is_meta()) return x;", "ask has_memory(device)"),
        ("if (device.type == DeviceType::kMeta) return x;", "ask has_memory(device)"),
        ("if (taeda::DeviceType::kMeta == d) return x;", "ask has_memory(device)"),
        ("switch (d) { case DeviceType::kMeta: return x; }", "ask has_memory(device)"),
        ("switch (d) { case taeda :: DeviceType::kMeta: return x; }", "ask has_memory(device)"),
        ("using enum DeviceType; switch (d) { case kMeta: return x; }", "ask has_memory(device)"),
        ("namespace taeda::cpu { void g() { f(x); } }", "hides the namespace"),
        ("namespace taeda { namespace cpu { void g() { f(x); } } }", "hides the namespace"),
        ("namespace taeda::kernels::inner { void g() { f(x); } }", "hides the namespace"),
    ],
)
def test_kernel_calls_in_other_spellings_are_found(tmp_path, text, message):
    for folder in ("ops", "src/ops"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "ops" / "some.yaml").write_text("- op: f(Tensor x) -> Tensor\n  kernel: f\n")
    (tmp_path / "src/kernels").mkdir()
    (tmp_path / "src/kernels/f.h").write_text("TD_KERNEL(f_launched);\n")
    (tmp_path / "src/ops/f.cc").write_text(f"// cpu::copy(out)\n{text}\n")
    (offence,) = kernels.check(tmp_path)
    assert offence.startswith("src/ops/f.cc:2: ") and message in offence


@pytest.mark.parametrize(
    "place, line, message",
    [
        ("src/core/a.cc", '#include "ops/launch.h"', "src/core may not include ops/launch.h"),
        ("src/kernels/cpu/a.h", "#include <Python.h>", "only src/python may include Python.h"),
        ("include/taeda/a.h", '#include "core/layout.h"', "includes only public headers"),
        ("src/misc/a.cc", "", "src/misc is not one of the layers"),
        # whichever way it is written
        ("src/core/a.cc", "#include <ops/launch.h>", "src/core may not include ops/launch.h"),
        ("src/core/a.cc", '#include "../ops/launch.h"', "which belongs to ops"),
        ("src/core/a.cc", '#include "op/add.h"', "which belongs to ops"),
        ("src/core/a.cc", '#include "taeda/nn.h"', "which belongs to nn"),
        ("include/taeda/dtype.h", '#include "taeda/autograd.h"', "which belongs to autograd"),
        ("include/taeda/nn.h", '#include "op/add.h"', "includes only public headers"),
        ("src/python/a.cc", '#include "taeda/taeda.h"', "is for users of the library"),
        # by other spellings of the line, and from other files
        ("src/core/a.cc", '#define H "ops/launch.h"\n#include H', "names its file, not a macro"),
        ("src/core/a.cc", '#include /* why */ "ops/launch.h"', "which belongs to ops"),
        ("src/core/a.cc", '/* why\n*/ # include "ops/launch.h"', "which belongs to ops"),
        ("src/core/a.cc", '#include \\\n  "ops/launch.h"', "which belongs to ops"),
        ("src/core/a.cc", '#inc\\\nlude "ops/launch.h"', "which belongs to ops"),
        ("src/core/a.cc", '/\\\n* why */ #include "ops/lau\\ \nnch.h"', "which belongs to ops"),
        ("src/core/a.inc", '#include "ops/launch.h"', "which belongs to ops"),
        ("src/core/a.hpp", '#include "ops/launch.h"', "which belongs to ops"),
        ("src/kernels/a.cc", '#include "taeda/tensor_methods.inc"', "which belongs to ops"),
        ("src/ops/a.cc", "#include <cpython/object.h>", "only src/python may include Python.h"),
        # what is no header of the sources
        ("src/core/a.cc", '#include "core/text.txt"', "core/text.txt is no header"),
        ("src/core/a.cc", '#include "text"', "text is no header"),
        ("src/core/a.cc", '#include "core/b.cc"', "core/b.cc is no header"),
        ("src/core/a.cc", '#include "../../build/add.h"', "is not among the headers"),
        ("src/core/a.cc", '#include "../build/generated/op/add.h"', "is not among the headers"),
        ("include/taeda/a.h", '#include "../../../src/ops/host.h"', "is not among the headers"),
        ("src/core/a.cc", '#include "/usr/include/stdio.h"', "is not among the headers"),
        ("src/core/a.cc", '#include "core/link.h"', "which belongs to ops"),
    ],
)
def test_layer_offences_are_found(tmp_path, place, line, message):
    file = tmp_path / place
    file.parent.mkdir(parents=True)
    (tmp_path / "src/ops").mkdir(parents=True, exist_ok=True)
    (tmp_path / "src/ops/launch.h").touch()
    (tmp_path / "src/core").mkdir(exist_ok=True)
    for other in ("src/core/text.txt", "src/core/text", "src/core/b.cc", "build/add.h"):
        (tmp_path / other).parent.mkdir(exist_ok=True)
        (tmp_path / other).touch()
    (tmp_path / "src/core/link.h").symlink_to("../ops/launch.h")
    file.write_text(f"// text\n{line}\n")
    (offence,) = layers.check(tmp_path)
    assert message in offence


@pytest.mark.parametrize(
    "place, line",
    [
        ("src/ops/a.cc", '#include "core/layout.h"'),
        ("src/python/a.cc", "#include <Python.h>"),
        ("include/taeda/a.h", '#include "taeda/dtype.h"'),
        ("src/core/a.cc", "#include <vector>"),
        ("src/nn/a.cc", '#include "op/add.h"'),
        ("include/taeda/taeda.h", '#include "taeda/nn.h"'),
        ("src/core/a.cc", '// #include "ops/launch.h"'),
        ("src/core/a.cc", 'const char* kText = "/*";\n// */ "\n#include <vector>'),
    ],
)
def test_layer_rules_are_not_too_strict(tmp_path, place, line):
    file = tmp_path / place
    file.parent.mkdir(parents=True)
    file.write_text(line)
    assert layers.check(tmp_path) == []


@pytest.fixture
def twelve_operators(tmp_path):
    names = [f"op{i}" for i in range(12)]
    (tmp_path / "ops").mkdir()
    (tmp_path / "src").mkdir()
    table = "\n".join(f"- op: {name}(Tensor self) -> Tensor" for name in names)
    (tmp_path / "ops" / "some.yaml").write_text(table)
    return tmp_path, names


@pytest.mark.parametrize(
    "written",
    [
        lambda names: "\n".join(f"OP({name})" for name in names),
        lambda names: ", ".join(f'"{name}"' for name in names),
        lambda names: f'"{" ".join(names)}".split()',
        lambda names: f"'{','.join(names)}'",
        lambda names: '"""\n' + "\n".join(names) + '\n"""',
        lambda names: f'"{" ".join(names[:4])}" "{" ".join(names[4:])}"',
        lambda names: ", ".join(f'"aten::{name}.Tensor"' for name in names),
        lambda names: ", ".join(f'"torch.{name}"' for name in names),
        lambda names: ", ".join(f'"{name}_"' for name in names),
        lambda names: "{" + ", ".join(f"&op::{name}" for name in names) + " }",
        lambda names: ", ".join(f"torch.ops.aten.{name}" for name in names),
        lambda names: "{" + ", ".join(f"aten.{name}.default: rule" for name in names) + "}",
        lambda names: ", ".join(f"F.{name}" for name in names),
        lambda names: f"dict({', '.join(f'{name}=rule' for name in names)})",
        lambda names: f"from torch import {', '.join(names)}",
        lambda names: "from torch import (\n    " + ",\n    ".join(names) + ",\n)",
        lambda names: "\n".join(f"from torch import {name} as {name}_rule" for name in names),
        lambda names: f"  // {'why ' * 30}\n".join(f'"{name}",' for name in names),
        lambda names: f"rules = [{', '.join(names)}]",
        lambda names: "rules = [\n    " + ",\n    ".join(names) + ",\n]",
        lambda names: f"Fn* const table[] = {{{', '.join(f'&{name}' for name in names)}}};",
        lambda names: f"enum Op {{ {', '.join(names)} }};",
        lambda names: f"enum Op {{ {', '.join(f'k{name.title()} = 3' for name in names)} }};",
        lambda names: "\n".join(f"OP({i}, {name})" for i, name in enumerate(names)),
        lambda names: f"OPS({', '.join(names)})",
        lambda names: "\n".join(f"using T{i} = Rule<{name}>;" for i, name in enumerate(names)),
    ],
)
def test_a_list_of_operators_is_found(twelve_operators, written):
    root, names = twelve_operators
    place = "src/list.py" if "import" in written(names) else "src/list.cc"
    (root / place).write_text(written(names[:7]))
    assert lists.check(root, {}) == []
    (root / place).write_text("\n" + written(names[:8]))
    assert lists.check(root, {}) == [f"{place}:2: lists 8 operators by hand"]
    assert lists.check(root, {place: "why"}) == []


FAR = "    return work(x, '{}')\n".format("why " * 30)
SCATTERED = {
    "methods of a class": (
        "src/a.py",
        lambda names: "class A:\n" + "".join(f"  def {n}(self, x):\n{FAR}\n" for n in names),
    ),
    "comparisons": (
        "src/a.py",
        lambda names: "def f(name, x):\n" + "".join(f'  if name == "{n}":\n{FAR}' for n in names),
    ),
    "comparisons the other way round": (
        "src/a.py",
        lambda names: "def f(name, x):\n" + "".join(f"  if '{n}' == name:\n{FAR}" for n in names),
    ),
    "cases": (
        "src/a.py",
        lambda names: "match name:\n" + "".join(f'  case "aten.{n}":\n{FAR}' for n in names),
    ),
    "comparisons in C++": (
        "src/a.cc",
        lambda names: "".join(f'if (op == "{n}") {{ {"x += 1; " * 20} }}\n' for n in names),
    ),
    "fields": ("src/a.h", lambda names: f"struct A {{ {' '.join(f'Fn* {n};' for n in names)} }};"),
    "fields with types": (
        "src/a.h",
        lambda names: (
            "struct A {\n" + "".join(f"  std::map<int, Fn> {n}{{}};\n" for n in names) + "};"
        ),
    ),
    "lines of a text": ("python/a.txt", lambda names: "\n".join(names)),
    "cells": ("python/a.csv", lambda names: "".join(f"{n},{'why ' * 30},1\n" for n in names)),
    "a list in yaml": ("python/a.yaml", lambda names: f"ops: [{', '.join(names)}]"),
    "items in yaml": ("python/a.yml", lambda names: "".join(f"- {n}\n" for n in names)),
    "keys in yaml": (
        "python/a.yaml",
        lambda names: "".join(f"{n}: {'why ' * 30}\n" for n in names),
    ),
    "keys in toml": ("python/a.toml", lambda names: f"ops = [{', '.join(map(repr, names))}]"),
}


@pytest.mark.parametrize("what", SCATTERED)
def test_a_list_with_much_between_its_names_is_found(twelve_operators, what):
    root, names = twelve_operators
    file, written = SCATTERED[what]
    (root / "python").mkdir()
    (root / file).write_text(written(names[:7]))
    assert lists.check(root, {}) == []
    (root / file).write_text(written(names[:8]))
    (offence,) = lists.check(root, {})
    assert offence.startswith(f"{file}:") and offence.endswith("lists 8 operators by hand")


@pytest.mark.parametrize("module", [".low", "taeda.low", "..taeda.low"])
def test_an_import_of_what_a_file_defines_is_no_list(twelve_operators, module):
    root, names = twelve_operators
    (root / "python/taeda").mkdir(parents=True)
    (root / "python/taeda/high.py").write_text(f"from {module} import {', '.join(names)}")
    defined = "\n".join(f"def {name}(x):\n    return x" for name in names[:5])
    (root / "python/taeda/low.py").write_text(defined)
    assert lists.check(root, {}) == []
    (root / "python/taeda/low.py").write_text("from torch import *")
    assert lists.check(root, {}) == ["python/taeda/high.py:1: lists 12 operators by hand"]


def test_what_a_file_exports_is_no_list(twelve_operators):
    root, names = twelve_operators
    exported = ",\n    ".join(f'"{name}"' for name in names)
    (root / "src/a.py").write_text(f"__all__ = [\n    {exported}\n]\n")
    assert lists.check(root, {}) == []
    (root / "src/a.py").write_text(f"__all__ = []\nrules = [\n    {exported}\n]\n")
    assert lists.check(root, {}) == ["src/a.py:3: lists 12 operators by hand"]


@pytest.mark.parametrize(
    "written",
    [
        lambda names: "\n".join(f"y = {name}(x)" for name in names),  # calls
        lambda names: f"f(g({names[0]}), {', '.join(f'{name}(x)' for name in names)})",
        lambda names: "\n".join(f"def {name}(x):\n    return x" for name in names),
        lambda names: "\n".join(f"x{i} = {name} + 1" for i, name in enumerate(names)),
        lambda names: "\n".join(f"class A:\n  def {name}(self):\n    pass\n" for name in names),
        lambda names: "\n".join(
            f"  const Tensor {name} = f(x, {i});" for i, name in enumerate(names)
        ),
    ],
)
def test_calls_and_definitions_are_no_list(twelve_operators, written):
    root, names = twelve_operators
    for file in ("src/a.py", "src/a.cc"):
        (root / file).write_text(written(names))
    assert lists.check(root, {}) == []


def test_prose_is_no_list(twelve_operators):
    root, names = twelve_operators
    prose = " is one, while ".join(names)
    (root / "src" / "text.cc").write_text(f'"{prose}"')
    assert lists.check(root, {}) == []


def test_an_allowed_list_that_is_gone_is_an_offence(twelve_operators):
    root, _ = twelve_operators
    (root / "src" / "short.cc").write_text('"op0", "op1"')
    found = lists.check(root, {"src/short.cc": "why", "src/gone.cc": "why"})
    assert len(found) == 2 and all("take it out of ALLOWED" in line for line in found)


def test_symbols_point_one_way(tmp_path):
    objects = tmp_path / "CMakeFiles/taeda.dir/src"
    sources = {
        "core/low.cc": "int Tensor::low() { return 1; }",
        "ops/high.cc": "int high() { return Tensor().low(); }",
        "kernels/bad.cc": "int high(); int bad() { return high(); }",
        "kernels/worse.cc": "int worse() { return Tensor().low(); }",
    }
    for name, text in sources.items():
        (objects / name).parent.mkdir(parents=True, exist_ok=True)
        (objects / name).write_text(f"namespace taeda {{ struct Tensor {{ int low(); }}; {text} }}")
        command = ["g++", "-c", name, "-o", f"{name}.o"]
        subprocess.run(command, cwd=objects, check=True)
    assert links.check(tmp_path) == [
        "src/kernels/bad.cc: uses taeda::high(), which ops defines",
        "src/kernels/worse.cc: uses taeda::Tensor::low(), but kernels know no tensors",
    ]


def test_kernel_calls_are_found_in_symbols_too(tmp_path):
    objects = tmp_path / "CMakeFiles/taeda.dir/src"
    declared = "namespace taeda { struct View {}; namespace cpu { "
    declared += "void rows(View); void f(View); void launched(View); void bincount(View); } }"
    sources = {
        "kernels/all.cc": "namespace taeda::cpu { void rows(View) {} void f(View) {} "
        "void launched(View) {} void bincount(View) {} }",
        "ops/pasted.cc": "#define JOIN(a, b) a##b\nvoid g() { taeda::JOIN(c, pu)::rows({}); }",
        "ops/opened.cc": "namespace taeda::cpu { void g() { f({}); } }",
        "ops/pointer.cc": "void (*g)(taeda::View) = &taeda::cpu::f;",
        "ops/good.cc": "void g() { taeda::cpu::launched({}); taeda::cpu::bincount({}); }",
        "autograd/good.cc": "void g() { taeda::cpu::rows({}); }",
    }
    for name, text in sources.items():
        (objects / name).parent.mkdir(parents=True, exist_ok=True)
        (objects / name).write_text(f"{declared}\n{text}")
        subprocess.run(["g++", "-c", name, "-o", f"{name}.o"], cwd=objects, check=True)
    for folder in ("ops", "src/kernels"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "ops/some.yaml").write_text("- op: f(Tensor x) -> Tensor\n  kernel: f\n")
    (tmp_path / "src/kernels/f.h").write_text("TD_KERNEL(launched);\n")
    assert links.check(tmp_path, tmp_path) == [
        "src/ops/opened.cc: calls the kernel f of the table",
        "src/ops/pasted.cc: calls cpu::rows, which knows one device",
        "src/ops/pointer.cc: calls the kernel f of the table",
    ]


RULES = """
rule cxx
  command = g++ -MD -MF $out.d -Isrc -Iinclude -Igenerated -c $in -o $out
  depfile = $out.d
  deps = gcc
"""


def test_what_the_compiler_read_points_one_way(tmp_path):
    sources = {
        "src/base/low.h": "",
        "src/ops/high.h": "namespace taeda { inline int high(int x) { return x; } }",
        "include/taeda/tensor.h": "namespace taeda { struct Tensor { int low() { return 1; } }; }",
        "generated/op/add.h": "namespace taeda::op { int add(); }",
        "src/core/shared.h": '#include "taeda/tensor.h"',
        "src/kernels/good.cc": '#include "base/low.h"\n#include <vector>',
        "src/kernels/macro.cc": '#define HIGH "ops/high.h"\n#include HIGH',
        "src/kernels/parted.cc": '%:inc\\\nlude "../ops/high.h"\nint x = taeda::high(1);',
        "src/kernels/generated.cc": '#include "op/add.h"',
        "src/kernels/inline.cc": '#include "core/shared.h"\nint x = taeda::Tensor().low();',
        "src/ops/good.cc": '#include "op/add.h"\n#include "core/shared.h"',
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    built = [f"build CMakeFiles/taeda.dir/{n}.o: cxx {n}\n" for n in sources if n.endswith(".cc")]
    (tmp_path / "build.ninja").write_text(RULES + "".join(built))
    assert dependencies.check(tmp_path, tmp_path) == [f"{tmp_path} holds no objects: build first"]
    subprocess.run([dependencies.NINJA, "-C", tmp_path], check=True, capture_output=True)
    read = "the compiler read"
    assert dependencies.check(tmp_path, tmp_path) == [
        f"src/kernels/generated.cc: {read} add.h, which belongs to ops",
        f"src/kernels/inline.cc: {read} tensor.h, but kernels know no tensors",
        f"src/kernels/macro.cc: {read} high.h, which belongs to ops",
        f"src/kernels/parted.cc: {read} high.h, which belongs to ops",
    ]


def test_comments_leave_line_numbers_and_literals():
    text = 'a /* b\nc */ d // e\n"// f" \'"\' R"x(/* g */)x" \\\n h\n'
    expected = 'a  \n d  \n"// f" \'"\' R"x(/* g */)x"  h\n\n'
    assert tool("cxx_text").without_comments(text) == expected
