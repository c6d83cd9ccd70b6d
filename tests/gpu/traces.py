"""Three traces of allocations, replayed: the allocator reserves no more memory than PyTorch's.

A trace is what a program asks of the allocator, in order, made from a seed and the shapes of a
model: training a small residual network whose last batch is smaller; training a language model on
sequences of changing length; a server that answers requests of changing number and length on two
streams, with caches that grow. On a card with PyTorch its own allocator replays them, too;
elsewhere a model of its algorithm does (`Model`).
"""

from __future__ import annotations

import bisect
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.gpu.rows import Row, Settings, checked

import taeda

MIB = 1 << 20


@dataclass
class Trace:
    """(block, bytes, stream) of each allocation, (block, 0, 0) of each release."""

    events: list[tuple[int, int, int]] = field(default_factory=list)
    sizes: dict[int, int] = field(default_factory=dict)  # of what is in use
    count: int = 0

    def take(self, bytes: int, stream: int = 0) -> int:
        self.count += 1
        self.sizes[self.count] = bytes
        self.events.append((self.count, bytes, stream))
        return self.count

    def give(self, *blocks: int) -> None:
        for block in blocks:
            del self.sizes[block]
            self.events.append((block, 0, 0))

    def brief(self, bytes: int, stream: int = 0) -> None:
        """Scratch of one operator."""
        self.give(self.take(bytes, stream))


def backward(trace: Trace, kept: list[list[int]], weights: list[int]) -> list[int]:
    """Goes back over what each layer kept; the gradients of the weights stay."""
    gradients, flow = [], trace.take(trace.sizes[kept[-1][-1]])
    for layer, weight in zip(reversed(kept), reversed(weights)):
        trace.brief(weight * 2)
        below = trace.take(trace.sizes[layer[0]])
        gradients.append(trace.take(weight))
        trace.give(flow, *layer)
        flow = below
    trace.give(flow)
    return gradients


def residual_network(seed: int = 0) -> Trace:
    trace, draw = Trace(), random.Random(seed)
    shapes = [(16 << stage, 32 >> stage) for stage in range(3) for _ in range(4)]
    weights = [9 * channels * channels * 4 for channels, _ in shapes]
    for weight in weights:
        trace.take(weight)
    state: list[int] = []
    for step in range(12):
        batch = 128 if step % 4 != 3 else 37
        image = trace.take(batch * 3 * 32 * 32 * 4)
        kept = []
        for channels, size in shapes:
            activation = batch * channels * size * size * 4
            trace.brief(draw.choice((0, 1, 5)) * MIB + 4096)  # what the convolution asks for
            kept.append([trace.take(activation) for _ in range(3)])
            trace.give(trace.take(channels * 8))
        gradients = backward(trace, kept, weights)
        if not state:
            state = [trace.take(weight) for weight in weights]
        trace.give(*gradients, image)
    return trace


def language_model(seed: int = 1) -> Trace:
    trace, draw = Trace(), random.Random(seed)
    width, layers, words, batch = 512, 6, 8000, 8
    weights = [12 * width * width * 2] * layers
    parameters = [trace.take(w) for w in [*weights, words * width * 2]]
    moments = [trace.take(2 * trace.sizes[p]) for p in parameters]
    for _ in range(15):
        length = draw.randrange(32, 513)
        tokens = batch * length
        kept = []
        for _ in range(layers):
            row = tokens * width * 2
            scores = trace.take(batch * 8 * length * length * 2)
            kept.append([trace.take(n * row) for n in (1, 3, 1, 4, 4)] + [scores])
            trace.brief(row)
        logits = trace.take(tokens * words * 2)
        losses = trace.take(tokens * 4)
        trace.give(trace.take(tokens * words * 4), losses, logits)
        trace.give(*backward(trace, kept, weights))
    assert len(moments) == len(parameters)
    return trace


def server(seed: int = 2) -> Trace:
    trace, draw = Trace(), random.Random(seed)
    for _ in range(12):
        trace.take(6 * MIB)
    running: list[list[int]] = []  # caches of each batch of requests, by layer
    for _ in range(400):
        stream = draw.randrange(2)
        if len(running) < 6 and draw.random() < 0.5:
            batch, length = draw.randrange(1, 17), draw.randrange(16, 700)
            running.append([trace.take(batch * length * 1024, stream) for _ in range(8)])
        for caches in running:
            row = draw.randrange(1, 17) * 4096
            trace.brief(row, stream)
            hidden = [trace.take(row * n, stream) for n in (1, 4, 1)]
            trace.give(*hidden)
            if draw.random() < 0.2:  # they grow: a larger copy of each
                for i, old in enumerate(caches):
                    if trace.sizes[old] > 12 * MIB:
                        break
                    caches[i] = trace.take(trace.sizes[old] * 5 // 4, stream)
                    trace.give(old)
        if running and draw.random() < 0.4:
            trace.give(*running.pop(draw.randrange(len(running))))
    return trace


TRACES: dict[str, Callable[[], Trace]] = {
    "training a residual network": residual_network,
    "training a language model": language_model,
    "a server": server,
}


@dataclass(eq=False)
class Block:
    address: int
    bytes: int
    free: bool = True
    before: Block | None = None
    after: Block | None = None

    def key(self) -> tuple[int, int]:
        return self.bytes, self.address


class Model:
    """PyTorch's algorithm, without limits on memory: best fit in pools by stream and by size.

    Requests are rounded to 512 bytes. Those of up to 1 MiB share segments of 2 MiB, those below 10
    MiB segments of 20 MiB, larger ones have a segment of their size in steps of 2 MiB. What is left
    of a block is cut off if it is 512 bytes and more (small), or above 1 MiB.
    """

    def __init__(self) -> None:
        self.reserved = 0
        self.pools: dict[tuple[int, bool], list[Block]] = {}
        self.used: dict[int, tuple[Block, list[Block]]] = {}

    def allocate(self, block: int, bytes: int, stream: int) -> None:
        bytes = max(512, -(-bytes // 512) * 512)
        small = bytes <= MIB
        pool = self.pools.setdefault((stream, small), [])
        at = bisect.bisect_left(pool, (bytes, 0), key=Block.key)
        found = pool.pop(at) if at < len(pool) else self._segment(bytes)
        rest = found.bytes - bytes
        if rest >= 512 if small else rest > MIB:
            tail = Block(found.address + bytes, rest, True, found, found.after)
            if found.after:
                found.after.before = tail
            found.bytes, found.after = bytes, tail
            bisect.insort(pool, tail, key=Block.key)
        found.free = False
        self.used[block] = found, pool

    def _segment(self, bytes: int) -> Block:
        if bytes <= MIB:
            size = 2 * MIB
        elif bytes < 10 * MIB:
            size = 20 * MIB
        else:
            size = -(-bytes // (2 * MIB)) * 2 * MIB
        self.reserved += size
        return Block(self.reserved << 8, size)

    def release(self, block: int) -> None:
        found, pool = self.used.pop(block)
        found.free = True
        for near in (found.before, found.after):
            if near and near.free:
                pool.remove(near)
                found = self._joined(*sorted((found, near), key=lambda b: b.address))
        bisect.insort(pool, found, key=Block.key)

    @staticmethod
    def _joined(first: Block, second: Block) -> Block:
        first.bytes, first.after = first.bytes + second.bytes, second.after
        if second.after:
            second.after.before = first
        return first


def reserved_by_model(trace: Trace) -> int:
    model = Model()
    for block, bytes, stream in trace.events:
        if bytes:
            model.allocate(block, bytes, stream)
        else:
            model.release(block)
    return model.reserved


def reserved_by(framework: Any, trace: Trace) -> int:
    """What a framework's allocator took from the device at most, for streams that nobody uses."""
    framework.cuda.synchronize()
    framework.cuda.empty_cache()
    before = framework.cuda.memory_reserved()
    framework.cuda.reset_peak_memory_stats()
    streams = [framework.cuda.Stream() for _ in range(2)]
    if framework is taeda:  # caching_allocator_delete searches all segments
        identities = [s.stream_id for s in streams]
        release = taeda._C._cuda_release
        allocate = lambda bytes, i: taeda._C._cuda_allocate(bytes, 0, identities[i])  # noqa: E731
        free = lambda address: release(address, 0)  # noqa: E731
    else:
        allocate = lambda n, i: framework.cuda.caching_allocator_alloc(n, 0, streams[i])  # noqa: E731
        free = framework.cuda.caching_allocator_delete
    blocks: dict[int, int] = {}
    for block, bytes, stream in trace.events:
        if bytes:
            blocks[block] = allocate(bytes, stream)
        else:
            free(blocks.pop(block))
    peak = framework.cuda.max_memory_reserved() - before
    for address in blocks.values():
        free(address)
    framework.cuda.empty_cache()
    return peak


def compare(trace: Trace, rival: Any) -> str:
    """With PyTorch's allocator where `rival` is PyTorch on a card, else with the model."""
    ours = reserved_by(taeda, trace)
    theirs = reserved_by(rival, trace) if rival else reserved_by_model(trace)
    whose = "PyTorch" if rival else "the model of PyTorch's algorithm"
    text = f"{len(trace.events)} events: {ours / MIB:.0f} MiB, {whose} {theirs / MIB:.0f} MiB"
    assert ours <= theirs, text
    return text


def row_name(trace: str) -> str:
    return f"memory reserved by {trace}"


def names(settings: Settings) -> list[str]:
    return [row_name(trace) for trace in TRACES]


def rows(settings: Settings) -> Iterator[Row]:
    rival = settings.torch if settings.rival == "cuda" else None
    for name, make in TRACES.items():
        yield checked(row_name(name), lambda m=make: compare(m(), rival))
