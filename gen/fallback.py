"""Operators on devices that have no implementation of them: which these are, and how they run.

A device runs an operator itself where it has all the kernels that the operator launches; views and
bodies that only call other operators need none. Any other operator is on fallback: it copies its
arguments to the CPU, runs there, and copies results and what it changed back (ops/fallback.h).
"""

from __future__ import annotations

from .kernels import of_device
from .op import Op
from .text import block

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
    tensors = [*op.into, *(a.name for a in op.sig.tensor_args)]
    lists = [a.name for a in op.sig.args if a.is_tensor_list]
    args = ["KeySet(Key::kCPU)", *("call[0]" for _ in op.into)]
    for a in op.sig.args:
        if a.is_tensor:
            args.append(f"call[{tensors.index(a.name)}]")
        elif a.is_tensor_list:
            args.append(f"call.list({lists.index(a.name)})")
        else:
            args.append(f"call.generator({a.name})" if a.base.name == "Generator" else a.name)
    names = ", ".join(["out" if n == "into" else n for n in tensors] + lists)
    info = f'info{{"{op.name}", "{names}", fallback::Devices::{_devices(op)}}}'
    body = [f"static constexpr fallback::Info {info};"]
    if tensors:
        body.append(f"const Tensor* const tensors[] = {{{', '.join('&' + n for n in tensors)}}};")
    if lists:
        body.append(f"const TensorSpan lists[] = {{{', '.join(lists)}}};")
    given = f"info, {'tensors' if tensors else '{}'}, {'lists' if lists else '{}'}"
    head = f"[[gnu::cold]] static {op.result} fallback_{op.ident}"
    return block(
        f"{head}([[maybe_unused]] {op.internal_parameters})",
        body,
        f"fallback::Call call({given});",
        f"return call.back(device_{op.ident}({', '.join(args)}));",
    )
