"""What torch.multiprocessing started ends when its starter is killed, busy or idle."""

import os
import select
import subprocess
import sys

import pytest
from tests.children import ENVIRONMENT

METHODS = ["fork", "spawn", "forkserver"]

# A program that starts a process, says its number, and waits for ever.
PARENT = """
import os, sys, time
import taeda as torch
from taeda import multiprocessing as mp

def be_busy(started):
    started.send(os.getpid())
    while True:
        sum(range(1000))

def read_idle_queue(started, queue):
    started.send(os.getpid())
    queue.get()

def daemon(context, theirs):
    process = context.Process(target=be_busy, args=(theirs,), daemon=True)
    process.start()
    return process

def reader(context, theirs):
    queue = context.Queue()
    process = context.Process(target=read_idle_queue, args=(theirs, queue), daemon=True)
    process.start()
    return process, queue

def pool(context, theirs):
    pool = context.Pool(1)
    pool.apply_async(be_busy, (theirs,))
    return pool

def manager(context, theirs):
    manager = context.Manager()
    theirs.send(manager._process.pid)
    return manager

if __name__ == "__main__":
    kind, method = sys.argv[1:]
    context = mp if method == "default" else mp.get_context(method)
    ours, theirs = context.Pipe()
    kept = globals()[kind](context, theirs)
    print(ours.recv(), flush=True)
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("killed_parent") / "parent.py"
    path.write_text(PARENT)
    return str(path)


@pytest.mark.parametrize("method", [*METHODS, "default"])
@pytest.mark.parametrize("kind", ["daemon", "reader", "pool", "manager"])
def test_what_a_killed_process_started_ends(program, kind, method):
    command = [sys.executable, program, kind, method]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=ENVIRONMENT) as parent:
        pid = int(parent.stdout.readline())
        pidfd = os.pidfd_open(pid)
        try:
            assert not select.select([pidfd], [], [], 0)[0]
            parent.kill()
            has_ended = bool(select.select([pidfd], [], [], 30)[0])
            if not has_ended:
                os.kill(pid, 9)
            assert has_ended, "it has outlived its starter"
        finally:
            os.close(pidfd)
