"""Modules that hold modules or parameters: Sequential, lists and dictionaries."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Container as _ContainerABC
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import chain, islice
from typing import Any, Self, overload

from taeda import Tensor
from taeda.nn.parameter import Parameter

from .module import Module, _addindent

__all__ = ["Container", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"]


def _wrap_index(idx: Any, size: int) -> int:
    idx = operator.index(idx)
    if not -size <= idx < size:
        raise IndexError(f"index {idx} is out of range")
    return idx % size


class Container(Module):
    """Modules by name, and no forward. It is deprecated: ModuleDict holds modules by name."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


class Sequential(Module):
    """Modules called one after the other, each on the result of the one before.

    Args:
        args: modules, or one ``OrderedDict`` of modules by name.

    Children are named "0", "1", ... or by the dict; ``model[0]``, slices, ``append``, ``insert``,
    ``extend``, ``pop`` and ``del`` work as for a list.

    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    >>> model(torch.rand(3, 4)).shape
    torch.Size([3, 1])
    >>> named = nn.Sequential(OrderedDict([("fc", nn.Linear(4, 8)), ("act", nn.ReLU())]))
    >>> named.fc is named[0], len(model[:2])
    (True, 2)
    """

    _modules: dict[str, Module]

    @overload
    def __init__(self, *args: Module) -> None: ...
    @overload
    def __init__(self, arg: OrderedDict[str, Module], /) -> None: ...
    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for key, module in args[0].items():
                self.add_module(key, module)
        else:
            for idx, module in enumerate(args):
                self.add_module(str(idx), module)

    def _key(self, idx: Any) -> str:
        return next(islice(self._modules, _wrap_index(idx, len(self)), None))

    def _renumber(self, modules: Iterable[Module]) -> None:
        self._modules = {str(i): module for i, module in enumerate(modules)}

    @overload
    def __getitem__(self, idx: slice) -> Self: ...
    @overload
    def __getitem__(self, idx: int) -> Module: ...
    def __getitem__(self, idx: slice | int) -> Any:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._key(idx)]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._key(idx), module)

    def __delitem__(self, idx: slice | int) -> None:
        if isinstance(idx, slice):
            for key in list(self._modules)[idx]:
                delattr(self, key)
        else:
            delattr(self, self._key(idx))
        self._renumber(list(self._modules.values()))

    def __len__(self) -> int:
        return len(self._modules)

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                "add operator supports only objects "
                f"of Sequential class, but {type(other)} is given."
            )
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                "add operator supports only objects "
                f"of Sequential class, but {type(other)} is given."
            )
        return self.extend(list(other))

    def __mul__(self, other: int) -> Sequential:
        _check_times(other)
        return Sequential(*(module for _ in range(other) for module in self))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Sequential:
        _check_times(other)
        return self.extend([module for _ in range(other - 1) for module in self])

    def __dir__(self) -> list[str]:
        return [key for key in super().__dir__() if not key.isdigit()]

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input

    def pop(self, key: int | slice) -> Module:
        """Removes and returns the module at ``key``."""
        module = self[key]
        del self[key]
        return module

    def append(self, module: Module) -> Sequential:
        """Adds a module to the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Sequential:
        """Puts a module before position ``index``."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        n = len(self)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self._modules.values())
        modules.insert(index + n if index < 0 else index, module)
        self._renumber(modules)
        return self

    def extend(self, sequential: Iterable[Module]) -> Sequential:
        """Adds modules to the end."""
        for layer in list(sequential):
            self.append(layer)
        return self


def _check_times(other: Any) -> None:
    if not isinstance(other, int):
        raise TypeError(f"unsupported operand type(s) for *: {type(Sequential)} and {type(other)}")
    if other <= 0:
        raise ValueError(f"Non-positive multiplication factor {other} for {type(Sequential)}")


class ModuleList(Module):
    """A list of modules that are registered as children.

    A Python list would hide them from ``parameters()``. It has no ``forward``: say in your own what
    is to be called.

    Args:
        modules: any iterable of modules; None: empty.

    Indices, slices, ``append``, ``insert``, ``extend``, ``pop``, ``+`` and iteration work as for a
    list; children are named "0", "1", ...

    >>> layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    >>> layers.append(nn.ReLU())[-1]
    ReLU()
    >>> len(list(layers.parameters()))
    6
    """

    _modules: dict[str, Module]

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    def _abs_key(self, idx: Any) -> str:
        return str(_wrap_index(idx, len(self)))

    def _renumber(self, modules: Iterable[Module]) -> None:
        self._modules = {str(i): module for i, module in enumerate(modules)}

    @overload
    def __getitem__(self, idx: slice) -> Self: ...
    @overload
    def __getitem__(self, idx: int) -> Module: ...
    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[self._abs_key(idx)]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._abs_key(idx), module)

    def __delitem__(self, idx: int | slice) -> None:
        if isinstance(idx, slice):
            for k in range(len(self._modules))[idx]:
                delattr(self, str(k))
        else:
            delattr(self, self._abs_key(idx))
        self._renumber(list(self._modules.values()))

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        combined = ModuleList()
        for i, module in enumerate(chain(self, other)):
            combined.add_module(str(i), module)
        return combined

    def __repr__(self) -> str:
        """Runs of equal modules are shown once, as in ``(0-2): 3 x Linear(...)``."""
        runs: list[list] = []  # [first index, last index, text]
        for i, text in enumerate(repr(item) for item in self):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        if not runs:
            return self._get_name() + "()"
        lines = []
        for first, last, text in runs:
            if first == last:
                line = f"({first}): {text}"
            else:
                line = f"({first}-{last}): {last - first + 1} x {text}"
            lines.append(_addindent(line, 2))
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"

    def __dir__(self) -> list[str]:
        return [key for key in super().__dir__() if not key.isdigit()]

    def insert(self, index: int, module: Module) -> None:
        """Puts a module before position ``index``."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)

    def pop(self, key: int | slice) -> Module:
        """Removes and returns the module at ``key``."""
        module = self[key]
        del self[key]
        return module

    def append(self, module: Module | None) -> ModuleList:
        """Adds a module to the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Adds modules to the end."""
        if not isinstance(modules, _ContainerABC) and not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleList.extend should be called with an "
                f"iterable, but got {type(modules).__name__}"
            )
        offset = len(self)
        for i, module in enumerate(modules):
            self.add_module(str(offset + i), module)
        return self


def _pairs(kind: str, entry: str, items: Any) -> Iterator[tuple[str, Any]]:
    """The (key, value) pairs of a mapping or of an iterable of pairs, with PyTorch's complaints."""
    if not isinstance(items, Iterable):
        raise TypeError(
            f"{kind}.update should be called with an "
            f"iterable of key/value pairs, but got {type(items).__name__}"
        )
    if isinstance(items, (Mapping, ModuleDict, ParameterDict)):
        yield from items.items()
        return
    for j, pair in enumerate(items):
        if not isinstance(pair, Iterable):
            raise TypeError(
                f"{kind} update sequence element #{j} should be Iterable; is{type(pair).__name__}"
            )
        values = tuple(pair)
        if len(values) != 2:
            raise ValueError(
                f"{kind} update sequence element #{j} has length {len(values)}; 2 is required"
            )
        yield values


class ModuleDict(Module):
    """A dict of modules that are registered as children, in the order of insertion.

    It has no ``forward``: say in your own which is to be called.

    Args:
        modules: a dict, or pairs of names and modules; None: empty.

    Names are strings without dots. ``keys``, ``values``, ``items``, ``update``, ``pop`` and ``in``
    work as for a dict.

    >>> heads = nn.ModuleDict({"depth": nn.Linear(8, 1), "label": nn.Linear(8, 10)})
    >>> heads["label"](torch.rand(2, 8)).shape
    torch.Size([2, 10])
    """

    _modules: dict[str, Module]

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Removes all items."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Removes ``key`` and returns its module."""
        module = self[key]
        del self[key]
        return module

    def keys(self) -> KeysView[str]:
        return self._modules.keys()

    def items(self) -> ItemsView[str, Module]:
        return self._modules.items()

    def values(self) -> ValuesView[Module]:
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Adds the pairs of a mapping or of an iterable of pairs, overwriting existing keys."""
        for key, module in _pairs("ModuleDict", "module", modules):
            self[key] = module


class ParameterList(Module):
    """A list whose tensors are registered as parameters.

    Args:
        values: any iterable; tensors become Parameters, other values stay as they are.

    Indices, ``append``, ``extend`` and iteration work as for a list; parameters are named "0", ...

    >>> weights = nn.ParameterList([torch.zeros(2, 2), torch.zeros(3)])
    >>> [name for name, _ in weights.named_parameters()]
    ['0', '1']
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            out = type(self)()
            for i in range(len(self))[idx]:
                out.append(self[i])
            return out
        return getattr(self, str(_wrap_index(idx, len(self))))

    def __setitem__(self, idx: int, param: Any) -> None:
        # Plain attributes keep the order and any kind of value; the key may be one past the end.
        idx = operator.index(idx)
        if not -len(self) <= idx < len(self):
            raise IndexError(f"index {idx} is out of range")
        if isinstance(param, Tensor) and not isinstance(param, Parameter):
            param = Parameter(param)
        setattr(self, str(idx % len(self)), param)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter(self[i] for i in range(len(self)))

    def __iadd__(self, parameters: Iterable[Any]) -> ParameterList:
        return self.extend(parameters)

    def __dir__(self) -> list[str]:
        return [key for key in super().__dir__() if not key.isdigit()]

    def append(self, value: Any) -> ParameterList:
        """Adds a value to the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Adds values to the end."""
        if not isinstance(values, _ContainerABC) or isinstance(values, Tensor):
            raise TypeError(
                "ParameterList.extend should be called with an "
                f"iterable, but got {type(values).__name__}"
            )
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        lines = [f"  ({k}): {_describe_entry(p)}" for k, p in enumerate(self)]
        return "\n".join(lines)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


def _describe_entry(value: Any, type_name: Any = lambda t: t.dtype) -> str:
    if not isinstance(value, Tensor):
        return "Object of type: " + type(value).__name__
    size = "x".join(str(n) for n in value.size())
    device = f" ({value.device})" if value.device.type == "cuda" else ""
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{kind} containing: [{type_name(value)} of size {size}{device}]"


class ParameterDict(Module):
    """A dict whose tensors are registered as parameters, in the order of insertion.

    Args:
        parameters: a dict, or pairs of names and values; tensors become Parameters.

    ``keys``, ``values``, ``items``, ``update``, ``pop``, ``get``, ``setdefault`` and ``in`` work as
    for a dict.

    >>> scales = nn.ParameterDict({"left": torch.ones(2), "right": torch.ones(3)})
    >>> scales["right"].requires_grad, len(scales)
    (True, 2)
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    @staticmethod
    def _attribute(key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is "
                f"not a string (type is '{type(key).__name__}'). Open an issue on "
                "github if you need non-string keys."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._attribute(key))

    def __setitem__(self, key: str, value: Any) -> None:
        attribute = self._attribute(key)
        self._keys[key] = None
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        setattr(self, attribute, value)

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._attribute(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """A new dictionary with the same entries."""
        return ParameterDict(OrderedDict((k, self[k]) for k in self._keys))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of ``key``, which becomes ``default`` if absent."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Removes all items."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Removes ``key`` and returns its value."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Removes and returns the last (key, value) pair."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of ``key``, or ``default``."""
        return self[key] if key in self else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A new dictionary with ``default`` for each key."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Any:
        return self._keys.keys()

    def items(self) -> Iterator[tuple[str, Any]]:
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterator[Any]:
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Adds the pairs of a mapping or of an iterable of pairs, overwriting existing keys."""
        pairs = _pairs("ParameterDict", "parameter", parameters)
        # A plain dict of parameters is taken in sorted order, as its order once was arbitrary.
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            pairs = iter(sorted(pairs))
        for key, value in pairs:
            self[key] = value

    def extra_repr(self) -> str:
        # Here, unlike in ParameterList, PyTorch shows the type under its old name.
        entries = ((k, _describe_entry(p, lambda t: t.type())) for k, p in self.items())
        return "\n".join(f"  ({k}): {text}" for k, text in entries)

    def __call__(self, input: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: ParameterDict) -> ParameterDict:
        copied = self.copy()
        copied.update(other)
        return copied

    def __ror__(self, other: Mapping) -> ParameterDict:
        copied = ParameterDict(other)
        copied.update(self)
        return copied

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self
