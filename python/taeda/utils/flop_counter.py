"""Counts floating-point operations of matrix products and convolutions.

As in PyTorch, fused attention on the CPU has no formula unless one is registered.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from math import prod
from typing import Any

import taeda
from taeda._ops import OpOverloadPacket
from taeda.utils._python_dispatch import TorchDispatchMode
from taeda.utils._pytree import tree_map, tree_map_
from taeda.utils.module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

aten, own = taeda.ops.aten, taeda.ops.taeda
flop_registry: dict[Any, Callable] = {}


def get_shape(i: Any) -> Any:
    """The shape of a tensor; anything else as it is."""
    return i.shape if isinstance(i, taeda.Tensor) else i


def shape_wrapper(f: Callable) -> Callable:
    """Gives a formula shapes in place of tensors, and the result's as ``out_shape``."""

    @wraps(f)
    def formula(*args: Any, out_val: Any = None, **kwargs: Any) -> Any:
        args, kwargs, out_shape = tree_map(get_shape, (args, kwargs, out_val))
        return f(*args, out_shape=out_shape, **kwargs)

    return formula


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable], Callable]:
    """A decorator: the function counts the operators ``targets`` (``torch.ops.aten.mm``, ...).

    It receives the operator's arguments, with shapes in place of tensors unless ``get_raw``, and
    ``out_shape`` (``out_val``, the result, if ``get_raw``).
    """

    def register(formula: Callable) -> Callable:
        found = formula if get_raw else shape_wrapper(formula)

        def add(target: Any) -> None:
            if not isinstance(target, OpOverloadPacket):
                raise ValueError(
                    "register_flop_formula(targets): expected each target to be OpOverloadPacket "
                    "(i.e. torch.ops.mylib.foo), JitFunction, or HigherOrderOperator, got "
                    f"{target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = found

        tree_map_(add, targets)
        return found

    return register


# --- formulas: a multiplication and an addition are two operations ---


def _counts(name: str) -> Callable[[Callable], Callable]:
    """Registers a formula for PyTorch's operator of this name, or taeda's own; returns it as it
    is, to be called with shapes."""

    def register(formula: Callable) -> Callable:
        for namespace in (aten, own):
            if hasattr(namespace, name):
                register_flop_formula(getattr(namespace, name))(formula)
        return formula

    return register


def _check_inner(name: str, k: int, k2: int) -> None:
    if k != k2:
        raise AssertionError(f"{name}: inner dimensions must match (k == k2), got {k} and {k2}")


@_counts("mm")
def mm_flop(a_shape: Any, b_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """[m, k] @ [k, n]"""
    (m, k), (k2, n) = a_shape, b_shape
    _check_inner("matmul", k, k2)
    return m * n * 2 * k


@_counts("addmm")
def addmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, **kwargs: Any) -> int:
    """c + [m, k] @ [k, n]"""
    return mm_flop(a_shape, b_shape)


@_counts("bmm")
def bmm_flop(a_shape: Any, b_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """[b, m, k] @ [b, k, n]"""
    (b, m, k), (b2, k2, n) = a_shape, b_shape
    if b != b2:
        raise AssertionError(f"bmm: batch dimensions must match (b == b2), got {b} and {b2}")
    _check_inner("bmm", k, k2)
    return b * m * n * 2 * k


@_counts("baddbmm")
def baddbmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, **kwargs: Any) -> int:
    """c + [b, m, k] @ [b, k, n]"""
    return bmm_flop(a_shape, b_shape)


@_counts("linear")
def linear_flop(x_shape: Any, w_shape: Any, *args: Any, **kwargs: Any) -> int:
    """[..., k] @ [n, k]^T"""
    return 2 * prod(x_shape) * (prod(w_shape) // x_shape[-1] if x_shape[-1] else 0)


def conv_flop_count(x_shape: Any, w_shape: Any, out_shape: Any, transposed: bool = False) -> int:
    """A convolution [b, c, ...] with [out, in, ...]."""
    sizes = (x_shape if transposed else out_shape)[2:]
    c_out, c_in, *kernel = w_shape
    return prod(sizes) * prod(kernel) * x_shape[0] * c_out * c_in * 2


@_counts("convolution")
def conv_flop(
    x_shape: Any,
    w_shape: Any,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """The arguments of aten.convolution."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed=transposed)


def _swapped(shape: Any) -> list:
    return [shape[1], shape[0], *shape[2:]]


def _conv_weight_flop(g_shape: Any, x_shape: Any, w_shape: Any, transposed: bool) -> int:
    if transposed:
        return conv_flop_count(_swapped(g_shape), _swapped(x_shape), _swapped(w_shape))
    return conv_flop_count(_swapped(x_shape), _swapped(g_shape), _swapped(w_shape))


@_counts("convolution_backward")
def conv_backward_flop(
    grad_out_shape: Any,
    x_shape: Any,
    w_shape: Any,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    _output_padding: Any,
    _groups: Any,
    output_mask: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """The arguments of aten.convolution_backward."""
    count = 0
    if output_mask[0]:
        count += conv_flop_count(grad_out_shape, w_shape, x_shape, not transposed)
    if output_mask[1]:
        count += _conv_weight_flop(grad_out_shape, x_shape, w_shape, transposed)
    return count


@_counts("convolution_backward_input")
def _conv_input_flop(
    g: Any, w: Any, x_sizes: Any, _s: Any, _p: Any, _d: Any, transposed: bool, *_: Any, **__: Any
) -> int:
    return conv_flop_count(g, w, x_sizes, not transposed)


@_counts("_rnn_layer")
def _rnn_flop(x_shape: Any, h_shape: Any, _c: Any, w_shape: Any, *args: Any, **kwargs: Any) -> int:
    """Each step's product of the states [n, h] with w_hh [gates * h, h]; x is multiplied before."""
    return x_shape[0] * mm_flop(h_shape, w_shape[::-1])


@_counts("_rnn_layer_backward")
def _rnn_backward_flop(
    gy_shape: Any, gh_shape: Any, _gc: Any, w_shape: Any, *args: Any, **kwargs: Any
) -> int:
    """Gradients of the states between steps; w_hh's is a product of its own."""
    return max(gy_shape[0] - 1, 0) * mm_flop([gh_shape[0], w_shape[0]], w_shape)


@_counts("convolution_backward_weight")
def _conv_weights_flop(
    g: Any, x: Any, w_sizes: Any, _s: Any, _p: Any, _d: Any, transposed: bool, *_: Any, **__: Any
) -> int:
    return _conv_weight_flop(g, x, w_sizes, transposed)


def sdpa_flop_count(query_shape: Any, key_shape: Any, value_shape: Any) -> int:
    """Attention of [b, h, s, d]: scores, and their products with the values."""
    (b, h, s_q, d_q), (_, _, s_k, _), d_v = query_shape, key_shape, value_shape[-1]
    return 2 * b * h * s_q * s_k * (d_q + d_v)


def sdpa_flop(query_shape: Any, key_shape: Any, value_shape: Any, *_: Any, **__: Any) -> int:
    """The arguments of attention; masked and causal ones count as whole."""
    return sdpa_flop_count(query_shape, key_shape, value_shape)


def sdpa_backward_flop_count(g_shape: Any, query_shape: Any, key_shape: Any, v_shape: Any) -> int:
    """The scores again, and two products for the gradient of each of two products."""
    (b, h, s_q, d_q), s_k, d_v = query_shape, key_shape[2], v_shape[-1]
    return 2 * b * h * s_q * s_k * (3 * d_q + 2 * d_v)


def sdpa_backward_flop(
    grad_out_shape: Any, query_shape: Any, key_shape: Any, value_shape: Any, *_: Any, **__: Any
) -> int:
    """The arguments of attention's backward."""
    return sdpa_backward_flop_count(grad_out_shape, query_shape, key_shape, value_shape)


def _counted_as(packet: Any, args: tuple) -> Any:
    """PyTorch's operator, or its name, for one that is an operator only here."""
    if packet is aten.linear:
        return aten.addmm if len(args) > 2 and args[2] is not None else aten.mm
    if str(packet).startswith("taeda.convolution_backward"):
        return getattr(aten, "convolution_backward", "aten.convolution_backward")
    return packet


# --- the table ---

suffixes = ["", "K", "M", "B", "T"]


def get_suffix_str(number: int) -> str:
    """The suffix that leaves up to four digits: 1001M rather than 1.001B."""
    return suffixes[max(0, min(len(suffixes) - 1, (len(str(number)) - 2) // 3))]


def convert_num_with_suffix(number: float, suffix: str) -> str:
    """1500 with "K" is "1.500K"."""
    return f"{number / 1000 ** suffixes.index(suffix):.3f}{suffix}"


def convert_to_percent_str(num: float, denom: float) -> str:
    """A share as text."""
    return f"{num / denom:.2%}" if denom else "0%"


def _format(rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    first, *rest = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows]
    return "\n".join([first, "  ".join("-" * width for width in widths), *rest])


class FlopCounterMode:
    """A context that counts floating-point operations, by module and operator.

    Args:
        depth: how many levels of modules the table shows.
        display: print the table at the end.
        custom_mapping: formulas for further operators; see ``register_flop_formula``.

    >>> with torch.utils.flop_counter.FlopCounterMode(display=False) as counter:
    ...     _ = torch.ones(2, 3) @ torch.ones(3, 4)
    >>> counter.get_total_flops()
    48
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int | None = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:
        if mods is not None:
            warnings.warn(
                "mods argument is not needed anymore, you can stop passing it", stacklevel=2
            )
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.depth = depth
        self.display = display
        self.mode: Any = None
        self.mod_tracker = ModuleTracker()
        self.flop_registry = dict(flop_registry)
        for op, formula in (custom_mapping or {}).items():
            raw = getattr(formula, "_get_raw", False)
            self.flop_registry[op] = formula if raw else shape_wrapper(formula)

    def get_total_flops(self) -> int:
        """All operations."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """{module: {operator: operations}}, with "Global" for all."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def _rows(self, name: str, indent: int, total: int) -> list[list[str]]:
        suffix, padding = get_suffix_str(total), " " * indent

        def row(title: str, count: int) -> list[str]:
            number = convert_num_with_suffix(count, suffix)
            return [title, number, convert_to_percent_str(count, total)]

        counts = self.flop_counts[name]
        own_row = row(padding + name, sum(counts.values()))
        return [own_row, *(row(f"{padding} - {op}", count) for op, count in counts.items())]

    def get_table(self, depth: int | None = None) -> str:
        """The counts as text."""
        depth = self.depth if depth is None else depth
        total, rows, whole = self.get_total_flops(), [], False
        for name in sorted(self.flop_counts):
            level = name.count(".") + 1
            if name == "Global" or (depth is not None and level > depth):
                continue
            whole |= sum(self.flop_counts[name].values()) >= total
            rows += self._rows(name, level - 1, total)
        if self.flop_counts.get("Global") is not None and not whole:
            rows = self._rows("Global", 0, total) + [[" " + row[0], *row[1:]] for row in rows]
        return _format([["Module", "FLOP", "% Total"], *(rows or [["Global", "0", "0%"]])])

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self.mode = _CountingMode(self)
        self.mode.__enter__()
        return self

    def __exit__(self, *args: Any) -> Any:
        result = self.mode.__exit__(*args)
        self.mode = None
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))
        return result

    def _count_flops(self, func_packet: Any, out: Any, args: tuple, kwargs: dict) -> Any:
        formula = self.flop_registry.get(func_packet)
        if formula is not None:
            count = formula(*args, **kwargs, out_val=out)
            name = _counted_as(func_packet, args)
            for parent in self.mod_tracker.parents:
                self.flop_counts[parent][name] += count
        return out


class _CountingMode(TorchDispatchMode):
    def __init__(self, counter: FlopCounterMode) -> None:
        super().__init__()
        self.counter = counter

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        return self.counter._count_flops(func._overloadpacket, out, args, kwargs or {})
