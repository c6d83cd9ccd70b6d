"""Connections that send tensors: packets over a socket pair, segments' descriptors beside them.

They are multiprocessing's connections in everything else. A message is one packet or several, each
with a header that says which message it is of: the system takes a packet as a whole, so that
who is killed while it sends or receives leaves the others no half of one, and they can tell a
message whose beginning or rest is missing from the next. In front of a message are the names of the
shared memory in it: who has taken it out of the socket says so, and may unpickle it whenever it
wants, though the socket is gone by then. A descriptor arrives with the packet it
was sent with, whether or not the sender still lives, and becomes a mapping at once, so that none
piles up on either side.
"""

from __future__ import annotations

import array
import errno
import io
import itertools
import multiprocessing.connection
import os
import select
import socket
import struct
import time
from collections.abc import Sequence
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any

from taeda import _C

from .reductions import NAME_BYTES, Message, note_received

__all__ = ["Connection", "Pipe"]

_MOST_DESCRIPTORS = 253  # that one call may send
_INT_BYTES = array.array("i").itemsize
# Of a packet: the message's number and bytes, how many of those are names of shared memory in front
# of the others, and these bytes' offset.
_HEADER = struct.Struct("=QQQQ")
_ONLY_DESCRIPTORS = (1 << 64) - 1  # in place of a message's bytes: they did not fit beside it
_PACKET_BYTES = 1 << 16
_LEAST_UNREAD = 256  # names that are remembered before it is asked which were received
_SECONDS_FOR_DESCRIPTORS = 0.2
_SECONDS_BETWEEN_LOOKS = 0.02  # at who sends the rest of a message

_numbers = itertools.count()

_StandardConnection: Any = multiprocessing.connection.Connection


def _new_number() -> int:
    """Of a message; those of processes that send to the same connection differ."""
    return os.getpid() << 32 | next(_numbers) & 0xFFFFFFFF


class Connection(_StandardConnection):
    """One end of a socket pair, whose descriptor it owns; ``peer`` is the inode of the other end,
    0 where that is not known."""

    writers: Any = None  # a lock that who sends to this end has, where several may

    def __init__(
        self, handle: int, readable: bool = True, writable: bool = True, peer: int = 0
    ) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, handle)
        self._socket.setblocking(True)  # whatever the program's default timeout is
        buffered = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
        self._most_bytes = min(_PACKET_BYTES, buffered // 2)  # of a packet
        self.peer = peer
        self._network = -1  # the peer's namespace; 0: not this process's, -1: not asked yet
        self._sent: set[int] = set()  # descriptors that went this way, or waited in vain
        self._packet = bytearray()
        self._unread: list[bytes] = []  # names that were sent and may not be received yet
        self._most_unread = _LEAST_UNREAD
        self.number = -1  # of the last message that was received
        super().__init__(handle, readable, writable)

    def _close(self, _close: Any = os.close) -> None:
        if self._unread and self._is_abandoned():
            for name in self._unread:
                _C._drop_shared(name)
        self._unread.clear()
        _close(self._socket.detach())

    def _is_abandoned(self) -> bool:
        """Whether no process has the other end any more: what it has not received it never will."""
        poller = select.poll()
        poller.register(self._handle, 0)
        return any(event & select.POLLHUP for _, event in poller.poll(0))

    def _note_unread(self, names: list[bytes]) -> None:
        """Remembers what a message names, until it has been received."""
        if len(self._unread) >= self._most_unread:
            self._unread = list(filter(_C._is_shared_under_way, self._unread))
            self._most_unread = max(_LEAST_UNREAD, 2 * len(self._unread))
        self._unread += names

    # --- sending ---

    def send(self, obj: Any) -> None:
        """Sends an object; its tensors share their memory with those that are received."""
        self._check_closed()
        self._check_writable()
        self.send_message(Message(obj))

    def send_message(self, message: Message, number: int | None = None) -> None:
        """Sends what was pickled before, under a number that the receiver sees."""
        try:
            descriptors = self._prepare(message) if message.names else []
            while len(descriptors) > _MOST_DESCRIPTORS:
                header = _HEADER.pack(0, _ONLY_DESCRIPTORS, 0, 0)
                self._send_beside([header], descriptors[:_MOST_DESCRIPTORS], 0)
                descriptors = descriptors[_MOST_DESCRIPTORS:]
            self._send_packets(message.data, descriptors, number=number, names=message.names)
        except BaseException:
            message.drop()
            raise
        self._note_unread(message.names)

    def try_send_message(self, message: Message, number: int | None = None) -> bool:
        """Sends a small message unless it would have to wait."""
        descriptors = self._prepare(message) if message.names else []
        size = len(message.data) + len(message.names) * NAME_BYTES
        if size > self._most_bytes or len(descriptors) > _MOST_DESCRIPTORS:
            return False
        try:
            self._send_packets(
                message.data, descriptors, socket.MSG_DONTWAIT, number, message.names
            )
        except OSError:
            return False  # the thread that may wait meets it again and reports it
        self._note_unread(message.names)
        return True

    def _prepare(self, message: Message) -> list[int]:
        """Says where the message will be; the descriptors that go with it."""
        if self._network < 0:
            self._network = _C._find_socket(self.peer)
        message.set_location(self.peer if self._network else 0, self._network)
        return message.descriptors()

    def _send_packets(
        self,
        data: Any,
        descriptors: list[int],
        flags: int = 0,
        number: int | None = None,
        names: Sequence[bytes] = (),
    ) -> None:
        front = b"".join(names)
        number, n = _new_number() if number is None else number, len(front)
        size = n + len(data)
        for begin in range(0, size or 1, self._most_bytes):
            end = begin + self._most_bytes
            parts = [_HEADER.pack(number, size, n, begin)]
            if begin < n:
                parts.append(front[begin:end])
            parts.append(data[max(begin - n, 0) : max(end - n, 0)])
            self._send_beside(parts, descriptors, flags)
            descriptors = []

    def _send_bytes(self, buf: Any) -> None:
        self._send_packets(memoryview(buf).cast("B"), [])

    def _send_beside(self, buffers: list[Any], descriptors: list[int], flags: int) -> None:
        """sendmsg, which the system refuses while too many descriptors are under way. The message
        then goes without, and who receives it asks the segments' creators; only before a segment
        goes this way for the first time it waits a little."""
        end = time.monotonic() + _SECONDS_FOR_DESCRIPTORS if descriptors else 0
        while True:
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
            try:
                self._socket.sendmsg(
                    buffers, rights if descriptors else [], flags | socket.MSG_NOSIGNAL
                )
                self._sent.update(descriptors)
                return
            except ConnectionResetError as error:  # it was closed before it had read everything
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)) from error
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

    # --- receiving ---

    def _recv_bytes(self, maxsize: int | None = None) -> io.BytesIO | None:
        while (message := self.receive()) is None:
            pass
        if maxsize is not None and len(message) > maxsize:
            return None
        content = io.BytesIO(message)
        content.seek(0, io.SEEK_END)  # recv_bytes_into() asks where it ends
        return content

    def receive(self) -> bytes | bytearray | None:
        """The next message; None when its sender was killed before it had sent all of it. Packets
        of a message whose beginning somebody else received, who was killed, are dropped."""
        whole, number, size, names = bytearray(), -1, 0, 0
        while True:
            if number >= 0 and not self._will_go_on():
                return None
            of, total, n, offset, content = self._receive_packet()
            if total == _ONLY_DESCRIPTORS:
                continue
            if offset == 0:
                if len(content) == total:
                    self.number = of
                    note_received(bytes(content[:n]))
                    return bytes(content[n:])
                whole, number, size, names = bytearray(content), of, total, n
            elif of == number and offset == len(whole):
                whole += content
                if len(whole) == size:
                    self.number = of
                    note_received(bytes(whole[:names]))
                    del whole[:names]
                    return whole

    def _will_go_on(self) -> bool:
        """Waits for a packet; False when nobody is there to send the rest of a message."""
        if self.writers is None:
            return True
        while not self.poll(_SECONDS_BETWEEN_LOOKS):
            if not self.writers.is_held():
                return self.poll(0)
        return True

    def peek_number(self) -> int:
        """Waits for the next message and says its number."""
        while True:
            header = self._socket.recv(_HEADER.size, socket.MSG_PEEK)
            if not header:
                raise EOFError
            number, total, _, offset = _HEADER.unpack(header)
            if offset == 0 and total != _ONLY_DESCRIPTORS:
                return number
            self._receive_packet()  # in front of it, or what a killed process left of another

    def next_number(self) -> int | None:
        """The number of the message of which the next packet is, None where there is no packet; 0
        where it is of none. Takes nothing, and does not wait."""
        try:
            header = self._socket.recv(_HEADER.size, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        if not header:
            raise EOFError
        return _HEADER.unpack(header)[0]

    def _receive_packet(self) -> tuple[int, int, int, int, memoryview]:
        """A packet's header, and its bytes, which hold until the next call. Maps the segments
        whose descriptors come with them."""
        if not self._packet:
            self._packet = bytearray(_HEADER.size + _PACKET_BYTES)
        space = socket.CMSG_SPACE(_MOST_DESCRIPTORS * _INT_BYTES)
        n, rights, _, _ = self._socket.recvmsg_into([self._packet], space, socket.MSG_CMSG_CLOEXEC)
        for level, kind, content in rights:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                _map_segments(content)
        if n == 0:
            raise EOFError
        return *_HEADER.unpack_from(self._packet), memoryview(self._packet)[_HEADER.size : n]


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
    first, second = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    inodes = [os.fstat(end.fileno()).st_ino for end in (first, second)]
    return (
        Connection(first.detach(), writable=duplex, peer=inodes[1]),
        Connection(second.detach(), readable=duplex, peer=inodes[0]),
    )


def _rebuild_connection(handle: Any, readable: bool, writable: bool, peer: int) -> Connection:
    return Connection(handle.detach(), readable, writable, peer)


def _reduce_connection(connection: Connection) -> tuple:
    handle = DupFd(connection.fileno())
    args = (handle, connection.readable, connection.writable, connection.peer)
    return _rebuild_connection, args


ForkingPickler.register(Connection, _reduce_connection)
