"""What the parts of sparse tensors must fulfil, and when it is checked."""

from __future__ import annotations

import functools
from typing import Any

import taeda

_enabled = False


class check_sparse_tensor_invariants:
    """Whether functions that make sparse tensors compare the coordinates with the sizes: as a
    context manager, a decorator, or for good.

    >>> with torch.sparse.check_sparse_tensor_invariants():
    ...     torch.sparse_coo_tensor([[5]], [1.], (2,))
    Traceback (most recent call last):
        ...
    RuntimeError: size is inconsistent with indices: for dim 0, size is 2 but found index 5
    """

    def __init__(self, enable: bool = True) -> None:
        self.state, self._saved = enable, []  # type: ignore[var-annotated]

    @staticmethod
    def is_enabled() -> bool:
        return _enabled

    @staticmethod
    def enable() -> None:
        _set(True)

    @staticmethod
    def disable() -> None:
        _set(False)

    def __enter__(self) -> None:
        self._saved.append(_enabled)
        _set(self.state)

    def __exit__(self, *exc: object) -> None:
        _set(self._saved.pop())

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return checked


def _set(on: bool) -> None:
    global _enabled
    _enabled = on


def checks_are_on(asked: bool | None) -> bool:
    return _enabled if asked is None else asked


def check_coo(indices: Any, values: Any, size: tuple, whole: bool, is_coalesced: bool) -> None:
    """Numbers of dimensions and values always; `whole`, every coordinate."""
    sparse_dim, dense_dim = indices.size(0), values.dim() - 1
    if indices.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {tuple(indices.shape)}")
    if len(size) != sparse_dim + dense_dim:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, "
            f"sparse_dim = {sparse_dim}, dense_dim = {dense_dim}"
        )
    if indices.size(1) != values.size(0):
        raise RuntimeError(
            "indices and values must have same nnz, but got nnz from indices: "
            f"{indices.size(1)}, nnz from values: {values.size(0)}"
        )
    expected = [values.size(0), *size[sparse_dim:]]
    if expected != list(values.shape):
        raise RuntimeError(
            f"values has incorrect size, expected {expected}, got {list(values.shape)}"
        )
    if whole:
        _check_coordinates(indices, size, is_coalesced)


def _check_coordinates(indices: Any, size: tuple, is_coalesced: bool) -> None:
    if indices.size(1) == 0 or indices.size(0) == 0:
        return
    lows, highs = indices.amin(1).tolist(), indices.amax(1).tolist()
    for dim, (low, high) in enumerate(zip(lows, highs, strict=True)):
        if low < 0:
            raise RuntimeError(f"found negative index {low} for dim {dim}")
        if high >= size[dim]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {dim}, size is {size[dim]} but found "
                f"index {high}"
            )
    if is_coalesced:
        linear = indices[0]
        for row, length in zip(indices[1:], size[1:], strict=False):
            linear = linear * length + row
        if not bool((linear[1:] > linear[:-1]).all()):
            raise RuntimeError(
                "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor"
            )


def check_compressed(
    layout: Any, compressed: Any, plain: Any, values: Any, size: tuple, whole: bool
) -> None:
    """Ranks always, so that nothing is read beyond an end; `whole`, every index."""
    by_rows = layout in (taeda.sparse_csr, taeda.sparse_bsr)
    first, second = ("crow", "col") if by_rows else ("ccol", "row")
    blocked = 2 if layout in (taeda.sparse_bsr, taeda.sparse_bsc) else 0
    block = tuple(values.shape[plain.dim() :][:2]) if blocked else (1, 1)
    _expect(
        compressed.dim() >= 1 and compressed.dim() == plain.dim(),
        f"{first}_indices and {second}_indices dimensionalities must be equal but got "
        f"{compressed.dim()} and {plain.dim()}, respectively",
    )
    _expect(
        values.dim() >= plain.dim() + blocked and len(size) == values.dim() + 1 - blocked,
        "tensor dimensionality must be sum of batch, base, and dense dimensionalities (="
        f"{values.dim() + 1 - blocked}) but got {len(size)}",
    )
    nnz = values.shape[plain.dim() - 1]
    _expect(
        plain.shape[-1] == nnz,
        f"{second}_indices.shape[-1] must be equal to nnz (={nnz}) as defined by "
        f"values.shape[{plain.dim() - 1}], but got {plain.shape[-1]}",
    )
    batch = plain.dim() - 1
    lines = size[batch if by_rows else batch + 1] // block[0 if by_rows else 1]
    _expect(
        compressed.shape[-1] == lines + 1,
        f"{first}_indices.shape[-1] must be equal to the number of "
        f"{'rows' if by_rows else 'columns'} + 1 (={lines + 1}), but got {compressed.shape[-1]}",
    )
    if whole:
        others = size[batch + 1 if by_rows else batch] // block[1 if by_rows else 0]
        _check_lines((first, second), compressed, plain, nnz, others)


def _expect(condition: bool, message: str) -> None:
    if not condition:
        raise RuntimeError(message)


def _check_lines(names: tuple, compressed: Any, plain: Any, nnz: int, others: int) -> None:
    first, second = (f"{name}_indices" for name in names)
    count = "ncols" if second == "col_indices" else "nrows"
    lines = "nrows" if second == "col_indices" else "ncols"
    _expect(bool((compressed[..., 0] == 0).all()), f"`{first}[..., 0] == 0` is not satisfied.")
    _expect(
        bool((compressed[..., -1] == nnz).all()), f"`{first}[..., -1] == nnz` is not satisfied."
    )
    inside = bool(((plain >= 0) & (plain < others)).all())
    _expect(inside, f"`0 <= {second} < {count}` is not satisfied.")
    starts = compressed.reshape(-1, compressed.shape[-1]).to(taeda.int64)
    plain = plain.reshape(-1, nnz).to(taeda.int64)
    counts = starts.diff()
    # Within a line the indices rise; they may fall where the next one begins.
    begins = plain.new_zeros(plain.size(0), nnz + 1, dtype=taeda.bool)
    ordered = bool(((counts >= 0) & (counts <= others)).all())
    if ordered:
        begins.scatter_(1, starts, True)
        ordered = bool(((plain[:, 1:] > plain[:, :-1]) | begins[:, 1:-1]).all())
    _expect(
        ordered,
        f"`{second}[..., {first}[..., i - 1]:{first}[..., i]] for all i = 1, ..., {lines} "
        "are sorted and distinct along the last dimension values` is not satisfied.",
    )
