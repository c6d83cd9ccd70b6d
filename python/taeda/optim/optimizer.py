"""Optimizer: parameter groups, state and hooks; and the loop that most algorithms share."""

from __future__ import annotations

import functools
import math
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable
from copy import deepcopy
from itertools import chain
from typing import TYPE_CHECKING, Any

import taeda
from taeda import Tensor
from taeda._C import (  # type: ignore[attr-defined]
    _set_grad_enabled,
    _torch_dispatch_stack,
    is_grad_enabled,
)
from taeda.utils.hooks import RemovableHandle

__all__ = [
    "Optimizer",
    "register_optimizer_step_pre_hook",
    "register_optimizer_step_post_hook",
]

# What optimizers of other libraries put into their docstrings for the options that all have.
_params_doc = "params (iterable): the tensors to optimize, dicts of groups, or pairs (name, tensor)"
_foreach_doc = "foreach (bool, optional): whether to step over lists of tensors, not one by one"
_fused_doc = "fused (bool, optional): whether one kernel makes the whole step of a tensor"
_capturable_doc = "capturable (bool, optional): whether the state stays on the device"
_differentiable_doc = "differentiable (bool, optional): whether autograd records the step"
_maximize_doc = "maximize (bool, optional): whether to ascend instead of to descend"

StateDict = dict[str, Any]
ParamsT = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]

_global_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_post_hooks: OrderedDict[int, Callable] = OrderedDict()


class _RequiredParameter:
    """Marks an option without a default."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def _add(hooks: OrderedDict, hook: Callable, prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable) -> RemovableHandle:
    """``hook(optimizer, args, kwargs)`` runs before each step of every optimizer."""
    return _add(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable) -> RemovableHandle:
    """``hook(optimizer, args, kwargs)`` runs after each step of every optimizer."""
    return _add(_global_post_hooks, hook)


def _with_hooks(step: Callable) -> Callable:
    """``step`` surrounded by the step hooks."""

    @functools.wraps(step)
    def wrapper(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if not (
            self._optimizer_step_pre_hooks
            or self._optimizer_step_post_hooks
            or _global_pre_hooks
            or _global_post_hooks
        ):
            return step(self, *args, **kwargs)
        full_args = (self, *args)
        for hook in (*_global_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()):
            result = hook(self, full_args, kwargs)
            if result is None:
                continue
            if not (isinstance(result, tuple) and len(result) == 2):
                raise RuntimeError(
                    f"{step} must return None or a tuple of (new_args, new_kwargs), "
                    f"but got {result}."
                )
            full_args, kwargs = result
        out = step(*full_args, **kwargs)
        for hook in (*self._optimizer_step_post_hooks.values(), *_global_post_hooks.values()):
            hook(self, full_args, kwargs)
        return out

    wrapper.__dict__["hooked"] = True
    return wrapper


class Optimizer:
    """Base class of optimizers.

    Args:
        params: tensors, or (name, tensor) pairs, or dicts that each make a parameter group with
            options of its own.
        defaults: the options of groups that do not say otherwise.

    Attributes:
        param_groups: a list of dicts with "params" and the options, which schedules change.
        state: maps each parameter to what the algorithm remembers of it.

    ``step`` changes the parameters by their ``.grad``; those without one are left out.
    ``state_dict`` and ``load_state_dict`` save and restore options and state, parameters by their
    position.

    >>> layer = nn.Linear(2, 1)
    >>> groups = [{"params": [layer.weight]}, {"params": [layer.bias], "lr": 1.0}]
    >>> optimizer = torch.optim.SGD(groups, lr=0.1)
    >>> [group["lr"] for group in optimizer.param_groups]
    [0.1, 1.0]
    """

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_hook_tables()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                f"dicts, but got {params.type()}"
            )
        self.state: defaultdict[Tensor, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        try:
            param_groups: list[Any] = list(params)
        except TypeError as fault:
            if not isinstance(params, Iterable):
                fault.add_note("Fix: give model.parameters(), or a list of tensors")
            raise
        if not param_groups:
            error = ValueError("optimizer got an empty parameter list")
            error.add_note(
                "Fix: give model.parameters(), of a model that has some; layers in a Python list "
                "are not registered, those in an nn.ModuleList are"
            )
            raise error
        if not isinstance(param_groups[0], dict):
            param_groups = [{"params": param_groups}]
        for param_group in param_groups:
            self.add_param_group(param_group)

    def _make_hook_tables(self) -> None:
        self._optimizer_step_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
        self._optimizer_step_post_hooks: OrderedDict[int, Callable] = OrderedDict()
        self._optimizer_state_dict_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
        self._optimizer_state_dict_post_hooks: OrderedDict[int, Callable] = OrderedDict()
        self._optimizer_load_state_dict_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
        self._optimizer_load_state_dict_post_hooks: OrderedDict[int, Callable] = OrderedDict()
        cls = type(self)
        if not getattr(cls.step, "hooked", False):
            cls.step = _with_hooks(cls.step)  # type: ignore[method-assign]

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_optimizer_step_pre_hooks" not in self.__dict__:
            self._make_hook_tables()
        self.__dict__.setdefault("defaults", {})
        for group in self.param_groups:  # options that did not exist when the state was saved
            for name, default in self.defaults.items():
                group.setdefault(name, default)

    def __repr__(self) -> str:
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for key in sorted(group.keys()):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"

    # --- hooks ---

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """``hook(optimizer, args, kwargs)`` runs before ``step``; may return new (args, kwargs)."""
        return _add(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """``hook(optimizer, args, kwargs)`` runs after ``step``."""
        return _add(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """``hook(optimizer)`` runs before ``state_dict``."""
        return _add(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """``hook(optimizer, state_dict)`` runs after ``state_dict``; may return another."""
        return _add(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """``hook(optimizer, state_dict)`` runs before loading; may return another state_dict."""
        return _add(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """``hook(optimizer)`` runs after loading."""
        return _add(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # --- state ---

    def state_dict(self) -> dict[str, Any]:
        """The state by parameter number, and the groups with numbers in place of parameters."""
        for pre_hook in self._optimizer_state_dict_pre_hooks.values():
            pre_hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            packed = {k: v for k, v in group.items() if k != "params"}
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {(numbers[id(k)] if isinstance(k, Tensor) else k): v for k, v in self.state.items()}
        result: dict[str, Any] = {"state": state, "param_groups": groups}
        for post_hook in self._optimizer_state_dict_post_hooks.values():
            output = post_hook(self, result)
            if output is not None:
                result = output
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes what ``state_dict`` returned, for parameters in the same order.

        Floating-point state is cast to the type and device of its parameter.
        """
        state_dict = state_dict.copy()
        for pre_hook in self._optimizer_load_state_dict_pre_hooks.values():
            output = pre_hook(self, state_dict)
            if output is not None:
                state_dict = output
        groups = self.param_groups
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved_groups)):
            raise ValueError(
                "loaded state dict contains a parameter group "
                "that doesn't match the size of optimizer's group"
            )
        numbers = chain.from_iterable(g["params"] for g in saved_groups)
        params = chain.from_iterable(g["params"] for g in groups)
        by_number = dict(zip(numbers, params))
        counted = {p for g, s in zip(groups, saved_groups) if on_device(s) for p in g["params"]}
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in by_number:
                param = by_number[key]
                state[param] = _cast_state(param, value, counted=param in counted)
            else:
                state[key] = value
        new_groups = []
        for group, saved in zip(groups, saved_groups):
            saved["params"] = group["params"]
            if "param_names" in group and "param_names" not in saved:
                saved["param_names"] = group["param_names"]
            new_groups.append(saved)
        self.__setstate__({"state": state, "param_groups": new_groups})
        for post_hook in self._optimizer_load_state_dict_post_hooks.values():
            post_hook(self)

    @staticmethod
    def _group_tensors_by_device_and_dtype(
        tensorlistlist: list[list], with_indices: bool = False
    ) -> dict[tuple, tuple[list[list], list[int]]]:
        """The lists' items by device and dtype of the first list's, with their indices."""
        from taeda.utils._foreach_utils import _group_tensors_by_device_and_dtype

        return _group_tensors_by_device_and_dtype(tensorlistlist, with_indices)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of all parameters, or zeroes them in place."""
        for group in self.param_groups:
            for p in group["params"]:
                grad = p.grad
                if grad is None:
                    continue
                if set_to_none:
                    p.grad = None
                    continue
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters; ``closure`` computes the loss again and returns it."""
        raise NotImplementedError

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of parameters with options of its own."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            param_group["params"] = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but "
                "the ordering of tensors in sets will change between runs. Please use a list "
                "instead."
            )
        else:
            param_group["params"] = list(params)
        self._split_names(param_group)
        for param in param_group["params"]:
            if not isinstance(param, Tensor):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {_kind(param)}"
                )
            if not self.defaults.get("differentiable", None) and not (
                param.is_leaf or param.retains_grad
            ):
                error = ValueError("can't optimize a non-leaf Tensor")
                error.add_note(
                    "Fix: what an operator computed is no leaf: give the tensor that it was "
                    "computed from, or x.detach().requires_grad_()"
                )
                raise error
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization parameter "
                    f"{name}"
                )
            param_group.setdefault(name, default)
        params = param_group["params"]
        if len(params) != len(set(params)):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; "
                "in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        known = set(chain.from_iterable(group["params"] for group in self.param_groups))
        if not known.isdisjoint(params):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def _split_names(self, param_group: dict[str, Any]) -> None:
        """(name, parameter) pairs become parameters and "param_names"."""
        params = param_group["params"]
        named = [isinstance(param, tuple) for param in params]
        if any(named):
            if not all(named):
                raise ValueError(
                    "all optimizer params should be with/without names. Some param names are "
                    "missing"
                )
            param_group["param_names"] = [name for name, _ in params]
            param_group["params"] = [param for _, param in params]
        if self.param_groups:
            if ("param_names" in self.param_groups[0]) != ("param_names" in param_group):
                without = "with names" if any(named) else "without names"
                raise ValueError(
                    "all optimizer param groups should be with/without names. "
                    f"cannot add param group {without} to the optimizer"
                )


def _kind(value: Any) -> str:
    kind = type(value)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )


def _cast_state(param: Tensor, value: Any, key: Hashable = None, counted: bool = False) -> Any:
    """State loaded for ``param``, of its type and on its device; step counters stay as they are,
    or where they are ``counted``."""
    if isinstance(value, Tensor):
        if key == "step":
            return value.to(dtype=taeda.float32, device=param.device) if counted else value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)
    if isinstance(value, dict):
        return {k: _cast_state(param, v, k, counted) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        kind: Any = type(value)
        return kind(_cast_state(param, v) for v in value)
    return value


# --- helpers of the algorithms ---


def check_lr(lr: Any, foreach: bool | None = None, capturable: bool = False) -> None:
    """ValueError unless ``lr`` is a number or one-element tensor that is not negative."""
    if isinstance(lr, Tensor):
        if foreach and not capturable:
            raise ValueError(
                "lr as a Tensor is not supported for capturable=False and foreach=True"
            )
        if lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
    _check_number(lr, "lr")
    if not 0.0 <= lr:
        error = ValueError(f"Invalid learning rate: {lr}")
        error.add_note("Fix: lr is a number from 0 on; to go uphill, maximize=True")
        raise error


def _check_number(value: Any, name: str) -> None:
    """The TypeError of a comparison with a string, which says what is compared and the way out."""
    if isinstance(value, str):
        try:
            _ = 0.0 <= value  # type: ignore[operator]
        except TypeError as error:
            error.add_note(f"Fix: {name}={value!r} is text: give a number, {name}=float({value!r})")
            raise


def check_not_negative(value: Any, text: str) -> None:
    _check_number(value, text.partition(" ")[0])
    if not 0.0 <= value:
        raise ValueError(f"Invalid {text}: {value}")


def check_betas(betas: tuple) -> None:
    """ValueError unless both are from 0 up to 1."""
    for i in (0, 1):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


def number(value: Any) -> Any:
    """An option that may be a one-element tensor as a number; on a device, without dimensions."""
    if isinstance(value, Tensor) and value.requires_grad and is_grad_enabled():
        raise NotImplementedError("differentiable=True: no gradients of options are there yet")
    if isinstance(value, Tensor):
        return value.squeeze() if value.is_cuda else value.item()
    return value


def on_device(group: dict[str, Any]) -> bool:
    """Whether steps are counted where the parameters are."""
    return bool(group.get("capturable") or group.get("fused"))


def new_step(device: Any = None) -> Tensor:
    """A step counter: a float32 scalar, on the CPU unless said otherwise."""
    if device is None:
        return taeda.tensor(0.0, dtype=taeda.float32)
    return taeda.zeros((), dtype=taeda.float32, device=device)


def temporary(x: Tensor) -> Tensor:
    """x for writing in place: a copy where what has computed it is recorded."""
    return x.clone() if is_grad_enabled() else x


def maximum_(x: Tensor, y: Tensor) -> None:
    """x becomes the larger of both, which is recorded where gradients are."""
    if not isinstance(x, Tensor):  # several
        x.maximum_(y)
    elif is_grad_enabled():
        x.copy_(taeda.maximum(x.clone(), y))
    else:
        taeda.maximum(x, y, out=x)


def square_root(x: Any) -> Any:
    """Of a number, or of each of several."""
    if isinstance(x, float):
        return math.sqrt(x)
    return type(x)(map(math.sqrt, x)) if isinstance(x, list) else x.sqrt()


class GroupwiseOptimizer(Optimizer):
    """An algorithm that updates the parameters of each group that have gradients.

    Subclasses say how those of one group move (``_step_group``).
    """

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Performs one step; ``closure`` computes the loss again and returns it."""
        loss = None
        if closure is not None:
            with taeda.enable_grad():
                loss = closure()
        before = is_grad_enabled()
        _set_grad_enabled(bool(self.defaults.get("differentiable")))
        try:
            for group in self.param_groups:
                params = [p for p in group["params"] if p.grad is not None]
                if params:
                    if "capturable" in group and (group["capturable"] or params[0].is_cuda):
                        self._check_capture(group, params)
                    self._step_group(group, params)
        finally:
            _set_grad_enabled(before)
        return loss

    # What must be on the device where a group is `capturable`.
    _captured = "params and state_steps"
    _captured_on_xla = True
    _warned_capturable_if_run_uncaptured = False

    def _check_capture(self, group: dict[str, Any], params: list[Tensor]) -> None:
        """Refuses to capture a step that counts on the CPU: a graph would repeat its numbers."""
        capturable, fused = group.get("capturable"), group.get("fused")
        if capturable and not fused and not all(map(self._is_on_device, params)):
            from ._helpers import _get_capturable_supported_devices

            xla = self._captured_on_xla and not group.get("foreach")
            devices = _get_capturable_supported_devices(supports_xla=xla)
            raise AssertionError(
                f"If capturable=True, {self._captured} must be on supported devices: {devices}."
            )
        capturing = taeda.cuda.is_current_stream_capturing()
        if capturing and not (capturable or fused):
            raise RuntimeError(
                f"Attempting CUDA graph capture of step() for an instance of {type(self).__name__} "
                "but param_groups' capturable is False."
            )
        if capturable and not capturing and not self._warned_capturable_if_run_uncaptured:
            self._warned_capturable_if_run_uncaptured = True
            warnings.warn(
                "This instance was constructed with capturable=True or some of all the "
                "param_groups came with capturable=True, but step() is running without CUDA graph "
                "capture. If you never intend to graph-capture this instance, capturable=True can "
                "impair performance, and you should set capturable=False.",
                stacklevel=3,
            )

    def _is_on_device(self, p: Tensor) -> bool:
        step = self.state[p].get("step") if p in self.state else None
        return p.is_cuda and (step is None or step.is_cuda)

    def _step_group(self, group: dict[str, Any], params: list[Tensor]) -> None:
        raise NotImplementedError


class ElementwiseOptimizer(GroupwiseOptimizer):
    """An algorithm that updates each element of each parameter by itself.

    Subclasses say how state starts (``_init_state``) and how one parameter moves (``_update``).
    Complex parameters are updated as pairs of real numbers.
    """

    # State tensors of the parameter's shape.
    _tensor_state: tuple[str, ...] = ()
    _counts_steps = True
    # Whether `fused` steps take what a GradScaler found, so that it need not ask the device. For a
    # step it sets what gradients are to be divided by, and what tells whether the step is made.
    _fused_takes_scaler = False
    grad_scale: Tensor | None = None
    found_inf: Tensor | None = None
    # Whether `_update_lists` may be called with lists of tensors (`_lists`) on CUDA devices, and
    # whether for modes.
    _by_lists_on_cuda = True
    _by_lists = False
    # What to use for sparse gradients, behind the message that they are not taken.
    _advice = ""

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        if defaults.get("fused"):
            if defaults.get("differentiable"):
                raise RuntimeError("`fused` does not support `differentiable`")
            if defaults.get("foreach"):
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
            if self._fused_takes_scaler:
                self._step_supports_amp_scaling = True
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for values in self.state.values():  # older files hold plain numbers
            if isinstance(values, dict) and isinstance(values.get("step"), (int, float)):
                values["step"] = taeda.tensor(float(values["step"]), dtype=taeda.float32)

    def _state_of(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        if self.state.get(p):
            return self.state[p]
        grad: Any = p.grad
        if grad.is_sparse:
            name = "Adam" if self._advice else type(self).__name__
            raise RuntimeError(f"{name} does not support sparse gradients{self._advice}")
        state: dict[str, Any] = {}  # all of it or nothing: memory may run out half way
        if self._counts_steps:
            state["step"] = new_step(p.device) if on_device(group) else new_step()
        self._init_state(state, p, group)
        self.state[p].update(state)
        return self.state[p]

    @staticmethod
    def _plain(group: dict[str, Any]) -> dict[str, Any]:
        """A group's options with numbers for tensors, but for `lr` and `betas` on a device."""
        options = {k: number(v) if isinstance(v, Tensor) else v for k, v in group.items()}
        if "betas" in options:
            options["betas"] = tuple(number(beta) for beta in options["betas"])
        return options

    def _step_group(self, group: dict[str, Any], params: list[Tensor]) -> None:
        options = self._plain(group)
        states = [self._state_of(p, group) for p in params]  # made first, as in PyTorch
        if params[0].is_cuda or (group.get("foreach") and _torch_dispatch_stack()):
            from . import _lists

            if _lists.step(self, params, [p.grad for p in params], states, options):
                return
        for p, state in zip(params, states):
            self._move(p, p.grad, state, options)

    def _move(self, p: Tensor, grad: Any, state: dict[str, Any], options: dict[str, Any]) -> None:
        """Counts a step of `p` and makes it; complex numbers are updated as pairs of real ones."""
        grad = -grad if options.get("maximize") else grad
        if self._counts_steps:
            state["step"] += 1
        if not p.is_complex():
            self._update(p, grad, state, options)
            return
        view = {
            k: taeda.view_as_real(v) if isinstance(v, Tensor) and v.is_complex() else v
            for k, v in state.items()
        }
        self._update(taeda.view_as_real(p), taeda.view_as_real(grad.resolve_conj()), view, options)
        for k, v in view.items():  # state that the update has added
            if state.get(k) is None and v is not None:
                state[k] = taeda.view_as_complex(v)

    def _update_lists(
        self, p: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        """`_update` for lists, where it may be called with them: it branches on no values."""
        self._update(p, grad, state, group)

    def _init_state(self, state: dict[str, Any], p: Tensor, group: dict[str, Any]) -> None:
        for name in self._tensor_state:
            state[name] = taeda.zeros_like(p, memory_format=taeda.preserve_format)

    def _update(
        self, p: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]
    ) -> None:
        raise NotImplementedError


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        from taeda.optim import _helpers

        if not hasattr(_helpers, name):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(_helpers, name)
