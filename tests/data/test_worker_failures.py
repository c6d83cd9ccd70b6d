"""What goes wrong in workers of the DataLoader, how it is told, and that nothing is left behind."""

import ctypes
import gc
import importlib
import os
import re
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from tests.alarms import interrupted_after

import taeda
from taeda.utils import data
from taeda.utils.data import DataLoader, _utils

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")
PID = os.getpid()
PROCESSES = ["fork", "forkserver", "spawn"]


class OwnError(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)


class Unreadable:
    """Its pickle cannot be read."""

    def __reduce__(self):
        return int, ("zz",)


class Faulty(data.Dataset):
    """Sample 7 does something."""

    def __init__(self, what):
        self.what = what

    def __len__(self):
        return 20

    def __getitem__(self, i):
        if i == 7:
            return getattr(self, self.what)()
        return i

    def value_error(self):
        raise ValueError("boom")

    def key_error(self):
        raise KeyError("boom")

    def own_error(self):
        raise OwnError(1, 2)

    def local_error(self):
        class LocalError(Exception):
            pass

        raise LocalError("boom")

    def stop_iteration(self):
        raise StopIteration

    def killed(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def terminated(self):
        os.kill(os.getpid(), signal.SIGTERM)

    def segfault(self):
        ctypes.string_at(0)

    def exit_0(self):
        os._exit(0)

    def exit_9(self):
        sys.exit(9)

    def interrupt(self):
        raise KeyboardInterrupt

    def ragged(self):
        return taeda.zeros(3)

    def unreadable(self):
        return Unreadable()

    def hang(self):
        time.sleep(1000)


def run(what, method, **options):
    """The exception of a pass over a dataset with that fault, and the seconds until it came."""
    begin = time.monotonic()
    with pytest.raises(Exception) as caught:
        for _ in DataLoader(
            Faulty(what), 4, num_workers=2, multiprocessing_context=method, **options
        ):
            begin = time.monotonic()
    return caught.value, time.monotonic() - begin


@pytest.mark.parametrize("method", [*PROCESSES, "thread"])
def test_an_exception_arrives_with_its_type_and_traceback(method):
    error, _ = run("value_error", method)
    kind = "thread" if method == "thread" else "process"
    assert type(error) is ValueError
    text = str(error)
    assert text.startswith(f"Caught ValueError in DataLoader worker {kind} 1.\nOriginal Traceback")
    assert 'raise ValueError("boom")' in text and "ValueError: boom" in text
    assert re.search(r"\(worker 1.*, loading sample 3 of batch 1 \(index 7\)\)", text)
    assert kind == "thread" or re.search(r"\(worker 1, pid \d+, ", text)


@pytest.mark.parametrize(
    "what, kind, text",
    [
        ("key_error", KeyError, "Caught KeyError in DataLoader worker process 1.\nOriginal"),
        ("own_error", RuntimeError, "Caught OwnError in DataLoader worker process 1"),
        ("local_error", RuntimeError, "LocalError: boom"),
        ("stop_iteration", RuntimeError, "sample 7 of Faulty raised StopIteration"),
        ("ragged", ValueError, "in collate_fn, batch 1"),
    ],
)
def test_exceptions_of_any_type_arrive(what, kind, text):
    error, _ = run(what, "fork")
    assert type(error) is kind and text in str(error)


@pytest.mark.parametrize("method", ["fork", "thread"])
def test_a_caught_exception_does_not_keep_workers(method):
    def load():
        batches = iter(
            DataLoader(Faulty("value_error"), 4, num_workers=2, multiprocessing_context=method)
        )
        try:
            list(batches)
        except ValueError:
            pass
        return batches._workers

    gc.collect()
    gc.disable()
    try:
        assert not any(worker.is_alive() for worker in load())
    finally:
        gc.enable()


@pytest.mark.parametrize("what, cause", [("exit_9", "SystemExit: 9"), ("interrupt", "Keyboard")])
def test_what_would_end_a_thread_is_an_exception_with_its_cause(what, cause):
    error, _ = run(what, "thread")
    assert type(error) is RuntimeError
    assert re.search(rf"in DataLoader worker thread 1(.|\n)*in {what}(.|\n)*{cause}", str(error))
    assert "(worker 1, loading sample 3 of batch 1 (index 7))" in str(error)


def test_loading_goes_on_after_an_exception():
    batches = iter(
        DataLoader(Faulty("value_error"), 4, num_workers=2, multiprocessing_context="fork")
    )
    assert next(batches).tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError):
        next(batches)
    assert [b.tolist()[0] for b in batches] == [8, 12, 16]


@pytest.mark.parametrize("method", PROCESSES)
@pytest.mark.parametrize(
    "what, cause",
    [
        ("killed", r"\(pid \d+\) is killed by signal: Killed"),
        ("terminated", r"\(pid \d+\) is killed by signal: Terminated"),
        ("segfault", r"is killed by signal: Segmentation fault"),
        ("exit_0", "exited unexpectedly with exit code 0"),
        ("exit_9", "exited unexpectedly with exit code 9"),
    ],
)
def test_a_death_is_named_within_two_seconds(what, cause, method):
    error, seconds = run(what, method)
    assert type(error) is RuntimeError and seconds < 2 + 5 * (os.getloadavg()[0] > 3)
    text = str(error)
    assert re.match(r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly", text)
    assert re.search(cause, text)
    assert "(worker 1, loading sample 3 of batch 1 (index 7))" in text
    assert what != "segfault" or "in segfault" in text  # its Python stack


def test_the_stack_of_a_death_is_none_that_was_asked_for_before():
    batches = iter(
        DataLoader(Faulty("hang"), 4, num_workers=2, multiprocessing_context="fork", timeout=20)
    )
    next(batches)
    worker = batches._processes[1]
    while "File" not in worker.stack():  # "" until it has started
        time.sleep(0.01)
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="killed by signal: Killed") as caught:
        next(batches)
    assert "Python stack" not in str(caught.value)


def first_of(batch):
    return batch[0]


@pytest.mark.parametrize("in_order", [True, False])
def test_a_batch_that_cannot_be_unpickled_is_named_and_the_others_arrive(in_order):
    loader = DataLoader(
        Faulty("unreadable"), 1, num_workers=2, collate_fn=first_of, in_order=in_order,
        multiprocessing_context="fork", persistent_workers=True, timeout=20,
    )  # fmt: skip
    for _ in range(2):
        batches, got, errors = iter(loader), [], []
        for _ in range(20):
            try:
                got.append(next(batches))
            except ValueError as error:
                errors.append(str(error))
        assert next(batches, None) is None
        assert (got if in_order else sorted(got)) == [*range(7), *range(8, 20)]
        assert len(errors) == 1 and re.search(
            r"unpickling batch 7 of DataLoader worker \d \(pid \d+\)", errors[0]
        )


@pytest.mark.parametrize("method", [*PROCESSES, "thread"])
def test_timeout_names_worker_sample_and_stack(method):
    error, _ = run("hang", method, timeout=1.5)
    assert type(error) is RuntimeError
    text = str(error)
    assert text.startswith("DataLoader timed out after 1.5 seconds")
    if "(index 7)" in text:  # a slow machine may not have come so far
        assert "loading sample 3 of batch 1" in text and "in hang" in text


@pytest.mark.parametrize("method", [*PROCESSES, "thread"])
def test_a_hang_is_warned_of_with_the_stack(method, monkeypatch):
    monkeypatch.setattr(_utils, "HANG_WARNING_INTERVAL", 1.0)
    batches = iter(DataLoader(Faulty("hang"), 4, num_workers=2, multiprocessing_context=method))
    next(batches)
    with interrupted_after(6):
        with pytest.warns(UserWarning, match="loading sample 3 of batch 1") as seen:
            with pytest.raises(InterruptedError):
                next(batches)
    texts = [str(w.message) for w in seen if "has been loading" in str(w.message)]
    assert len(texts) == 1 and "in hang" in texts[0] and "(index 7)" in texts[0]
    batches._shutdown_workers()
    assert method == "thread" or not any(w.is_alive() for w in batches._workers)


def test_a_broken_persistent_loader_starts_again():
    kept = DataLoader(
        Faulty("exit_0"), 4, num_workers=2, persistent_workers=True, multiprocessing_context="fork"
    )
    for _ in range(2):
        with pytest.raises(RuntimeError, match="exited unexpectedly"):
            list(kept)


def failing_init(worker_id):
    raise ValueError("no init")


@pytest.mark.parametrize("method", ["fork", "thread"])
def test_a_failing_init_function_is_told_each_time(method):
    batches = iter(
        DataLoader(
            range(9), num_workers=2, worker_init_fn=failing_init, multiprocessing_context=method
        )
    )
    for _ in range(3):
        with pytest.raises(ValueError, match="no init"):
            next(batches)


class Unopened(Faulty):
    """Cannot be opened again in another process."""

    def __setstate__(self, state):
        raise FileNotFoundError("no such database")


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_a_dataset_that_cannot_be_unpickled_says_why(method):
    kept = DataLoader(
        Unopened("value_error"), 4, num_workers=2, multiprocessing_context=method,
        persistent_workers=True,
    )  # fmt: skip
    for _ in range(2):
        with pytest.raises(FileNotFoundError, match="no such database") as caught:
            list(kept)
        assert "in DataLoader worker process 0" in str(caught.value)
        assert "in __setstate__" in str(caught.value)


class Unseedable(data.datapipes.iter.IterableWrapper):
    def set_seed(self, seed):
        if data.get_worker_info() is not None or os.getpid() != PID:
            raise OSError("no seed for me")
        return self


def test_a_pipe_that_cannot_be_seeded_says_why():
    with pytest.raises(OSError, match="no seed for me") as caught:
        list(
            DataLoader(
                Unseedable(range(8)).shuffle(), num_workers=1, multiprocessing_context="fork"
            )
        )
    assert "in DataLoader worker process 0" in str(caught.value)


def test_iterators_may_die_in_any_thread():
    def drop():
        batches = iter(DataLoader(range(9), num_workers=2, multiprocessing_context="fork"))
        next(batches)
        workers.extend(batches._workers)
        cycle = [batches]
        cycle.append(cycle)

    workers = []
    drop()
    thread = threading.Thread(target=gc.collect)
    thread.start()
    thread.join(10)
    assert not thread.is_alive() and not any(w.is_alive() for w in workers)


def test_a_fork_of_the_trainer_leaves_its_workers_alone():
    batches = iter(DataLoader(range(40), num_workers=2, multiprocessing_context="fork"))
    next(batches)
    pid = os.fork()
    if pid == 0:
        try:
            batches._shutdown_workers()
            del batches
            gc.collect()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert len(list(batches)) == 39


# --- whole programs ---

PROGRAM = """
import sys, os, time, taeda
from taeda.utils.data import DataLoader, Dataset
class Rows(Dataset):
    def __len__(self): return 1000000
    def __getitem__(self, i): time.sleep({sleep}); return taeda.full((100, 100), float(i))
if __name__ == "__main__":
    batches = iter(DataLoader(Rows(), 4, num_workers=2, multiprocessing_context="{method}"))
    print(*(w.pid for w in batches._workers), flush=True)
    {body}
"""


def start(method, body, sleep=0.0, **options):
    text = textwrap.dedent(PROGRAM).format(method=method, body=body, sleep=sleep)
    path = options.pop("folder") / "program.py"
    path.write_text(text)
    process = subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert len(pids) == 2, process.stderr.read()
    return process, pids


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def assert_gone(pids, seconds=5.0):
    end = time.monotonic() + seconds + 10 * (os.getloadavg()[0] > 4)
    while any(map(is_running, pids)):
        assert time.monotonic() < end, "a worker is left"
        time.sleep(0.02)


@pytest.mark.parametrize("sleep", [0.0, 1000.0])
@pytest.mark.parametrize("method", PROCESSES)
@pytest.mark.parametrize("how", ["kill", "terminate"])
def test_workers_end_with_a_killed_trainer(how, method, sleep, tmp_path):
    process, pids = start(method, "[None for _ in batches]", sleep, folder=tmp_path)
    getattr(process, how)()
    process.wait(10)
    assert_gone(pids)


def _interruptible():
    # A shell's background jobs, and so what they start, ignore interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize("sleep", [0.0, 1000.0])
@pytest.mark.parametrize("method", PROCESSES)
def test_interrupt_raises_at_once_and_workers_go(method, sleep, tmp_path):
    body = """
    try:
        print("waits", flush=True)
        for batch in batches: pass
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    """
    process, pids = start(
        method,
        body.strip(),
        sleep,
        folder=tmp_path,
        start_new_session=True,
        preexec_fn=_interruptible,
    )
    assert process.stdout.readline() == "waits\n"
    begin = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    assert process.stdout.readline() == "interrupted\n"
    assert time.monotonic() - begin < 0.5 + 5 * (os.getloadavg()[0] > 3)
    assert process.wait(20) == 0
    assert_gone(pids)
    if method == "fork":  # a spawned interpreter that is interrupted while it starts says so
        own = r"Exception ignored in: <function _get_module_lock.*?KeyboardInterrupt: *\n"
        # The interpreter's words, of a worker that is interrupted just after an import.
        assert "Traceback" not in re.sub(own, "", process.stderr.read(), flags=re.DOTALL)


@pytest.mark.parametrize("body", ["next(batches); raise SystemExit(3)", "next(batches); 1 / 0"])
def test_workers_end_when_the_training_loop_raises(body, tmp_path):
    process, pids = start("fork", body, folder=tmp_path)
    code = process.wait(20)
    assert code == (3 if "Exit" in body else 1)
    assert_gone(pids, 1)


def _few_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))


def test_kept_batches_need_no_descriptors(tmp_path):
    body = (
        "kept = [next(batches) for _ in range(2000)]; "
        "print(all(b[0, 0, 0] == 4 * i for i, b in enumerate(kept)), flush=True)"
    )
    process, _ = start("fork", body, folder=tmp_path, preexec_fn=_few_descriptors)
    assert process.stdout.readline() == "True\n"
    process.wait(20)


def test_nothing_is_left_after_passes():
    def count():
        taeda.empty(1).share_memory_()  # its allocator drops its pipes to ended children
        gc.collect()
        return len(os.listdir("/proc/self/fd")), taeda._C._WorkerChannel.held()

    def passes():
        for _ in range(5):
            for batch in DataLoader(range(20), 4, num_workers=2, multiprocessing_context="fork"):
                if batch[0] == 8:
                    break

    passes()
    before = count()
    passes()
    assert count() == before
    with open("/proc/self/maps") as file:
        assert "taeda_loader" not in file.read()


FULL_SHM = """
set -e
mount -t tmpfs -o size=64k tmpfs /dev/shm
head -c 65536 /dev/zero > /dev/shm/full || true
exec {python} {program}
"""


def test_a_full_dev_shm_does_not_matter(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent("""
        import taeda
        from taeda.utils.data import DataLoader, TensorDataset
        x = TensorDataset(taeda.arange(400000.0).view(4, 100000))
        for method in ("fork", "forkserver", "spawn"):
            if __name__ == "__main__":
                loader = DataLoader(x, 2, num_workers=2, multiprocessing_context=method)
                print([b[0][1, 0].item() for b in loader], flush=True)
    """)
    )
    script = FULL_SHM.format(python=sys.executable, program=program)
    try:
        done = subprocess.run(
            ["unshare", "-m", "-r", "sh", "-c", script], capture_output=True, text=True, timeout=100
        )
    except FileNotFoundError:
        pytest.skip("needs unshare")
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip("mount namespaces are not allowed here")
    assert done.stdout == "[100000.0, 300000.0]\n" * 3, done.stderr


@pytest.mark.parametrize("method", PROCESSES)
def test_random_kills_leave_nothing_behind(method, monkeypatch):
    """A short run of tools/soak_loader.py."""
    monkeypatch.syspath_prepend(os.path.join(os.path.dirname(__file__), "..", "..", "tools"))
    soak = importlib.import_module("soak_loader")
    ends = soak.soak(20, method, seed=1)
    assert ends["killed"] > 0 and ends["whole"] > 0
