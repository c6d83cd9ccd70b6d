"""``import functorch`` under taeda: torch.func's transforms by their older names.

The folder above is on the search path of programs under ``python -m taeda`` and of their children;
``install-shim`` copies this package beside its torch.
"""

from __future__ import annotations

import torch
from torch._functorch.make_functional import FunctionalModule as FunctionalModule
from torch._functorch.make_functional import (
    FunctionalModuleWithBuffers as FunctionalModuleWithBuffers,
)
from torch._functorch.make_functional import (
    combine_state_for_ensemble as combine_state_for_ensemble,
)
from torch._functorch.make_functional import make_functional as make_functional
from torch._functorch.make_functional import (
    make_functional_with_buffers as make_functional_with_buffers,
)
from torch.func import functionalize as functionalize
from torch.func import grad as grad
from torch.func import grad_and_value as grad_and_value
from torch.func import hessian as hessian
from torch.func import jacfwd as jacfwd
from torch.func import jacrev as jacrev
from torch.func import jvp as jvp
from torch.func import vjp as vjp
from torch.func import vmap as vmap
from torch.fx.experimental.proxy_tensor import make_fx as make_fx

__version__ = torch.__version__
