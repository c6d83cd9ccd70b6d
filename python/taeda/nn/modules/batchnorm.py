"""Batch normalization, and the base that instance normalization shares with it."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor
from taeda.nn import functional as F
from taeda.nn import init
from taeda.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter

from .lazy import LazyModuleMixin
from .module import Module

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
]


class _NormBase(Module):
    """Parameters and running statistics of normalization over channels."""

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        options = {"device": device, "dtype": dtype}
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self.register_parameter("weight", None)
        self.register_parameter("bias", None)
        if affine:
            self.weight = Parameter(taeda.empty(num_features, **options))
            if bias:
                self.bias = Parameter(taeda.empty(num_features, **options))
        if track_running_stats:
            self.register_buffer("running_mean", taeda.zeros(num_features, **options))
            self.register_buffer("running_var", taeda.ones(num_features, **options))
            count = taeda.tensor(0, dtype=taeda.int64, device=device)
            self.register_buffer("num_batches_tracked", count)
        else:
            self.register_buffer("running_mean", None)
            self.register_buffer("running_var", None)
            self.register_buffer("num_batches_tracked", None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Mean 0, variance 1, no batches seen."""
        if not self.track_running_stats:
            return
        for statistic, start in (
            (self.running_mean, 0),
            (self.running_var, 1),
            (self.num_batches_tracked, 0),
        ):
            if statistic is not None:
                statistic.fill_(start)

    def reset_parameters(self) -> None:
        """Weight 1, bias 0, fresh statistics."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

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
        if (version is None or version < 2) and self.track_running_stats:
            # Layout 2 added num_batches_tracked.
            key = prefix + "num_batches_tracked"
            if key not in state_dict:
                count = self.num_batches_tracked
                if count is None or count.is_meta:
                    count = taeda.tensor(0, dtype=taeda.int64)
                state_dict[key] = count
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        # momentum None means a cumulative average over all batches.
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        use_batch = self.training or (self.running_mean is None and self.running_var is None)
        use_running = not self.training or self.track_running_stats
        running = (self.running_mean, self.running_var) if use_running else (None, None)
        return F.batch_norm(input, *running, self.weight, self.bias, use_batch, factor, self.eps)


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """num_features from the first input."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        options = {"device": device, "dtype": dtype}
        super().__init__(0, eps, momentum, False, False, **options)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(**options)
            if bias:
                self.bias = UninitializedParameter(**options)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**options)
            self.running_var = UninitializedBuffer(**options)
            self.num_batches_tracked = taeda.tensor(0, dtype=taeda.int64, device=device)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        tensor: Any
        for tensor in (self.weight, self.bias, self.running_mean, self.running_var):
            if tensor is not None:
                tensor.materialize((self.num_features,))
        self.reset_parameters()


class BatchNorm1d(_BatchNorm):
    """Normalizes each channel over the batch. arXiv 1502.03167

        y = (x - mean) / sqrt(var + eps) * weight + bias

    In training mean and variance (divided by the count) are those of the batch, and the running
    ones follow: ``running = (1 - momentum) running + momentum batch``, with the variance divided
    by the count less one. In evaluation the running ones are used.

    Args:
        num_features: C, the number of channels.
        eps: added to the variance.
        momentum: how far the running statistics move to the batch's at each step of training;
            None: they are the mean of all batches so far.
        affine: whether ``weight`` and ``bias`` are there; they start at 1 and 0.
        track_running_stats: whether running statistics are kept; without them the batch's are used
            in evaluation too.
        device, dtype: of the parameters.
        bias: whether ``bias`` is there, with ``affine`` only.

    Shape:
        input: ``(N, C)`` or ``(N, C, L)``.
        output: the same.

    Attributes:
        weight, bias: ``(C,)``; running_mean, running_var: ``(C,)``, buffers that
            ``state_dict`` has; num_batches_tracked: a count.

    >>> nn.BatchNorm1d(2)(torch.tensor([[0., 10.], [2., 30.]]))
    tensor([[-1.0000, -1.0000],
            [ 1.0000,  1.0000]], grad_fn=<NativeBatchNormBackward0>)
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class BatchNorm2d(_BatchNorm):
    """Normalizes each channel over the batch and the image. arXiv 1502.03167

        y = (x - mean) / sqrt(var + eps) * weight + bias

    In training mean and variance (divided by the count) are those of the batch, and the running
    ones follow: ``running = (1 - momentum) running + momentum batch``, with the variance divided
    by the count less one. In evaluation the running ones are used.

    Args:
        num_features: C, the number of channels.
        eps: added to the variance.
        momentum: how far the running statistics move to the batch's at each step of training;
            None: they are the mean of all batches so far.
        affine: whether ``weight`` and ``bias`` are there; they start at 1 and 0.
        track_running_stats: whether running statistics are kept; without them the batch's are used
            in evaluation too.
        device, dtype: of the parameters.
        bias: whether ``bias`` is there, with ``affine`` only.

    Shape:
        input: ``(N, C, H, W)``.
        output: the same.

    Attributes:
        weight, bias: ``(C,)``; running_mean, running_var: ``(C,)``, buffers that
            ``state_dict`` has; num_batches_tracked: a count.

    >>> y = nn.BatchNorm2d(2)(torch.rand(8, 2, 5, 5))
    >>> y.shape, y.mean().abs().item() < 1e-6
    (torch.Size([8, 2, 5, 5]), True)
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class BatchNorm3d(_BatchNorm):
    """Normalizes each channel over the batch and the volume. arXiv 1502.03167

        y = (x - mean) / sqrt(var + eps) * weight + bias

    In training mean and variance (divided by the count) are those of the batch, and the running
    ones follow: ``running = (1 - momentum) running + momentum batch``, with the variance divided
    by the count less one. In evaluation the running ones are used.

    Args:
        num_features: C, the number of channels.
        eps: added to the variance.
        momentum: how far the running statistics move to the batch's at each step of training;
            None: they are the mean of all batches so far.
        affine: whether ``weight`` and ``bias`` are there; they start at 1 and 0.
        track_running_stats: whether running statistics are kept; without them the batch's are used
            in evaluation too.
        device, dtype: of the parameters.
        bias: whether ``bias`` is there, with ``affine`` only.

    Shape:
        input: ``(N, C, D, H, W)``.
        output: the same.

    Attributes:
        weight, bias: ``(C,)``; running_mean, running_var: ``(C,)``, buffers that
            ``state_dict`` has; num_batches_tracked: a count.

    >>> y = nn.BatchNorm3d(2)(torch.rand(4, 2, 3, 3, 3))
    >>> y.shape, y.mean().abs().item() < 1e-6
    (torch.Size([4, 2, 3, 3, 3]), True)
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm1d` that learns ``num_features`` from the first input it sees.

    Args:
        eps, momentum, affine, track_running_stats, bias: those of `BatchNorm1d`.
        device, dtype: of the parameters.

    Shape:
        input: ``(N, C)`` or ``(N, C, L)``; C becomes ``num_features``.
        output: the same.

    Its parameters have no shape before the first call, so call the model once before making the
    optimizer.

    >>> layer = nn.LazyBatchNorm1d()
    >>> layer(torch.tensor([[0., 10.], [2., 30.]])).shape, layer.num_features
    (torch.Size([2, 2]), 2)
    """

    cls_to_become = BatchNorm1d
    _check_input_dim = BatchNorm1d._check_input_dim


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm2d` that learns ``num_features`` from the first input it sees.

    Args:
        eps, momentum, affine, track_running_stats, bias: those of `BatchNorm2d`.
        device, dtype: of the parameters.

    Shape:
        input: ``(N, C, H, W)``; C becomes ``num_features``.
        output: the same.

    Its parameters have no shape before the first call, so call the model once before making the
    optimizer.

    >>> layer = nn.LazyBatchNorm2d()
    >>> layer(torch.rand(8, 2, 5, 5)).shape, layer.num_features
    (torch.Size([8, 2, 5, 5]), 2)
    """

    cls_to_become = BatchNorm2d
    _check_input_dim = BatchNorm2d._check_input_dim


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A `BatchNorm3d` that learns ``num_features`` from the first input it sees.

    Args:
        eps, momentum, affine, track_running_stats, bias: those of `BatchNorm3d`.
        device, dtype: of the parameters.

    Shape:
        input: ``(N, C, D, H, W)``; C becomes ``num_features``.
        output: the same.

    Its parameters have no shape before the first call, so call the model once before making the
    optimizer.

    >>> layer = nn.LazyBatchNorm3d()
    >>> layer(torch.rand(4, 2, 3, 3, 3)).shape, layer.num_features
    (torch.Size([4, 2, 3, 3, 3]), 2)
    """

    cls_to_become = BatchNorm3d
    _check_input_dim = BatchNorm3d._check_input_dim


class SyncBatchNorm(_BatchNorm):
    """Batch normalization over the batches of all processes of a group.

    There is one process, over whose batch it normalizes as `BatchNorm1d` does.

    Args:
        num_features, eps, momentum, affine, track_running_stats, bias: those of `BatchNorm1d`.
        process_group: None.
        device, dtype: of the parameters.

    Shape:
        input: ``(N, C, *)``, of two or more dimensions.
        output: the same.

    >>> torch.nn.SyncBatchNorm(2)(torch.tensor([[0., 2.], [2., 0.]]))
    tensor([[-1.0000,  1.0000],
            [ 1.0000, -1.0000]], grad_fn=<NativeBatchNormBackward0>)
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Replaces batch norms by SyncBatchNorm, which takes over their parameters and statistics.
        Returns the module, or its replacement where it is a batch norm itself.
        """
        result = module
        if isinstance(module, _BatchNorm):
            result = cls._like(module, process_group)
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result

    @classmethod
    def _like(cls, module: _BatchNorm, process_group: Any) -> SyncBatchNorm:
        result = cls(
            module.num_features,
            module.eps,
            module.momentum,
            module.affine,
            module.track_running_stats,
            process_group,
        )
        if module.affine:
            result.weight, result.bias = module.weight, module.bias
        for name in ("running_mean", "running_var", "num_batches_tracked"):
            setattr(result, name, getattr(module, name))
        result.training = module.training
        if hasattr(module, "qconfig"):
            result.qconfig = module.qconfig
        return result
