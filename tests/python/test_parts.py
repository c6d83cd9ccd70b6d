"""Small parts of the interface: process groups that are not there, switches, futures, old names."""

import pickle
import subprocess
import sys
import threading

import pytest
import taeda.backends.cudnn

import taeda as torch


@pytest.fixture
def theirs():
    return pytest.importorskip("torch")


def outcome(call):
    try:
        return call()
    except Exception as error:
        return type(error), str(error)


# --- torch.distributed ---

BEFORE_INIT = {
    "get_rank": lambda d, x: d.get_rank(),
    "get_world_size": lambda d, x: d.get_world_size(),
    "get_backend": lambda d, x: d.get_backend(),
    "barrier": lambda d, x: d.barrier(),
    "all_reduce": lambda d, x: d.all_reduce(x),
    "all_gather_object": lambda d, x: d.all_gather_object([None], 1),
    "destroy_process_group": lambda d, x: d.destroy_process_group(),
    "is_initialized": lambda d, x: d.is_initialized(),
    "get_node_local_rank": lambda d, x: d.get_node_local_rank(3),
    "is_torchelastic_launched": lambda d, x: d.is_torchelastic_launched(),
    "Backend": lambda d, x: (
        d.Backend("NCCL"),
        d.Backend.GLOO,
        {k: d.Backend.default_device_backend_map[k] for k in ("cpu", "cuda", "xpu", "mps")},
    ),
    "group": lambda d, x: (d.group.WORLD, d.GroupMember.NON_GROUP_MEMBER),
    "get_default_backend_for_device": lambda d, x: d.get_default_backend_for_device("cuda:1"),
    "timeout": lambda d, x: d.constants.default_pg_timeout,
}


@pytest.mark.parametrize("call", BEFORE_INIT.values(), ids=BEFORE_INIT)
def test_one_process_asks(theirs, call):

    mine = outcome(lambda: call(torch.distributed, torch.ones(2)))
    assert mine == outcome(lambda: call(theirs.distributed, theirs.ones(2)))


def test_no_process_groups():
    from taeda.distributed.elastic.multiprocessing.errors import record
    from taeda.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy, StateDictType
    from taeda.distributed.fsdp.fully_sharded_data_parallel import StateDictType as again
    from taeda.distributed.tensor import DTensor, Shard

    import taeda.distributed as dist
    from taeda.distributed._tensor import Shard as old_shard  # isort: skip

    assert not dist.is_available() and not dist.is_nccl_available()
    with pytest.raises(NotImplementedError, match=r"torch\.distributed\.init_process_group: "):
        dist.init_process_group("gloo")
    assert not isinstance(torch.ones(2), DTensor)
    assert not isinstance(torch.nn.Linear(1, 1), FullyShardedDataParallel)
    assert StateDictType is again and Shard is old_shard
    assert ShardingStrategy.FULL_SHARD.name == "FULL_SHARD"
    assert dist.ReduceOp.SUM is dist.ReduceOp["SUM"]
    with pytest.raises(NotImplementedError, match="FullyShardedDataParallel"):
        FullyShardedDataParallel(torch.nn.Linear(1, 1))
    assert record(len)("abc") == 3


def test_options_of_sharding_are_values_without_processes():
    from taeda.distributed import fsdp
    from taeda.distributed import tensor as placed

    assert placed.Shard(0) == placed.Shard(0) != placed.Shard(1)
    assert len({placed.Shard(0), placed.Shard(0), placed.Replicate()}) == 2
    assert placed.Shard(1).is_shard(1) and not placed.Shard(1).is_shard(0)
    assert placed.Replicate().is_replicate() and placed.Partial("max").is_partial("max")
    assert [str(x) for x in (placed.Shard(1), placed.Replicate(), placed.Partial())] == [
        "S(1)",
        "R",
        "P(sum)",
    ]
    mixed = fsdp.MixedPrecision(param_dtype=torch.bfloat16)
    assert mixed.cast_root_forward_inputs and mixed == pickle.loads(pickle.dumps(mixed))
    assert fsdp.FullStateDictConfig(rank0_only=True).offload_to_cpu is False
    with pytest.raises(NotImplementedError, match="does not shard"):
        fsdp.fully_shard(torch.nn.Linear(1, 1))


@pytest.mark.parametrize(
    "name",
    (
        "_utils._rebuild_tensor_v2 _VF.gru_cell _jit_internal nn.common_types nn.grad "
        "cuda.amp.grad_scaler.GradScaler cuda.amp.autocast_mode.autocast "
        "utils._contextlib._DecoratorContextManager"
    ).split(),
)
def test_modules_that_torch_loads_are_attributes(name):
    script = f"import taeda; taeda.{name}"
    if name.startswith(("cuda.amp", "utils._c")):
        script = f"import taeda.{name.rpartition('.')[0]}; taeda.{name}"
    subprocess.run([sys.executable, "-c", script], check=True)


# --- devices that are not there ---

DEVICE_CALLS = (
    "is_available device_count current_device synchronize memory_allocated empty_cache "
    "max_memory_allocated get_rng_state_all get_device_name initial_seed is_initialized "
    "current_allocated_memory driver_allocated_memory recommended_max_memory mem_get_info seed "
    "get_device_properties is_bf16_supported"
).split()


@pytest.mark.parametrize("device", ["xpu", "mps", "mtia"])
@pytest.mark.parametrize("name", DEVICE_CALLS)
def test_absent_devices_answer_as_pytorchs(theirs, device, name):
    module = getattr(theirs, device)
    if module.is_available() or not hasattr(module, name) or (device, name) in DIFFERENT:
        pytest.skip("PyTorch has no such answer")
    mine, answer = (outcome(getattr(getattr(t, device), name)) for t in (torch, theirs))
    if isinstance(answer, tuple):
        assert mine[0] is answer[0]
        return
    assert mine == answer


# Where PyTorch's own answer is no answer.
DIFFERENT = {
    ("mtia", "is_bf16_supported"),
    ("mtia", "initial_seed"),
    ("mtia", "get_rng_state"),
    ("mps", "empty_cache"),
}


def test_names_of_absent_devices_can_be_read():
    for name in ("Stream", "Event", "StreamContext"):
        with pytest.raises(NotImplementedError, match=f"torch.xpu.{name}"):
            getattr(torch.xpu, name)()


# --- switches ---


def test_flags_are_put_back():
    cudnn = torch.backends.cudnn
    before = (cudnn.enabled, cudnn.benchmark)
    with cudnn.flags(enabled=not before[0], benchmark=True):
        assert (cudnn.enabled, cudnn.benchmark) == (not before[0], True)
    assert (cudnn.enabled, cudnn.benchmark) == before
    old = cudnn.set_flags(True, True)
    assert cudnn.benchmark and old[:2] == before
    cudnn.set_flags(*old)
    assert (cudnn.enabled, cudnn.benchmark) == before


def test_sdp_switches():
    cuda = torch.backends.cuda
    with cuda.sdp_kernel(enable_flash=False):
        assert not cuda.flash_sdp_enabled() and cuda.math_sdp_enabled()
    assert cuda.flash_sdp_enabled()
    cuda.enable_mem_efficient_sdp(False)
    assert not cuda.mem_efficient_sdp_enabled()
    cuda.enable_mem_efficient_sdp(True)


@pytest.mark.parametrize(
    "library", "cudnn mps mkldnn opt_einsum mha nnpack cusparselt kleidiai openmp quantized".split()
)
def test_libraries_have_pytorchs_names(theirs, library):
    mine = getattr(torch.backends, library)
    for name in ("is_available", "enabled", "strategy", "flags", "version", "is_built"):
        if hasattr(getattr(theirs.backends, library), name):
            assert hasattr(mine, name), name


# --- futures ---


def test_futures():
    futures = [torch.futures.Future() for _ in range(3)]
    doubled = [future.then(lambda done: 2 * done.wait()) for future in futures]
    called = []
    futures[0].add_done_callback(lambda done: called.append(done.value()))
    threads = [threading.Thread(target=f.set_result, args=(i,)) for i, f in enumerate(futures)]
    for thread in threads:
        thread.start()
    assert torch.futures.wait_all(doubled) == [0, 2, 4]
    assert torch.futures.collect_all(futures).wait() == futures
    assert called == [0] and all(future.done() for future in futures)
    for thread in threads:
        thread.join()


def test_futures_that_fail():
    future = torch.futures.Future()
    with pytest.raises(RuntimeError):
        future.value()
    following = future.then(lambda done: done.value())
    future.set_exception(KeyError("gone"))
    for failed in (future, following):
        with pytest.raises(KeyError, match="gone"):
            failed.wait()
    with pytest.raises(RuntimeError, match="once"):
        future.set_result(1)


# --- old names, sizes that are symbols ---


def test_storage_classes(theirs):
    for t in (torch, theirs):
        storage = t.FloatStorage([1.0, 2.0])
        assert storage.dtype is t.float32 and storage.tolist() == [1.0, 2.0]
        assert isinstance(storage, t.FloatStorage) and not isinstance(storage, t.LongStorage)
        assert t.ByteStorage.from_buffer(b"ab").tolist() == [97, 98]
        assert len(t.DoubleStorage(3)) == 3
    names = {name for name in dir(theirs) if name.endswith("Storage") and name[0] != "Q"}
    assert names <= set(dir(torch))


def test_symbols_are_numbers(theirs):
    for t in (torch, theirs):
        assert (t.sym_max(2, 3.0), t.sym_min(2, 3.0), t.sym_int(3.7)) == (3.0, 2.0, 3)
        assert isinstance(t.sym_min(2, 3.0), float) and t.sym_ite(True, 1, 2) == 1
        assert t.sym_sum([1, 2]) == 3 and t.sym_not(False) is True
        assert not isinstance(3, (t.SymInt, t.SymFloat, t.SymBool))


def test_dtypes_that_no_tensor_has(theirs):
    for name in ("int4", "uint2", "bits8", "qint8"):
        assert repr(getattr(torch, name)) == repr(getattr(theirs, name))
        with pytest.raises(TypeError):
            torch.zeros(2, dtype=getattr(torch, name))


# --- torch._C ---


def test_dispatch_keys(theirs):
    for t in (torch, theirs):
        key, keys = t._C.DispatchKey, t._C.DispatchKeySet
        both = keys(key.CPU) | keys(key.AutogradCPU)
        assert both.has(key.CPU) and not both.remove(key.CPU).has(key.CPU)
        assert (both & keys(key.CPU)) == keys(key.CPU) == both - keys(key.AutogradCPU)
        assert repr(both) == "DispatchKeySet(CPU, AutogradCPU)"
    assert {key.name for key in torch._C.DispatchKey} <= set(theirs._C.DispatchKey.__members__)


def test_functions_of_the_core():
    x = torch.randn(1, 1, 4, 4)
    twice = torch._C._nn.upsample_nearest2d(x, (8, 8))
    assert torch.equal(twice, torch.nn.functional.interpolate(x, scale_factor=2))
    assert torch._C._nn.gelu is torch.nn.functional.gelu
    assert torch._C._nn._parse_to("cpu", torch.float64) == (
        torch.device("cpu"),
        torch.float64,
        False,
        None,
    )
    values, _, counts = torch._C._VariableFunctions.unique_dim(torch.tensor([2, 1, 2]), 0)
    assert (values.tolist(), counts.numel()) == ([1, 2], 0)
    assert torch._C._get_tracing_state() is None
    torch._C._log_api_usage_once("a test")
    before = torch._C._jit_set_profiling_mode(True)
    assert torch._C._jit_set_profiling_mode(before) is True
    assert not hasattr(torch._C, "_no_such_name")
