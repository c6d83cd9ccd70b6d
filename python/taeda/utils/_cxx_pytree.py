"""``utils._pytree`` under the name of PyTorch's version in C++, which needs ``optree``."""

from ._pytree import *  # noqa: F403
from ._pytree import PyTreeSpec, TreeSpec

__all__ = ["PyTreeSpec", "TreeSpec"]
