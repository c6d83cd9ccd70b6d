"""Tensors that register with their Module: Parameter, Buffer and their uninitialized forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda
from taeda import _C, Tensor

__all__ = [
    "Parameter",
    "Buffer",
    "UninitializedParameter",
    "UninitializedBuffer",
    "UninitializedTensorMixin",
    "is_lazy",
]


if TYPE_CHECKING:
    _TensorType = type
else:
    _TensorType = type(Tensor)


class _ParameterMeta(_TensorType):
    """Tensors of other subclasses marked ``_is_param`` count as parameters too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return (
            cls is Parameter
            and isinstance(instance, Tensor)
            and getattr(instance, "_is_param", False)
        )


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that is part of a model: assigned to a Module, it appears in ``parameters()``.

    Args:
        data: the values; the parameter shares their memory. Default: an empty tensor.
        requires_grad: whether gradients are recorded, also inside ``no_grad``. Default: True.

    A model's optimizer changes it in place, under ``no_grad``. Results of operators on parameters
    are plain tensors.

    >>> layer = nn.Module()
    >>> layer.scale = nn.Parameter(torch.ones(3))
    >>> [name for name, _ in layer.named_parameters()], type(layer.scale * 2).__name__
    (['scale'], 'Tensor')
    """

    # Results of operators on parameters are plain tensors.
    __torch_function__ = _C._disabled_torch_function_impl

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = taeda.empty(0)
        if type(data) is Tensor or type(data) is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        if not isinstance(data, Tensor):
            raise TypeError(
                f"Parameter data should be a torch.Tensor, but got {type(data).__name__}"
            )
        # A tensor subclass keeps its type and is marked instead.
        param: Any = data.detach().requires_grad_(requires_grad)
        if type(param) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires "
                "that detach() returns an instance of the same type, but return "
                f"type {type(param).__name__} was found instead."
            )
        param._is_param = True  # type: ignore[attr-defined]
        return param  # type: ignore[return-value]

    def __deepcopy__(self, memo: dict) -> Parameter:
        if id(self) in memo:
            return memo[id(self)]
        copied = self.detach().clone(memory_format=taeda.preserve_format)
        result = type(self)(copied, self.requires_grad)
        memo[id(self)] = result
        return result

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


_C._set_parameter_type(Parameter)  # operators skip the override check for it


class _BufferMeta(_TensorType):
    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return (
            cls is Buffer
            and isinstance(instance, Tensor)
            and getattr(instance, "_is_buffer", False)
        )


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that is model state without being trained: assigned to a Module, it is a buffer.

    Buffers move with ``to()`` and are saved by ``state_dict()``; optimizers do not see them. The
    running statistics of `BatchNorm1d` are buffers.

    Args:
        data: the values; default: an empty tensor.
        persistent: whether it is part of ``state_dict``.

    >>> layer = nn.Module()
    >>> layer.count = nn.Buffer(torch.zeros(()))
    >>> list(layer.state_dict()), len(list(layer.parameters()))
    (['count'], 0)
    """

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = taeda.empty(0)
        buffer: Any = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer


_Mixed: Any = object  # the tensor class that the mixin is mixed into


class UninitializedTensorMixin(_Mixed):
    """A tensor without shape yet: a lazy module gives it one at the first call."""

    data: Any

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Turns it, in place, into a parameter or buffer of ``shape``, with undefined values."""
        if device is None:
            device = self.data.device
        if dtype is None:
            dtype = self.data.dtype
        self.data = taeda.empty(shape, device=device, dtype=dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. "
            "This error usually happens in `load_state_dict` when trying to load "
            "an uninitialized parameter into an initialized one. "
            "Call `forward` to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self) -> Any:
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. "
            "Call `forward` to initialize the parameters before calling "
            "`module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{self.__class__.__name__}>"

    def __reduce_ex__(self, proto: Any) -> tuple:
        return (self.__class__, (self.requires_grad,))

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if getattr(func, "__name__", "") in _SHAPELESS:
            return _C._disabled_torch_function_impl(func, types, args, kwargs or {})
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. "
            "This error happens when you are using a `LazyModule` or "
            f"explicitly manipulating `torch.nn.parameter.{cls.__name__}` "
            "objects. When using LazyModules Call `forward` with a dummy batch "
            "to initialize the parameters before calling torch functions"
        )


# What may be done with a tensor that has no shape yet.
_SHAPELESS = frozenset(
    "__hash__ size copy_ is_complex is_floating_point half float double char short int long "
    "bfloat16 cuda cpu to detach requires_grad_ __get__ __set__ __delete__".split()
)


def is_lazy(param: Any) -> bool:
    """Whether ``param`` has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter of a lazy layer before its shape is known.

    It has a dtype and a device and no values; ``materialize(shape)`` makes it an ordinary
    `Parameter`. Most operations on it raise and say so.

    Args:
        requires_grad: whether gradients are recorded.
        device, dtype: of the values to come.

    >>> weight = nn.UninitializedParameter()
    >>> weight.materialize((2, 3))
    >>> weight.shape, type(weight).__name__
    (torch.Size([2, 3]), 'Parameter')
    """

    cls_to_become = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> UninitializedParameter:
        data = taeda.empty(0, device=device, dtype=dtype)
        return Tensor._make_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo: dict) -> UninitializedParameter:
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        memo[id(self)] = result
        return result


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer of a lazy layer before its shape is known.

    It has a dtype and a device and no values; ``materialize(shape)`` gives it a shape. Most
    operations on it raise and say so.

    Args:
        requires_grad: whether gradients are recorded; not for buffers of layers.
        persistent: whether it is part of ``state_dict``.
        device, dtype: of the values to come.

    >>> mean = nn.UninitializedBuffer()
    >>> mean.materialize((4,))
    >>> mean.shape
    torch.Size([4])
    """

    cls_to_become = Tensor

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> UninitializedBuffer:
        data = taeda.empty(0, device=device, dtype=dtype)
        buffer = Tensor._make_subclass(cls, data, requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer

    def __deepcopy__(self, memo: dict) -> UninitializedBuffer:
        if id(self) not in memo:
            memo[id(self)] = type(self)(
                self.requires_grad, self.data.device, self.data.dtype, self.persistent
            )
        return memo[id(self)]
