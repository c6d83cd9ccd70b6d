"""torch.library.custom_op: a Python function as an operator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from taeda import _C, _ops
from taeda._library.autograd import autograd_kernel, tensors_in
from taeda._library.fake_context import in_context
from taeda._library.infer_schema import infer_schema
from taeda._library.tags import Tag, checked, given

DEVICE_KEYS = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}

# "ns::name" -> the operator that custom_op made last under that name
OPDEFS: dict[str, CustomOpDef] = {}


def check_dispatch_class(kind: Any) -> type:
    """The class itself; TypeError where it has no `__torch_dispatch__`."""
    if isinstance(kind, type) and hasattr(kind, "__torch_dispatch__"):
        return kind
    raise TypeError(
        f"register_torch_dispatch(): expected a class with __torch_dispatch__, got {kind!r}"
    )


class CustomOpDef:
    """An operator made by `custom_op`: call it, or give it kernels, a gradient, a vmap rule."""

    _library: Any

    def __init__(self, namespace: str, name: str, schema: str, function: Callable):
        self._namespace, self._name, self._schema = namespace, name, schema
        self._init_fn = function
        self._qualname = f"{namespace}::{name}"
        self.__name__ = name
        self._kernels: dict[str | None, Callable] = {}
        self._disabled: set[str] = set()
        self._vmap: Any = None
        self._has_vmap = False
        self._rules: set[type] = set()  # classes with an entry in _C._torch_dispatch_rules
        previous = OPDEFS.pop(self._qualname, None)
        if previous is not None:
            previous._library.destroy()
            for kind in previous._rules:
                del _C._torch_dispatch_rules[self._qualname, kind]
        self._library = _C._Library(namespace)
        self._library.define(name + schema)
        OPDEFS[self._qualname] = self
        self._impl_autograd(autograd_kernel(self._opoverload, None, None))
        self._library.impl(name, "Meta", self._without_fake)

    def _without_fake(self, *args: Any, **kwargs: Any) -> None:
        """The shapes of an operator without results are known; others have to be told."""
        if self._opoverload._schema.returns:
            raise RuntimeError(
                f"There was no fake impl registered for {self}. It is what runs for tensors on "
                f"device meta. Please use `{self.__name__}.register_fake` to add a fake impl."
            )

    @property
    def _opoverload(self) -> _ops.OpOverload:
        return _C._operator(self._qualname, "")

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._opoverload(*args, **kwargs)

    def register_kernel(
        self, device_types: str | Sequence[str] | None, fn: Callable | None = None, /
    ) -> Callable:
        """Gives the operator a kernel for the devices named; for all without a name."""

        every: Sequence[str | None] = (None,)
        types = [device_types] if isinstance(device_types, str) else device_types or every
        keys = ["CompositeExplicitAutograd" if t is None else _device_key(t) for t in types]

        def register(function: Callable) -> Callable:
            for device, key in zip(types, keys):
                self._kernels[device] = function
                self._library.impl(self._name, key, self._checked(function))
            return function

        return register if fn is None else register(fn)

    def _checked(self, function: Callable) -> Callable:
        """The kernel with a check that it returns no argument: a schema would have to say so."""
        name = self._qualname

        def kernel(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            given = {_memory(t) for t in tensors_in((args, kwargs)) if _has_memory(t)}
            seen: set[int] = set()
            for tensor in tensors_in(result):
                if not _has_memory(tensor):
                    continue
                memory = _memory(tensor)
                if memory in given or memory in seen:
                    raise RuntimeError(
                        f"{name} (with implementation in {function.__module__}): The output of "
                        "this custom operator (1) must not also be an input to this custom "
                        "operator and (2) may not alias any inputs to this custom operator or "
                        "other returns. The most common way to trigger this error is if we have "
                        "y = custom_op(x) and y and x are the same Tensor. Please instead return a "
                        "clone of the offending output tensor(s) (e.g. return x.clone()) or "
                        "refactor the custom operator to not return y."
                    )
                seen.add(memory)
            return result

        return kernel

    def register_fake(self, fn: Callable, /) -> Callable:
        """Gives the function that works out shapes and dtypes only: it runs for device meta."""
        self._library.impl(self._name, "Meta", in_context(self._qualname, fn))
        self._kernels["meta"] = fn
        return fn

    register_abstract = register_fake

    def register_autograd(
        self, backward: Callable, /, *, setup_context: Callable | None = None
    ) -> None:
        """Gives the gradient: backward(ctx, *grads), and what setup_context saves for it."""
        if self._opoverload._schema.is_mutable:
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self} with schema "
                f"{self._opoverload._schema}. Please create a functional operator and register an "
                "autograd formula for that."
            )
        kernel = autograd_kernel(self._opoverload, backward, setup_context)
        self._impl_autograd(kernel)

    def _impl_autograd(self, kernel: Callable) -> None:
        """Without keys, and only for calls that could be recorded."""
        self._library.impl(self._name, "Autograd", kernel, False, True)

    def register_vmap(self, func: Callable | None = None) -> Callable:
        """Gives the rule for torch.vmap: func(info, in_dims, *args) -> (result, out_dims). Without
        one, the operator runs sample by sample."""

        def register(function: Callable) -> Callable:
            from taeda.func._rules import operator_kernel

            self._vmap = function
            kernel = operator_kernel(self._opoverload, lambda *args, **kw: self._vmap(*args, **kw))
            if not self._has_vmap:
                self._library.impl(self._name, "FuncTorchBatched", kernel)
                self._has_vmap = True
            return function

        return register if func is None else register(func)

    def register_torch_dispatch(
        self, torch_dispatch_class: type, fn: Callable | None = None, /
    ) -> Callable:
        """Gives what answers for a class's `__torch_dispatch__` when asked about the operator:
        fn(mode_or_class, func, types, args, kwargs). The last one given counts."""

        def register(function: Callable) -> Callable:
            self._rules.add(check_dispatch_class(torch_dispatch_class))
            _C._torch_dispatch_rules[self._qualname, torch_dispatch_class] = function
            return function

        return register if fn is None else register(fn)

    def register_autocast(self, device_type: str, cast_inputs: _C.dtype) -> None:
        """Casts floating arguments to a dtype in blocks of torch.autocast."""
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if device_type != "cpu":
            raise ValueError(f"Unknown device type: {device_type}")
        op = self._opoverload

        def cast(value: Any) -> Any:
            floating = isinstance(value, _C.Tensor) and value.is_floating_point()
            return value.to(cast_inputs) if floating and value.dtype != _C.float64 else value

        def kernel(*args: Any, **kwargs: Any) -> Any:
            from taeda.utils import _pytree as pytree

            args, kwargs = pytree.tree_map(cast, (args, kwargs))
            return op._redispatch_below("Autocast", args, kwargs)

        self._library.impl(self._name, "AutocastCPU", kernel)

    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Any:
        """A context in which the kernel of one device gives way to the one for all devices."""
        import contextlib

        @contextlib.contextmanager
        def block() -> Any:
            yield

        kernel = self._kernels.get(device_type)
        if kernel is None or enabled:
            return block()

        @contextlib.contextmanager
        def disabled() -> Any:
            fallback = self._kernels.get(None, self._init_fn)
            self._library.impl(self._name, _device_key(device_type), self._checked(fallback))
            try:
                yield
            finally:
                self._library.impl(self._name, _device_key(device_type), self._checked(kernel))

        return disabled()


def _memory(tensor: _C.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _has_memory(tensor: _C.Tensor) -> bool:
    return tensor.numel() > 0 and tensor.device.type != "meta" and tensor.data_ptr() != 0


def _device_key(device: str) -> str:
    if device not in DEVICE_KEYS:
        raise ValueError(f"register_kernel: there is no device type '{device}'")
    return DEVICE_KEYS[device]


def custom_op(
    name: str,
    fn: Callable | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Decorator: the function becomes the operator "namespace::name", called by its schema.

    The schema comes from the annotations; `mutates_args` names the arguments that it writes.

    >>> @torch.library.custom_op("doc::twice", mutates_args=())
    ... def twice(x: torch.Tensor) -> torch.Tensor:
    ...     return x * 2
    >>> twice(torch.ones(2))
    tensor([2., 2.])
    """

    def make(function: Callable) -> CustomOpDef:
        namespace, _, opname = name.partition("::")
        if not opname or "." in opname:
            raise ValueError(f"Expected `name` to be of the form `namespace::name`, got {name}")
        text = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        made = CustomOpDef(namespace, opname, text, function)
        if schema is not None:
            written = {a.name for a in made._opoverload._schema.arguments if a.is_write}
            expected = written if isinstance(mutates_args, str) else set(mutates_args)
            if written != expected:
                made._library.destroy()
                raise ValueError(
                    f"Attempted to create a custom op with `mutates_args={mutates_args}` and "
                    f"`schema={schema}. The schema suggests that the op mutates {written}which is "
                    "different from what was provided to us in `mutates_args`. Please make these "
                    "consistent."
                )
        made.register_kernel(device_types)(function)
        given[made._qualname] = checked([*(tags or ()), Tag.pt2_compliant_tag])
        return made

    return make if fn is None else make(fn)
