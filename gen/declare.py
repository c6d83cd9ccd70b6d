"""Declarations of the operators for the library's own files: one header a name, op/NAME.h.

A file that calls ``op::add`` includes "op/add.h" and no other operator's header, so that a new
operator compiles what uses it and nothing else. Generated files find in their own text which
headers they need.
"""

from __future__ import annotations

import re

from .cpp import Table, declarations
from .op import Op
from .text import join_lines

QUALIFIED = re.compile(r"\b(op|impl|redispatch|autograd_layer|forward_layer|definition)::(\w+)")


def headers(table: Table) -> dict[str, str]:
    """op/NAME.h for every operator name, its overloads together."""
    return {f"op/{name}.h": _header(ops) for name, ops in table.by_name.items()}


def _header(ops: list[Op]) -> str:
    lines = [f"// {op.sig.text}" for op in ops]
    lines += ["#pragma once", '#include "taeda/keys.h"', '#include "taeda/tensor.h"']
    lines.append("namespace taeda {")
    for op in ops:
        lines += [f"namespace {space} {{ {text} }}" for space, _, text in declarations(op)]
    return join_lines(*lines, "}  // namespace taeda")


class Needed:
    """Finds the headers that a text wants by the qualified names in it."""

    def __init__(self, table: Table):
        self._header_of: dict[tuple[str, str], str] = {}
        for op in table.ops:
            for space, name, _ in declarations(op):
                self._header_of.setdefault((space, name), f"op/{op.name}.h")

    def includes(self, text: str) -> list[str]:
        found = {self._header_of.get((m[1], m[2]), "") for m in QUALIFIED.finditer(text)}
        return [f'#include "{name}"' for name in sorted(found - {""})]

    def complete(self, text: str) -> str:
        """`text` with what it calls declared in front."""
        return "\n".join([*self.includes(text), text])
