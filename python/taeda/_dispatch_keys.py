"""Dispatch keys by PyTorch's names: sets of them, guards of a thread's, and who has kernels.

The core has fewer keys (docs/notes/dispatch.md): one for autograd and one for autocast, whatever
the device. Sets that come from the core hold PyTorch's names for the call's device.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

from taeda import _C

BACKENDS = (
    "CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 PrivateUse3 Meta"
).split()
_AUTOCAST = "CPU CUDA XPU HPU IPU MPS PrivateUse1".split()
_KINDS = ("", "Quantized", "Sparse", "SparseCsr", "NestedTensor")
_ALIASES = (
    "Autograd CompositeImplicitAutograd CompositeImplicitAutogradNestedTensor "
    "CompositeExplicitAutograd CompositeExplicitAutogradNonFunctional FuncTorchBatchedDecomposition"
).split()
# The lowest first.
_KEYS = [
    "Undefined",
    *(kind + b for kind in _KINDS for b in BACKENDS),
    *"Dense Quantized Sparse SparseCsr NestedTensor BackendSelect Python".split(),
    *"FuncTorchDynamicLayerBackMode Functionalize Conjugate Negative ZeroTensor".split(),
    *"ADInplaceOrView AutogradOther AutogradFunctionality AutogradNestedTensor".split(),
    *("Autograd" + b for b in BACKENDS),
    *("Autocast" + b for b in _AUTOCAST),
    *"FuncTorchBatched FuncTorchVmapMode FuncTorchGradWrapper PythonTLSSnapshot".split(),
    *"FuncTorchDynamicLayerFrontMode PreDispatch PythonDispatcher".split(),
    *_ALIASES,
]  # fmt: skip
DispatchKey = Enum("DispatchKey", _KEYS, module="torch._C")  # type: ignore[misc]
_AUTOGRAD = {k for k in DispatchKey if k.name.startswith("Autograd") and k.name != "Autograd"}


class DispatchKeySet:
    """A set of dispatch keys.

    >>> keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
    >>> keys | torch._C.DispatchKeySet(torch._C.DispatchKey.AutogradCPU)
    DispatchKeySet(CPU, AutogradCPU)
    """

    def __init__(self, keys: Any = ()) -> None:
        listed: Iterable[Any] = [keys] if isinstance(keys, DispatchKey) else keys
        self._keys = frozenset(listed)

    def has(self, key: Any) -> bool:
        return key in self._keys

    def add(self, key: Any) -> DispatchKeySet:
        return DispatchKeySet(self._keys | {key})

    def remove(self, key: Any) -> DispatchKeySet:
        return DispatchKeySet(self._keys - {key})

    def highestPriorityTypeId(self) -> Any:
        """The key whose kernel a call with these keys comes to first."""
        return max(self._keys, key=lambda key: key.value, default=DispatchKey["Undefined"])

    def raw_repr(self) -> int:
        """The set as a number, a bit a key: taeda's own numbers."""
        return sum(1 << key.value for key in self._keys)

    @staticmethod
    def from_raw_repr(number: int) -> DispatchKeySet:
        """The set of that number."""
        return DispatchKeySet(key for key in DispatchKey if number >> key.value & 1)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys | other._keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys & other._keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys - other._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def __repr__(self) -> str:
        names = (key.name for key in DispatchKey if key in self._keys)
        return f"DispatchKeySet({', '.join(names)})"


def _named(*names: str) -> DispatchKeySet:
    return DispatchKeySet(DispatchKey[name] for name in names)


_BITS: dict[str, int] = _C._key_bits()
_GENERAL = "Python Functionalize Conjugate Negative FuncTorchBatched".split()


def from_bits(bits: int) -> DispatchKeySet:
    """The core's keys of a call by PyTorch's names."""
    device = next((d for d in ("CUDA", "Meta") if bits & _BITS[d]), "CPU")
    names = [("Sparse" if bits & _BITS["Sparse"] else "") + device]
    names += [name for name in _GENERAL if bits & _BITS[name]]
    if bits & _BITS["Autograd"]:
        names.append("Autograd" + device)
    if bits & _BITS["Autocast"] and device in _AUTOCAST:
        names.append("Autocast" + device)
    return _named(*names)


def to_bits(keys: DispatchKeySet) -> int:
    """The core's keys for a set."""
    bits = 0
    for key in keys._keys:
        name = key.name
        if key in _AUTOGRAD:
            name = "Autograd"
        elif name.startswith("Autocast"):
            name = "Autocast"
        elif name.startswith("Sparse"):
            bits |= _BITS.get(name.removeprefix("SparseCsr").removeprefix("Sparse"), 0)
            name = "Sparse"
        bits |= _BITS.get(name, 0)
    return bits


# --- a tensor's, a thread's ---


def _dispatch_keys(tensor: _C.Tensor) -> DispatchKeySet:
    """The keys that a tensor brings to a call, as PyTorch's have them.

    >>> torch._C._dispatch_keys(torch.ones(2))
    DispatchKeySet(CPU, ADInplaceOrView, AutogradCPU, AutocastCPU)
    """
    bits = _C._tensor_key_bits(tensor) & ~_BITS["Autograd"] | _BITS["Autocast"]
    if tensor.is_inference():
        return from_bits(bits)
    return from_bits(bits | _BITS["Autograd"]).add(DispatchKey["ADInplaceOrView"])


def _dispatch_key_set(tensor: _C.Tensor) -> str:
    return repr(_dispatch_keys(tensor))


def _thread_set(bits: int) -> DispatchKeySet:
    names = [name for name in _GENERAL if bits & _BITS[name]]
    keys = _named(*names)
    if bits & _BITS["Autograd"]:
        keys = keys | DispatchKeySet(_AUTOGRAD)
    return keys


def _dispatch_tls_local_include_set() -> DispatchKeySet:
    """The keys that each call of this thread has besides those of its arguments."""
    return _thread_set(_C._thread_key_bits()[0]) | _named("BackendSelect", "ADInplaceOrView")


def _dispatch_tls_local_exclude_set() -> DispatchKeySet:
    """The keys that calls of this thread pass by."""
    return _thread_set(_C._thread_key_bits()[1])


def _dispatch_tls_is_dispatch_key_included(key: Any) -> bool:
    return _dispatch_tls_local_include_set().has(_dispatch_key_parse(key))


def _dispatch_tls_is_dispatch_key_excluded(key: Any) -> bool:
    return _dispatch_tls_local_exclude_set().has(_dispatch_key_parse(key))


class _ThreadKeys:
    """A block in which the thread includes or excludes other keys."""

    _included = _excluded = 0

    def __enter__(self) -> None:
        self._before = included, excluded = _C._thread_key_bits()
        _C._set_thread_key_bits(included | self._included, excluded | self._excluded)

    def __exit__(self, *error: object) -> None:
        _C._set_thread_key_bits(*self._before)


class _AutoDispatchBelowAutograd(_ThreadKeys):
    """A block whose calls go below autograd: kernels for Autograd are passed by, and nothing is
    recorded. An operator's own kernel for Autograd calls the operator in it.

    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch._C._AutoDispatchBelowAutograd():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    _excluded = _BITS["Autograd"]


class _AutoDispatchBelowADInplaceOrView(_AutoDispatchBelowAutograd):
    """The same: what counts writes lies in taeda's kernels, so they are counted here too."""


class _ExcludeDispatchKeyGuard(_ThreadKeys):
    """A block on whose thread calls pass the keys by."""

    def __init__(self, keys: DispatchKeySet) -> None:
        self._excluded = to_bits(keys)
        names = {"cpu": "AutocastCPU", "cuda": "AutocastCUDA"}
        self._devices = [d for d, key in names.items() if keys.has(DispatchKey[key])]
        if self._devices:  # of one device, by the switch that calls look at
            self._excluded &= ~_BITS["Autocast"]

    def __enter__(self) -> None:
        super().__enter__()
        self._autocast = {device: _C._autocast_state(device) for device in self._devices}
        for device, (_, *rest) in self._autocast.items():
            _C._set_autocast_state(device, False, *rest)

    def __exit__(self, *error: object) -> None:
        for device, state in self._autocast.items():
            _C._set_autocast_state(device, *state)
        super().__exit__(*error)


class _IncludeDispatchKeyGuard(_ThreadKeys):
    """A block on whose thread calls have a key more."""

    def __init__(self, key: Any) -> None:
        keys = DispatchKeySet(key) if isinstance(key, DispatchKey) else key
        self._included = to_bits(keys) & ~_BITS["Autograd"]


# --- names ---


def _dispatch_key_parse(name: Any) -> Any:
    """The key of that name, or the key itself; RuntimeError where there is none."""
    if isinstance(name, DispatchKey):
        return name
    try:
        return DispatchKey[name]
    except KeyError:
        raise RuntimeError(f"could not parse dispatch key: {name}") from None


def _parse_dispatch_key(name: str) -> Any:
    """The key of that name; None where there is none."""
    return DispatchKey.__members__.get(name)


def _dispatch_key_name(key: Any) -> str:
    return _dispatch_key_parse(key).name


def _dispatch_key_for_device(device_type: str) -> str:
    """The device's key: "CPU" of "cpu"."""
    known = {name.lower(): name for name in BACKENDS}
    if device_type not in known:
        raise RuntimeError(f"there is no dispatch key for device type {device_type}")
    return known[device_type]


def _dispatch_keyset_to_string(keys: DispatchKeySet) -> str:
    return repr(keys)


def _dispatch_num_backends() -> int:
    return len(BACKENDS)


def _dispatch_keyset_full() -> DispatchKeySet:
    """Every key."""
    return DispatchKeySet(key for key in DispatchKey if key.name not in _ALIASES)


def _dispatch_keyset_full_after(key: Any) -> DispatchKeySet:
    """The keys that calls come to after this one."""
    last = _dispatch_key_parse(key).value
    keys = (k for k in _dispatch_keyset_full()._keys if k.value < last)
    if key in _AUTOGRAD:  # those of other devices are no part of the way
        keys = (k for k in keys if k not in _AUTOGRAD)
    return DispatchKeySet(keys)


_after_autograd_keyset = _dispatch_keyset_full_after(DispatchKey["AutogradOther"])
_after_ADInplaceOrView_keyset = _dispatch_keyset_full_after(DispatchKey["ADInplaceOrView"])


def _dispatch_is_alias_key(key: Any) -> bool:
    """Whether a kernel for the key is one for several."""
    return _dispatch_key_name(key) in _ALIASES


def _dispatch_is_included_in_alias(key: Any, alias: Any) -> bool:
    """Whether a kernel for `alias` may answer at the key."""
    name, of = _dispatch_key_parse(key), _dispatch_key_name(alias)
    if of == "Autograd":
        return name in _AUTOGRAD
    return of in _ALIASES and (name.name in BACKENDS or (name in _AUTOGRAD and "Implicit" in of))


# --- operators' kernels ---

#: keys at which a kernel of an alias answers, or the core's own handler for every operator
_EVERYWHERE = {"Autocast", "FuncTorchBatched", "Functionalize", "Python", "Conjugate", "Negative"}
#: what libraries for namespace "_" have registered (Library.fallback)
FALLBACKS: dict[str, int] = {}


def _operator(name: str) -> Any:
    op = _C._operator(*_split(name))
    if op is None:
        raise RuntimeError(f"operator {name} does not exist")
    return op


def _split(name: str) -> tuple[str, str]:
    plain, _, overload = name.partition(".")
    return plain, "" if overload == "default" else overload


def has_kernel(op: Any, key: Any) -> bool:
    """Whether something was registered for the operator and exactly this key."""
    name = _dispatch_key_name(key)
    try:
        return _C._has_kernel(op, name)
    except RuntimeError:  # a key that no kernel of taeda's is for
        return False


def _dispatch_has_kernel(name: str) -> bool:
    """Whether there is an operator of that name, its overload with it."""
    return _C._operator(*_split(name)) is not None


def _dispatch_has_kernel_for_dispatch_key(name: str, key: Any) -> bool:
    """Whether an operator has a kernel for exactly this key; RuntimeError for an unknown name.

    >>> torch._C._dispatch_has_kernel_for_dispatch_key("aten::add.Tensor", "CPU")
    True
    """
    return has_kernel(_operator(name), key)


def _dispatch_has_kernel_for_any_dispatch_key(name: str, keys: DispatchKeySet) -> bool:
    """Whether it has one for a key of the set."""
    op = _operator(name)
    return any(has_kernel(op, key) for key in keys._keys)


def _dispatch_has_computed_kernel_for_dispatch_key(name: str, key: Any) -> bool:
    """Whether something answers calls that have come to this key, aliases and fallbacks too."""
    op, parsed = _operator(name), _dispatch_key_parse(key)
    if has_kernel(op, parsed) or parsed.name in FALLBACKS:
        return True
    if any(parsed.name.startswith(known) for known in _EVERYWHERE):
        return True
    if parsed in _AUTOGRAD:
        return parsed.name.removeprefix("Autograd") in ("CPU", "CUDA", "Meta")
    aliases = ("CompositeExplicitAutograd", "CompositeImplicitAutograd")
    return any(has_kernel(op, a) and _dispatch_is_included_in_alias(parsed, a) for a in aliases)


def _dispatch_has_backend_fallback(key: Any) -> bool:
    """Whether operators without a kernel for the key have one all the same."""
    parsed = _dispatch_key_parse(key)
    known = any(parsed.name.startswith(k) for k in _EVERYWHERE)
    return known or parsed in _AUTOGRAD or parsed.name in FALLBACKS


def _dispatch_get_all_op_names() -> list[str]:
    """The name of every operator, its overload with it."""
    return [op.name() for op in _C._operators(None)]


def _dispatch_get_registrations_for_dispatch_key(key: str = "") -> list[str]:
    """The names of the operators with a kernel for the key; without one, of all."""
    operators = _C._operators(None)
    return [op.name() for op in operators if not key or has_kernel(op, key)]


def _dispatch_find_schema_or_throw(name: str, overload: str = "") -> Any:
    """The operator, to be called by `_dispatch_call_boxed`."""
    return _operator(f"{name}.{overload}" if overload else name)


def _dispatch_call_boxed(handle: Any, *args: Any, **kwargs: Any) -> Any:
    return handle(*args, **kwargs)


def _dispatch_isTensorSubclassLike(tensor: _C.Tensor) -> bool:
    """Whether the tensor's class, or a mode, may answer for operators."""
    return _C._has_torch_dispatch(tensor) or bool(_C._torch_dispatch_stack())
