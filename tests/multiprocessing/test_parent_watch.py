"""_end_with_process: a process ends when another one does, even one that is killed."""

import os
import select
import signal
import subprocess
import sys
import time

import pytest
from tests.children import ENVIRONMENT

from taeda import _C

# A parent that starts a child, says its number, and waits for ever.
PARENT = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", sys.argv[1], str(os.getpid())],
                         stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(600)
"""
CHILD = """
import os, sys, time
from taeda import _C
{before}
for _ in range(3):
    _C._end_with_process(int(sys.argv[1]))
print("ready", flush=True)
{after}
time.sleep(600)
"""
NO_DESCRIPTORS = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))"
# Waiting for a lock that never comes, in the only thread and with every signal blocked.
BUSY = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))"


def ended(pidfd, seconds=60):
    return bool(select.select([pidfd], [], [], seconds)[0])


@pytest.mark.parametrize(("before", "after"), [("", ""), (NO_DESCRIPTORS, ""), ("", BUSY)])
def test_a_child_ends_when_its_parent_is_killed(before, after):
    child = CHILD.format(before=before, after=after)
    command = [sys.executable, "-c", PARENT, child]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=ENVIRONMENT) as parent:
        pidfd = os.pidfd_open(int(parent.stdout.readline()))
        try:
            assert not ended(pidfd, 0)
            parent.kill()
            assert ended(pidfd), "the child has outlived its parent"
        finally:
            os.close(pidfd)


def test_a_process_ends_at_once_when_the_other_is_dead_already():
    dead = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)  # its number stays taken
    command = [sys.executable, "-c", CHILD.format(before="", after=""), str(dead.pid)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=ENVIRONMENT) as process:
        assert process.stdout.read() == b""
        assert process.wait(60) == -signal.SIGKILL
    dead.wait()


def test_a_forked_child_keeps_no_watch():
    """The watched process ends, its watcher with it, and the watcher's own child lives on."""
    script = CHILD.format(
        before="",
        after="""
if os.fork() == 0:
    open_files = [os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")
                  if os.path.exists(f"/proc/self/fd/{n}")]
    print(os.getpid(), "pidfd" in str(open_files), flush=True)
    sys.stdin.readline()
    print("alive", flush=True)
    os._exit(0)
""",
    )
    watched = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", script, str(watched.pid)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=ENVIRONMENT) as watcher:
        assert watcher.stdout.readline() == b"ready\n"
        assert watcher.stdout.readline().split()[1] == b"False"
        watched.communicate(b"\n")
        assert watcher.wait(60) == -signal.SIGKILL
        time.sleep(0.3)  # longer than a thread that looks now and then would need
        watcher.stdin.write(b"\n")
        watcher.stdin.flush()
        assert watcher.stdout.readline() == b"alive\n"


@pytest.mark.parametrize("pid", [0, -1, os.getpid(), 1 << 40])
def test_numbers_of_no_other_process_are_refused(pid):
    pid = os.getpid() if pid > 0 and pid < 1 << 40 else pid
    with pytest.raises(ValueError, match="end_with_process"):
        _C._end_with_process(pid)
    with pytest.raises(TypeError):
        _C._end_with_process("1")
