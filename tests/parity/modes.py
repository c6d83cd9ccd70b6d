"""The ways of calling an operator that give values: function, method, in-place, out=, vmap, and
with permuted arguments.

Each takes a `Side` and returns what the user would see, or raises `NotApplicable`.
"""

from __future__ import annotations

import warnings
from typing import Any

from tests.parity import mirror
from tests.parity.sides import Side


class NotApplicable(Exception):
    """The operator has no such variant."""


def function(side: Side) -> Any:
    return side.processed(side.call())


def method(side: Side) -> Any:
    if side.variant("method_variant") is None or side.info.name.startswith("_"):
        raise NotApplicable
    if not isinstance(side.copies(side.sample.input), side.tensor):
        raise NotApplicable
    return side.processed(side.call("method_variant"))


def in_place(side: Side) -> Any:
    """The result and what became of the argument, of a copy that records nothing. Of elements that
    share memory PyTorch promises nothing where it does not refuse them."""
    name = "inplace_variant"
    if side.variant(name) is None or not isinstance(side.sample.input, mirror.torch.Tensor):
        raise NotApplicable
    with side.lib.no_grad():
        result = side.call(name)
        if not side.taeda and mirror.shares_elements(side.sample.input):
            raise NotApplicable
        return result, side.copies(side.sample.input), result is side.copies(side.sample.input)


def _expected(side: Side) -> list[Any]:
    if not side.info.supports_out or "out" in side.sample.kwargs:
        raise NotApplicable
    with side.lib.no_grad():
        result = side.call()
    found = (result,) if isinstance(result, side.tensor) else result
    if not isinstance(found, tuple) or not found:
        raise NotApplicable
    if not all(isinstance(item, side.tensor) for item in found):
        raise NotApplicable
    side.refresh()
    return list(found)


def _into(side: Side, outs: list[Any]) -> Any:
    """Results, whether they are those of `out`, and whether it was resized with a warning."""
    with side.lib.no_grad(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = side.call(out=outs[0] if len(outs) == 1 else tuple(outs))
    results = [result] if len(outs) == 1 else list(result)
    same = [a is b for a, b in zip(results, outs, strict=True)]
    return (
        side.processed(result),
        same,
        any("resized" in str(warning.message) for warning in caught),
    )


def out(side: Side) -> Any:
    """`out=` of the right shape and dtype, filled with something else."""
    return _into(side, [side.lib.ones_like(like) for like in _expected(side)])


def out_strided(side: Side) -> Any:
    """`out=` whose strides are not those of a contiguous tensor: each other element."""
    outs = []
    for like in _expected(side):
        shape = [*like.shape, 2]
        outs.append(side.lib.zeros(shape, dtype=like.dtype)[..., 0])
    return _into(side, outs)


def out_resized(side: Side) -> Any:
    """`out=` of one element, which is resized with a warning."""
    return _into(side, [side.lib.zeros(1, dtype=like.dtype) for like in _expected(side)])


def out_dtype(side: Side) -> Any:
    """`out=` of another dtype: long for floating results, else double."""
    outs = []
    for like in _expected(side):
        other = "int64" if like.is_floating_point() or like.is_complex() else "float64"
        outs.append(side.lib.zeros(like.shape, dtype=getattr(side.lib, other)))
    return _into(side, outs)


DTYPES = ("bool", "int32", "bfloat16", "float32", "float64", "complex64", "complex128")


def out_cast(side: Side) -> Any:
    """`out=` of any other dtype, by the seed: PyTorch casts to some and refuses the others. Values
    are compared in the precision in which they were computed, or that of a smaller complex out=,
    in which sums are taken."""
    likes, outs = _expected(side), []
    for like in likes:
        others = [d for d in DTYPES if getattr(side.lib, d) != like.dtype]
        dtype = getattr(side.lib, others[side.seed % len(others)])
        outs.append(side.lib.zeros(like.shape, dtype=dtype))
    results, same, resized = _into(side, outs)
    found = mirror.tensors(results, side.tensor)
    computed = [_in_dtype_of(one, like) for one, like in zip(found, likes, strict=False)]
    return computed, [(one.dtype, tuple(one.shape)) for one in found], same, resized


def _in_dtype_of(result: Any, like: Any) -> Any:
    if like.is_complex():
        smaller = result.is_complex() and result.itemsize < like.itemsize
        return result if smaller else result.to(like.dtype)
    parts = [result.real, result.imag] if result.is_complex() else [result]
    return [part.to(like.dtype) if like.is_floating_point() else part for part in parts]


def out_aliased(side: Side) -> Any:
    """`out=` is the first argument, where that is what `out=` would be. PyTorch promises nothing
    where its own result then differs from that without `out=`."""
    (like, *others) = _expected(side)
    first = side.copies(side.sample.input)
    if others or not isinstance(first, side.tensor) or first.dtype != like.dtype:
        raise NotApplicable
    if first.shape != like.shape:
        raise NotApplicable
    result = _into(side, [first])
    if not side.taeda and not mirror.torch.equal(first.nan_to_num(), like.nan_to_num()):
        raise NotApplicable
    return result


def out_absent(side: Side) -> Any:
    """`out=` of a function that has none in PyTorch, which refuses it."""
    if side.info.supports_out or "out" in side.sample.kwargs:
        raise NotApplicable
    result = side.call(out=side.lib.zeros(1))
    if not side.taeda:
        raise NotApplicable
    return result


def permuted(side: Side) -> Any:
    """Arguments whose memory is in another order: all of them, with an even seed only the first.
    Four- and five-dimensional ones are channels_last, of others two dimensions change places."""
    arguments = side.arguments()
    found = [t for t in unique(mirror.tensors(arguments, side.tensor)) if t.ndim > 1]
    if not found:
        raise NotApplicable
    by = {id(tensor): _permuted(side, tensor) for tensor in found[: None if side.seed % 2 else 1]}
    first, args, kwargs = replaced(arguments, by, side.tensor)
    op = side.variant("op")
    assert op is not None
    side.reseed()
    return side.processed(op(first, *args, **kwargs))


def _permuted(side: Side, tensor: Any) -> Any:
    formats = {4: "channels_last", 5: "channels_last_3d"}
    plain = tensor.detach()
    if tensor.ndim in formats:
        made = plain.contiguous(memory_format=getattr(side.lib, formats[tensor.ndim]))
    else:
        made = plain.transpose(-1, 0).contiguous().transpose(-1, 0)
    return made.requires_grad_(tensor.requires_grad)


def replaced(value: Any, by: dict[int, Any], kind: type) -> Any:
    """Nested `value` with its tensors exchanged."""
    if isinstance(value, kind):
        return by.get(id(value), value)
    if isinstance(value, dict):
        return {key: replaced(item, by, kind) for key, item in value.items()}
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        return type(value)(replaced(item, by, kind) for item in value)
    return value


def unique(tensors: list[Any]) -> list[Any]:
    return list({id(tensor): tensor for tensor in tensors}.values())


def _batch(side: Side, tensor: Any, dim: int) -> Any:
    other = tensor * 0.5 if tensor.is_floating_point() or tensor.is_complex() else tensor
    return side.lib.stack([tensor, other.to(tensor.dtype)], dim)


def vmap(side: Side) -> Any:
    """Two of each tensor at once, the second halved; with an odd seed only of the first, at -1."""
    with side.lib.no_grad():
        arguments = side.arguments()
        found = unique(mirror.tensors(arguments, side.tensor))
        if not found:
            raise NotApplicable
        odd = side.seed % 2
        dim = -1 if odd else 0
        batched = found[:1] if odd else found
        stacked = [_batch(side, tensor.detach(), dim) for tensor in batched]

        def one(*tensors: Any) -> Any:
            by = {id(old): new for old, new in zip(batched, tensors, strict=True)}
            first, args, kwargs = replaced(arguments, by, side.tensor)
            op = side.variant("op")
            assert op is not None
            return side.processed(op(first, *args, **kwargs))

        side.reseed()
        return side.own(mirror.torch.vmap)(one, in_dims=dim)(*stacked)
