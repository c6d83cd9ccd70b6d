"""Derivatives of functions of tensors: vjp, jvp, Jacobians, Hessians and their products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda
from taeda import _C
from taeda._C import Tensor
from taeda.autograd import grad as _grad
from taeda.autograd.grad_mode import outside_inference, recording

__all__ = ["vjp", "jvp", "jacobian", "hessian", "hvp", "vhp"]


def _tuple(value: Any, argument: str, function: str) -> tuple[bool, tuple]:
    many = isinstance(value, (tuple, list))
    values = tuple(value) if many else (value,)
    for i, element in enumerate(values):
        if not isinstance(element, Tensor):
            where = f"value at index {i}" if many else f"given {argument}"
            raise TypeError(
                f"The {argument} given to {function} must be either a Tensor or a tuple of "
                f"Tensors but the {where} has "
                f"type {type(element)}."
            )
    return isinstance(value, tuple), values


def _construct_standard_basis_for(
    tensors: tuple[Tensor, ...], tensor_numels: tuple[int, ...]
) -> tuple[Tensor, ...]:
    """The unit vectors of all tensors' elements together, cut into one matrix for each tensor.

    Row i of all matrices is 1 at element i of the elements that follow one another, 0 elsewhere.

    >>> from torch.autograd.functional import _construct_standard_basis_for as basis
    >>> [m.tolist() for m in basis((torch.zeros(1), torch.zeros(2)), (1, 2))]
    [[[1.0], [0.0], [0.0]], [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]]
    """
    if len(tensors) != len(tensor_numels) or not tensors:
        raise AssertionError(f"{len(tensors)} tensors, {len(tensor_numels)} numbers of elements")
    total, start, parts = sum(tensor_numels), 0, []
    for tensor, numel in zip(tensors, tensor_numels):
        part = tensor.new_zeros(total, numel)
        part[start : start + numel].fill_diagonal_(1)
        parts.append(part)
        start += numel
    return tuple(parts)


def _prepare(inputs: tuple, create_graph: bool) -> tuple:
    """Inputs that can be differentiated, and apart from the caller's graph unless it wants one.

    Tangents of a forward-mode level outside stay. In vmap they are the level's own."""
    inputs = tuple(_C._lift(x) for x in inputs)
    if create_graph:
        return tuple(
            x.view_as(x) if x.requires_grad else _C._fresh_leaf(x).requires_grad_() for x in inputs
        )
    return tuple(_C._cut_history(x).requires_grad_() for x in inputs)


def _finish(value: Any, create_graph: bool) -> Any:
    if isinstance(value, tuple):
        return tuple(_finish(v, create_graph) for v in value)
    return value if create_graph else _C._cut_history(value)


def _check_outputs(outputs: tuple, strict: bool) -> None:
    for i, output in enumerate(outputs):
        if strict and not output.requires_grad:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The "
                "outputs must be computed in a differentiable manner from the input when running "
                "in strict mode."
            )


def _check_dependence(
    grads: tuple,
    strict: bool,
    create_graph: bool = False,
    output: str = "The output",
    derivative: str = "jacobian",
) -> None:
    """In strict mode what does not depend on an input raises; so does, where it is to be
    differentiated again, a derivative that does not."""
    for i, g in enumerate(grads if strict else ()):
        if g is None:
            raise RuntimeError(
                f"{output} of the user-provided function is independent of input {i}. This is "
                "not allowed in strict mode."
            )
        if create_graph and not g.requires_grad:
            raise RuntimeError(
                f"The {derivative} of the user-provided function is independent of input {i}. "
                "This is not allowed in strict mode when create_graph=True."
            )


def _check_jacobian(rows: tuple, strict: bool) -> None:
    """The same for first derivatives of which second ones are taken."""
    for i, row in enumerate(rows if strict else ()):
        if not row.requires_grad:
            raise RuntimeError(
                "While computing the hessian, found that the jacobian of the user-provided "
                f"function with respect to input {i} is independent of the input. This is not "
                "allowed in strict mode when create_graph=True."
            )


def _gradients(
    outputs: tuple,
    inputs: tuple,
    grad_outputs: tuple | None,
    create_graph: bool,
    keep: bool = False,
) -> tuple[Tensor | None, ...]:
    """grad() that skips outputs without history."""
    pairs = [
        (y, None if grad_outputs is None else grad_outputs[i])
        for i, y in enumerate(outputs)
        if y.requires_grad
    ]
    pairs = [(y, gy) for y, gy in pairs if grad_outputs is None or gy is not None]
    if not pairs:
        return (None,) * len(inputs)
    ys, gys = zip(*pairs)
    return _grad(
        ys,
        inputs,
        gys if grad_outputs is not None else None,
        create_graph=create_graph,
        retain_graph=keep or create_graph,
        allow_unused=True,
    )


def _fill(grads: tuple, like: tuple) -> tuple:
    return tuple(taeda.zeros_like(x) if g is None else g for g, x in zip(grads, like))


def _check_v(v: Any, like: tuple, function: str, role: str) -> tuple:
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"The vector v can only be None if {role} is a single Tensor with one element."
            )
        return (taeda.ones_like(like[0]),)
    _, values = _tuple(v, "v", function)
    if len(values) != len(like):
        if len(like) == 1:
            raise RuntimeError("The given v should contain a single Tensor.")
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(like)} but got {len(values)}."
        )
    for i, (a, b) in enumerate(zip(values, like)):
        if a.size() != b.size():
            raise RuntimeError(
                f"v has invalid size: should be {b.size()} but got {a.size()} (entry {i})."
            )
    return values


def vjp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple:
    """``(func(*inputs), v^T J)`` with J the Jacobian at ``inputs``.

    >>> from taeda.autograd.functional import vjp
    >>> vjp(lambda x: x ** 2, torch.tensor([1., 2.]), torch.tensor([1., 1.]))[1]
    tensor([2., 4.])
    """
    with recording():
        many, xs = _tuple(inputs, "inputs", "vjp")
        xs = _prepare(xs, create_graph)
        many_out, ys = _tuple(func(*xs), "outputs of the user-provided function", "vjp")
        vs = _check_v(v, ys, "vjp", "the user-provided function returns")
        _check_outputs(ys, strict)
        grads = _gradients(ys, xs, vs, create_graph)
        _check_dependence(grads, strict, create_graph)
        result = _fill(grads, xs)
    outputs = _finish(ys, create_graph)
    result = _finish(result, create_graph)
    return (outputs if many_out else outputs[0]), (result if many else result[0])


def jvp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple:
    """``(func(*inputs), J v)``, by differentiating the vjp with respect to its vector."""
    with recording():
        _, xs = _tuple(inputs, "inputs", "jvp")
        xs = _prepare(xs, create_graph)
        vs = _check_v(v, xs, "jvp", "the input to the user-provided function")
        many_out, ys = _tuple(func(*xs), "outputs of the user-provided function", "jvp")
        probes = tuple(taeda.zeros_like(y, requires_grad=True) for y in ys)
        _check_outputs(ys, strict)
        grads = _gradients(ys, xs, probes, create_graph=True)
        _check_dependence(grads, strict)
        parts = [(g, w) for g, w in zip(grads, vs) if g is not None and g.requires_grad]
        tangents: tuple = (None,) * len(probes)
        if parts:
            gs, ws = zip(*parts)
            tangents = _grad(gs, probes, ws, create_graph=create_graph, allow_unused=True)
        _check_dependence(tangents, strict, create_graph)
        result = _fill(tangents, ys)
    outputs = _finish(ys, create_graph)
    result = _finish(result, create_graph)
    return (outputs if many_out else outputs[0]), (result if many_out else result[0])


def _jacobian_by_columns(func: Callable, inputs: Any) -> Any:
    """Forward mode: one pass an input element."""
    from taeda.autograd import forward_ad

    many, xs = _tuple(inputs, "inputs", "jacobian")
    columns: list[list[list[Tensor]]] = []  # input, element, output
    many_out, out_shapes = False, []
    with outside_inference(), forward_ad.dual_level():
        for i, x in enumerate(xs):
            of_input = []
            for k in range(x.numel()):
                direction = taeda.zeros_like(x).reshape(-1)
                direction[k] = 1
                duals = [_C._cut_history(x) for x in xs]
                duals[i] = forward_ad.make_dual(duals[i], direction.view(x.shape))
                many_out, ys = _tuple(
                    func(*duals), "outputs of the user-provided function", "jacobian"
                )
                parts = [forward_ad.unpack_dual(y) for y in ys]
                out_shapes = [p.primal.shape for p in parts]
                of_input.append(
                    [taeda.zeros_like(p.primal) if p.tangent is None else p.tangent for p in parts]
                )
            columns.append(of_input)
    result = tuple(
        tuple(
            taeda.stack([column[o].reshape(-1) for column in columns[i]], -1).view(
                (*out_shapes[o], *xs[i].shape)
            )
            for i in range(len(xs))
        )
        for o in range(len(out_shapes))
    )
    result = _finish(result, create_graph=False)
    result = result if many else tuple(row[0] for row in result)
    return result if many_out else result[0]


def _jacobian_by_vmap(func: Callable, inputs: Any, create_graph: bool, strategy: str) -> Any:
    from taeda.func import jacfwd, jacrev

    many, xs = _tuple(inputs, "inputs", "jacobian")
    many_out = False

    def on_tuples(*xs: Tensor) -> tuple:
        nonlocal many_out
        many_out, ys = _tuple(func(*xs), "outputs of the user-provided function", "jacobian")
        return ys

    by = jacrev if strategy == "reverse-mode" else jacfwd
    with recording():
        xs = _prepare(xs, True) if create_graph else tuple(_C._cut_history(x) for x in xs)
        rows = by(on_tuples, argnums=tuple(range(len(xs))))(*xs)
    rows = _finish(rows, create_graph)
    result = rows if many else tuple(row[0] for row in rows)
    return result if many_out else result[0]


def jacobian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of ``func`` at ``inputs``: entry [i][j] has output i's shape followed by "
    "input j's.

    ``strategy="forward-mode"`` takes one pass for each element of the inputs instead of one for
    each element of the outputs. With ``vectorize`` all passes are one, by vmap.

    >>> from taeda.autograd.functional import jacobian
    >>> jacobian(lambda x: x ** 2, torch.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError(
            "torch.autograd.functional.jacobian: `create_graph=True` and "
            '`strategy="forward-mode"` are not supported together (yet).'
        )
    if strict and vectorize:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not "
            "supported together. Please either set `strict=False` or `vectorize=False`."
        )
    if vectorize:
        return _jacobian_by_vmap(func, inputs, create_graph, strategy)
    if strategy == "forward-mode":
        return _jacobian_by_columns(func, inputs)
    with recording():
        many, xs = _tuple(inputs, "inputs", "jacobian")
        xs = _prepare(xs, create_graph)
        many_out, ys = _tuple(func(*xs), "outputs of the user-provided function", "jacobian")
        _check_outputs(ys, strict)
        rows: tuple = ()
        for o, y in enumerate(ys):
            of_output: list[list[Tensor]] = [[] for _ in xs]
            flat = y.reshape(-1)
            for k in range(flat.numel()):
                grads = _gradients((flat[k],), xs, None, create_graph, keep=True)
                _check_dependence(grads, strict, create_graph, f"Output {o}")
                for i, g in enumerate(_fill(grads, xs)):
                    of_output[i].append(g)
            rows += (
                tuple(
                    taeda.stack(parts).view((*y.shape, *x.shape))
                    if parts
                    else x.new_zeros((*y.shape, *x.shape))
                    for parts, x in zip(of_output, xs)
                ),
            )
    rows = _finish(rows, create_graph)
    result = rows if many else tuple(row[0] for row in rows)
    return result if many_out else result[0]


def hessian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a function with one one-element result.

    >>> from taeda.autograd.functional import hessian
    >>> hessian(lambda x: (x ** 3).sum(), torch.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    many, _ = _tuple(inputs, "inputs", "hessian")

    def gradient(*xs: Tensor) -> Any:
        result = jacobian(_scalar(func, "hessian", strict), xs, create_graph=True)
        _check_jacobian(result, strict)
        return result if many else result[0]

    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


def _scalar(func: Callable, name: str, strict: bool) -> Callable:
    def checked(*xs: Tensor) -> Tensor:
        y = func(*xs)
        _tuple(y, "outputs of the user-provided function", name)
        if not isinstance(y, Tensor):
            raise RuntimeError(f"The function given to {name} should return a single Tensor")
        if y.numel() != 1:
            raise RuntimeError(
                f"The Tensor returned by the function given to {name} should contain a single "
                f"element"
            )
        _check_outputs((y,), strict)
        return y.reshape(())

    return checked


def vhp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple:
    """``(func(*inputs), v^T H)`` with H the Hessian."""
    return _hessian_product("vhp", func, inputs, v, create_graph, strict)


def _hessian_product(
    name: str, func: Callable, inputs: Any, v: Any, create_graph: bool, strict: bool
) -> tuple:
    with recording():
        many, xs = _tuple(inputs, "inputs", name)
        xs = _prepare(xs, create_graph)
        vs = _check_v(v, xs, name, "the input to the user-provided function")
        y = _scalar(func, name, strict)(*xs)
        first = _gradients((y,), xs, None, create_graph=True)
        _check_dependence(first, strict)
        filled = _fill(first, xs)
        _check_jacobian(filled, strict)
        second = _gradients(filled, xs, vs, create_graph)
        _check_dependence(second, strict, create_graph, "The jacobian", "hessian")
        result = _fill(second, xs)
    output = _finish(y, create_graph)
    result = _finish(result, create_graph)
    return output, (result if many else result[0])


def hvp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple:
    """``(func(*inputs), H v)``; the Hessian is symmetric, so this is ``vhp``."""
    return _hessian_product("hvp", func, inputs, v, create_graph, strict)
