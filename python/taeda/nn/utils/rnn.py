"""Sequences of different lengths: padded, packed and back."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, NamedTuple

import taeda
from taeda import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpad_sequence",
    "pack_sequence",
    "unpack_sequence",
]


class _PackedSequenceFields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes ``permutation``; None for None.

    >>> torch.nn.utils.rnn.invert_permutation(torch.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    output = taeda.empty_like(permutation)
    order = taeda.arange(permutation.numel(), device=permutation.device)
    return output.scatter_(0, permutation, order)


class PackedSequence(_PackedSequenceFields):
    """Sequences without padding: all first elements, then all second ones, ...

    ``batch_sizes[t]`` sequences (a CPU int64 tensor) have an element t; longer ones come first, by
    ``sorted_indices``. Made by ``pack_padded_sequence`` and ``pack_sequence``.
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise ValueError("Expected a tuple (data, batch_sizes)")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. "
                "Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence "
                "and pack_padded_sequences in nn.utils.rnn. "
                "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def __getnewargs__(self) -> tuple:
        return tuple(self)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Moves or casts the data; indices follow to the device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self

        def move(indices: Tensor | None) -> Tensor | None:
            return None if indices is None else indices.to(data.device)

        return type(self)(
            data, self.batch_sizes, move(self.sorted_indices), move(self.unsorted_indices)
        )

    def pin_memory(self) -> PackedSequence:
        """The same in page-locked memory."""
        return type(self)(
            self.data.pin_memory(), self.batch_sizes, self.sorted_indices, self.unsorted_indices
        )

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        return self.to("cuda", *args, **kwargs)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        return self.to("cpu", *args, **kwargs)

    def double(self) -> PackedSequence:
        return self.to(dtype=taeda.double)

    def float(self) -> PackedSequence:
        return self.to(dtype=taeda.float)

    def half(self) -> PackedSequence:
        return self.to(dtype=taeda.half)

    def long(self) -> PackedSequence:
        return self.to(dtype=taeda.long)

    def int(self) -> PackedSequence:
        return self.to(dtype=taeda.int)

    @property
    def is_cuda(self) -> bool:
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        return self.data.is_pinned()


def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | list[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Packs padded sequences, so that a recurrent layer computes nothing for the padding.

    Args:
        input: n sequences padded to length t, ``(t, n, *)``, or ``(n, t, *)`` with ``batch_first``.
        lengths: how long each of them is, on the CPU.
        batch_first: whether the batch is the first dimension.
        enforce_sorted: whether they stand in decreasing order of length already; False sorts them,
            and results are put back into the order that was given.

    Raises:
        RuntimeError: lengths that do not decrease, are not positive, or do not fit the input.

    >>> x = torch.tensor([[1, 2, 0], [3, 0, 0], [4, 5, 6]])
    >>> packed = torch.nn.utils.rnn.pack_padded_sequence(
    ...     x, [2, 1, 3], batch_first=True, enforce_sorted=False
    ... )
    >>> packed.data, packed.batch_sizes
    (tensor([4, 1, 3, 5, 2, 6]), tensor([3, 2, 1]))
    """
    lengths = taeda.as_tensor(lengths, dtype=taeda.int64, device="cpu")
    sorted_indices = None
    if not enforce_sorted:
        lengths, sorted_indices = taeda.sort(lengths, descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if batch_first:
        input = input.transpose(0, 1)
    ns: list[int] = lengths.tolist()  # type: ignore[union-attr]
    if len(ns) != input.size(1):
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(ns)} "
            f"(batch_size={input.size(1)})"
        )
    if ns[-1] <= 0 or min(ns) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    if any(a < b for a, b in itertools.pairwise(ns)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. "
            "You can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    if ns[0] > input.size(0):
        raise RuntimeError(
            f"Expected sequence length {ns[0]} to be at most the padded length {input.size(0)}"
        )
    # Between two lengths the batch keeps its size: one block of rows for each distinct length.
    blocks, batch_sizes, start = [], [], 0
    for size in range(len(ns), 0, -1):
        end = ns[size - 1]
        if end > start:
            block = input[start:end, :size]
            blocks.append(block.reshape((end - start) * size, *input.shape[2:]))
            batch_sizes += [size] * (end - start)
            start = end
    sizes = taeda.tensor(batch_sizes, device="cpu")
    return PackedSequence(taeda.cat(blocks), sizes, sorted_indices, None)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The inverse of `pack_padded_sequence`: what a recurrent layer gives for packed sequences,
    padded.

    Args:
        sequence: the packed sequences.
        batch_first: whether the batch is to be the first dimension.
        padding_value: what stands behind the end of each.
        total_length: a length to pad to; None: that of the longest.

    Returns:
        the sequences ``(t, n, *)`` or ``(n, t, *)``, and their lengths ``(n,)``, in the order
            that was packed.

    Raises:
        ValueError: ``total_length`` is shorter than the longest.

    >>> packed = torch.nn.utils.rnn.pack_sequence([torch.tensor([4, 5, 6]), torch.tensor([1])])
    >>> torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    (tensor([[4, 5, 6],
            [1, 0, 0]]), tensor([3, 1]))
    """
    data, batch_sizes, _, unsorted_indices = sequence
    sizes = batch_sizes.tolist()
    length = len(sizes)
    if total_length is not None:
        if total_length < length:
            raise ValueError(
                "Expected total_length to be at least the length "
                "of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {length}"
            )
        length = total_length
    batch = sizes[0]
    # Row t, i of the result is row `step_start[t] + i` of the data, if there is one.
    steps = [data.new_full((batch - size, *data.shape[1:]), padding_value) for size in sizes]
    rows = []
    for part, filler in zip(data.split(sizes), steps):
        rows.append(part if filler.size(0) == 0 else taeda.cat([part, filler]))
    missing = length - len(rows)
    if missing:
        rows.extend([data.new_full((batch, *data.shape[1:]), padding_value)] * missing)
    output = taeda.stack(rows, 1 if batch_first else 0)
    lengths = taeda.tensor([sum(size > i for size in sizes) for i in range(batch)])
    if unsorted_indices is not None:
        dim = 0 if batch_first else 1
        return output.index_select(dim, unsorted_indices), lengths[unsorted_indices.cpu()]
    return output, lengths


def pad_sequence(
    sequences: Tensor | list[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stacks sequences of different lengths into one tensor, filled up with ``padding_value``.

    Args:
        sequences: tensors ``(length, *)`` that agree in all but the first size.
        batch_first: whether the result is ``(n, t, *)`` rather than ``(t, n, *)``.
        padding_value: what fills the shorter ones.
        padding_side: ``"right"`` fills behind the end, ``"left"`` before the start.

    Raises:
        RuntimeError: no sequences, sizes that do not fit, or another side.

    >>> sequences = [torch.tensor([1, 2, 3]), torch.tensor([4])]
    >>> torch.nn.utils.rnn.pad_sequence(sequences, batch_first=True, padding_value=-1)
    tensor([[ 1,  2,  3],
            [ 4, -1, -1]])
    """
    if isinstance(sequences, Tensor):
        sequences = list(sequences.unbind(0))
    elif not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    trailing = sequences[0].shape[1:]
    longest = max(s.size(0) for s in sequences)
    padded = []
    for s in sequences:
        if s.shape[1:] != trailing:
            raise RuntimeError(
                f"pad_sequence: expected all sequences to have trailing sizes {list(trailing)}, "
                f"but got {list(s.shape[1:])}"
            )
        if s.size(0) < longest:
            filler = s.new_full((longest - s.size(0), *trailing), padding_value)
            s = taeda.cat([s, filler] if padding_side == "right" else [filler, s])
        padded.append(s)
    return taeda.stack(padded, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """The inverse of `pad_sequence`: a list of the sequences without their padding, as views.

    Args:
        padded_sequences: ``(t, n, *)``, or ``(n, t, *)`` with ``batch_first``.
        lengths: how long each is.
        batch_first: whether the batch is the first dimension.

    >>> padded = torch.tensor([[1, 2, 3], [4, 0, 0]])
    >>> torch.nn.utils.rnn.unpad_sequence(padded, torch.tensor([3, 1]), batch_first=True)
    [tensor([1, 2, 3]), tensor([4])]
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [seq[:length] for seq, length in zip(padded_sequences.unbind(0), lengths.tolist())]


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences of different lengths: `pad_sequence`, then `pack_padded_sequence`.

    Args:
        sequences: tensors ``(length, *)`` that agree in all but the first size.
        enforce_sorted: whether they stand in decreasing order of length already; False sorts
            them.

    >>> torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])]).data
    tensor([1, 3, 2])
    """
    lengths = taeda.as_tensor([v.size(0) for v in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The inverse of `pack_sequence`: a list of the sequences, in the order that was packed.

    >>> packed = torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])])
    >>> torch.nn.utils.rnn.unpack_sequence(packed)
    [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
