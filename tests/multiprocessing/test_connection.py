"""Connections do with bytes what multiprocessing's do."""

import multiprocessing
import threading

import pytest

from taeda import multiprocessing as mp

PIPES = [mp.Pipe, multiprocessing.Pipe]


@pytest.mark.parametrize("pipe", PIPES)
@pytest.mark.parametrize("nbytes", [0, 1, 3, 1 << 17])
def test_bytes_are_received_into_a_buffer(pipe, nbytes):
    one, other = pipe()
    sent = bytes(range(256)) * (nbytes // 256 + 1)
    buffer = bytearray(b"\xff" * (nbytes + 5))
    thread = _send(one, sent[:nbytes])
    assert other.recv_bytes_into(buffer, 2) == nbytes
    thread.join()
    assert buffer == b"\xff\xff" + sent[:nbytes] + b"\xff" * 3


def _send(connection, content):
    thread = threading.Thread(target=connection.send_bytes, args=(content,))
    thread.start()
    return thread


@pytest.mark.parametrize("pipe", PIPES)
def test_a_buffer_that_is_too_short_is_told_with_the_message(pipe):
    one, other = pipe()
    one.send_bytes(b"abcdefg")
    buffer = bytearray(3)
    with pytest.raises(multiprocessing.BufferTooShort) as caught:
        other.recv_bytes_into(buffer)
    assert caught.value.args == (b"abcdefg",) and buffer == bytes(3)
