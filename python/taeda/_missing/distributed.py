"""torch.distributed and what is in it, all of which needs processes that exchange tensors."""

from __future__ import annotations

_ALONE = (
    "taeda has no process groups yet; run the program in one process, which asks "
    "torch.distributed.is_available() or is_initialized() before"
)
_SHARDS = "taeda does not shard tensors over processes yet; use the plain module or tensor"
_FILES = "taeda writes no sharded checkpoints yet; use torch.save and torch.load"
_RPC = "taeda has no remote calls yet; call the function"
_START = "taeda starts no groups of processes; use torch.multiprocessing.spawn"
_COLLECTIVES = (
    "all_gather all_gather_coalesced all_gather_into_tensor all_gather_object all_gather_single "
    "all_reduce all_reduce_coalesced all_to_all all_to_all_single barrier batch_isend_irecv "
    "broadcast broadcast_object_list gather gather_object irecv isend monitored_barrier recv "
    "recv_object_list reduce reduce_scatter reduce_scatter_single reduce_scatter_tensor scatter "
    "scatter_object_list send send_object_list "
)


def _options(names: str) -> str:
    """Values that are there without processes: taeda.distributed._options has them."""
    return " ".join(f"{name}=torch.distributed._options.{name}" for name in names.split())


_CONFIGURATION = (
    "BackwardPrefetch{BACKWARD_PRE,BACKWARD_POST} "
    "ShardingStrategy{FULL_SHARD,SHARD_GRAD_OP,NO_SHARD,HYBRID_SHARD,_HYBRID_SHARD_ZERO2} "
    "StateDictType{FULL_STATE_DICT,LOCAL_STATE_DICT,SHARDED_STATE_DICT} "
) + _options(
    "CPUOffload FullOptimStateDictConfig FullStateDictConfig LocalOptimStateDictConfig "
    "LocalStateDictConfig MixedPrecision OptimStateDictConfig ShardedOptimStateDictConfig "
    "ShardedStateDictConfig StateDictConfig StateDictSettings"
)

MODULES = {
    "torch.distributed": (
        _ALONE,
        # Those of _COLLECTIVES and the questions about groups are in the package itself.
        "AllToAllOptions AllreduceCoalescedOptions AllreduceOptions BackendConfig BarrierOptions "
        "BroadcastOptions BuiltinCommHookType{ALLREDUCE,FP16_COMPRESS} DistBackendError DistError "
        "DistNetworkError DistStoreError FileStore GatherOptions GradBucket HashStore Logger "
        "P2POp PrefixStore ProcessGroup ProcessGroupGloo QueueEmptyError ReduceOptions Reducer "
        "ReduceScatterOptions ScatterOptions Store TCPStore Work "
        "DebugLevel{OFF,INFO,DETAIL} "
        "ReduceOp{SUM,AVG,PRODUCT,MIN,MAX,BAND,BOR,BXOR,PREMUL_SUM} "
        "ReduceOp.RedOpType "
        "reduce_op=torch.distributed.ReduceOp "
        "GroupName RankType get_debug_level set_debug_level set_debug_level_from_env "
        "breakpoint init_process_group new_subgroups new_subgroups_by_enumeration shrink_group "
        "split_group supports_complex get_pg_count get_backend_config "
        "default_pg_timeout=torch.distributed.constants.default_pg_timeout "
        "register_rendezvous_handler rendezvous "
        "DeviceMesh=torch.distributed.device_mesh.DeviceMesh "
        "init_device_mesh=torch.distributed.device_mesh.init_device_mesh",
    ),
    "torch.distributed.distributed_c10d": (
        _ALONE,
        "*torch.distributed _get_default_group _get_group_size _resolve_process_group _pg_map={} "
        "is_initialized=torch.distributed.is_initialized "
        + " ".join(f"{name}=torch.distributed.{name}" for name in (
            *_COLLECTIVES.split(), *"Backend GroupMember group get_rank get_world_size get_backend "
            "get_global_rank get_group_rank get_process_group_ranks get_node_local_rank new_group "
            "destroy_process_group is_nccl_available is_gloo_available is_mpi_available "
            "is_ucc_available is_xccl_available is_backend_available is_torchelastic_launched "
            "get_default_backend_for_device".split()
        )),
    ),
    "torch.distributed.device_mesh": (_SHARDS, "DeviceMesh init_device_mesh"),
    "torch.distributed.tensor": (
        _SHARDS,
        "DTensor.from_local *torch.distributed.tensor.placement_types distribute_module "
        "distribute_tensor empty full ones rand randn zeros",
    ),
    "torch.distributed.tensor.placement_types": (
        _SHARDS, "_StridedShard " + _options("Partial Placement Replicate Shard")
    ),
    "torch.distributed.tensor._dispatch": (_SHARDS, "OpDispatcher"),
    "torch.distributed.tensor._ops": (_SHARDS, "@register_op_strategy @register_prop_rule"),
    "torch.distributed.tensor.device_mesh": (_SHARDS, "*torch.distributed.device_mesh"),
    "torch.distributed.tensor._utils": (
        _SHARDS,
        "compute_global_tensor_shape compute_local_shape_and_global_offset compute_local_stride "
        "compute_local_tensor_info normalize_to_torch_size try_find_mesh_from_args",
    ),
    "torch.distributed.tensor.parallel": (
        _SHARDS,
        "ColwiseParallel ParallelStyle PrepareModuleInput PrepareModuleInputOutput "
        "PrepareModuleOutput RowwiseParallel SequenceParallel loss_parallel parallelize_module",
    ),
    "torch.distributed.tensor.experimental": (
        _SHARDS, "context_parallel implicit_replication local_map register_sharding"
    ),
    "torch.distributed.tensor.experimental._attention": (
        _SHARDS,
        "_ContextParallel _context_parallel_shard context_parallel_unshard set_rotate_method "
        "context_parallel=torch.distributed.tensor.experimental.context_parallel",
    ),
    "torch.distributed._tensor": (
        _SHARDS, "*torch.distributed.tensor *torch.distributed.device_mesh"
    ),
    "torch.distributed._tensor.api": (_SHARDS, "DTensor=torch.distributed.tensor.DTensor"),
    "torch.distributed._tensor.device_mesh": (_SHARDS, "*torch.distributed.device_mesh"),
    "torch.distributed._tensor.placement_types": (
        _SHARDS, "*torch.distributed.tensor.placement_types"
    ),
    "torch.distributed._tensor.experimental": (_SHARDS, "*torch.distributed.tensor.experimental"),
    "torch.distributed.fsdp": (
        _SHARDS,
        "*torch.distributed.fsdp.api DataParallelMeshDims FSDPModule FlatParameter "
        "*torch.distributed.fsdp.fully_sharded_data_parallel "
        "UnshardHandle fully_shard register_fsdp_forward_method share_comm_ctx "
        + _options("CPUOffloadPolicy MixedPrecisionPolicy OffloadPolicy"),
    ),
    "torch.distributed.fsdp.api": (_SHARDS, _CONFIGURATION),
    "torch.distributed.fsdp.fully_sharded_data_parallel": (
        _SHARDS,
        "*torch.distributed.fsdp.api OptimStateKeyType{PARAM_NAME,PARAM_ID} "
        + " ".join(f"FullyShardedDataParallel.{name}" for name in (
            "state_dict_type set_state_dict_type optim_state_dict optim_state_dict_to_load "
            "full_optim_state_dict scatter_full_optim_state_dict rekey_optim_state_dict "
            "sharded_optim_state_dict fsdp_modules summon_full_params"
        ).split()),
    ),
    "torch.distributed.fsdp.wrap": (
        _SHARDS,
        "CustomPolicy ModuleWrapPolicy _or_policy _recursive_wrap always_wrap_policy enable_wrap "
        "lambda_auto_wrap_policy size_based_auto_wrap_policy transformer_auto_wrap_policy wrap",
    ),
    "torch.distributed.fsdp.sharded_grad_scaler": (_SHARDS, "ShardedGradScaler"),
    "torch.distributed._composable": (_SHARDS, "fully_shard=torch.distributed.fsdp.fully_shard"),
    "torch.distributed._composable.fsdp": (
        _SHARDS,
        " ".join(f"{name}=torch.distributed.fsdp.{name}" for name in (
            "FSDPModule fully_shard CPUOffloadPolicy MixedPrecisionPolicy OffloadPolicy".split()
        )),
    ),
    "torch.distributed._composable.replicate": (_ALONE, "replicate"),
    "torch.distributed._functional_collectives": (
        _ALONE,
        "AsyncCollectiveTensor all_gather_into_tensor_coalesced all_gather_single "
        "all_gather_tensor all_gather_tensor_autograd all_reduce all_reduce_coalesced "
        "all_to_all_single all_to_all_single_autograd broadcast permute_tensor "
        "reduce_scatter_tensor reduce_scatter_tensor_autograd reduce_scatter_tensor_coalesced "
        "wait_tensor",
    ),
    "torch.distributed.algorithms.join": (_ALONE, "Join JoinHook Joinable"),
    "torch.distributed.algorithms._checkpoint.checkpoint_wrapper": (
        "taeda wraps no modules for it; call torch.utils.checkpoint.checkpoint in forward",
        "ActivationWrapper CheckpointImpl{REENTRANT,NO_REENTRANT} CheckpointWrapper OffloadWrapper "
        "apply_activation_checkpointing checkpoint_wrapper offload_wrapper",
    ),
    "torch.distributed.algorithms.ddp_comm_hooks": (
        _ALONE,
        "DDPCommHookType{ALLREDUCE,FP16_COMPRESS,BF16_COMPRESS,QUANTIZE_PER_TENSOR,"
        "QUANTIZE_PER_CHANNEL,POWER_SGD,POWER_SGD_RANK2,BATCHED_POWER_SGD,BATCHED_POWER_SGD_RANK2,"
        "NOOP} register_ddp_comm_hook",
    ),
    "torch.distributed.algorithms.ddp_comm_hooks.default_hooks": (
        _ALONE,
        "allreduce_hook bf16_compress_hook bf16_compress_wrapper fp16_compress_hook "
        "fp16_compress_wrapper",
    ),
    "torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook": (
        _ALONE, "PostLocalSGDState post_localSGD_hook"
    ),
    "torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook": (
        _ALONE, "PowerSGDState batched_powerSGD_hook powerSGD_hook"
    ),
    "torch.distributed.algorithms.model_averaging.averagers": (
        _ALONE, "ModelAverager PeriodicModelAverager"
    ),
    "torch.distributed.algorithms.model_averaging.utils": (
        _ALONE, "average_parameters average_parameters_or_parameter_groups get_params_to_average"
    ),
    "torch.distributed.checkpoint": (
        _FILES,
        "*torch.distributed.checkpoint.filesystem *torch.distributed.checkpoint.state_dict_loader "
        "*torch.distributed.checkpoint.state_dict_saver *torch.distributed.checkpoint.storage "
        "*torch.distributed.checkpoint.default_planner *torch.distributed.checkpoint.planner "
        "*torch.distributed.checkpoint.metadata *torch.distributed.checkpoint.hf_storage",
    ),
    "torch.distributed.checkpoint.state_dict": (
        _FILES,
        "_init_optim_state get_optimizer_state_dict get_state_dict set_optimizer_state_dict "
        "set_state_dict",
    ),
    "torch.distributed.checkpoint.format_utils": (
        _FILES,
        "BroadcastingTorchSaveReader DynamicMetaLoadPlanner dcp_to_torch_save torch_save_to_dcp "
        "_EmptyStateDictLoadPlanner=torch.distributed.checkpoint.default_planner."
        "_EmptyStateDictLoadPlanner "
        "_load_state_dict=torch.distributed.checkpoint.state_dict_loader._load_state_dict",
    ),
    "torch.distributed.checkpoint.default_planner": (
        _FILES, "DefaultLoadPlanner DefaultSavePlanner _EmptyStateDictLoadPlanner"
    ),
    "torch.distributed.checkpoint.optimizer": (_FILES, "load_sharded_optimizer_state_dict"),
    "torch.distributed.checkpoint.state_dict_loader": (
        _FILES, "_load_state_dict load load_state_dict"
    ),
    "torch.distributed.checkpoint.state_dict_saver": (
        _FILES,
        "AsyncCheckpointerType{THREAD,PROCESS} AsyncSaveResponse async_save save save_state_dict",
    ),
    "torch.distributed.checkpoint.hf_storage": (
        _FILES, "HuggingFaceStorageReader HuggingFaceStorageWriter"
    ),
    "torch.distributed.checkpoint.filesystem": (
        _FILES,
        "FileSystem FileSystemBase FileSystemReader FileSystemWriter "
        "SerializationFormat{TORCH_SAVE,SAFETENSORS}",
    ),
    "torch.distributed.checkpoint.metadata": (
        _FILES,
        "BytesStorageMetadata ChunkStorageMetadata Metadata MetadataIndex StorageMeta "
        "TensorProperties TensorStorageMetadata",
    ),
    "torch.distributed.checkpoint.planner": (
        _FILES,
        "BytesIOWriteData LoadItemType{TENSOR,BYTE_IO} LoadPlan LoadPlanner ReadItem SavePlan "
        "SavePlanner TensorWriteData WriteItem WriteItemType{TENSOR,SHARD,BYTE_IO}",
    ),
    "torch.distributed.checkpoint.stateful": (_FILES, "Stateful"),
    "torch.distributed.checkpoint.storage": (_FILES, "StorageReader StorageWriter WriteResult"),
    "torch.distributed.nn": (_ALONE, "RemoteModule *torch.distributed.nn.functional"),
    "torch.distributed.nn.functional": (
        _ALONE,
        "all_gather all_reduce all_to_all all_to_all_single broadcast gather reduce reduce_scatter "
        "scatter",
    ),
    "torch.distributed.optim": (
        "taeda has no process groups yet; use the optimizer of torch.optim itself",
        "DistributedOptimizer PostLocalSGDOptimizer ZeroRedundancyOptimizer as_functional_optim",
    ),
    "torch.distributed.rpc": (
        _RPC,
        "*torch.distributed.rpc.api init_rpc TensorPipeRpcBackendOptions RpcBackendOptions "
        "BackendType{TENSORPIPE} is_available=torch.distributed.is_available",
    ),
    "torch.distributed.rpc.api": (
        _RPC,
        "RRef WorkerInfo _all_gather @_require_initialized get_worker_info remote rpc_async "
        "rpc_sync shutdown",
    ),
    "torch.distributed.rpc.functions": (_RPC, "@async_execution"),
    "torch.distributed.autograd": (
        _RPC, "backward class:context get_gradients is_available=torch.distributed.is_available"
    ),
    "torch.distributed.run": (
        _START, "config_from_args determine_local_world_size get_args_parser main parse_args run"
    ),
    "torch.distributed.launch": (_START, "launch main parse_args"),
    "torch.distributed.launcher": (_START, "*torch.distributed.launcher.api"),
    "torch.distributed.launcher.api": (_START, "LaunchConfig class:elastic_launch launch_agent"),
    "torch.distributed.elastic.multiprocessing": (
        _START,
        "DefaultLogsSpecs LogsDest LogsSpecs MultiprocessContext PContext RunProcsResult "
        "SignalException Std{NONE,OUT,ERR,ALL} SubprocessContext start_processes",
    ),
    "torch.distributed.elastic.multiprocessing.errors": (
        _START,
        "ChildFailedError ErrorHandler ProcessFailure get_error_handler "
        "record=torch.distributed._record",
    ),
    "torch.distributed.elastic.agent.server.api": (
        _START, "ElasticAgent RunResult SimpleElasticAgent Worker WorkerGroup WorkerSpec"
    ),
    "torch.distributed.pipelining": (
        "taeda has no pipelines over processes yet; call the stages in order",
        "Pipe PipelineStage Schedule1F1B ScheduleDualPipeV ScheduleGPipe ScheduleInterleaved1F1B "
        "ScheduleInterleavedZeroBubble ScheduleLoopedBFS ScheduleZBVZeroBubble "
        "SplitPoint{BEGINNING,END} build_stage pipe_split pipeline",
    ),
    "torch.distributed.utils": (_ALONE, "_sync_module_states _verify_param_shape_across_processes"),
    "torch.distributed.rendezvous": (_ALONE, "register_rendezvous_handler rendezvous"),
    "torch._C._distributed_c10d": (
        _ALONE,
        "*torch.distributed FakeProcessGroup _register_process_group _resolve_process_group",
    ),
    "torch._C._distributed_rpc": (
        _RPC, "_is_current_rpc_agent_set=torch.distributed.is_available WorkerInfo"
    ),
    "torch._C._distributed_autograd": (_RPC, "backward _get_gradients"),
    "torch.testing._internal.distributed.fake_pg": (_ALONE, "FakeProcessGroup FakeStore"),
}  # fmt: skip
