"""HistogramObserver: the range whose rounding errors, over a histogram, are least."""

from __future__ import annotations

import warnings
from typing import Any

import taeda
from taeda import Tensor

from ._ranges import PER_TENSOR, full_range
from .observer import UniformQuantizationObserverBase

_STEP = 1e-5  # of the share of the numbers that a range leaves out at one end
_UPSAMPLING = 16  # bins into which an old one is cut where the range grows


class HistogramObserver(UniformQuantizationObserverBase):
    """A histogram of all numbers seen. The range is narrowed from the end that holds the fewer
    bins, as long as the squared error of rounding what it keeps becomes less.

    Args:
        bins: of the histogram.
    """

    histogram: Tensor
    min_val: Tensor
    max_val: Tensor

    def __init__(self, bins: int = 2048, *args: Any, **kwargs: Any) -> None:
        factory = kwargs.get("factory_kwargs") or {}
        if kwargs.get("is_dynamic"):
            raise NotImplementedError("HistogramObserver doesn't support dynamic quantization")
        super().__init__(*args, **kwargs)
        if self.qscheme not in PER_TENSOR:
            raise NotImplementedError(
                "HistogramObserver's qscheme only support torch.per_tensor_symmetric "
                "and torch.per_tensor_affine."
            )
        self.bins = bins
        self.register_buffer("histogram", taeda.zeros(bins, **factory))
        self.register_buffer("min_val", taeda.tensor(float("inf"), **factory))
        self.register_buffer("max_val", taeda.tensor(float("-inf"), **factory))
        low, high = full_range(self.dtype)
        self.dst_nbins = high - low + 1
        self.upsample_rate = _UPSAMPLING

    def forward(self, x_orig: Tensor) -> Tensor:
        """Adds a tensor to the histogram and returns it; infinities are left out."""
        x = x_orig.detach()
        if x.numel() and bool(x.isinf().any()):
            warnings.warn("torch.inf detected in input tensor, ignoring input", stacklevel=2)
            x = x[x.abs() != float("inf")]
        if x.numel():
            self._add(x, *taeda.aminmax(x))
        return x_orig

    def _add(self, x: Tensor, least: Tensor, most: Tensor) -> None:
        is_first = self.min_val == float("inf") or self.max_val == float("-inf")
        if not is_first:
            least, most = taeda.minimum(self.min_val, least), taeda.maximum(self.max_val, most)
        counts = taeda.histc(x, self.bins, min=least.item(), max=most.item())
        if not is_first:
            counts = counts + self._rebinned(least, most)
        self.histogram.resize_(counts.shape).copy_(counts)
        self.min_val.copy_(least)
        self.max_val.copy_(most)

    def _rebinned(self, least: Tensor, most: Tensor) -> Tensor:
        """The histogram so far in the bins of a wider range."""
        old_least, old_most = self.min_val, self.max_val
        if least == old_least and most == old_most:
            return self.histogram
        if old_least == old_most:
            one = old_least.reshape(1)
            total = self.histogram.sum()
            return taeda.histc(one, self.bins, min=least.item(), max=most.item()) * total
        count = self.bins * self.upsample_rate
        parts = self.histogram.repeat_interleave(self.upsample_rate) / self.upsample_rate
        starts = taeda.linspace(old_least, old_most, count + 1)[:-1]
        middles = starts + 0.5 * ((old_most - old_least) / count)
        edges = taeda.linspace(least, most, self.bins + 1)
        bins = taeda.bucketize(middles, edges, right=True) - 1
        return taeda.bincount(bins.clamp(0, self.bins - 1), weights=parts, minlength=self.bins)

    def _error(self, first: int, last: int) -> float:
        """The squared error where the integers share the bins `first` to `last`, and all others
        take the outermost integers."""
        width = (self.max_val.item() - self.min_val.item()) / self.bins
        step = width * (last - first + 1) / self.dst_nbins
        if step == 0.0:
            return 0.0
        begin = (taeda.arange(self.bins, device=self.histogram.device) - first) * width
        end = begin + width
        density = self.histogram / width

        def integer_of(x: Tensor) -> Tensor:
            return taeda.div(x, step, rounding_mode="floor").clamp(0, self.dst_nbins - 1)

        def error(a: Any, b: Any) -> Tensor:
            """Of numbers from `a` to `b` beside the one that stands for them."""
            return density * ((b * b * b - a * a * a) / 3)

        one, other = integer_of(begin), integer_of(end)
        half = taeda.tensor(step / 2)
        total = taeda.zeros(self.bins, device=self.histogram.device)
        total += error(begin - (one + 0.5) * step, taeda.ones(self.bins) * (step / 2))
        total += (other - one - 1) * error(-half, half)
        total += error(-half, end - (other * step + step / 2))
        return total.sum().item()

    def _best_range(self) -> tuple[Tensor, Tensor]:
        width = (self.max_val - self.min_val) / self.bins
        total = self.histogram.sum().item()
        shares = self.histogram.cumsum(0).tolist()
        low, high = 0.0, 1.0
        first, last, least = 0, self.bins - 1, float("inf")
        while low < high:
            next_low, next_high = low + _STEP, high - _STEP
            left, right = first, last
            while left < last and shares[left] < next_low * total:
                left += 1
            while right > first and shares[right] > next_high * total:
                right -= 1
            if left - first > last - right:
                low, candidate = next_low, (left, last)
            else:
                high, candidate = next_high, (first, right)
            if candidate == (first, last):
                continue
            error = self._error(*candidate)
            if error > least:
                break
            least, (first, last) = error, candidate
        return self.min_val + width * first, self.min_val + width * (last + 1)

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        """The scale and the zero point of the best range."""
        if self.min_val == float("inf") and self.max_val == float("-inf"):
            return self._calculate_qparams(self.min_val, self.max_val)
        return self._calculate_qparams(*self._best_range())

    def reset_min_max_vals(self) -> None:
        """Forgets what was seen."""
        self.histogram.zero_()
        self.min_val.fill_(float("inf"))
        self.max_val.fill_(float("-inf"))

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"
