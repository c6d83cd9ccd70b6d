"""Random numbers of data-loading workers: seeds, and states to go on from."""

from __future__ import annotations

import random
import sys
from array import array
from typing import Any, NamedTuple

import taeda

__all__ = [
    "RandomState",
    "Snapshots",
    "restore_worker",
    "seed_worker",
    "state_tensor",
    "taeda_state",
]

_MASK = 0xFFFFFFFF
_MT_BYTES = 625 * 4  # a Mersenne Twister: 624 words and an index


def _numpy_random() -> Any:
    return sys.modules.get("numpy.random")


def seed_worker(base_seed: int, worker_id: int) -> None:
    """Seeds ``random`` and taeda with ``base_seed + worker_id``, and NumPy by both numbers: no two
    workers of any loaders alike. NumPy that is not loaded is seeded when it is."""
    random.seed(base_seed + worker_id)
    taeda.manual_seed(base_seed + worker_id)
    if _numpy_random() is None:
        sys.meta_path.insert(0, _SeedAtImport(base_seed, worker_id))
    else:
        _seed_numpy(_numpy_random(), base_seed, worker_id)


def _seed_numpy(numpy_random: Any, base_seed: int, worker_id: int) -> None:
    entropy = [worker_id, base_seed & _MASK, base_seed >> 32, 0]
    numpy_random.seed(numpy_random.SeedSequence(entropy).generate_state(4))


def restore_worker(state: RandomState, base_seed: int, worker_id: int) -> None:
    """Sets a state of a worker; NumPy that it had not loaded yet is seeded as if it did so now."""
    state.restore()
    if state.numpy is None and _numpy_random() is not None:
        _seed_numpy(_numpy_random(), base_seed, worker_id)


class _SeedAtImport:
    """Finds ``numpy.random``, once, and has it seeded when it has run."""

    def __init__(self, *seed: int) -> None:
        self._seed = seed

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != "numpy.random":
            return None
        from importlib.machinery import PathFinder

        sys.meta_path.remove(self)  # type: ignore[arg-type]
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                run(module)
                _seed_numpy(module, *self._seed)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


class RandomState(NamedTuple):
    """The states of ``random``, taeda and NumPy, to be set in this or another process."""

    python: Any = None
    taeda: Any = None  # its bytes
    numpy: Any = None

    @classmethod
    def now(cls) -> RandomState:
        """The current ones."""
        return cls(random.getstate(), taeda_state(), _numpy_state())

    def restore(self) -> None:
        """Makes them the current ones."""
        if self.python is not None:
            random.setstate(self.python)
        if self.taeda is not None:
            taeda.set_rng_state(state_tensor(self.taeda))
        if self.numpy is not None:
            import numpy

            kind, keys, *rest = self.numpy
            words = numpy.frombuffer(keys, dtype=numpy.uint32) if kind == "MT19937" else keys
            numpy.random.set_state((kind, words, *rest))


def state_tensor(state: bytes) -> Any:
    """The bytes of a generator's state as ``set_state`` takes them."""
    return taeda.frombuffer(bytearray(state), dtype=taeda.uint8)


def taeda_state() -> bytes:
    """The bytes of the default generator's state."""
    return bytes(taeda.get_rng_state().untyped_storage())


def _numpy_state() -> Any:
    numpy_random = _numpy_random()
    if numpy_random is None:
        return None
    kind, keys, *rest = numpy_random.get_state()
    return (kind, keys.tobytes() if kind == "MT19937" else keys, *rest)


class Snapshots:
    """States after each batch, so that a loader can go on from any of them.

    A generator's state is compared with the last one as memory, and read, which takes 20 to 60 us,
    only where it has changed.
    """

    def __init__(self) -> None:
        self._seen: tuple = (None, None, None)
        self._last = RandomState()

    def take(self) -> RandomState | None:
        """The states; None where nothing was drawn since the last time."""
        seen = (_python_memory(), taeda_state(), _numpy_memory(self._last.numpy))
        if seen == self._seen:
            return None
        old = self._seen
        self._seen = seen
        self._last = RandomState(
            self._last.python if seen[0] == old[0] else random.getstate(),
            seen[1],
            self._last.numpy if seen[2] == old[2] else _numpy_state(),
        )
        return self._last


def _memory(address: int) -> bytes:
    import ctypes

    return ctypes.string_at(address, _MT_BYTES)


def _python_memory() -> Any:
    shared: Any = random._inst  # type: ignore[attr-defined]
    return _memory(id(shared) + object.__basicsize__), shared.gauss_next


def _numpy_memory(last: Any) -> Any:
    numpy_random = _numpy_random()
    if numpy_random is None:
        return None
    if last is None or last[0] != "MT19937" or last[3]:
        return object()  # a normal number that is kept for the next call may be used up unseen
    return _memory(numpy_random.mtrand._rand._bit_generator.ctypes.state_address)


def _layout_is_known() -> bool:
    index, *words = array("I", _python_memory()[0])
    return (*words, index) == random.getstate()[1]


if not _layout_is_known():  # another Python's: read it always

    def _python_memory() -> Any:
        return random.getstate()
