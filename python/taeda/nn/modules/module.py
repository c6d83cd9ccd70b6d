"""Module: the base class of layers and models."""

from __future__ import annotations

import itertools
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, Protocol, TypeVar

import taeda
from taeda import Tensor
from taeda.nn.parameter import Buffer, Parameter, is_lazy
from taeda.utils.hooks import BackwardHook, RemovableHandle

from . import _hooks
from ._errors import note_module
from ._hooks import *  # noqa: F403  the global hooks are public here
from ._hooks import global_call_hooks as _global_call_hooks

__all__ = [*_hooks.__all__, "Module"]

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"
T = TypeVar("T", bound="Module")
_Arguments = ParamSpec("_Arguments")
_Result_co = TypeVar("_Result_co", covariant=True)

if TYPE_CHECKING:

    class _HasForward(Protocol[_Arguments, _Result_co]):
        """A module by the types of its forward: those of its call."""

        @property
        def forward(self) -> Callable[_Arguments, _Result_co]: ...


class IncompatibleKeys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class _IncompatibleKeys(IncompatibleKeys):
    """What ``load_state_dict`` did not find and did not know."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class _WrappedHook:
    """A hook that is passed its module (held weakly) as the first argument."""

    def __init__(self, hook: Callable, module: Module | None = None) -> None:
        self.hook = hook
        self.with_module = module is not None
        if module is not None:
            self.module = weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict:
        state = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state: dict) -> None:
        self.hook = state["hook"]
        self.with_module = state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("You are trying to revive the hook of a dead Module!")
            self.module = weakref.ref(state["module"])


def _not_a_module(value: Any) -> TypeError:
    """The error of a container that was given something else, with what may have been meant."""
    name = getattr(value, "__name__", "")
    if callable(value) and name:
        module = getattr(value, "__module__", None) or "torch"
        error = TypeError(f"{module}.{name} is not a Module subclass")
        made = isinstance(value, type) and issubclass(value, Module)
        error.add_note(
            f"Fix: construct the layer, {name}()"
            if made
            else "Fix: functions have layers, nn.ReLU() for F.relu; for others write a Module"
        )
        return error
    error = TypeError(f"{_typename(value)} is not a Module subclass")
    if isinstance(value, list | tuple):
        error.add_note("Fix: give the layers one by one, Sequential(*layers)")
    return error


def _common_prefix(longer: list[str], shorter: list[str]) -> str:
    """ "module." where each of `longer` is one of `shorter` behind it, else nothing."""
    prefix = longer[0].partition(".")[0] + "."
    return prefix if {key.removeprefix(prefix) for key in longer} == {*shorter} else ""


def _prefix_fix(missing: list[str], unexpected: list[str]) -> str:
    """What to do where keys differ in a prefix only, as a wrapper of the model gives them."""
    if not missing or not unexpected:
        return ""
    if prefix := _common_prefix(unexpected, missing):
        return (
            f"Fix: the keys given begin with '{prefix}', of a wrapper such as DataParallel or "
            f"torch.compile: {{k.removeprefix('{prefix}'): v for k, v in state.items()}}, or save "
            f"the state of the model inside"
        )
    if prefix := _common_prefix(missing, unexpected):
        return (
            f"Fix: the keys given lack '{prefix}', which the model's begin with: load into "
            f"model.{prefix[:-1]}, or {{'{prefix}' + k: v for k, v in state.items()}}"
        )
    return ""


def _typename(value: Any) -> str:
    if isinstance(value, Tensor):
        return value.type()
    kind = type(value)
    prefix = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return prefix + kind.__qualname__


def _addindent(text: str, spaces: int) -> str:
    lines = text.split("\n")
    return "\n".join([lines[0], *(" " * spaces + line for line in lines[1:])])


def _unimplemented_forward(self: Module, *input: Any) -> None:
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function'
    )


def _parse_to(
    *args: Any,
    device: Any = None,
    dtype: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> tuple:
    """The arguments of ``to``: (device, dtype, ...), (dtype, ...), (tensor, ...), or keywords."""
    names = ["device", "dtype", "non_blocking", "copy"]
    given = {}
    if args:
        first = args[0]
        if isinstance(first, Tensor):
            device, dtype, args = first.device, first.dtype, args[1:]
            names = names[2:]
        elif isinstance(first, taeda.dtype):
            names = names[1:]
        if len(args) > len(names):
            raise TypeError(
                f"to() takes at most {len(names)} positional arguments, got {len(args)}"
            )
        given = dict(zip(names, args))
    device = given.get("device", device)
    dtype = given.get("dtype", dtype)
    non_blocking = given.get("non_blocking", non_blocking)
    if dtype is not None and not isinstance(dtype, taeda.dtype):
        raise TypeError(f"to() received an invalid dtype: {dtype!r} ({type(dtype).__name__})")
    if device is not None and not isinstance(device, taeda.device):
        device = taeda.device(device)
    return device, dtype, non_blocking, memory_format


_parse_to.__qualname__ = "to"  # whose arguments a TypeError is about
_parse_to = taeda._C._hint_keywords(_parse_to)


def _shares_kind(old: Tensor, new: Tensor) -> bool:
    """Whether ``old.data = new`` is possible: meta and real tensors do not turn into each other."""
    return (old.device.type == "meta") == (new.device.type == "meta")


class Module:
    """Base class of all layers and models: a tree of modules that own parameters and buffers.

    Attributes that are Parameters, Buffers or Modules are registered by assignment, in order, and
    found by ``parameters()``, ``state_dict()``, ``to()``, ``train()`` and ``apply()`` of every
    module above. Subclasses call ``super().__init__()`` first and define ``forward``; calling the
    module runs ``forward`` and the hooks around it. An error inside of a module names the path to
    it.

    Attributes:
        training: True after ``train()``, False after ``eval()``; layers such as `Dropout` and
            `BatchNorm1d` look at it.

    >>> class Net(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.fc = torch.nn.Linear(4, 2)
    ...     def forward(self, x):
    ...         return self.fc(x).relu()
    >>> [name for name, _ in Net().named_parameters()]
    ['fc.weight', 'fc.bias']
    >>> Net()(torch.rand(3, 4)).shape
    torch.Size([3, 2])
    """

    dump_patches: bool = False
    _version: int = 1
    training: bool
    call_super_init: bool = False
    _is_full_backward_hook: bool | None
    _compiled_call_impl: Callable | None = None
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Any]
    _backward_pre_hooks: OrderedDict[int, Callable]
    _backward_hooks: OrderedDict[int, Callable]
    _forward_hooks: OrderedDict[int, Callable]
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: OrderedDict[int, Callable]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    _state_dict_hooks: OrderedDict[int, Callable]
    _state_dict_pre_hooks: OrderedDict[int, Callable]
    _load_state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_post_hooks: OrderedDict[int, Callable]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if self.call_super_init is False and kwargs:
            raise TypeError(
                f"{type(self).__name__}.__init__() got an unexpected keyword argument "
                f"'{next(iter(kwargs))}'"
            )
        if self.call_super_init is False and args:
            raise TypeError(
                f"{type(self).__name__}.__init__() takes 1 positional argument but "
                f"{len(args) + 1} were given"
            )
        # Written past __setattr__: these are the tables that it looks things up in.
        fields = self.__dict__
        fields["training"] = True
        fields["_parameters"] = {}
        fields["_buffers"] = {}
        fields["_non_persistent_buffers_set"] = set()
        fields["_backward_pre_hooks"] = OrderedDict()
        fields["_backward_hooks"] = OrderedDict()
        fields["_is_full_backward_hook"] = None
        fields["_forward_hooks"] = OrderedDict()
        fields["_forward_hooks_with_kwargs"] = OrderedDict()
        fields["_forward_hooks_always_called"] = OrderedDict()
        fields["_forward_pre_hooks"] = OrderedDict()
        fields["_forward_pre_hooks_with_kwargs"] = OrderedDict()
        fields["_state_dict_hooks"] = OrderedDict()
        fields["_state_dict_pre_hooks"] = OrderedDict()
        fields["_load_state_dict_pre_hooks"] = OrderedDict()
        fields["_load_state_dict_post_hooks"] = OrderedDict()
        fields["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    forward: Callable[..., Any] = _unimplemented_forward

    # --- registration ---

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is part of the module's state without being trained.

        A buffer that is not ``persistent`` stays out of ``state_dict``.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        _check_name("buffer", name)
        if hasattr(self, name) and name not in self._buffers:
            raise KeyError(f"attribute '{name}' already exists")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{_typename(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        for hook in _hooks.global_buffer_registration_hooks.values():
            output = hook(self, name, tensor)
            if output is not None:
                tensor = output
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter; ``None`` reserves the name."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        _check_name("parameter", name)
        if hasattr(self, name) and name not in self._parameters:
            raise KeyError(f"attribute '{name}' already exists")
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{_typename(param)}' object to parameter '{name}' "
                    "(torch.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model "
                    f"parameters must be created explicitly. To express '{name}' "
                    "as a function of another Tensor, compute the value in "
                    "the forward() method."
                )
            for hook in _hooks.global_parameter_registration_hooks.values():
                output = hook(self, name, param)
                if output is not None:
                    param = output
        self._parameters[name] = param

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a child module; it can be reached as an attribute."""
        if not isinstance(module, Module) and module is not None:
            raise _not_a_module(module)
        if not isinstance(name, str):
            raise TypeError(f"module name should be a string. Got {_typename(name)}")
        if hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError('module name can\'t be empty string ""')
        self._modules[name] = self._run_module_registration_hooks(name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Alias of ``add_module``."""
        self.add_module(name, module)

    def _run_module_registration_hooks(self, name: str, module: Module | None) -> Module | None:
        for hook in _hooks.global_module_registration_hooks.values():
            output = hook(self, name, module)
            if output is not None:
                module = output
        return module

    # --- access by path ---

    def get_submodule(self, target: str) -> Module:
        """The submodule at a dotted path; ``""`` is the module itself. AttributeError if none."""
        if target == "":
            return self
        module: Module = self
        for item in target.split("."):
            if not hasattr(module, item):
                raise AttributeError(f"{module._get_name()} has no attribute `{item}`")
            module = getattr(module, item)
            if not isinstance(module, Module):
                raise AttributeError(f"`{item}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Replaces (or, unless ``strict``, adds) the submodule at a dotted path."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        parent_path, _, name = target.rpartition(".")
        parent = self.get_submodule(parent_path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _get_member(self, target: str) -> tuple[Module, str, Any]:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        return module, name, getattr(module, name)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path; AttributeError if there is none."""
        _, name, param = self._get_member(target)
        if not isinstance(param, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return param

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path; AttributeError if there is none."""
        module, name, buffer = self._get_member(target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return buffer

    def get_extra_state(self) -> Any:
        """What ``state_dict`` stores beside tensors; subclasses define it with set_extra_state."""
        raise RuntimeError(
            "Module.get_extra_state() is called only for classes that define it themselves."
        )

    def set_extra_state(self, state: Any) -> None:
        """Takes what ``get_extra_state`` returned when the state was saved."""
        raise RuntimeError(
            "Module.set_extra_state() is called only for classes that define it themselves."
        )

    # --- conversions ---

    def _apply(self: T, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> T:
        if recurse:
            for module in self.children():
                module._apply(fn)
        for key, param in self._parameters.items():
            if param is None:
                continue
            grad = param.grad
            with taeda.no_grad():
                applied = fn(param)
            if _shares_kind(param, applied):
                param.data = applied
                target = param
            else:
                target = Parameter(applied, param.requires_grad)
                self._parameters[key] = target
            if grad is not None:
                with taeda.no_grad():
                    grad_applied = fn(grad)
                if target is param and _shares_kind(grad, grad_applied):
                    # A gradient must match its tensor, which has already changed: set it anew.
                    requires_grad = grad.requires_grad
                    param.grad = None
                    grad.data = grad_applied
                    param.grad = grad.requires_grad_(requires_grad)
                else:
                    target.grad = grad_applied.requires_grad_(grad.requires_grad)
        for key, buffer in self._buffers.items():
            if buffer is None:
                continue
            applied = fn(buffer)
            if is_lazy(buffer) and not is_lazy(applied):  # keeps its class, which has no shape yet
                buffer.data = applied
            else:
                self._buffers[key] = applied
        return self

    def apply(self: T, fn: Callable[[Module], None]) -> T:
        """Calls ``fn`` on every submodule, children first, then on self. Returns self."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def cuda(self: T, device: Any = None) -> T:
        """Moves all parameters and buffers to a GPU."""
        return self._apply(lambda t: t.cuda(device))

    def xpu(self: T, device: Any = None) -> T:
        raise NotImplementedError("Module.xpu: no XPU device is supported")

    def cpu(self: T) -> T:
        """Moves all parameters and buffers to the CPU."""
        return self._apply(lambda t: t.cpu())

    def type(self: T, dst_type: Any) -> T:
        """Casts all parameters and buffers to ``dst_type``."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self: T) -> T:
        """Casts floating-point parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self: T) -> T:
        """Casts floating-point parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self: T) -> T:
        """Casts floating-point parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self: T) -> T:
        """Casts floating-point parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def to_empty(self: T, *, device: Any, recurse: bool = True) -> T:
        """Moves to ``device`` without copying: values are undefined afterwards."""
        return self._apply(lambda t: taeda.empty_like(t, device=device), recurse=recurse)

    def to(self: T, *args: Any, **kwargs: Any) -> T:
        """Moves and/or casts parameters and buffers, in place.

        ``to(device=None, dtype=None, non_blocking=False)``, ``to(dtype, non_blocking=False)``,
        ``to(tensor, non_blocking=False)``, ``to(memory_format=torch.channels_last)``. Only
        floating-point and complex dtypes; integer tensors keep theirs.
        """
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(
                    "nn.Module.to only accepts floating point or complex "
                    f"dtypes, but got desired dtype={dtype}"
                )
            if dtype.is_complex:
                warnings.warn(
                    "Complex modules are a new feature under active development whose design may "
                    "change, and some modules might not work as expected when using complex "
                    "tensors as parameters or buffers.",
                    stacklevel=2,
                )

        def convert(t: Tensor) -> Tensor:
            wanted = dtype if t.is_floating_point() or t.is_complex() else None
            options = (
                {}
                if memory_format is None or t.dim() not in (4, 5)
                else {"memory_format": memory_format}
            )
            try:
                return t.to(
                    device=t.device if device is None else device,
                    dtype=t.dtype if wanted is None else wanted,
                    non_blocking=non_blocking,
                    **options,
                )
            except NotImplementedError as error:
                if str(error) == "Cannot copy out of meta tensor; no data!":
                    raise NotImplementedError(
                        f"{error} Please use torch.nn.Module.to_empty() instead of "
                        "torch.nn.Module.to() when moving module from meta to a different device."
                    ) from None
                raise

        return self._apply(convert)

    def share_memory(self: T) -> T:
        """Moves all parameters and buffers to shared memory."""
        return self._apply(lambda t: t.share_memory_())

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Takes torch.compile's options; the module runs eagerly all the same."""
        taeda.compile(self, *args, **kwargs)
        self._compiled_call_impl = Module._call_impl

    # --- hooks ---

    def register_full_backward_pre_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """``hook(module, grad_output)`` runs before the module's backward; may replace it."""
        return _add_hook(self._backward_pre_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable) -> RemovableHandle:
        """The old form of ``register_full_backward_hook``, which sees only the last node."""
        if self._is_full_backward_hook is True:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a "
                "single Module. Please use only one of them."
            )
        self._is_full_backward_hook = False
        return _add_hook(self._backward_hooks, hook)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """``hook(module, grad_input, grad_output)`` runs when the module's gradients are known."""
        if self._is_full_backward_hook is False:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a "
                "single Module. Please use only one of them."
            )
        self._is_full_backward_hook = True
        return _add_hook(self._backward_hooks, hook, prepend)

    def register_forward_pre_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """``hook(module, args)`` runs before ``forward``; it may return the arguments to use.

        ``with_kwargs``: ``hook(module, args, kwargs)``, returning ``(args, kwargs)`` or None.
        """
        handle = _add_hook(
            self._forward_pre_hooks, hook, prepend, extra=[self._forward_pre_hooks_with_kwargs]
        )
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        return handle

    def register_forward_hook(
        self,
        hook: Callable,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """``hook(module, args, output)`` runs after ``forward``; it may return another output.

        ``with_kwargs``: ``hook(module, args, kwargs, output)``. ``always_call``: also when
        ``forward`` raised, with output None.
        """
        handle = _add_hook(
            self._forward_hooks,
            hook,
            prepend,
            extra=[self._forward_hooks_with_kwargs, self._forward_hooks_always_called],
        )
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        return handle

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """``hook(module, state_dict, prefix, local_metadata)`` may change state_dict in place."""
        hook._from_public_api = True  # type: ignore[attr-defined]
        return _add_hook(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable) -> RemovableHandle:
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was "
                "previously registered via register_state_dict_post_hook"
            )
        return _add_hook(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """``hook(module, prefix, keep_vars)`` runs before the module's state is collected."""
        return _add_hook(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable, with_module: bool = False
    ) -> RemovableHandle:
        return _add_hook(
            self._load_state_dict_pre_hooks, _WrappedHook(hook, self if with_module else None)
        )

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """``hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)``."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """``hook(module, incompatible_keys)`` runs after loading; it may edit the two lists."""
        return _add_hook(self._load_state_dict_post_hooks, hook)

    # --- the call ---

    if TYPE_CHECKING:

        def __call__(
            self: _HasForward[_Arguments, _Result_co],
            *args: _Arguments.args,
            **kwargs: _Arguments.kwargs,
        ) -> _Result_co: ...

    else:

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            if (
                self._forward_hooks
                or self._forward_pre_hooks
                or self._backward_hooks
                or self._backward_pre_hooks
                or _global_call_hooks
            ):
                return self._call_with_hooks(args, kwargs)
            try:
                return self.forward(*args, **kwargs)
            except Exception as error:
                note_module(error, self, args, kwargs)
                raise

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return Module.__call__(self, *args, **kwargs)

    _wrapped_call_impl = _call_impl

    def _call_with_hooks(self, args: tuple, kwargs: dict) -> Any:
        called: set[int] = set()
        try:
            return self._run_call(args, kwargs, called)
        except Exception as error:
            note_module(error, self, args, kwargs)
            self._run_always_called(args, kwargs, called)
            raise

    def _run_call(self, args: tuple, kwargs: dict, called: set[int]) -> Any:
        args, kwargs = self._run_forward_pre_hooks(args, kwargs)
        full_hooks, old_hooks = self._get_backward_hooks()
        pre_hooks = [h.hook for _, h in _hooks.global_hooks("backward_pre")]
        pre_hooks += self._backward_pre_hooks.values()
        bw_hook = None
        if full_hooks or pre_hooks:
            bw_hook = BackwardHook(self, full_hooks, pre_hooks)
            args = bw_hook.setup_input_hook(args)
        result = self.forward(*args, **kwargs)
        for hook_id, hook, with_kwargs, always in self._forward_hook_entries():
            if always:
                called.add(hook_id)
            output = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
            if output is not None:
                result = output
        if bw_hook is not None:
            if not isinstance(result, (Tensor, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a "
                    f"tuple of Tensors but received {type(result)}",
                    stacklevel=4,
                )
            result = bw_hook.setup_output_hook(result)
        if old_hooks:
            self._install_old_backward_hooks(old_hooks, result)
        return result

    def _run_forward_pre_hooks(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        entries = [(h.hook, False) for _, h in _hooks.global_hooks("forward_pre")]
        with_kwargs_ids = self._forward_pre_hooks_with_kwargs
        entries += [(h, i in with_kwargs_ids) for i, h in self._forward_pre_hooks.items()]
        for hook, with_kwargs in entries:
            if with_kwargs:
                output = hook(self, args, kwargs)
                if output is None:
                    continue
                if not (isinstance(output, tuple) and len(output) == 2):
                    raise RuntimeError(
                        "forward pre-hook must return None or a tuple "
                        f"of (new_args, new_kwargs), but got {output}."
                    )
                args, kwargs = output
            else:
                output = hook(self, args)
                if output is not None:
                    args = output if isinstance(output, tuple) else (output,)
        return args, kwargs

    def _forward_hook_entries(self) -> Iterator[tuple[int, Callable, bool, bool]]:
        for hook_id, entry in list(_hooks.global_hooks("forward")):
            yield hook_id, entry.hook, entry.with_kwargs, entry.always_call
        for hook_id, hook in list(self._forward_hooks.items()):
            yield (
                hook_id,
                hook,
                hook_id in self._forward_hooks_with_kwargs,
                hook_id in self._forward_hooks_always_called,
            )

    def _run_always_called(self, args: tuple, kwargs: dict, called: set[int]) -> None:
        for hook_id, hook, with_kwargs, always in self._forward_hook_entries():
            if not always or hook_id in called:
                continue
            try:
                hook(self, args, kwargs, None) if with_kwargs else hook(self, args, None)
            except Exception as error:
                warnings.warn(
                    "module forward hook with ``always_call=True`` raised an exception "
                    "that was silenced as another error was raised in forward: "
                    f"{error}",
                    stacklevel=4,
                )

    def _get_backward_hooks(self) -> tuple[list, list]:
        """(full hooks, old-style hooks)"""
        full: list = []
        old: list = []
        global_hooks = [h.hook for _, h in _hooks.global_hooks("backward")]
        (full if _hooks.global_backward_is_full else old).extend(global_hooks)
        (full if self._is_full_backward_hook else old).extend(self._backward_hooks.values())
        return full, old

    def _get_backward_pre_hooks(self) -> list:
        return list(self._backward_pre_hooks.values())

    def _install_old_backward_hooks(self, hooks: list, result: Any) -> None:
        var = result
        while not isinstance(var, Tensor):
            if isinstance(var, Mapping):
                var = next(v for v in var.values() if isinstance(v, Tensor))
            else:
                var = var[0]
        if var.grad_fn is None:
            return
        for hook in hooks:

            def wrapper(grad_input: Any, grad_output: Any, hook: Callable = hook) -> Any:
                return hook(self, grad_input, grad_output)

            var.grad_fn.register_hook(wrapper)

    # --- attributes ---

    def __getattr__(self, name: str) -> Tensor | Module:
        # Unrolled, as every access to a parameter or submodule comes through here.
        fields = self.__dict__
        if "_parameters" in fields:
            entries = fields["_parameters"]
            if name in entries:
                return entries[name]
        if "_modules" in fields:
            entries = fields["_modules"]
            if name in entries:
                return entries[name]
        if "_buffers" in fields:
            entries = fields["_buffers"]
            if name in entries:
                return entries[name]
        from taeda._near_names import no_attribute

        raise no_attribute(f"'{type(self).__name__}' object", name, lambda: _names_of(self))

    def __setattr__(self, name: str, value: Any) -> None:
        fields = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in fields:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_buffers", "_modules")
            self.register_parameter(name, value)
            return
        params = fields.get("_parameters")
        if params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
            return
        modules = fields.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                error = AttributeError("cannot assign module before Module.__init__() call")
                name = type(self).__name__
                error.add_note(f"Fix: call super().__init__() first in {name}.__init__")
                raise error
            self._forget(name, "_parameters", "_buffers")
            modules[name] = self._run_module_registration_hooks(name, value)
            return
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as child module '{name}' "
                    "(torch.nn.Module or None expected)"
                )
            modules[name] = self._run_module_registration_hooks(name, value)
            return
        buffers = fields.get("_buffers")
        if buffers is None or not (name in buffers or isinstance(value, Buffer)):
            object.__setattr__(self, name, value)
            return
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{_typename(value)}' as buffer '{name}' "
                "(torch.nn.Buffer, torch.Tensor or None expected)"
            )
        if isinstance(value, Buffer):
            self._forget(name, "_parameters", "_modules")
            self.register_buffer(name, value, getattr(value, "persistent", True))
            return
        for hook in _hooks.global_buffer_registration_hooks.values():
            output = hook(self, name, value)
            if output is not None:
                value = output
        buffers[name] = value

    def _forget(self, name: str, *tables: str) -> None:
        """Drops what `name` meant before it is registered as something else."""
        fields = self.__dict__
        fields.pop(name, None)
        for table in tables:
            fields.get(table, {}).pop(name, None)
        fields["_non_persistent_buffers_set"].discard(name)

    def __delattr__(self, name: str) -> None:
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            super().__delattr__(name)

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        # Objects pickled by earlier versions lack the newer tables.
        for table in (
            "_forward_pre_hooks",
            "_forward_pre_hooks_with_kwargs",
            "_forward_hooks_with_kwargs",
            "_forward_hooks_always_called",
            "_state_dict_hooks",
            "_state_dict_pre_hooks",
            "_load_state_dict_pre_hooks",
            "_load_state_dict_post_hooks",
            "_backward_pre_hooks",
        ):
            self.__dict__.setdefault(table, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    # --- state_dict ---

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if type(self).get_extra_state is not Module.get_extra_state:
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def state_dict(
        self,
        *args: Any,
        destination: dict | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict[str, Any]:
        """All parameters and persistent buffers by dotted name, sharing memory with the module.

        The values are detached unless ``keep_vars``. ``_metadata`` on the result holds the version
        of each submodule's layout.
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html"
                "#torch.nn.Module.state_dict for details.",
                FutureWarning,
                stacklevel=2,
            )
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()  # type: ignore[attr-defined]
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars
                )
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if result is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = result
        return destination

    def _load_from_state_dict(
        self,
        state_dict: dict,
        prefix: str,
        local_metadata: dict,
        strict: bool,
        missing_keys: list,
        unexpected_keys: list,
        error_msgs: list,
    ) -> None:
        """Copies from ``state_dict`` into this module only; subclasses may read older layouts."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(
                state_dict,
                prefix,
                local_metadata,
                strict,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
        buffers = (
            item
            for item in self._buffers.items()
            if item[0] not in self._non_persistent_buffers_set
        )
        members = itertools.chain(self._parameters.items(), buffers)
        state = {name: tensor for name, tensor in members if tensor is not None}
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, tensor in state.items():
            key = prefix + name
            if key in state_dict:
                self._load_tensor(name, key, tensor, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        extra_key = prefix + _EXTRA_STATE_KEY_SUFFIX
        if type(self).set_extra_state is not Module.set_extra_state:
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if strict:
            for key in state_dict:
                if not key.startswith(prefix) or key == extra_key:
                    continue
                name, dot, _ = key[len(prefix) :].partition(".")
                if name not in (self._modules if dot else state):
                    unexpected_keys.append(key)

    def _load_tensor(
        self, name: str, key: str, tensor: Tensor, given: Any, assign: bool, error_msgs: list
    ) -> None:
        if not isinstance(given, Tensor) and not hasattr(type(given), "__torch_function__"):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
                f"object from checkpoint but received {type(given)}"
            )
            return
        lazy = is_lazy(tensor)
        if not lazy and len(tensor.shape) == 0 and len(given.shape) == 1:
            given = given[0]  # scalars were saved as one-element vectors long ago
        if not lazy and given.shape != tensor.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {given.shape} from "
                f"checkpoint, the shape in current model is {tensor.shape}."
            )
            return
        if tensor.is_meta and not given.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta "
                "parameter in the current model, which is a no-op. (Did you mean to "
                "pass `assign=True` to assign items in the state dictionary to their "
                "corresponding key in the module instead of copying them in place?)",
                stacklevel=2,
            )
            return
        try:
            with taeda.no_grad():
                if not assign:
                    tensor.copy_(given)
                    return
                if isinstance(tensor, Parameter):
                    if isinstance(given, Parameter):
                        given = given.requires_grad_(tensor.requires_grad)
                    else:
                        given = Parameter(given, requires_grad=tensor.requires_grad)
                setattr(self, name, given)
        except Exception as error:
            error_msgs.append(
                f'While copying the parameter named "{key}", whose dimensions in the model are '
                f"{tensor.size()} and whose dimensions in the checkpoint are {given.size()}, "
                f"an exception occurred : {error.args}."
            )

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copies parameters and buffers from ``state_dict`` into the module and its descendants.

        With ``strict`` the names must match exactly, else RuntimeError lists every difference.
        With ``assign`` the given tensors take the place of the module's. Returns the missing and
        the unexpected keys.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing_keys: list[str] = []
        unexpected_keys: list[str] = []
        error_msgs: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata  # type: ignore[attr-defined]

        def load(module: Module, local_state: dict, prefix: str) -> None:
            local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local_metadata["assign_to_params_buffers"] = assign
            module._load_from_state_dict(
                local_state, prefix, local_metadata, True, missing_keys, unexpected_keys, error_msgs
            )
            for name, child in module._modules.items():
                if child is not None:
                    child_prefix = prefix + name + "."
                    child_state = {
                        k: v for k, v in local_state.items() if k.startswith(child_prefix)
                    }
                    load(child, child_state, child_prefix)
            incompatible = _IncompatibleKeys(missing_keys, unexpected_keys)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, incompatible) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not"
                        "expected to return new values, if incompatible_keys need to be modified,"
                        "it should be done inplace."
                    )

        load(self, state_dict, "")
        if strict:
            if missing_keys:
                names = ", ".join(f'"{k}"' for k in missing_keys)
                error_msgs.insert(0, f"Missing key(s) in state_dict: {names}. ")
            if unexpected_keys:
                names = ", ".join(f'"{k}"' for k in unexpected_keys)
                error_msgs.insert(
                    1 if missing_keys else 0, f"Unexpected key(s) in state_dict: {names}. "
                )
        if error_msgs:
            error = RuntimeError(
                "Error(s) in loading state_dict for {}:\n\t{}".format(
                    type(self).__name__, "\n\t".join(error_msgs)
                )
            )
            error.add_note(
                _prefix_fix(missing_keys, unexpected_keys)
                or "Fix: build the model as it was when it was saved, or rename the keys; "
                "strict=False lets keys be missing or unexpected, sizes never differ"
            )
            raise error
        return _IncompatibleKeys(missing_keys, unexpected_keys)

    # --- iteration ---

    def _named_members(
        self,
        get_members_fn: Callable,
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for module_prefix, module in modules:
            for name, member in get_members_fn(module):
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield module_prefix + ("." if module_prefix else "") + name, member

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of this module and, unless ``recurse`` is False, of its submodules."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """(dotted name, parameter) pairs; a shared parameter comes once."""
        yield from self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of this module and of its submodules."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """(dotted name, buffer) pairs."""
        yield from self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def children(self) -> Iterator[Module]:
        """The direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """(name, module) pairs of the direct submodules, each module once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below it, each once, or as often as it occurs."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """(dotted name, module) pairs, starting with this module under ``prefix``."""
        if memo is None:
            memo = set()
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = prefix + ("." if prefix else "") + name
                yield from module.named_modules(memo, path, remove_duplicate)

    # --- modes ---

    def train(self: T, mode: bool = True) -> T:
        """Sets training mode (dropout drops, batch norm uses the batch) in the whole tree."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: T) -> T:
        """Sets evaluation mode: ``train(False)``."""
        return self.train(False)

    def requires_grad_(self: T, requires_grad: bool = True) -> T:
        """Says for all parameters whether gradients are recorded."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of all parameters, or zeroes them in place."""
        if getattr(self, "_is_replica", False):
            warnings.warn(
                "Calling .zero_grad() from a module created with nn.DataParallel() has no effect. "
                "The parameters are copied (in a differentiable manner) from the original module. "
                "This means they are not leaf nodes in autograd and so don't accumulate "
                "gradients. "
                "If you need gradients in your forward method, consider using autograd.grad "
                "instead.",
                stacklevel=2,
            )
        for param in self.parameters():
            if param.grad is None:
                continue
            if set_to_none:
                param.grad = None
            else:
                if param.grad.grad_fn is not None:
                    param.grad.detach_()
                else:
                    param.grad.requires_grad_(False)
                param.grad.zero_()

    # --- text ---

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands in the parentheses of ``repr``."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({key}): {_addindent(repr(m), 2)}" for key, m in self._modules.items()]
        head = self._get_name() + "("
        if len(lines) == 1 and not children:
            return head + lines[0] + ")"
        if lines or children:
            return head + "\n  " + "\n  ".join(lines + children) + "\n)"
        return head + ")"

    def _repr_html_(self) -> str:
        """What Jupyter shows: the layers with their parameters and, after taeda.summary, shapes."""
        from taeda.nn._summary import _html, of_module

        return _html.table(of_module(self), repr(self))

    def __dir__(self) -> list[str]:
        keys = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(key for key in keys if not key[0].isdigit())

    def _replicate_for_data_parallel(self) -> Module:
        replica = type(self).__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = replica._buffers.copy()
        replica._modules = replica._modules.copy()
        replica._is_replica = True
        return replica


def _names_of(module: Module) -> Iterator[str]:
    """The attributes of a module, also of one whose __init__ has not run."""
    fields = module.__dict__
    for kind in ("_parameters", "_modules", "_buffers"):
        yield from fields.get(kind, ())
    yield from fields
    yield from dir(type(module))


def _check_name(kind: str, name: Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string. Got {_typename(name)}")
    if "." in name:
        raise KeyError(f'{kind} name can\'t contain "."')
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')


def _add_hook(
    hooks: OrderedDict, hook: Callable, prepend: bool = False, extra: list | None = None
) -> RemovableHandle:
    handle = RemovableHandle(hooks, extra_dict=extra)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle
