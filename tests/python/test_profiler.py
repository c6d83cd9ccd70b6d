"""torch.profiler and torch.autograd.profiler."""

import json
import threading
from collections import Counter

import pytest

import taeda
from taeda.autograd import profiler as recorder
from taeda.autograd import profiler_util
from taeda.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule


def train(model, x):
    model(x).sum().backward()


@pytest.fixture
def model():
    return taeda.nn.Sequential(taeda.nn.Linear(4, 3), taeda.nn.ReLU(), taeda.nn.Linear(3, 2))


def test_operators_and_blocks_nest(model):
    with profile(record_shapes=True) as prof:
        with record_function("outer"):
            train(model, taeda.ones(5, 4))
        taeda.ones(2) + 1
    events = prof.events()
    names = [event.name for event in events]
    assert names[0] == "outer" and events[0].is_user_annotation
    linear = next(event for event in events if event.name == "aten::linear")
    assert linear.cpu_parent is events[0] and linear in events[0].cpu_children
    assert linear.input_shapes == [[5, 4], [3, 4], [3]]
    add = next(event for event in events if event.name == "aten::add")
    assert add.cpu_parent is None
    for event in events:
        inside = sum(child.cpu_time_total for child in event.cpu_children)
        assert event.self_cpu_time_total == pytest.approx(event.cpu_time_total - inside)
        for child in event.cpu_children:
            assert event.time_range.start <= child.time_range.start
            assert child.time_range.end <= event.time_range.end
    top = sum(event.cpu_time_total for event in events if event.cpu_parent is None)
    assert events.self_cpu_time_total == pytest.approx(top)


def test_averages(model):
    with recorder.profile(record_shapes=True) as prof:
        for n in (2, 2, 3):
            model(taeda.ones(n, 4))
    events, averages = prof.function_events, prof.key_averages()
    counts = Counter(event.name for event in events)
    assert {a.key: a.count for a in averages} == counts and counts["aten::linear"] == 6
    for average in averages:
        own = [event for event in events if event.name == average.key]
        assert average.cpu_time_total == pytest.approx(sum(e.cpu_time_total for e in own))
        assert average.cpu_time == pytest.approx(average.cpu_time_total / len(own))
    by_shape = prof.key_averages(group_by_input_shape=True)
    shapes = Counter(str(e.input_shapes) for e in events if e.name == "aten::linear")
    assert {str(a.input_shapes): a.count for a in by_shape if a.key == "aten::linear"} == shapes
    assert prof.total_average().count == len(events)
    assert prof.total_average().key == "Total"


def both_lists():
    """The same made-up events here and in PyTorch."""
    util = pytest.importorskip("torch.autograd.profiler_util")
    rows = [
        ("aten::linear", 0.0, 2_500_000.0, [[2, 3], [4, 3], []], 1500),
        ("aten::addmm", 10.0, 1510.25, [[4], [2, 3], [3, 4]], 48_000_000),
        ("a" * 70, 2000.0, 2000.5, [], 0),
        ("aten::addmm", 3000.0, 3001.0, [[1]], 0),
    ]
    ours, theirs = [], []
    for i, (name, start, end, shapes, flops) in enumerate(rows):
        arguments = (i, name, 1, start, end)
        ours.append(
            profiler_util.FunctionEvent(*arguments, input_shapes=shapes, stack=[], flops=flops)
        )
        theirs.append(util.FunctionEvent(*arguments, input_shapes=shapes, stack=[], flops=flops))
    made = profiler_util.EventList(ours, with_flops=True), util.EventList(theirs, with_flops=True)
    for events in made:
        events._build_tree()
    return made


TABLES = [
    {},
    {"sort_by": "cpu_time_total"},
    {"sort_by": "count", "row_limit": 1},
    {"sort_by": "self_cpu_time_total", "row_limit": -1, "header": "Title"},
    {"top_level_events_only": True},
    {"time_unit": "ms", "max_name_column_width": 20, "max_shapes_column_width": 12},
]


@pytest.mark.parametrize("options", TABLES)
@pytest.mark.parametrize("averaged", [False, True])
def test_tables_are_pytorchs(options, averaged):
    ours, theirs = both_lists()
    if averaged:
        ours, theirs = ours.key_averages(True), theirs.key_averages(True)
    assert ours.table(**options) == theirs.table(**options)


def test_unknown_orders_raise():
    ours, theirs = both_lists()
    for events in (ours, theirs):
        with pytest.raises(AttributeError):
            events.table(sort_by="nothing")


PLANS = [
    {"wait": 1, "warmup": 1, "active": 2},
    {"wait": 0, "warmup": 1, "active": 1, "repeat": 2},
    {"wait": 2, "warmup": 1, "active": 3, "skip_first": 4, "repeat": 1},
    {"wait": 2, "warmup": 1, "active": 1, "skip_first": 1, "skip_first_wait": 1},
]


@pytest.mark.parametrize("plan", PLANS)
def test_schedules_are_pytorchs(plan):
    theirs = pytest.importorskip("torch.profiler")
    ours = [schedule(**plan)(step).name for step in range(20)]
    assert ours == [theirs.schedule(**plan)(step).name for step in range(20)]


def steps_of(module, package, plan, count):
    """What on_trace_ready finds in each trace, by names of steps."""
    traces = []

    def ready(prof):
        names = [event.name for event in prof.events()]
        traces.append([n for n in names if n.startswith("ProfilerStep")])

    options = {"schedule": plan, "on_trace_ready": ready} if plan else {"on_trace_ready": ready}
    with module.profile(activities=[module.ProfilerActivity.CPU], **options) as prof:
        for _ in range(count):
            package.ones(2).sum()
            prof.step()
    return traces


@pytest.mark.parametrize("plan", [None, *PLANS])
@pytest.mark.parametrize("count", [1, 5, 9])
def test_traces_follow_the_schedule(plan, count):
    torch = pytest.importorskip("torch")
    theirs = torch.profiler
    found = [
        steps_of(module, package, module.schedule(**plan) if plan else None, count)
        for module, package in ((taeda.profiler, taeda), (theirs, torch))
    ]
    assert found[0] == found[1]


def test_wrong_schedules():
    for wrong in ({"wait": -1, "warmup": 1, "active": 1}, {"wait": 0, "warmup": 1, "active": 0}):
        with pytest.raises(AssertionError, match="Invalid"):
            schedule(**wrong)
    with pytest.warns(UserWarning, match="warmup"):
        schedule(wait=0, warmup=0, active=1)
    bad = {0: ProfilerAction.RECORD}
    with (
        pytest.warns(UserWarning, match="RECORD followed by NONE"),
        profile(schedule=lambda step: bad.get(step, ProfilerAction.NONE)) as prof,
    ):
        prof.step()


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_chrome_traces(ending, model, tmp_path):
    with profile(record_shapes=True) as prof, record_function("mine"):
        train(model, taeda.ones(5, 4))
    prof.add_metadata_json("extra", json.dumps([1, 2]))
    path = tmp_path / f"trace.json{ending}"
    prof.export_chrome_trace(str(path))
    if ending:
        import gzip

        trace = json.loads(gzip.decompress(path.read_bytes()))
    else:
        trace = json.loads(path.read_text())
    rows = [row for row in trace["traceEvents"] if row["ph"] == "X"]
    assert [row["name"] for row in rows] == [event.trace_name for event in prof.events()]
    assert rows[0]["cat"] == "user_annotation" and rows[1]["cat"] == "cpu_op"
    assert all(row["dur"] >= 0 for row in rows) and trace["extra"] == [1, 2]


def test_trace_handler(tmp_path):
    handler = taeda.profiler.tensorboard_trace_handler(str(tmp_path / "new"), "worker")
    with profile(on_trace_ready=handler):
        taeda.ones(2).sum()
    (path,) = (tmp_path / "new").iterdir()
    assert path.name.startswith("worker.") and path.name.endswith(".pt.trace.json")
    assert json.loads(path.read_text())["traceEvents"]


def test_stacks_and_flops(model, tmp_path):
    with profile(with_stack=True, with_flops=True) as prof:
        taeda.ones(4, 5) @ taeda.ones(5, 6)
    product = next(event for event in prof.events() if event.name == "aten::matmul")
    assert product.flops == 2 * 4 * 5 * 6 and product.input_shapes == []
    assert "test_profiler.py" in product.stack[0]
    prof.export_stacks(str(tmp_path / "stacks"), "self_cpu_time_total")
    assert "test_profiler.py" in (tmp_path / "stacks").read_text()
    assert "Source Location" in prof.key_averages(group_by_stack_n=1).table()


def test_operators_enter_and_leave_blocks():
    operators = taeda.ops.profiler
    with profile() as prof:
        handle = operators._record_function_enter("by operator")
        taeda.ones(2)
        operators._record_function_exit(handle)
        operators._record_function_exit(handle)  # again: nothing
    outer = [event for event in prof.events() if event.name == "by operator"]
    assert len(outer) == 1
    assert "aten::ones" in [child.name for child in outer[0].cpu_children]
    with pytest.raises(RuntimeError, match="handle"):
        operators._record_function_exit(taeda.ones(2))
    with pytest.raises(RuntimeError, match="'name'"):
        operators._record_function_enter(3)


class BlocksTracer(taeda.fx.Tracer):
    """Puts the operators that enter and leave blocks into the graph."""

    def trace(self, root, concrete_args=None):
        def enter(block):
            target = taeda.ops.profiler._record_function_enter
            block.handle = self.create_proxy("call_function", target, (block.name,), {})

        def leave(block, *exception):
            taeda.ops.profiler._record_function_exit(block.handle)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(record_function, "__enter__", enter)
            patch.setattr(record_function, "__exit__", leave)
            return super().trace(root, concrete_args)


def test_traced_programs_keep_their_blocks():
    def program(x):
        with record_function("traced"):
            return taeda.relu(x)

    graph = BlocksTracer().trace(program)
    graph.eliminate_dead_code()
    module = taeda.fx.GraphModule({}, graph)
    with profile() as prof:
        module(taeda.ones(3))
    block = next(event for event in prof.events() if event.name == "traced")
    assert "aten::relu" in [child.name for child in block.cpu_children]


def test_functions_are_decorated():
    @record_function("twice")
    def twice(n):
        return twice(n - 1) if n else taeda.ones(2) * 2

    with profile() as prof:
        twice(2)
    assert [event.name for event in prof.events()].count("twice") == 3
    assert twice(0).tolist() == [2.0, 2.0] and twice.__name__ == "twice"


def test_blocks_of_other_threads_are_not_recorded():
    def work(package):
        with package.profiler.record_function("there"):
            package.ones(2)

    torch = pytest.importorskip("torch")
    for package in (taeda, torch):
        with package.autograd.profiler.profile() as prof:
            thread = threading.Thread(target=work, args=[package])
            thread.start()
            thread.join()
        assert not prof.function_events


def allocate(package):
    x = package.ones(1000)
    y = package.ones(2000)
    del x
    return package.mm(package.ones(8, 100), package.ones(100, 50)), y


def test_memory_is_pytorchs():
    torch = pytest.importorskip("torch")
    found = []
    for package in (taeda, torch):
        with package.autograd.profiler.profile(profile_memory=True) as prof:
            allocate(package)
        found.append({a.key: a for a in prof.key_averages()})
        text = prof.key_averages().table()
        assert "  CPU Mem  Self CPU Mem    # of Calls" in text
    ours, theirs = found
    for name in ("aten::ones", "aten::mm", "[memory]"):
        assert ours[name].cpu_memory_usage == theirs[name].cpu_memory_usage
    assert ours["aten::ones"].cpu_memory_usage == 4 * (1000 + 2000 + 800 + 5000)
    assert ours["[memory]"].cpu_memory_usage == -sum(
        average.self_cpu_memory_usage for name, average in ours.items() if name != "[memory]"
    )


def test_memory_is_not_recorded_unasked():
    with recorder.profile() as prof:
        allocate(taeda)
    assert all(event.cpu_memory_usage == 0 for event in prof.function_events)
    assert "CPU Mem" not in prof.table()


def test_errors_end_blocks_and_records():
    with pytest.raises(RuntimeError, match="shape"), profile() as prof, record_function("fails"):
        taeda.ones(2, 3) @ taeda.ones(2, 3)
    assert prof.events()[0].name == "fails"


def test_one_at_a_time():
    with profile(), pytest.raises(RuntimeError, match="already enabled"):
        profile().start()
    with profile():  # and the failed attempt left nothing behind
        pass


def test_what_is_not_there(tmp_path):
    with pytest.warns(UserWarning, match="CUDA is not available"):
        profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
    for kind in (recorder.emit_nvtx, recorder.emit_itt):
        with pytest.raises(RuntimeError, match=kind.__name__), kind():
            pass
        with kind(enabled=False):
            pass
    with pytest.raises(RuntimeError, match="didn't finish"):
        recorder.profile().table()
    with pytest.raises(AssertionError, match="No valid profiler activities"):
        profile(activities=[])
    assert taeda.profiler.kineto_available()
    with recorder.profile(enabled=False):
        with profile() as prof:
            taeda.ones(1)
        assert prof.events()


def test_keys_that_must_be_unique():
    for package in (recorder, pytest.importorskip("torch.autograd.profiler")):
        keys = package.EnforceUnique()
        keys.see("a", 1)
        keys.see("a", 2)
        with pytest.raises(RuntimeError, match="duplicate key"):
            keys.see("a", 1)
