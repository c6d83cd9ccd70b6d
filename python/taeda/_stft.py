"""Short-time Fourier transforms: the spectra of a signal's windows, and the signal of these."""

from __future__ import annotations

import warnings

import taeda as torch
from taeda import Tensor
from taeda._C import _overridable
from taeda.nn import functional as F

__all__ = ["istft", "stft"]


def _window(name: str, input: Tensor, window: Tensor | None, length: int, n_fft: int) -> Tensor:
    """`window`, or ones, in the middle of `n_fft` values."""
    if window is None:
        dtype = input.real.dtype if input.is_complex() else input.dtype
        window = torch.ones(length, dtype=dtype, device=input.device)
    elif tuple(window.shape) != (length,):
        raise RuntimeError(
            f"{name}: expected a 1D window tensor of size equal to win_length={length}, "
            f"but got window with size {list(window.shape)}"
        )
    left = (n_fft - length) // 2
    return F.pad(window, (left, n_fft - length - left))


def _check_lengths(name: str, n_fft: int, hop: int, win: int) -> None:
    if hop <= 0:
        raise RuntimeError(f"{name}: expected hop_length > 0, but got hop_length={hop}")
    if not 0 < win <= n_fft:
        raise RuntimeError(
            f"{name}: expected 0 < win_length <= n_fft, but got win_length={win}, n_fft={n_fft}"
        )


@_overridable
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The spectra (..., frequencies, frames) of windows of a signal (time) or (batch, time).

    >>> import taeda as torch
    >>> torch.stft(torch.ones(8), 4, window=torch.ones(4), return_complex=True).shape
    torch.Size([3, 9])
    """
    hop = n_fft // 4 if hop_length is None else hop_length
    win = n_fft if win_length is None else win_length
    if align_to_window is not None and center:
        raise RuntimeError("stft only supports align_to_window for center = False.")
    if return_complex is None:
        return_complex = input.is_complex() or (window is not None and window.is_complex())
        if not return_complex:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will "
                "further require that return_complex=True in a future PyTorch release."
            )
    if not (input.is_floating_point() or input.is_complex()) or input.dim() not in (1, 2):
        raise RuntimeError("stft: expected a 1D or 2D tensor of floating point or complex values")
    signal = input.unsqueeze(0) if input.dim() == 1 else input
    if center:
        pads = (n_fft // 2, n_fft // 2)
        signal = F.pad(signal.unsqueeze(1), pads, mode=pad_mode).squeeze(1)
    _check_lengths("stft", n_fft, hop, win)
    if not 0 < n_fft <= signal.shape[-1]:
        raise RuntimeError(f"stft: expected 0 < n_fft <= {signal.shape[-1]}, but got n_fft={n_fft}")
    if align_to_window:
        left = (n_fft - win) // 2
        signal = F.pad(signal, (left, left))
    frames = signal.unfold(-1, n_fft, hop) * _window("stft", input, window, win, n_fft)
    if onesided is None:
        onesided = not frames.is_complex()
    transform = torch.fft.rfft if onesided else torch.fft.fft
    spectra = transform(frames, norm="ortho" if normalized else None).transpose(1, 2)
    spectra = spectra.squeeze(0) if input.dim() == 1 else spectra
    return spectra if return_complex else torch.view_as_real(spectra)


@_overridable
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal of which these are the spectra: windows added up and divided by their sum."""
    hop = n_fft // 4 if hop_length is None else hop_length
    win = n_fft if win_length is None else win_length
    if not input.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with "
            "return_complex=True."
        )
    if input.dim() not in (2, 3) or input.numel() == 0:
        raise RuntimeError("istft: expected a tensor with 2 or 3 dimensions that is not empty")
    _check_lengths("istft", n_fft, hop, win)
    if onesided is None:
        onesided = input.shape[-2] != n_fft
    bins = n_fft // 2 + 1 if onesided else n_fft
    if input.shape[-2] != bins:
        raise RuntimeError(f"istft: expected {bins} frequencies, but got {input.shape[-2]}")
    taper = _window("istft", input, window, win, n_fft)
    spectra = (input.unsqueeze(0) if input.dim() == 2 else input).transpose(1, 2)
    norm = "ortho" if normalized else None
    if return_complex:
        frames = torch.fft.ifft(spectra, norm=norm)
    elif onesided:
        frames = torch.fft.irfft(spectra, n_fft, norm=norm)
    else:
        frames = torch.fft.ifft(spectra, norm=norm).real
    signal = _added(frames * taper, hop)
    weights = _added((taper * taper).expand(1, frames.shape[1], n_fft), hop)
    return _cut(signal, weights, n_fft, center, length, input.dim() == 2)


def _added(frames: Tensor, hop: int) -> Tensor:
    """Frames (batch, frames, points) added up where they lie `hop` apart."""
    batch, count, points = frames.shape
    index = torch.arange(count).unsqueeze(1) * hop + torch.arange(points)
    total = frames.new_zeros(batch, (count - 1) * hop + points)
    return total.index_add(1, index.reshape(-1).to(frames.device), frames.reshape(batch, -1))


def _cut(
    signal: Tensor, weights: Tensor, n_fft: int, center: bool, length: int | None, single: bool
) -> Tensor:
    """The part of the signal that was asked for, divided by the windows' sum."""
    start = n_fft // 2 if center else 0
    end = signal.shape[-1]
    if length is not None:
        end = start + length
    elif center:
        end -= n_fft // 2
    signal, weights = signal[:, start:end], weights[:, start:end]
    if float(weights.abs().min()) <= 1e-11:
        raise RuntimeError("istft: window overlap add min: 1e-11 is not reached")
    signal = signal / weights
    missing = 0 if length is None else length - signal.shape[-1]
    if missing > 0:
        warnings.warn(
            "The length of signal is shorter than the length parameter. Result is being padded "
            "with zeros in the tail.",
            stacklevel=3,
        )
        signal = F.pad(signal, (0, missing))
    return signal.squeeze(0) if single else signal
