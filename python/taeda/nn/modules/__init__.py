"""All layers and containers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taeda import _C

from . import (
    activation,
    adaptive,
    batchnorm,
    container,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    instancenorm,
    linear,
    loss,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    rnn,
    sparse,
    transformer,
    upsampling,
)
from .activation import *  # noqa: F403
from .adaptive import *  # noqa: F403
from .batchnorm import *  # noqa: F403
from .container import *  # noqa: F403
from .conv import *  # noqa: F403
from .distance import *  # noqa: F403
from .dropout import *  # noqa: F403
from .flatten import *  # noqa: F403
from .fold import *  # noqa: F403
from .instancenorm import *  # noqa: F403
from .linear import *  # noqa: F403
from .loss import *  # noqa: F403
from .module import Module as Module
from .normalization import *  # noqa: F403
from .padding import *  # noqa: F403
from .pixelshuffle import *  # noqa: F403
from .pooling import *  # noqa: F403
from .rnn import *  # noqa: F403
from .sparse import *  # noqa: F403
from .transformer import *  # noqa: F403
from .upsampling import *  # noqa: F403

for _class in [v for v in globals().values() if isinstance(v, type)]:
    _C._hint_keywords(_class)
del _class

if TYPE_CHECKING:
    from .linear_cross_entropy_options import (
        LinearCrossEntropyOptions as LinearCrossEntropyOptions,
    )
else:  # type checkers read no computed list, and export what * imports
    __all__ = sorted(
        {
            "Module",
            *activation.__all__,
            *adaptive.__all__,
            *batchnorm.__all__,
            *container.__all__,
            *conv.__all__,
            *distance.__all__,
            *dropout.__all__,
            *flatten.__all__,
            *fold.__all__,
            *instancenorm.__all__,
            *linear.__all__,
            *loss.__all__,
            *normalization.__all__,
            *padding.__all__,
            *pixelshuffle.__all__,
            *pooling.__all__,
            *rnn.__all__,
            *sparse.__all__,
            *transformer.__all__,
            *upsampling.__all__,
        }
    )

    def __getattr__(name: str) -> Any:  # a dataclass, which takes ten modules to define
        if name == "LinearCrossEntropyOptions":
            from .linear_cross_entropy_options import LinearCrossEntropyOptions

            return LinearCrossEntropyOptions
        from taeda._near_names import no_attribute

        raise no_attribute(f"module {__name__!r}", name, globals)
