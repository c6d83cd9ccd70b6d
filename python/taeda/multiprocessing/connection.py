"""Connections that send tensors: messages over a socket pair, segments' descriptors beside them.

They are multiprocessing's connections in everything else, its format of messages included. A
descriptor arrives with the bytes it was sent with, whether or not the sender still lives, and
becomes a mapping at once, so that none piles up on either side.
"""

from __future__ import annotations

import array
import errno
import io
import multiprocessing.connection
import os
import socket
import struct
import time
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any

from taeda import _C

from .reductions import Message

__all__ = ["Connection", "Pipe"]

_MOST_DESCRIPTORS = 253  # that one call may send
_INT_BYTES = array.array("i").itemsize
_MORE_DESCRIPTORS = -2  # in place of a length: a message's descriptors did not fit beside it
_SECONDS_FOR_ROOM = 0.2
_MOST_ATOMIC = 1 << 14  # bytes that a socket takes as a whole or not at all


_StandardConnection: Any = multiprocessing.connection.Connection


class Connection(_StandardConnection):
    """One end of a socket pair, whose descriptor it owns."""

    def __init__(self, handle: int, readable: bool = True, writable: bool = True) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, handle)
        self._socket.setblocking(True)  # whatever the program's default timeout is
        self._sent: set[int] = set()  # descriptors that went this way, or waited in vain
        super().__init__(handle, readable, writable)

    def _close(self, _close: Any = os.close) -> None:
        _close(self._socket.detach())

    # --- sending ---

    def send(self, obj: Any) -> None:
        """Sends an object; its tensors share their memory with those that are received."""
        self._check_closed()
        self._check_writable()
        self.send_message(Message(obj))

    def send_message(self, message: Message) -> None:
        """Sends what was pickled before."""
        try:
            data = self._send_start(message, 0)
            while data:
                data = data[self._socket.send(data, socket.MSG_NOSIGNAL) :]
        except BaseException:
            message.drop()
            raise

    def try_send_message(self, message: Message) -> bool:
        """Sends a small message unless it would have to wait."""
        if len(message.data) > _MOST_ATOMIC:
            return False
        try:
            rest = self._send_start(message, socket.MSG_DONTWAIT)
        except OSError:
            return False  # the thread that may wait meets it again and reports it
        while rest:
            rest = rest[self._socket.send(rest, socket.MSG_NOSIGNAL) :]
        return True

    def _send_start(self, message: Message, flags: int) -> memoryview:
        """Sends the length, the descriptors and some of the bytes; returns the others."""
        data = message.data
        header = _header(len(data))
        descriptors = message.descriptors() if message.names else []
        while len(descriptors) > _MOST_DESCRIPTORS:
            more = struct.pack("!i", _MORE_DESCRIPTORS)
            self._send_beside([more], descriptors[:_MOST_DESCRIPTORS], 0)
            descriptors, flags = descriptors[_MOST_DESCRIPTORS:], 0
        sent = self._send_beside([header, data], descriptors, flags) - len(header)
        if sent < 0:
            rest = memoryview(header)[sent:]
            while rest:
                rest = rest[self._socket.send(rest, socket.MSG_NOSIGNAL) :]
        return data[max(sent, 0) :]

    def _send_beside(self, buffers: list[Any], descriptors: list[int], flags: int) -> int:
        """sendmsg, which the system refuses while too many descriptors are under way. The message
        then goes without, and who receives it asks the segments' creators; only before a segment
        goes this way for the first time it waits a little."""
        end = time.monotonic() + _SECONDS_FOR_ROOM
        while True:
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
            try:
                sent = self._socket.sendmsg(
                    buffers, rights if descriptors else [], flags | socket.MSG_NOSIGNAL
                )
                self._sent.update(descriptors)
                return sent
            except OSError as error:
                if error.errno != errno.ETOOMANYREFS or not descriptors:
                    raise
            if self._sent.issuperset(descriptors) or time.monotonic() >= end:
                self._sent.update(descriptors)
                descriptors = []
            elif flags:
                raise BlockingIOError
            else:
                time.sleep(0.001)

    def _send(self, buf: Any, write: Any = None) -> None:
        rest = memoryview(buf)
        while rest:
            rest = rest[self._socket.send(rest, socket.MSG_NOSIGNAL) :]

    # --- receiving ---

    def _recv_bytes(self, maxsize: int | None = None) -> io.BytesIO | None:
        while True:
            (size,) = struct.unpack("!i", self._receive_start())
            if size != _MORE_DESCRIPTORS:
                break
        if size == -1:
            (size,) = struct.unpack("!Q", self._recv(8).getvalue())
        if maxsize is not None and size > maxsize:
            return None
        return self._recv(size)

    def _receive_start(self) -> bytes:
        """The first four bytes of a message. Maps the segments whose descriptors come with them."""
        room = socket.CMSG_SPACE(_MOST_DESCRIPTORS * _INT_BYTES)
        flags = socket.MSG_CMSG_CLOEXEC
        start, rights, _, _ = self._socket.recvmsg(4, room, flags)
        for level, kind, content in rights:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                _map_segments(content)
        if not start:
            raise EOFError
        while len(start) < 4:
            start += self._recv(4 - len(start)).getvalue()
        return start


def _header(length: int) -> bytes:
    """A message's length as multiprocessing writes it."""
    if length > 0x7FFFFFFF:
        return struct.pack("!iQ", -1, length)
    return struct.pack("!i", length)


def _map_segments(content: bytes) -> None:
    descriptors = array.array("i")
    descriptors.frombytes(content[: len(content) // _INT_BYTES * _INT_BYTES])
    failed: Exception | None = None
    for descriptor in descriptors:
        try:
            _C._map_segment(descriptor)
        except RuntimeError as error:
            failed = error  # the others are mapped, or closed, all the same
    if failed:
        raise failed


def Pipe(duplex: bool = True) -> tuple[Connection, Connection]:
    """Two connections: what one sends the other receives; without ``duplex`` the first only
    receives and the second only sends.

    >>> import taeda as torch
    >>> ours, theirs = torch.multiprocessing.Pipe()
    >>> x = torch.zeros(3)
    >>> ours.send(x)
    >>> theirs.recv().fill_(7) is not None and x
    tensor([7., 7., 7.])
    """
    first, second = socket.socketpair()
    return (
        Connection(first.detach(), writable=duplex),
        Connection(second.detach(), readable=duplex),
    )


def _rebuild_connection(handle: Any, readable: bool, writable: bool) -> Connection:
    return Connection(handle.detach(), readable, writable)


def _reduce_connection(connection: Connection) -> tuple:
    handle = DupFd(connection.fileno())
    return _rebuild_connection, (handle, connection.readable, connection.writable)


ForkingPickler.register(Connection, _reduce_connection)
