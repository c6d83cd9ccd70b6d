"""Modules of PyTorch's whose names are those of others here; each works as it does there."""

from __future__ import annotations

_ELSEWHERE = "its names are in the package around it"


def _names(module: str, names: str) -> tuple[str, str]:
    return _ELSEWHERE, " ".join(f"{name}={module}.{name}" for name in names.split())


MODULES = {
    "torch._library.custom_ops": _names("torch._library.custom_op", "CustomOpDef custom_op"),
    "torch.jit._async": _names("torch.jit", "fork wait"),
    "torch.jit._freeze": _names(
        "torch.jit", "freeze optimize_for_inference run_frozen_optimizations"
    ),
    "torch.jit._await": _names("torch.jit", "_awaitable _awaitable_nowait _awaitable_wait"),
    "torch.cpu.amp.autocast_mode": _names("torch.cpu.amp", "autocast"),
    "torch.cpu.amp.grad_scaler": _names("torch.cpu.amp", "GradScaler"),
    "torch.cuda.amp.autocast_mode": _names("torch.cuda.amp", "autocast custom_bwd custom_fwd"),
    "torch.cuda.amp.common": (
        _ELSEWHERE,
        "amp_definitely_not_available=torch.cuda.amp.amp_definitely_not_available",
    ),
    "torch.cuda.amp.grad_scaler": (
        _ELSEWHERE,
        "GradScaler=torch.cuda.amp.GradScaler OptState=torch.amp.grad_scaler.OptState "
        "_refresh_per_optimizer_state=torch.amp.grad_scaler._refresh_per_optimizer_state",
    ),
    "torch.signal.windows.windows": _names(
        "torch.signal.windows",
        "bartlett blackman cosine exponential gaussian general_cosine general_hamming hamming hann "
        "kaiser nuttall",
    ),
    "torch.nn.intrinsic.qat": _names(
        "torch.ao.nn.intrinsic.qat",
        "ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d ConvReLU1d ConvReLU2d "
        "ConvReLU3d LinearReLU freeze_bn_stats update_bn_stats",
    ),
    "torch.masked.maskedtensor.creation": _names("torch.masked", "as_masked_tensor masked_tensor"),
}
