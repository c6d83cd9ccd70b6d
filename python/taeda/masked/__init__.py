"""Operations that leave elements out: reductions with a mask, and tensors that carry theirs.

A mask is True at the elements that count. Where none of a row counts, a reduction gives its
identity (0 for a sum, -inf for a maximum), or NaN where it has none (a mean, a variance).

>>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
>>> torch.masked.mean(x, 1, mask=torch.tensor([[True, False], [True, True]]))
tensor([1.0000, 3.5000])
"""

from taeda import _C
from taeda.masked._ops import *  # noqa: F403
from taeda.masked.maskedtensor import (
    MaskedTensor,
    as_masked_tensor,
    is_masked_tensor,
    masked_tensor,
)

__all__ = [
    "MaskedTensor",
    "as_masked_tensor",
    "is_masked_tensor",
    "masked_tensor",
]
__all__ += sorted(_C._by_owner["masked"])
