"""Instance normalization."""

from __future__ import annotations

import warnings
from typing import Any

from taeda import Tensor
from taeda.nn import functional as F

from .batchnorm import _LazyNormBase, _NormBase

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _check_input_dim(self, input: Tensor) -> None:
        n = self._get_no_batch_dim()
        if input.dim() not in (n, n + 1):
            raise ValueError(f"expected {n}D or {n + 1}D input (got {input.dim()}D input)")

    def _get_no_batch_dim(self) -> int:
        raise NotImplementedError

    def _load_from_state_dict(
        self,
        state_dict: dict,
        prefix: str,
        local_metadata: dict,
        strict: bool,
        missing_keys: list,
        unexpected_keys: list,
        error_msgs: list,
    ) -> None:
        version = local_metadata.get("version", None)
        if version is None and not self.track_running_stats:
            # Layout 1 always had running statistics: say so, as the default changed.
            stats = [
                prefix + name
                for name in ("running_mean", "running_var")
                if prefix + name in state_dict
            ]
            if stats:
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {' and '.join(map(repr, stats))} for "
                    f"{type(self).__name__} with track_running_stats=False. If state_dict is a "
                    "checkpoint saved before 0.4.0, this may be expected because "
                    f"{type(self).__name__} does not track running stats by default since 0.4.0. "
                    "Please remove these keys from state_dict."
                )
                for key in stats:
                    state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        channel_dim = input.dim() - self._get_no_batch_dim()
        if input.size(channel_dim) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={channel_dim} to match num_features"
                    f" ({self.num_features}), but got: {input.size(channel_dim)}."
                )
            warnings.warn(
                f"input's size at dim={channel_dim} does not match num_features. "
                "You can silence this warning by not passing in num_features, "
                "which is not used because affine=False",
                stacklevel=2,
            )
        if input.dim() == self._get_no_batch_dim():
            return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)
        return self._apply_instance_norm(input)

    def _apply_instance_norm(self, input: Tensor) -> Tensor:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )


class InstanceNorm1d(_InstanceNorm):
    """Normalizes each channel of each sample by itself. arXiv 1607.08022

        y = (x - mean) / sqrt(var + eps) * weight + bias

    Mean and variance (divided by the count) are over the last dimension of each sample and
    channel, in training and in evaluation.

    Args:
        num_features: C, the number of channels.
        eps: added to the variance.
        momentum: how far running statistics move at each step, where they are kept.
        affine: whether ``weight`` and ``bias`` are there; not by default.
        track_running_stats: whether running statistics are kept and used in evaluation.
        device, dtype: of the parameters.
        bias: whether ``bias`` is there, with ``affine`` only.

    Shape:
        input: ``(N, C, L)`` or ``(C, L)``, of more than one element a channel.
        output: the same.

    >>> nn.InstanceNorm1d(1)(torch.tensor([[[0., 1., 2.]]]))
    tensor([[[-1.2247,  0.0000,  1.2247]]])
    """

    def _get_no_batch_dim(self) -> int:
        return 2


class InstanceNorm2d(_InstanceNorm):
    """Normalizes each channel of each sample by itself. arXiv 1607.08022

        y = (x - mean) / sqrt(var + eps) * weight + bias

    Mean and variance (divided by the count) are over the last two dimensions of each sample and
    channel, in training and in evaluation.

    Args:
        num_features: C, the number of channels.
        eps: added to the variance.
        momentum: how far running statistics move at each step, where they are kept.
        affine: whether ``weight`` and ``bias`` are there; not by default.
        track_running_stats: whether running statistics are kept and used in evaluation.
        device, dtype: of the parameters.
        bias: whether ``bias`` is there, with ``affine`` only.

    Shape:
        input: ``(N, C, H, W)`` or ``(C, H, W)``, of more than one element a channel.
        output: the same.

    >>> y = nn.InstanceNorm2d(2)(torch.rand(3, 2, 5, 5))
    >>> y.shape, y.mean((2, 3)).abs().max().item() < 1e-6
    (torch.Size([3, 2, 5, 5]), True)
    """

    def _get_no_batch_dim(self) -> int:
        return 3


class InstanceNorm3d(_InstanceNorm):
    """Normalizes each channel of each sample by itself. arXiv 1607.08022

        y = (x - mean) / sqrt(var + eps) * weight + bias

    Mean and variance (divided by the count) are over the last three dimensions of each sample and
    channel, in training and in evaluation.

    Args:
        num_features: C, the number of channels.
        eps: added to the variance.
        momentum: how far running statistics move at each step, where they are kept.
        affine: whether ``weight`` and ``bias`` are there; not by default.
        track_running_stats: whether running statistics are kept and used in evaluation.
        device, dtype: of the parameters.
        bias: whether ``bias`` is there, with ``affine`` only.

    Shape:
        input: ``(N, C, D, H, W)`` or ``(C, D, H, W)``, of more than one element a channel.
        output: the same.

    >>> y = nn.InstanceNorm3d(2)(torch.rand(2, 2, 3, 3, 3))
    >>> y.shape, y.mean((2, 3, 4)).abs().max().item() < 1e-6
    (torch.Size([2, 2, 3, 3, 3]), True)
    """

    def _get_no_batch_dim(self) -> int:
        return 4


class _LazyInstanceNorm(_LazyNormBase):
    def initialize_parameters(self, input: Tensor) -> None:
        self._check_input_dim(input)
        unbatched: Any = self._get_no_batch_dim
        if input.dim() == unbatched():
            input = input.unsqueeze(0)
        super().initialize_parameters(input)


class LazyInstanceNorm1d(_LazyInstanceNorm, _InstanceNorm):
    """An `InstanceNorm1d` that learns ``num_features`` from the first input it sees.

    Args:
        eps, momentum, affine, track_running_stats, bias: those of `InstanceNorm1d`; affine and
            track_running_stats are True unless given.
        device, dtype: of the parameters.

    Shape:
        input: ``(N, C, L)`` or ``(C, L)``; C becomes ``num_features``.
        output: the same.

    >>> layer = nn.LazyInstanceNorm1d()
    >>> layer(torch.tensor([[[0., 1., 2.]]])).shape, layer.num_features
    (torch.Size([1, 1, 3]), 1)
    """

    cls_to_become = InstanceNorm1d
    _get_no_batch_dim = InstanceNorm1d._get_no_batch_dim


class LazyInstanceNorm2d(_LazyInstanceNorm, _InstanceNorm):
    """An `InstanceNorm2d` that learns ``num_features`` from the first input it sees.

    Args:
        eps, momentum, affine, track_running_stats, bias: those of `InstanceNorm2d`; affine and
            track_running_stats are True unless given.
        device, dtype: of the parameters.

    Shape:
        input: ``(N, C, H, W)`` or ``(C, H, W)``; C becomes ``num_features``.
        output: the same.

    >>> layer = nn.LazyInstanceNorm2d()
    >>> layer(torch.rand(3, 2, 5, 5)).shape, layer.num_features
    (torch.Size([3, 2, 5, 5]), 2)
    """

    cls_to_become = InstanceNorm2d
    _get_no_batch_dim = InstanceNorm2d._get_no_batch_dim


class LazyInstanceNorm3d(_LazyInstanceNorm, _InstanceNorm):
    """An `InstanceNorm3d` that learns ``num_features`` from the first input it sees.

    Args:
        eps, momentum, affine, track_running_stats, bias: those of `InstanceNorm3d`; affine and
            track_running_stats are True unless given.
        device, dtype: of the parameters.

    Shape:
        input: ``(N, C, D, H, W)`` or ``(C, D, H, W)``; C becomes ``num_features``.
        output: the same.

    >>> layer = nn.LazyInstanceNorm3d()
    >>> layer(torch.rand(2, 2, 3, 3, 3)).shape, layer.num_features
    (torch.Size([2, 2, 3, 3, 3]), 2)
    """

    cls_to_become = InstanceNorm3d
    _get_no_batch_dim = InstanceNorm3d._get_no_batch_dim
