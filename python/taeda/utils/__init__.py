"""Tools around tensors and modules; submodules load when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda import _missing

__all__ = ["set_module", "swap_tensors"]

_SUBMODULES = frozenset(
    "_cxx_pytree _device _foreach_utils _python_dispatch _pytree _traceback benchmark checkpoint "
    "collect_env cpp_extension data deterministic dlpack file_baton flop_counter hooks "
    "mkldnn mobile_optimizer model_zoo module_tracker serialization tensorboard weak".split()
)


def set_module(obj: Any, mod: str) -> None:
    """Sets ``obj.__module__``, so that ``obj`` shows its public address."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def swap_tensors(t1: Any, t2: Any) -> None:
    """Exchanges two leaves: values, class, attributes, gradient and whether one is wanted.

    RuntimeError for tensors that were computed with gradients: their histories stay where they are.
    """
    if not (t1.is_leaf and t2.is_leaf):
        raise RuntimeError("swap_tensors: cannot swap tensors that are not leaves of the graph")
    grads, wanted = (t1.grad, t2.grad), (t1.requires_grad, t2.requires_grad)
    for t in (t1, t2):
        t.grad = None
        t.requires_grad_(False)
    t1.data, t2.data = t2.data, t1.data
    t1.__class__, t2.__class__ = type(t2), type(t1)
    t1.__dict__, t2.__dict__ = dict(t2.__dict__), dict(t1.__dict__)
    for t, other in ((t1, 1), (t2, 0)):
        t.requires_grad_(wanted[other])
        t.grad = grads[other]


if TYPE_CHECKING:
    from taeda.utils import _cxx_pytree as _cxx_pytree
    from taeda.utils import _device as _device
    from taeda.utils import _foreach_utils as _foreach_utils
    from taeda.utils import _python_dispatch as _python_dispatch
    from taeda.utils import _pytree as _pytree
    from taeda.utils import _traceback as _traceback
    from taeda.utils import benchmark as benchmark
    from taeda.utils import checkpoint as checkpoint
    from taeda.utils import collect_env as collect_env
    from taeda.utils import data as data
    from taeda.utils import deterministic as deterministic
    from taeda.utils import dlpack as dlpack
    from taeda.utils import file_baton as file_baton
    from taeda.utils import flop_counter as flop_counter
    from taeda.utils import hooks as hooks
    from taeda.utils import mkldnn as mkldnn
    from taeda.utils import mobile_optimizer as mobile_optimizer
    from taeda.utils import model_zoo as model_zoo
    from taeda.utils import module_tracker as module_tracker
    from taeda.utils import serialization as serialization
    from taeda.utils import tensorboard as tensorboard
    from taeda.utils import weak as weak

    cmake_prefix_path: str
else:
    _attribute, _names = _missing.attributes(__name__, _SUBMODULES)

    def __getattr__(name: str) -> Any:
        if name == "cmake_prefix_path":  # for CMAKE_PREFIX_PATH: find_package(taeda) looks there
            from taeda.__main__ import cmake_dir

            return cmake_dir()
        return _attribute(name)

    def __dir__() -> list[str]:
        return sorted({*_names(), "cmake_prefix_path"})
