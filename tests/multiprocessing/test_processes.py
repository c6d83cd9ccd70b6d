"""Tensors between processes, by each way to start one: the same memory, few descriptors, and
nothing lost, leaked or left behind when a process is killed."""

import errno
import gc
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from multiprocessing import managers
from multiprocessing.reduction import ForkingPickler
from queue import Full

import numpy as np
import pytest
from tests.children import ENVIRONMENT, SANITIZED

import taeda as torch
from taeda import _C, nn
from taeda import multiprocessing as mp

METHODS = ["fork", "spawn", "forkserver"]
SECONDS = 120


@pytest.fixture(params=METHODS, scope="module")
def context(request):
    return mp.get_context(request.param)


@pytest.fixture
def start(context):
    """Starts a process that does not outlive the test."""
    processes = []

    def start(target, *args):
        process = context.Process(target=target, args=args, daemon=True)
        process.start()
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.is_alive():
            process.kill()
        process.join(SECONDS)
        process.close()


def joined(process):
    process.join(SECONDS)
    return process.exitcode


# --- the same memory ------------------------------------------------------------------------------


class Marked(torch.Tensor):
    pass


def add_one_to_each(source, target):
    """Gets tensors until None comes; adds 1 in place; says what it has seen."""
    while (obj := source.get()) is not None:
        tensors = obj if isinstance(obj, (list, tuple)) else [obj]
        seen = []
        for x in tensors:
            with torch.no_grad():
                x.add_(1)
            seen.append((type(x).__name__, x.requires_grad, str(x.dtype), x.is_leaf))
        target.put((seen, obj))
        del obj, tensors, x
    target.close()


@pytest.mark.parametrize("kind", ["Queue", "SimpleQueue", "JoinableQueue"])
def test_queues_share_what_they_send(context, start, kind):
    there, back = getattr(context, kind)(), getattr(context, kind)()
    process = start(add_one_to_each, there, back)
    base = torch.arange(12.0)
    view, transposed = base[4:8], base.view(3, 4).t()
    parameter, half = nn.Parameter(torch.zeros(3)), torch.zeros(2, dtype=torch.bfloat16)
    marked = torch.zeros(5).as_subclass(Marked)
    marked.note = "kept"
    there.put([base, view, transposed[:, 1], parameter, half, marked])
    seen, back_again = back.get()
    assert [name for name, *_ in seen] == ["Tensor"] * 3 + ["Parameter", "Tensor", "Marked"]
    assert [grad for _, grad, *_ in seen] == [False] * 3 + [True] + [False] * 2
    expected = np.arange(12.0) + 1
    expected[4:8] += 2  # the view, and a column of the transposed
    assert base.tolist() == expected.tolist()
    assert parameter.tolist() == [1, 1, 1] and half.tolist() == [1, 1] and marked.sum() == 5
    assert back_again[5].note == "kept"
    back_again[1][0] = -3
    assert base[4] == -3 and back_again[2][0] == -3, "the same memory there and back again"
    there.put(None)
    assert joined(process) == 0


def test_pipes_share_what_they_send(context, start):
    ours, theirs = context.Pipe()
    process = start(echo, theirs)
    x = torch.zeros(1000)
    ours.send({"x": x, "row": x[3:5]})
    received = ours.recv()
    received["row"].fill_(4)
    assert x.sum() == 8 and received["x"].sum() == 8
    ours.send_bytes(b"as they are")
    assert ours.recv() == b"as they are"
    ours.send(None)
    assert joined(process) == 0
    reader, writer = context.Pipe(duplex=False)
    writer.send(x)
    assert reader.poll() and reader.recv().data_ptr() == x.data_ptr()
    for call in (lambda: reader.send(1), writer.recv):
        with pytest.raises(OSError, match="only"):
            call()
    reader.close()
    with pytest.raises(BrokenPipeError):
        writer.send(x)


def echo(connection):
    while True:
        obj = connection.recv_bytes()
        if obj == b"as they are":
            connection.send(obj)
            continue
        obj = ForkingPickler.loads(obj)
        if obj is None:
            return
        connection.send(obj)


def fill_all(tensors, module, storage):
    with torch.no_grad():
        for tensor in tensors:
            tensor.fill_(5)
        module.weight.fill_(2)
    storage[0] = 9


def test_arguments_of_a_process_are_shared(start):
    base = torch.zeros(10).share_memory_()
    tensors, module = [base[:2], base[1:4], torch.zeros(3).share_memory_()], nn.Linear(2, 2)
    module.share_memory()
    storage = torch.UntypedStorage(8).share_memory_()
    assert joined(start(fill_all, tensors, module, storage)) == 0
    assert base.tolist() == [5] * 4 + [0] * 6 and tensors[2].tolist() == [5] * 3
    assert module.weight.eq(2).all() and storage[0] == 9


def in_place_sum(x):
    x.add_(1)
    return x, x.sum()


def test_pools_share_arguments_and_results(context):
    xs = [torch.zeros(n).share_memory_() for n in (2, 3, 50000)]
    with context.Pool(2) as pool:
        results = pool.map(in_place_sum, xs)
        assert [total.item() for _, total in results] == [2, 3, 50000]
        results[2][0][7] = 100
        assert xs[2][7] == 100 and xs[0].tolist() == [1, 1]
        with pytest.raises(ZeroDivisionError):
            pool.apply(divmod, (1, 0))


@pytest.mark.parametrize("of", ["multiprocessing", "ours"])
def test_executors_share_arguments_and_results(context, of):
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    kind = context if of == "ours" else multiprocessing.get_context(context.get_start_method())
    x = torch.zeros(1000).share_memory_()
    with ProcessPoolExecutor(2, mp_context=kind) as executor:
        whole, part = executor.map(in_place_sum, [x, x[:10]])
    assert x.sum() == 1010 and x[9] == 2 and x[10] == 1
    assert whole[0].data_ptr() == part[0].data_ptr() == x.data_ptr()


def use_manager(shared, queue):
    shared["x"].add_(1)
    queue.get(timeout=SECONDS).add_(1)
    shared["new"] = torch.full((3,), 7.0)


def test_managers_share_what_they_keep(context, start):
    with context.Manager() as manager:
        assert isinstance(manager, managers.SyncManager)
        shared, queue, x, y = manager.dict(), manager.Queue(), torch.zeros(4), torch.zeros(4)
        shared["x"] = x
        queue.put(y)
        assert joined(start(use_manager, shared, queue)) == 0
        assert x.tolist() == [1] * 4 and y.tolist() == [1] * 4
        assert shared["new"].tolist() == [7] * 3, "its maker has ended"


@pytest.mark.parametrize("of", ["multiprocessing", "ours"])
def test_a_write_after_put_is_seen(context, start, of):
    """Of the standard library's queue, whose thread pickles later, when the memory is shared."""
    import multiprocessing

    kind = context if of == "ours" else multiprocessing.get_context(context.get_start_method())
    there, back = kind.Queue(), context.Queue()
    process = start(sum_of, there, back)
    for i in range(20):
        x = torch.zeros(1000 if i % 2 else 200_000)
        if of != "ours":
            x.share_memory_()
        there.put(x)
        x.fill_(i)
        back.put(None)  # what it answers with; only then the sum is made
        del x
    there.put(None)
    assert joined(process) == 0


def sum_of(source, barrier):
    i = 0
    while (x := source.get()) is not None:
        barrier.get()
        assert x.eq(i).all(), i
        i += 1
    assert i == 20


def test_what_cannot_be_pickled_raises_in_put(context):
    queue = context.Queue(1)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="Cowardly refusing"):
            queue.put([torch.ones(2), torch.ones(2, requires_grad=True) * 2])
        with pytest.raises((AttributeError, TypeError, Exception), match="pickle"):
            queue.put(lambda: 1)
    queue.put(torch.ones(2), timeout=SECONDS)  # the failed ones take no room
    with pytest.raises(Full):
        queue.put(1, block=False)
    assert queue.get().sum() == 2


def test_sparse_meta_empty_and_foreign_tensors(context):
    queue = context.SimpleQueue()
    dense = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    array = np.ones(3, dtype=np.float32)
    exported = torch.ones(3)
    alias = exported.numpy()
    with pytest.warns(UserWarning, match="sends a copy"):
        queue.put(
            [
                dense.to_sparse(), dense.to_sparse_csr(), torch.ones(2, 3, device="meta"),
                torch.empty(0, 4), torch.from_numpy(array), exported, torch.tensor(3 + 4j),
                torch.ones(2).storage(), torch.ones(2, requires_grad=True),
            ]
        )  # fmt: skip
    coo, csr, meta, empty, foreign, copied, number, storage, leaf = queue.get()
    assert coo.is_sparse and coo.to_dense().equal(dense) and csr.to_dense().equal(dense)
    assert csr.layout == torch.sparse_csr
    assert meta.is_meta and meta.shape == (2, 3) and empty.shape == (0, 4)
    assert foreign.tolist() == [1, 1, 1] and number.item() == 3 + 4j
    assert storage.dtype == torch.float32 and storage.tolist() == [1, 1]
    assert leaf.requires_grad and leaf.is_leaf
    alias[0] = 7  # what NumPy knows stays where it is: the queue sends a copy
    assert exported[0] == 7 and copied.tolist() == [1, 1, 1]


# --- descriptors ----------------------------------------------------------------------------------


def keep_many(source, target, n):
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    kept = [source.get() for _ in range(n)]
    target.put(sum(x[0].item() for x in kept))
    target.put(len(os.listdir("/proc/self/fd")))
    source.get()


def test_many_kept_tensors_need_few_descriptors(context, start):
    n = 20_000
    there, back = context.Queue(), context.Queue()
    before = len(os.listdir("/proc/self/fd"))
    process = start(keep_many, there, back, n)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        kept = [torch.full((2,), float(i % 7)) for i in range(n)]
        for x in kept:
            there.put(x)
        assert back.get() == sum(i % 7 for i in range(n))
        assert back.get() < 64
        assert len(os.listdir("/proc/self/fd")) < before + 16
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    there.put(None)
    assert joined(process) == 0


def receive_without_descriptors(source, target):
    source.get()  # the modules are loaded, the connection is used
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        source.get()
        outcome = "it came"
    except RuntimeError as error:
        outcome = str(error)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    target.put(outcome)
    source.get()


def test_a_receiver_without_descriptors_says_so(start, context):
    there, back = context.SimpleQueue(), context.SimpleQueue()
    process = start(receive_without_descriptors, there, back)
    there.put(None)
    start(put_one, there)  # from a process whose memory it has not mapped
    outcome = back.get()
    assert "cannot map the shared memory of process" in outcome, outcome
    assert "Too many open files" in outcome
    there.put(None)
    assert joined(process) == 0


def put_one(queue):
    queue.put(torch.ones(3))
    time.sleep(SECONDS)


def test_a_sender_without_descriptors_says_so():
    script = """
import resource
import taeda as torch
torch.multiprocessing  # loaded while files can be opened
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
try:
    torch.ones(3).share_memory_()
except RuntimeError as error:
    print(error)
"""
    command = [sys.executable, "-c", script]
    said = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=SECONDS)
    assert "share_memory" in said.stdout and "Too many open files" in said.stdout, said


class CrowdedSocket:
    """A socket whose user has as many descriptors under way as users other than root may have."""

    def __init__(self, socket):
        self.socket, self.refused = socket, 0

    def __getattr__(self, name):
        return getattr(self.socket, name)

    def sendmsg(self, buffers, rights, flags):
        if rights:
            self.refused += 1
            raise OSError(errno.ETOOMANYREFS, "Too many references: cannot splice")
        return self.socket.sendmsg(buffers, rights, flags)


def test_messages_go_without_descriptors_when_too_many_are_under_way(context, start):
    ours, theirs = context.Pipe()
    process = start(sum_all, theirs, 50)
    ours._socket = CrowdedSocket(ours._socket)
    x = torch.ones(3)
    for _ in range(50):
        ours.send(x)
    assert ours.recv() == 150 and ours._socket.refused >= 50
    assert joined(process) == 0


def sum_all(connection, n):
    connection.send(sum(connection.recv().sum().item() for _ in range(n)))


# --- killed processes -----------------------------------------------------------------------------


def put_and_wait(queue, connection, n):
    for i in range(n):
        queue.put(torch.full((1000,), float(i)))
    queue.close()
    queue.join_thread()
    connection.send("put")
    time.sleep(SECONDS)


def test_what_was_put_survives_its_sender(context, start):
    queue = context.Queue()
    ours, theirs = context.Pipe()
    process = start(put_and_wait, queue, theirs, 20)
    assert ours.recv() == "put"
    process.kill()
    assert joined(process) == -signal.SIGKILL
    received = [queue.get(timeout=SECONDS) for _ in range(20)]
    assert [x[999].item() for x in received] == list(range(20))
    forwarded = context.SimpleQueue()
    forwarded.put(received[3])  # by a process that is not its maker
    other = start(expect_three, forwarded, theirs)
    assert joined(other) == 0
    del received
    for _ in range(3):  # the dead process's segment goes
        time.sleep(0.3)
        again = torch.ones(10).share_memory_()
        forwarded.put(again)
        del again
        forwarded.get()
    assert _C._shared_memory_stats()["segments"] >= 1


def expect_three(queue, _):
    assert queue.get().eq(3).all()


def hold(queue, connection):
    held = [queue.get() for _ in range(8)]
    connection.send(len(held))
    time.sleep(SECONDS)


def test_memory_of_a_killed_receiver_comes_back(context, start):
    queue = context.Queue()
    ours, theirs = context.Pipe()
    size = 4 << 20
    sizes = []
    for _ in range(6):
        process = start(hold, queue, theirs)
        for _ in range(8):
            queue.put(torch.ones(size // 4))
        assert ours.recv() == 8
        process.kill()
        assert joined(process) == -signal.SIGKILL
        sizes.append(shared_bytes_of_pages())
    assert max(sizes) < sizes[0] + 8 * size + (192 << 20), sizes


def shared_bytes_of_pages(pid="self"):
    """Memory of shared tensors that the process maps, of pages that exist."""
    total, inside = 0, False
    with open(f"/proc/{pid}/smaps") as file:
        for line in file:
            first = line.split(None, 1)[0]
            if "-" in first and not first.endswith(":"):
                inside = "/memfd:taeda-" in line
            elif inside and first == "Pss:":
                total += int(line.split()[1]) << 10
    return total


KILLED = """
import os, sys, time
import taeda as torch
def hold(i, queue, x):
    queue.put((os.getpid(), torch.ones(1 << 20)))
    time.sleep(600)
if __name__ == "__main__":
    context = torch.multiprocessing.get_context(sys.argv[1])
    queue = context.Queue()
    torch.multiprocessing.start_processes(
        hold, (queue, torch.ones(1 << 20).share_memory_()), 3, join=False, start_method=sys.argv[1])
    kept = [queue.get() for _ in range(3)]
    print(*(pid for pid, _ in kept), flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("method", METHODS)
def test_nothing_is_left_of_a_program_that_is_killed(method, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(KILLED)
    command = [sys.executable, str(script), method]
    before = set(os.listdir("/dev/shm"))
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=ENVIRONMENT, text=True) as program:
        pids = [int(pid) for pid in program.stdout.readline().split()]
        assert len(pids) == 3 and all(map(is_running, pids))
        program.kill()
    end = time.monotonic() + SECONDS
    while any(map(is_running, pids)) and time.monotonic() < end:
        time.sleep(0.02)
    assert not any(map(is_running, pids)), "a child has outlived its parent"
    named = {name for name in set(os.listdir("/dev/shm")) - before if "taeda" in name}
    assert not named and not any(map(shared_bytes_of_any, pids))


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def shared_bytes_of_any(pid):
    try:
        return shared_bytes_of_pages(pid)
    except OSError:
        return 0


# --- memory ---------------------------------------------------------------------------------------


def drop_all(source, target):
    while source.get() is not None:
        target.put(None)


def test_large_tensors_leave_no_memory_behind(context, start):
    there, back = context.Queue(), context.Queue()
    process = start(drop_all, there, back)
    before = shared_bytes_of_pages()  # what earlier tests keep
    for _ in range(6):
        there.put(torch.ones(100 << 18))  # 100 MiB
        back.get()
    gc.collect()
    there.put(None)
    assert joined(process) == 0
    assert shared_bytes_of_pages() - before < 300 << 20


@pytest.mark.skipif(SANITIZED, reason="a sanitizer needs all of the address space")
def test_more_than_the_machine_has_is_refused():
    with pytest.raises(torch.OutOfMemoryError, match=r"share_memory.*\d+ bytes"):
        torch.UntypedStorage._new_shared(1 << 44)


def test_threads_put_at_once(context, start):
    there, back = context.Queue(), context.Queue()
    process = start(collect, there, back, 4 * 200)

    def put(thread):
        for i in range(200):
            size = 3 if i % 10 else 20_000
            there.put((thread, i, torch.full((size,), float(1000 * thread + i))))

    threads = [threading.Thread(target=put, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert back.get() == {thread: list(range(200)) for thread in range(4)}, "each in its order"
    there.put(None)
    assert joined(process) == 0


def collect(source, target, n):
    order = {}
    for _ in range(n):
        thread, i, x = source.get()
        assert x.eq(1000 * thread + i).all()
        order.setdefault(thread, []).append(i)
    target.put(order)
    source.get()


FULL = """
import operator
import os
import sys
import taeda as torch
context = torch.multiprocessing.get_context(sys.argv[1])
queue = context.Queue()
with open("/dev/shm/full", "wb", buffering=0) as file:
    try:
        while file.write(bytes(1 << 16)):
            pass
    except OSError:
        pass
print("left", os.statvfs("/dev/shm").f_bavail)
queue.put(torch.ones(1 << 22))
print("sum", queue.get().sum().item() == 1 << 22)
x = torch.ones(1 << 20)
process = context.Process(target=operator.setitem, args=(x, slice(None), 7.0))
process.start()
process.join()
print("written", x.eq(7).all().item() if sys.argv[1] != "fork" else process.exitcode == 0)
"""


@pytest.mark.parametrize("method", METHODS)
def test_a_full_dev_shm_does_not_matter(method):
    mount = 'mount -t tmpfs -o size=1m tmpfs /dev/shm && exec "$0" -c "$1" "$2"'
    command = ["unshare", "--mount", "sh", "-c", mount, sys.executable, FULL, method]
    try:
        said = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    except FileNotFoundError:
        pytest.skip("there is no unshare (util-linux)")
    if "unshare" in said.stderr or "mount:" in said.stderr:
        pytest.skip("this user may not mount a small /dev/shm")
    assert said.stdout.split("\n")[:3] == ["left 0", "sum True", "written True"], said


def test_a_default_timeout_of_sockets_is_not_ours():
    import socket

    socket.setdefaulttimeout(0.01)
    try:
        reader, writer = mp.Pipe(duplex=False)
    finally:
        socket.setdefaulttimeout(None)
    thread = threading.Timer(0.1, writer.send, [torch.ones(3)])
    thread.start()
    assert reader.recv().sum() == 3
    thread.join()


def send_in_two_segments(connection, done):
    storages = [torch.UntypedStorage._new_shared(48 << 20) for _ in range(3)]
    for storage in storages:
        storage[0] = 5
    connection.send(storages)
    done.put(_C._shared_memory_stats()["own_segments"])
    time.sleep(SECONDS)


def test_several_segments_of_a_dead_sender_arrive(context, start):
    ours, theirs = context.Pipe()
    done = context.SimpleQueue()
    process = start(send_in_two_segments, theirs, done)
    assert done.get() >= 2
    process.kill()
    assert joined(process) == -signal.SIGKILL
    assert [storage[0] for storage in ours.recv()] == [5] * 3
