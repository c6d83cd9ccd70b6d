"""How tensors and storages are pickled for other processes: by the name of shared memory.

The storage moves to shared memory; the pickle holds its name (``UntypedStorage._send``), which
keeps the memory until the message is received. The receiver must map the segment that the memory
is a block of. This package's connections send the segments' descriptors beside the pickle
(``Message``); any other way that multiprocessing's pickler is used, the receiver opens the
descriptor of the sender, or that of the segment's creator, in /proc.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import sys
import warnings
from multiprocessing import context
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any

import taeda
from taeda import _C, Tensor, UntypedStorage
from taeda._tensor import _rebuild_meta_tensor, _rebuild_tensor
from taeda._tensor_state import get_tensor_metadata, refuse_history, set_state, state_of
from taeda._utils import _rebuild_sparse_tensor
from taeda.storage import TypedStorage

__all__ = ["ForkingPickler", "Message", "init_reductions", "reduce_storage", "reduce_tensor"]

_SEGMENT_BYTES = 16  # of a name: its first part, the segment's id
NAME_BYTES = 48
_WITH_SENDER, _RECEIVED = -1, -2  # in place of a socket
_OWN_MODULES = ("taeda.multiprocessing.", "multiprocessing.")


class Message:
    """A pickle, and the storages that it names; they live as long as it.

    Args:
        obj: what is pickled, now: later changes of its lists and attributes are not sent, later
            writes to its tensors are seen by the receiver.
        head: bytes in front of the pickle.
    """

    __slots__ = ("data", "names", "storages")

    def __init__(self, obj: Any, head: bytes = b"") -> None:
        buffer = io.BytesIO()
        buffer.write(head)
        pickler = _MessagePickler(buffer, pickle.HIGHEST_PROTOCOL)
        self.names: list[bytes] = pickler.names
        try:
            pickler.dump(obj)
        except BaseException:
            self.drop()
            raise
        self.data = buffer.getbuffer()
        if self.names:
            _C._locate_shared(self.names, _WITH_SENDER, 0)
        self.storages = pickler.storages

    def descriptors(self) -> list[int]:
        """One of each segment, where this process has it."""
        names = {name[:_SEGMENT_BYTES]: name for name in self.names}
        found = map(_C._shared_descriptor, names.values())
        return [descriptor for descriptor in found if descriptor >= 0]

    def set_location(self, socket: int, network: int) -> None:
        """Says into which socket it will go, by its inode (0: not known) and namespace: what is
        lost there will not keep its memory."""
        _C._locate_shared(self.names, socket, network)

    def drop(self) -> None:
        """Lets go of the memory of a message that will not be sent."""
        for name in self.names:
            _C._drop_shared(name)
        self.names.clear()


def note_received(names: bytes) -> None:
    """The message with these names, one after the other, is out of its socket: only who unpickles
    it takes it, however long after."""
    for name in (names[i : i + NAME_BYTES] for i in range(0, len(names), NAME_BYTES)):
        if not _C._is_shared_mapped(name):
            with contextlib.suppress(RuntimeError):  # which unpickling it will raise
                _map_segment(name, [_C._shared_creator(name)])
        _C._locate_shared([name], _RECEIVED, 0)


class _MessagePickler(ForkingPickler):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.names: list[bytes] = []
        self.storages: list[Any] = []

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if kind is UntypedStorage:
            return self._reduce_storage(obj)
        if kind is Tensor or (isinstance(obj, Tensor) and _is_known(kind, obj)):
            return reduce_tensor(obj)
        return NotImplemented

    def _reduce_storage(self, storage: Any) -> tuple:
        if storage.device.type == "meta":
            return UntypedStorage, (storage.nbytes(), "meta")
        storage = _shared(storage)
        name = storage._send()
        self.names.append(name)
        self.storages.append(storage)
        return _rebuild_storage, (name,)


def _is_known(kind: type, tensor: Tensor) -> bool:
    """Whether a subclass leaves it to Tensor how it is pickled, and has memory of its own."""
    from taeda._portable import is_wrapper

    return kind.__reduce_ex__ is Tensor.__reduce_ex__ and not is_wrapper(tensor)


def _shared(storage: Any, is_written: bool = False) -> Any:
    """The storage in shared memory; a copy, with a warning, of one that cannot move because others
    know its address. ``is_written`` where other threads may be writing to it."""
    try:
        return storage._share_memory_in_place() if is_written else storage.share_memory_()
    except taeda.OutOfMemoryError:
        raise
    except RuntimeError:
        if storage.resizable() or storage.device.type != "cpu":
            raise
    _warn_of_copy()
    copy = UntypedStorage._new_shared(storage.nbytes())
    with memoryview(copy) as target, memoryview(storage) as source:
        target[:] = source
    return copy


def _warn_of_copy() -> None:
    warnings.warn(
        "torch.multiprocessing: sends a copy of a tensor whose memory cannot move to shared memory "
        "since others know its address, such as an array that .numpy() gave: later writes to the "
        "tensor will not be seen by the receiver. Call share_memory_() before .numpy(), or send a "
        "clone()",
        UserWarning,
        stacklevel=_level_of_caller(),
    )


def _level_of_caller() -> int:
    """How many calls ago, seen from who asks, the program called multiprocessing."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(_OWN_MODULES):
        frame = frame.f_back
        level += 1
    return level


def _rebuild_storage(name: bytes, *sources: Any) -> Any:
    """The storage of this name. Sources are where to find its segment's descriptor: an inherited
    one, or a process and a number."""
    if not _C._is_shared_mapped(name):
        _map_segment(name, [*sources, _C._shared_creator(name)])
    return UntypedStorage._receive(name)


def _map_segment(name: bytes, sources: list[Any]) -> None:
    reason: Any = None
    for source in sources:
        try:
            _C._map_segment(_open_in(*source) if isinstance(source, tuple) else source.detach())
        except (OSError, RuntimeError) as error:
            reason = error
        if _C._is_shared_mapped(name):
            return
    raise RuntimeError(
        f"torch.multiprocessing: cannot map the shared memory of process {sources[-1][0]}, which "
        f"a received tensor is in: {reason or 'it has ended'}"
    ) from reason


def _open_in(pid: int, descriptor: int) -> int:
    path = f"/proc/{pid}/fd/{descriptor}"
    if not os.readlink(path).startswith("/memfd:taeda-"):
        raise RuntimeError(f"descriptor {descriptor} of process {pid} is no shared memory any more")
    return os.open(path, os.O_RDWR | os.O_CLOEXEC)


def reduce_storage(storage: Any) -> tuple:
    """Moves the storage to shared memory and names it, for multiprocessing's own pickler."""
    if storage.device.type == "meta":
        return UntypedStorage, (storage.nbytes(), "meta")
    storage = _shared(storage, is_written=True)  # by whom put() has returned to
    name = storage._send()
    descriptor = _C._shared_descriptor(name)
    popen: Any = context.get_spawning_popen()
    if descriptor < 0:
        return _rebuild_storage, (name,)
    if popen is None:
        return _rebuild_storage, (name, (os.getpid(), descriptor))
    # The arguments of a process that is being started, which inherits each descriptor once.
    inherited = popen.__dict__.setdefault("_taeda_segments", {})
    if descriptor not in inherited:
        inherited[descriptor] = DupFd(descriptor)
    return _rebuild_storage, (name, inherited[descriptor])


def reduce_tensor(tensor: Tensor) -> tuple:
    """A leaf by its storage and layout; RuntimeError for tensors with a history."""
    refuse_history(tensor)
    kind = type(tensor)
    if tensor.layout is not taeda.strided:
        return _reduce_sparse(tensor)
    if tensor.is_meta:
        layout = (tensor.dtype, tuple(tensor.size()), tensor.stride(), tensor.requires_grad)
        return _rebuild_meta_tensor, layout
    args = (
        kind,
        tensor.untyped_storage(),
        tensor.dtype,
        tensor.storage_offset(),
        tuple(tensor.size()),
        tensor.stride(),
        tensor.requires_grad,
    )
    if kind is Tensor or kind is taeda.nn.Parameter:
        return _rebuild_tensor, (*args, tensor.__dict__ or None, get_tensor_metadata(tensor))
    return _rebuild_subclass, ((*args, None, get_tensor_metadata(tensor)), state_of(tensor))


def _rebuild_subclass(args: tuple, state: Any) -> Tensor:
    tensor = _rebuild_tensor(*args)
    set_state(tensor, state)
    return tensor


def _reduce_sparse(tensor: Tensor) -> tuple:
    from taeda._portable import sparse_parts

    return _rebuild_sparse, (sparse_parts(tensor.detach()), tensor.requires_grad)


def _rebuild_sparse(parts: tuple, requires_grad: bool) -> Tensor:
    return _rebuild_sparse_tensor(*parts).requires_grad_(requires_grad)


def rebuild_typed_storage(storage: UntypedStorage, dtype: taeda.dtype) -> TypedStorage:
    """A storage as one of a dtype."""
    return TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)


def reduce_typed_storage(storage: TypedStorage) -> tuple:
    """How a typed storage is pickled."""
    return rebuild_typed_storage, (storage._untyped_storage, storage._dtype)


def init_reductions() -> None:
    """Tells multiprocessing's pickler."""
    # Loaded now: a thread may pickle while this process forks, and a child must not find the
    # module half imported.
    with contextlib.suppress(ImportError):
        import multiprocessing.resource_sharer  # noqa: F401
    ForkingPickler.register(UntypedStorage, reduce_storage)
    ForkingPickler.register(TypedStorage, reduce_typed_storage)
    ForkingPickler.register(Tensor, reduce_tensor)
    ForkingPickler.register(taeda.nn.Parameter, reduce_tensor)
    ForkingPickler.register(taeda.nn.Buffer, reduce_tensor)


def __getattr__(name: str) -> Any:
    from . import _names

    if name in _names.__all__:
        return getattr(_names, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
