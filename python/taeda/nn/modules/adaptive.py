"""AdaptiveLogSoftmaxWithLoss."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import taeda
from taeda import Tensor
from taeda.nn import functional as F

from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Softmax over many classes, with smaller layers for rarer ones. arXiv 1609.04309

    Classes are sorted from frequent to rare and cut into clusters. The head has the frequent
    classes and one entry for each cluster; a cluster's layer is only computed for its own samples.

    Args:
        in_features: size of the input.
        n_classes: how many.
        cutoffs: the classes at which clusters begin, ascending.
        div_value: each cluster's projection is so many times smaller than the one before.
        head_bias: whether the head has a bias.
        device, dtype: of the parameters.

    Shape:
        input: ``(N, in_features)`` or ``(in_features,)``; target: ``(N)`` or ``()``.
        output: a pair: ``output (N)``, log-probabilities of the targets, and ``loss``, minus their
            mean. ``log_prob(x)`` gives all classes, ``predict(x)`` the most likely one.

    >>> softmax = nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs=[5, 10])
    >>> output, loss = softmax(torch.rand(4, 8), torch.tensor([0, 6, 19, 3]))
    >>> output.shape, softmax.log_prob(torch.rand(4, 8)).exp().sum(1)
    (torch.Size([4]), tensor([1.0000, 1.0000, 1.0000, 1.0000], grad_fn=<SumBackward1>))
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = {"device": device, "dtype": dtype}
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(cutoffs)
            or min(cutoffs) <= 0
            or max(cutoffs) > n_classes - 1
            or len(set(cutoffs)) != len(cutoffs)
            or any(int(c) != c for c in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive "
                "integers sorted in an increasing order, where "
                "each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // (div_value ** (i + 1)))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, hidden, bias=False, **options),
                    Linear(hidden, size, bias=False, **options),
                )
            )

    def reset_parameters(self) -> None:
        """Draws new values."""
        self.head.reset_parameters()
        for projection in self.tail:
            layer: Any
            for layer in projection.children():
                layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """(log-probability of each target, mean loss)"""
        batched = target_.dim() > 0
        if target_.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if batched and input_.size(0) != target_.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input_.dim() != (2 if batched else 1):
            raise RuntimeError(
                f"{'1D' if batched else '0D'} target tensor expects {'2D' if batched else '1D'} "
                f"input tensors, but found inputs with size {input_.size()}"
            )
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        if target.numel() and not 0 <= int(target.min()) <= int(target.max()) < self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{int(target.min())}, {int(target.max())}] were found. "
            )
        output = input.new_zeros(target.size(0))
        gather_index = target.clone()
        bounds = [0, *self.cutoffs]
        for i in range(len(bounds) - 1):
            rows = ((target >= bounds[i]) & (target < bounds[i + 1])).nonzero().squeeze(1)
            if i == 0 or rows.numel() == 0:
                continue
            cluster = self.tail[i - 1](input.index_select(0, rows))
            column = self.shortlist_size + i - 1
            gather_index = gather_index.index_fill(0, rows, column)
            log_prob = F.log_softmax(cluster, dim=1)
            relative = target.index_select(0, rows) - bounds[i]
            output = output.index_copy(
                0, rows, log_prob.gather(1, relative.unsqueeze(1)).squeeze(1)
            )
        head_log_prob = F.log_softmax(self.head(input), dim=1)
        output = output + head_log_prob.gather(1, gather_index.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        head_log_prob = F.log_softmax(head_output, dim=1)
        parts = [head_log_prob[:, : self.shortlist_size]]
        for i in range(self.n_clusters):
            cluster = F.log_softmax(self.tail[i](input), dim=1)
            parts.append(cluster + head_log_prob[:, self.shortlist_size + i].unsqueeze(1))
        return taeda.cat(parts, dim=1)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row."""
        return self.log_prob(input).argmax(dim=1)
