"""Functions of the top-level namespace that are written in Python."""

from __future__ import annotations

import warnings

from taeda import _C
from taeda._arguments import require_list_of_tensors, require_tensors
from taeda._C import Tensor, _overridable

TYPE_CHECKING = False  # typing's own would load typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_deterministic = {"enabled": False, "warn_only": False, "fill": True}
_matmul_precision = "highest"


def is_tensor(obj: Any, /) -> bool:
    """Whether `obj` is a `Tensor`, of a subclass too: ``isinstance(obj, torch.Tensor)``.

    >>> torch.is_tensor(torch.ones(2)), torch.is_tensor([1.0])
    (True, False)
    """
    return isinstance(obj, Tensor)


def is_storage(obj: Any) -> bool:
    """Whether `obj` is a storage: the memory below tensors, typed or not.

    >>> torch.is_storage(torch.ones(2).untyped_storage())
    True
    """
    if isinstance(obj, _C.UntypedStorage):
        return True
    from taeda.storage import TypedStorage

    return isinstance(obj, TypedStorage)


def typename(obj: Any) -> str:
    """The name of a tensor's type by its dtype; of others, the module and name of their type.

    >>> torch.typename(torch.ones(2)), torch.typename([1.0])
    ('torch.FloatTensor', 'list')
    """
    if isinstance(obj, Tensor):
        return obj.type()
    kind = type(obj)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _of_tensor(name: str, input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """A method's result; TypeError for what is no tensor and has none."""
    try:
        method = getattr(input, name)
    except AttributeError:
        require_tensors(name, input=input)
        raise
    return method(*args, **kwargs)


@_overridable
def numel(input: Tensor) -> int:
    """The number of elements, the product of all sizes.

    >>> torch.numel(torch.zeros(2, 3))
    6
    """
    return _of_tensor("numel", input)


@_overridable
def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating one: float64, float32, float16, bfloat16 or one of 8 bits.

    >>> torch.is_floating_point(torch.ones(2)), torch.is_floating_point(torch.tensor(1))
    (True, False)
    """
    return _of_tensor("is_floating_point", input)


@_overridable
def is_complex(input: Tensor) -> bool:
    """Whether the dtype is a complex one: complex64, complex128 or complex32.

    >>> torch.is_complex(torch.tensor(1j)), torch.is_complex(torch.ones(2))
    (True, False)
    """
    return _of_tensor("is_complex", input)


@_overridable
def is_nonzero(input: Tensor) -> bool:
    """Whether the only element is not zero; RuntimeError for a tensor with several elements or
    none.

    >>> torch.is_nonzero(torch.tensor([0.0])), torch.is_nonzero(torch.tensor(True))
    (False, True)
    """
    return bool(input)


@_overridable
def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made under `inference_mode`: it cannot be saved for backward, nor be
    written outside of that mode.

    >>> with torch.inference_mode():
    ...     x = torch.ones(1)
    >>> torch.is_inference(x)
    True
    """
    return _of_tensor("is_inference", input)


@_overridable
def is_conj(input: Tensor) -> bool:
    """Whether the elements are the conjugates of what lies in memory."""
    return _of_tensor("is_conj", input)


@_overridable
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape."""
    if input.is_nested != other.is_nested:
        first, second = ("is" if t.is_nested else "is not" for t in (input, other))
        raise RuntimeError(
            "Expected both self and other to be nested tensors. "
            f"Self {first} nested. While Other {second} nested."
        )
    return input.shape == other.shape


def broadcast_shapes(*shapes: Any) -> Any:
    """The shape that tensors of these shapes are expanded to when an operator takes them together.

    Sizes are compared from the last dimension on, and must be equal or 1.

    Args:
        shapes: tuples of sizes, or single sizes.

    Raises:
        RuntimeError: there is no common shape.

    >>> torch.broadcast_shapes((3, 1), (4,))
    torch.Size([3, 4])
    """
    result: list[int] = []
    for shape in shapes:
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        if any(size < 0 for size in sizes):
            raise RuntimeError(
                f"Trying to create tensor with negative dimension ({min(sizes)}): ({min(sizes)})"
            )
        result[:0] = [1] * (len(sizes) - len(result))
        for i, size in enumerate(reversed(sizes), 1):
            if result[-i] == 1:
                result[-i] = size
            elif size not in (1, result[-i]):
                raise RuntimeError(
                    "Shape mismatch: objects cannot be broadcast to a single shape: "
                    f"got {', '.join(map(str, shapes))}"
                )
    return _C.Size(result)


# What PyTorch's overloads call the two arguments.
_RESULT_TYPE_NAMES = (("tensor", "other"), ("scalar", "tensor"), ("scalar1", "scalar2"))


def result_type(*args: Any, **kwargs: Any) -> Any:
    """result_type(tensor1, tensor2) -> dtype

    The dtype of an arithmetic operation on two tensors or numbers. By name they are ``tensor`` and
    ``other``, ``scalar`` and ``tensor``, or ``scalar1`` and ``scalar2``.

    >>> torch.result_type(tensor=torch.tensor([1], dtype=torch.uint8), other=3)
    torch.uint8
    """
    for names in _RESULT_TYPE_NAMES if kwargs else ():
        if set(names[len(args) :]) == set(kwargs):
            return _C._result_type(*args, *(kwargs[name] for name in names[len(args) :]))
    return _C._result_type(*args, **kwargs)


def set_default_tensor_type(t: Any) -> None:
    """The default dtype, and device, by the name of a tensor type."""

    from taeda._dtypes import device_of_type, dtype_of_type
    from taeda.utils._device import get_default_device, set_default_device

    warnings.warn(
        "torch.set_default_tensor_type() is deprecated: use torch.set_default_dtype()", stacklevel=2
    )
    if device_of_type(t) == "cuda":
        if not _C._cuda_device_count():
            raise TypeError(
                f"type torch.cuda.{getattr(t, '__name__', t)} not available. Torch not compiled "
                "with CUDA enabled. (no CUDA device was found)"
            )
        set_default_device("cuda")
    elif get_default_device().type == "cuda":
        set_default_device(None)
    _C.set_default_dtype(dtype_of_type(t))


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Operators on CUDA devices whose result depends on the order of threads take a slower way; all
    others are deterministic in any case. `torch.empty` fills its memory: see
    torch.utils.deterministic.fill_uninitialized_memory."""
    for name, value in (("'mode' (position 1)", mode), ("'warn_only'", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(
                f"_set_deterministic_algorithms(): argument {name} must be bool, not "
                f"{type(value).__name__}"
            )
    _deterministic.update(enabled=mode, warn_only=warn_only)
    _C._set_deterministic(mode)
    _C._set_fill_uninitialized(_deterministic["enabled"] and _deterministic["fill"])


def are_deterministic_algorithms_enabled() -> bool:
    """What use_deterministic_algorithms was last given."""
    return _deterministic["enabled"]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether use_deterministic_algorithms was last given warn_only."""
    return _deterministic["warn_only"]


def get_deterministic_debug_mode() -> int:
    """0, 1 (warn) or 2 (error): use_deterministic_algorithms as a number."""
    return (1 if _deterministic["warn_only"] else 2) if _deterministic["enabled"] else 0


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """use_deterministic_algorithms by a number, or by "default", "warn" or "error"."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    names: dict = {"default": 0, "warn": 1, "error": 2}
    mode = names.get(debug_mode) if isinstance(debug_mode, str) else debug_mode
    if mode not in (0, 1, 2):
        words = "one of `default`, `warn`, `error`"
        what = words if isinstance(debug_mode, str) else "0, 1, or 2"
        raise RuntimeError(f"invalid value of debug_mode, expected {what}, but got {debug_mode}")
    use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def set_float32_matmul_precision(precision: str) -> None:
    """Products of float32 matrices are computed in float32; the choice is only remembered."""
    global _matmul_precision
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"{precision} is not one of 'highest', 'high', 'medium'")
    _matmul_precision = precision


def get_float32_matmul_precision() -> str:
    """What set_float32_matmul_precision was last given; 'highest' at first."""
    return _matmul_precision


def set_flush_denormal(mode: bool) -> bool:
    """Not supported: returns False, as PyTorch does on such CPUs."""
    return False


def get_num_interop_threads() -> int:
    """1: operators run one after another."""
    return 1


def set_num_interop_threads(n: int) -> None:
    """Operators run one after another; any positive number is accepted."""
    if n <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")


def _check(condition: Any, message: Callable[[], str] | None = None) -> None:
    """RuntimeError unless the condition holds."""
    if not isinstance(condition, bool):
        raise TypeError(f"cond must be a bool, but got {type(condition)}")
    if not condition:
        raise RuntimeError(message() if message else "Expected cond to be True, but got False")


@_overridable
def _assert(condition: Any, message: str) -> None:
    """``assert condition, message``, which traces record."""
    assert condition, message


@_overridable
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of one element of each vector, as `itertools.product` orders them.

    Args:
        tensors: n vectors of one dtype.

    Returns:
        Tensor: ``(product of their sizes, n)``, a combination a row; of one vector, the vector.

    >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([8, 9]))
    tensor([[1, 8],
            [1, 9],
            [2, 8],
            [2, 9]])
    """
    require_list_of_tensors("cartesian_prod", tensors)
    return _C._by_owner["torch"]["_cartesian_prod"](list(tensors))


def _listed(tensors: tuple) -> list:
    """f(a, b) and f([a, b]) are the same."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return list(tensors[0])
    return list(tensors)


@_overridable
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """The coordinates of the points of a grid, as one tensor for each of its axes.

    Args:
        tensors: n vectors or numbers of one dtype, the coordinates along each axis; or a list.
        indexing: "ij", the first vector along dimension 0 (the default, with a warning if not
            given); or "xy", along dimension 1, as plots have it.

    Returns:
        tuple: n views of sizes ``(s_1, ..., s_n)``, those of the vectors; the first two swapped
        with "xy".

    >>> rows, columns = torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")
    >>> rows * 10 + columns
    tensor([[ 0,  1,  2],
            [10, 11, 12]])
    """
    return _C._by_owner["torch"]["meshgrid"](_listed(tensors), indexing=indexing)


def _subscripts(dims: Any) -> str:
    """Dimensions 0 to 51 as letters: [..., 0, 27] is '...Ab'."""
    text = ""
    for dim in dims:
        if dim is not Ellipsis and not 0 <= dim < 52:
            raise ValueError(
                "einsum(): subscript in subscript list is not within the valid range [0, 52)"
            )
        text += "..." if dim is Ellipsis else chr((65 if dim < 26 else 71) + dim)
    return text


def _einsum_arguments(args: tuple) -> tuple[Any, list]:
    """An equation and the operands, of either form of the arguments."""
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one "
            "operand and its subscripts list"
        )
    if not isinstance(args[0], Tensor):
        return args[0], _listed(args[1:])
    equation = ",".join(map(_subscripts, args[1::2]))
    if len(args) % 2:
        equation = ",".join(map(_subscripts, args[1:-1:2])) + "->" + _subscripts(args[-1])
    return equation, list(args[: len(args) // 2 * 2 : 2])


@_C._hint_keywords
def einsum(*args: Any) -> Tensor:
    """Products of the operands' elements, summed over the letters that the result lacks.

    Args:
        equation: a letter for each dimension of each operand, ``->``, and those of the result.
            Without ``->``, the letters that occur once, in alphabetical order. ``...`` stands for
            dimensions without letters, which broadcast; a letter twice in one operand for its
            diagonal. There are 52 letters.
        operands: tensors, or a list of them. In the other form each is followed by a list of
            numbers in place of letters: ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.

    Contracts from left to right, two operands at a time, by matrix products where it can. It takes
    no keywords.

    >>> a, b = torch.arange(6.0).view(2, 3), torch.ones(3, 2)
    >>> torch.einsum("ij,jk->ik", a, b)  # a @ b
    tensor([[ 3.,  3.],
            [12., 12.]])
    >>> torch.einsum("ii", torch.eye(3))  # the trace
    tensor(3.)
    """
    equation, operands = _einsum_arguments(args)
    if _C._has_torch_function(tuple(operands)):
        return _C._handle_torch_function(einsum, tuple(operands), equation, *operands)
    if not isinstance(equation, str):
        raise TypeError(
            f"einsum(): argument 'equation' (position 1) must be str, not {type(equation).__name__}"
        )
    return _C._by_owner["torch"]["_einsum"](equation, operands)


@_overridable
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Sums of products over some dimensions of `a` and as many of `b`: a matrix product of more.

    Args:
        dims: how many, the last of `a` and the first of `b`; or two lists of dimensions, which are
            paired in order and have equal sizes.
        out: where the result is written.

    Returns:
        Tensor: of the dimensions of `a` that are left, and then those of `b`.

    >>> torch.tensordot(torch.ones(2, 3, 4), torch.ones(4, 3), dims=([1, 2], [1, 0]))
    tensor([12., 12.])
    """
    if isinstance(dims, Tensor):
        dims = dims.tolist() if dims.numel() > 1 else int(dims)
    if not isinstance(dims, (int, tuple, list)):
        raise RuntimeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] "
            f"containing two lists, but got dims={dims}"
        )
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims = (list(range(a.dim() - dims, a.dim())), list(range(dims)))
    dims_a, dims_b = ([d] if isinstance(d, int) else list(d) for d in dims)
    return _C._by_owner["torch"]["_tensordot"](a, b, dims_a, dims_b, out=out)


@_overridable
def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """The product of matrices, in the order of multiplications that costs least.

    Args:
        matrices: each with as many rows as the one before has columns.
        out: where the result is written.

    >>> torch.chain_matmul(torch.ones(2, 3), torch.ones(3, 4), torch.ones(4, 1))
    tensor([[12.],
            [12.]])
    """
    result = _C._by_owner["torch"]["_chain_matmul"](list(matrices))
    return result if out is None else out.resize_(result.shape).copy_(result)


@_overridable
def block_diag(*tensors: Tensor) -> Tensor:
    """Tensors as blocks along the diagonal of a matrix that is 0 elsewhere.

    Args:
        tensors: of at most two dimensions; vectors and numbers are blocks of one row.

    Returns:
        Tensor: ``(sum of the rows, sum of the columns)``.

    >>> torch.block_diag(torch.ones(1, 2), torch.tensor([[7.0], [8.0]]))
    tensor([[1., 1., 0.],
            [0., 0., 7.],
            [0., 0., 8.]])
    """
    return _C._by_owner["torch"]["_block_diag"](list(tensors))


@_overridable
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors as views of their common shape, as operators expand them.

    Args:
        tensors: several, or a list of them, whose sizes are equal or 1, from the last one on.

    >>> a, b = torch.broadcast_tensors(torch.tensor([[1], [2]]), torch.tensor([3, 4]))
    >>> a
    tensor([[1, 1],
            [2, 2]])
    """
    return _C._by_owner["torch"]["broadcast_tensors"](_listed(tensors))


def _at_least(name: str, tensors: tuple) -> Any:
    function = _C._by_owner["torch"][name]
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return function(tensors[0])
    return tuple(function(tensor) for tensor in _listed(tensors))


@_overridable
def atleast_1d(*tensors: Any) -> Any:
    """Tensors with one dimension or more: numbers become vectors of one element.

    Args:
        tensors: one, several or a list of them.

    Returns:
        Tensor or tuple: of one tensor a tensor; else a tuple. Views, or the tensors themselves.

    >>> torch.atleast_1d(torch.tensor(2.0))
    tensor([2.])
    """
    return _at_least("atleast_1d", tensors)


@_overridable
def atleast_2d(*tensors: Any) -> Any:
    """Tensors with two dimensions or more: vectors become matrices of one row.

    Args:
        tensors: one, several or a list of them.

    Returns:
        Tensor or tuple: of one tensor a tensor; else a tuple. Views, or the tensors themselves.

    >>> torch.atleast_2d(torch.tensor([1.0, 2.0]))
    tensor([[1., 2.]])
    """
    return _at_least("atleast_2d", tensors)


@_overridable
def atleast_3d(*tensors: Any) -> Any:
    """Tensors with three dimensions or more: of ``(n)`` ``(1, n, 1)``, of ``(m, n)`` ``(m, n, 1)``.

    Args:
        tensors: one, several or a list of them.

    Returns:
        Tensor or tuple: of one tensor a tensor; else a tuple. Views, or the tensors themselves.

    >>> torch.atleast_3d(torch.ones(2, 3)).shape
    torch.Size([2, 3, 1])
    """
    return _at_least("atleast_3d", tensors)


def from_file(
    filename: Any,
    shared: bool | None = None,
    size: int = 0,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """The first `size` elements of a file as a tensor of one dimension, mapped and not read.

    With `shared` what is written goes into the file, which grows where it is shorter; else the
    tensor keeps it to itself, and RuntimeError where the file is shorter.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "numbers")
    ...     _ = path.write_bytes(bytes([1, 2, 3]))
    ...     torch.from_file(str(path), size=3, dtype=torch.uint8)
    tensor([1, 2, 3], dtype=torch.uint8)
    """
    import taeda

    if size < 0:
        raise RuntimeError(f"from_file: size must not be negative, got {size}")
    empty = taeda.empty(0, dtype=dtype, layout=layout or taeda.strided, device=device)
    if empty.device.type != "cpu":
        raise RuntimeError(f"from_file: a file is mapped for the CPU, not for {empty.device}")
    if pin_memory:
        raise RuntimeError("from_file: tensors constructed from a file cannot be pinned")
    storage = taeda.UntypedStorage.from_file(filename, bool(shared), size * empty.itemsize)
    return empty.set_(storage, 0, (size,))


def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule of the tensor."""
    return tensor.__dlpack__()


@_overridable
def sym_not(a: Any) -> bool:
    """``not a``: sizes are numbers here, which the functions with sym_ compute with."""
    return not a


@_overridable
def sym_int(a: Any) -> int:
    """The integer next to zero."""
    return int(a)


@_overridable
def sym_float(a: Any) -> float:
    """The number as a float."""
    return float(a)


@_overridable
def sym_max(a: Any, b: Any) -> Any:
    """The larger one, a float where one of them is."""
    kind = float if isinstance(a, float) or isinstance(b, float) else type(max(a, b))
    return kind(max(a, b))


@_overridable
def sym_min(a: Any, b: Any) -> Any:
    """The smaller one, a float where one of them is."""
    kind = float if isinstance(a, float) or isinstance(b, float) else type(min(a, b))
    return kind(min(a, b))


@_overridable
def sym_sum(args: Any) -> Any:
    """The sum of the numbers in a list."""
    return sum(args)


@_overridable
def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """`t` if `b`, else `f`."""
    return t if b else f


__all__ = [
    name
    for name, value in list(globals().items())
    if getattr(value, "__module__", None) == __name__ and not name.startswith("_")
]
# What is at home in torch.functional; the others are in torch itself.
_AT_HOME = frozenset(
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod "
    "chain_matmul einsum meshgrid tensordot".split()
)
for _name in __all__:
    globals()[_name].__module__ = "taeda.functional" if _name in _AT_HOME else "taeda"
