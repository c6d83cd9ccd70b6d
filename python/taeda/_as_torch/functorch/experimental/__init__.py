"""Transforms by the names they had before torch.func."""

from __future__ import annotations

from torch._functorch.apis import chunk_vmap as chunk_vmap
from torch.func import functionalize as functionalize
from torch.func import hessian as hessian
from torch.func import jacfwd as jacfwd
from torch.func import jvp as jvp
from torch.func import replace_all_batch_norm_modules_ as replace_all_batch_norm_modules_
