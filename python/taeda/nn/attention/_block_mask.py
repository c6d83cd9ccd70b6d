"""Masks of attention by blocks: which blocks of queries and keys are computed, wholly or in part.

The blocks of a row of queries stand as their number and their columns, in ascending order; what
follows them in the columns has no meaning.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import taeda as torch
from taeda import Tensor
from taeda.nn.attention._modifications import (
    Mod,
    ModificationType,
    apply_mask_mod,
    apply_score_mod,
    modification_type,
)
from taeda.utils import _pytree

DEFAULT_BLOCK_SIZE = 128


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask_mod that lets every query attend to every key."""
    return batch.new_ones((), dtype=torch.bool)


def sliced_mask_mod(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """What a slice of a BlockMask has as its mask_mod, whose indices are those of the whole."""
    raise RuntimeError(
        "Cannot use mask_mod from a sliced BlockMask: its indices count from the slice. Set "
        "mask_mod of the slice to one made from the mask_mod of the BlockMask that was sliced."
    )


def ordered_to_dense(counts: Tensor, columns: Tensor, width: int) -> Tensor:
    """(..., rows, width) with 1 at each row's first `counts` of its `columns`."""
    valid = torch.arange(columns.shape[-1], device=columns.device) < counts.unsqueeze(-1)
    target = torch.where(valid, columns, width).long()
    dense = columns.new_zeros((*columns.shape[:-1], width + 1), dtype=torch.int32)
    return dense.scatter(-1, target, 1)[..., :width].contiguous()


def dense_to_ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    """The number of ones in each row, and their columns before those of the zeros."""
    dense = dense.to(torch.int32)
    columns = torch.argsort(dense, dim=-1, descending=True, stable=True)
    return dense.sum(-1).to(torch.int32), columns.to(torch.int32)


def _transposed(counts: Tensor, columns: Tensor) -> tuple[Tensor, Tensor]:
    """The rows of each column: what the backward of a kernel iterates over."""
    dense = ordered_to_dense(counts, columns, columns.shape[-1])
    return dense_to_ordered(dense.transpose(-2, -1))


def _cropped(counts: Tensor, columns: Tensor, rows: int, width: int) -> tuple[Tensor, ...]:
    columns = columns[:, :, :rows, :width]
    counts = counts[:, :, :rows].clamp(max=width)
    return (columns < counts.unsqueeze(-1)).sum(-1).to(torch.int32), columns


class BlockMask:
    """Which blocks of (queries, keys) attention computes, and the mask_mod within partial ones.

    Made by create_block_mask or from_kv_blocks. ``kv_num_blocks`` (batch, heads, rows) and
    ``kv_indices`` (batch, heads, rows, columns) are the blocks to which mask_mod is applied, the
    ``full`` ones those computed without it, and the ``q`` ones the same by columns.
    """

    _TENSOR_ATTRS = [
        "kv_num_blocks",
        "kv_indices",
        "full_kv_num_blocks",
        "full_kv_indices",
        "q_num_blocks",
        "q_indices",
        "full_q_num_blocks",
        "full_q_indices",
        "dq_write_order",
        "dq_write_order_full",
        "dq_kv_order",
    ]
    _CONTEXT_ATTRS = ["seq_lengths", "BLOCK_SIZE", "mask_mod", "dq_kv_order_spt"]

    kv_num_blocks: Tensor
    kv_indices: Tensor
    full_kv_num_blocks: Tensor | None
    full_kv_indices: Tensor | None
    q_indices: Tensor | None

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (DEFAULT_BLOCK_SIZE, DEFAULT_BLOCK_SIZE),
        mask_mod: Mod = noop_mask,
        *,
        dq_write_order: Tensor | None = None,
        dq_write_order_full: Tensor | None = None,
        dq_kv_order: Tensor | None = None,
        dq_kv_order_spt: bool | None = None,
    ) -> None:
        _check_blocks(kv_indices, full_kv_num_blocks, full_kv_indices)
        if (full_q_num_blocks is None) != (full_q_indices is None):
            raise AssertionError(
                "full_q_num_blocks and full_q_indices must be both provided or omitted"
            )
        if dq_write_order_full is not None and dq_write_order is None:
            raise ValueError("dq_write_order_full requires dq_write_order")
        given = locals()
        for name in (*self._TENSOR_ATTRS, *self._CONTEXT_ATTRS):
            setattr(self, name, given[name])
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = seq_lengths, BLOCK_SIZE, mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = DEFAULT_BLOCK_SIZE,
        mask_mod: Mod | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
        *,
        dq_write_order: Tensor | None = None,
        dq_write_order_full: Tensor | None = None,
        dq_kv_order: Tensor | bool | None = None,
    ) -> BlockMask:
        """The mask of blocks given by rows; those by columns are worked out from them."""
        _check_blocks(kv_indices, full_kv_num_blocks, full_kv_indices)
        if not isinstance(dq_kv_order, bool | Tensor | None):
            raise ValueError("dq_kv_order must be a bool, Tensor, or None")
        by_column: list[Tensor | None] = [None] * 4
        if compute_q_blocks:
            by_column[:2] = _transposed(kv_num_blocks, kv_indices)
            if full_kv_num_blocks is not None and full_kv_indices is not None:
                by_column[2:] = _transposed(full_kv_num_blocks, full_kv_indices)
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        rows, columns = kv_indices.shape[-2:]
        is_flag = isinstance(dq_kv_order, bool)
        return cls(
            seq_lengths or (rows * size[0], columns * size[1]),
            kv_num_blocks,
            kv_indices,
            full_kv_num_blocks,
            full_kv_indices,
            by_column[0],
            by_column[1],
            by_column[2],
            by_column[3],
            BLOCK_SIZE=size,
            mask_mod=noop_mask if mask_mod is None else mask_mod,
            dq_write_order=dq_write_order,
            dq_write_order_full=dq_write_order_full,
            dq_kv_order=None if is_flag else dq_kv_order,  # type: ignore[arg-type]
            dq_kv_order_spt=dq_kv_order if is_flag else None,  # type: ignore[arg-type]
        )

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """The lengths, the tensors, the block size and mask_mod; pairs as tuples if not flat."""
        lengths, size = (
            (self.seq_lengths, self.BLOCK_SIZE)
            if flatten
            else ((self.seq_lengths,), (self.BLOCK_SIZE,))
        )
        tensors = (getattr(self, name) for name in self._TENSOR_ATTRS)
        spt = self.dq_kv_order_spt  # type: ignore[attr-defined]
        return (*lengths, *tensors, spt, *size, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """(batch, heads, queries, keys)"""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """The percentage of elements in blocks that are not computed."""
        blocks = int(self.kv_num_blocks.sum())
        if self.full_kv_num_blocks is not None:
            blocks += int(self.full_kv_num_blocks.sum())
        return 100 * (1 - blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self) -> Tensor:
        """(batch, heads, rows, columns) of blocks: 1 where a block is computed."""
        width = self.kv_indices.shape[-1]
        dense = ordered_to_dense(self.kv_num_blocks, self.kv_indices, width)
        full = self._full_blocks()
        return dense if full is None else dense | full

    def _full_blocks(self) -> Tensor | None:
        if self.full_kv_num_blocks is None or self.full_kv_indices is None:
            return None
        width = self.full_kv_indices.shape[-1]
        return ordered_to_dense(self.full_kv_num_blocks, self.full_kv_indices, width)

    def allowed(self, shape: tuple[int, ...], device: Any) -> Tensor:
        """The mask of single elements, of a shape (batch, heads, queries, keys)."""
        by_element = apply_mask_mod(self.mask_mod, shape, device)
        width = self.kv_indices.shape[-1]
        partial = ordered_to_dense(self.kv_num_blocks, self.kv_indices, width)
        mask = self._elements(partial, shape) & by_element
        full = self._full_blocks()
        return mask if full is None else mask | self._elements(full, shape)

    def _elements(self, blocks: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Blocks of ones and zeros as a mask of elements, cut off at the lengths of `shape`."""
        for dim, size in zip((-2, -1), self.BLOCK_SIZE, strict=True):
            blocks = blocks.repeat_interleave(min(size, shape[dim]), dim)
        return blocks[..., : shape[-2], : shape[-1]] != 0

    def __getitem__(self, index: Any) -> BlockMask:
        """The mask of a part of the batch, the heads and the rows of blocks.

        An integer keeps its dimension, with size one.
        """
        if self.dq_kv_order is not None:  # type: ignore[attr-defined]
            raise NotImplementedError("Slicing BlockMask with tensor dq_kv_order is not supported")
        given = index if isinstance(index, tuple) else (index,)
        given = (*given, *[slice(None)] * 3)[:3]
        sizes = self.kv_num_blocks.shape[:3]
        parts = tuple(
            _kept_dimension(each, size) if isinstance(each, int) else each
            for each, size in zip(given, sizes, strict=True)
        )
        blocks = {
            name: None if getattr(self, name) is None else getattr(self, name)[parts]
            for name in self._TENSOR_ATTRS[:4]
        }
        return self._with_blocks(blocks, sliced_mask_mod, self.seq_lengths)

    def _with_blocks(
        self, blocks: dict[str, Any], mask_mod: Mod, lengths: tuple[int, int]
    ) -> BlockMask:
        return self.from_kv_blocks(
            **blocks,
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=mask_mod,
            seq_lengths=lengths,
            compute_q_blocks=self.q_indices is not None,
            dq_kv_order=self.dq_kv_order_spt,  # type: ignore[attr-defined]
        )

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The mask of the first queries and keys."""
        rows = -(-new_q_len // self.BLOCK_SIZE[0])
        columns = -(-new_kv_len // self.BLOCK_SIZE[1])
        cropped = _cropped(self.kv_num_blocks, self.kv_indices, rows, columns)
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            cropped += _cropped(self.full_kv_num_blocks, self.full_kv_indices, rows, columns)
        blocks = dict(zip(self._TENSOR_ATTRS, cropped, strict=False))
        return self._with_blocks(blocks, self.mask_mod, (new_q_len, new_kv_len))

    def to(self, device: Any) -> BlockMask:
        """The mask with its tensors on another device."""
        tensors, context = self._flatten()
        return self._unflatten([tensor.to(device) for tensor in tensors], context)

    def _flatten(self) -> tuple[list[Tensor], tuple[Any, ...]]:
        held = [name for name in self._TENSOR_ATTRS if getattr(self, name) is not None]
        context = tuple(getattr(self, name) for name in self._CONTEXT_ATTRS)
        return [getattr(self, name) for name in held], (*context, tuple(held))

    @classmethod
    def _unflatten(cls, leaves: Any, context: tuple[Any, ...]) -> BlockMask:
        given: dict[str, Any] = dict.fromkeys(cls._TENSOR_ATTRS)
        given.update(zip(context[-1], leaves, strict=True))
        given.update(zip(cls._CONTEXT_ATTRS, context[:-1], strict=True))
        return cls(**given)

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """The blocks as a picture: full, in part and not computed."""
        dense = self.to_dense()
        grid = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        shown = []
        for number, index in enumerate(itertools.product(*map(range, dense.shape[:-2]))):
            if number == limit:
                shown += [
                    "...",
                    "To print out more, set BlockMask.to_string(limit=N)",
                    "You can also index (BlockMask[batch, head]) "
                    "to choose a specific batch or head",
                ]
                break
            shown.append(f"{index}\n" + _picture(dense[index], grid))
        return "\n".join(shown)

    def __str__(self) -> str:
        head = f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n"
        return head + self.to_string().strip() + "\n)"

    def __repr__(self) -> str:
        shapes = "".join(
            f"    {name}={None if getattr(self, name) is None else getattr(self, name).shape},\n"
            for name in self._TENSOR_ATTRS[:8]
        )
        mod = getattr(self.mask_mod, "__name__", self.mask_mod)
        return (
            f"BlockMask(\n{shapes}    BLOCK_SIZE={self.BLOCK_SIZE},\n    shape={self.shape},\n"
            f"    sparsity={self.sparsity():.2f}%,\n    mask_mod={mod}\n)"
        )


_pytree.register_pytree_node(
    BlockMask,
    BlockMask._flatten,
    BlockMask._unflatten,
    serialized_type_name="torch.nn.attention.flex_attention.BlockMask",
)


def _check_blocks(
    kv_indices: Tensor, full_kv_num_blocks: Tensor | None, full_kv_indices: Tensor | None
) -> None:
    if kv_indices.dim() < 2:
        raise RuntimeError("BlockMask must have at least 2 dimensions")
    if (full_kv_num_blocks is None) != (full_kv_indices is None):
        raise AssertionError(
            "full_kv_num_blocks and full_kv_indices must be both provided or omitted"
        )


def _kept_dimension(index: int, size: int) -> slice:
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for dimension with size {size}")
    return slice(index % size, index % size + 1)


def _picture(blocks: Tensor, grid: tuple[int, int]) -> str:
    """Rows of two characters a block, or a few blocks where the grid has no room for all."""
    steps = [
        1 if most == -1 else max(1, -(-size // most))
        for size, most in zip(blocks.shape, grid, strict=True)
    ]
    lines = []
    for row in blocks.float().split(steps[0]):
        shares = (float(part.mean()) for part in row.split(steps[1], 1))
        lines.append(
            "".join({0.0: " ", 1.0: "\u2588"}.get(share, "\u2591") * 2 for share in shares)
        )
    return "".join(line + "\n" for line in lines)


def create_mask(
    mod_fn: Mod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
) -> Tensor:
    """The mask (B, H, Q_LEN, KV_LEN) of a mask_mod, or of where a score_mod leaves a score.

    >>> from taeda.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, q, kv: q >= kv, 1, 1, 2, 3)
    tensor([[[[ True, False, False],
              [ True,  True, False]]]])
    """
    shape = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    device = _device(device)
    if modification_type(mod_fn) is ModificationType.MASK_MOD:
        return apply_mask_mod(mod_fn, shape, device)
    return ~torch.isneginf(apply_score_mod(mod_fn, torch.zeros(shape, device=device)))


def _device(device: Any) -> Any:
    return torch.accelerator.current_accelerator() or "cpu" if device is None else device


def _count_in_blocks(mask: Tensor, size: tuple[int, int]) -> Tensor:
    """The number of elements that are set in each block of a mask of four dimensions."""
    pad = [-mask.shape[-1] % size[1], -mask.shape[-2] % size[0]]
    mask = torch.nn.functional.pad(mask, (0, pad[0], 0, pad[1]))
    batch, heads, queries, keys = mask.shape
    rows, columns = queries // size[0], keys // size[1]
    return mask.view(batch, heads, rows, size[0], columns, size[1]).sum((3, 5))


def create_block_mask(
    mask_mod: Mod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = DEFAULT_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """The BlockMask of a mask_mod over batches, heads, queries and keys.

    >>> from taeda.nn.attention.flex_attention import create_block_mask
    >>> create_block_mask(lambda b, h, q, kv: q >= kv, 1, 1, 256, 256).sparsity()
    25.0
    """
    if modification_type(mask_mod) is not ModificationType.MASK_MOD:
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    if not isinstance(dq_kv_order, bool):
        raise ValueError("dq_kv_order must be a bool when using create_block_mask")
    if compute_dq_write_order:
        raise NotImplementedError(
            "compute_dq_write_order: there is no FLASH backward, whose order of writing it is; "
            "gradients are deterministic without it"
        )
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    counts = _count_in_blocks(create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device), size)
    full = (counts == size[0] * size[1]) & separate_full_blocks
    partial = dense_to_ordered((counts > 0) & ~full)
    complete = dense_to_ordered(full) if separate_full_blocks else (None, None)
    lengths = (Q_LEN, KV_LEN)
    return BlockMask.from_kv_blocks(
        partial[0], partial[1], complete[0], complete[1], size, mask_mod, lengths
    )
