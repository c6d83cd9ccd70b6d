"""torch.library.opcheck: whether an operator does what its registrations say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda import _C, _ops
from taeda._library.autograd import tensors_in
from taeda._library.custom_op import OPDEFS
from taeda._library.fake_context import UnknownSize
from taeda.utils import _pytree as pytree


class OpCheckError(Exception):
    """An operator that is not registered as it behaves."""


def _copies(tree: Any) -> Any:
    def copy(value: Any) -> Any:
        if not isinstance(value, _C.Tensor):
            return value
        return value.detach().clone().requires_grad_(value.requires_grad)

    return pytree.tree_map(copy, tree)


def test_schema(op: _ops.OpOverload, args: tuple, kwargs: dict) -> None:
    """Arguments change only where the schema says so, and results are no arguments in disguise."""
    given, named = _copies((args, kwargs))
    before = _copies((given, named))
    # Without history: what is checked is the kernel.
    from taeda.autograd import no_grad

    with no_grad():
        results = op(*given, **named)
    for i, argument in enumerate(op._schema.arguments):
        if i < len(given):
            value, old = given[i], before[0][i]
        elif argument.name in named:
            value, old = named[argument.name], before[1][argument.name]
        else:
            continue
        for now, then in zip(tensors_in(value), tensors_in(old)):
            same = now.shape == then.shape and bool(
                (now.detach() == then.detach()).logical_or(now.detach() != now.detach()).all()
            )
            if not same and not argument.is_write:
                raise OpCheckError(
                    f"Argument {argument.name} is not defined as mutable but was mutated"
                )
    inputs = {t.data_ptr() for t in tensors_in((given, named)) if t.numel()}
    for result, declared in zip(
        results if isinstance(results, tuple) else (results,), op._schema.returns
    ):
        for tensor in tensors_in(result):
            if tensor.numel() and tensor.data_ptr() in inputs and declared.alias_info is None:
                raise OpCheckError(
                    f"A result of {op} is not defined to alias an input but was aliasing"
                )


def test_autograd_registration(op: _ops.OpOverload, args: tuple, kwargs: dict) -> None:
    """An operator on tensors that require grad has a gradient registered."""
    if not any(t.requires_grad for t in tensors_in((args, kwargs))):
        return
    if _C._has_kernel(op, "Autograd") or _C._has_kernel(op, "CompositeImplicitAutograd"):
        return
    raise OpCheckError(
        f"{op.name()}: an argument requires grad, but the operator has no kernel for Autograd. If "
        "it is differentiable, give it a gradient with torch.library.register_autograd."
    )


def _has_fake(op: _ops.OpOverload) -> bool:
    """Whether something was registered that answers for tensors on device meta."""
    definition = OPDEFS.get(op.name())
    if definition is not None:
        return "meta" in definition._kernels or not op._schema.returns
    keys = ("Meta", "CompositeImplicitAutograd", "CompositeExplicitAutograd")
    return any(_C._has_kernel(op, key) for key in keys)


def test_faketensor(op: _ops.OpOverload, args: tuple, kwargs: dict) -> None:
    """On device meta the operator gives the shapes and dtypes that it gives on real tensors.

    What a fake implementation raises is raised; only one that is missing is reported as such.
    """

    def to_meta(value: Any) -> Any:
        return value.detach().to("meta") if isinstance(value, _C.Tensor) else value

    from taeda.autograd import no_grad

    with no_grad():
        given, named = _copies((args, kwargs))
        real = tensors_in(op(*given, **named))
        if not _has_fake(op):
            raise OpCheckError(
                f"{op} has no fake implementation; add one with torch.library.register_fake"
            )
        fake_args, fake_kwargs = pytree.tree_map(to_meta, (args, kwargs))
        try:
            fake = tensors_in(op(*fake_args, **fake_kwargs))
        except UnknownSize:
            return  # it says that its sizes depend on values
    if len(real) != len(fake):
        raise OpCheckError(f"{op} gives {len(real)} tensors, its fake implementation {len(fake)}")
    for r, f in zip(real, fake):
        for what in ("shape", "dtype", "stride"):
            a, b = getattr(r, what), getattr(f, what)
            a, b = (a(), b()) if callable(a) else (a, b)
            if a != b:
                raise OpCheckError(
                    f"{op} gives a tensor of {what} {a}, its fake implementation of {b}"
                )


def _differentiated(op: _ops.OpOverload, args: tuple, kwargs: dict) -> tuple[list, list]:
    """The results of a call, and the gradients of the arguments that require grad."""
    from taeda.autograd import grad

    leaves = [t for t in tensors_in((args, kwargs)) if t.requires_grad]

    def written(value: Any) -> Any:  # a leaf could not be
        needs = isinstance(value, _C.Tensor) and value.requires_grad
        return value.clone() if needs else value

    given, named = pytree.tree_map(written, (args, kwargs))
    results = tensors_in(op(*given, **named))
    recorded = [r for r in results if r.requires_grad]
    if not leaves or not recorded:
        return results, []
    ones = [r.new_ones(r.shape) for r in recorded]
    return results, list(grad(recorded, leaves, ones, allow_unused=True))


def test_aot_dispatch(op: _ops.OpOverload, args: tuple, kwargs: dict) -> None:
    """Forward and backward run on real tensors and on device meta, with the same metadata.

    What they raise is raised. On device meta backward, too, must do without data.
    """

    def to_meta(value: Any) -> Any:
        if not isinstance(value, _C.Tensor):
            return value
        return value.detach().to("meta").requires_grad_(value.requires_grad)

    real = _differentiated(op, *_copies((args, kwargs)))
    try:
        fake = _differentiated(op, *pytree.tree_map(to_meta, (args, kwargs)))
    except UnknownSize:
        return
    for what, ours, theirs in zip(("results", "gradients"), real, fake):
        found = [None if t is None else (t.shape, t.dtype) for t in ours]
        expected = [None if t is None else (t.shape, t.dtype) for t in theirs]
        if found != expected:
            raise OpCheckError(f"{op} gives {what} of {found}, without data of {expected}")


TESTS = {
    "test_schema": test_schema,
    "test_autograd_registration": test_autograd_registration,
    "test_faketensor": test_faketensor,
    "test_aot_dispatch_dynamic": test_aot_dispatch,
    "test_aot_dispatch_static": test_aot_dispatch,
}
DEFAULT_TESTS = tuple(name for name in TESTS if name != "test_aot_dispatch_static")


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = DEFAULT_TESTS,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, str]:
    """Runs an operator on arguments and checks its schema, gradient and fake implementation.

    PyTorch's two tests with its compiler (test_aot_dispatch_*) run forward and backward with data
    and without.
    """
    if not isinstance(op, _ops.OpOverload):
        op = getattr(op, "_opoverload", None) or getattr(op, "default", op)
    if not isinstance(op, _ops.OpOverload):
        raise ValueError(f"opcheck(op, ...): op must be an operator of torch.ops, got {type(op)}")
    wanted = [test_utils] if isinstance(test_utils, str) else list(test_utils)
    results: dict[str, Any] = {}
    for name in wanted:
        if name not in TESTS:
            raise ValueError(f"test_utils should be a subset of {set(TESTS)}, got {name}")
        try:
            TESTS[name](op, args, kwargs or {})
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error}") from error
            results[name] = error
        else:
            results[name] = "SUCCESS"
    return results
