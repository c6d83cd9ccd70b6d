"""First-class dimensions: names that raise when called."""

from __future__ import annotations

from taeda import _missing

_WHY = "taeda has no first-class dimensions; use torch.func.vmap, or einops"

dims = _missing.function("functorch.dim.dims", _WHY)
dimlists = _missing.function("functorch.dim.dimlists", _WHY)
cat = _missing.function("functorch.dim.cat", _WHY)
stack = _missing.function("functorch.dim.stack", _WHY)
Dim = _missing.class_("functorch.dim.Dim", _WHY)
DimList = _missing.class_("functorch.dim.DimList", _WHY)
Tensor = _missing.class_("functorch.dim.Tensor", _WHY)
