"""What functions do with nested tensors of the jagged layout.

The nested tensor's dimension d is dimension d - 1 of its values, in which the tensors lie one after
the other along the ragged dimension. So most functions run once, on the values, and autograd sees
nothing but them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import taeda
from taeda import Tensor
from taeda._elementwise import ELEMENTWISE
from taeda.nn import functional as F
from taeda.utils._pytree import tree_leaves, tree_map

if TYPE_CHECKING:
    from taeda.nested._tensor import NestedTensor

# Also their forms with an underscore, which write the values.
_POINTWISE = ELEMENTWISE | frozenset(
    "dropout alpha_dropout softmax_backward rand_like randn_like empty_like contiguous to type "
    "float double half bfloat16 int long bool cpu cuda requires_grad_".split()
)
_OPERATORS = {
    f"__{sign}__": name
    for name, signs in {
        "add": "add radd iadd", "sub": "sub isub", "rsub": "rsub", "mul": "mul rmul imul",
        "div": "truediv itruediv", "pow": "pow", "neg": "neg", "abs": "abs", "eq": "eq", "ne": "ne",
        "lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "bitwise_not": "invert",
        "bitwise_and": "and rand", "bitwise_or": "or ror", "reciprocal": "rtruediv",
    }.items()
    for sign in signs.split()
}  # fmt: skip
_RULES: dict[str, Callable[..., Any]] = {}


def _rule(*names: str) -> Callable[[Callable], Callable]:
    def add(function: Callable) -> Callable:
        _RULES.update(dict.fromkeys(names, function))
        return function

    return add


def dispatch(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The result of a function, found by its name; NotImplementedError without a rule."""
    name = getattr(func, "__name__", "")
    if name in _RULES:
        return _RULES[name](*args, **kwargs)
    plain = _OPERATORS.get(name, name)
    if plain in _POINTWISE or (plain.endswith("_") and plain[:-1] in _POINTWISE):
        return _pointwise(func, args, kwargs)
    if name in _REDUCTIONS:
        return _reduce(func, name, *args, **kwargs)
    raise NotImplementedError(f"{name}: not implemented for nested tensors of the jagged layout")


def _is_nested(value: Any) -> bool:
    from taeda.nested._tensor import NestedTensor

    return isinstance(value, NestedTensor)


def _pointwise(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """On the values; dense arguments are broadcast over the ragged dimension."""
    first, *others = (v for v in tree_leaves((args, kwargs)) if _is_nested(v))
    for other in others:
        if other._offsets is not first._offsets or other._ragged_idx != first._ragged_idx:
            raise RuntimeError(
                f"cannot call binary pointwise function {getattr(func, '__name__', func)} with "
                f"inputs of shapes {tuple(first.shape)} and {tuple(other.shape)}"
            )

    def values(value: Any) -> Any:
        if _is_nested(value):
            return value._values
        return _dense(first, value) if isinstance(value, Tensor) and value.dim() else value

    result = func(*tree_map(values, args), **tree_map(values, kwargs))
    if result is first._values:
        return first
    return first._like(result) if isinstance(result, Tensor) else result


def _dense(nested: NestedTensor, dense: Tensor) -> Tensor:
    """A dense argument as it is broadcast to the values."""
    if dense.dim() < nested.dim() - 1 or (dense.dim() == nested.dim() - 1 and dense.size(0) == 1):
        return dense
    if dense.dim() != nested.dim() or dense.size(nested._ragged_idx) != 1:
        raise RuntimeError(
            f"cannot broadcast a tensor of shape {tuple(dense.shape)} to a nested tensor of shape "
            f"{tuple(nested.shape)}"
        )
    at = nested._ragged_idx - 1
    if dense.size(0) == 1:
        return dense.squeeze(0)
    rows = dense.squeeze(nested._ragged_idx).repeat_interleave(nested._sizes(), 0)
    return rows.movedim(0, at)


# --- reductions ---

_REDUCTIONS = frozenset("sum mean amax amin max min prod all any std var argmax argmin".split())
_SEGMENTS = {"sum": "sum", "mean": "mean", "amax": "max", "amin": "min", "prod": "prod"}


def _reduce(func: Any, name: str, self: Any, dim: Any = None, keepdim: bool = False, **more: Any):
    """Over all elements, over dimensions of each element, or over the ragged dimension."""
    values = self._packed()
    if dim is None:
        return func(values, **more)
    dims = [_wrap(self, d) for d in ([dim] if isinstance(dim, int) else dim)]
    ragged, rest = self._ragged_idx in dims, [d for d in dims if d not in (0, self._ragged_idx)]
    if 0 in dims:
        if not ragged:
            raise RuntimeError(
                f"{name}(): reducing along the batch dimension but not the ragged dimension is not "
                "supported for nested tensors"
            )
        result = func(values, [d - 1 for d in dims if d], keepdim, **more)
        return result.unsqueeze(0) if keepdim else result
    if ragged and rest:
        raise RuntimeError(
            f"{name}(): reducing along a ragged and non-batch dimension is not supported for "
            "nested tensors"
        )
    if ragged:
        return _reduce_ragged(name, self, keepdim, **more)
    over = rest[0] - 1 if isinstance(dim, int) else [d - 1 for d in rest]
    result = func(values, over, keepdim, **more)
    lost = 0 if keepdim else sum(d < self._ragged_idx for d in rest)
    same = self._without_holes()
    return tree_map(lambda r: same._like(r, same._ragged_idx - lost), result)


def _reduce_ragged(name: str, self: Any, keepdim: bool, dtype: Any = None) -> Tensor:
    if name not in _SEGMENTS:
        raise NotImplementedError(f"{name}(): not supported along a ragged dimension")
    values = self._packed().movedim(self._ragged_idx - 1, 0)
    values = values if dtype is None else values.to(dtype)
    result = taeda.segment_reduce(values, _SEGMENTS[name], lengths=self._sizes())
    return result.unsqueeze(self._ragged_idx) if keepdim else result


def _wrap(self: Any, dim: int) -> int:
    if not -self.dim() <= dim < self.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-self.dim()}, "
            f"{self.dim() - 1}], but got {dim})"
        )
    return dim % self.dim()


def _inner(name: str, self: Any, dim: int) -> int:
    """The dimension of the values that `dim` is; neither the batch's nor the ragged one."""
    dim = _wrap(self, dim)
    if dim in (0, self._ragged_idx):
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim={dim}")
    return dim - 1


# --- layers ---


def _needs_last(name: str, self: Any) -> None:
    if self._ragged_idx == self.dim() - 1:
        raise RuntimeError(f"{name}(): not supported where the ragged dimension is the last")


@_rule("linear")
def _linear(input: Any, weight: Tensor, bias: Tensor | None = None) -> Any:
    _needs_last("linear", input)
    return input._like(F.linear(input._values, weight, bias))


def _normalization(function: Callable) -> Callable:
    def rule(input: Any, normalized_shape: Any, *args: Any, **kwargs: Any) -> Any:
        if input.dim() - len(normalized_shape) <= input._ragged_idx:
            raise RuntimeError(
                f"{function.__name__}(): normalizing over the ragged dimension is not supported "
                "for nested tensors"
            )
        return input._like(function(input._values, normalized_shape, *args, **kwargs))

    return rule


_RULES["layer_norm"] = _normalization(F.layer_norm)
_RULES["rms_norm"] = _normalization(F.rms_norm)


def _softmax_rule(function: Callable) -> Callable:
    def rule(input: Any, dim: int, *args: Any, dtype: Any = None, **_: Any) -> Any:
        if _wrap(input, dim) == 0:
            raise RuntimeError(
                f"{function.__name__}(): not supported when reducing across the batch dimension "
                "for NestedTensor"
            )
        if _wrap(input, dim) != input._ragged_idx:
            return input._like(function(input._values, dim=_wrap(input, dim) - 1, dtype=dtype))
        at = input._ragged_idx - 1
        parts = [function(part, dim=at, dtype=dtype) for part in input.unbind()]
        return input._without_holes()._like(taeda.cat(parts, at))

    return rule


_RULES["softmax"], _RULES["log_softmax"] = map(_softmax_rule, (F.softmax, F.log_softmax))


@_rule("matmul", "__matmul__", "bmm")
def _matmul(self: Any, other: Any) -> Any:
    """With a matrix, or of each tensor with the other's."""
    if _is_nested(self) and not _is_nested(other) and other.dim() == 2:
        _needs_last("matmul", self)
        return self._like(taeda.matmul(self._values, other))
    pairs = zip(_parts(self), _parts(other), strict=True)
    return _gather([taeda.matmul(a, b) for a, b in pairs], self, other)


def _parts(value: Any) -> Any:
    return value.unbind() if _is_nested(value) else value


def _gather(parts: list[Tensor], *of: Any) -> Any:
    """Nested again, with the offsets of the first argument whose ragged dimension they have."""
    for nested in of:
        if not _is_nested(nested):
            continue
        at, sizes = nested._ragged_idx - 1, nested._sizes().tolist()
        if all(at < p.dim() and p.size(at) == n for p, n in zip(parts, sizes, strict=True)) and all(
            p.shape[:at] + p.shape[at + 1 :] == parts[0].shape[:at] + parts[0].shape[at + 1 :]
            for p in parts
        ):
            return nested._without_holes()._like(taeda.cat(parts, at))
    if len({p.shape for p in parts}) == 1:
        return taeda.stack(parts)
    shapes = " and ".join(str(tuple(v.shape)) for v in of)
    raise RuntimeError(f"matmul(): not supported between inputs of shapes {shapes}")


@_rule("embedding")
def _embedding(input: Any, weight: Tensor, *args: Any, **kwargs: Any) -> Any:
    return input._like(F.embedding(input._values, weight, *args, **kwargs))


@_rule("scaled_dot_product_attention")
def _attention(query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
    """Of each sequence by itself: (batch, heads, ragged, features)."""
    sequences = zip(query.unbind(), key.unbind(), value.unbind(), strict=True)
    results = [F.scaled_dot_product_attention(*s, *args, **kwargs) for s in sequences]
    return query._without_holes()._like(taeda.cat(results, query._ragged_idx - 1))


# --- shapes ---


@_rule("unbind")
def _unbind(self: Any, dim: int = 0) -> Any:
    if _wrap(self, dim) != 0:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    at, lengths = self._ragged_idx - 1, self._sizes().tolist()
    starts = self._offsets.tolist()
    return tuple(self._values.narrow(at, s, n) for s, n in zip(starts, lengths, strict=False))


@_rule("transpose")
def _transpose(self: Any, dim0: int, dim1: int) -> Any:
    dims = list(range(self.dim()))
    a, b = _wrap(self, dim0), _wrap(self, dim1)
    dims[a], dims[b] = dims[b], dims[a]
    return _permute(self, dims)


@_rule("permute")
def _permute(self: Any, *dims: Any) -> Any:
    order = [_wrap(self, d) for d in (dims[0] if not isinstance(dims[0], int) else dims)]
    if sorted(order) != list(range(self.dim())):
        raise RuntimeError(f"permute(): {order} is no order of the dimensions")
    if order[0] != 0:
        raise RuntimeError("permute(): does not support permuting the batch dimension")
    values = self._values.permute([d - 1 for d in order[1:]])
    return self._like(values, order.index(self._ragged_idx))


@_rule("unsqueeze")
def _unsqueeze(self: Any, dim: int) -> Any:
    dim = dim if dim >= 0 else dim + self.dim() + 1
    if dim == 0:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    return self._like(self._values.unsqueeze(dim - 1), self._ragged_idx + (dim <= self._ragged_idx))


@_rule("squeeze")
def _squeeze(self: Any, dim: int) -> Any:
    at = _inner("squeeze", self, dim)
    values = self._values.squeeze(at)
    lost = values.dim() < self._values.dim() and at < self._ragged_idx - 1
    return self._like(values, self._ragged_idx - lost)


@_rule("view", "reshape")
def _view(self: Any, *shape: Any) -> Any:
    """Of the dimensions beside the batch's and the ragged one, which keep their places."""
    if len(shape) == 1 and not isinstance(shape[0], int):
        shape = tuple(shape[0])
    from taeda.nested._sizes import RaggedSize

    at = self._ragged_idx
    ragged = len(shape) > at and (isinstance(shape[at], RaggedSize) or shape[at] == -1)
    if not shape or shape[0] != len(self) or not ragged:
        raise RuntimeError(
            f"view(): cannot view shape {tuple(self.shape)} as {list(shape)}: the batch and the "
            "ragged dimension must keep their places"
        )
    inner = [self._values.size(at - 1) if i == at else n for i, n in enumerate(shape)][1:]
    return self._like(self._values.reshape(inner))


@_rule("unflatten")
def _unflatten(self: Any, dim: int, sizes: Any) -> Any:
    at = _inner("unflatten", self, dim)
    more = len(sizes) - 1 if at < self._ragged_idx - 1 else 0
    return self._like(self._values.unflatten(at, sizes), self._ragged_idx + more)


@_rule("flatten")
def _flatten(self: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    first, last = _inner("flatten", self, start_dim), _inner("flatten", self, end_dim)
    if first < self._ragged_idx - 1 < last:
        raise RuntimeError("flatten(): not supported across the ragged dimension of NestedTensor")
    less = last - first if last < self._ragged_idx - 1 else 0
    return self._like(self._values.flatten(first, last), self._ragged_idx - less)


@_rule("select")
def _select(self: Any, dim: int, index: int) -> Any:
    if _wrap(self, dim) == 0:
        return self.unbind()[index]
    at = _inner("select", self, dim)
    return self._like(
        self._values.select(at, index), self._ragged_idx - (at < self._ragged_idx - 1)
    )


@_rule("narrow")
def _narrow(self: Any, dim: int, start: int, length: int) -> Any:
    return self._like(self._values.narrow(_inner("narrow", self, dim), start, length))


@_rule("chunk")
def _chunk(self: Any, chunks: int, dim: int = 0) -> Any:
    if _wrap(self, dim) == 0:
        return _chunk_batch(self, chunks)
    return tuple(self._like(v) for v in self._values.chunk(chunks, _inner("chunk", self, dim)))


def _chunk_batch(self: Any, chunks: int) -> Any:
    from taeda.nested import as_nested_tensor

    parts, size = self.unbind(), -(-len(self) // chunks)
    groups = (parts[i : i + size] for i in range(0, len(parts), size))
    return tuple(as_nested_tensor(group, layout=taeda.jagged) for group in groups)


@_rule("split")
def _split(self: Any, split_size_or_sections: Any, dim: int = 0) -> Any:
    parts = self._values.split(split_size_or_sections, _inner("split", self, dim))
    return tuple(self._like(v) for v in parts)


@_rule("cat", "concat")
def _cat(tensors: Any, dim: int = 0) -> Any:
    first = next(t for t in tensors if _is_nested(t))
    at = _inner("cat", first, dim)
    if not all(_is_nested(t) and t._offsets is first._offsets for t in tensors):
        raise RuntimeError("cat(): expected all arguments to be nested with the same ragged sizes")
    return first._like(taeda.cat([t._values for t in tensors], at))


@_rule("stack")
def _stack(tensors: Any, dim: int = 0) -> Any:
    first = tensors[0]
    dim = dim if dim >= 0 else dim + first.dim() + 1
    if dim in (0, first._ragged_idx):
        raise RuntimeError(f"stack(): not supported for NestedTensor on dim={dim}")
    return _cat([_unsqueeze(t, dim) for t in tensors], dim)


@_rule("__getitem__")
def _getitem(self: Any, index: Any) -> Any:
    index = index if isinstance(index, tuple) else (index,)
    if isinstance(index[0], int):
        return self.unbind()[index[0]][index[1:]] if index[1:] else self.unbind()[index[0]]
    if Ellipsis in index:
        at = index.index(Ellipsis)
        fill = self.dim() - (len(index) - 1)
        index = index[:at] + (slice(None),) * fill + index[at + 1 :]
    whole = slice(None)
    if index[0] != whole or any(i != whole for i in index[self._ragged_idx : self._ragged_idx + 1]):
        raise RuntimeError(
            "slice(): not supported for NestedTensor on the batch or ragged dimension"
        )
    lost = sum(isinstance(i, int) for i in index[1 : self._ragged_idx])
    return self._like(self._values[index[1:]], self._ragged_idx - lost)


@_rule("is_same_size")
def _is_same_size(self: Any, other: Any) -> bool:
    return tuple(self.shape) == tuple(other.shape)
