"""What functorch compiles with: names that raise when called, as programs run eagerly."""

from __future__ import annotations

from torch._functorch import config as config

from taeda import _missing

_WHY = "taeda runs programs eagerly; call the function or module itself"

for _name in (
    "aot_function aot_module aot_module_simplified compiled_function compiled_module debug_compile "
    "default_partition draw_graph draw_graph_compile get_aot_compilation_context "
    "get_aot_graph_name get_graph_being_compiled make_boxed_compiler make_boxed_func "
    "memory_efficient_fusion min_cut_rematerialization_partition minifier nnc_jit nop "
    "print_compile pythonkey_decompose ts_compile"
).split():
    globals()[_name] = _missing.function(f"functorch.compile.{_name}", _WHY)
del _name


def __getattr__(name: str) -> object:
    if name == "default_decompositions":
        from torch._decomp import core_aten_decompositions

        return core_aten_decompositions()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
