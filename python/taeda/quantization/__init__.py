"""The old name of torch.ao.quantization.

>>> torch.quantization.QuantStub is torch.ao.quantization.QuantStub
True
"""

from __future__ import annotations

from typing import Any

from taeda import _missing


def __getattr__(name: str) -> Any:
    from taeda.ao import quantization

    found = quantization.__dict__.get(name)
    return _missing.attribute(__name__, name) if found is None else found


def __dir__() -> list[str]:
    from taeda.ao import quantization

    return sorted({*globals(), *dir(quantization), *_missing.names(__name__)})
