"""CUDA graphs on simulated devices: capture, replay, what a capture forbids, the graph's memory."""

import threading

import pytest

import taeda as torch

KERNELS = hasattr(torch._C, "_cuda_has_kernels")
needs_kernels = pytest.mark.skipif(not KERNELS, reason="operators have no kernels for CUDA here")


@pytest.fixture
def x():
    return torch.arange(4.0).cuda()


def captured(function, **arguments):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, **arguments):
        result = function()
    return graph, result


def test_a_graph_runs_when_it_is_replayed_and_as_often(simulator, x):
    y = torch.zeros(4, device="cuda")

    def work():
        y.copy_(x)
        simulator.add(torch.cuda.current_stream(), y.data_ptr(), 4, 10.0)

    graph, _ = captured(work)
    assert y.tolist() == [0, 0, 0, 0]
    launches = simulator.count("launches")
    graph.replay()
    assert simulator.count("launches") == launches + 1
    assert y.tolist() == [10, 11, 12, 13]
    x.copy_(torch.ones(4))
    graph.replay()
    graph.replay()
    assert y.tolist() == [11, 11, 11, 11]


def test_an_accelerators_graph_captures_the_current_stream(x):
    stream, graph = torch.Stream("cuda"), torch.accelerator.Graph()
    y = torch.zeros(4, device="cuda")
    with stream, graph:
        y.copy_(x)
    assert y.tolist() == [0, 0, 0, 0]
    graph.replay()
    assert y.tolist() == [0, 1, 2, 3]
    other = torch.accelerator.Graph(pool=graph.pool(), capture_error_mode="relaxed")
    with stream, other:
        y.copy_(x * 2)
    assert other.pool() == graph.pool()
    other.replay()
    assert y.tolist() == [0, 2, 4, 6]
    with pytest.raises(KeyError), stream, torch.accelerator.Graph():
        raise KeyError("what the block raises is seen")
    graph.reset()
    with stream, graph:
        y.copy_(x * 3)
    graph.replay()
    assert y.tolist() == [0, 3, 6, 9]


def test_results_lie_in_the_graphs_pool(x):
    graph, y = captured(x.clone)
    pools = {
        s["segment_pool_id"]
        for s in torch.cuda.memory_snapshot()
        if s["address"] <= y.data_ptr() < s["address"] + s["total_size"]
    }
    assert pools == {graph.pool()}
    assert graph.pool()[1] == 0
    graph.replay()
    assert y.tolist() == [0, 1, 2, 3]
    address = y.data_ptr()
    del y
    torch.cuda.empty_cache()
    graph.replay()  # the pool keeps the memory that the graph works on
    name = graph.pool()
    assert torch.cuda.memory_snapshot(name)[0]["address"] <= address
    torch.cuda.synchronize()
    graph.reset()
    torch.cuda.empty_cache()
    assert not torch.cuda.memory_snapshot(name)


def test_graphs_may_share_a_pool(x):
    handle = torch.cuda.graph_pool_handle()
    first, y = captured(x.clone, pool=handle)
    del y
    second, z = captured(x.clone, pool=first.pool())
    assert first.pool() == second.pool() == handle
    assert len(torch.cuda.memory_snapshot(handle)) == 1
    second.replay()
    assert z.tolist() == [0, 1, 2, 3]


def test_whether_a_stream_is_captured(x):
    assert not torch.cuda.is_current_stream_capturing()
    side = torch.cuda.Stream()

    def work():
        assert torch.cuda.is_current_stream_capturing()
        assert torch.cuda.current_stream().is_capturing()
        assert not side.is_capturing()
        side.wait_stream(torch.cuda.current_stream())
        assert side.is_capturing()  # the event took it along
        torch.cuda.current_stream().wait_stream(side)
        x.copy_(x.clone())

    captured(work)
    assert not side.is_capturing()


def test_streams_that_fork_and_join_are_one_graph(simulator, x):
    y, z = torch.zeros(4, device="cuda"), torch.zeros(4, device="cuda")
    side = torch.cuda.Stream()

    def work():
        main = torch.cuda.current_stream()
        y.copy_(x)
        side.wait_stream(main)
        with torch.cuda.stream(side):
            z.copy_(y)
            simulator.add(side, z.data_ptr(), 4, 5.0)
        simulator.add(main, x.data_ptr(), 4, 1.0)  # beside it
        main.wait_stream(side)
        y.copy_(z)

    graph, _ = captured(work)
    for seed in range(6):  # whatever the order of what is not ordered
        simulator.schedule(seed)
        x.copy_(torch.arange(4.0))
        graph.replay()
        assert y.tolist() == [5, 6, 7, 8]
        assert x.tolist() == [1, 2, 3, 4]


def test_a_missing_event_inside_a_graph_is_a_race(x):
    y = torch.zeros(4, device="cuda")
    side = torch.cuda.Stream()

    def work():
        main = torch.cuda.current_stream()
        side.wait_stream(main)
        y.copy_(x)
        with torch.cuda.stream(side):
            x.copy_(y)

    with pytest.raises(RuntimeError, match=r"race: copy on the device reads what copy .* writes"):
        captured(work)
    assert not torch.cuda.is_current_stream_capturing()


def test_work_that_is_not_joined_is_refused(x):
    side = torch.cuda.Stream()

    def work():
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            x.copy_(x.clone())

    with pytest.raises(RuntimeError, match="unjoined work"):
        captured(work)
    x.copy_(x.clone())  # the streams work on as before
    assert x.tolist() == [0, 1, 2, 3]


FORBIDDEN = {
    "item": (lambda x: x[0].item(), "Tensor.item waits for the device", ""),
    "tolist": (lambda x: x.tolist(), "Tensor.tolist waits for the device", ""),
    "cpu": (lambda x: x.cpu(), "Cannot copy between CPU and CUDA", ""),
    "bool": (lambda x: bool(x[0]), "a look at a tensor's value, .* waits for the device", ""),
    "synchronize": (lambda x: torch.cuda.synchronize(), "torch.cuda.synchronize waits", ""),
    "stream": (lambda x: torch.cuda.current_stream().synchronize(), "Stream.synchronize waits", ""),
    "query": (lambda x: torch.cuda.current_stream().query(), "Stream.query waits", ""),
    "event": (lambda x: recorded().query(), "Event.query waits", ""),
    "event wait": (lambda x: recorded().synchronize(), "Event.synchronize waits", ""),
    "from the CPU": (lambda x: x.copy_(torch.ones(4)), "pin_memory", "copy_"),
    "blocking": (lambda x: x.copy_(torch.ones(4).pin_memory()), "not non_blocking", "copy_"),
    "operator without a kernel": (
        lambda x: torch.linalg.qr(x.reshape(2, 2)), "_linalg_qr has no kernel for these tensors",
        "linalg.qr",
    ),
    "product": (
        lambda x: x.reshape(2, 2) @ x.reshape(2, 2),
        "mm has no kernel for these tensors on device cuda:0 and runs on the CPU, on copies, "
        "which a CUDA graph cannot repeat", "",
    ),
    "copy of other dtypes": (
        lambda x: x.to(torch.uint16), "dtypes has no kernel for these tensors", "",
    ),
}  # fmt: skip


def recorded():
    event = torch.cuda.Event()
    event.record()
    return event


@pytest.mark.parametrize("name", FORBIDDEN)
def test_waiting_for_the_device_is_forbidden(x, name, quiet_fallback):
    call, text, operator = FORBIDDEN[name]
    with pytest.raises(RuntimeError, match=text) as error, pytest.warns() as _:
        captured(lambda: call(x))
        raise AssertionError("nothing was raised")
    notes = " ".join(getattr(error.value, "__notes__", []))
    assert operator in notes
    assert not torch.cuda.is_current_stream_capturing()
    graph, y = captured(x.clone)  # what went wrong leaves nothing behind
    graph.replay()
    assert y.tolist() == [0, 1, 2, 3]


def test_a_size_that_elements_decide_cannot_be_captured(x):
    with pytest.raises(RuntimeError, match="size depends on data waits for the device"):
        captured(x.nonzero)
    assert x.nonzero().flatten().tolist() == [1, 2, 3]

    def moves():
        y = x.index_put((x.long(),), x + 1, accumulate=True)
        return y.take(x.long().flip(0))

    graph, y = captured(moves)
    graph.replay()
    assert y.tolist() == [7, 5, 3, 1]


def test_pinned_memory_can_be_copied_in_a_graph(x):
    given, result = torch.ones(4).pin_memory(), torch.zeros(4).pin_memory()

    def work():
        x.copy_(given, non_blocking=True)
        result.copy_(x, non_blocking=True)

    graph, _ = captured(work)
    for value in (3.0, 4.0):
        given.fill_(value)
        graph.replay()
        torch.cuda.synchronize()
        assert result.tolist() == [value] * 4


def test_the_drivers_own_allocations_end_a_capture_but_not_the_allocators(simulator):
    def work():
        y = torch.empty(30 << 20, device="cuda")  # a segment of its own, made while capturing
        y[:10].copy_(y[10:20])

    allocations = simulator.count("allocations")
    captured(work)
    assert simulator.count("allocations") > allocations


def block_state(address):
    blocks = [b for s in torch.cuda.memory_snapshot() for b in s["blocks"]]
    return next(b["state"] for b in blocks if b["address"] <= address < b["address"] + b["size"])


def test_memory_freed_in_a_capture_waits_for_its_end(x):
    side = torch.cuda.Stream()
    y = torch.empty(1000, device="cuda")
    address = y.data_ptr()

    def work():
        nonlocal y
        y.record_stream(side)
        x.copy_(x.clone())
        y = None
        torch.empty(1000, device="cuda")  # asks for no event
        assert block_state(address) == "active_pending_free"

    captured(work)
    assert block_state(address) == "active_pending_free"
    torch.cuda.synchronize()
    torch.empty(1000, device="cuda")
    assert block_state(address) == "inactive"


def test_mistakes_are_named(x):
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.replay()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.pool()
    with pytest.raises(RuntimeError, match="must be captured on a non-default stream"):
        graph.capture_begin()
    with pytest.raises(RuntimeError, match="Unknown capture error mode"):
        graph.capture_begin(capture_error_mode="none")
    with pytest.raises(TypeError, match="graph_pool_handle"):
        graph.capture_begin(pool="pool")
    with torch.cuda.graph(graph):
        x.copy_(x.clone())
    with pytest.raises(RuntimeError, match="already owns a captured graph"):
        with torch.cuda.graph(graph):
            pass
    with pytest.raises(RuntimeError, match="keep_graph=true"):
        graph.raw_cuda_graph()
    assert graph.raw_cuda_graph_exec() != 0


def test_an_empty_graph_warns():
    with pytest.warns(UserWarning, match="The CUDA Graph is empty"):
        graph, _ = captured(lambda: None)
    graph.replay()


def test_kept_graphs_are_instantiated_later_and_can_be_drawn(x, tmp_path):
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        y = x.clone()
    assert graph.raw_cuda_graph() != 0
    with pytest.raises(RuntimeError, match="until instantiate"):
        graph.raw_cuda_graph_exec()
    graph.instantiate()
    graph.replay()
    assert y.tolist() == [0, 1, 2, 3]
    graph.debug_dump(tmp_path / "graph.dot")
    assert "copy on the device" in (tmp_path / "graph.dot").read_text()


@pytest.mark.parametrize(("mode", "refused"), [("global", True), ("thread_local", False)])
def test_other_threads_are_refused_by_mode(x, mode, refused):
    failed = []

    def other():
        try:
            event = torch.cuda.Event()
            event.record(torch.cuda.default_stream())
            event.query()
        except RuntimeError as error:
            failed.append(str(error))

    def work():
        x.copy_(x.clone())
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    if refused:
        with pytest.raises(RuntimeError, match="previous error during capture"):
            captured(work, capture_error_mode=mode)
        assert "operation not permitted when stream is capturing" in failed[0]
    else:
        captured(work, capture_error_mode=mode)[0].replay()
        assert not failed


def test_graphed_functions(x):
    def copies(a, b):
        return a.clone(), (b.clone(),)

    b = torch.ones(4, device="cuda", requires_grad=True)
    graphed = torch.cuda.make_graphed_callables(copies, (x, b))
    c = (2 * torch.ones(4)).cuda().requires_grad_()
    first, (second,) = graphed(torch.full((4,), 7.0).cuda(), c)
    assert first.tolist() == [7.0] * 4
    assert second.tolist() == [2.0] * 4
    second.backward(torch.arange(4.0).cuda())
    assert c.grad.tolist() == [0, 1, 2, 3]


def test_graphed_callables_refuse_what_they_cannot_do(x):
    make = torch.cuda.make_graphed_callables
    with pytest.raises(AssertionError, match="must contain only Tensors"):
        make(lambda a: a, (3,))
    module = torch.nn.Identity()
    module.register_forward_hook(lambda *a: None)
    with pytest.raises(AssertionError, match="must not have hooks"):
        make(module, (x,))


@needs_kernels
def test_a_step_in_a_graph_is_the_step(x):
    def step(weight, given):
        out = (given * weight).exp()
        return out, out * 2

    weight = torch.full((4,), 0.5, device="cuda", requires_grad=True)
    graphed = torch.cuda.make_graphed_callables(step, (weight, x))
    eager = step(weight, x * 3)
    eager[1].backward(torch.ones(4, device="cuda"))
    wanted, weight.grad = weight.grad, None
    result = graphed(weight, x * 3)
    result[1].backward(torch.ones(4, device="cuda"))
    assert [r.tolist() for r in result] == [e.tolist() for e in eager]
    assert weight.grad.tolist() == wanted.tolist()
