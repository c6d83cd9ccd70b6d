"""What there is to call: the operator table's names, and every public name of the package."""

from __future__ import annotations

import builtins
import importlib
import pkgutil
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from gen.table import Op, load

ROOT = Path(__file__).resolve().parents[2]
# Not looked into: they start processes or belong to programs.
MODULES_SKIPPED = ("multiprocessing", "distributed", "__main__", "cuda", "mps", "xpu", "env")
# Not called: they wait, write to the terminal for ever, go round as often as a number says, or end
# what they run in.
SKIPPED = frozenset(
    "set_num_threads set_num_interop_threads compile spawn start_processes register_package "
    "set_flush_denormal share_memory_ share_memory breakpoint print_exc notify_join_context "
    "init_process_group destroy_process_group svd_lowrank pca_lowrank _approximate_basis "
    "wait".split()
)
DUNDERS_SKIPPED = frozenset(
    "__class__ __del__ __new__ __init__ __init_subclass__ __subclasshook__ __getattribute__ "
    "__delattr__ __setattr__ __dir__ __sizeof__ __class_getitem__".split()
)


@dataclass
class Names:
    """Paths below ``torch.``; classes with the names of their public methods."""

    table: list[tuple[Op, str]] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    classes: dict[str, list[str]] = field(default_factory=dict)
    modules: list[str] = field(default_factory=list)  # classes derived from nn.Module
    optimizers: list[str] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)  # of Tensor
    properties: list[str] = field(default_factory=list)


def resolve(torch: ModuleType, path: str) -> Any:
    """What a path stands for; None for what the framework has not."""
    target: Any = torch
    for part in path.split("."):
        target = getattr(target, part, None)
    return target


def submodules(torch: ModuleType) -> dict[str, ModuleType]:
    """taeda's public modules by path, as the framework has them."""
    import taeda

    found = {"": torch}
    for info in pkgutil.walk_packages(taeda.__path__, "taeda."):
        parts = info.name.split(".")[1:]
        if any(p.startswith("_") for p in parts) or parts[0] in MODULES_SKIPPED:
            continue
        try:
            name = ".".join(parts)
            found[name] = importlib.import_module(f"{torch.__name__}.{name}")
        except ImportError:
            continue
    return found


def public_methods(cls: type) -> list[str]:
    names = []
    for name in sorted(dir(cls)):
        dunder = name.startswith("__") and name.endswith("__") and name not in DUNDERS_SKIPPED
        if (dunder or not name.startswith("_")) and name not in SKIPPED:
            if callable(getattr(cls, name, None)):
                names.append(name)
    return names


def offered(module: ModuleType, name: str, home: str) -> bool:
    """Whether a module means others to use the name, which it may only have imported."""
    listed = getattr(module, "__all__", None)
    return name in listed if listed is not None else home == module.__name__


def derived(value: Any, base: Any) -> bool:
    return isinstance(value, type) and issubclass(value, base) and value is not base


def collect(torch: ModuleType) -> Names:
    names, seen = Names(), set()
    for op in load(ROOT / "ops"):
        for path in op.python:
            path = path.removeprefix("torch.")
            if path.rpartition(".")[2] not in SKIPPED and callable(resolve(torch, path)):
                names.table.append((op, path))
    for prefix, module in submodules(torch).items():
        for name in sorted(dir(module)):
            value = getattr(module, name, None)
            if name.startswith(("_", "register_module_", "register_optimizer_")):
                continue
            if name in SKIPPED or not callable(value) or id(value) in seen:
                continue
            home = str(getattr(value, "__module__", None) or "builtins")
            if not home.startswith((torch.__name__, "taeda", "builtins")):
                continue
            if getattr(builtins, name, None) is value:
                continue
            seen.add(id(value))
            path = f"{prefix}.{name}" if prefix else name
            if prefix and not offered(module, name, home):
                continue
            if derived(value, torch.nn.Module) and prefix.startswith("nn"):
                names.modules.append(path)
            elif derived(value, torch.optim.Optimizer):
                names.optimizers.append(path)
            elif value is torch.Tensor:
                pass
            elif isinstance(value, type):
                names.classes[path] = public_methods(value)
            else:
                names.functions.append(path)
    names.methods = public_methods(torch.Tensor)
    names.properties = [
        name
        for name in sorted(dir(torch.Tensor))
        if not name.startswith("_") and not callable(getattr(torch.Tensor, name, None))
    ]
    return names
