"""Processes that share tensors are killed at random; the memory of the others is never handed out
twice, and that of the dead comes back."""

import random
import signal
import time

import pytest

import taeda as torch
from taeda import _C
from taeda import multiprocessing as mp

SECONDS = 120
SIZES = [1, 16, 300, 5000, 40_000, 300_000]  # elements


def check(tensors):
    for value, x in tensors:
        assert x.eq(value).all(), f"memory in use was handed out again: {value} became {x.unique()}"


def work(connection, seed):
    """Keeps some of what it gets, makes tensors of its own, sends both back; checks them all."""
    chance = random.Random(seed)
    kept = []
    while True:
        try:
            received = connection.recv()
        except EOFError:
            return
        kept.extend(received)
        check(kept)
        chance.shuffle(kept)
        del kept[8:]
        made = [tensor(chance) for _ in range(2)]
        connection.send(chance.sample(kept, len(kept) // 2) + made)
        kept.extend(made)


def tensor(chance):
    value = float(chance.randrange(1 << 20))
    return value, torch.full((chance.choice(SIZES),), value)


class Worker:
    def __init__(self, context, seed):
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, seed), daemon=True)
        self.process.start()
        theirs.close()

    def end(self):
        self.process.kill()
        self.process.join(SECONDS)
        self.connection.close()


def exchange(workers, kept, chance):
    """One round: to each, and back from those that answer."""
    for worker in workers:
        sent = chance.sample(kept, min(3, len(kept))) + [tensor(chance) for _ in range(3)]
        worker.connection.send(sent)
        kept.extend(sent[-2:])
    for worker in workers:
        if worker.connection.poll(SECONDS):
            kept.extend(worker.connection.recv())
    check(kept)
    chance.shuffle(kept)
    del kept[24:]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_memory_is_never_handed_out_twice(method):
    context, chance = mp.get_context(method), random.Random(3)
    workers, kept, killed = [Worker(context, i) for i in range(3)], [], 0
    rounds = 150 if method == "fork" else 60
    for i in range(rounds):
        exchange(workers, kept, chance)
        if i % (3 if method == "fork" else 12) == 0:
            worker = workers.pop(0)
            worker.connection.send([tensor(chance) for _ in range(4)])  # it dies on the way
            time.sleep(chance.random() * 0.004)
            worker.end()
            assert worker.process.exitcode == -signal.SIGKILL
            killed += 1
            workers.append(Worker(context, 100 + i))
    check(kept)
    for worker in workers:
        worker.end()
    assert killed >= 5
    before = _C._shared_memory_stats()["own_segments"]
    for _ in range(300):
        del kept[:-100]
        kept.append(tensor(chance))
        kept[-1][1].share_memory_()
    check(kept)
    assert _C._shared_memory_stats()["own_segments"] <= before + 1
    assert _C._shared_memory_stats()["segments"] < 80, "those of the dead go"
