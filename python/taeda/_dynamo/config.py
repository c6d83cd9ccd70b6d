"""Settings of PyTorch's compiler. They are kept, and change nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

suppress_errors = False
verbose = False
disable = False
cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
automatic_dynamic_shapes = assume_static_by_default = True
capture_scalar_outputs = capture_dynamic_output_shape_ops = False
capture_func_transforms = True
inline_inbuilt_nn_modules = True
allow_unspec_int_on_nn_module = False
compiled_autograd = False
optimize_ddp: Any = True
guard_nn_modules = True
force_parameter_static_shapes = True
specialize_float = specialize_int = False
skip_fwd_side_effects_in_bwd_under_checkpoint = False
log_file_name: str | None = None


@contextmanager
def _patched(changes: dict[str, Any]) -> Iterator[None]:
    settings = vars(sys.modules[__name__])
    before = {name: settings[name] for name in changes if name in settings}
    settings.update(changes)
    try:
        yield
    finally:
        for name in changes:
            settings.pop(name)
        settings.update(before)


def patch(changes: Any = None, value: Any = None, **more: Any) -> Any:
    """Context manager and decorator: other settings in a block."""
    first = {changes: value} if isinstance(changes, str) else dict(changes or {})
    return _patched({**first, **more})
