"""Tensors as text, exactly as PyTorch prints them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from taeda import _C


@dataclass
class PrintOptions:
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PRINT_OPTS = PrintOptions()

_PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Sets how tensors are printed.

    Args:
        precision: digits after the point (default 4).
        threshold: tensors with more elements are summarized (default 1000).
        edgeitems: elements shown at each end of a summarized dimension (default 3).
        linewidth: characters a line (default 80).
        profile: 'default', 'short' or 'full': sets all of the above.
        sci_mode: scientific notation always, never, or as the values need (None).

    TypeError of tensors among them, except profile and sci_mode.
    """
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"set_printoptions: unknown profile '{profile}'")
        PRINT_OPTS.__dict__.update(_PROFILES[profile].__dict__)
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    for name, value in given.items():
        if isinstance(value, _C.Tensor):  # it would be printed by itself
            raise TypeError(
                f"set_printoptions: expected {name} to be a number, got {type(value).__name__}"
            )
    PRINT_OPTS.__dict__.update({k: v for k, v in given.items() if v is not None})
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The current options as a dictionary."""
    return dict(PRINT_OPTS.__dict__)


class printoptions:
    """Context manager: other options for a while."""

    def __init__(self, **options: Any) -> None:
        self._options = options

    def __enter__(self) -> None:
        self._saved = get_printoptions()
        set_printoptions(**self._options)

    def __exit__(self, *exc: object) -> None:
        PRINT_OPTS.__dict__.update(self._saved)


def _flat(values: Any) -> list:
    """The numbers of nested lists."""
    if not isinstance(values, list):
        return [values]
    found: list = []
    for value in values:
        found += _flat(value) if isinstance(value, list) else [value]
    return found


class _NumberFormat:
    """How the numbers of one tensor are written: mode and common width, found from all of them."""

    def __init__(self, values: list, floating: bool) -> None:
        self.floating = floating
        self.integers = True  # all values of a floating tensor are whole: "1."
        self.scientific = False
        self.width = 1
        precision = PRINT_OPTS.precision
        if not floating:
            self.width = max([1] + [len(str(v)) for v in values])
            return
        shown = [v for v in values if v != 0 and math.isfinite(v)]
        if not shown:
            return
        largest = max(abs(v) for v in shown)
        smallest = min(abs(v) for v in shown)
        self.integers = all(v == math.floor(v) for v in shown)
        wide = largest / smallest > 1000.0 or largest > 1e8
        self.scientific = wide or (not self.integers and smallest < 1e-4)
        if PRINT_OPTS.sci_mode is not None:
            self.scientific = PRINT_OPTS.sci_mode
        if self.scientific:
            lengths = [len(f"{v:.{precision}e}") for v in shown]
        elif self.integers:
            lengths = [len(f"{v:.0f}") + 1 for v in shown]
        else:
            lengths = [len(f"{v:.{precision}f}") for v in shown]
        self.width = max([1, *lengths])

    def __call__(self, value: Any) -> str:
        if not self.floating:
            text = str(value)
        elif self.scientific:
            text = f"{value:{self.width}.{PRINT_OPTS.precision}e}"
        elif self.integers:
            text = f"{value:.0f}" + ("." if math.isfinite(value) else "")
        else:
            text = f"{value:.{PRINT_OPTS.precision}f}"
        return text.rjust(self.width)


class _ComplexFormat:
    def __init__(self, values: list) -> None:
        self.real = _NumberFormat([v.real for v in values], True)
        self.imag = _NumberFormat([v.imag for v in values], True)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value: complex) -> str:
        imag = (self.imag(value.imag) + "j").lstrip()
        return self.real(value.real) + ("" if imag[0] in "+-" else "+") + imag


def _summarized(x: Any) -> Any:
    """The elements that a summary shows."""
    edge = PRINT_OPTS.edgeitems
    for dim, size in enumerate(x.shape):
        if size > 2 * edge:
            ends = (x.narrow(dim, 0, edge), x.narrow(dim, size - edge, edge))
            x = _C._by_owner["torch"]["cat"](ends, dim) if edge else x.narrow(dim, 0, 0)
    return x


def _lines(values: Any, shape: tuple[int, ...], indent: int, summarize: bool, write: Any) -> str:
    """Nested lists (of a summary, where `shape` is the whole tensor's) in brackets."""
    if not shape:
        return write(values)
    edge = PRINT_OPTS.edgeitems
    cut = summarize and shape[0] > 2 * edge
    if len(shape) > 1:
        rows = [_lines(v, shape[1:], indent + 1, summarize, write) for v in values]
        if cut:
            rows[edge:edge] = ["..."]
        return "[" + ("," + "\n" * (len(shape) - 1) + " " * (indent + 1)).join(rows) + "]"
    items = [write(v) for v in values]
    if cut:
        items[edge:edge] = [" ..."] if edge else ["..."]
    per_line = max(1, (PRINT_OPTS.linewidth - indent) // (write.width + 2))
    lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _values_text(x: Any, indent: int) -> str:
    if x.numel() == 0:
        return "[]"
    summarize = x.numel() > PRINT_OPTS.threshold
    shown = _summarized(x) if summarize else x
    if x.dtype is _C.float4_e2m1fn_x2:  # the bytes' values: there are two numbers in each
        shown = shown.view(_C.uint8)
    values = shown.tolist()
    numbers = _flat(values)
    write = (
        _ComplexFormat(numbers)
        if x.dtype.is_complex
        else _NumberFormat(numbers, x.dtype.is_floating_point)
    )
    return _lines(values, tuple(x.shape), indent, summarize, write)


def _join_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    """Appends ", suffix", on a new line where the last one would grow too long."""
    length = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if length + len(suffix) + 2 > PRINT_OPTS.linewidth:
            text += ",\n" + " " * indent + suffix
            length = indent + len(suffix)
        else:
            text += ", " + suffix
            length += len(suffix) + 2
    return text + ")"


def _history(x: Any) -> list[str]:
    try:
        grad_fn = x.grad_fn
    except RuntimeError:  # of a view whose base changed where that is not allowed
        return ["grad_fn=<Invalid>"]
    if grad_fn is not None:
        return [f"grad_fn=<{type(grad_fn).__name__}>"]
    return ["requires_grad=True"] if x.requires_grad else []


def _batched_repr(x: Any, depth: int) -> str:
    if depth < 0:
        return f"BatchedTensor(of a vmap that has ended, size={tuple(x.shape)})"
    value = repr(_C._batch_value(x, depth)[0]).replace("\n", "\n    ")
    return f"BatchedTensor(lvl={depth}, bdim=0, value=\n    {value}\n)"


def _part_text(part: Any, indent: int) -> str:
    """Indices or values of a sparse tensor, behind the name of what they are."""
    if part.is_meta:
        return f"..., size={tuple(part.shape)})"
    size = "" if part.numel() else f", size={tuple(part.shape)}"
    return _values_text(part, indent) + size + ")"


def _sparse_text(x: Any, indent: int) -> str:
    """The parts of a sparse tensor, one below the other."""
    if x.is_sparse:
        parts = {"indices": x._indices(), "values": x._values()}
    elif x.layout in (_C.sparse_csr, _C.sparse_bsr):
        parts = {"crow_indices": x.crow_indices(), "col_indices": x.col_indices()}
    else:
        parts = {"ccol_indices": x.ccol_indices(), "row_indices": x.row_indices()}
    parts["values"] = x._values()
    heads = [f"{name}=tensor(" for name in parts]
    texts = [h + _part_text(p, indent + len(h)) for h, p in zip(heads, parts.values(), strict=True)]
    return (",\n" + " " * indent).join(texts)


def _sparse_suffixes(x: Any, usual: tuple) -> list[str]:
    dtype = [] if x.dtype in usual else [f"dtype={x.dtype}"]
    nnz = [] if x.is_meta else [f"nnz={x._nnz()}"]
    return [f"size={tuple(x.shape)}", *nnz, *dtype, f"layout={x.layout}"]


def tensor_repr(x: Any, *, tensor_contents: str | None = None) -> str:
    """What ``repr(x)`` gives."""
    if depth := _C._batch_level(x):
        return _batched_repr(x, depth)
    kind = type(x)
    plain = kind is _C.Tensor or getattr(kind, "_prints_as_tensor", False)
    prefix = "tensor(" if plain or kind.__name__ == "Parameter" else kind.__name__ + "("
    history = _history(x)
    _C._disable_torch_function_subclass(1)
    try:
        level = _C._dual_level()
        tangent = _C._unpack_dual(x, level)[1] if level else None
        data = x.detach()
        suffixes = [] if data.device.type == "cpu" else [f"device='{data.device}'"]
        default = _C.get_default_dtype()
        usual = (default, default.to_complex(), _C.int64, _C.bool)
        if data.layout is not _C.strided:
            text, force = _sparse_text(data, len(prefix)), data.is_sparse
            suffixes += _sparse_suffixes(data, usual)
            return _add_suffixes(prefix + text, suffixes + history, len(prefix), force)
        if data.is_meta or getattr(kind, "_has_no_values", False):
            suffixes.append(f"size={tuple(data.shape)}")
            if data.dtype is not default:
                suffixes.append(f"dtype={data.dtype}")
            text = "..."
        elif data.numel() == 0:
            if data.dim() != 1:
                suffixes.append(f"size={tuple(data.shape)}")
            if data.dtype is not default:
                suffixes.append(f"dtype={data.dtype}")
            text = "[]"
        else:
            if data.dtype not in usual:
                suffixes.append(f"dtype={data.dtype}")
            text = _values_text(data, len(prefix))
        if tensor_contents is not None:
            text = tensor_contents
        if tangent is not None:
            history.append(f"tangent={tangent}")
        return _join_suffixes(prefix + text, suffixes + history, len(prefix))
    finally:
        _C._disable_torch_function_subclass(-1)


# PyTorch's names.
_tensor_str = _values_text
_str = _str_intern = tensor_repr


def _add_suffixes(
    tensor_str: str, suffixes: list[str], indent: int, force_newline: bool = False
) -> str:
    if force_newline and suffixes:
        tensor_str += ",\n" + " " * indent + suffixes[0]
        suffixes = suffixes[1:]
    return _join_suffixes(tensor_str, suffixes, indent)
