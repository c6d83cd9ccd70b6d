"""Names that modules of taeda lack, and modules of PyTorch beside them."""

from __future__ import annotations

_QUANTIZATION = "taeda has no quantized tensors; train and run in bfloat16 instead"
_GRAPHS = "taeda works in the primary context; use torch.cuda.Stream and torch.cuda.graph"
_POOLS = "taeda has one allocator of device memory; see TAEDA_CUDA_ALLOC_CONF for its options"
_COPIES = "taeda does not call NCCL; use torch.nn.parallel.comm, or Tensor.to"
_TUNABLE = "taeda chooses its kernels itself; leave tuning off"
_LIBRARIES = "taeda does not call NVIDIA's or AMD's libraries; leave the choice out"
_PIPES = "taeda does not check types of data pipes; leave the decorator out"
_JACOBIAN = "taeda keeps gradcheck's parts private; use torch.autograd.functional.jacobian"
_PROFILER = "taeda's profiler has no such part; use torch.profiler.profile"
_SCRIPT = "taeda has no script compiler; what it would compile runs eagerly"
_EXTENSION = (
    "taeda compiles no extensions of PyTorch; its own are shared libraries with a TD_LIBRARY, "
    "loaded by torch.ops.load_library"
)
_BACKENDS = "taeda's devices are fixed; use 'cpu' or 'cuda'"
_FLASH = "taeda has one implementation of attention a device; use scaled_dot_product_attention"


def _as_in(module: str, names: str) -> str:
    return " ".join(f"{name}={module}.{name}" for name in names.split())


_XPU_MEMORY = (
    "empty_cache get_per_process_memory_fraction max_memory_allocated max_memory_reserved "
    "mem_get_info memory_allocated memory_reserved memory_snapshot memory_stats "
    "memory_stats_as_nested_dict reset_accumulated_memory_stats reset_peak_memory_stats "
    "set_per_process_memory_fraction MemPool XPUPluggableAllocator change_current_allocator "
    "use_mem_pool"
)

MODULES = {
    "torch.autograd": (
        "taeda's functions take tensors alone; use torch.autograd.Function", "NestedIOFunction",
        "taeda keeps gradients in the layout they are computed in; call contiguous() on them",
        "class:enforce_grad_layout_policy",
    ),
    "torch.autograd.function": (
        "taeda's functions take tensors alone; use torch.autograd.Function", "NestedIOFunction",
    ),
    "torch.autograd.grad_mode": (
        "taeda keeps gradients in the layout they are computed in; call contiguous() on them",
        "class:enforce_grad_layout_policy",
    ),
    "torch.autograd.graph": (
        "taeda chooses no activations to recompute; use torch.utils.checkpoint",
        "region_activation_memory_budget",
        "taeda's backward pass uses the streams of the forward pass; order streams by events",
        "set_override_stale_capture_stream",
        "taeda warns of no streams; leave the call out",
        "set_warn_on_accumulate_grad_stream_mismatch",
    ),
    "torch.autograd.gradcheck": (
        _JACOBIAN,
        "get_analytical_jacobian get_numerical_jacobian get_numerical_jacobian_wrt_specific_input",
    ),
    "torch.autograd.profiler": (_PROFILER, "KinetoStepTracker MemRecordsAcc parse_nvprof_trace"),
    "torch.autograd.variable": (
        "taeda's Variable is Tensor; ask isinstance(x, torch.Tensor)", "VariableMeta",
    ),
    "torch.utils": (
        _BACKENDS,
        "generate_methods_for_privateuse1_backend rename_privateuse1_backend",
        "taeda records no C++ stacks; use a debugger", "get_cpp_backtrace",
        "taeda has no such tool; time the module with torch.utils.benchmark", "ThroughputBenchmark",
    ),
    "torch.utils.backcompat": (
        "taeda's operators follow PyTorch's present rules; leave the warnings off",
        "Warning broadcast_warning={} keepdim_warning={}",
    ),
    "torch.utils.backend_registration": (
        _BACKENDS, "generate_methods_for_privateuse1_backend rename_privateuse1_backend"
    ),
    "torch.utils.cpp_backtrace": (
        "taeda records no C++ stacks; use a debugger", "get_cpp_backtrace"
    ),
    "torch.utils.throughput_benchmark": (
        "taeda has no such tool; time the module with torch.utils.benchmark",
        "ExecutionStats ThroughputBenchmark format_time",
    ),
    "torch.utils.show_pickle": (
        "taeda shows no pickles; use pickletools of the standard library, or torch.load",
        "DumpUnpickler FakeClass FakeObject main",
    ),
    "torch.utils.cpp_extension": (
        _EXTENSION,
        "SyclExtension check_compiler_is_gcc check_compiler_ok_for_platform "
        "get_compiler_abi_compatibility_and_version get_cxx_compiler get_default_build_root "
        "remove_extension_h_precompiler_headers",
    ),
    "torch.utils.mkldnn": (
        "taeda has no layers in oneDNN's layouts; use those of torch.nn",
        "MkldnnBatchNorm MkldnnConv1d MkldnnConv2d MkldnnConv3d MkldnnLinear MkldnnPrelu",
    ),
    "torch.utils.benchmark": (
        "taeda counts no instructions; use Timer.blocked_autorange", "FunctionCount"
    ),
    "torch.utils.data": (
        _PIPES,
        "DFIterDataPipe @argument_validation class:guaranteed_datapipes_determinism "
        "class:non_deterministic @runtime_validation class:runtime_validation_disabled",
        "batches of data pipes are lists; ask isinstance(batch, list)", "DataChunk",
    ),
    "torch.utils.data.graph": (
        "taeda walks no graphs of data pipes; keep the pipes in a list", "traverse traverse_dps"
    ),
    "torch.utils.data.datapipes.dataframe": (
        "taeda has no pipes of data frames; use a Dataset over the rows",
        "CaptureDataFrame CaptureDataFrameWithDataPipeOps DFIterDataPipe DataFramesAsTuplesPipe",
    ),
    "torch.utils.data.datapipes.map": (
        "taeda has no such pipes by index; use torch.utils.data.Dataset",
        "Batcher Concater Mapper SequenceWrapper Shuffler UnZipper Zipper",
    ),
    "torch.utils.data.datapipes.utils": (
        "taeda has no such pipes by index; use torch.utils.data.Dataset", ""
    ),
    "torch.cuda": (
        "Not available for CUDA storage: taeda has no classes of storages a device; use "
        "torch.empty(..., device='cuda').storage()",
        " ".join(
            f"{kind}Storage{attribute}" for kind in (
                "BFloat16 Bool Byte Char ComplexDouble ComplexFloat Double Float Half Int Long "
                "Short".split()
            ) for attribute in ("", ".from_buffer", "._new_with_weak_ptr", "._new_shared_filename")
        ),
    ),
    "torch.cuda.comm": (
        _COPIES, _as_in(
            "torch.nn.parallel.comm",
            "broadcast broadcast_coalesced gather reduce_add reduce_add_coalesced scatter",
        ),
    ),
    "torch.cuda.green_contexts": (_GRAPHS, "GreenContext=torch.cuda.GreenContext"),
    "torch.cuda.memory": (
        _POOLS,
        _as_in(
            "torch.cuda",
            "CUDAPluggableAllocator caching_allocator_disabled caching_allocator_enable "
            "change_current_allocator",
        ),
    ),
    "torch.cuda.nccl": (
        _COPIES,
        "all_gather all_reduce broadcast init_rank no:is_available reduce reduce_scatter unique_id "
        "version",
    ),
    "torch.cuda.profiler": (
        "taeda does not call CUDA's profiler; use torch.profiler.profile", "profile start stop"
    ),
    "torch.cuda.sparse": ("taeda has no such module; use torch.sparse", ""),
    "torch.cuda.tunable": (
        _TUNABLE,
        "enable get_filename get_max_tuning_duration get_max_tuning_iterations get_results "
        "get_rotating_buffer_size get_validators no:is_enabled mgpu_tune_gemm_in_file read_file "
        "record_untuned_enable no:record_untuned_is_enabled set_filename set_max_tuning_duration "
        "set_max_tuning_iterations set_rotating_buffer_size tune_gemm_in_file tuning_enable "
        "no:tuning_is_enabled set_numerical_check_tolerances",
    ),
    "torch.xpu": (
        "taeda has no XPU devices; ask torch.xpu.is_available() before",
        "MemPool XPUPluggableAllocator change_current_allocator get_gencode_flags "
        "graph_pool_handle make_graphed_callables use_mem_pool",
    ),
    "torch.xpu.memory": ("there is no XPU device", _as_in("torch.xpu", _XPU_MEMORY)),
    "torch.xpu.random": (
        "there is no XPU device",
        _as_in(
            "torch.xpu",
            "get_rng_state get_rng_state_all initial_seed manual_seed manual_seed_all seed "
            "seed_all set_rng_state set_rng_state_all",
        ),
    ),
    "torch.xpu.streams": ("there is no XPU device", _as_in("torch.xpu", "Event Stream")),
    "torch.mtia": (
        "taeda has no MTIA devices; ask torch.mtia.is_available() before",
        "MTIAGraph graph graph_pool_handle",
    ),
    "torch.mtia.memory": (
        "there is no MTIA device",
        _as_in(
            "torch.mtia",
            "max_memory_allocated memory_allocated memory_stats reset_peak_memory_stats",
        ),
    ),
    "torch.mps.event": ("there is no MPS device", "Event=torch.mps.Event"),
    "torch.mps.profiler": (
        "taeda has no MPS devices; ask torch.mps.is_available() before",
        "no:is_capturing_metal no:is_metal_capture_enabled metal_capture profile start stop",
    ),
    "torch.onnx": (
        "taeda writes no ONNX files; export the same weights with PyTorch", "ExportableModule"
    ),
    "torch.ao": (_QUANTIZATION, "ns=torch.ao.ns pruning=torch.ao.pruning"),
    "torch.ao.ns": (_QUANTIZATION, ""),
    "torch.ao.pruning": (
        "taeda has no sparsifiers; use torch.nn.utils.prune",
        "BaseDataScheduler BaseDataSparsifier BaseScheduler BaseSparsifier CubicSL FakeSparsity "
        "LambdaSL NearlyDiagonalSparsifier WeightNormSparsifier fqn_to_module "
        "get_arg_info_from_tensor_fqn get_dynamic_sparse_quantized_mapping "
        "get_static_sparse_quantized_mapping module_to_fqn",
    ),
    "torch.ao.quantization": (
        _QUANTIZATION,
        "AffineQuantizedObserverBase Granularity MappingType{SYMMETRIC,SYMMETRIC_NO_CLIPPING_ERR,"
        "ASYMMETRIC} ObserverOrFakeQuantize PerAxis PerBlock PerGroup PerRow "
        "PerTensor PerToken QConfigAny TorchAODType{INT1,INT2,INT3,INT4,INT5,INT6,INT7} "
        "ZeroPointDomain{INT,FLOAT,NONE} convert_dynamic_jit convert_jit "
        "default_affine_fixed_qparams_fake_quant default_affine_fixed_qparams_observer "
        "default_dynamic_fake_quant default_embedding_fake_quant default_embedding_fake_quant_4bit "
        "default_fixed_qparams_range_0to1_fake_quant default_fixed_qparams_range_0to1_observer "
        "default_fixed_qparams_range_neg1to1_fake_quant "
        "default_fixed_qparams_range_neg1to1_observer default_float_qparams_observer "
        "default_float_qparams_observer_4bit default_fused_act_fake_quant "
        "default_fused_per_channel_wt_fake_quant default_fused_wt_fake_quant "
        "default_histogram_fake_quant default_reuse_input_observer "
        "default_symmetric_fixed_qparams_fake_quant default_symmetric_fixed_qparams_observer "
        "fuse_conv_bn fuse_conv_bn_jit fuse_conv_bn_relu fuse_convtranspose_bn fuse_linear_bn "
        "fused_per_channel_wt_fake_quant_range_neg_127_to_127 "
        "fused_wt_fake_quant_range_neg_127_to_127 get_block_size "
        "get_default_compare_output_module_list get_default_custom_config_dict "
        "get_default_dynamic_sparse_quant_module_mappings "
        "get_default_float_to_quantized_operator_mappings get_default_qat_module_mappings "
        "get_default_qat_qconfig_dict get_default_qconfig_dict "
        "get_default_qconfig_propagation_list get_default_static_quant_reference_module_mappings "
        "get_default_static_sparse_quant_module_mappings get_dynamic_quant_module_class "
        "get_embedding_qat_module_mappings get_embedding_static_quant_module_mappings "
        "get_fuser_method get_fuser_method_new get_quantized_operator "
        "get_static_quant_module_class no_observer_set "
        "per_channel_weight_observer_range_neg_127_to_127 prepare_dynamic_jit prepare_jit "
        "qconfig_equals script_qconfig script_qconfig_dict "
        "weight_observer_range_neg_127_to_127 float16_static_qconfig",
    ),
    "torch.serialization": (
        "taeda has no HPU devices; use map_location='cpu'", "validate_hpu_device"
    ),
    "torch.sparse": (
        "taeda has no kernels for it; use torch.linalg.solve with a dense tensor",
        "solve",
    ),
    "torch.random": (
        "taeda's workers are no threads; make a generator a thread with torch.Generator()",
        "thread_safe_generator"
    ),
    "torch.fx.proxy": (
        "taeda's proxies take no metaclass; give the class a method and torch.fx.wrap",
        "MetaProxy",
    ),
    "torch.fx.graph_module": (
        "taeda reads no torch.package files; save state_dict() with torch.save",
        "reduce_package_graph_module",
    ),
    "torch.backends.cuda": (
        "it is in torch.nn.attention",
        "SDPBackend=torch.nn.attention.SDPBackend",
        _LIBRARIES,
        "SDPAParams blas_workspace_size cuBLASModule cuFFTPlanCache cuFFTPlanCacheAttrContextProp "
        "cuFFTPlanCacheManager cublas_workspace_size cublaslt_workspace_size "
        "preferred_blas_library preferred_linalg_library preferred_rocm_fa_library",
    ),
    "torch.backends": (
        "taeda's torch.backends is an ordinary module; make one of torch.backends.PropModule",
        "GenericModule",
    ),
    "torch.backends.cudnn": (_LIBRARIES, "CudnnModule"),
    "torch.backends.cudnn.rnn": (_LIBRARIES, "Unserializable get_cudnn_mode init_dropout_state"),
    "torch.cuda.jiterator": (
        "taeda compiles no C++ of programs; use functions of torch or a custom operator",
        "_create_jit_fn _create_multi_output_jit_fn",
    ),
    "torch.backends.miopen": (_LIBRARIES, "MiopenModule"),
    "torch.backends.opt_einsum": (
        "taeda has no such class; set torch.backends.opt_einsum.enabled and strategy",
        "OptEinsumModule"
    ),
    "torch.backends.mkldnn": (
        "taeda has no switch for oneDNN's reports; use torch.profiler.profile",
        "MkldnnModule class:verbose VERBOSE_OFF=0 VERBOSE_ON=1 VERBOSE_ON_CREATION=2",
    ),
    "torch.backends.quantized": (_QUANTIZATION, "QuantizedEngine"),
    "torch.backends.cusparselt": (_LIBRARIES, "get_max_alg_id"),
    "torch.backends.mkl": (
        "taeda does not call oneMKL; use torch.profiler", "class:verbose VERBOSE_OFF=0 VERBOSE_ON=1"
    ),
    "torch.backends.mps": (
        "taeda has no MPS devices; ask torch.backends.mps.is_available() before",
        "get_core_count get_name",
    ),
    "torch.backends.python_native": (
        "taeda chooses its kernels itself; leave the choice out",
        "DSLController PythonNativeModule disable_dispatch_keys disable_operations "
        "enable_dispatch_keys enable_operations "
        + _as_in("torch.backends", "ContextProp PropModule flags_frozen") + " "
        "get_dsl_operations is_dsl_disabled is_operation_disabled operations_disabled",
    ),
    "torch.backends.xeon": ("taeda binds no threads; use numactl", ""),
    "torch.backends.xeon.run_cpu": ("taeda binds no threads; use numactl", "create_args main"),
    "torch.library": (
        "taeda hands out no kernels; call the operator in torch.ops, which chooses one",
        "get_kernel"
    ),
    "torch.overrides": (
        "taeda skips no single level; call func in torch._C.DisableTorchFunctionSubclass()",
        "redispatch_function",
    ),
    "torch.testing": (_SCRIPT, "FileCheck=torch.FileCheck"),
    "torch.nn.utils.parametrize": (
        "taeda copies no parametrizations; register those of the one module at the other",
        "transfer_parametrizations_and_params",
    ),
    "torch.nn.attention": (
        _FLASH, "activate_flash_attention_impl register_flash_attention_impl"
    ),
    "torch.nn.attention.varlen": (
        "taeda has no packed attention; give scaled_dot_product_attention nested tensors or a mask",
        "AuxRequest varlen_attn varlen_attn_out",
    ),
    "torch.func": (
        "taeda reads no such patterns; use einops.rearrange, or reshape and permute", "rearrange"
    ),
    "torch.compiler": (_SCRIPT, "config=torch.compiler.config"),
    "torch.compiler.config": (
        "programs run eagerly; settings of the compiler change nothing",
        "job_id=None cache_key_tag=''",
    ),
    "torch.profiler.itt": (
        "taeda does not call Intel's ITT; use torch.profiler.record_function",
        "no:is_available mark range range_pop range_push",
    ),
    "torch.jit.annotations": (
        _SCRIPT,
        "AnyType ComplexType DictType FloatType IntType ListType StringType TensorType TupleType "
        "ann_to_type check_fn get_param_names get_signature get_type_line parse_type_line "
        "split_type_line try_ann_to_type try_real_annotations",
    ),
    "torch.quantization": (
        _QUANTIZATION,
        "WeightObserver _convert_ondevice_dynamic_jit _prepare_ondevice_dynamic_jit "
        "_quantize_ondevice_dynamic_jit",
    ),
    "torch.monitor": (
        "taeda keeps no counters; use torch.profiler",
        "STAT_EVENT='torch.monitor.Stat' data_value_t",
    ),
    "torch.numa": ("taeda binds no threads; use numactl", ""),
}  # fmt: skip
