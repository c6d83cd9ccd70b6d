"""Tensor's methods that are written in Python: what they do is not worth a line of C++."""

from __future__ import annotations

import builtins
import sys
from itertools import pairwise

from taeda import _C, _sparse_methods
from taeda._C import Tensor

TYPE_CHECKING = False  # typing's own would load typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

_METHODS: dict = {}


def _method(function: Callable) -> Callable:
    """Puts the function into the Tensor type, with __torch_function__ looked for first."""
    _METHODS[function.__name__] = _C._overridable(function)
    return function


# --- conversions ---


@_method
def type(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Without an argument, the name of the tensor's type; else the tensor as another type."""
    from taeda import _dtypes

    if dtype is None:
        return _dtypes.type_text(self.dtype, self.device, self.is_sparse)
    device, wanted = _dtypes.device_of_type(dtype), _dtypes.dtype_of_type(dtype)
    if device is None or device == self.device.type:
        return self.to(wanted, non_blocking)
    return self.to(device, wanted, non_blocking)


def _cuda_array_interface(self: Tensor) -> Any:
    """What Numba and CuPy read to share the memory; AttributeError for other devices' tensors."""
    if not self.is_cuda:
        raise AttributeError(
            f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.type()} If CUDA "
            "data is required use tensor.cuda() to copy tensor to device memory."
        )
    if self.requires_grad:
        raise RuntimeError(
            "Can't get __cuda_array_interface__ on Variable that requires grad. If gradients "
            "aren't required, use var.detach() to get Variable that doesn't require grad."
        )
    dtype, size = self.dtype, self.itemsize
    if dtype.is_floating_point:
        kind = "V" if dtype is _C.bfloat16 else "f"
    else:
        kind = "c" if dtype.is_complex else "b" if dtype is _C.bool else "iu"[not dtype.is_signed]
    return {
        "typestr": f"{'<' if size > 1 else '|'}{kind}{size}",
        "shape": tuple(self.shape),
        "strides": None if self.is_contiguous() else tuple(s * size for s in self.stride()),
        "data": (self.data_ptr() if self.numel() else 0, False),
        "version": 2,
    }


@_method
def _is_view(self: Tensor) -> bool:
    """Whether the tensor is a view that autograd knows of; ``detach()`` gives none."""
    return _C._is_view(self)


@_method
def new_tensor(
    self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A new tensor with the values of `data` and, unless given, this one's dtype and device."""
    source = data.detach().clone() if isinstance(data, Tensor) else data
    return (
        _C.as_tensor(
            source,
            self.dtype if dtype is None else dtype,
            self.device if device is None else device,
        )
        .clone()
        .requires_grad_(requires_grad)
    )


@_method
def new(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """A tensor of this dtype from sizes or data, as the constructor of old. By name these are
    `size`, `data` or `other`."""
    if not args and len(kwargs) == 1 and next(iter(kwargs)) in ("size", "data", "other"):
        (name, value), kwargs = next(iter(kwargs.items())), {}
        args = tuple(value) if name == "size" else (value,)
    if "device" in kwargs:
        asked = _C.device(kwargs.pop("device") or self.device)
        if asked.type != self.device.type:
            raise RuntimeError(
                f"legacy constructor expects device type: {self.device.type} but device type: "
                f"{asked.type} was passed"
            )
        if args and isinstance(args[0], Tensor):
            raise RuntimeError(
                "Legacy tensor new of the form tensor.new(tensor, device=device) is not "
                "supported. Use torch.as_tensor(...) instead."
            )
        return _C._legacy_tensor(self.dtype, *args, device=asked, **kwargs)
    if self.device.type != "cpu":
        kwargs["device"] = self.device
    return _C._legacy_tensor(self.dtype, *args, **kwargs)


@_method
def _fix_weakref(self: Tensor) -> None:
    """Nothing: weak references to a tensor hold for as long as something holds the tensor."""


@_method
def storage(self: Tensor) -> Any:
    """The tensor's memory, seen as elements of its dtype."""
    from taeda import _storage_removal

    _storage_removal.warn()
    return self._typed_storage()


@_method
def _typed_storage(self: Tensor) -> Any:
    """`storage()` without its warning."""
    from taeda.storage import _wrap

    return _wrap(self.untyped_storage(), self.dtype)


@_method
def storage_type(self: Tensor) -> Any:
    """The class of storages with the tensor's dtype: torch.FloatStorage and so on."""
    import taeda

    return getattr(taeda, self._typed_storage()._type().rpartition(".")[2])


@_method
def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Whether both have the same shape."""
    return self.size() == other.size()


@_method
def is_distributed(self: Tensor) -> bool:
    """False: no tensor is."""
    return False


@_method
def dequantize(self: Tensor) -> Tensor:
    """The tensor as float32: none is quantized."""
    return self.to(_C.float32)


@_method
def polygamma(self: Tensor, n: int) -> Tensor:
    """torch.polygamma(n, self)."""
    return _C._by_owner["torch"]["polygamma"](n, self)


def _replace(name: str, function: Callable, self: Tensor, *others: Tensor) -> Tensor:
    """Writes function(x, ...) for each element x of `self` and those of the others beside it."""
    if any(t.requires_grad for t in (self, *others)):
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() "
            "instead."
        )
    values = list(map(function, *(t.expand_as(self).reshape(-1).tolist() for t in (self, *others))))
    for value in values:
        if not any(hasattr(value, name) for name in ("__float__", "__index__", "__complex__")):
            raise TypeError(f"must be real number, not {value.__class__.__name__}")
    return self.copy_(_C.tensor(values, dtype=self.dtype).reshape(self.shape))


@_method
def apply_(self: Tensor, function: Callable) -> Tensor:
    """Replaces each element x by function(x): slow, one Python call an element."""
    return _replace("apply_", function, self)


@_method
def map_(self: Tensor, other: Tensor, callable: Callable) -> Tensor:
    """Replaces each element x by callable(x, y), y being `other`'s element."""
    return _replace("map_", callable, self, other)


@_method
def map2_(self: Tensor, x: Tensor, y: Tensor, function: Callable) -> Tensor:
    """Replaces each element a by function(a, b, c), b and c being elements of `x` and `y`."""
    return _replace("map2_", function, self, x, y)


@_method
def set_(
    self: Tensor,
    source: Any = None,
    storage_offset: int = 0,
    size: Any = None,
    stride: Any = None,
) -> Tensor:
    """Makes this tensor show other memory: that of a tensor or storage, or none at all.

    A tensor gives its layout too, unless `size` (and `stride`, else row-major) tell another; of a
    storage the tensor shows all elements. Dtypes must agree. Not recorded: under autograd,
    tensors that require grad are refused.
    """
    if _C.is_grad_enabled() and (self.requires_grad or getattr(source, "requires_grad", False)):
        if self.is_leaf and self.requires_grad:
            raise RuntimeError(
                "a leaf Variable that requires grad is being used in an in-place operation."
            )
        raise NotImplementedError("set_: no gradient; use it under no_grad or on detached tensors")
    dtype = getattr(source, "dtype", None) or self.dtype  # an untyped storage has any
    if dtype is not self.dtype:
        if not isinstance(source, Tensor):
            ours, given = (d._class_name for d in (self.dtype, dtype))
            raise RuntimeError(
                f"set_: Expected a Storage of type {ours} or an UntypedStorage, but got type "
                f"{given}"
            )
        raise RuntimeError(f"set_: could not set a tensor of {dtype} to a tensor of {self.dtype}")
    bits = self.is_conj(), self.is_neg()  # they are this tensor's: only the memory is another's
    shown = _shown(source, self.dtype, storage_offset, size, stride)
    if shown.is_conj():
        shown._set_conj(False)
    if shown.is_neg():
        shown._set_neg(False)
    self.data = shown
    if bits[0]:
        self._set_conj(True)
    if bits[1]:
        self._set_neg(True)
    _C._increment_version(self)
    return self


def _shown(source: Any, dtype: Any, offset: int, size: Any, stride: Any) -> Tensor:
    """A tensor on the memory of `source`."""
    if source is None:
        return _C.tensor([], dtype=dtype)
    if isinstance(source, Tensor):
        if size is None:
            return source.detach()
        storage = source.untyped_storage()
    else:
        storage = getattr(source, "_untyped_storage", source)
    if size is None:
        size = (storage.nbytes() // dtype.itemsize,)
    if stride is None:
        stride = [1] * len(size)
        for i in range(len(size) - 1, 0, -1):
            stride[i - 1] = stride[i] * max(size[i], 1)
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if 0 not in size and (last + 1) * dtype.itemsize > storage.nbytes():
        storage.resize_((last + 1) * dtype.itemsize)
    return _C._tensor_from_storage(storage, dtype, offset, size, stride)


@_method
def __dir__(self: Tensor) -> list[str]:
    names = set(dir(self.__class__)) | set(self.__dict__)
    if not self.is_cuda or self._is_any_sparse():
        names.discard("__cuda_array_interface__")
    return sorted(names - {"volatile"})


del __dir__  # it would be the module's too


# What NumPy, Keras, TensorFlow and JAX call operators, functions and methods alike, and their name
# here; then a tensor's other methods. What they call functions and classes stands in _near_names.
_FOREIGN_OPERATORS = {
    "copy": "clone",
    "expand_dims": "unsqueeze",
    "power": "pow",
    "reduce_max": "amax",
    "reduce_mean": "mean",
    "reduce_min": "amin",
    "reduce_prod": "prod",
    "reduce_sum": "sum",
    "stop_gradient": "detach",
}
_FOREIGN_NAMES = _FOREIGN_OPERATORS | {
    "as_numpy": "numpy",
    "asnumpy": "numpy",
    "assign": "copy_",
    "astype": "to",
    "cast": "to",
    "fill": "fill_",
    "get_shape": "size",
    "permute_dims": "permute",
    "set_requires_grad": "requires_grad_",
    "to_device": "to",
    "to_list": "tolist",
    "to_numpy": "numpy",
}


class _ForeignName:
    """In a class's dictionary: a name that the class lacks, as others call what it has.

    Reading it raises the AttributeError of any missing name, with the class's own name for it. The
    type's lookup of attributes stays the one that the interpreter caches, which it would not with
    a `__getattr__`. `dir` of tensors and of their class leaves these names out.
    """

    def __init__(self, name: str, meant: str) -> None:
        self.name, self.meant = name, meant

    def __get__(self, instance: object, owner: builtins.type | None = None) -> NoReturn:
        shown = f"'{(owner or type(instance)).__name__}' object"
        shown = shown if instance is not None else f"type object '{owner.__name__}'"  # type: ignore[union-attr]
        raise AttributeError(
            f"{shown} has no attribute '{self.name}'. Did you mean: '{self.meant}'?", name=self.name
        )


def _dir_of_class(cls: builtins.type) -> list[str]:
    """What dir(Tensor) lists: what it has, not the names by which others call that."""

    def is_foreign(name: str) -> bool:
        found = next(vars(owner)[name] for owner in cls.__mro__ if name in vars(owner))
        return builtins.type(found) is _ForeignName

    foreign = {name for name in _FOREIGN_NAMES if is_foreign(name)}
    return [name for name in builtins.type.__dir__(cls) if name not in foreign]


@_method
def lu(self: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """torch.lu(self): the factors of A = P L U in one matrix, and pivots; use linalg.lu_factor."""
    from taeda._functions.tensors import lu

    return lu(self, pivot, get_infos)


@_method
def is_nonzero(self: Tensor) -> bool:
    """Whether the only element is not zero."""
    return bool(self)


def _refuse_ambiguity(x: Tensor, check: Any) -> None:
    formats = [] if isinstance(check, bool) else check
    if not isinstance(formats, list) or not all(isinstance(f, _C.memory_format) for f in formats):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    strides = x.stride()
    several = 1 in x.size() or any(a == b for a, b in pairwise(strides))
    if (check or formats) and several:
        if sum(x.is_contiguous(memory_format=f) for f in formats) != 1:
            raise RuntimeError(
                "The tensor does not have unique dim order, or cannot map to exact one of the "
                "given memory formats."
            )


@_method
def dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions from the outermost in memory to the innermost.

    With `ambiguity_check` RuntimeError where lengths of 1 or equal strides allow several orders;
    unless the tensor has exactly one of the memory formats, where it is a list of those.
    """
    _refuse_ambiguity(self, ambiguity_check)
    strides = self.stride()
    return tuple(sorted(range(self.dim()), key=lambda d: (-strides[d], d)))


# --- copies and pickles ---


@_method
def __deepcopy__(self: Tensor, memo: dict) -> Tensor:
    """A copy with memory of its own; views of one storage stay views of one copy. Leaves only."""
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment.  If you were attempting to deepcopy a module, this may be "
            "because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    if id(self) in memo:
        return memo[id(self)]
    if self.is_meta or self.layout is not _C.strided:
        copied = self.detach().clone()
    else:
        storage = self.untyped_storage()
        if id(storage) not in memo:
            memo[id(storage)] = storage.clone()
            memo.setdefault(id(memo), []).append(storage)  # keeps the id valid
        copied = _C._tensor_from_storage(
            memo[id(storage)], self.dtype, self.storage_offset(), self.size(), self.stride()
        )
        if self.is_conj():
            copied = copied.conj_physical()
        if self.is_neg():
            copied = copied.neg()
    if self.__class__ is not Tensor:
        copied = copied.as_subclass(self.__class__)
    if self.requires_grad:
        copied.requires_grad_()
    memo[id(self)] = copied
    if self.grad is not None:
        copied.grad = self.grad.__deepcopy__(memo)
    if self.__dict__:
        import copy

        copied.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return copied


def _rebuild_tensor(
    cls: Any,
    storage: Any,
    dtype: Any,
    offset: int,
    size: tuple,
    stride: tuple,
    requires_grad: bool,
    attributes: dict | None,
    metadata: dict[str, bool] | None = None,
) -> Tensor:
    """What multiprocessing's pickle of a tensor, and a shallow copy, call."""
    tensor = _C._tensor_from_storage(storage, dtype, offset, size, stride)
    if metadata:
        from taeda._tensor_state import set_tensor_metadata

        set_tensor_metadata(tensor, metadata)
    if cls is not Tensor:
        tensor = tensor.as_subclass(cls)
    if requires_grad:
        tensor.requires_grad_()
    if attributes:
        tensor.__dict__.update(attributes)
    return tensor


def _rebuild_meta_tensor(dtype: Any, size: tuple, stride: tuple, requires_grad: bool) -> Tensor:
    make = _C._by_owner["torch"]["empty_strided"]
    return make(size, stride, dtype=dtype, device="meta").requires_grad_(requires_grad)


def _rebuild_from_type_v2(func: Any, new_type: Any, args: tuple, state: Any) -> Tensor:
    """What pickles and checkpoints call for a class of tensors, or one with attributes."""
    tensor = func(*args)
    if builtins.type(tensor) is not new_type:  # `type` is a method of this module
        tensor = tensor.as_subclass(new_type)
    from taeda._tensor_state import set_state

    set_state(tensor, state)
    return tensor


@_method
def __reduce_ex__(self: Tensor, protocol: Any) -> tuple:
    from taeda._portable import reduce_sent, reduce_tensor

    return reduce_sent(self, sys._getframe(1)) or reduce_tensor(self)


@_method
def __copy__(self: Tensor) -> Tensor:
    """Another tensor object on the same memory."""
    if self.layout is not _C.strided:
        copied = self.detach().requires_grad_(self.requires_grad)
    elif self.is_meta:
        copied = _rebuild_meta_tensor(
            self.dtype, tuple(self.size()), self.stride(), self.requires_grad
        )
    else:
        from taeda._tensor_state import get_tensor_metadata

        copied = _rebuild_tensor(
            self.__class__,
            self.untyped_storage(),
            self.dtype,
            self.storage_offset(),
            tuple(self.size()),
            self.stride(),
            self.requires_grad,
            self.__dict__ or None,
            get_tensor_metadata(self),
        )
    if self.grad is not None:
        copied.grad = self.grad
    return copied


# --- autograd ---


@_method
def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Accumulates the gradient of this tensor (times `gradient`) into the leaves' ``.grad``.

    Args:
        gradient: the gradient of what follows; may be left out for one element.
        retain_graph: keep the graph for another backward (default: create_graph).
        create_graph: record the backward itself, for second derivatives.
        inputs: accumulate into these tensors only.
    """
    from taeda.autograd import backward as run

    run(self, gradient, retain_graph, create_graph, inputs=inputs)


class DisableTorchFunctionSubclass:
    """In the block, subclasses of Tensor do not override operators: torch._C has it too."""

    def __enter__(self) -> None:
        _C._disable_torch_function_subclass(1)

    def __exit__(self, *exc: object) -> None:
        _C._disable_torch_function_subclass(-1)


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """In the block, neither subclasses nor modes override operators."""

    def __enter__(self) -> None:
        super().__enter__()
        self._modes = []
        while _C._has_torch_function_variadic():
            self._modes.append(_C._pop_torch_function_stack())

    def __exit__(self, *exc: object) -> None:
        for mode in reversed(self._modes):
            _C._push_on_torch_function_stack(mode)
        super().__exit__(*exc)


def _make_wrapper_subclass(
    cls: Any,
    size: Any,
    strides: Any = None,
    storage_offset: int | None = None,
    memory_format: Any = None,
    dtype: Any = None,
    layout: Any = _C.strided,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    dispatch_sizes_strides_policy: Any = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
    _extra_dispatch_keys: Any = None,
    storage_size: int | None = None,
) -> Tensor:
    """An instance of `cls` with this shape, dtype and device and no memory of its own: its class's
    __torch_dispatch__ says what operators do with it.

    With a ``dispatch_sizes_strides_policy`` ("strides", or "sizes", which includes them), or with
    ``dispatch_device`` or ``dispatch_layout``, it also answers for these. ``storage_size`` is the
    length of its storage in bytes, that of its elements unless given. ``memory_format`` and
    ``pin_memory`` have no effect, as in PyTorch.
    """
    name = "_make_wrapper_subclass"
    if layout is not _C.strided:
        raise NotImplementedError(f"{name}: only torch.strided is implemented")
    if _extra_dispatch_keys is not None:
        raise NotImplementedError(f"{name}: _extra_dispatch_keys is not implemented")
    policy = dispatch_sizes_strides_policy
    for argument, value, kind in (
        ("dispatch_device", dispatch_device, bool),
        ("dispatch_layout", dispatch_layout, bool),
        ("storage_size", 0 if storage_size is None else storage_size, int),
    ):
        if not isinstance(value, kind):
            raise TypeError(
                f"{name}(): argument '{argument}' must be {kind.__name__}, not "
                f"{value.__class__.__name__}"
            )
    if storage_size is not None and storage_size < 0:
        raise RuntimeError(f"{name}: storage_size must not be negative, got {storage_size}")
    asks = policy is not None or dispatch_device or dispatch_layout
    if asks:
        import taeda._wrapper_answers as classes

        if policy is not None:
            classes.check_policy(policy)
    if strides is None and storage_offset is not None:
        raise RuntimeError("setting storage offset without stride not supported")
    if strides is not None and len(strides) != len(size):
        raise RuntimeError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides "
            f"({len(strides)})"
        )
    nbytes = -1 if storage_size is None else storage_size
    made = _C._make_wrapper_subclass(
        cls, size, strides, storage_offset or 0, dtype, device, requires_grad, nbytes
    )
    return classes.answers(made, policy, dispatch_device, dispatch_layout) if asks else made


def _later(name: str, doc: str) -> Callable:
    """A method that is loaded when it is called."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        from taeda._functions import methods

        return getattr(methods, name)(self, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = doc
    return method


_REMOVED = "Removed, as in PyTorch: RuntimeError, which names what to use."
for _name, _doc in {
    "resize": "The elements in another shape, of as many elements; deprecated: use reshape().",
    "resize_as": "The elements in another tensor's shape; deprecated: use reshape_as().",
    "reinforce": "Removed, as in PyTorch: RuntimeError, which says how to use torch.distributions.",
    "module_load": "What load_state_dict() puts in the place of this parameter or buffer where\n"
    "torch.__future__.get_swap_module_params_on_conversion(): a tensor with the values of other.",
    "polygamma_": "torch.polygamma(n, self), written into the tensor, of a floating dtype.",
    "float_power_": "torch.float_power(self, exponent), written into the tensor, which must have\n"
    "the result's dtype: float64 or complex128.",
    "xpu": "A copy on an Intel GPU: RuntimeError, as there is none.",
    "mtia": "A copy on an MTIA device: RuntimeError, as there is none.",
    "const_data_ptr": "The address of the first element, of memory that is to be read alone.",
    "_is_all_true": "Whether all elements of a boolean tensor are True, as a tensor.",
    "_is_any_true": "Whether an element of a boolean tensor is True, as a tensor.",
    "_view_func": "The view of another base that this tensor is of its own base.",
    **dict.fromkeys(("solve", "lstsq", "eig", "symeig"), _REMOVED),
}.items():
    _method(_later(_name, _doc))


def _refusing(name: str, why: str) -> Any:
    """A method that raises NotImplementedError: for what PyTorch's tensors have and these lack."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"torch.Tensor.{name}: {why}")

    method.__name__, method.__doc__ = name, f"NotImplementedError: {why}."
    method._only_raises = True  # type: ignore[attr-defined]
    return method


_QUANTIZED = "taeda has no quantized tensors; train and run in bfloat16 instead"
_METHODS.update(
    (_name, _refusing(_name, _why))
    for _names, _why in (
        (
            "int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale "
            "q_zero_point qscheme",
            _QUANTIZED,
        ),
        ("index", "there are no first-class dimensions; index with tensors, x[i, j]"),
        ("ipu", "there are no such devices; use Tensor.to"),
        (
            "resize_as_sparse_",
            "taeda resizes no sparse tensors; make a new one with torch.sparse_coo_tensor",
        ),
        ("slice_inverse", "taeda has no inverse of views; use torch.slice_scatter"),
        ("to_mkldnn", "layouts of oneDNN's are chosen inside operators; leave the call out"),
        ("to_padded_tensor", "this tensor is not nested; torch.nested.nested_tensor makes one"),
    )
    for _name in _names.split()
)


@property  # type: ignore[misc]
def _grad_dtype(self: Tensor) -> Any:
    """The dtype that gradients of a leaf have: its own."""
    if not self.is_leaf:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    return self.dtype


@property  # type: ignore[misc]
def _volatile(self: Tensor) -> bool:
    """False: use torch.no_grad()."""
    import warnings

    warnings.warn("volatile was removed (Variable.volatile is always False)", stacklevel=2)
    return False


def _rdiv(self: Any, other: Any) -> Any:
    """other / self, by the name that Python 2 had for it."""
    if isinstance(self, Tensor) and not isinstance(other, Tensor):
        return Tensor.__rtruediv__(self, other)
    return self.reciprocal() * other  # AttributeError of what is no tensor, as in PyTorch


def install() -> None:
    """Puts the methods of this module into the Tensor type."""
    for name, function in {**_METHODS, **_sparse_methods.METHODS}.items():
        setattr(Tensor, name, function)
    setattr(Tensor, "__rdiv__", _rdiv)  # noqa: B010
    setattr(Tensor, "_make_wrapper_subclass", staticmethod(_make_wrapper_subclass))  # noqa: B010
    setattr(Tensor, "grad_dtype", _grad_dtype)  # noqa: B010
    setattr(Tensor, "volatile", _volatile)  # noqa: B010
    setattr(Tensor, "__cuda_array_interface__", property(_cuda_array_interface))  # noqa: B010
    for name, meant in _FOREIGN_NAMES.items():
        setattr(Tensor, name, _ForeignName(name, meant))
    _C._TensorMeta.__dir__ = _dir_of_class  # type: ignore[method-assign]
    for kind in (DisableTorchFunctionSubclass, DisableTorchFunction):
        setattr(_C, kind.__name__, kind)


install()
