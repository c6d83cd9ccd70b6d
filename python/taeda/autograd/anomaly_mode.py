"""Anomaly mode: errors and NaNs of backward name the line of the forward call."""

from __future__ import annotations

import warnings
from typing import Any

from taeda import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class detect_anomaly:
    """Inside, every recorded operator remembers where it was called.

    An error in its backward warns with that place; with ``check_nan``, a NaN that backward makes is
    an error. A tensor changed after it was saved is reported with the line that changed it.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        _C._set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, *exc_info: Any) -> None:
        _C._set_anomaly_enabled(self.prev, self.prev_check_nan)


class set_detect_anomaly:
    """Switches anomaly mode, at once; as a context manager, until the end of the block."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        _C._set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: Any) -> None:
        _C._set_anomaly_enabled(self.prev, self.prev_check_nan)
