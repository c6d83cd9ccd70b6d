"""The packed file of kernels: what libtaeda reads of it is the PTX that went in."""

import struct
import sys
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import pytest

import cuda_check
import nvrtc
import pack_kernels
import ptxas

PTX = """//
.version 8.4
.target sm_75

.visible .entry add_f32(
\t.param .b8 add_f32_param_0[80]
)
{
\t.reg .f32 %f<13>; // registers
\tld.param.f32 %f3, [add_f32_param_0+16];
$L__BB7_2:
\tadd.f32 %f12, %f3, %f1;
\t@%p1 bra $L__BB7_2;
}
.visible .entry mul_f32(
)
{
\tmul.f32 %f300, %f3, %f1;
}
"""


def unpacked(raw: bytes) -> dict[str, str]:
    """The kernels of a family, by a reader of its own."""
    _, _, *sizes = struct.unpack_from("<5I", raw)
    parts, at = [], 20
    for size in [*sizes, len(raw) - at - sum(sizes)]:
        parts.append(raw[at : at + size])
        at += size
    templates, index, ids, numbers = parts
    lines = templates.decode().split("\n")

    def number(stream: bytes, at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            value |= (stream[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if stream[at - 1] < 128:
                return value, at

    texts = {}
    for row in index.decode().splitlines():
        name, id_at, number_at, count, prelude = row.split()
        i, n, text = int(id_at), int(number_at), ""
        named: dict[int, list[int]] = {kind: [] for kind in range(16, 32)}
        newest = dict.fromkeys(named, 0)
        for _ in range(int(count)):
            template, i = number(ids, i)
            for c in lines[template]:
                if ord(c) not in named:
                    text += name if c == "\x01" else c
                    continue
                known = named[ord(c)]
                back, n = number(numbers, n)
                if back:
                    known.append(known.pop(len(known) - back))
                else:
                    step, n = number(numbers, n)
                    newest[ord(c)] += 1 + (step // 2 if step % 2 == 0 else -(step + 1) // 2)
                    known.append(newest[ord(c)])
                text += str(known[-1])
            text += "\n"
        texts[name] = texts.get(f"#{prelude}", "") + text
    return texts


def test_what_is_packed_is_the_ptx_without_comments():
    family = pack_kernels.Family("f32")
    pack_kernels.add_unit(PTX, [pack_kernels.Family("f64"), family])
    pack_kernels.add_unit(PTX.replace("add_f32", "sub_f32_any"), [family])
    pack_kernels.add_unit(PTX.replace("add_f32", "sub_f32_list"), [family])
    data, size = family.packed()
    raw = zlib.decompress(data)
    assert len(raw) == size
    texts = unpacked(raw)
    assert set(texts) == {"#0", "add_f32", "mul_f32", "sub_f32_any", "sub_f32_list"}
    head = ".version 8.4\n.target sm_75\n"
    ptx = pack_kernels.renumbered(PTX)
    assert texts["mul_f32"] == head + ptx[ptx.index(".visible .entry mul") :]
    body = ptx[ptx.index(".visible") : ptx.index(".visible .entry mul")]
    expected = head + body.replace("BB7_", "BB0_").replace(" // registers", "")
    assert texts["add_f32"] == expected
    assert texts["sub_f32_any"] == expected.replace("add_f32", "sub_f32_any")


CALLS = """.version 8.4
.func (.param .b64 func_retval0) power
(
\t.param .b64 power_param_0
)
;
.func slow
(
)
;
.func idle
(
)
;
.global .align 8 .b8 td_fault[8];
.visible .entry pow_f64(
)
{
\tcall.uni (retval0),
\tpower,
\t(
\tparam0
\t);
}
.visible .entry add_f64(
)
{
\tadd.f64 %fd1, %fd1, %fd1;
}
.func (.param .b64 func_retval0) power(
\t.param .b64 power_param_0
)
{
\tcall.uni
\tslow,
\t(
\t);
}
.func slow()
{
\tret;
}
.func idle()
{
\tret;
}
"""


def test_a_module_has_the_functions_that_its_kernel_calls():
    family = pack_kernels.Family("f64")
    pack_kernels.add_unit(CALLS, [family])
    texts = unpacked(zlib.decompress(family.packed()[0]))
    shared = ".version 8.4\n.global .align 8 .b8 td_fault[8];\n"
    kernel = CALLS[
        CALLS.index(".visible .entry add") : CALLS.index(".func (.param .b64 func_retval0) power(")
    ]
    assert texts["add_f64"] == shared + kernel
    whole = texts["pow_f64"]
    assert whole.startswith(shared) and "idle" not in whole
    assert whole.count("power_param_0\n") == 2 and whole.count("slow") == 3
    assert whole.index(".func slow\n") < whole.index("\tslow,") < whole.index(".visible .entry pow")


def test_a_kernel_is_a_module_that_ptxas_takes():
    library, assembler = nvrtc.find_library(), ptxas.find_ptxas()
    if library is None or assembler is None:
        pytest.skip(ptxas.MISSING)
    name, text = next(u for u in cuda_check.units().items() if u[0].startswith("power_double"))
    family = pack_kernels.Family("f64")
    pack_kernels.add_unit(nvrtc.Nvrtc(library).compile(text, nvrtc.LOWEST, name), [family])
    kernels = unpacked(zlib.decompress(family.packed()[0]))
    assert any("call" in ptx for ptx in kernels.values())
    for kernel in cuda_check.kernels_of(text):
        image, _ = ptxas.Ptxas(assembler, nvrtc.Cache(None)).compile(kernels[kernel], "sm_75")
        assert image.startswith(b"\x7fELF")


def test_registers_are_numbered_anew_in_each_function():
    assert pack_kernels.renumbered(PTX) == (
        PTX.replace("%f3, [", "%f1, [")
        .replace("%f12, %f3, %f1", "%f2, %f1, %f3")
        .replace("%f300, %f3, %f1", "%f1, %f2, %f3")
    )


def test_units_of_the_tail_are_text():
    text = "using add_c64_args = A;\nTD_GLOBAL(add_c64, add_c64_args, dense<7>) // %r5 %f12\n"
    family = pack_kernels.tail({"arithmetic_complex.cu": text}, {"a/b.h": "#define N 3\n"})
    data, _ = family.packed()
    texts = unpacked(zlib.decompress(data))
    assert texts == {
        "arithmetic_complex.cu": text,
        "add_c64": "arithmetic_complex.cu\n",
        "&a/b.h": "#define N 3\n",
    }


def test_units_of_the_tail_may_name_their_kernels_by_macros():
    text = "#define TD_ALL(t) TD_GLOBAL(f_##t##_any, A, f)\nTD_ALL(f32)\nTD_ALL(c64)\n"
    texts = unpacked(zlib.decompress(pack_kernels.tail({"f.cu": text}, {}).packed()[0]))
    assert texts == {"f.cu": text, "f_f32_any": "f.cu\n", "f_c64_any": "f.cu\n"}


def test_a_file_names_the_types_of_its_families():
    families = [*pack_kernels.families().values()]
    assert {t for family in families for t in family.types.split()} >= {"f16", "c128", "b", "i64"}
    data = pack_kernels.packed(families)
    assert data.startswith(b"TDKERN2\n")
    packed, raw, types = struct.unpack_from("<2I32s", data, 12)
    assert types.rstrip(b"\0").decode() == families[0].types
    assert len(zlib.decompress(data[12 + 40 * len(families) :][:packed])) == raw
