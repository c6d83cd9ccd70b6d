"""Gradients against finite differences.

The module is callable: ``torch.autograd.gradcheck(f, x)`` and
``torch.autograd.gradcheck.gradcheck(f, x)`` are the same.
"""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import taeda
from taeda import _missing
from taeda._C import Tensor
from taeda.autograd import grad as _grad

__all__ = ["gradcheck", "gradgradcheck", "GradcheckError"]


class GradcheckError(RuntimeError):
    """A gradient differs from what it should be."""


def _as_tuple(value: Any) -> tuple:
    if isinstance(value, (tuple, list)):
        return tuple(value)
    return (value,)


def _differentiable(values: Iterable[Any]) -> list[Tensor]:
    return [
        v
        for v in values
        if isinstance(v, Tensor) and (v.is_floating_point() or v.is_complex()) and v.requires_grad
    ]


def _inputs_to_check(values: Iterable[Any]) -> list[Tensor]:
    return [v for v in values if isinstance(v, Tensor) and v.requires_grad]


def _directions(t: Tensor) -> list[tuple[complex, str]]:
    return [(1.0, "real"), (1j, "imag")] if t.is_complex() else [(1.0, "real")]


def _evaluate(func: Callable, inputs: tuple) -> list[Tensor]:
    outputs = _as_tuple(func(*inputs))
    return [
        y for y in outputs if isinstance(y, Tensor) and (y.is_floating_point() or y.is_complex())
    ]


def _as_reals(t: Tensor) -> Tensor:
    """The values as one row of real numbers; a complex number counts as two."""
    flat = t.detach().reshape(-1)
    reals = taeda.view_as_real(flat.resolve_conj()).reshape(-1) if t.is_complex() else flat
    return reals.to(taeda.float64)


def _perturbed(func: Callable, inputs: tuple, outputs: list[Tensor]) -> list[Tensor]:
    """The outputs at changed inputs as reals; AssertionError where they are other tensors."""
    found = _evaluate(func, inputs)
    for what, of in (("shape", lambda y: y.shape), ("dtype", lambda y: y.dtype)):
        before, after = [of(y) for y in outputs], [of(y) for y in found]
        if before != after:
            raise AssertionError(
                f"Expected `func` to return outputs with the same {what} when inputs are "
                f"perturbed, but got {after} and {before} without"
            )
    return [_as_reals(y.detach()).clone() for y in found]


def _numerical_jacobians(func: Callable, inputs: tuple, x: Tensor, eps: float) -> list[Tensor]:
    """For each output, d(reals of output)/d(reals of x) as (x reals, output reals), by central "
    "differences."""
    data = x.data
    outputs = _evaluate(func, inputs)
    rows: list[list[Tensor]] = []
    for index in _indices(x.shape):
        for step, _ in _directions(x):
            original = data[index].clone()
            data[index] = original + eps * step
            plus = _perturbed(func, inputs, outputs)
            data[index] = original - eps * step
            minus = _perturbed(func, inputs, outputs)
            data[index] = original
            rows.append([(a - b) / (2 * eps) for a, b in zip(plus, minus)])
    sizes = [_as_reals(y.detach()).numel() for y in outputs]
    return [_matrix([row[o] for row in rows], size) for o, size in enumerate(sizes)]


def _matrix(rows: list[Tensor], columns: int) -> Tensor:
    """The rows one below the other; a matrix of the right width where there are none."""
    return taeda.stack(rows) if rows else taeda.zeros(0, columns, dtype=taeda.float64)


def _indices(shape: Sequence[int]) -> Iterable[tuple[int, ...]]:
    index: list[tuple[int, ...]] = [()]
    for n in shape:
        index = [(*i, k) for i in index for k in range(n)]
    return index


def _analytical_columns(
    output: Tensor, x: Tensor, inputs: list[Tensor], check_undefined: bool
) -> Tensor:
    """The same matrix by backward: one pass for each real number of the output."""
    columns = []
    for index in _indices(output.shape):
        for step, _ in _directions(output):
            gy = taeda.zeros_like(output)
            gy[index] = step
            if output.requires_grad:
                (g,) = _grad(output, x, gy, retain_graph=True, allow_unused=True)
            else:
                g = None
            if g is not None:
                _check_layout(0, g, x)
            if g is not None and g.shape != x.shape:
                raise GradcheckError(
                    f"Analytical gradient has incorrect size: {tuple(g.shape)} for an input of "
                    f"{tuple(x.shape)}"
                )
            columns.append(taeda.zeros_like(x) if g is None else g)
    # The gradient convention: g = dL/d(re) + i dL/d(im), so its parts are the derivatives.
    return _matrix([_as_reals(g) for g in columns], _as_reals(x).numel()).t()


def _close(a: Tensor, b: Tensor, rtol: float, atol: float) -> bool:
    return a.shape == b.shape and taeda.allclose(a.to(b.device), b, rtol, atol)


def _mismatch(kind: str, o: int, i: int, numerical: Tensor, analytical: Tensor) -> str:
    of = "Jacobian computed with forward mode" if "forward" in kind else "Jacobian"
    return (
        f"{of} mismatch for output {o} with respect to input {i} ({kind}),\n"
        f"numerical:{numerical}\nanalytical:{analytical}\n"
    )


def _check_jacobian(
    kind: str, o: int, i: int, y: Tensor, jacobians: tuple[Tensor, Tensor], rtol: float, atol: float
) -> None:
    """GradcheckError where the Jacobian (inputs, outputs) differs from the numerical one."""
    analytical, numerical = jacobians
    if _close(analytical, numerical, rtol, atol):
        return
    text = _mismatch(kind, o, i, numerical, analytical)
    if y.is_complex():
        imaginary = _close(analytical[:, 1::2], numerical[:, 1::2], rtol, atol)
        part = "real" if imaginary else "imaginary"
        text = f"While considering the {part} part of complex outputs only, {text}"
    raise GradcheckError(text)


def _check_inputs(inputs: tuple) -> None:
    found = False
    for i, x in enumerate(inputs):
        if not (isinstance(x, Tensor) and x.requires_grad):
            continue
        found = True
        if x.dtype not in (taeda.float64, taeda.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or "
                f"complex. This check will likely "
                "fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=3,
            )
        content = x._values() if x.is_sparse else x.values() if x._is_any_sparse() else x
        if any(st == 0 and n > 1 for st, n in zip(content.stride(), content.shape)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs "
                f"that are non-overlapping to be "
                "able to compute the numerical gradients correctly. You should call .contiguous "
                "on the input before passing it "
                "to gradcheck."
            )
    if not found:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the "
            "them have requires_grad=True."
        )


def _check_reentrant(first: Tensor, second: Tensor, tolerance: float) -> None:
    if first.numel() and (first - second).abs().max().item() > tolerance:
        raise GradcheckError(
            "Backward is not reentrant, i.e., running backward with same input and grad_output "
            "multiple times gives different values, although analytical gradient matches "
            f"numerical gradient. The tolerance for nondeterminism was {tolerance}."
        )


def _check_backward(
    func: Callable, inputs: tuple, eps: float, atol: float, rtol: float, nondet_tol: float
) -> None:
    outputs = _evaluate(func, inputs)
    checked = _inputs_to_check(inputs)
    for i, x in enumerate(checked):
        numerical = _numerical_jacobians(func, inputs, x, eps)
        for o, y in enumerate(outputs):
            analytical = _analytical_columns(y, x, checked, False)
            again = _analytical_columns(y, x, checked, False)
            _check_reentrant(analytical, again, nondet_tol)
            _check_jacobian("backward", o, i, y, (analytical, numerical[o]), rtol, atol)


def _pushed_forward(
    func: Callable, inputs: tuple, x: Tensor, direction: Tensor, zeros: bool = True
) -> list[Tensor]:
    """The tangent of each output, as reals, where input ``x`` has the tangent ``direction``.

    The other inputs to check have tangents of zeros, or none.
    """
    from taeda.autograd import forward_ad

    def given(v: Any) -> Any:
        if not isinstance(v, Tensor):
            return v
        value = v.detach() if v.requires_grad else v
        if v is x:
            own = direction.clone() if direction._is_view() else direction
            return forward_ad.make_dual(value, own)  # a jvp may have to give a view of it
        if not (zeros and v.requires_grad and (v.is_floating_point() or v.is_complex())):
            return value
        return forward_ad.make_dual(value, taeda.zeros_like(value))

    with forward_ad.dual_level():
        outputs = _evaluate(func, tuple(map(given, inputs)))
        parts = [forward_ad.unpack_dual(y) for y in outputs]
        return [
            _as_reals(taeda.zeros_like(p.primal) if p.tangent is None else p.tangent).clone()
            for p in parts
        ]


def _check_undefined_forward(func: Callable, inputs: tuple) -> None:
    """No tangent of an input must mean the same as one of zeros."""
    checked = _inputs_to_check(inputs)
    generator = taeda.Generator().manual_seed(0)
    for x in checked:
        direction = _random_like(x, generator)
        with_zeros = _pushed_forward(func, inputs, x, direction)
        if len(checked) < 2:
            continue
        without = _pushed_forward(func, inputs, x, direction, zeros=False)
        for o, (a, b) in enumerate(zip(without, with_zeros)):
            if not taeda.allclose(a, b):
                raise GradcheckError(
                    f"The tangent of output {o} differs where inputs have undefined tangents "
                    f"from where these are zero:\nundefined:{a}\nzero:{b}\n"
                )


def _check_forward(func: Callable, inputs: tuple, eps: float, atol: float, rtol: float) -> None:
    checked = _inputs_to_check(inputs)
    outputs = _evaluate(func, inputs)
    for i, x in enumerate(checked):
        numerical = _numerical_jacobians(func, inputs, x, eps)
        rows: list[list[Tensor]] = []
        for index in _indices(x.shape):
            for step, _ in _directions(x):
                direction = taeda.zeros_like(x.detach())
                direction[index] = step
                rows.append(_pushed_forward(func, inputs, x, direction))
        for o in range(len(numerical)):
            analytical = _matrix([row[o] for row in rows], numerical[o].shape[1])
            jacobians = (analytical, numerical[o])
            _check_jacobian("forward mode", o, i, outputs[o], jacobians, rtol, atol)


def _random_vector(like: Tensor, generator: Any) -> Tensor:
    v = taeda.rand(_as_reals(like).numel(), dtype=taeda.float64, generator=generator)
    v = v.to(like.device)
    return v / v.norm() if v.numel() else v


def _from_reals(v: Tensor, like: Tensor) -> Tensor:
    if like.is_complex():
        return taeda.view_as_complex(v.view(*like.shape, 2)).to(like.dtype)
    return v.view(like.shape).to(like.dtype)


def _check_fast(
    func: Callable,
    inputs: tuple,
    eps: float,
    atol: float,
    rtol: float,
    backward: bool,
    forward: bool,
    nondet_tol: float,
) -> None:
    """One random projection an input and output: v^T J u by differences, and by the modes asked
    for."""
    generator = taeda.Generator().manual_seed(0)
    outputs = _evaluate(func, inputs)
    checked = _inputs_to_check(inputs)
    for i, x in enumerate(checked):
        u = _random_vector(x, generator)
        step = _from_reals(u, x)
        original = x.data.clone()  # put back to the bit: backward may compare what it saved
        x.data.copy_(original + eps * step)
        plus = _perturbed(func, inputs, outputs)
        x.data.copy_(original - eps * step)
        minus = _perturbed(func, inputs, outputs)
        x.data.copy_(original)
        pushed = _pushed_forward(func, inputs, x, step) if forward else []
        for o, y in enumerate(outputs):
            v = _random_vector(y, generator)
            numerical = (v * (plus[o] - minus[o]) / (2 * eps)).sum()
            found = {}
            if backward:
                found["fast mode"] = _pulled_back(y, x, _from_reals(v, y), u)
                again = _pulled_back(y, x, _from_reals(v, y), u)
                _check_reentrant(found["fast mode"], again, nondet_tol)
            if forward:
                found["fast mode, forward mode"] = (v * pushed[o]).sum()
            scale = max(1.0, float(_as_reals(y).numel()) ** 0.5)
            for kind, analytical in found.items():
                if not _close(analytical, numerical, rtol, atol * scale):
                    raise GradcheckError(_mismatch(kind, o, i, numerical, analytical))


def _pulled_back(y: Tensor, x: Tensor, gy: Tensor, u: Tensor) -> Tensor:
    """The product of u with the gradient of x for the gradient gy of y."""
    g = _grad(y, x, gy, retain_graph=True, allow_unused=True)[0] if y.requires_grad else None
    if g is not None:
        _check_layout(0, g, x)
    return u.new_zeros(()) if g is None else (_as_reals(g) * u).sum()


def _check_undefined_grad(func: Callable, inputs: tuple) -> None:
    """Backward must cope with results that received no gradient, one of them or all."""
    from taeda.autograd._nodes import UndefinedGrad

    outputs = [y for y in _evaluate(func, inputs) if y.requires_grad]
    checked = _inputs_to_check(inputs)
    undefined = [UndefinedGrad()(y) for y in outputs]
    several = range(len(outputs)) if len(outputs) > 1 else ()
    for only in (None, *several):
        given = [u if only in (None, k) else y for k, (u, y) in enumerate(zip(undefined, outputs))]
        zeros = [taeda.zeros_like(y) for y in outputs]
        try:
            grads = _grad(given, checked, zeros, retain_graph=True, allow_unused=True)
        except RuntimeError as error:
            warnings.warn(_UNDEFINED_HINT, stacklevel=4)
            raise GradcheckError(
                "Expected backward function to handle undefined output grads: where no gradient "
                f"arrives, its gradients are None or zeros. It raised: {error}"
            ) from error
        if any(g is not None and g.abs().sum().item() != 0 for g in grads):
            warnings.warn(_UNDEFINED_HINT, stacklevel=4)
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are "
                "undefined or zero"
            )


def _check_layout(i: int, g: Tensor, x: Tensor) -> None:
    """GradcheckError where the gradient of an input is laid out otherwise than the input."""
    if g.layout is x.layout is taeda.sparse_coo:
        for what in ("sparse_dim", "dense_dim"):
            got, expected = (getattr(t, what)() for t in (g, x))
            if got != expected:
                raise GradcheckError(
                    f"grad is sparse tensor, but has incorrect {what}: {got} instead of {expected}"
                )
    elif g.layout != x.layout and not x._is_any_sparse():
        raise GradcheckError(
            f"grad is incorrect layout: that of input {i} has {g.layout}, the input {x.layout}"
        )


def _check_multiplied(func: Callable, inputs: tuple) -> None:
    """For a gradient of zeros, backward must give zeros, of the inputs' layouts."""
    outputs = [y for y in _evaluate(func, inputs) if y.requires_grad]
    checked = _inputs_to_check(inputs)
    if not outputs:
        return
    zeros = [taeda.zeros_like(y) for y in outputs]
    for i, (g, x) in enumerate(zip(_grad(outputs, checked, zeros, allow_unused=True), checked)):
        if g is None:
            continue
        _check_layout(i, g, x)
        if g.to_dense().abs().sum().item() != 0:
            raise GradcheckError(
                f"backward not multiplied by grad_output: where that is zero, the gradient of "
                f"input {i} is {g}"
            )


_UNDEFINED_HINT = (
    "Backwards compatibility: New undefined gradient support checking feature is enabled by "
    "default, which may break a check that passed before; check_undefined_grad=False leaves it out."
)


def _of_differentiable(func: Callable, inputs: tuple) -> Callable:
    """`func` with only those of its outputs that require gradients, all of them where none does."""
    outputs = _as_tuple(func(*inputs))
    kept = [i for i, y in enumerate(outputs) if isinstance(y, Tensor) and y.requires_grad]
    if len(kept) in (0, len(outputs)):
        return func

    def chosen(*given: Any) -> tuple:
        found = _as_tuple(func(*given))
        return tuple(found[i] for i in kept)

    return chosen


def _check_outputs(func: Callable, inputs: tuple) -> None:
    outputs = _evaluate(func, inputs)
    if outputs and not any(y.requires_grad for y in outputs):
        # Everything independent of the inputs: the numerical Jacobian must be zero.
        for i, x in enumerate(_inputs_to_check(inputs)):
            for o, n in enumerate(_numerical_jacobians(func, inputs, x, 1e-6)):
                if n.numel() and n.abs().max().item() > 1e-8:
                    raise GradcheckError(
                        f"Numerical gradient for function expected to be zero (output {o}, input "
                        f"{i})"
                    )


def gradcheck(
    func: Callable,
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compares the gradients of ``func`` at ``inputs`` with central differences.

    ``inputs`` should be float64 or complex128. A complex number counts as two real ones, so real
    functions of complex tensors and the reverse are checked too. ``fast_mode`` checks one random
    projection instead of whole Jacobians. Elements of sparse tensors that have no value are
    constants with ``masked=True`` and variables of value 0 without.

    >>> x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradcheck(torch.sin, x)
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    for batched, name, needed, mode in (
        (check_batched_grad, "check_batched_grad", check_backward_ad, "check_backward_ad"),
        (check_batched_forward_grad, "check_batched_forward_grad", check_forward_ad,
         "check_forward_ad"),
    ):  # fmt: skip
        if batched and not needed:
            raise AssertionError(f"Setting {name}=True requires {mode} to be True")
    inputs = _as_tuple(inputs)
    try:
        _check_inputs(inputs)
        if any(isinstance(x, Tensor) and x._is_any_sparse() for x in inputs):
            from taeda.autograd._gradcheck_sparse import dense_form

            if check_backward_ad:
                _check_multiplied(func, inputs)
            func, inputs = dense_form(func, inputs, bool(masked))
        func = _of_differentiable(func, inputs)
        _check_outputs(func, inputs)
        if check_backward_ad:
            if fast_mode:
                _check_fast(func, inputs, eps, atol, rtol, True, False, nondet_tol)
            else:
                _check_backward(func, inputs, eps, atol, rtol, nondet_tol)
        if check_forward_ad:
            if fast_mode:
                _check_fast(func, inputs, eps, atol, rtol, False, True, nondet_tol)
            else:
                _check_forward(func, inputs, eps, atol, rtol)
            if check_undefined_grad:
                _check_undefined_forward(func, inputs)
        if check_backward_ad:
            if check_grad_dtypes:
                _check_dtypes(func, inputs)
            if check_batched_grad:
                _check_batched_grad(func, inputs)
            _check_multiplied(func, inputs)
            if check_undefined_grad:
                _check_undefined_grad(func, inputs)
        if check_forward_ad and check_batched_forward_grad:
            _check_batched_forward(func, inputs)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _random_like(x: Tensor, generator: taeda.Generator) -> Tensor:
    reals = taeda.randn(_as_reals(x.detach()).numel(), dtype=taeda.float64, generator=generator)
    return _from_reals(reals.to(x.device), x)


def _check_batch(compute: Callable, like: Tensor, what: str) -> None:
    """Whether `compute` under vmap gives what it gives for each of two tensors."""
    from taeda import _vmap_internals

    generator = taeda.Generator().manual_seed(0)
    rows = [_random_like(like, generator) for _ in range(2)]
    expected = [taeda.stack(columns) for columns in zip(*(compute(row) for row in rows))]
    try:
        batched = _vmap_internals.vmap(compute)(taeda.stack(rows))
    except RuntimeError as error:
        raise GradcheckError(f"While computing batched {what}, got: {error}") from error
    for i, (got, wanted) in enumerate(zip(batched, expected)):
        if not taeda.allclose(got, wanted):
            raise GradcheckError(
                f"For output {i}, batched {what} differ from those computed one by one:\n"
                f"batched:{got}\none by one:{wanted}\n"
            )


def _check_batched_grad(func: Callable, inputs: tuple) -> None:
    checked = _inputs_to_check(inputs)
    for y in _differentiable(_evaluate(func, inputs)):

        def gradients(gy: Tensor, y: Tensor = y) -> tuple:
            grads = _grad(y, checked, gy, retain_graph=True, allow_unused=True)
            return tuple(g for g in grads if g is not None)

        _check_batch(gradients, y, "gradients")


def _check_batched_forward(func: Callable, inputs: tuple) -> None:
    for x in _inputs_to_check(inputs):

        def tangents(direction: Tensor, x: Tensor = x) -> tuple:
            return tuple(_pushed_forward(func, inputs, x, direction))

        _check_batch(tangents, x, "tangents")


def _check_dtypes(func: Callable, inputs: tuple) -> None:
    outputs = [y for y in _evaluate(func, inputs) if y.requires_grad]
    checked = _inputs_to_check(inputs)
    grads = _grad(outputs, checked, [taeda.ones_like(y) for y in outputs], allow_unused=True)
    for i, (g, x) in enumerate(zip(grads, checked)):
        if g is not None and g.dtype != x.dtype:
            raise GradcheckError(f"Gradient of input {i} has dtype {g.dtype}, expected {x.dtype}")


def _given_gradients(outputs: Sequence[Tensor], strided: bool) -> tuple:
    """A random gradient for each output; ``strided``: one that is not contiguous."""
    generator = taeda.Generator().manual_seed(0)
    made = []
    for y in outputs:
        reals = taeda.randn(_as_reals(y).numel(), dtype=taeda.float64, generator=generator)
        gy = _from_reals(reals.to(y.device), y)
        if strided:
            gy = taeda.stack([gy, gy], -1).select(-1, 0)
        made.append(gy.detach().requires_grad_())
    return tuple(made)


def gradgradcheck(
    func: Callable,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compares second derivatives with central differences of the first.

    The second derivatives come from backward through backward (``check_rev_over_rev``), from
    forward mode through backward (``check_fwd_over_rev``), or from both in turn.

    >>> x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    >>> torch.autograd.gradgradcheck(torch.sin, x, check_fwd_over_rev=True)
    True
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError(
            "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True"
        )
    for name, wanted in (
        ("check_undefined_grad", check_undefined_grad),
        ("check_batched_grad", check_batched_grad),
    ):
        if wanted and not check_rev_over_rev:
            raise AssertionError(f"Setting {name}=True requires check_rev_over_rev to be True")
    inputs = _as_tuple(inputs)
    if grad_outputs is None:
        outputs = _differentiable(_as_tuple(func(*inputs)))
        grad_outputs = _given_gradients(outputs, gen_non_contig_grad_outputs)
    else:
        grad_outputs = _as_tuple(grad_outputs)
    count = len(inputs)
    checked = [isinstance(x, Tensor) and x.requires_grad for x in inputs + grad_outputs]
    depends: list[bool] = []  # on which of the inputs the outputs do, by the first call

    def gradient(*args: Any) -> tuple:
        # Forward mode hands over dual tensors, which do not require grad yet.
        args = tuple(x.requires_grad_() if at else x for x, at in zip(args, checked))
        xs = tuple(x.view_as(x) if at else x for x, at in zip(args[:count], checked))
        outputs = _differentiable(_as_tuple(func(*xs)))
        if not outputs:  # as of empty inputs, on which nothing depends
            return ()
        wanted = [x for x, at in zip(xs, checked) if at]
        grads = _grad(outputs, wanted, args[count:], create_graph=True, allow_unused=True)
        if not depends:
            depends.extend(g is not None for g in grads)
        # Forward mode may record other steps, which find nothing where backward found zeros.
        made = (taeda.zeros_like(x) if g is None else g for x, g in zip(wanted, grads))
        return tuple(g for g, found in zip(made, depends) if found)

    def recorded(*args: Any) -> tuple:
        # Differences are taken under no_grad; the gradients themselves still need a graph.
        if taeda.is_grad_enabled():
            return gradient(*args)
        with taeda.enable_grad():
            return tuple(g.detach() for g in gradient(*args))

    return gradcheck(
        recorded,
        inputs + grad_outputs,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


class _CallableModule(types.ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> bool:
        return gradcheck(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule

__getattr__, __dir__ = _missing.attributes(__name__)
