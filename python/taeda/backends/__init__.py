"""What libraries stand behind the operators, and their switches.

The switches of absent libraries may be set, so that programs written for them run; they change
nothing.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Callable as _Callable
from collections.abc import Iterator as _Iterator
from typing import Any

from taeda import _missing

_frozen = False  # whether switches may be set in flags() only


def disable_global_flags() -> None:
    """Forbids setting switches by assignment from now on, which tests forget to undo.

    ``flags(...)`` of their modules still sets them. There is no way back.
    """
    global _frozen
    _frozen = True


def flags_frozen() -> bool:
    """Whether `disable_global_flags` was called."""
    return _frozen


def _check_may_be_set(module: Any) -> None:
    if _frozen:
        name = module.__name__.replace("taeda.", "torch.", 1)
        raise RuntimeError(
            f"not allowed to set {name} flags after disable_global_flags; "
            "please use flags() context manager instead"
        )


class ContextProp:
    """An attribute read by one function and set by another, unless switches are frozen."""

    def __init__(self, getter: _Callable[[], Any], setter: _Callable[[Any], Any]) -> None:
        self.getter = getter
        self.setter = setter

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        return self.getter()

    def __set__(self, owner: Any, value: Any) -> None:
        _check_may_be_set(owner)
        self.setter(value)


class PropModule(types.ModuleType):
    """A module whose class may have properties; all else is that of the module `m`."""

    def __init__(self, m: types.ModuleType, name: str) -> None:
        super().__init__(name)
        self.m = m

    def __getattr__(self, name: str) -> Any:
        return getattr(self.m, name)


class _Library(types.ModuleType):
    """A library's module; `available` says which questions it answers (and how)."""

    def __init__(self, name: str, **available: bool) -> None:
        super().__init__(f"{__name__}.{name}", f"Switches of {name}.")
        for question, answer in available.items():
            setattr(self, question, lambda answer=answer: answer)
        sys.modules[self.__name__] = self

    def __getattr__(self, name: str) -> Any:
        return _missing.attribute(self.__name__, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_missing.names(self.__name__)})


# Those that PyTorch lets be set after `disable_global_flags`.
_NEVER_FROZEN = {
    ("cudnn", "benchmark_limit"),
    ("opt_einsum", "enabled"),
    ("opt_einsum", "strategy"),
}


class _Switches(_Library):
    """One with switches, and ``flags(...)`` and ``set_flags(...)`` over them."""

    def __init__(self, name: str, available: bool | None, **switches: Any) -> None:
        super().__init__(name, **({} if available is None else {"is_available": available}))
        self.__dict__.update(switches)
        self.__dict__["_switches"] = tuple(switches)

    def __setattr__(self, name: str, value: Any) -> None:
        module = self.__name__.rpartition(".")[2]
        if name in self.__dict__.get("_switches", ()) and (module, name) not in _NEVER_FROZEN:
            _check_may_be_set(self)
        super().__setattr__(name, value)

    def set_flags(self, *values: Any, **flags: Any) -> tuple:
        """Sets switches, in order or by name; what is None stays. Returns all as they were."""
        given = dict(zip(self._switches, values)) | {k: v for k, v in flags.items() if k[0] != "_"}
        before = tuple(getattr(self, name) for name in self._switches)
        self.__dict__.update((name, value) for name, value in given.items() if value is not None)
        return before

    @contextlib.contextmanager
    def flags(self, *values: Any, **flags: Any) -> _Iterator[None]:
        """Context manager that sets switches and puts them back."""
        before = self.set_flags(*values, **flags)
        try:
            yield
        finally:
            self.__dict__.update(zip(self._switches, before))

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), "flags", "set_flags"]


def _members(module: types.ModuleType, **members: Any) -> Any:
    module.__dict__.update(members)
    return module


cudnn = _members(
    _Switches(
        "cudnn",
        False,
        enabled=True,
        benchmark=False,
        benchmark_limit=10,
        deterministic=False,
        allow_tf32=True,
        fp32_precision="none",
    ),
    version=lambda: None,
    is_acceptable=lambda tensor: False,
    conv=types.SimpleNamespace(fp32_precision="none"),
    rnn=types.SimpleNamespace(fp32_precision="none"),
)
_missing.add_namesakes(cudnn.__name__)

# Attention on a GPU is computed in one way; these switches choose between PyTorch's.
_attention = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def _attention_switches() -> dict[str, Any]:
    def of(kind: str) -> dict[str, Any]:
        def enable(enabled: bool) -> None:
            _attention[kind] = bool(enabled)

        return {f"{kind}_sdp_enabled": lambda: _attention[kind], f"enable_{kind}_sdp": enable}

    return {name: value for kind in _attention for name, value in of(kind).items()}


@contextlib.contextmanager
def _sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> _Iterator[None]:
    """The old name of ``torch.nn.attention.sdpa_kernel``."""
    before = dict(_attention)
    _attention.update(
        flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn
    )
    try:
        yield
    finally:
        _attention.update(before)


cuda = _members(
    _Library("cuda", is_built=False),
    matmul=types.SimpleNamespace(
        allow_tf32=False,
        fp32_precision="none",
        allow_fp16_reduced_precision_reduction=True,
        allow_bf16_reduced_precision_reduction=True,
        allow_fp16_accumulation=False,
    ),
    sdp_kernel=_sdp_kernel,
    # Transforms keep no plans of a library.
    cufft_plan_cache=types.SimpleNamespace(size=0, max_size=0, clear=lambda: None),
    is_flash_attention_available=lambda: False,
    is_ck_sdpa_available=lambda: False,
    can_use_flash_attention=lambda params, debug=False: False,
    can_use_efficient_attention=lambda params, debug=False: False,
    can_use_cudnn_attention=lambda params, debug=False: False,
    fp16_bf16_reduction_math_sdp_allowed=lambda: False,
    allow_fp16_bf16_reduction_math_sdp=lambda enabled: None,
    **_attention_switches(),
)
mps = _members(
    _Library("mps", is_available=False, is_built=False),
    is_macos_or_newer=lambda major, minor: False,
    is_macos13_or_newer=lambda minor=0: False,
)
mkl = _Library("mkl", is_available=False)
mkldnn = _members(
    _Switches(
        "mkldnn", True, enabled=True, deterministic=False, allow_tf32=None, fp32_precision="none"
    ),
    is_acl_available=lambda: False,
)
openmp = _Library("openmp", is_available=False)
nnpack = _Switches("nnpack", False, enabled=False)
xnnpack = _members(_Library("xnnpack"), enabled=False)
miopen = _Switches("miopen", None, immediate=False)
kleidiai = _Library("kleidiai", is_available=False)
cusparselt = _members(_Library("cusparselt", is_available=False), version=lambda: None)
quantized = _members(_Library("quantized"), engine="none", supported_engines=["none"])
# Einstein sums are contracted from left to right, as PyTorch does without opt_einsum.
opt_einsum = _members(
    _Switches("opt_einsum", False, enabled=False, strategy=None), get_opt_einsum=lambda: None
)
fp32_precision = "none"


def set_flags(_fp32_precision: str | None = "none") -> tuple[str]:
    """Sets the precision of products of float32, which is exact here whatever it says.

    Returns what it was; None changes nothing.
    """
    global fp32_precision
    if _fp32_precision not in (None, "none", "ieee", "tf32", "bf16"):
        raise RuntimeError(f"Unknown precision: {_fp32_precision}")
    before = (fp32_precision,)
    if _fp32_precision is not None:
        fp32_precision = _fp32_precision
    return before


@contextlib.contextmanager
def flags(fp32_precision: str = "none") -> _Iterator[None]:
    """Context manager that sets the precision of float32 and puts it back."""
    before = set_flags(fp32_precision)
    try:
        yield
    finally:
        set_flags(*before)


_fastpath = True


def _set_fastpath_enabled(value: bool) -> None:
    global _fastpath
    _fastpath = value


mha = _members(
    _Library("mha"),
    get_fastpath_enabled=lambda: _fastpath,
    set_fastpath_enabled=_set_fastpath_enabled,
)


class _Cpu(types.ModuleType):
    @staticmethod
    def get_cpu_capability() -> str:
        from taeda.env import cpu_features

        return cpu_features()


cpu = _Cpu(f"{__name__}.cpu")
sys.modules[cpu.__name__] = cpu

__getattr__, __dir__ = _missing.attributes(__name__)
