"""Workers of the DataLoader: the batches they load, by each way of starting them."""

import multiprocessing
import os
import random
import signal
import time
import warnings
from collections import namedtuple

import pytest

import taeda
from taeda.utils import data
from taeda.utils.data import DataLoader

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")
METHODS = ["fork", "forkserver", "spawn", "thread"]
Point = namedtuple("Point", ["x", "y"])


@pytest.fixture(params=METHODS)
def method(request):
    return request.param


def loader(dataset, method, **options):
    options.setdefault("num_workers", 2)
    return DataLoader(dataset, multiprocessing_context=method, **options)


class Rows(data.Dataset):
    """Sample i: a tensor that is large in batches, a number, a text."""

    def __init__(self, n=10):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return taeda.full((50, 200), float(i)), i, f"row {i}"


class Shard(data.IterableDataset):
    """The numbers below n, each from one worker."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = data.get_worker_info()
        return iter(range(self.n) if info is None else range(info.id, self.n, info.num_workers))


class Noise(data.Dataset):
    """Random numbers of each library."""

    def __init__(self, n=8):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        import numpy

        return (
            i, random.random(), taeda.rand(3), numpy.random.rand(2), random.gauss(0, 1),
            numpy.random.randn(),
        )  # fmt: skip


class Identity(data.Dataset):
    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __getitem__(self, i):
        return self.values[i]


def first(batch):
    return batch[0]


def as_list(batch):
    return batch


def plain(x):
    if isinstance(x, taeda.Tensor):
        return x.tolist()
    if isinstance(x, dict):
        return {key: plain(value) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(item) for item in x]
    return x


def test_workers_give_the_batches_of_the_main_process(method):
    for options in (
        {"batch_size": 4},
        {"batch_size": 4, "drop_last": True},
        {"batch_size": None},
        {"batch_sampler": [[0, 3], [5], [9, 8, 7]]},
        {"batch_size": 3, "collate_fn": as_list, "prefetch_factor": 1},
    ):
        expected = plain(
            list(DataLoader(Rows(), **{k: v for k, v in options.items() if k != "prefetch_factor"}))
        )
        assert plain(list(loader(Rows(), method, **options))) == expected


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_order_is_the_same_for_any_number_of_workers(workers):
    def order(**options):
        generator = taeda.Generator().manual_seed(5)
        shuffled = DataLoader(range(23), 4, shuffle=True, generator=generator, **options)
        return [plain(list(shuffled)) for _ in range(2)]

    assert order(num_workers=workers) == order()


def test_iterable_datasets_are_sharded(method):
    ours = plain(list(loader(Shard(11), method, batch_size=2)))
    assert ours == [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9]]
    assert sorted(loader(Shard(7), method, batch_size=None)) == list(range(7))
    assert plain(list(loader(Shard(11), method, batch_size=2, drop_last=True)))[-1] == [8, 10]


def test_batches_out_of_order_are_all_there(method):
    seen = [
        x
        for batch in loader(range(40), method, batch_size=3, in_order=False)
        for x in batch.tolist()
    ]
    assert sorted(seen) == list(range(40))


class Slow(Rows):
    def __getitem__(self, i):
        if i == 0:
            time.sleep(1)
        return i


def test_a_slow_batch_does_not_hold_up_others_out_of_order():
    order = [b.item() for b in loader(Slow(8), "fork", in_order=False)]
    assert order[0] != 0 and sorted(order) == list(range(8))


def test_persistent_workers_stay(method):
    kept = loader(Rows(6), method, batch_size=2, persistent_workers=True)
    epochs, pids = [], []
    for _ in range(3):
        epochs.append([batch[1].tolist() for batch in kept])
        pids.append([worker["pid"] for worker in kept.stats()["workers"]])
    assert epochs == [[[0, 1], [2, 3], [4, 5]]] * 3
    assert pids[0] == pids[1] == pids[2]


def test_a_persistent_loader_starts_again_in_the_middle_of_an_epoch(method):
    kept = loader(range(20), method, batch_size=2, persistent_workers=True)
    for batch in kept:
        if batch[0] == 4:
            break
    assert [b[0].item() for b in kept] == list(range(0, 20, 2))
    shards = loader(Shard(9), method, batch_size=2, persistent_workers=True)
    assert plain(list(shards)) == plain(list(shards))


class SlowRows(Rows):
    def __getitem__(self, i):
        time.sleep(0.01)
        return super().__getitem__(i)


def test_any_number_of_epochs_may_be_left_early(method):
    kept = loader(SlowRows(400), method, batch_size=4, persistent_workers=True)
    for _ in range(40):
        assert next(iter(kept))[1].tolist() == [0, 1, 2, 3]
    kept = loader(Rows(400), method, batch_size=1, persistent_workers=True, prefetch_factor=50)
    for _ in range(40):  # more tasks than there is room for
        assert next(iter(kept))[1].tolist() == [0]
    assert [b[1].item() for b in kept] == list(range(400))


def note_worker(worker_id):
    info = data.get_worker_info()
    info.dataset.noted = (worker_id, info.id, info.num_workers, info.seed)


class Noted(Rows):
    def __getitem__(self, i):
        return *self.noted, os.getpid()


def test_workers_know_who_they_are(method):
    taeda.manual_seed(3)
    seed = int(taeda.empty((), dtype=taeda.int64).random_())
    taeda.manual_seed(3)
    notes = list(
        loader(Noted(2), method, batch_size=None, worker_init_fn=note_worker, num_workers=1)
    )
    assert [n[:4] for n in notes] == [[0, 0, 1, seed]] * 2
    assert (notes[0][4] == os.getpid()) == (method == "thread")
    assert data.get_worker_info() is None


class OwnGenerators(Rows):
    def __getitem__(self, i):
        rng = data.get_worker_info().rng
        return (
            rng.random_generator.random(),
            taeda.rand(1, generator=rng.torch_generator),
            rng.numpy_generator.random(),
        )


def test_threads_have_generators_of_their_own():
    pytest.importorskip("numpy")

    def run(workers):
        taeda.manual_seed(4)
        return plain(list(loader(OwnGenerators(6), "thread", num_workers=workers)))

    assert run(2) == run(2) and run(2) != run(1)
    before = random.getstate()
    run(2)
    assert random.getstate() == before


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_random_numbers_and_order_equal_pytorchs(method):
    torch = pytest.importorskip("torch")
    pytest.importorskip("numpy")
    theirs = multiprocessing.get_context("fork")  # the class below cannot be imported

    class TheirNoise(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, i):
            import numpy

            return (
                i,
                random.random(),
                torch.rand(3),
                numpy.random.rand(2),
                random.gauss(0, 1),
                numpy.random.randn(),
            )

    torch.manual_seed(7)
    taeda.manual_seed(7)
    expected = torch.utils.data.DataLoader(
        TheirNoise(), 2, shuffle=True, num_workers=2, multiprocessing_context=theirs
    )
    ours = loader(Noise(), method, batch_size=2, shuffle=True)
    for _ in range(2):
        for a, b in zip(ours, expected, strict=True):
            for x, y in zip(a, b, strict=True):
                assert x.tolist() == y.tolist() and str(x.dtype) == str(y.dtype)
    assert taeda.rand(2).tolist() == torch.rand(2).tolist()


class Structures(data.Dataset):
    """Samples whose structure must arrive as it is."""

    def __len__(self):
        return 1

    def __getitem__(self, i):
        base = taeda.arange(20000.0)
        grad = taeda.ones(3, requires_grad=True)
        return {
            "point": Point(base.view(100, 200).t(), [None, "text", 2.5, b"bytes"]),
            "views": (base[:100], base[50:150], base[19000:]),
            "small": (taeda.arange(10), taeda.arange(10)[2:5]),
            "same": [grad, grad],
            "grad": grad,
            "parameter": taeda.nn.Parameter(taeda.zeros(2)),
            "sparse": taeda.eye(3).to_sparse(),
            "csr": taeda.eye(3).to_sparse_csr(),
            "empty": taeda.empty(0, 3),
            "expanded": taeda.ones(1).expand(1000, 1000),
            "strided": base[::7],
            "bool": taeda.tensor([True, False]),
            "half": taeda.ones(2, dtype=taeda.bfloat16),
            "complex": taeda.tensor([1 + 2j]),
            "storage": taeda.arange(3).untyped_storage(),
            "meta": taeda.empty(2, 3, device="meta"),
        }


def test_structures_arrive_as_they_are(method):
    (got,) = loader(Structures(), method, batch_size=None, num_workers=1)
    base = taeda.arange(20000.0)
    assert type(got["point"]) is Point and got["point"].y == [None, "text", 2.5, b"bytes"]
    assert got["point"].x.stride() == (1, 200)
    assert taeda.equal(got["point"].x, base.view(100, 200).t())
    a, b, c = got["views"]
    a[60] = -1
    assert b[10] == -1 and taeda.equal(c, base[19000:])
    small, part = got["small"]
    assert small.tolist() == list(range(10)) and part.tolist() == [2, 3, 4]
    assert got["same"][0] is got["same"][1] is got["grad"]
    assert got["grad"].requires_grad and got["grad"].is_leaf
    assert type(got["parameter"]) is taeda.nn.Parameter and got["parameter"].requires_grad
    assert taeda.equal(got["sparse"].to_dense(), taeda.eye(3)) and got["sparse"].is_sparse
    assert taeda.equal(got["csr"].to_dense(), taeda.eye(3))
    assert got["empty"].shape == (0, 3)
    assert got["expanded"].shape == (1000, 1000) and got["expanded"].untyped_storage().nbytes() < 99
    assert taeda.equal(got["strided"], base[::7])
    assert got["bool"].tolist() == [True, False] and got["half"].dtype is taeda.bfloat16
    assert got["complex"].tolist() == [1 + 2j]
    assert bytes(got["storage"]) == bytes(taeda.arange(3).untyped_storage())
    assert got["meta"].is_meta and got["meta"].shape == (2, 3)


class Arrays(data.Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, i):
        import numpy

        return numpy.full((100, 100), i), numpy.asfortranarray(numpy.eye(3)), numpy.float32(i)


def test_numpy_arrays_of_a_custom_collate_are_arrays(method):
    numpy = pytest.importorskip("numpy")
    for i, batch in enumerate(loader(Arrays(), method, collate_fn=first)):
        big, fortran, scalar = batch
        assert type(big) is numpy.ndarray and (big == i).all() and scalar == i
        assert (fortran == numpy.eye(3)).all()
        big += 1
        assert (big == i + 1).all()
    big, _, scalars = next(iter(loader(Arrays(), method, batch_size=3)))
    assert big.shape == (3, 100, 100) and big[2, 5, 5] == 2 and scalars.tolist() == [0, 1, 2]


class Marked(taeda.Tensor):
    pass


class Subclasses(data.Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, i):
        x = taeda.arange(4.0).as_subclass(Marked)
        x.mark = "m"
        return x


def test_subclasses_and_attributes_of_tensors_arrive(method):
    (got,) = loader(Subclasses(), method, batch_size=None, num_workers=1)
    assert type(got) is Marked and got.mark == "m" and got.tolist() == [0, 1, 2, 3]


def test_a_sample_that_is_sent_twice_is_a_copy_each_time():
    x = taeda.zeros(20000)
    one, two = loader(Identity([x, x]), "fork", batch_size=None, num_workers=1)
    one += 1
    assert two.sum() == 0


def test_batches_are_ordinary_tensors():
    batch, *_ = next(iter(loader(Rows(), "fork", batch_size=4)))
    assert batch.is_contiguous() and not batch.requires_grad and batch.is_leaf
    batch.add_(1)
    w = taeda.ones(50, 200, requires_grad=True)
    (w * batch).sum().backward()
    assert w.grad.shape == (50, 200)
    batch.resize_(5, 50, 200)
    assert batch[3, 0, 0] == 4
    assert batch.numpy()[0, 0, 0] == 1


def test_kept_batches_do_not_change():
    """Blocks are used again; those of batches that somebody has are not."""
    kept = [batch[0] for batch in loader(Rows(60), "fork", batch_size=2)]
    for i, batch in enumerate(kept):
        assert batch[:, 0, 0].tolist() == [2 * i, 2 * i + 1]


def test_memory_of_batches_goes_with_them():
    held = taeda._C._WorkerChannel.held
    kept = [batch[0] for batch in loader(Rows(30), "fork", batch_size=2)]
    assert held()[0] > 0
    del kept
    assert held() == (0, 0)


def test_many_kept_batches_move_to_memory_of_their_own():
    kept = [batch for batch in loader(Identity([taeda.ones(10000)] * 700), "fork")]
    assert len(kept) == 700 and taeda._C._WorkerChannel.held()[0] <= 514


def test_a_forked_child_keeps_its_copy_of_a_batch():
    batches = iter(loader(Rows(40), "fork", batch_size=2))
    mine = [next(batches)[0]]
    receiver, sender = multiprocessing.Pipe(False)

    def child(go, mine):
        go.wait(30)
        sender.send(mine[0][:, 0, 0].tolist())

    context = multiprocessing.get_context("fork")
    go = context.Event()
    process = context.Process(target=child, args=(go, mine))
    process.start()
    mine[0].fill_(-1)  # the parent's, which the child does not see
    mine.clear()
    for _ in batches:
        pass  # the worker writes to the same memory again
    go.set()
    assert receiver.recv() == [0, 1]
    process.join()


def test_workers_of_a_loader_can_read_batches_of_another():
    batches = [batch[0] for batch in loader(Rows(6), "fork", batch_size=2)]
    again = list(loader(Identity(batches), "fork", batch_size=None))
    assert [x[:, 0, 0].tolist() for x in again] == [[0, 1], [2, 3], [4, 5]]


def test_a_message_without_memory_to_share_goes_by_the_pipe(monkeypatch):
    small = taeda._C._WorkerChannel

    def tiny(capacity):
        return small(capacity, 1 << 21)

    monkeypatch.setattr(taeda._C, "_WorkerChannel", tiny)
    tiny.event = small.event
    samples = [taeda.full((600_000,), float(i)) for i in range(5)]
    got = list(loader(Identity(samples), "fork", batch_size=None))
    assert [x[-1].item() for x in got] == [0, 1, 2, 3, 4] and got[3].shape == (600_000,)


def test_large_index_batches_and_results_without_tensors():
    n = 200_000
    got = list(loader(range(n), "fork", batch_size=n, collate_fn=as_list, num_workers=1))
    assert got[0] == list(range(n))


def test_stats_say_who_waits():
    slow = loader(Slow(6), "fork", batch_size=2)
    for _ in slow:
        pass
    stats = slow.stats()
    assert stats["batches"] == 3 and stats["bytes"] > 0 and stats["batches_per_second"] > 0
    assert stats["trainer_waited_seconds"] >= 0.9
    assert sum(w["batches"] for w in stats["workers"]) == 3
    assert max(w["loading_seconds"] for w in stats["workers"]) >= 0.9


@pytest.mark.parametrize("method", ["fork", "thread"])
def test_stats_say_what_each_worker_sent(method):
    samples = [(taeda.zeros(1000), b"row") for _ in range(8)]
    source = loader(Identity(samples), method, batch_size=2)
    assert len(list(source)) == 4
    stats = source.stats()
    least = 8 * (4 * 1000 + 3)
    assert least <= stats["bytes"] < 10 * least  # with random states
    assert sum(worker["bytes"] for worker in stats["workers"]) == stats["bytes"]
    assert all(worker["sending_seconds"] > 0 for worker in stats["workers"])


def test_options_are_checked_as_pytorchs():
    with pytest.raises(ValueError, match="can only be used with multi-process loading"):
        DataLoader(Rows(), multiprocessing_context="fork")
    with pytest.raises(ValueError, match="should specify a valid start method in"):
        loader(Rows(), "threads")
    with pytest.raises(TypeError, match="should be a valid context object"):
        loader(Rows(), 3)
    with pytest.raises(ValueError, match="needs num_workers > 0"):
        DataLoader(Rows(), persistent_workers=True)
    with pytest.raises(NotImplementedError, match="cannot be pickled"):
        iter(DataLoader(Rows())).__getstate__()
    with pytest.warns(UserWarning, match="suggested max number of worker"):
        loader(Rows(), "fork", num_workers=1000)
    context = multiprocessing.get_context("fork")
    assert len(list(loader(Rows(), context))) == 10


def test_unpicklable_arguments_of_workers_say_so():
    with (
        pytest.warns(UserWarning, match="Got pickle error"),
        pytest.raises((AttributeError, TypeError)),
    ):
        iter(loader(Rows(), "spawn", collate_fn=lambda x: x))


def test_private_names_are_where_programs_look():
    from taeda.utils.data import _utils, dataloader

    batches = iter(loader(Rows(), "fork"))
    assert isinstance(batches, dataloader._MultiProcessingDataLoaderIter)
    assert isinstance(batches, dataloader._BaseDataLoaderIter)
    assert len(batches._workers) == 2 and batches._workers[0].pid
    assert _utils.worker.WorkerInfo and _utils.fetch._MapDatasetFetcher
    assert _utils.pin_memory.pin_memory and _utils.ExceptionWrapper
    batches._shutdown_workers()
    assert not any(worker.is_alive() for worker in batches._workers)


def test_length_warning_names_replicas():
    class Wrong(Shard):
        def __len__(self):
            return 1

    wrong = loader(Wrong(4), "fork", batch_size=None)
    assert len(wrong) == 1
    with pytest.warns(UserWarning, match="not properly configuring"):
        list(wrong)


def test_pipes_are_sharded_and_shuffled_alike_by_all_workers():
    from taeda.utils.data.datapipes.iter import IterableWrapper

    pipe = IterableWrapper(range(20)).shuffle().sharding_filter()
    got = plain(list(loader(pipe, "fork", batch_size=2, shuffle=True)))
    assert sorted(x for batch in got for x in batch) == list(range(20))


def test_workers_are_gone_when_the_program_leaves_the_loop(method):
    batches = iter(loader(Rows(), method))
    next(batches)
    workers = batches._workers
    begin = time.monotonic()
    del batches
    assert time.monotonic() - begin < 5
    assert not any(worker.is_alive() for worker in workers)


def test_signals_do_not_disturb_waiting():
    seen = []
    old = signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    try:
        assert len(list(loader(Slow(4), "fork"))) == 4
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert seen


def test_no_warning_is_raised_by_ordinary_use():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(loader(Rows(), "fork"))) == 10


def test_workers_use_their_memory_again():
    """Blocks are free as soon as the trainer has let go of them, without the garbage collector."""
    addresses = {batch[0].data_ptr() for batch in loader(Rows(80), "fork", batch_size=2)}
    assert len(addresses) <= 12


@pytest.mark.filterwarnings("default:This DataLoader will create")
def test_processors_are_counted_where_a_process_is_bound_to_none(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    with pytest.warns(UserWarning, match="suggested max number of worker in current system is 2"):
        DataLoader(range(4), num_workers=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DataLoader(range(4), num_workers=2)
        monkeypatch.setattr(os, "cpu_count", lambda: None)
        DataLoader(range(4), num_workers=3)
