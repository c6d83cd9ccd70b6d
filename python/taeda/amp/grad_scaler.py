"""GradScaler: a loss multiplied by a large number, so that float16 gradients do not become zero."""

from __future__ import annotations

import enum
import warnings
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import taeda

__all__ = ["GradScaler", "OptState"]


class OptState(enum.Enum):
    """How far an optimizer is in a step, for classes that derive from GradScaler."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    """What is known of an optimizer before its gradients are divided by the scale."""
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def _unscale(grads: list[Any], found_inf: Any, inverse: Any) -> None:
    """Multiplies gradients of one device; `found_inf` becomes 1 where one is not finite."""
    by_type: dict[Any, list[Any]] = defaultdict(list)
    for grad in grads:
        fused = grad.is_cuda and grad.is_floating_point() and not grad.is_sparse
        by_type[grad.dtype if fused else None].append(grad)
    for grad in by_type.pop(None, ()):
        found_inf.add_(~grad.isfinite().all()).clamp_(max=1)
        grad.mul_(inverse)
    for fused in by_type.values():
        taeda._unscale_(fused, found_inf, inverse)


def _adapt(
    scale: Any, tracker: Any, overflowed: Any, growth: float, backoff: float, interval: int
) -> None:
    """Moves the scale after a step, and counts those in a row that did not overflow, in place."""
    steps = tracker + 1
    due = steps == interval
    grown = scale * growth
    kept = taeda.where(due & grown.isfinite(), grown, scale)
    scale.copy_(taeda.where(overflowed, scale * backoff, kept))
    tracker.copy_(taeda.where(overflowed | due, taeda.zeros_like(steps), steps))


class GradScaler:
    """Scales losses, and skips steps whose gradients overflow.

    The scale shrinks by ``backoff_factor`` after an overflow and grows by ``growth_factor`` after
    ``growth_interval`` steps without one. Without a CUDA device, ``GradScaler()`` and
    ``GradScaler("cuda")`` are disabled with a warning; ``GradScaler("cpu")`` works.

    >>> import taeda as torch
    >>> w = torch.ones(2, requires_grad=True)
    >>> opt = torch.optim.SGD([w], lr=0.5)
    >>> scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    >>> scaler.scale(w.sum()).backward()
    >>> w.grad
    tensor([4., 4.])
    >>> _ = scaler.step(opt)
    >>> w.detach()
    tensor([0.5000, 0.5000])
    >>> scaler.update()
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda" and not taeda.cuda.is_available():
            warnings.warn(
                "torch.amp.GradScaler is enabled, but CUDA is not available.  Disabling.",
                stacklevel=2,
            )
            self._enabled = False
        if self._enabled and growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if self._enabled and backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        # 0-d tensors from the first use on, on the scaler's device: nothing here waits for it but
        # steps of optimizers that are not fused, and what asks for the scale.
        self._scale: Any = None
        self._growth_tracker: Any = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        # id(optimizer) -> its stage since the last update(), and for each device 1 or 0 in a
        # tensor: whether a gradient there is infinite or NaN.
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(
            _refresh_per_optimizer_state
        )

    def is_enabled(self) -> bool:
        """Whether the scaler does anything."""
        return self._enabled

    def _scale_tensor(self) -> Any:
        if self._scale is None:
            self._lazy_init_scale_growth_tracker(self._device)
        return self._scale

    def _used_scale(self, method: str) -> Any:
        if self._scale is None:
            raise AssertionError(
                f"Attempted {method} but _scale is None.  "
                "This may indicate your script did not use scaler.scale(loss or outputs) earlier "
                "in the iteration."
            )
        return self._scale

    def scale(self, outputs: Any) -> Any:
        """A tensor, or tensors in lists and tuples, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, taeda.Tensor):
            return outputs * self._scale_tensor().to(outputs.device)
        if isinstance(outputs, Iterable):
            scaled = [self.scale(output) for output in outputs]
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients of the optimizer's parameters by the scale; once before a step."""
        if not self._enabled:
            return
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        inverse = self._used_scale("unscale_").double().reciprocal().float()
        grads: dict[Any, list[Any]] = {}
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if p.grad.dtype == taeda.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                grads.setdefault(p.grad.device, []).append(p.grad)
        found = {device: taeda.zeros((), device=device) for device in grads or [inverse.device]}
        with taeda.no_grad():
            for device, there in grads.items():
                _unscale(there, found[device], inverse.to(device))
        state["found_inf_per_device"] = found
        state["stage"] = OptState.UNSCALED

    def _lazy_init_scale_growth_tracker(self, dev: Any) -> None:
        """Makes the tensors of the scale, which the first use makes otherwise."""
        self._scale = taeda.full((), self._init_scale, dtype=taeda.float32, device=dev)
        self._growth_tracker = taeda.full(
            (), self._init_growth_tracker, dtype=taeda.int32, device=dev
        )

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Any]:
        """For each device, whether a gradient there was infinite or NaN, as 1 or 0 in a tensor."""
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    def _overflowed(self, optimizer_id: int) -> bool:
        found = self._per_optimizer_states[optimizer_id]["found_inf_per_device"]
        return any(value.item() for value in found.values())

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """``optimizer.step()`` on unscaled gradients, unless one of them is infinite or NaN."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        result = None
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            found, device = state["found_inf_per_device"], self._used_scale("step").device
            optimizer.found_inf = sum(value.to(device) for value in found.values())
            try:
                result = optimizer.step(*args, **kwargs)
            finally:
                del optimizer.found_inf
        elif not self._overflowed(id(optimizer)):
            result = optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def update(self, new_scale: Any = None) -> None:
        """Adapts the scale (or sets it) and gets ready for the next iteration."""
        if not self._enabled:
            return
        scale = self._used_scale("update")
        if new_scale is not None:
            scale.fill_(float(new_scale))
        else:
            found = [
                value.to(scale.device)
                for state in self._per_optimizer_states.values()
                for value in state["found_inf_per_device"].values()
            ]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            rule = self._growth_factor, self._backoff_factor, self._growth_interval
            _adapt(scale, self._growth_tracker, sum(found) != 0, *rule)
        self._per_optimizer_states.clear()

    def _get_growth_tracker(self) -> int:
        """How many steps in a row did not overflow."""
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else tracker.item()

    def get_scale(self) -> float:
        """The scale; 1.0 when disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by to grow."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Changes the growth factor."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after an overflow."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Changes the backoff factor."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many steps without overflow the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Changes the growth interval."""
        self._growth_interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """The scale and its settings; empty when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what ``state_dict`` of another scaler returned."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])
