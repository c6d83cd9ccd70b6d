"""Rules of vmap written in Python: of Functions, and of operators that a program registers.

A rule runs outside of the level that it is for, on tensors whose batch is to be seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import taeda
from taeda import _C, Tensor
from taeda.autograd.function import Function
from taeda.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

from . import _functionalize
from ._vmap import broadcast_dims, level


class VmapInfo(NamedTuple):
    """What a rule is told besides its arguments."""

    batch_size: int
    randomness: str


def depth_of(tree: Any) -> int:
    """The depth of the innermost level that a tensor of the tree is batched at; 0: none is."""
    return max((_C._batch_level(x) for x in tree_leaves(tree) if isinstance(x, Tensor)), default=0)


def _opened(tree: Any, depth: int) -> tuple[Any, Any]:
    """The tree as the code outside of a level has it, and a tree of where its batches lie."""
    leaves, spec = tree_flatten(tree)
    pairs = [_C._batch_value(x, depth) if isinstance(x, Tensor) else (x, None) for x in leaves]
    return tree_unflatten([x for x, _ in pairs], spec), tree_unflatten([d for _, d in pairs], spec)


def _closed(tree: Any, dims: Any, depth: int) -> Any:
    """The tree with batched tensors where `dims` has a dimension."""
    leaves, spec = tree_flatten(tree)
    flat = broadcast_dims(dims, spec, "a vmap rule")
    return tree_unflatten(
        [x if d is None else _C._add_batch_dim(x, d, depth) for x, d in zip(leaves, flat)], spec
    )


def call_rule(rule: Callable, depth: int, args: tuple, kwargs: dict, recording: bool) -> Any:
    """``rule(info, in_dims, *args)`` outside of a level, and its results batched again."""
    info = VmapInfo(*_C._vmap_info(depth))
    values, dims = _opened(args, depth)
    options, _ = _opened(kwargs, depth)
    outputs, out_dims = _C._call_outside(
        depth, recording, lambda: rule(info, dims, *values, **options)
    )
    return _closed(outputs, out_dims, depth)


def by_samples(function: Callable, args: tuple) -> Any:
    """``function(*args)`` inside vmap, sample by sample outside of the innermost level that an
    argument is batched at; its results, which have no history, are stacked."""

    def rule(info: VmapInfo, in_dims: tuple, *args: Any) -> tuple[Any, Any]:
        def sample(i: int) -> tuple:
            pairs = zip(args, in_dims)
            return tuple(x if d is None else x.select(d, i) for x, d in pairs)

        found = [function(*sample(i)) for i in range(info.batch_size)]
        if isinstance(found[0], Tensor):
            return taeda.stack(found), 0
        return tuple(map(taeda.stack, zip(*found))), (0,) * len(found[0])

    return call_rule(rule, depth_of(args), args, {}, recording=False)


def _shares_all(args: tuple, depth: int) -> bool:
    """Whether the samples of a level share every argument."""
    return all(d is None for d in tree_leaves(_opened(args, depth)[1]))


# --- operators ---


def operator_kernel(op: Callable, rule: Callable) -> Callable:
    """What runs for an operator inside vmap."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        recording = taeda.is_grad_enabled()
        depth = depth_of((args, kwargs))
        if depth == 0:
            inner = _C._vmap_level()
            return _C._call_outside(inner, recording, lambda: op(*args, **kwargs))
        return call_rule(rule, depth, args, kwargs, recording)

    return kernel


# --- autograd Functions ---


class _Below:
    """Stands for a Function whose forward runs on what its batched arguments stand for."""

    _has_setup_context = True

    def __init__(self, cls: type[Function], depth: int) -> None:
        self.__name__ = cls.__name__
        self.setup_context, self.jvp = cls.setup_context, cls.jvp
        self._cls, self._depth = cls, depth
        self._recording = taeda.is_grad_enabled()

    def forward(self, *args: Any) -> Any:
        cls, rule = self._cls, _rule_of(self._cls)
        if _shares_all(args, self._depth):
            rule = lambda info, in_dims, *args: (cls.apply(*args), None)  # noqa: E731
        outputs = call_rule(rule, self._depth, args, {}, self._recording)
        return tree_map(lambda y: _C._lift(y) if isinstance(y, Tensor) else y, outputs)


def apply_in_level(cls: type[Function], args: tuple) -> Any:
    """``cls.apply(*args)`` inside vmap or functionalize."""
    if not _C._vmap_level():
        return _functionalize.apply_function(cls, args)
    if any(isinstance(x, Tensor) for x in args):
        return apply_function(cls, args)
    return _C._apply_function(cls, cls._backward_cls(), args)


def apply_function(cls: type[Function], args: tuple) -> Any:
    """``cls.apply(*args)`` inside vmap."""
    depth, innermost = depth_of(args), _C._vmap_level()
    if depth < innermost:  # no argument belongs to the innermost level
        recording = taeda.is_grad_enabled()
        return _C._call_outside(innermost, recording, lambda: cls.apply(*args))
    has_rule = cls.vmap is not Function.vmap
    if not (has_rule or cls.generate_vmap_rule) and _shares_all(args, depth):
        # Only tangents have a batch: jvp sees them as any operator would.
        return _C._apply_function(cls, cls._backward_cls(), args)
    if cls.generate_vmap_rule and has_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and "
            "a vmap staticmethod of its own. Please set generate_vmap_rule=False or delete the "
            "staticmethod."
        )
    if not cls.generate_vmap_rule and not has_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please "
            "override and implement the vmap staticmethod or set generate_vmap_rule=True."
        )
    if not cls._has_setup_context:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, whose forward takes ctx: inside vmap a "
            "Function must override the setup_context staticmethod, and its forward takes the "
            "arguments only."
        )
    below = _Below(cls, depth)
    if any(isinstance(x, Tensor) and (x.requires_grad or _C._tangents(x)) for x in args):
        return _C._apply_function(below, cls._backward_cls(), args)
    return below.forward(*args)


def _rule_of(cls: type[Function]) -> Callable:
    if cls.vmap is not Function.vmap:
        return cls.vmap
    return lambda info, in_dims, *args: _run_generated(cls, info, in_dims, args)


def _run_generated(cls: type[Function], info: VmapInfo, in_dims: tuple, args: tuple) -> Any:
    generated = _Generated(cls, info, in_dims)
    outputs = generated.function.apply(*args)
    return outputs, generated.out_dims


class _Context:
    """The ctx of a Function that runs inside vmap; what it saves, the generated one keeps."""

    def __init__(self, needs_input_grad: tuple) -> None:
        self.needs_input_grad = needs_input_grad
        self.saved_tensors: tuple = ()
        self.materialize_grads = True
        self.non_differentiable: tuple = ()

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    save_for_forward = save_for_backward

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        self.non_differentiable = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        raise RuntimeError("NYI: mark_dirty with generate_vmap_rule=True")

    def set_materialize_grads(self, value: bool) -> None:
        self.materialize_grads = value


class _Generated:
    """The Function that does for a batch what `cls` does for a sample: its forward, backward and
    jvp are those of `cls` inside vmap."""

    def __init__(self, cls: type[Function], info: VmapInfo, in_dims: tuple) -> None:
        self.cls, self.info, self.in_dims = cls, info, in_dims
        self.out_dims: Any = None
        self.saved_dims: list = []
        self.function: Any = type(
            f"Vmapped{cls.__name__}",
            (Function,),
            {
                "generate_vmap_rule": True,
                "forward": staticmethod(self.forward),
                "setup_context": staticmethod(self.setup_context),
                "backward": staticmethod(self.backward),
                "jvp": staticmethod(self.jvp),
            },
        )

    def _in_level(self, function: Callable, trees: Any, dims: Any) -> tuple[Any, Any]:
        """The results of a function of batched tensors, opened, and where their batches lie."""
        with level(self.info.batch_size, self.info.randomness) as depth:
            return _opened(function(*_closed(trees, dims, depth)), depth)

    def forward(self, *args: Any) -> Any:
        outputs, self.out_dims = self._in_level(self.cls.forward, args, self.in_dims)
        return outputs

    def setup_context(self, ctx: Any, inputs: tuple, output: Any) -> None:
        inner = _Context(ctx.needs_input_grad)

        def run(args: tuple, result: Any) -> tuple:
            self.cls.setup_context(inner, args, result)
            return inner.saved_tensors

        saved, dims = self._in_level(run, (inputs, output), (self.in_dims, self.out_dims))
        self.saved_dims = list(dims)
        inner.saved_tensors = ()
        ctx.inner = inner
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)
        ctx.set_materialize_grads(inner.materialize_grads)
        marked = [
            y
            for y, mark in zip(tree_leaves(output), self._marks(inner, output))
            if isinstance(y, Tensor) and (mark or not (y.is_floating_point() or y.is_complex()))
        ]
        ctx.mark_non_differentiable(*marked)

    def _marks(self, inner: _Context, output: Any) -> list[bool]:
        shapes = {tuple(t.shape) for t in inner.non_differentiable}
        return [isinstance(y, Tensor) and tuple(y.shape[1:]) in shapes for y in tree_leaves(output)]

    def _with_saved(self, ctx: Any, method: Callable, given: tuple, dims: Any) -> tuple[Any, Any]:
        def run(saved: tuple, *grads: Any) -> Any:
            ctx.inner.saved_tensors = tuple(saved)
            try:
                return method(ctx.inner, *grads)
            finally:
                ctx.inner.saved_tensors = ()

        return self._in_level(
            run, (tuple(ctx.saved_tensors), *given), (tuple(self.saved_dims), *dims)
        )

    def backward(self, ctx: Any, *grads: Any) -> tuple:
        dims = self.out_dims if isinstance(self.out_dims, tuple) else (self.out_dims,)
        dims = tuple(None if g is None else d for g, d in zip(grads, dims))
        found, found_dims = self._with_saved(ctx, self.cls.backward, grads, dims)
        if not isinstance(found, tuple):
            found, found_dims = (found,), (found_dims,)
        return tuple(
            self._for_input(g, g_dim, dim) for g, g_dim, dim in zip(found, found_dims, self.in_dims)
        )

    def _for_input(self, grad: Any, grad_dim: int | None, in_dim: int | None) -> Any:
        """The gradient of an argument: that of one which all samples share is their sum. Without a
        batch it belongs to results that the samples share too."""
        if not isinstance(grad, Tensor) or (grad_dim is None) == (in_dim is None):
            return grad
        return grad.sum(0) if in_dim is None else grad.expand(self.info.batch_size, *grad.shape)

    def jvp(self, ctx: Any, *tangents: Any) -> Any:
        dims = tuple(None if t is None else d for t, d in zip(tangents, self.in_dims))
        found, found_dims = self._with_saved(ctx, self.cls.jvp, tangents, dims)
        many = isinstance(found, tuple)
        pairs = (
            zip(found, found_dims, self.out_dims) if many else [(found, found_dims, self.out_dims)]
        )
        made = tuple(
            t.expand(self.info.batch_size, *t.shape) if d is None and out is not None else t
            for t, d, out in pairs
        )
        return made if many else made[0]
