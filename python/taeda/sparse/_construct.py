"""Functions that make sparse tensors of their parts: torch.sparse_coo_tensor and its like."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import _C
from taeda._sparse_methods import _BY_ROWS, _LAYOUT_NAMES, _WORDS
from taeda.sparse._invariants import check_compressed, check_coo, checks_are_on

_FUNCTIONS = _C._by_owner["torch"]


def _tensor(data: Any, dtype: Any, device: Any) -> Any:
    """`data` as a tensor, keeping its history."""
    if not isinstance(data, taeda.Tensor):
        return taeda.tensor(data, dtype=dtype, device=device)
    if device is not None:
        data = data.to(device)
    return data if dtype is None else data.to(dtype)


def _index(data: Any, device: Any) -> Any:
    return _tensor(data, None, device).to(taeda.int64)


def _finished(tensor: Any, requires_grad: bool) -> Any:
    """A new leaf: what is made from parts has their history only where nothing is asked for."""
    return tensor.detach().requires_grad_() if requires_grad else tensor


def _inferred_size(indices: Any, values: Any) -> tuple[int, ...]:
    if indices.numel():
        low = indices.amin(1).tolist()
        for dim, least in enumerate(low):
            if least < 0:
                raise RuntimeError(f"found negative index {least} for dim {dim}")
        size = [int(n) + 1 for n in indices.amax(1).tolist()]
    else:
        size = [0] * indices.size(0)
    return (*size, *values.shape[1:])


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Any:
    """A tensor of the elements that are given, with their coordinates; all others are 0.

    Args:
        indices: coordinates, int64 [sparse dimensions, n]. Equal ones stand for the sum. Alone, the
            sizes of a tensor without values.
        values: [n, dense dimensions...]; a tensor keeps its history.
        size: of the tensor; as large as the coordinates need where it is left out.
        dtype: of the values.
        device: of the tensor.
        pin_memory: for devices only.
        requires_grad: makes a leaf that records gradients.
        check_invariants: whether coordinates are compared with the sizes (default: as
            torch.sparse.check_sparse_tensor_invariants says).
        is_coalesced: says that coordinates are sorted and differ.

    Returns:
        A tensor of layout torch.sparse_coo.

    >>> torch.sparse_coo_tensor([[0, 1], [2, 0]], [3., 4.], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    if values is None:
        if indices is None and size is None:
            raise TypeError("sparse_coo_tensor(): expected indices and values, or size")
        size = tuple(indices) if size is None else size
        values = taeda.empty(0, dtype=dtype, device=device)
        indices = taeda.empty(len(size), 0, dtype=taeda.int64, device=device)
    values = _tensor(values, dtype, device)
    if values.dim() == 0:
        values = values.unsqueeze(0)
    indices = _index(indices, values.device if device is None else device)
    if indices.dim() == 1:
        indices = indices.unsqueeze(0) if size is None else indices.unsqueeze(1)
    size = _inferred_size(indices, values) if size is None else tuple(size)
    check_coo(indices, values, size, checks_are_on(check_invariants), bool(is_coalesced))
    made = _FUNCTIONS["_sparse_make_coo"](indices, values, size, bool(is_coalesced))
    return _finished(made, requires_grad)


def _sparse_coo_tensor_unsafe(
    indices: Any,
    values: Any,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Any:
    """sparse_coo_tensor of tensors that nothing is checked of."""
    values = _tensor(values, dtype, device)
    made = _FUNCTIONS["_sparse_make_coo"](indices, values, tuple(size), bool(is_coalesced))
    return _finished(made, requires_grad)


def _compressed_size(layout: Any, compressed: Any, plain: Any, values: Any) -> tuple[int, ...]:
    batch = tuple(compressed.shape[:-1])
    inner = values.shape[plain.dim() :]
    lines, others = compressed.size(-1) - 1, int(plain.max()) + 1 if plain.numel() else 0
    rows, columns = (lines, others) if layout in _BY_ROWS else (others, lines)
    if layout in (taeda.sparse_bsr, taeda.sparse_bsc):
        rows, columns, inner = rows * inner[0], columns * inner[1], inner[2:]
    return (*batch, rows, columns, *inner)


def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Any:
    """A tensor in a compressed layout: by rows or columns, or by rows or columns of blocks.

    Args:
        compressed_indices: where each line begins in the others, [batch..., lines + 1].
        plain_indices: the place of each value in its line, [batch..., n].
        values: [batch..., n, dense dimensions...], with blocks [batch..., n, height, width, ...].
        size: of the tensor; as large as the parts need where it is left out.
        dtype: of the values.
        layout: torch.sparse_csr, sparse_csc, sparse_bsr or sparse_bsc.
        device: of the tensor.
        pin_memory: for devices only.
        requires_grad: makes a leaf that records gradients.
        check_invariants: whether the parts are compared with one another and the sizes.

    Returns:
        A tensor of that layout.

    >>> torch.sparse_csr_tensor([0, 1, 2], [1, 0], [3., 4.]).to_dense()
    tensor([[0., 3.],
            [4., 0.]])
    """
    if layout not in _WORDS:
        found = "none" if layout is None else _LAYOUT_NAMES[layout]
        raise RuntimeError(
            f"sparse_compressed_tensor expected sparse compressed tensor layout but got {found}"
        )
    values = _tensor(values, dtype, device)
    where = values.device if device is None else device
    compressed, plain = (
        _tensor(compressed_indices, None, where),
        _tensor(plain_indices, None, where),
    )
    size = _compressed_size(layout, compressed, plain, values) if size is None else tuple(size)
    check_compressed(layout, compressed, plain, values, size, checks_are_on(check_invariants))
    made = _FUNCTIONS["_sparse_make_compressed"](compressed, plain, values, size, _WORDS[layout])
    return _finished(made, requires_grad)


def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, **options: Any
) -> Any:
    """A matrix by rows: sparse_compressed_tensor in layout torch.sparse_csr."""
    options.setdefault("layout", taeda.sparse_csr)
    return sparse_compressed_tensor(crow_indices, col_indices, values, size, **options)


def sparse_csc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, **options: Any
) -> Any:
    """A matrix by columns: sparse_compressed_tensor in layout torch.sparse_csc."""
    options.setdefault("layout", taeda.sparse_csc)
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size, **options)


def sparse_bsr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, **options: Any
) -> Any:
    """A matrix by rows of blocks: sparse_compressed_tensor in layout torch.sparse_bsr."""
    options.setdefault("layout", taeda.sparse_bsr)
    return sparse_compressed_tensor(crow_indices, col_indices, values, size, **options)


def sparse_bsc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, **options: Any
) -> Any:
    """A matrix by columns of blocks: sparse_compressed_tensor in layout torch.sparse_bsc."""
    options.setdefault("layout", taeda.sparse_bsc)
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size, **options)
