"""Operators on devices that have no implementation of them: which these are, and how they run.

A device runs an operator itself where it has all the kernels that the operator launches; views and
bodies that only call other operators need none. Any other operator is on fallback: it copies its
arguments to the CPU, runs there, and copies results and what it changed back (ops/fallback.h).
"""

from __future__ import annotations

from .cpp import internal_parameters
from .kernels import of_device
from .table import Op

# The kernel of all pointwise operators: a device launches any functor or none.
POINTWISE = "pointwise"


def kernels(op: Op) -> list[str]:
    """The names of the kernels that a dispatched operator launches."""
    if op.body == "pointwise":
        return [POINTWISE]
    return [op.source] if op.body == "kernel" else op.kernels


def is_native(op: Op, device: str) -> bool:
    """Whether a device runs the operator itself."""
    return not op.host and set(kernels(op)) <= of_device(device)


def listed(ops: list[Op], device: str) -> list[str]:
    """The operators on fallback, by name."""
    return sorted(op.ident for op in ops if op.dispatched and not is_native(op, device))


def _devices(op: Op) -> str:
    if op.devices == "any":
        return "kAny"
    if op.body == "pointwise":
        return "kPointwise"
    return "kIndexed" if any(a.type == "Tensor?[]" for a in op.sig.args) else "kSame"


def lines(op: Op) -> list[str]:
    """fallback_IDENT, a handler like device_IDENT."""
    tensors = [a.name for a in op.sig.args if a.is_tensor]
    if op.body == "pointwise":
        tensors.insert(0, "into")
    lists = [a.name for a in op.sig.args if a.is_tensor_list]
    args = ["KeySet(Key::kCPU)"]
    if op.body == "pointwise":
        args.append("call[0]")
    for a in op.sig.args:
        if a.is_tensor:
            args.append(f"call[{tensors.index(a.name)}]")
        elif a.is_tensor_list:
            args.append(f"call.list({lists.index(a.name)})")
        elif a.type == "Generator?":
            args.append(f"call.generator({a.name})")
        else:
            args.append(a.name)
    names = ", ".join(["out" if n == "into" else n for n in tensors] + lists)
    body = [
        f"[[gnu::cold]] static {op.sig.return_cpp} fallback_{op.ident}([[maybe_unused]] {internal_parameters(op)}) {{",
        f'  static constexpr fallback::Info info{{"{op.name}", "{names}", fallback::Devices::{_devices(op)}}};',
    ]
    given = "{}"
    if tensors:
        body.append(f"  const Tensor* const tensors[] = {{{', '.join('&' + n for n in tensors)}}};")
        given = "tensors"
    listed_ = "{}"
    if lists:
        body.append(f"  const TensorSpan lists[] = {{{', '.join(lists)}}};")
        listed_ = "lists"
    body += [
        f"  fallback::Call call(info, {given}, {listed_});",
        f"  return call.back(device_{op.ident}({', '.join(args)}));",
        "}",
    ]
    return body
