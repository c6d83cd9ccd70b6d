"""FakeTensorMode: in its block factories and operators give tensors with sizes, strides, dtype and
device, on any device, whether there is one or not, and without memory or values.

A FakeTensor wraps a tensor of the device meta, on which operators run; views share its storage.
"""

from __future__ import annotations

import contextlib
import copy
import weakref
from collections.abc import Iterator
from typing import Any, cast

import taeda
from taeda import _C, Tensor, nn
from taeda._library.fake_context import UnknownSize
from taeda._subclasses.fake_utils import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorDeviceMismatchError,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
    check_shapes_known,
    common_device,
    describe_call,
    has_mask,
    is_random,
)
from taeda.overrides import TorchFunctionMode
from taeda.utils._mode_utils import no_dispatch
from taeda.utils._python_dispatch import TorchDispatchMode, is_traceable_wrapper_subclass
from taeda.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten
from taeda.utils.weak import WeakIdKeyDictionary

__all__ = [
    "DataDependentOutputException",
    "DynamicOutputShapeException",
    "FakeTensor",
    "FakeTensorConverter",
    "FakeTensorDeviceMismatchError",
    "FakeTensorMode",
    "UnsupportedFakeTensorException",
    "UnsupportedOperatorException",
    "is_fake",
    "maybe_get_fake_mode",
    "unset_fake_temporarily",
]

_META = taeda.device("meta")
#: The values of tensors made of numbers are kept up to this many elements.
CONSTANT_NUMEL_LIMIT = 1


def _indexed(device: Any) -> Any:
    """cuda:0 for cuda."""
    device = taeda.device(device)
    indexed = device.type not in ("cpu", "meta") and device.index is None
    return taeda.device(device.type, 0) if indexed else device


class FakeTensor(Tensor):
    """A tensor on a device, without values."""

    _has_no_values = True
    fake_mode: FakeTensorMode
    fake_device: Any
    _elem: Tensor

    @staticmethod
    def __new__(
        cls,
        fake_mode: FakeTensorMode,
        elem: Tensor,
        device: Any,
        constant: Tensor | None = None,
        **_: Any,
    ) -> FakeTensor:
        if not elem.is_meta:
            raise AssertionError(f"elem.device.type must be 'meta', got {elem.device.type}")
        made: Any = cast(Any, Tensor)._make_wrapper_subclass(
            cls, elem.shape, elem.stride(), elem.storage_offset(), dtype=elem.dtype,
            device=_indexed(device), requires_grad=elem.requires_grad,
        )  # fmt: skip
        made._elem, made.fake_mode, made.fake_device = elem, fake_mode, made.device
        made._keep_constant(constant)
        return made

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    @staticmethod
    def from_tensor(t: Tensor, fake_mode: FakeTensorMode) -> FakeTensor:
        """The fake form of a tensor."""
        return fake_mode.from_tensor(t)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not all(issubclass(kind, FakeTensor) for kind in types):
            return NotImplemented
        if _current_mode() is not None:
            return NotImplemented
        leaves = tree_leaves((args, kwargs or {}))
        mode = next(x.fake_mode for x in leaves if isinstance(x, FakeTensor))
        return mode.dispatch(func, types, args, kwargs or {})

    # --- the tensor behind it ---

    def _behind(self) -> Tensor:
        """The meta tensor, with the sizes that in-place views may have given this one."""
        elem = self._elem
        layout = self.shape, self.stride(), self.storage_offset()
        if (elem.shape, elem.stride(), elem.storage_offset()) != layout:
            with no_dispatch():
                self._elem = elem = elem.as_strided(*layout)
        return elem

    def _follow(self) -> None:
        """Takes the sizes of the meta tensor, which an operator has changed."""
        elem = self._elem
        if elem.shape != self.shape or elem.stride() != self.stride():
            self.data = FakeTensor(self.fake_mode, elem, self.device)

    def _keep_constant(self, constant: Tensor | None) -> None:
        self._constant, self._constant_version = constant, self._elem._version

    @property
    def constant(self) -> Tensor | None:
        """The values, where they are known and nothing has been written since."""
        return self._constant if self._constant_version == self._elem._version else None

    def _sized(self, sizes: Any) -> FakeTensor:
        """Another fake tensor of this dtype and device."""
        with no_dispatch():
            elem = taeda.empty((), dtype=self.dtype, device=_META).expand(sizes)
        return FakeTensor(self.fake_mode, elem, self.device)

    @property
    def data(self) -> Any:
        """The tensor without its history."""
        return Tensor.data.__get__(self)  # type: ignore[attr-defined]

    @data.setter
    def data(self, other: Any) -> None:
        Tensor.data.__set__(self, other)  # type: ignore[attr-defined]
        self._elem, self.fake_device = other._behind(), other.device
        self._keep_constant(other.constant)

    # --- methods that are no operators ---

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        from taeda._tensor_str import tensor_repr

        text = tensor_repr(self, tensor_contents=tensor_contents)
        return f"Parameter({text})" if isinstance(self, nn.Parameter) else text

    def untyped_storage(self) -> Any:
        """Without memory; views have the same."""
        return self._behind().untyped_storage()

    def is_pinned(self, device: Any = None) -> bool:
        """False: there is no memory."""
        return False

    def numpy(self, *, force: bool = False) -> Any:
        """RuntimeError: there are no values."""
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def tolist(self) -> Any:
        """Numbers of a tensor whose values are known; DataDependentOutputException of others."""
        if self.dim() == 0:
            return self.item()
        return [x.tolist() for x in self]

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """As Tensor.to, onto devices too that this machine lacks."""
        if args and isinstance(args[0], Tensor):
            other, *rest = args
            return self.to(other.device, other.dtype, *rest, **kwargs)
        keep = {k: v for k, v in kwargs.items() if k != "copy"}
        device, dtype, non_blocking, layout = _C._nn._parse_to(*args, **keep)
        if device is None or _indexed(device) == self.device:
            given = {"copy": kwargs.get("copy", False), "memory_format": layout}
            return super().to(dtype or self.dtype, non_blocking, **given)  # type: ignore[misc]
        typed = super().to(dtype or self.dtype, memory_format=layout)  # type: ignore[misc]
        return taeda.ops.taeda.to_device(typed, _indexed(device), non_blocking)

    def cuda(  # type: ignore[override]
        self, device: Any = None, non_blocking: bool = False, **_: Any
    ) -> Any:
        """On a CUDA device, by default the first."""
        where = taeda.device("cuda", device) if isinstance(device, int) else device or "cuda"
        return self.to(taeda.device(where), non_blocking=non_blocking)

    def __deepcopy__(self, memo: dict) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        elem = self._behind()
        with no_dispatch():
            storage = copy.deepcopy(elem.untyped_storage(), memo)
            elem = _C._tensor_from_storage(
                storage, elem.dtype, elem.storage_offset(), elem.shape, elem.stride()
            )
        made = _like(self, FakeTensor(self.fake_mode, elem, self.device, self.constant))
        memo[id(self)] = made
        if self.grad is not None:
            made.grad = copy.deepcopy(self.grad, memo)
        return made


def _blank(nbytes: int) -> Any:
    """A storage of the device meta."""
    with no_dispatch():
        return taeda.empty(nbytes, dtype=taeda.uint8, device=_META).untyped_storage()


def _like(t: Tensor, made: FakeTensor) -> Any:
    """`made` as a parameter, or requiring a gradient, as `t` is."""
    if isinstance(t, nn.Parameter):
        return nn.Parameter(made, requires_grad=t.requires_grad)
    return made.requires_grad_(t.requires_grad)


class FakeTensorConverter:
    """Fake forms of tensors: the same for the same tensor, views of one storage for such views."""

    def __init__(self) -> None:
        self.tensor_memo: Any = WeakIdKeyDictionary()
        self._storages: dict[int, tuple[Any, int]] = {}  # _cdata -> storage, number of tensors

    def _storage(self, t: Tensor) -> Any:
        """The meta storage for a tensor's, as long as a tensor with it lives."""
        real = t.untyped_storage()
        key = real._cdata  # stays where resize_ moves the memory
        found, users = self._storages.get(key, (None, 0))
        if found is None:
            found = _blank(real.nbytes())
        elif found.nbytes() < real.nbytes():
            found.resize_(real.nbytes())
        self._storages[key] = found, users + 1
        weakref.finalize(t, self._forget, key)
        return found

    def _forget(self, key: int) -> None:
        """One of a storage's tensors is gone."""
        found, users = self._storages.pop(key)
        if users > 1:
            self._storages[key] = found, users - 1

    def from_real_tensor(
        self, fake_mode: FakeTensorMode, t: Tensor, make_constant: bool = False, **_: Any
    ) -> FakeTensor:
        """The fake form of `t`; UnsupportedFakeTensorException for sparse tensors."""
        known = self.tensor_memo.get(t)
        if known is not None:
            return known
        _check_layout(t)
        with no_dispatch():
            elem = _C._tensor_from_storage(
                self._storage(t), t.dtype, t.storage_offset(), t.shape, t.stride()
            )
            constant = t.detach().clone() if make_constant else None
        made = _like(t, FakeTensor(fake_mode, elem, t.device, constant))
        if not t.is_leaf:
            with fake_mode, taeda.enable_grad():
                made = made.clone()
        if not make_constant:
            self.tensor_memo[t] = made
        if t.is_leaf and t.grad is not None:
            made.grad = self.from_real_tensor(fake_mode, t.grad)
        return made

    def from_meta_and_device(self, fake_mode: FakeTensorMode, t: Tensor, device: Any) -> FakeTensor:
        """A fake tensor on a device, of a meta tensor."""
        return FakeTensor(fake_mode, t, device)


class FakeTensorMode(TorchDispatchMode):
    """In the block every new tensor is a FakeTensor.

    >>> with torch._subclasses.FakeTensorMode():
    ...     torch.ones(2, 3, device="cuda") @ torch.ones(3, 4, device="cuda")
    FakeTensor(..., device='cuda:0', size=(2, 4))

    Args:
        allow_non_fake_inputs: take real tensors among operators' arguments as their fake forms;
            otherwise they are an AssertionError.
    """

    def __init__(
        self,
        *,
        allow_fallback_kernels: bool = True,
        allow_non_fake_inputs: bool = False,
        shape_env: Any = None,
        static_shapes: bool | None = None,
        export: bool = False,
    ) -> None:
        super().__init__()
        if shape_env is not None:
            raise NotImplementedError("FakeTensorMode: sizes are numbers; shape_env must be None")
        self.allow_fallback_kernels = allow_fallback_kernels
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.shape_env, self.static_shapes, self.export = None, True, export
        self.fake_tensor_converter = FakeTensorConverter()
        self.in_kernel_invocation = False
        self._entered: list[tuple[FakeTensorMode | None, Any]] = []

    @classmethod
    def is_infra_mode(cls) -> bool:
        """True: other modes see operators before it."""
        return True

    def is_our_fake(self, t: Any) -> bool:
        """Whether `t` is a fake tensor of this mode."""
        return isinstance(t, FakeTensor) and t.fake_mode is self

    def from_tensor(self, tensor: Tensor, **_: Any) -> FakeTensor:
        """The fake form of a tensor: the same for the same one; views share storage."""
        return self.fake_tensor_converter.from_real_tensor(self, tensor)

    def __enter__(self) -> FakeTensorMode:
        outer = _take_mode()
        functions = _FromData(self)
        self._entered.append((outer, functions))
        _put_mode(self)
        functions.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        outer, functions = self._entered.pop()
        functions.__exit__(*exception)
        _take_mode()
        if outer is not None:
            _put_mode(outer)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.dispatch(func, types, args, kwargs or {})

    def dispatch(self, func: Any, types: Any, args: tuple, kwargs: dict) -> Any:
        """The operator's results, as fake tensors."""
        flat, spec = tree_flatten((args, kwargs))
        if any(_is_foreign(x) for x in flat):
            return NotImplemented
        flat = [self._checked(x, func, args, kwargs) for x in flat]
        fakes = [x for x in flat if isinstance(x, FakeTensor)]
        constants = self._of_constants(func, flat, spec, fakes)
        if constants is not None and func._opname == "_local_scalar_dense":
            return constants
        check_shapes_known(func, tree_unflatten(flat, spec)[0])
        where = next((x for x in flat if isinstance(x, taeda.device)), None)
        if where is None:
            where = common_device(func, fakes) if fakes else taeda.device("cpu")
        results = self._on_meta(func, flat, spec, fakes, _indexed(where))
        if func._schema.is_mutable:
            for fake in fakes:
                fake._follow()
        if isinstance(constants, Tensor) and isinstance(results, FakeTensor):
            results._keep_constant(constants)
        return results

    def _checked(self, x: Any, func: Any, args: tuple, kwargs: dict) -> Any:
        """A fake tensor of this mode for any tensor."""
        if not isinstance(x, Tensor) or self.is_our_fake(x):
            return x
        if isinstance(x, FakeTensor):
            raise AssertionError(f"Mixing fake modes NYI x.fake_mode={x.fake_mode} vs self={self}")
        if not self.allow_non_fake_inputs:
            raise AssertionError(
                "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode "
                f"with 'allow_non_fake_inputs'. Found in {describe_call(func, args, kwargs)}"
            )
        return self.from_tensor(x)

    def _of_constants(self, func: Any, flat: list, spec: Any, fakes: list) -> Any:
        """What the operator makes of known values, or None."""
        if not fakes or is_random(func) or any(x.constant is None for x in fakes):
            return None
        if any(isinstance(x, taeda.device) for x in flat):
            return None
        values = [x.constant if isinstance(x, FakeTensor) else x for x in flat]
        args, kwargs = tree_unflatten(values, spec)
        with no_dispatch():
            result = func(*args, **kwargs)
        known = not isinstance(result, Tensor) or result.numel() <= CONSTANT_NUMEL_LIMIT
        return result if known else None

    def _on_meta(self, func: Any, flat: list, spec: Any, fakes: list, where: Any) -> Any:
        """Runs the operator on the meta tensors."""
        ours = {id(x._behind()): x for x in fakes}
        args, kwargs = tree_unflatten([_as_meta(x) for x in flat], spec)
        if "pin_memory" in kwargs:
            kwargs["pin_memory"] = False
        if not fakes and any(a.name == "device" for a in func._schema.arguments):
            kwargs["device"] = _META
        results = _run(func, args, kwargs)

        def wrap(x: Any) -> Any:
            if not isinstance(x, Tensor):
                return x
            _check_layout(x)
            if not x.is_meta:  # of numbers alone
                small = x.numel() <= CONSTANT_NUMEL_LIMIT
                return self.fake_tensor_converter.from_real_tensor(self, x, small)
            same = ours.get(id(x))
            if same is None:
                return FakeTensor(self, x, where)
            if same.device == where:
                return same
            with no_dispatch():
                moved = taeda.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=_META)
            return FakeTensor(self, moved, where)

        return tree_map(wrap, results)


def _check_layout(x: Tensor) -> None:
    if x.layout is not taeda.strided:
        raise UnsupportedFakeTensorException(f"no fake tensors of layout {x.layout}")


def _run(func: Any, args: tuple, kwargs: dict) -> Any:
    try:
        with no_dispatch():
            if func._opname.startswith("index_put") and has_mask(args):
                return args[0].zero_() if func._schema.is_mutable else args[0].clone()
            return func(*args, **kwargs)
    except UnknownSize:
        raise DynamicOutputShapeException(func) from None
    except NotImplementedError as error:
        if "depend on data" in str(error):
            raise DynamicOutputShapeException(func) from None
        raise


def _as_meta(x: Any) -> Any:
    """What the device meta is called with."""
    if isinstance(x, FakeTensor):
        return x._behind()
    if isinstance(x, taeda.device):
        return _META
    return None if isinstance(x, taeda.Generator) else x


def _is_foreign(x: Any) -> bool:
    """Whether a tensor's class has a __torch_dispatch__ of its own, which comes first."""
    return _C._has_torch_dispatch(x) and not isinstance(x, FakeTensor)


# --- the active mode: below all others ---


def _current_mode() -> FakeTensorMode | None:
    modes = _C._torch_dispatch_stack()
    return modes[0] if modes and isinstance(modes[0], FakeTensorMode) else None


def _put_mode(mode: FakeTensorMode) -> None:
    above = [_C._pop_torch_dispatch_stack() for _ in _C._torch_dispatch_stack()]
    for each in (mode, *reversed(above)):
        _C._push_on_torch_dispatch_stack(each)


def _take_mode() -> FakeTensorMode | None:
    """Takes the active mode off and returns it."""
    if _current_mode() is None:
        return None
    mode, *above = reversed([_C._pop_torch_dispatch_stack() for _ in _C._torch_dispatch_stack()])
    for each in above:
        _C._push_on_torch_dispatch_stack(each)
    return mode


@contextlib.contextmanager
def unset_fake_temporarily() -> Iterator[FakeTensorMode | None]:
    """Tensors made in the block are real."""
    mode = _take_mode()
    try:
        yield mode
    finally:
        if mode is not None:
            _put_mode(mode)


class _FromData(TorchFunctionMode):
    """Makes fake tensors of numbers and arrays, which no operator makes."""

    def __init__(self, mode: FakeTensorMode) -> None:
        super().__init__()
        self.mode = mode

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is nn.functional.one_hot:
            return _one_hot(*args, **kwargs)
        makes = func in (taeda.tensor, taeda.as_tensor, taeda.asarray, taeda.from_numpy)
        data = [*args, *kwargs.values()][:1]
        if not makes or _current_mode() is not self.mode or isinstance(data[0], Tensor):
            return func(*args, **kwargs)
        for x in tree_leaves(data):
            if isinstance(x, FakeTensor):
                x.item()
        device, grad = kwargs.pop("device", None), kwargs.pop("requires_grad", False)
        kwargs.pop("pin_memory", None)
        with no_dispatch():
            real = func(*args, **kwargs)
        small = real.numel() <= CONSTANT_NUMEL_LIMIT
        made = self.mode.fake_tensor_converter.from_real_tensor(self.mode, real, small)
        return (made if device is None else made.to(device)).requires_grad_(grad)


def _one_hot(x: Tensor, num_classes: int = -1) -> Tensor:
    """one_hot without a look at the classes; DataDependentOutputException without their number."""
    if num_classes == -1:
        raise DataDependentOutputException(taeda.ops.aten._local_scalar_dense.default)
    return (x.unsqueeze(-1) == taeda.arange(num_classes, device=x.device)).long()


def maybe_get_fake_mode(t: Any) -> FakeTensorMode | None:
    """The mode of a fake tensor, or of a wrapper's parts; None of others."""
    if isinstance(t, FakeTensor):
        return t.fake_mode
    if not is_traceable_wrapper_subclass(t):
        return None
    found = {maybe_get_fake_mode(getattr(t, name)) for name in t.__tensor_flatten__()[0]}
    if len(found) > 1:
        raise AssertionError("All fake tensor modes must be the same")
    return found.pop() if found else None


def is_fake(x: Any) -> bool:
    """Whether a tensor, or every part of a wrapper, is fake."""
    if isinstance(x, FakeTensor) or not is_traceable_wrapper_subclass(x):
        return isinstance(x, FakeTensor)
    found = {is_fake(getattr(x, name)) for name in x.__tensor_flatten__()[0]}
    if len(found) > 1:
        raise AssertionError("got mixed fake and real tensors!")
    return bool(found) and found.pop()
